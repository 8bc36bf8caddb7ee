//! The safe side of arithmetic. What is not a number, and what overflowed, never becomes a small answer.
//!
//! `f64::max` and `f64::min` drop a NaN without a word: `NaN.max(0.0)` is 0, which reads as perfect privacy. So no accountant calls them to
//! bring a result into its range; it calls one of these, which say which side is safe. A test at the end of this file reads the sources
//! of all accountants and finds whoever does not.

/// An upper bound on a probability, brought into [0, 1]; what is not a number is 1.
pub(crate) fn probability_at_most(x: f64) -> f64 {
    if x <= 0.0 {
        0.0
    } else if x < 1.0 {
        x
    } else {
        1.0
    }
}

/// A lower bound on a probability, brought into [0, 1]; what is not a number is 0.
pub(crate) fn probability_at_least(x: f64) -> f64 {
    if x >= 1.0 {
        1.0
    } else if x > 0.0 {
        x
    } else {
        0.0
    }
}

/// An upper bound on a loss, a distance or a divergence, at least 0; what is not a number is infinite.
pub(crate) fn at_most(x: f64) -> f64 {
    if x <= 0.0 {
        0.0
    } else if x.is_nan() {
        f64::INFINITY
    } else {
        x
    }
}

/// A lower bound on a loss, at least 0; what is not a number is 0.
pub(crate) fn at_least(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

/// 0 in the place of a negative number that rounding made; what is not a number stays, and is seen where masses are added up.
pub(crate) fn not_negative(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

/// The larger of two upper bounds; what is not a number is infinite.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::INFINITY
    } else if a > b {
        a
    } else {
        b
    }
}

/// The smaller of two upper bounds; what is not a number proves nothing.
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::INFINITY,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

/// The largest of several upper bounds, at least 0; what is not a number is infinite.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_on_the_safe_side() {
        assert_eq!([probability_at_most(f64::NAN), probability_at_most(-1.0), probability_at_most(2.0)], [1.0, 0.0, 1.0]);
        assert_eq!([probability_at_least(f64::NAN), probability_at_least(-1.0), probability_at_least(2.0)], [0.0, 0.0, 1.0]);
        assert_eq!([at_most(f64::NAN), at_most(-1.0), at_most(3.0)], [f64::INFINITY, 0.0, 3.0]);
        assert_eq!([at_least(f64::NAN), at_least(-1.0), at_least(3.0)], [0.0, 0.0, 3.0]);
        assert_eq!([larger(f64::NAN, 1.0), larger(2.0, 1.0), larger(1.0, f64::NAN)], [f64::INFINITY, 2.0, f64::INFINITY]);
        assert_eq!([smaller(f64::NAN, 1.0), smaller(2.0, 1.0), smaller(f64::NAN, f64::NAN)], [1.0, 1.0, f64::INFINITY]);
        assert_eq!(largest([0.5, f64::NAN, 2.0].into_iter()), f64::INFINITY);
    }

    /// No accountant brings a result into its range by a function that drops a NaN.
    #[test]
    fn accountants_clamp_by_these_functions_only() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() > 20, "{files:?}");
        // The tests, and this file, which names what is forbidden.
        for file in files.iter().filter(|f| !f.ends_with("tests.rs") && !f.ends_with("checked.rs")) {
            let (name, text) = (file.display(), std::fs::read_to_string(file).unwrap());
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            for (number, line) in code.lines().enumerate() {
                for forbidden in [".max(0.0)", ".min(1.0)", "f64::max)", "f64::min)", ".clamp(0.0, 1.0)"] {
                    assert!(!line.contains(forbidden), "{name}:{}: {forbidden} drops a NaN: {line}", number + 1);
                }
            }
        }
    }
}
