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
