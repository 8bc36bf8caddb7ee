//! What is paid for is delivered: a file that can't be written costs nothing but a second command, and no file is lost by accident.

use super::place;
use crate::harness::Scratch;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

fn jobs(here: &Scratch) -> usize {
    here.json("ledger show l")["jobs"].as_array().unwrap().len()
}

#[test]
fn a_failed_publication_is_delivered_for_free() {
    let here = place("delivery");
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6");
    // A name that the system takes, and that leaves no room for the one beside it.
    let long = format!("{}.json", "m".repeat(240));
    let done = here.run(&format!("fit job.toml --out {long}"));
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(3), "{said}");
    let name = said.lines().find_map(|l| l.strip_prefix("request ")).expect("a name before data are opened").to_string();
    let command = said.lines().find_map(|l| l.trim().strip_prefix("privfit ")).expect("a command that delivers");
    assert_eq!(command, format!("ledger export l --request {name} --out {long}"));
    assert_eq!(jobs(&here), 1);
    // The place is what was wrong; anywhere else it works, and so does the same request.
    here.ok(&command.replace(&long, "m.json"));
    here.ok("ledger verify l --model m.json");
    std::fs::rename(here.join("m.json"), here.join("first.json")).unwrap();
    here.ok(&format!("fit job.toml --request {name}"));
    assert_eq!(std::fs::read(here.join("m.json")).unwrap(), std::fs::read(here.join("first.json")).unwrap());
    assert_eq!(jobs(&here), 1);
}

#[test]
fn numbers_that_are_not_written_are_delivered_for_free() {
    let here = place("numbers");
    here.ok("ledger create l --schema s.toml --epsilon 9 --delta 1e-6");
    here.ok("fit job.toml");
    let line = "evaluate --model m.json --data d.csv --epsilon 0.5 --delta 1e-6 --ledger l --request numbers";
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let done = here.command(line).stdout(full).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(3) && said.contains("privfit ledger export l --request numbers"), "{said}");
    here.ok("ledger export l --request numbers");
    here.ok(line);
    assert_eq!(jobs(&here), 2);
}

#[test]
fn no_model_is_replaced_by_accident() {
    let here = place("replaced");
    here.ok("ledger create l --schema s.toml --epsilon 9 --delta 1e-6");
    here.ok("fit job.toml --request one");
    let first = std::fs::read(here.join("m.json")).unwrap();
    here.refused("fit job.toml", 2, "--force");
    here.refused("fit job.toml --request two", 2, "--force");
    here.refused("tune job.toml --request two", 2, "[tune");
    assert_eq!((jobs(&here), std::fs::read(here.join("m.json")).unwrap()), (1, first.clone()), "nothing was reserved");
    // The same request delivers again, over the same model.
    here.ok("fit job.toml --request one");
    here.ok("fit job.toml --request two --force");
    here.refused("fit job.toml --request one", 2, "--force");
    here.ok("fit job.toml --request one --force");
    assert_eq!((jobs(&here), std::fs::read(here.join("m.json")).unwrap()), (2, first));
    // A link is somebody's file, too.
    std::os::unix::fs::symlink("nowhere.json", here.join("link.json")).unwrap();
    here.refused("fit job.toml --out link.json", 2, "--force");
    // The job file can say it.
    let job = std::fs::read_to_string(here.join("job.toml")).unwrap();
    std::fs::write(here.join("job.toml"), format!("force = true\n{job}")).unwrap();
    here.ok("fit job.toml --request three");
}

#[test]
fn files_are_for_their_owner() {
    let here = place("modes");
    let mode = |name: &str| std::fs::metadata(here.join(name)).unwrap().permissions().mode() & 0o777;
    let with = |mask: libc::mode_t, line: &str| {
        let mut command = here.command(line);
        // SAFETY: one call between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::umask(mask);
                Ok(())
            })
        };
        let done = command.output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    };
    with(0, "ledger create l --schema s.toml --epsilon 9 --delta 1e-6");
    with(0, "fit job.toml --request one");
    with(0, "ledger export l --request one --out again.json");
    for name in ["l", "m.json", "again.json"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    for end in ["l-wal", "l-shm"].into_iter().filter(|n| here.join(n).exists()) {
        assert_eq!(mode(end), 0o600, "{end}");
    }
    with(0o277, "fit job.toml --out strict.json");
    assert_eq!(mode("strict.json"), 0o400);
}
