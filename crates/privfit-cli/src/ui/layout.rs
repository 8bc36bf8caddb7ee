//! Text that fits the terminal: wrapped paragraphs and tables.

use crate::ui::style::Paint;

/// Columns of the terminal; 100 where there is none.
pub(crate) fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|c| c.parse::<usize>().ok());
    let found = terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
    found.or(told).unwrap_or(100).clamp(40, 400)
}

/// Lines of at most so many letters; a longer word is cut, after a hyphen if it has one.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while word.len() > width {
            let at = word[..width].iter().rposition(|c| *c == '-').map_or(width, |at| at + 1);
            let rest = word.split_off(at);
            if let Some(line) = lines.last_mut() {
                line.extend(&word);
            }
            lines.push(String::new());
            word = rest;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.extend(&word);
            used += word.len();
        }
    }
    lines
}

/// A paragraph with every line but the first moved to the right.
pub(crate) fn paragraph(first: &str, text: &str, width: usize) -> String {
    let indent = first.chars().count();
    let lines = wrap(text, width.saturating_sub(indent).max(20));
    format!("{first}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
}

/// A table with wrapped cells. The first column keeps its width where it can, the others share what is left.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>], width: usize, paint: Paint) -> Vec<String> {
    const GAP: usize = 2;
    let size = |c: usize| rows.iter().map(|r| r[c].chars().count()).chain([heads[c].chars().count()]).max().unwrap_or(0);
    let mut natural: Vec<usize> = (0..heads.len()).map(size).collect();
    let room = width.saturating_sub(GAP * (heads.len() - 1));
    let longest_head = heads.iter().map(|h| h.chars().count()).max().unwrap_or(1);
    let others: usize = natural[1..].iter().map(|n| *n.min(&longest_head.max(8))).sum();
    natural[0] = natural[0].min(room.saturating_sub(others).max(8));
    // The largest cap on a column that lets all of them fit.
    let fits = |cap: usize| natural[0] + natural[1..].iter().map(|n| n.min(&cap)).sum::<usize>() <= room;
    let cap = (longest_head.max(8)..=room).rev().find(|c| fits(*c)).unwrap_or(longest_head.max(8));
    let sizes: Vec<usize> = natural.iter().enumerate().map(|(c, n)| if c == 0 { *n } else { *n.min(&cap) }).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&sizes).map(|(t, s)| format!("{t}{}", " ".repeat(s.saturating_sub(t.chars().count()))));
        padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_string()
    };
    let heads: Vec<String> = heads.iter().map(|h| h.to_string()).collect();
    let mut out = vec![paint.bold(&line(&heads))];
    let wrapped = sizes.iter().skip(1).zip(&natural[1..]).any(|(s, n)| s < n);
    for (i, row) in rows.iter().enumerate() {
        let cells: Vec<Vec<String>> = row.iter().zip(&sizes).map(|(t, s)| wrap(t, *s)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        if wrapped && i > 0 {
            out.push(String::new());
        }
        for at in 0..height {
            let texts: Vec<String> = cells.iter().map(|c| c.get(at).cloned().unwrap_or_default()).collect();
            out.push(line(&texts));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh x", 3), ["abc", "def", "gh", "x"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(paragraph("a  ", "one two three four five six", 20), "a  one two three four\n   five six");
    }

    #[test]
    fn tables_fit_their_width() {
        let rows = vec![vec!["name".to_string(), "word ".repeat(40), "a few words".into()]];
        for width in [40, 60, 100, 300] {
            let lines = table(&["n", "long", "short"], &rows, width, Paint::out());
            assert!(lines.iter().all(|l| l.chars().count() <= width), "{lines:?}");
            assert_eq!(lines.join(" ").matches("word").count(), 41);
        }
    }
}
