//! Colour, on a terminal and nowhere else: never with NO_COLOR, on a dumb terminal, or beside JSON.

use std::io::IsTerminal;

/// The end of bold, dim and red.
const RESET: &str = "\x1b[0m";

/// Every code that we write.
const OURS: [&str; 4] = ["\x1b[1m", "\x1b[2m", "\x1b[1;31m", RESET];

/// Whether an output takes colour.
#[derive(Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For standard output.
    pub(crate) fn out() -> Paint {
        Paint(allowed() && std::io::stdout().is_terminal())
    }

    /// For standard error.
    pub(crate) fn err() -> Paint {
        Paint(allowed() && std::io::stderr().is_terminal())
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What can be left unread.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// What may be printed of a line: names from files that others wrote may be in it, and only our own bold, dim and red act on a terminal.
    pub(crate) fn safe(self, line: &str) -> String {
        let mut out = privfit::foreign::printable(line);
        if self.0 && line.contains('\x1b') {
            for code in OURS {
                out = out.replace(&privfit::foreign::printable(code), code);
            }
            // Whatever was begun ends with the line.
            out.push_str(RESET);
        }
        out
    }

    /// A line of talk: what is wrong in red, what is by the way dim.
    pub(crate) fn line(self, line: &str) -> String {
        match line.split_once("error: ") {
            Some(("", rest)) => format!("{}: {rest}", self.with("1;31", "error")),
            _ if line.starts_with("note: ") => self.dim(line),
            _ => line.into(),
        }
    }
}

/// Whether anybody may see colour at all.
pub(crate) fn allowed() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    let arguments: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    let json =
        arguments.iter().any(|a| a == "--format=json") || arguments.windows(2).any(|w| w[0] == "--format" && w[1] == "json");
    !set("NO_COLOR") && !dumb && !json
}

/// A path as a shell takes it: in quotes where it needs them, so that a printed command can be pasted.
pub(crate) fn shell(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-./=+:,@%".contains(c));
    // What begins with a hyphen would be a flag.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_codes_do_not_act() {
        let hostile = "a\x1b[2Jb\x1b[8mc\r\x1b[1md";
        assert_eq!(Paint(false).safe(hostile), "a\\u001b[2Jb\\u001b[8mc\\u000d\\u001b[1md");
        assert_eq!(Paint(true).safe(hostile), "a\\u001b[2Jb\\u001b[8mc\\u000d\x1b[1md\x1b[0m");
        assert_eq!(Paint(true).safe(&Paint(true).bold("x")), "\x1b[1mx\x1b[0m\x1b[0m");
    }

    #[test]
    fn printed_paths_are_read_by_a_shell_as_they_are() {
        for name in ["m.json", "my model.json", "it's $HOME; \"x\" `y`.json", "größe.json", "a\\b", "*"] {
            let line = format!("printf %s {}", shell(std::path::Path::new(name)));
            let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout), name, "{line}");
        }
        assert_eq!(shell(std::path::Path::new("-x")), "./-x");
    }

    #[test]
    fn only_what_is_meant_is_coloured() {
        let on = Paint(true);
        assert_eq!(on.line("error: no"), "\x1b[1;31merror\x1b[0m: no");
        assert_eq!(on.line("note: by the way"), "\x1b[2mnote: by the way\x1b[0m");
        assert_eq!(on.line("an error: here"), "an error: here");
        assert_eq!(Paint(false).line("error: no"), "error: no");
    }
}
