//! What values of epsilon mean by themselves: arithmetic, no opinion and no example that somebody would have to believe.

use serde::Serialize;

/// A value of epsilon and what follows from it, at delta 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Meaning {
    /// Epsilon.
    pub epsilon: f64,
    /// In words.
    pub words: &'static str,
}

/// From next to nothing to next to no protection.
pub(crate) const MEANINGS: [Meaning; 7] = [
    Meaning { epsilon: 0.1, words: "a guess is hardly better than random guessing" },
    Meaning { epsilon: 0.5, words: "a hint, and never much more" },
    Meaning { epsilon: 1.0, words: "a suspicion; nobody can be sure" },
    Meaning { epsilon: 2.0, words: "a well-informed attacker may hold a strong suspicion" },
    Meaning { epsilon: 4.0, words: "in the worst case nearly sure; most real attackers know less" },
    Meaning { epsilon: 8.0, words: "the worst case is no longer ruled out by the number alone" },
    Meaning { epsilon: 12.0, words: "the number alone promises next to nothing" },
];

impl Meaning {
    /// Largest factor by which odds change.
    pub(super) fn odds(&self) -> f64 {
        self.epsilon.exp()
    }

    /// What somebody who held something for as likely as not can believe afterwards, at most.
    pub(super) fn belief(&self) -> f64 {
        1.0 / (1.0 + (-self.epsilon).exp())
    }

    /// Share of people who are found at one false alarm in a hundred, at most.
    pub(super) fn found(&self) -> f64 {
        let (x, e) = (crate::certificate::ATTACK_RATE, self.epsilon);
        (e.exp() * x).min(1.0 - (-e).exp() * (1.0 - x))
    }

    /// The value of the list that an epsilon is nearest to, on a scale of ratios.
    pub(super) fn nearest(epsilon: f64) -> usize {
        let far = |m: &Meaning| (m.epsilon / epsilon.max(1e-9)).ln().abs();
        (0..MEANINGS.len()).min_by(|a, b| far(&MEANINGS[*a]).total_cmp(&far(&MEANINGS[*b]))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_from_epsilon() {
        let one = MEANINGS[2];
        assert!((one.belief() - 0.731_058_6).abs() < 1e-6 && (one.found() - 0.027_182_8).abs() < 1e-6);
        assert!(MEANINGS.iter().all(|m| m.found() <= 1.0 && m.belief() < 1.0 && m.odds() > 1.0));
        assert_eq!([Meaning::nearest(0.9), Meaning::nearest(100.0), Meaning::nearest(0.0)], [2, 6, 0]);
    }
}
