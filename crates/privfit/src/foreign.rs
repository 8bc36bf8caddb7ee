//! Text from files that others wrote, on its way to a terminal. A name in a model file or a schema must not move the cursor, colour or
//! erase what stands there, or begin a line of its own: a line that says "holds" is ours or it is none.

/// Characters that act on a terminal or turn the order of others around.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text with such characters as `\u001b`, the way JSON spells them; line breaks and tabs stay.
pub fn printable(text: &str) -> String {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// The same on one line.
pub fn one_line(text: &str) -> String {
    escaped(text, |_| false)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match acts(c) && !stays(c) {
            // All of them are in the first plane.
            true => out.push_str(&format!("\\u{:04x}", c as u32)),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        let hostile = "a\u{1b}[2Jb\rc\u{9b}31md\u{202e}e\u{7}\nholds\tf\u{2028}µ";
        let safe = printable(hostile);
        assert_eq!(safe, "a\\u001b[2Jb\\u000dc\\u009b31md\\u202ee\\u0007\nholds\tf\\u2028µ");
        assert!(one_line(hostile).contains("\\u0007\\u000aholds\\u0009f"));
        // What JSON has escaped stays JSON.
        let json = serde_json::json!({ "name": hostile }).to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printable(&json)).unwrap()["name"], hostile);
    }
}
