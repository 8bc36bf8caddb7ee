//! Forbidden uses of the kernel do not compile; one file for each, with what the compiler says.

#[test]
fn forbidden_uses_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/refused/allowed.rs");
    cases.compile_fail("tests/refused/no_*.rs");
}
