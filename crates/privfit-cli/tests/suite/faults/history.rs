//! A ledger that was put back to an old state, or went two ways, contradicts the models that were published meanwhile; and neither clock
//! nor host nor user is in it.

use crate::faults::checks::{Standing, finish, open, standing};
use crate::faults::scene::Scene;
use privfit::ledger::record::Record;
use std::os::unix::process::CommandExt;

/// Asks both who can tell, by ledger and by model; they agree.
fn verify(scene: &Scene, place: &str, model: &str) -> (Option<i32>, String) {
    let model = scene.path(model);
    let model = model.to_str().unwrap();
    let ask = |arguments: &[&str]| {
        let done = scene.run(arguments);
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
    };
    let (code, says) = ask(&["ledger", "verify", place, "--model", model]);
    let (same, also) = ask(&["certificate", "verify", model, "--ledger", place]);
    assert_eq!(code, same, "{says}\n{also}");
    (code, says)
}

#[test]
fn an_old_copy_contradicts_a_newer_model() {
    let scene = Scene::new("rollback");
    let place = scene.ledger();
    scene.make(&place, "1");
    let fit = |request: &str, out: &str| {
        let done = finish(&mut scene.fit(&place, request, out));
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    };
    fit("one", "m-one.json");
    let old = scene.copy();
    fit("two", "m-two.json");
    for model in ["m-one.json", "m-two.json"] {
        let (code, says) = verify(&scene, &place, model);
        assert_eq!(code, Some(0), "{says}");
    }
    let put_back = || {
        for (path, bytes) in &old {
            let _ = std::fs::remove_file(path);
            bytes.iter().for_each(|b| std::fs::write(path, b).unwrap());
        }
    };
    put_back();
    let (code, says) = verify(&scene, &place, "m-two.json");
    assert!(code == Some(1) && says.contains("rolled back"), "{code:?} {says}");
    // Gone on with: a third model takes the place of the second.
    fit("three", "m-three.json");
    let (code, says) = verify(&scene, &place, "m-two.json");
    assert!(code == Some(1), "{code:?} {says}");
    assert_eq!(verify(&scene, &place, "m-three.json").0, Some(0));
    // The very same request again, on the fork: other noise, and the first file is not what this ledger released.
    put_back();
    fit("two", "m-fork.json");
    let (code, says) = verify(&scene, &place, "m-two.json");
    assert!(code == Some(1), "{code:?} {says}");
    assert_eq!(verify(&scene, &place, "m-fork.json").0, Some(0));
    // A model of another ledger.
    let other = scene.path("other").to_str().unwrap().to_string();
    scene.make(&other, "1");
    assert_eq!(verify(&scene, &other, "m-one.json").0, Some(1));
}

/// Texts of all records.
fn bodies(place: &str) -> Vec<String> {
    open(place).unwrap().1.records.iter().map(|(record, _)| record.body().unwrap()).collect()
}

#[test]
fn no_clock_no_host_no_user() {
    let scene = Scene::new("places");
    let place = scene.ledger();
    scene.make(&place, "1");
    let start = scene.copy();
    let settings: [&[(&str, &str)]; 4] = [
        &[],
        &[("TZ", "Pacific/Kiritimati"), ("LC_ALL", "de_DE.UTF-8"), ("HOSTNAME", "elsewhere"), ("HOME", "/nowhere")],
        &[("TZ", "America/Adak"), ("LC_ALL", "tr_TR"), ("LC_NUMERIC", "ar_EG"), ("USER", "nobody"), ("LOGNAME", "nobody")],
        &[("SOURCE_DATE_EPOCH", "1"), ("LANG", "C"), ("COLUMNS", "10"), ("RAYON_NUM_THREADS", "3")],
    ];
    let mut first: Option<Vec<String>> = None;
    for (i, setting) in settings.iter().enumerate() {
        scene.restore(&start);
        for request in ["one", "two"] {
            let mut command = scene.fit(&place, request, "m.json");
            command.arg("--force").envs(setting.iter().copied());
            // Another name of the machine, where that is allowed.
            if i == 1 {
                // SAFETY: two calls between fork and exec, on a text that lives as long as the program.
                unsafe {
                    command.pre_exec(|| {
                        if libc::unshare(libc::CLONE_NEWUTS) == 0 {
                            libc::sethostname(c"elsewhere".as_ptr(), 9);
                        }
                        Ok(())
                    })
                };
            }
            let done = finish(&mut command);
            assert_eq!(done.status.code(), Some(0), "{setting:?}: {}", String::from_utf8_lossy(&done.stderr));
        }
        // Moments passed in between: equal texts of all reservations leave no room for a clock.
        let seen: Vec<String> = bodies(&place).into_iter().filter(|b| !b.starts_with("{\"commit\"")).collect();
        assert_eq!(seen.len(), 3);
        assert_eq!(&seen, first.get_or_insert_with(|| seen.clone()), "{setting:?}");
    }
    // Moved to another directory, the request is still the same one, and nothing is spent again.
    let (mut ledger, status) = open(&place).unwrap();
    let Standing::Released(bytes) = standing(&mut ledger, &status, "two") else { panic!("not released") };
    drop(ledger);
    let elsewhere = Scene::new("elsewhere");
    std::fs::copy(&place, elsewhere.ledger()).unwrap();
    let done = finish(&mut elsewhere.fit(&elsewhere.ledger(), "two", "m.json"));
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(std::fs::read(elsewhere.path("m.json")).unwrap() == bytes);
    assert_eq!(open(&elsewhere.ledger()).unwrap().1.spent.jobs, 2);
    // Neither path nor number of rows nor digest of the data is in it.
    let all = bodies(&place).join("\n");
    assert!(!all.contains("d.csv") && !all.contains("/") && !all.contains("\"rows\""), "{all}");
    assert!(matches!(status.records[0].0, Record::Open { .. }));
}
