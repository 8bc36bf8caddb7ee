//! Which copies of a picture a network learns from: settings and public facts of the schema alone. `network/augment.rs` has the claim.

use super::NetworkSettings;
use crate::error::{Error, Result};
use crate::method::Problem;
use crate::network::{Copies, Shape};
use crate::schema::Features;

/// What pictures of a shape are replaced by in a step.
pub(super) fn planned(problem: &Problem, settings: &NetworkSettings, picture: Shape) -> Result<Copies> {
    if settings.copies <= 1 {
        return match (settings.shift, settings.flip) {
            (None, None) => Ok(Copies::NONE),
            _ => Err(Error::misuse(
                "shift and flip are for copies of pictures, and there is one of each: give copies of 2 or more, or leave them out",
            )),
        };
    }
    if problem.schema.scatters() {
        return Err(Error::misuse(
            "copies are made of pixels, and pictures become scattering features here: give encoder = \"pixels\" in [features], or leave out copies",
        ));
    }
    let image = matches!(problem.schema.features, Features::Image { .. });
    let Shape { height, width, channels } = picture;
    if !image || height * width == 1 {
        return Err(Error::misuse(
            "copies need images, and these rows are none: give kind = \"image\" and a shape in [features], or leave out copies",
        ));
    }
    let side = height.min(width);
    // Signs of one colour (digits, letters) are others in a mirror; what has colours is a picture of things more often.
    let flip = settings.flip.unwrap_or(channels > 1);
    let shift = settings.shift.map_or(side / 8, |pixels| pixels as usize);
    if shift >= side {
        return Err(Error::misuse(format!(
            "shift is {shift}, and images of {height} x {width} pixels can be moved by {} at the most: give shift = {}",
            side - 1,
            side / 8
        )));
    }
    Ok(Copies { count: settings.copies as usize, shift, flip })
}

/// The line of a plan that has copies; certificates follow it with a sentence.
pub(super) const COUNT: &str = "copies of a picture";

/// In words, where there are any.
pub(super) fn described(copies: Copies) -> Option<(&'static str, String)> {
    let Copies { count, shift, flip } = copies;
    let moved = match shift {
        0 => String::new(),
        1 => ", moved by up to 1 pixel".into(),
        _ => format!(", moved by up to {shift} pixels"),
    };
    let mirrored = if flip { ", half of them mirrored" } else { "" };
    copies.are_made().then(|| (COUNT, format!("{count}{moved}{mirrored}; their gradients are averaged")))
}

#[cfg(test)]
mod tests {
    use super::super::{METHOD, Networks, networks};
    use super::*;
    use crate::checkpoint::{Checkpoints, State};
    use crate::data::encode::UNKNOWN;
    use crate::method::testing::{Random, plan, schema};
    use crate::method::{Plan, Settings, also};
    use crate::schema::Schema;
    use privfit_kernel::engine::Threads;
    use privfit_kernel::{Dataset, DatasetBuilder, Entropy, RowShape, Run};

    const CLASSES: &str = "classes = [\"0\", \"1\", \"2\"]";

    fn pictures(shape: &str, more: &str) -> Schema {
        let features = format!("[features]\nkind = \"image\"\nshape = {shape}\nmax = 255\n{more}");
        Schema::parse(&format!("[dataset]\nname = \"t\"\n[target]\n{CLASSES}\n{features}\n")).unwrap()
    }

    fn made(schema: &Schema, set: &[(&str, f64)]) -> Result<Networks> {
        let problem = plan(schema, "network", "softmax", 200, 1.0, &[("steps", 6.0)]).problem;
        let set = [("steps", 6.0)].iter().chain(set).map(|(name, value)| (name.to_string(), *value));
        networks(&Problem { settings: Settings(set.collect()), ..problem })
    }

    /// What follows from the shape, what is given, and nothing without copies; the event is the same either way.
    #[test]
    fn copies_follow_from_public_facts() {
        let pixels = "encoder = \"pixels\"";
        let (colour, grey) = (pictures("[32, 24, 3]", pixels), pictures("[28, 28]", pixels));
        let of = |schema: &Schema, set: &[(&str, f64)]| made(schema, set).unwrap().network.copies;
        assert_eq!(of(&colour, &[]), Copies::NONE);
        assert_eq!(of(&colour, &[("copies", 4.0)]), Copies { count: 4, shift: 3, flip: true });
        assert_eq!(of(&grey, &[("copies", 16.0)]), Copies { count: 16, shift: 3, flip: false });
        let given = [("copies", 2.0), ("shift", 0.0), ("flip", 1.0)];
        assert_eq!(of(&grey, &given), Copies { count: 2, shift: 0, flip: true });
        let (plain, copied) = (made(&colour, &[]).unwrap(), made(&colour, &[("copies", 4.0)]).unwrap());
        assert_eq!(plain.event, copied.event);
        let words = |plan: &Networks| plan.describe().iter().find(|d| d.0.contains("copies")).map(|d| d.1.clone());
        assert_eq!(words(&plain), None);
        assert_eq!(words(&copied).unwrap(), "4, moved by up to 3 pixels, half of them mirrored; their gradients are averaged");
        // Certificates say it where it is so.
        let sentences = |plan: &Networks| {
            let lines: Vec<_> = plan.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            also(METHOD.name, &lines)
        };
        assert!(sentences(&plain).is_empty() && sentences(&copied).len() == 1);
        assert!(sentences(&copied)[0].contains("after the average"));
    }

    #[test]
    fn copies_need_pixels() {
        let pixels = pictures("[8, 8]", "encoder = \"pixels\"");
        let table = schema(3, "", CLASSES);
        let dense = Schema::parse(&format!(
            "[dataset]\nname = \"t\"\n[target]\n{CLASSES}\n[features]\nkind = \"dense\"\ndimension = 4\nrow_norm = 1.0\n"
        ))
        .unwrap();
        for (schema, set, words) in [
            (&table, &[("copies", 2.0)][..], "copies need images"),
            (&dense, &[("copies", 2.0)], "kind = \"image\""),
            (&pictures("[8, 8]", "encoder = \"scattering\""), &[("copies", 2.0)], "encoder = \"pixels\""),
            (&pictures("[8, 8, 3]", "encoder = \"mirrored-scattering\""), &[("copies", 2.0)], "encoder = \"pixels\""),
            (&pixels, &[("copies", 2.0), ("shift", 8.0)], "by 7 at the most"),
            (&pixels, &[("shift", 1.0)], "give copies of 2 or more"),
            (&pixels, &[("flip", 1.0), ("copies", 1.0)], "give copies of 2 or more"),
            (&pixels, &[("copies", 65.0)], "from 1 to 64"),
            (&pixels, &[("copies", 0.0)], "from 1 to 64"),
            (&pixels, &[("copies", 2.5)], "a whole number"),
        ] {
            let message = made(schema, set).err().expect(words).to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    /// 200 pictures of 8 x 8 pixels, among them some that are nobody's.
    fn dataset() -> Dataset {
        let shape = RowShape { dimension: 65, row_norm: 1.0, sparse: false, rows_per_unit: None };
        let mut builder = DatasetBuilder::new(&Entropy::simulated(1), shape).unwrap();
        let mut random = Random(9);
        for i in 0..200 {
            let row: Vec<f64> = (0..65).map(|_| 0.12 * random.next()).collect();
            builder.row(&row, if i % 17 == 0 { UNKNOWN } else { (i % 3) as f32 });
        }
        builder.build()
    }

    /// Keeps every state, and stops after one of them.
    struct Stopping(Option<State>, u64);

    impl Checkpoints for Stopping {
        fn due(&self, _: u64) -> bool {
            true
        }

        fn found(&mut self) -> Option<State> {
            self.0.clone()
        }

        fn keep(&mut self, state: State) -> Result<()> {
            let stops = state.steps == self.1;
            self.0 = Some(state);
            if stops { Err(Error::output("stopped")) } else { Ok(()) }
        }
    }

    /// One and two threads have the same numbers to the bit, and so has a run that is stopped after any step; of samples and of all records, in both ways. Without copies they are others, and steps over
    /// all records do not repeat their copies.
    #[test]
    fn threads_and_interruptions_change_nothing() {
        let (schema, data) = (pictures("[8, 8]", "encoder = \"pixels\""), dataset());
        for (rate, exact) in [(0.3, 0.0), (0.3, 1.0), (1.0, 0.0)] {
            let settings = |copies: f64| [("copies", copies), ("sampling_rate", rate), ("exact", exact)];
            let planned = |copies: f64| made(&schema, &settings(copies)).unwrap();
            let run = |plan: &Networks, threads: usize, kept: Option<&mut dyn Checkpoints>| {
                let (engine, entropy) = (Threads::new(threads), Entropy::simulated(5));
                let mut run = Run::begin(&data, &engine, &entropy, &plan.event).unwrap();
                let numbers = plan.descend(&mut run, &|| {}, kept)?;
                assert!(run.close(()).is_ok());
                Ok::<_, Error>(numbers.iter().map(|x| x.to_bits()).collect::<Vec<u64>>())
            };
            let plan = planned(3.0);
            let whole = run(&plan, 1, None).unwrap();
            assert_eq!(run(&plan, 2, None).unwrap(), whole, "two threads");
            assert_ne!(run(&planned(1.0), 1, None).unwrap(), whole, "copies do something");
            let mut kept = Stopping(None, 0);
            for stop in 1..=6 {
                kept.1 = stop;
                assert!(run(&plan, 1 + stop as usize % 2, Some(&mut kept)).is_err());
            }
            kept.1 = 0;
            assert_eq!(run(&plan, 1, Some(&mut kept)).unwrap(), whole, "stopped after every step");
            // Over all records, each step draws a key for its copies; a sample has one already.
            let mut plain = Stopping(None, 0);
            run(&planned(1.0), 1, Some(&mut plain)).unwrap();
            let keys = |kept: Stopping| {
                let executed = serde_json::to_value(&kept.0.unwrap().executed).unwrap();
                executed["simulated"][1].as_u64().unwrap()
            };
            assert_eq!(keys(kept) - keys(plain), if rate < 1.0 { 0 } else { 6 });
        }
    }
}
