//! Axes: where a number stands, which ticks it gets, and how they are written.

/// How numbers of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// As they are.
    Plain,
    /// Shares, in per cent.
    Percent,
    /// Powers of ten, on a logarithmic axis.
    Power,
    /// As they are, on a logarithmic axis.
    Logarithmic,
    /// Whole numbers.
    Count,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How its numbers are written.
    pub unit: Unit,
    /// Where its ticks are; at round numbers if empty.
    pub given: Vec<f64>,
}

impl Axis {
    /// Logarithmic, around these numbers, which are its ticks as long as they are few and have room for their text; those that are not positive are left out.
    pub fn logarithmic(label: &str, numbers: &[f64]) -> Axis {
        let mut given: Vec<f64> = numbers.iter().copied().filter(|x| *x > 0.0 && x.is_finite()).collect();
        given.sort_by(f64::total_cmp);
        given.dedup();
        let (low, high) = (given.first().copied().unwrap_or(0.1), given.last().copied().unwrap_or(10.0));
        let around = (high / low).powf(0.05).max(1.05);
        if given.len() > 12 {
            given.clear();
        }
        // A tick's text takes about a twelfth of the width.
        let (room, mut last) = ((high / low).powf(1.0 / 12.0), 0.0);
        given.retain(|x| {
            let kept = *x >= last * room;
            last = if kept { *x } else { last };
            kept
        });
        Axis { label: label.into(), low: low / around, high: high * around, unit: Unit::Logarithmic, given }
    }

    /// From 0 to at least this, ending at a tick.
    pub fn from_zero(label: &str, high: f64, unit: Unit) -> Axis {
        let step = step(high.max(1e-12), 6);
        let high = (high / step - 1e-9).ceil().max(1.0) * step;
        Axis { label: label.into(), low: 0.0, high, unit, given: Vec::new() }
    }

    /// Around these numbers, ending at ticks.
    pub fn around(label: &str, low: f64, high: f64, unit: Unit) -> Axis {
        let width = (high - low).max(high.abs() * 0.02).max(1e-9);
        let step = step(width * 1.2, 5);
        let low = ((low - 0.08 * width) / step).floor() * step;
        let high = ((high + 0.08 * width) / step).ceil() * step;
        Axis { label: label.into(), low, high, unit, given: Vec::new() }
    }

    /// Place of a number between 0 and 1; beyond that it is clamped.
    pub fn place(&self, x: f64) -> f64 {
        let t = match self.unit {
            Unit::Power | Unit::Logarithmic => (x.max(1e-300).ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            _ => (x - self.low) / (self.high - self.low),
        };
        t.max(0.0).min(1.0)
    }

    /// Ticks, at most about so many.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        if !self.given.is_empty() {
            return self.given.clone();
        }
        if self.unit == Unit::Logarithmic {
            let powers = self.low.log10().ceil() as i32..=self.high.log10().floor() as i32;
            return powers.map(|p| 10f64.powi(p)).collect();
        }
        if self.unit == Unit::Power {
            let (a, b) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let every = ((b - a) as usize).div_ceil(most.max(1)).max(1);
            return (a..=b).filter(|p| ((b - p) as usize).is_multiple_of(every)).map(|p| 10f64.powi(p)).collect();
        }
        let mut step = step(self.high - self.low, most);
        if self.unit == Unit::Count {
            step = step.max(1.0);
        }
        let (first, last) = ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        (first..=last).map(|i| i as f64 * step).collect()
    }

    /// A tick in few characters.
    pub(crate) fn tick(&self, x: f64) -> String {
        match self.unit {
            Unit::Percent => format!("{} %", short(100.0 * x)),
            Unit::Power => format!("1e{}", x.log10().round() as i32),
            _ => short(x),
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that makes at most about so many ticks.
fn step(width: f64, most: usize) -> f64 {
    let rough = (width / most.max(1) as f64).max(1e-12);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999).unwrap_or(10.0 * power)
}

/// A number in few digits.
pub(crate) fn short(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e6).contains(&x.abs()) {
        return format!("{x:.0e}");
    }
    let digits = (3 - x.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A delta in words that are short.
pub(crate) fn delta(delta: f64) -> String {
    if delta == 0.0 { "0".into() } else { format!("{delta:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for high in [0.013, 0.9, 1.0, 1.141, 2.29, 7.0, 12.5, 60.0, 333.0] {
            let axis = Axis::from_zero("x", high, Unit::Plain);
            let ticks = axis.ticks(6);
            assert!((3..=8).contains(&ticks.len()) && axis.high >= high && ticks[0] == 0.0, "{high}: {ticks:?}");
            assert!(ticks.iter().all(|t| axis.tick(*t).len() <= 6), "{high}: {ticks:?}");
        }
        let log = Axis { label: String::new(), low: 1e-12, high: 1.0, unit: Unit::Power, given: Vec::new() };
        assert_eq!(
            log.ticks(7).iter().map(|t| log.tick(*t)).collect::<Vec<_>>().join(" "),
            "1e-12 1e-10 1e-8 1e-6 1e-4 1e-2 1e0"
        );
        let near = Axis::logarithmic("epsilon", &[0.0078, 0.0267, 0.09998, 0.1, 0.15, 0.2, 0.25, 0.2999, 0.3]);
        assert_eq!((near.ticks(6), near.high > 0.3), (vec![0.0078, 0.0267, 0.09998, 0.15, 0.25], true));
        let jobs = Axis::from_zero("jobs", 3.0, Unit::Count);
        assert_eq!(jobs.ticks(8), [0.0, 1.0, 2.0, 3.0]);
        let narrow = Axis::around("y", 0.8213, 0.8213, Unit::Percent);
        assert!(narrow.low < 0.8213 && narrow.high > 0.8213 && narrow.place(f64::NAN) >= 0.0);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.5, 1.0, 12.0, 0.0123456, 100.0, 1234.5, 1e-9, -0.25].map(short);
        assert_eq!(texts, ["0", "0.5", "1", "12", "0.01235", "100", "1234", "1e-9", "-0.25"]);
    }
}
