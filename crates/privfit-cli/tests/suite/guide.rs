//! Every command of README and GUIDE is run, and prints what the page says.

use crate::documents::{Place, blocks, copy, run, run_page, top};

fn check(name: &str) {
    let page = std::fs::read_to_string(top().join(name)).unwrap();
    assert!(blocks(&page).iter().filter(|b| b.language == "sh").count() > 2, "{name} has no commands");
    let place = Place::new(name);
    copy(&top().join("examples"), &place.0.join("examples"));
    let wrong = run_page(name, &page, &place.0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_readme_runs() {
    check("README.md");
}

#[test]
fn the_guide_runs() {
    check("GUIDE.md");
}

/// Links between pages of the repository lead somewhere, with the heading that they name.
#[test]
fn links_lead_somewhere() {
    let mut pages: Vec<std::path::PathBuf> =
        ["README.md", "GUIDE.md", "SECURITY.md", "PITFALLS.md", "CONTRIBUTING.md"].iter().map(|p| top().join(p)).collect();
    let mut folders = vec![top().join("docs"), top().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    let mut wrong = Vec::new();
    for page in pages {
        let text = prose(&std::fs::read_to_string(&page).unwrap());
        for part in text.split("](").skip(1) {
            let Some((target, _)) = part.split_once(')') else { continue };
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let found = match (path.exists(), heading) {
                (exists, "") => exists,
                (false, _) => false,
                (true, heading) => anchors(&std::fs::read_to_string(&path).unwrap()).iter().any(|a| a == heading),
            };
            if !found {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

/// A page without its code: brackets in there are no links.
fn prose(page: &str) -> String {
    let mut fenced = false;
    let mut out = String::new();
    for line in page.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fenced && !fence && !line.starts_with("    ") {
            out.extend(line.split('`').step_by(2));
            out.push('\n');
        }
    }
    out
}

/// Names under which headings of a page are found.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|l| l.starts_with('#')).map(|l| l.trim_start_matches('#').trim().to_lowercase());
    let keep = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    };
    headings.map(|h| h.chars().filter_map(keep).collect()).collect()
}

/// The few lines of Python that check the digest of a model file, as `docs/certificate.md` prints them.
#[test]
fn the_digest_is_checked_by_five_lines_of_python() {
    let page = std::fs::read_to_string(top().join("docs/certificate.md")).unwrap();
    let script = blocks(&page).into_iter().find(|b| b.language == "python").unwrap().text;
    let place = Place::new("digest");
    copy(&top().join("examples/adult"), &place.0);
    assert_eq!(run("privfit", &["fit", "job.toml"], &place.0).0, 0);
    let (code, output) = run("python3", &["-c", &script, "model.json"], &place.0);
    assert_eq!((code, output.as_str()), (0, "unchanged\n"));
    let model = place.0.join("model.json");
    let mut bytes = std::fs::read(&model).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&model, bytes).unwrap();
    assert_eq!(run("python3", &["-c", &script, "model.json"], &place.0).1, "changed\n");
}
