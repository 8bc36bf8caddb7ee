//! Progress of work over a second, with the time that is left: counts of public steps, never anything that records could move, such as the
//! size of their file. Nothing is drawn unless standard error is a terminal.

use super::spent::SpentSoFar;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

pub(crate) struct Bar {
    bar: ProgressBar,
    spent: Option<SpentSoFar>,
}

impl Bar {
    pub(crate) fn new(steps: u64, shown: bool, what: &'static str) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(steps), target(shown));
        // One step has no part that is done.
        let template = match steps {
            0 | 1 => "{spinner} {msg} {elapsed}",
            _ => "{msg} [{bar:30}] {pos}/{len} {elapsed}, {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        // Nothing is drawn for short work, and nothing runs beside the work where nobody looks.
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(1000));
        }
        Bar { bar, spent: None }
    }

    /// The same, with the privacy that is spent so far.
    pub(crate) fn with_spent(self, spent: Option<SpentSoFar>) -> Bar {
        // A line of eighty columns holds both.
        let template = "{msg} [{bar:14}] {pos}/{len} {elapsed}, {eta} left{prefix}";
        if let Some(style) = spent.as_ref().and_then(|_| ProgressStyle::with_template(template).ok()) {
            self.bar.set_style(style);
        }
        Bar { spent, ..self }
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
        self.say_spent();
    }

    /// Steps that another process has done: none of them took any of our time.
    pub(crate) fn go_on_from(&self, steps: u64) {
        self.bar.set_position(steps);
        self.bar.reset_eta();
        self.say_spent();
    }

    fn say_spent(&self) {
        if let Some(spent) = &self.spent {
            self.bar.set_prefix(spent.after(self.bar.position()));
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A sign of life while files are read; it is gone when this is.
pub(crate) struct Reading(Option<ProgressBar>);

impl Reading {
    pub(crate) fn new(what: &'static str, shown: bool) -> Reading {
        let bar = sign(what, target(shown));
        if bar.is_hidden() {
            return Reading(None);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Reading(Some(bar))
    }
}

/// What is shown: a word that is known before any file is, and the time.
fn sign(what: &'static str, target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Standard error hides itself where it is not a terminal.
fn target(shown: bool) -> ProgressDrawTarget {
    if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a file tells how many rows there are, which may be private.
    #[test]
    fn nothing_of_the_files_is_shown() {
        let bar = sign("reading", ProgressDrawTarget::hidden());
        assert_eq!((bar.message(), bar.length(), bar.position()), ("reading".into(), None, 0));
    }
}
