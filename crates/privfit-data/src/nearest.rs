//! The known word that a misspelt one is closest to, for messages.

/// The closest of the known words, if it is close enough to be meant: at most a third of the letters differ. Letter case, hyphens,
/// underscores and spaces do not count.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |t: &str| t.to_lowercase().chars().filter(|c| !"-_ ".contains(*c)).collect::<Vec<char>>();
    let word = plain(word);
    let close = known.into_iter().map(|k| (distance(&word, &plain(k)), k)).min_by_key(|c| c.0)?;
    (close.0 <= 1.max(word.len() / 3) && !word.is_empty()).then_some(close.1)
}

/// `did you mean "x"? `, or nothing.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |k| format!("did you mean {k:?}? "))
}

/// Letters to insert, remove, change or swap with the next.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    (0..=b.len()).for_each(|j| rows[0][j] = j);
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_found_and_far_ones_are_not() {
        let known = ["epsilon", "delta", "noisy-gd", "noisy-sgd"];
        assert_eq!(nearest("epslion", known), Some("epsilon"));
        assert_eq!(nearest("Noisy GD", known), Some("noisy-gd"));
        assert_eq!(nearest("dleta", known), Some("delta"));
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest("banana", known), None);
    }
}
