//! Forbidden uses of the kernel do not compile; one file for each, with what the compiler says. `PRIVFIT_REFRESH=1` writes that anew.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The kernel as it was built for this test, in the directory of its dependencies.
fn kernel(directory: &Path) -> PathBuf {
    let libraries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libprivfit_kernel-") && name.ends_with(".rlib")
    });
    libraries.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).expect("the kernel is built before its tests")
}

/// What the compiler says about a file: a line for each error, with its place. No line is left where it compiles.
fn errors(file: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let directory = test.parent().unwrap();
    let out = std::env::temp_dir().join(format!("privfit-refused-{}", std::process::id()));
    let said = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=short", "-Awarnings", file])
        .arg(format!("-Ldependency={}", directory.display()))
        .arg(format!("--extern=privfit_kernel={}", kernel(directory).display()))
        .arg("-o")
        .arg(&out)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(out);
    let text = String::from_utf8(said.stderr).unwrap();
    let lines: String = text.lines().filter(|line| line.starts_with(file)).map(|line| format!("{line}\n")).collect();
    assert_eq!(said.status.success(), lines.is_empty(), "{file}: {text}");
    lines
}

#[test]
fn forbidden_uses_do_not_compile() {
    std::env::set_current_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
    assert_eq!(errors("tests/refused/allowed.rs"), "");
    let files = std::fs::read_dir("tests/refused").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut compared = 0;
    for name in files.filter(|name| name.starts_with("no_") && name.ends_with(".rs")) {
        let file = format!("tests/refused/{name}");
        let expected = Path::new(&file).with_extension("stderr");
        let found = errors(&file);
        assert!(!found.is_empty(), "{file} compiles");
        if std::env::var_os("PRIVFIT_REFRESH").is_some() {
            std::fs::write(&expected, &found).unwrap();
        }
        assert_eq!(found, std::fs::read_to_string(&expected).unwrap_or_default(), "{file}");
        compared += 1;
    }
    assert!(compared > 20, "{compared} files");
}
