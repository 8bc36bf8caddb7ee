//! A closed run releases nothing more.
use privfit_kernel::privacy::Run;

fn late(run: Run<'_>) {
    let _ = run.close(());
    let _ = run.close(());
}

fn main() {}
