//! Files that never end, that nobody writes to, that can't be written to, or that are older than what was seen of them.

use super::place;
use crate::harness::Scratch;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

/// A device without an end and a pipe without a writer, wherever a file is read: refused at once, whatever it is read for.
#[test]
fn what_never_ends_is_not_read() {
    let here = place("endless");
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6");
    here.ok("fit job.toml");
    let pipe = std::ffi::CString::new(here.join("pipe").to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    for path in ["/dev/zero", "pipe"] {
        for line in [
            "fit PATH",
            "fit job.toml --schema PATH --out x.json",
            "fit job.toml --data PATH --out x.json",
            "fit job.toml --ledger-key PATH --out x.json",
            "fit job.toml --ledger PATH --out x.json",
            "fit job.toml --auxiliary PATH --out x.json",
            "tune PATH",
            "audit sensitivity --method output --schema PATH",
            "schema init PATH",
            "schema check PATH",
            "schema bounds PATH --data d.csv --epsilon 1 --delta 1e-6 --out x.toml",
            "schema validate --schema PATH --data d.csv",
            "schema validate --schema s.toml --data PATH",
            "predict --model PATH --data d.csv",
            "predict --model m.json --data PATH",
            "evaluate --model PATH --data d.csv",
            "export PATH --format csv",
            "certificate show PATH",
            "certificate verify PATH",
            "certificate verify m.json --ledger PATH",
            "certificate export m.json --registry PATH --out x.yaml",
            "report PATH --out x.html",
            "report m.json --results PATH --out x.html",
            "ledger create x --schema PATH --epsilon 1 --delta 1e-6",
            "ledger show PATH",
            "ledger verify l --model PATH",
            "ledger show l --ledger-key PATH",
            "account --request PATH",
        ] {
            let line = line.replace("PATH", path);
            let mut command = here.command(&line);
            // SAFETY: two calls between fork and exec. What would never end is ended.
            unsafe {
                command.pre_exec(|| {
                    libc::alarm(60);
                    let most = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
                    if libc::setrlimit(libc::RLIMIT_AS, &most) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
                })
            };
            let done = command.output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.code() == Some(2) && said.contains("error: "), "{line}: {:?} {said}", done.status);
        }
    }
    assert!(!here.join("x.json").exists());
}

/// As somebody whom permissions bind; tests may be run by somebody whom they do not.
fn bound(here: &Scratch, line: &str) -> (Option<i32>, String) {
    let mut command = here.command(line);
    // SAFETY: two calls between fork and exec. Without these two rights (to ignore permissions) nobody has them; they fail where there are none.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_CAPBSET_DROP, 1);
            libc::prctl(libc::PR_CAPBSET_DROP, 2);
            Ok(())
        })
    };
    let done = command.output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap())
}

#[test]
fn a_ledger_is_read_where_it_can_not_be_written() {
    let here = place("readonly");
    here.ok("ledger create l --schema s.toml --epsilon 2 --delta 1e-6");
    here.ok("fit job.toml --request one");
    let shown = here.ok("ledger show l");
    std::fs::create_dir(here.join("shelf")).unwrap();
    std::fs::copy(here.join("l"), here.join("shelf/l")).unwrap();
    let mode = |name: &str, mode| std::fs::set_permissions(here.join(name), PermissionsExt::from_mode(mode)).unwrap();
    mode("shelf/l", 0o444);
    for directory in [0o755, 0o555] {
        mode("shelf", directory);
        assert_eq!(bound(&here, "ledger show shelf/l"), (Some(0), shown.clone()));
        let (code, said) = bound(&here, "ledger verify shelf/l --model m.json");
        assert!(code == Some(0) && said.contains("releases") && !said.contains("fails"), "{code:?} {said}");
        assert_eq!(bound(&here, "ledger export shelf/l --request one --out again.json").0, Some(0));
        assert_eq!(bound(&here, "report shelf/l --format json").0, Some(0));
        let (code, said) = bound(&here, "fit job.toml --ledger shelf/l --out x.json");
        assert!(code == Some(1) && said.contains("can't be opened for writing"), "{code:?} {said}");
        assert_eq!(std::fs::read_dir(here.join("shelf")).unwrap().count(), 1, "nothing is left beside it");
    }
    mode("shelf", 0o755);
    // A log of a job that died is not left out: without it the ledger would be an older one.
    std::fs::write(here.join("shelf/l-wal"), [0; 100]).unwrap();
    let (code, said) = bound(&here, "ledger show shelf/l");
    assert!(code == Some(1) && said.contains("left its log"), "{code:?} {said}");
}

#[test]
fn a_ledger_that_was_put_back_is_noticed() {
    let here = place("put-back");
    here.ok("ledger create l --schema s.toml --epsilon 9 --delta 1e-6");
    here.ok("fit job.toml --out m1.json");
    let old = std::fs::read(here.join("l")).unwrap();
    here.ok("fit job.toml --out m2.json");
    let new = std::fs::read(here.join("l")).unwrap();
    std::fs::write(here.join("l"), &old).unwrap();
    here.refused("fit job.toml --out m3.json", 1, "the ledger was rolled back: 5 of its records were seen here and now it has 3");
    assert!(!here.join("m3.json").exists());
    here.refused("ledger show l", 1, "rolled back");
    here.refused("ledger verify l", 1, "rolled back");
    assert!(here.ok("fit job.toml --dry-run --rows 40").contains("ledger    refused: the ledger was rolled back"));
    // Without a home nothing is remembered, and nothing fails.
    for (name, value) in [("HOME", None), ("HOME", Some("relative")), ("HOME", Some("/dev/null"))] {
        let mut command = here.command("ledger show l");
        command.env_remove("XDG_STATE_HOME").env_remove(name);
        if let Some(value) = value {
            command.env(name, value);
        }
        assert_eq!(command.output().unwrap().status.code(), Some(0), "{name} {value:?}");
    }
    std::fs::write(here.join("l"), &new).unwrap();
    here.ok("fit job.toml --out m3.json");
    // The way out that the message names.
    std::fs::write(here.join("l"), &old).unwrap();
    let said = String::from_utf8(here.run("ledger show l").stderr).unwrap();
    let (_, rest) = said.split_once("remove ").unwrap();
    std::fs::remove_file(rest.split_once(", and").unwrap().0).unwrap();
    here.ok("ledger show l");
}
