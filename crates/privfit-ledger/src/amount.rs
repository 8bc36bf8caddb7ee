//! Exact amounts: whole numbers of 1e-12, written as decimals. A charge is rounded up, a budget down, and a sum has no rounding at all.

use privfit_data::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A number of 1e-12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u64);

const UNIT: f64 = 1e12;

impl Amount {
    /// Nothing.
    pub const ZERO: Amount = Amount(0);
    /// More than any amount that can be written.
    pub const LARGEST: Amount = Amount(u64::MAX);

    /// The smallest amount that is not below the number. A number within 1e-15 of a decimal with twelve digits is that decimal: 0.1 is
    /// no double, and whoever asks for it ten times means 1.
    pub fn round_up(x: f64) -> Result<Amount> {
        let pico = x * UNIT;
        let near = (pico - pico.round()).abs() <= 1e-3 && pico.round() >= 1.0;
        Amount::of_integer(if near { pico.round() } else { pico.next_up().ceil() }, x)
    }

    /// The largest amount that is not above the number.
    pub fn down(x: f64) -> Result<Amount> {
        Amount::of_integer((x * UNIT).next_down().floor().max(0.0), x)
    }

    fn of_integer(pico: f64, x: f64) -> Result<Amount> {
        // Up to 10^6, and never a number that sums would lose.
        if x >= 0.0 && pico <= 1e18 {
            return Ok(Amount(pico as u64));
        }
        Err(Error::misuse(format!("an amount of {x} can't be kept in a ledger: give a number from 0 to 1000000")))
    }

    /// A decimal with at most twelve digits after the point; nothing else.
    pub fn parse(text: &str) -> Option<Amount> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 6 + 1 || part.len() > 12 || !digits(whole) || !digits(part) {
            return None;
        }
        let part = format!("{part:0<12}");
        let pico = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000_000)?.checked_add(part.parse().ok()?)?;
        (pico <= 1_000_000_000_000_000_000).then_some(Amount(pico))
    }

    /// The sum, if it can be kept.
    pub fn plus(self, other: Amount) -> Option<Amount> {
        self.0.checked_add(other.0).map(Amount)
    }

    /// What is left, nothing if that is negative.
    pub fn minus(self, other: Amount) -> Amount {
        Amount(self.0.saturating_sub(other.0))
    }

    /// As a number, for people and plots.
    pub fn number(self) -> f64 {
        self.0 as f64 / UNIT
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:012}", self.0 / 1_000_000_000_000, self.0 % 1_000_000_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        out.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Amount, D::Error> {
        let text = String::deserialize(from)?;
        Amount::parse(&text).ok_or_else(|| serde::de::Error::custom("not an amount"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_a_tenth_is_one() {
        let tenth = Amount::parse("0.1").unwrap();
        let ten = (0..10).fold(Amount::default(), |sum, _| sum.plus(tenth).unwrap());
        assert_eq!(ten, Amount::parse("1").unwrap());
        assert!(ten.plus(tenth).unwrap() > Amount::parse("1.0").unwrap());
    }

    #[test]
    fn rounding_is_to_the_safe_side() {
        for x in [0.1, 1e-13, 3.0, 0.123456789012345, 1e-300, 999_999.5] {
            assert!(
                Amount::round_up(x).unwrap().number() >= x * (1.0 - 1e-15) && Amount::round_up(x).unwrap() > Amount::default()
            );
            assert!(Amount::down(x).unwrap().number() <= x);
        }
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert!(Amount::round_up(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hostile_text_is_refused() {
        for bad in ["", ".", "-1", "+1", "1e3", "NaN", " 1", "1 ", "0.1234567890123", "99999999", "1.2.3", "１", "0x1", "1_0"] {
            assert!(Amount::parse(bad).is_none(), "{bad:?}");
        }
        for good in ["0", "1", "1.", "0.5", "1000000", "0.000000000001"] {
            let amount = Amount::parse(good).unwrap();
            assert_eq!(Amount::parse(&amount.to_string()), Some(amount), "{good}");
        }
    }
}
