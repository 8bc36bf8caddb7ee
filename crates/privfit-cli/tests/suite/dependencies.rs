//! Licences, sources and banned versions of everything in the lock file, by the rules of `deny.toml`, without the network.
//!
//! Not known offline: advisories that came out since, and versions that were yanked. `cargo deny check` asks for both.

use crate::harness::top;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Everything in the lock file; where packages for other systems were never fetched, what this system needs.
fn metadata() -> Value {
    let ask = |more: &[&str]| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let fixed = ["metadata", "--offline", "--locked", "--all-features", "--format-version", "1"];
        Command::new(cargo).args(fixed).args(more).current_dir(top()).output().unwrap()
    };
    let mut output = ask(&[]);
    if !output.status.success() {
        let version = Command::new("rustc").arg("-vV").output().unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        let host = version.lines().find_map(|l| l.strip_prefix("host: ")).unwrap().to_string();
        println!("packages for other systems are not at hand: only those for {host} are looked at");
        output = ask(&["--filter-platform", &host]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rules() -> toml::Table {
    std::fs::read_to_string(top().join("deny.toml")).unwrap().parse().unwrap()
}

/// Whether a licence expression can be met with licences of a list. `/` is an old way to write OR.
fn allowed(expression: &str, list: &[String]) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (answer, rest) = either(&words, list)?;
    if rest.is_empty() { Ok(answer) } else { Err(format!("{expression:?} goes on with {rest:?}")) }
}

type Parsed<'w> = Result<(bool, &'w [&'w str]), String>;

fn either<'w>(words: &'w [&'w str], list: &[String]) -> Parsed<'w> {
    let (mut answer, mut rest) = both(words, list)?;
    while let Some((&"OR", more)) = rest.split_first() {
        let (next, after) = both(more, list)?;
        (answer, rest) = (answer | next, after);
    }
    Ok((answer, rest))
}

fn both<'w>(words: &'w [&'w str], list: &[String]) -> Parsed<'w> {
    let (mut answer, mut rest) = one(words, list)?;
    while let Some((&"AND", more)) = rest.split_first() {
        let (next, after) = one(more, list)?;
        (answer, rest) = (answer & next, after);
    }
    Ok((answer, rest))
}

fn one<'w>(words: &'w [&'w str], list: &[String]) -> Parsed<'w> {
    match words {
        ["(", inside @ ..] => match either(inside, list)? {
            (answer, [")", rest @ ..]) => Ok((answer, rest)),
            _ => Err("a bracket is not closed".into()),
        },
        // An exception is a licence of its own: it must be listed as such.
        [name, "WITH", exception, rest @ ..] => Ok((list.contains(&format!("{name} WITH {exception}")), rest)),
        [name, rest @ ..] if !["AND", "OR", "WITH", ")"].contains(name) => Ok((list.iter().any(|l| l == name), rest)),
        _ => Err(format!("a licence is missing before {words:?}")),
    }
}

/// The three numbers of a version.
fn numbers(version: &str) -> [u64; 3] {
    let core = version.split(['-', '+']).next().unwrap();
    let mut parts = core.split('.').map(|p| p.trim().parse().unwrap());
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// Whether a version meets all of some conditions, like `>=1.2, <1.4`.
fn meets(version: &str, conditions: &str) -> bool {
    let version = numbers(version);
    conditions.split(',').map(str::trim).all(|c| {
        let digits = c.find(|c: char| c.is_ascii_digit()).unwrap();
        let bound = numbers(&c[digits..]);
        match c[..digits].trim() {
            "<" => version < bound,
            "<=" => version <= bound,
            ">" => version > bound,
            ">=" => version >= bound,
            "=" => version == bound,
            other => panic!("deny.toml: {other:?} is not known here: use <, <=, >, >= or ="),
        }
    })
}

#[test]
fn licences_sources_and_versions_are_allowed() {
    let (metadata, rules) = (metadata(), rules());
    let list: Vec<String> =
        rules["licenses"]["allow"].as_array().unwrap().iter().map(|l| l.as_str().unwrap().to_string()).collect();
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, version) = (package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        versions.entry(name.into()).or_default().push(version.into());
        match package["license"].as_str().map(|l| (l, allowed(l, &list))) {
            Some((_, Ok(true))) => {}
            Some((licence, Ok(false))) => wrong.push(format!("{name} {version}: licence {licence} is not allowed")),
            Some((_, Err(text))) => wrong.push(format!("{name} {version}: {text}")),
            None => wrong.push(format!("{name} {version}: no licence is stated")),
        }
        if let Some(source) = package["source"].as_str().filter(|s| !s.starts_with("registry+")) {
            wrong.push(format!("{name} {version}: comes from {source}, not from the registry"));
        }
        for ban in rules["bans"]["deny"].as_array().unwrap() {
            let (banned, conditions) = ban["crate"].as_str().unwrap().split_once(':').unwrap();
            if banned == name && meets(version, conditions) {
                wrong.push(format!("{name} {version}: {}", ban["reason"].as_str().unwrap()));
            }
        }
    }
    assert!(versions.len() > 50, "only {} packages were found", versions.len());
    // Not an error: several versions cost time to build, nothing else.
    for (name, several) in versions.iter().filter(|v| v.1.len() > 1) {
        println!("several versions of {name}: {}", several.join(", "));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn expressions_are_read() {
    let list = ["MIT", "Unicode-3.0", "Zlib"].map(String::from);
    for (expression, answer) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/GPL-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0 OR Zlib", true),
        ("MIT OR GPL-3.0 AND Zlib", true),
        ("(GPL-3.0 OR MIT) AND (GPL-3.0 OR AGPL-3.0)", false),
        ("MIT WITH some-exception", false),
    ] {
        assert_eq!(allowed(expression, &list), Ok(answer), "{expression}");
    }
    for broken in ["", "MIT OR", "(MIT", "MIT)", "OR MIT", "MIT Zlib"] {
        assert!(allowed(broken, &list).is_err(), "{broken}");
    }
}

#[test]
fn versions_are_compared() {
    assert!(meets("0.25.0", "<0.25.1") && !meets("0.25.1", "<0.25.1") && meets("1.3.0+x", ">=1.2, <1.4") && meets("1.0.0", "=1"));
    assert!(meets("0.9.10", ">0.9.9"));
}
