//! Small plots of text.

const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Two histograms over one axis, a line each. What lies far out is drawn at the edge.
pub(crate) fn histograms(a: &[f64], b: &[f64], width: usize) -> [String; 2] {
    let mut all: Vec<f64> = a.iter().chain(b).copied().filter(|x| x.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all.get((share * all.len() as f64) as usize).or(all.last()).copied().unwrap_or(0.0);
    let (low, high) = (at(0.002), at(0.998));
    let step = ((high - low) / width as f64).max(f64::MIN_POSITIVE);
    [a, b].map(|sample| {
        let mut counts = vec![0usize; width];
        for x in sample.iter().filter(|x| x.is_finite()) {
            let place = ((x - low) / step).clamp(0.0, (width - 1) as f64) as usize;
            counts[place] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        counts.iter().map(|c| LEVELS[(c * 8).div_ceil(most)]).collect()
    })
}

/// A bar from 0 to 1, which what is longer leaves.
pub(crate) fn bar(part: f64, width: usize) -> String {
    let filled = ((part.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    let end = if part > 1.0 + 1e-9 { '>' } else { '|' };
    format!("{}{}{end}", "#".repeat(filled), ".".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_have_their_width() {
        let [a, b] = histograms(&[0.0, 0.1, 5.0], &[1.0, f64::NAN], 20);
        assert_eq!((a.chars().count(), b.chars().count()), (20, 20));
        assert!(a.starts_with('█') && b.contains('█'));
        assert_eq!(bar(0.5, 4), "##..|");
        assert_eq!(bar(7.0, 4), "####>");
        assert_eq!(histograms(&[], &[], 5), ["     ", "     "]);
    }
}
