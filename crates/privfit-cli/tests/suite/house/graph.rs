//! Which modules of a crate need which, from the sources alone: comments, texts and tests are left out, `use` trees are unfolded, and paths
//! that begin with `crate`, `super` or `self` are followed to the file that they lead to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Module = Vec<String>;

/// Siblings that need each other: for each parent, who needs whom.
pub(crate) type Graph = BTreeMap<Module, BTreeMap<String, BTreeSet<String>>>;

/// All Rust files below a directory, with the module that each one is.
pub(crate) fn files(root: &Path) -> BTreeMap<Module, String> {
    let mut out = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let inner = path.strip_prefix(root).unwrap().with_extension("");
                let mut module: Module = inner.iter().map(|p| p.to_string_lossy().into_owned()).collect();
                if module.last().is_some_and(|m| matches!(m.as_str(), "mod" | "lib" | "main")) {
                    module.pop();
                }
                out.insert(module, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    out
}

/// The source without comments. Texts that are no single word are empty, so that code in them is not read as code.
pub(crate) fn bare(source: &str) -> String {
    let text = |inside: &[char]| -> String {
        let word = inside.iter().all(|c| c.is_ascii_alphanumeric() || "-_".contains(*c));
        if word { inside.iter().collect() } else { String::new() }
    };
    let characters: Vec<char> = source.chars().collect();
    let (mut out, mut i) = (String::new(), 0);
    while i < characters.len() {
        let next = characters.get(i + 1);
        match characters[i] {
            '/' if next == Some(&'/') => {
                while i < characters.len() && characters[i] != '\n' {
                    i += 1;
                }
            }
            'r' if matches!(next, Some('"' | '#')) && !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                let hashes = characters[i + 1..].iter().take_while(|c| **c == '#').count();
                if characters.get(i + 1 + hashes) != Some(&'"') {
                    out.push('r');
                    i += 1;
                    continue;
                }
                i += 2 + hashes;
                let closes = |at: usize| characters[at] == '"' && (1..=hashes).all(|k| characters.get(at + k) == Some(&'#'));
                let start = i;
                while i < characters.len() && !closes(i) {
                    i += 1;
                }
                out.push_str(&format!("\"{}\"", text(&characters[start..i])));
                i += 1 + hashes;
            }
            '"' => {
                i += 1;
                let start = i;
                while i < characters.len() && characters[i] != '"' {
                    i += if characters[i] == '\\' { 2 } else { 1 };
                }
                out.push_str(&format!("\"{}\"", text(&characters[start..i.min(characters.len())])));
                i += 1;
            }
            // A quote as a character would open a text.
            '\'' if next == Some(&'"') => i += 3,
            '\'' if next == Some(&'\\') => {
                i += 3;
                while i < characters.len() && characters[i - 1] != '\'' {
                    i += 1;
                }
            }
            c => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

/// Without modules that only tests have.
pub(crate) fn without_tests(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let after = &rest[at..];
        // To the end of the item: a semicolon, or the brace that closes it.
        let end = after.find([';', '{']).unwrap_or(after.len() - 1);
        let length = if after[end..].starts_with('{') {
            let mut depth = 0;
            let closing = after[end..].char_indices().find(|(_, c)| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                depth == 0
            });
            end + closing.map_or(after.len() - end, |c| c.0 + 1)
        } else {
            end + 1
        };
        rest = &after[length..];
    }
    out + rest
}

/// Modules that are declared for tests alone.
fn test_modules(module: &Module, source: &str) -> Vec<Module> {
    let mut out = Vec::new();
    for part in source.split("#[cfg(test)]").skip(1) {
        let item = part.split([';', '{']).next().unwrap_or_default();
        if let Some(name) = item.split("mod ").nth(1) {
            out.push([module.clone(), vec![name.trim().to_string()]].concat());
        }
    }
    out
}

/// The paths of a `use` tree.
fn unfold(tree: &str, before: &str, out: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(brace) = tree.find('{') else {
        out.push(format!("{before}{}", tree.split(" as ").next().unwrap_or_default().trim()));
        return;
    };
    let head = format!("{before}{}", &tree[..brace]);
    let inner = &tree[brace + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                unfold(&inner[start..at], &head, out);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        unfold(&inner[start..], &head, out);
    }
}

fn paths(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = String::new();
    for (i, part) in source.split("use ").enumerate() {
        let starts = i > 0 && (rest.is_empty() || rest.ends_with(|c: char| c.is_whitespace() || c == ')'));
        if !starts {
            if i > 0 {
                rest.push_str("use ");
            }
            rest.push_str(part);
            continue;
        }
        let end = part.find(';').unwrap_or(part.len());
        unfold(&part[..end].split_whitespace().collect::<Vec<_>>().join(" "), "", &mut out);
        rest.push_str(part.get(end..).unwrap_or_default());
    }
    // Paths inside of the code.
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in rest.match_indices(start) {
            if rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = rest[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).map_or(rest.len(), |e| at + e);
            out.push(rest[at..end].to_string());
        }
    }
    out
}

/// Who needs whom among siblings, at every level of a crate.
pub(crate) fn graph(root: &Path) -> Graph {
    let sources: BTreeMap<Module, String> = files(root).into_iter().map(|(m, s)| (m, bare(&s))).collect();
    let tests: Vec<Module> = sources.iter().flat_map(|(m, s)| test_modules(m, s)).collect();
    let is_test = |m: &Module| tests.iter().any(|t| m.starts_with(t));
    let mut out = Graph::new();
    for (module, source) in sources.iter().filter(|(m, _)| !is_test(m)) {
        for path in paths(&without_tests(source)) {
            let mut parts: Vec<String> = path.split("::").map(|p| p.trim().to_string()).collect();
            let mut target = match parts[0].as_str() {
                "crate" => Vec::new(),
                "super" => module.clone(),
                "self" => module.clone(),
                _ if sources.contains_key(&[module.clone(), vec![parts[0].clone()]].concat()) => {
                    parts.insert(0, "self".into());
                    module.clone()
                }
                _ => continue,
            };
            while parts.first().is_some_and(|p| p == "super") {
                target.pop();
                parts.remove(0);
            }
            if parts.first().is_some_and(|p| matches!(p.as_str(), "crate" | "self")) {
                parts.remove(0);
            }
            target.extend(parts);
            while !sources.contains_key(&target) && !target.is_empty() {
                target.pop();
            }
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if common < module.len() && common < target.len() && !is_test(&target) {
                let siblings = out.entry(module[..common].to_vec()).or_default();
                siblings.entry(module[common].clone()).or_default().insert(target[common].clone());
            }
        }
    }
    out
}

/// One circle among siblings, if there is one.
pub(crate) fn circle(needs: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        at: &str,
        needs: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|m| m == at) {
            return Some(way[start..].to_vec());
        }
        if !done.insert(at.to_string()) {
            return None;
        }
        way.push(at.to_string());
        for next in needs.get(at).into_iter().flatten() {
            if let Some(found) = walk(next, needs, way, done) {
                return Some(found);
            }
        }
        way.pop();
        None
    }
    let mut done = BTreeSet::new();
    needs.keys().find_map(|m| walk(m, needs, &mut Vec::new(), &mut done))
}
