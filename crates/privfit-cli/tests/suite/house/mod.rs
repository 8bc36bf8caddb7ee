//! The house: layers without circles, names of losses and methods in their registries alone, and a page that names files that exist.

mod graph;

use crate::harness::top;
use std::path::PathBuf;

fn crates() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(top().join("crates")).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    assert!(all.len() >= 8, "{all:?}");
    all
}

/// No module needs one that needs it, at any level of any crate.
#[test]
fn no_module_needs_one_that_needs_it() {
    let (mut wrong, mut edges) = (Vec::new(), 0);
    for root in crates() {
        for (parent, needs) in graph::graph(&root.join("src")) {
            edges += needs.values().map(|n| n.len()).sum::<usize>();
            if let Some(circle) = graph::circle(&needs) {
                wrong.push(format!("{} {}: {}", root.file_name().unwrap().display(), parent.join("::"), circle.join(" -> ")));
            }
        }
    }
    println!("{edges} edges between siblings");
    assert!(edges > 300, "{edges}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The reader of sources finds circles through every kind of path, and none through comments, texts and tests.
#[test]
fn circles_are_found() {
    let case = |files: &[(&str, &str)]| {
        let root = std::env::temp_dir().join(format!("privfit-house-{}-{:x}", std::process::id(), files.as_ptr() as usize));
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = graph::graph(&root).values().any(|needs| graph::circle(needs).is_some());
        std::fs::remove_dir_all(root).unwrap();
        found
    };
    assert!(case(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::{c::C, a::{self, A}};")]));
    assert!(case(&[("a.rs", "fn f() { super::b::g() }"), ("b.rs", "pub use super::a::f;")]));
    assert!(case(&[("m/mod.rs", ""), ("m/a.rs", "use super::b;"), ("m/b.rs", "use crate::m::a::X;")]));
    assert!(case(&[("a/mod.rs", ""), ("a/deep.rs", "use crate::b::B;"), ("b.rs", "use crate::a;")]));
    assert!(!case(&[("a.rs", "use crate::b::B; // use crate::c\n"), ("b.rs", "const T: &str = \"crate::a::f\";")]));
    assert!(!case(&[("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }")]));
    assert!(!case(&[("lib.rs", "#[cfg(test)]\nmod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")]));
}

/// What else is called like a loss or a method, and why it is not one.
const OTHERS: [(&str, &str, &str); 6] = [
    ("privfit/src/request.rs", "objective", "a mechanism of the published accounting requests"),
    ("privfit/src/request.rs", "poisson", "a kind of sampling there"),
    ("privfit-cli/src/verb/account/mod.rs", "objective", "the same mechanism as a flag"),
    ("privfit-cli/src/args/fit.rs", "network", "the kind of a model in a job file"),
    ("privfit-data/src/schema/parse.rs", "mean", "a key of a schema: the mean of the pixels"),
    ("privfit/src/job/tune.rs", "poisson", "a distribution of the number of runs"),
];

/// Losses and methods own what depends on them: nobody else asks for one by its name. The accountant and the benchmarks are left out: one
/// knows no method, the others are lists of methods.
#[test]
fn names_stand_in_their_registries_alone() {
    let losses = privfit::loss::ALL.iter().map(|l| l.name);
    let methods =
        privfit::method::ALL.iter().flat_map(|m| std::iter::once(m.name).chain(m.alias.split(", ")).filter(|n| !n.is_empty()));
    let names: Vec<&str> = losses.chain(methods).collect();
    let (mut found, mut used) = (Vec::new(), Vec::new());
    for root in crates() {
        let own = root.file_name().unwrap().to_string_lossy().into_owned();
        if matches!(own.as_str(), "privfit-account" | "privfit-bench") {
            continue;
        }
        for (module, source) in graph::files(&root.join("src")) {
            let place = format!("{own}/src/{}", module.join("/"));
            let registry = module.first().is_some_and(|m| matches!(m.as_str(), "loss" | "method"));
            if registry || module.iter().any(|m| m.contains("test")) {
                continue;
            }
            let source = graph::without_tests(&graph::bare(&source));
            for name in names.iter().filter(|n| source.contains(&format!("\"{n}\""))) {
                let allowed =
                    |o: &&(&str, &str, &str)| o.1 == *name && o.0.trim_end_matches(".rs").trim_end_matches("/mod") == place;
                match OTHERS.iter().find(allowed) {
                    Some(other) => used.push(*other),
                    None => found.push(format!("{place}: {name}")),
                }
            }
        }
    }
    assert!(names.len() > 40 && used.len() == OTHERS.len(), "{} names, {used:?}", names.len());
    assert!(found.is_empty(), "ask the registry for what depends on a loss or a method:\n{}", found.join("\n"));
}

/// The library names arguments, and whoever shows its errors spells them. Pages for people hold whole commands.
#[test]
fn the_library_spells_no_flag() {
    let mut found = Vec::new();
    for own in ["privfit-account", "privfit-kernel", "privfit-data", "privfit-ledger", "privfit"] {
        for (module, source) in graph::files(&top().join("crates").join(own).join("src")) {
            if module.first().is_some_and(|m| m == "report") || module.iter().any(|m| m.contains("test")) {
                continue;
            }
            let shipped = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for line in shipped.lines().map(str::trim_start).filter(|l| !l.starts_with("//")) {
                let flag = |at: usize| line[at + 2..].starts_with(|c: char| c.is_ascii_lowercase()) && !line[..at].ends_with('-');
                if line.match_indices("--").any(|(at, _)| flag(at)) {
                    found.push(format!("{own} {}: {line}", module.join("::")));
                }
            }
        }
    }
    assert!(found.is_empty(), "use `give` or `naming`:\n{}", found.join("\n"));
}

/// The page about the house names files and folders that exist, and tells the way of a fit in at most twenty steps.
#[test]
fn the_page_names_what_is_there() {
    let page = std::fs::read_to_string(top().join("docs/architecture.md")).unwrap();
    let quoted = page.split('`').skip(1).step_by(2).filter(|q| q.starts_with("crates/") || q.starts_with("docs/"));
    let named: Vec<&str> = quoted.collect();
    let missing: Vec<&&str> = named.iter().filter(|n| !top().join(n).exists()).collect();
    assert!(named.len() > 40 && missing.is_empty(), "{} named, not there: {missing:?}", named.len());
    let steps = page.lines().filter(|l| l.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok())).count();
    assert!((10..=20).contains(&steps), "{steps} steps");
    for (root, name) in crates().iter().map(|c| (c, c.file_name().unwrap().to_string_lossy())) {
        assert!(page.contains(&*name), "{} is not on the page", root.display());
    }
}

/// A page that names a test as `file.rs::test` names one that exists there.
#[test]
fn pages_name_tests_that_exist() {
    let mut sources: Vec<(String, String)> = Vec::new();
    let mut open: Vec<PathBuf> = vec![top().join("crates")];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else if entry.extension().is_some_and(|e| e == "rs") {
                sources.push((entry.to_string_lossy().into_owned(), std::fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    let (mut named, mut wrong) = (0, Vec::new());
    let pages = std::fs::read_dir(top()).unwrap().chain(std::fs::read_dir(top().join("docs")).unwrap());
    for page in pages.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md")) {
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        for piece in std::fs::read_to_string(&page).unwrap().split('`') {
            let Some((file, test)) = piece.split_once(".rs::") else { continue };
            named += 1;
            let here =
                |(path, text): &(String, String)| path.ends_with(&format!("{file}.rs")) && text.contains(&format!("fn {test}("));
            if !sources.iter().any(here) {
                wrong.push(format!("{}: {piece}", page.display()));
            }
        }
    }
    assert!(named > 40 && wrong.is_empty(), "{named} tests are named\n{}", wrong.join("\n"));
}
