//! Documents that run: fenced blocks of a page are commands, files and expected output. Shared by the tests of guide and gallery.
//!
//! ```sh               run by `bash -eu`, in one directory for the whole page; `sh exit=1` expects that exit code
//! ```text             what the block before prints, both streams together
//! ```toml file=NAME   a file to write (any language that names a file)
//! ```python           run by the interpreter that PRIVFIT_PYTHON names; without it left out
//!
//! In expected output `...` inside of a line matches anything within it, `{0.8..0.9}` a number in that range, and a line of `...` any lines.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A fenced block of a page.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    /// Line of its fence, from 1 on.
    pub(crate) line: usize,
    /// First word behind the fence.
    pub(crate) language: String,
    /// `key=value` words behind it.
    pub(crate) options: Vec<(String, String)>,
    /// What is between the fences.
    pub(crate) text: String,
}

impl Block {
    fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|o| o.0 == key).map(|o| o.1.as_str())
    }
}

/// All fenced blocks, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => out.extend(open.take()),
            (Some(words), None) => {
                let mut words = words.split_whitespace();
                let language = words.next().unwrap_or_default().to_string();
                let options = words.filter_map(|w| w.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect();
                open = Some(Block { line: number + 1, language, options, text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    out
}

/// Whether one line fits a pattern in which `...` stands for anything and `{low..high}` for a number between the two.
fn line_fits(pattern: &str, line: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix("...") {
        return line.char_indices().map(|c| c.0).chain([line.len()]).any(|at| line_fits(rest, &line[at..]));
    }
    if let Some((low, high, rest)) = range(pattern) {
        let end = line.find(|c: char| !c.is_ascii_digit() && !"+-.e".contains(c)).unwrap_or(line.len());
        let number = line[..end].parse::<f64>();
        return number.is_ok_and(|x| low <= x && x <= high) && line_fits(rest, &line[end..]);
    }
    let (mut pattern, mut line) = (pattern.chars(), line.chars());
    match (pattern.next(), line.next()) {
        (None, None) => true,
        (Some(a), Some(b)) if a == b => line_fits(pattern.as_str(), line.as_str()),
        _ => false,
    }
}

/// Ends of the range that a pattern begins with, and what comes after it.
fn range(pattern: &str) -> Option<(f64, f64, &str)> {
    let (inside, rest) = pattern.strip_prefix('{')?.split_once('}')?;
    let (low, high) = inside.split_once("..")?;
    Some((low.parse().ok()?, high.parse().ok()?, rest))
}

/// Lines of a text without trailing spaces and empty lines at the end.
fn lines(text: &str) -> Vec<&str> {
    let mut out: Vec<&str> = text.lines().map(str::trim_end).collect();
    while out.last().is_some_and(|l| l.is_empty()) {
        out.pop();
    }
    out
}

/// Nothing if the output fits, otherwise the first line of the pattern that nothing fits.
pub(crate) fn mismatch(pattern: &str, output: &str) -> Option<String> {
    let (pattern, output) = (lines(pattern), lines(output));
    // `sensitivity[j]`: whether the pattern so far can end before line j of the output.
    let mut sensitivity = vec![false; output.len() + 1];
    sensitivity[0] = true;
    for wanted in &pattern {
        let mut next = vec![false; output.len() + 1];
        if wanted.trim() == "..." {
            let from = sensitivity.iter().position(|r| *r).unwrap_or(sensitivity.len());
            next[from..].iter_mut().for_each(|n| *n = true);
        } else {
            for (j, line) in output.iter().enumerate() {
                next[j + 1] = sensitivity[j] && line_fits(wanted, line);
            }
        }
        if !next.contains(&true) {
            return Some(format!("no line fits: {wanted}"));
        }
        sensitivity = next;
    }
    match sensitivity[output.len()] {
        true => None,
        false => Some("there are more lines than expected".into()),
    }
}

/// A directory that is removed at the end.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("privfit-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) use crate::harness::top;

/// Copies files and folders, without what earlier runs left behind in a folder `made`.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.ends_with("made") {
            continue;
        }
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

/// Runs a program with `privfit` on the path; exit code and both streams as they come.
pub(crate) fn run(program: &str, arguments: &[&str], place: &Path) -> (i32, String) {
    let binary = Path::new(env!("CARGO_BIN_EXE_privfit")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::join_paths(std::iter::once(binary.to_path_buf()).chain(std::env::split_paths(&path))).unwrap();
    // One pipe for both streams keeps their order.
    let output = Command::new("bash")
        .args(["-c", "exec \"$@\" 2>&1 </dev/null", "bash", program])
        .args(arguments)
        .current_dir(place)
        .env("PATH", paths)
        .env("LC_ALL", "C")
        // Nothing of a test is remembered of ledgers.
        .env("XDG_STATE_HOME", "/dev/null")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a page from top to bottom in a directory, and lists everything that was not as the page says.
pub(crate) fn run_page(name: &str, page: &str, place: &Path) -> Vec<String> {
    let python = std::env::var("PRIVFIT_PYTHON").ok();
    let all = blocks(page);
    let mut wrong = Vec::new();
    for (index, block) in all.iter().enumerate() {
        let outcome = match (block.option("file"), block.language.as_str(), &python) {
            (Some(file), _, _) => {
                std::fs::write(place.join(file), &block.text).unwrap();
                continue;
            }
            (None, "sh", _) => run("bash", &["-euo", "pipefail", "-c", &block.text], place),
            (None, "python", Some(python)) => run(python, &["-c", &block.text], place),
            _ => continue,
        };
        let (code, output) = outcome;
        let wanted: i32 = block.option("exit").map_or(0, |c| c.parse().unwrap());
        let problem = match all.get(index + 1).filter(|b| b.language == "text" && b.option("file").is_none()) {
            _ if code != wanted => Some(format!("exit code {code}, not {wanted}")),
            Some(expected) => mismatch(&expected.text, &output),
            None => None,
        };
        if let Some(problem) = problem {
            wrong.push(format!("{name}, line {}: {problem}\n--- block\n{}--- output\n{output}", block.line, block.text));
        }
    }
    wrong
}

#[test]
fn patterns_fit_what_they_should() {
    assert!(line_fits("a ... c", "a bb c") && line_fits("...", "") && line_fits("x...", "x") && line_fits("...y...", "xyz"));
    assert!(line_fits("r2 {0.8..0.9} of {-1..1e3}", "r2 0.85 of 20") && line_fits("{\"a\"}", "{\"a\"}"));
    assert!(!line_fits("r2 {0.8..0.9}", "r2 0.91") && !line_fits("r2 {0.8..0.9}", "r2 x"));
    assert!(!line_fits("a ... c", "a bb d") && !line_fits("x", "xy") && !line_fits("a...a", "a"));
    assert_eq!(mismatch("one\n...\nfour\n", "one\ntwo\nthree\nfour\n\n"), None);
    assert_eq!(mismatch("one\n...\n", "one\n"), None);
    assert_eq!(mismatch("...\nb\n...\nb\n", "a\nb\nb\n"), None);
    assert!(mismatch("one\n", "one\ntwo\n").is_some());
    assert!(mismatch("one\ntwo\n", "one\n").is_some());
    assert!(mismatch("", "one\n").is_some());
}

#[test]
fn blocks_have_language_options_and_line() {
    let page = "# A\n```sh exit=1\nfalse\n```\ntext\n```toml file=a.toml\nx = 1\n```\n";
    let found = blocks(page);
    assert_eq!((found[0].line, found[0].language.as_str(), found[0].option("exit")), (2, "sh", Some("1")));
    assert_eq!((found[1].option("file"), found[1].text.as_str()), (Some("a.toml"), "x = 1\n"));
}

#[test]
fn a_page_that_lies_is_caught() {
    let place = Place::new("lies");
    let page = "```sh\necho one\n```\n```text\ntwo\n```\n```sh\nfalse\n```\n```sh exit=3\nexit 3\n```\n";
    let wrong = run_page("page", page, &place.0);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("line 1") && wrong[1].contains("exit code 1, not 0"));
}
