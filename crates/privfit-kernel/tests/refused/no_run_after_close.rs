//! A closed run releases nothing more.
use privfit_kernel::Run;

fn late(run: Run<'_>) {
    let _ = run.close(());
    let _ = run.close(());
}

fn main() {}
