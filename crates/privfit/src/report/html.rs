//! The HTML around a report: one file, no network, no font but those of the reader, usable without script. Every text that comes from a
//! file goes through [`escape`].

use crate::plot::escape;
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A page in the making: sections one after the other.
#[derive(Default)]
pub(super) struct Page {
    /// HTML of each section.
    bodies: Vec<String>,
    /// Their ids and titles.
    sections: Vec<(&'static str, String)>,
}

impl Page {
    /// A section; the body is HTML.
    pub(super) fn section(&mut self, id: &'static str, title: &str, body: &str) {
        self.bodies.push(format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{}</h2>\n{}\n</section>\n",
            escape(title),
            body.trim_end()
        ));
        self.sections.push((id, title.into()));
    }

    /// The whole file. `head` is HTML that stands at the top. The first section says what matters, so the list of sections follows it.
    pub(super) fn finish(self, title: &str, head: &str) -> String {
        let links: String = self.sections.iter().map(|(id, t)| format!("<li><a href=\"#{id}\">{}</a></li>", escape(t))).collect();
        let first = self.bodies.first().map(String::as_str).unwrap_or_default();
        let rest = self.bodies.get(1..).unwrap_or_default().concat();
        // Nothing is ever loaded, and only these two texts run or style: a script in a name would stay a name even if it came this far.
        let policy = format!(
            "default-src 'none'; img-src data:; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             {}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header>\n{head}\n</header>\n{first}<nav aria-label=\"Sections\"><h2>On this page</h2><ol>{links}</ol></nav>\n{rest}\
             <footer><p>Written by {}. The same file gives the same page; the page loads nothing and sends nothing.</p></footer>\n\
             </main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            super::MARKS[0],
            escape(title),
            escape(&crate::training::program())
        )
    }
}

/// A text's digest as a content security policy names it.
fn digest(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |w, i| w << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= three.len() { letter } else { '=' });
        }
    }
    out
}

/// A paragraph of plain text.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// A list of plain texts.
pub(super) fn list<S: AsRef<str>>(items: &[S]) -> String {
    let items: String = items.iter().map(|i| format!("<li>{}</li>\n", escape(i.as_ref()))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Names with texts beside them.
pub(super) fn pairs<S: AsRef<str>>(pairs: &[(S, String)]) -> String {
    let rows: String =
        pairs.iter().map(|(k, v)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(k.as_ref()), escape(v))).collect();
    format!("<dl>\n{rows}</dl>\n")
}

/// A table of plain texts. Columns that begin with `#` are numbers; `marked` is a row that stands out.
pub(super) fn table(columns: &[&str], rows: &[Vec<String>], marked: Option<usize>) -> String {
    let numeric: Vec<bool> = columns.iter().map(|c| c.starts_with('#')).collect();
    let cell = |tag: &str, i: usize, text: &str| {
        let name = escape(columns[i].trim_start_matches('#'));
        let class = if numeric[i] { " class=\"n\"" } else { "" };
        match tag {
            "th" => format!("<th scope=\"col\"{class}>{}</th>", escape(text)),
            _ => format!("<td{class} data-name=\"{name}\">{}</td>", escape(text)),
        }
    };
    let head: String = columns.iter().enumerate().map(|(i, c)| cell("th", i, c.trim_start_matches('#'))).collect();
    let mut body = String::new();
    for (r, row) in rows.iter().enumerate() {
        let class = if marked == Some(r) { " class=\"here\"" } else { "" };
        let cells: String = row.iter().enumerate().map(|(i, t)| cell("td", i, t)).collect();
        let _ = writeln!(body, "<tr{class}>{cells}</tr>");
    }
    // On a phone each row of a table with much text becomes a card. A table of numbers is no wider than it must be.
    let texts = numeric.iter().filter(|n| !**n).count();
    let wide = match (columns.len(), texts) {
        (_, 0) => " class=\"narrow\"",
        (n, t) if n > 3 || t > 1 => " class=\"wide\"",
        _ => "",
    };
    format!("<div class=\"scroll\"><table{wide}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n")
}

/// The same, folded away.
pub(super) fn folded(summary: &str, inner: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{inner}</details>\n", escape(summary))
}

/// Tiles with a number and what it is.
pub(super) fn tiles(tiles: &[(String, String)]) -> String {
    let all: String = tiles.iter().map(|(n, t)| format!("<div><b>{}</b><span>{}</span></div>\n", escape(n), escape(t))).collect();
    format!("<div class=\"tiles\">\n{all}</div>\n")
}

/// Commands, one in each line.
pub(super) fn commands(lines: &[(&str, &str)]) -> String {
    lines.iter().map(|(what, line)| format!("<p class=\"what\">{}</p>\n<pre>{}</pre>\n", escape(what), escape(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let text = escape("<script>alert(1)</script>\"'&\u{202e}x\u{1b}[2J\n");
        assert_eq!(text, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\u{fffd}x [2J ");
    }

    #[test]
    fn digests_are_as_browsers_want_them() {
        assert_eq!(digest(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!([base64(b"a"), base64(b"ab"), base64(b"abc")], ["YQ==", "YWI=", "YWJj"]);
    }

    #[test]
    fn script_and_style_are_small_and_ask_for_nothing() {
        assert!(SCRIPT.len() < 3000, "{}", SCRIPT.len());
        for bad in ["http", "url(", "@import", "fetch", "</"] {
            assert!(!SCRIPT.contains(bad) && !STYLE.contains(bad), "{bad}");
        }
    }
}
