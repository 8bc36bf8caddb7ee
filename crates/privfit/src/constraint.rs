//! Sets that weights may be held to. A projection looks at released numbers only, so it costs nothing; methods with steps project
//! after each of them, the others once at the end.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A convex set of weight vectors.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constraint {
    /// Everything.
    #[default]
    None,
    /// Euclidean norm at most this.
    L2(f64),
    /// Sum of sizes at most this.
    L1(f64),
    /// Every weight between these.
    Box(f64, f64),
    /// No weight negative, their sum this.
    Simplex(f64),
}

impl Constraint {
    /// Reads `none`, `l2:R`, `l1:R`, `box:LOW:HIGH` or `simplex:R`.
    pub fn parse(text: &str) -> Result<Constraint> {
        let wrong = || Error::misuse(format!("constraint {text:?}: give none, l2:R, l1:R, box:LOW:HIGH or simplex:R"));
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let numbers: Vec<f64> = parts.map(|p| p.parse::<f64>()).collect::<std::result::Result<_, _>>().map_err(|_| wrong())?;
        if numbers.iter().any(|x| !x.is_finite()) {
            return Err(wrong());
        }
        match (kind, numbers.as_slice()) {
            ("none", []) => Ok(Constraint::None),
            ("l2", [r]) if *r > 0.0 => Ok(Constraint::L2(*r)),
            ("l1", [r]) if *r > 0.0 => Ok(Constraint::L1(*r)),
            ("box", [low, high]) if low < high => Ok(Constraint::Box(*low, *high)),
            ("simplex", [r]) if *r > 0.0 => Ok(Constraint::Simplex(*r)),
            _ => Err(wrong()),
        }
    }

    /// As it is written in a job.
    pub fn text(&self) -> String {
        match self {
            Constraint::None => "none".into(),
            Constraint::L2(r) => format!("l2:{r}"),
            Constraint::L1(r) => format!("l1:{r}"),
            Constraint::Box(low, high) => format!("box:{low}:{high}"),
            Constraint::Simplex(r) => format!("simplex:{r}"),
        }
    }

    /// Moves to the nearest point of the set.
    pub fn project(&self, w: &mut [f64]) {
        match *self {
            Constraint::None => {}
            Constraint::L2(r) => {
                let size = w.iter().map(|x| x * x).sum::<f64>().sqrt();
                if size > r {
                    w.iter_mut().for_each(|x| *x *= r / size);
                }
            }
            Constraint::L1(r) => {
                if w.iter().map(|x| x.abs()).sum::<f64>() > r {
                    let cut = threshold(w.iter().map(|x| x.abs()).collect(), r);
                    w.iter_mut().for_each(|x| *x = x.signum() * (x.abs() - cut).max(0.0));
                }
            }
            Constraint::Box(low, high) => w.iter_mut().for_each(|x| *x = x.max(low).min(high)),
            Constraint::Simplex(r) => {
                let cut = threshold(w.to_vec(), r);
                w.iter_mut().for_each(|x| *x = (*x - cut).max(0.0));
            }
        }
    }
}

/// The number c with sum of max(0, v - c) = r.
fn threshold(mut v: Vec<f64>, r: f64) -> f64 {
    v.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut cut = 0.0;
    for (i, x) in v.iter().enumerate() {
        sum += x;
        let next = (sum - r) / (i + 1) as f64;
        if next >= *x {
            break;
        }
        cut = next;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A projection is in the set, and no point of the set is nearer.
    #[test]
    fn projections_are_nearest_points() {
        let mut state = 88172645463325252u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let sets = ["none", "l2:0.7", "l1:0.9", "box:-0.2:0.4", "simplex:1.5"].map(|t| Constraint::parse(t).unwrap());
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
        for set in sets {
            assert_eq!(Constraint::parse(&set.text()).unwrap(), set);
            for _ in 0..200 {
                let at: Vec<f64> = (0..5).map(|_| 2.0 * random()).collect();
                let mut near = at.clone();
                set.project(&mut near);
                let mut again = near.clone();
                set.project(&mut again);
                assert!(distance(&near, &again) < 1e-20, "{set:?}");
                for _ in 0..20 {
                    let mut other: Vec<f64> = (0..5).map(|_| 2.0 * random()).collect();
                    set.project(&mut other);
                    assert!(distance(&at, &near) <= distance(&at, &other) + 1e-12, "{set:?}");
                }
            }
        }
        for bad in ["l2", "l2:-1", "box:1:0", "ball:1", "l1:nan", "simplex:1:2"] {
            assert!(Constraint::parse(bad).is_err(), "{bad}");
        }
    }
}
