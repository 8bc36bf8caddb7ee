//! Settings of methods. Each method has a struct of them, with types, ranges and defaults; the macro below makes it, together with
//! the list that help texts and checks read. What a user gives, on a command line, in a job file or from Python, is read in one place.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Settings as a user gives them: a number for each name. A flag is 0 or 1, a choice is its place in the list.
#[derive(Clone, Debug, Default)]
pub struct Settings(pub BTreeMap<String, f64>);

/// One setting of a method.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The numbers that it takes.
    pub range: RangeInclusive<f64>,
    /// Its default; none if it follows from public facts.
    pub default: fn() -> Option<f64>,
}

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any number of the range.
    Number,
    /// A whole number.
    Whole,
    /// True or false.
    Flag,
    /// One of these.
    Choice(&'static [&'static str]),
}

/// A type that a setting may have.
pub trait Value: Sized {
    /// Its kind.
    const KIND: Kind;
    /// The value that a number stands for; the number was checked against kind and range.
    fn from_number(number: f64) -> Self;
    /// The number that stands for a value.
    fn number(&self) -> Option<f64>;
}

impl Value for f64 {
    const KIND: Kind = Kind::Number;
    fn from_number(number: f64) -> f64 {
        number
    }
    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Value for u64 {
    const KIND: Kind = Kind::Whole;
    fn from_number(number: f64) -> u64 {
        number as u64
    }
    fn number(&self) -> Option<f64> {
        Some(*self as f64)
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;
    fn from_number(number: f64) -> bool {
        number != 0.0
    }
    fn number(&self) -> Option<f64> {
        Some(f64::from(u8::from(*self)))
    }
}

/// None: the default follows from public facts.
impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn from_number(number: f64) -> Option<T> {
        Some(T::from_number(number))
    }
    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }
}

/// How steps shrink in permutation SGD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decay {
    /// They do not.
    Constant,
    /// Like 1/t.
    Decreasing,
    /// Like 1/sqrt t.
    SquareRoot,
}

/// Their names.
const DECAYS: &[&str] = &["constant", "decreasing", "square-root"];

impl Value for Decay {
    const KIND: Kind = Kind::Choice(DECAYS);
    fn from_number(number: f64) -> Decay {
        [Decay::Constant, Decay::Decreasing, Decay::SquareRoot][(number as usize).min(2)]
    }
    fn number(&self) -> Option<f64> {
        Some(*self as u8 as f64)
    }
}

/// What is trained on a part of an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Teachers {
    /// Linear in the shared encoder.
    Linear,
    /// Steps of every number besides.
    Additive,
    /// A shared layer besides.
    Network,
    /// Whatever a command of the user trains.
    Command,
}

/// Their names.
pub(crate) const TEACHERS: &[&str] = &["linear", "additive", "network", "command"];

impl Value for Teachers {
    const KIND: Kind = Kind::Choice(TEACHERS);
    fn from_number(number: f64) -> Teachers {
        [Teachers::Linear, Teachers::Additive, Teachers::Network, Teachers::Command][(number as usize).min(3)]
    }
    fn number(&self) -> Option<f64> {
        Some(*self as u8 as f64)
    }
}

impl Setting {
    /// The numbers that it takes, in words.
    pub fn takes(&self) -> String {
        let short = |x: f64| if x != 0.0 && !(1e-3..1e5).contains(&x) { format!("{x:e}") } else { x.to_string() };
        let (low, high) = (short(*self.range.start()), short(*self.range.end()));
        match self.kind {
            Kind::Number => format!("a number from {low} to {high}"),
            Kind::Whole => format!("a whole number from {low} to {high}"),
            Kind::Flag => "true or false".into(),
            Kind::Choice(names) => names.join(", "),
        }
    }

    /// The default in words; none if it follows from public facts.
    pub fn usual(&self) -> Option<String> {
        (self.default)().map(|number| match self.kind {
            Kind::Flag => (number != 0.0).to_string(),
            Kind::Choice(names) => names[number as usize].into(),
            _ => number.to_string(),
        })
    }

    fn check(&self, number: f64) -> Result<()> {
        let whole = self.kind == Kind::Number || number.fract() == 0.0;
        if whole && self.range.contains(&number) {
            return Ok(());
        }
        Err(Error::misuse(format!("{} is {number}: give {}", self.name, self.takes())))
    }
}

impl Settings {
    /// Sets one: a number, `true`, `false`, or the name of a choice. One that is set twice is an error.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let name = match name.replace('-', "_").as_str() {
            // Its name before there were two rates.
            "rate" => "learning_rate".to_string(),
            name => name.to_string(),
        };
        let choices = choices_of(&name);
        let wrong = || match choices {
            [] => Error::misuse(format!("{name} is {text:?}: give a number, true or false")),
            _ => Error::misuse(format!("{name} is {text:?}: give {}", choices.join(", "))),
        };
        let number = match text {
            "true" => 1.0,
            "false" => 0.0,
            _ => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => number,
                Ok(_) => return Err(wrong()),
                Err(_) => choices.iter().position(|c| *c == text).ok_or_else(wrong)? as f64,
            },
        };
        if self.0.insert(name.clone(), number).is_some() {
            return Err(Error::misuse(format!("{name} is set twice: remove one of them")));
        }
        Ok(())
    }

    /// The number, in a range, or its default: for losses, whose numbers have no type but this one.
    pub fn within(&self, key: &'static str, default: f64, low: f64, high: f64) -> Result<f64> {
        let value = self.0.get(key).copied().unwrap_or(default);
        if value >= low && value <= high {
            return Ok(value);
        }
        Err(Error::misuse(format!("{key} is {value}: give a number from {low} to {high}")))
    }

    /// The value of a setting, checked, or its default.
    pub(crate) fn read<T: Value>(&self, setting: &Setting, default: T) -> Result<T> {
        let Some(number) = self.0.get(setting.name) else { return Ok(default) };
        setting.check(*number)?;
        Ok(T::from_number(*number))
    }

    pub(super) fn only(&self, known: &[&str]) -> Result<()> {
        match self.0.keys().find(|k| !known.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => Err(Error::misuse(format!(
                "unknown setting {key:?}: {}known here are {}",
                crate::nearest::hint(key, known.iter().copied()),
                if known.is_empty() { "none".to_string() } else { known.join(", ") }
            ))),
        }
    }
}

/// The settings that are choices, and their names.
const CHOICES: &[(&str, &[&str])] = &[("schedule", DECAYS), ("teachers", TEACHERS)];

fn choices_of(name: &str) -> &'static [&'static str] {
    CHOICES.iter().find(|c| c.0 == name).map_or(&[], |c| c.1)
}

/// Makes the struct of a method's settings: a line of meaning, name, type, default and range for each.
macro_rules! settings {
    ($(#[$about:meta])* $seen:vis struct $name:ident {
        $(#[doc = $meaning:literal] $field:ident: $type:ty = $default:expr, $range:expr;)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        $seen struct $name {
            $(#[doc = $meaning] $seen $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $name {
            /// The list of them.
            $seen const SETTINGS: &'static [$crate::method::settings::Setting] = &[$(
                $crate::method::settings::Setting {
                    name: stringify!($field),
                    meaning: $meaning.trim_ascii(),
                    kind: <$type as $crate::method::settings::Value>::KIND,
                    range: $range,
                    default: || <$type as $crate::method::settings::Value>::number(&$default),
                },
            )*];

            /// Those that are given, checked, and defaults for the rest.
            $seen fn parse(given: &$crate::method::Settings) -> $crate::error::Result<Self> {
                let mut list = Self::SETTINGS.iter();
                let default = Self::default();
                Ok($name { $($field: given.read(list.next().expect("one for each field"), default.$field)?,)* })
            }
        }
    };
}
pub(crate) use settings;

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        /// Settings of a method that does not exist.
        struct Made {
            /// number of steps
            steps: Option<u64> = None, 1.0..=10.0;
            /// a part
            share: f64 = 0.5, 0.0..=1.0;
            /// whether
            offset: bool = true, 0.0..=1.0;
            /// how steps shrink
            schedule: Decay = Decay::Constant, 0.0..=2.0;
        }
    }

    #[test]
    fn settings_are_typed() {
        assert_eq!(Made::parse(&Settings::default()).unwrap(), Made::default());
        let mut given = Settings::default();
        for (name, text) in [("steps", "7"), ("share", "0.25"), ("offset", "false"), ("schedule", "square-root")] {
            given.set(name, text).unwrap();
        }
        let made = Made::parse(&given).unwrap();
        assert_eq!(made, Made { steps: Some(7), share: 0.25, offset: false, schedule: Decay::SquareRoot });
        assert!(given.set("steps", "8").unwrap_err().to_string().contains("twice"));
        for (name, text, says) in [
            ("steps", "2.5", "steps is 2.5: give a whole number from 1 to 10"),
            ("steps", "11", "steps is 11: give a whole number from 1 to 10"),
            ("share", "-1", "share is -1: give a number from 0 to 1"),
            ("offset", "2", "offset is 2: give true or false"),
            ("schedule", "3", "schedule is 3: give constant, decreasing, square-root"),
        ] {
            let mut given = Settings::default();
            given.set(name, text).unwrap();
            assert_eq!(Made::parse(&given).unwrap_err().to_string(), says);
        }
        for text in ["nan", "inf", "many", ""] {
            assert!(Settings::default().set("steps", text).is_err());
        }
        let usual: Vec<_> = Made::SETTINGS.iter().map(Setting::usual).collect();
        assert_eq!(usual, [None, Some("0.5".into()), Some("true".into()), Some("constant".into())]);
    }
}
