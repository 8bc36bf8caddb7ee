use super::*;
use crate::method::testing::{Random, dataset, plan, schema};
use crate::schema::Schema;
use privfit_kernel::Entropy;
use privfit_kernel::account::epsilon;
use privfit_kernel::engine::Threads;

const CLASSES: &str = "classes = [\"0\", \"1\", \"2\"]";

fn networks_of(schema: &Schema, set: &[(&str, f64)]) -> Networks {
    networks(&plan(schema, "network", "softmax", 2000, 1.0, set).problem).unwrap()
}

/// The statistics and the steps together cost what was asked for: not more, and hardly less. Without a share the plan is the steps alone.
#[test]
fn the_budget_is_shared() {
    let schema = schema(3, "", CLASSES);
    let plain = networks_of(&schema, &[("steps", 30.0)]);
    assert!(matches!(&plain.event, Event::Repeat { times: 30, .. }), "{:?}", plain.event);
    assert_eq!(networks_of(&schema, &[("steps", 30.0), ("normalise", 0.0)]).event, plain.event);
    let mut last = plain.mechanism.standard_deviation();
    for share in [0.05, 0.2, 0.5] {
        let paid = networks_of(&schema, &[("steps", 30.0), ("normalise", share)]);
        let Event::Compose(events) = &paid.event else { panic!("{:?}", paid.event) };
        assert!(matches!(&events[..], [Event::DiscreteGaussian { dimension: 6, .. }, Event::Repeat { times: 30, .. }]));
        let found = epsilon(&paid.event, Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
        assert!(found <= 1.0 && found > 0.98, "{share}: {found}");
        // The statistics alone cost less than their share of mu^2 would under the whole target, and the steps get the rest.
        assert!(paid.mechanism.standard_deviation() > last, "{share}");
        last = paid.mechanism.standard_deviation();
    }
}

/// A run whose statistics are released twice, or after a step, or not at all, is refused by the kernel.
#[test]
fn statistics_are_released_once() {
    let schema = schema(3, "", CLASSES);
    let mut random = Random(7);
    let rows: Vec<Vec<f64>> = (0..200).map(|i| vec![random.next(), random.next(), random.next(), f64::from(i % 3)]).collect();
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let data = dataset(&schema, 3, false, &rows, &entropy);
    let paid = networks_of(&schema, &[("steps", 3.0), ("normalise", 0.2)]);
    let begin = || Run::begin(&data, &engine, &entropy, &paid.event).unwrap();
    let mut run = begin();
    let numbers = paid.descend(&mut run, &|| {}, None).unwrap();
    assert_eq!(run.executed().unwrap().count(), 4);
    assert!(run.close(()).unwrap().event() == &paid.event);
    let Learned::Network(model) = paid.learned(numbers) else { panic!() };
    assert!(model.normal.len() == 6 && model.network().is_some() && model.normal[..3].iter().all(|s| *s > 0.0));
    let mut twice = begin();
    paid.normal(&mut twice).unwrap();
    assert!(paid.normal(&mut twice).is_err());
    let mut without = begin();
    let skipping = Networks { inputs: Inputs::Plain, ..networks_of(&schema, &[("steps", 3.0), ("normalise", 0.2)]) };
    assert!(skipping.descend(&mut without, &|| {}, None).is_err());
}

/// Scores of scattering features pay for a mean by default: it is part of the event, and the certificate has a sentence about it. Without it both say nothing of it.
#[test]
fn means_of_scattering_features_are_stated() {
    let features = "[features]\nkind = \"image\"\nshape = [16, 16]\nmax = 255\nencoder = \"scattering\"\n";
    let schema = Schema::parse(&format!("[dataset]\nname = \"t\"\n[target]\n{CLASSES}\n{features}")).unwrap();
    let sentences = |plan: &Networks| {
        let lines: Vec<_> = plan.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        crate::method::also(METHOD.name, &lines)
    };
    let paid = networks_of(&schema, &[("steps", 3.0)]);
    let Event::Compose(events) = &paid.event else { panic!("{:?}", paid.event) };
    let dimension = paid.network.input.size() as u64;
    assert!(
        matches!(&events[..], [Event::DiscreteGaussian { dimension: d, .. }, Event::Repeat { times: 3, .. }] if *d == dimension)
    );
    assert!(sentences(&paid).len() == 1 && sentences(&paid)[0].contains("to length 1, with Gaussian noise"));
    let found = epsilon(&paid.event, Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
    assert!(found <= 1.0 && found > 0.98, "{found}");
    let free = networks_of(&schema, &[("steps", 3.0), ("normalise", 0.0)]);
    assert!(matches!(&free.event, Event::Repeat { times: 3, .. }) && sentences(&free).is_empty());
}

/// All steps are one release where noise is correlated, after that of the moments; samples are taken where their forecast is as good. A certificate says which.
#[test]
fn correlated_noise_is_taken_where_its_forecast_is_better() {
    let text =
        format!("[dataset]\nname = \"t\"\n[target]\n{CLASSES}\n[features]\nkind = \"image\"\nshape = [28, 28]\nmax = 255\n");
    let schema = Schema::parse(&text).unwrap();
    let of = |epsilon: f64, set: &[(&str, f64)]| plan(&schema, "network", "softmax", 60_000, epsilon, set);
    let line = |plan: &dyn Plan, name: &str| plan.describe().iter().find(|l| l.0 == name).map(|l| l.1.clone());
    for (epsilon, correlated) in [(1.0, false), (4.0, false), (24.0, true)] {
        let chosen = of(epsilon, &[]).plan;
        assert_eq!(chosen.correlation_forecast().unwrap() < TAKEN_BELOW, correlated);
        assert_eq!(of(epsilon, &[("correlated", 1.0)]).plan.correlation_forecast(), None);
        assert_eq!(line(chosen.as_ref(), correlation::BATCHES).is_some(), correlated, "{epsilon}");
        assert_eq!(line(chosen.as_ref(), "sampling rate").is_none(), correlated, "{epsilon}");
        let needs = if correlated { Needs::Totals } else { Needs::Sums };
        assert!(chosen.needs() == needs && chosen.keeps_keys() == correlated);
    }
    let asked = of(1.0, &[("correlated", 1.0), ("bands", 4.0), ("normalise", 0.1)]).plan;
    assert!(matches!(asked.event(), Event::Compose(all) if all.len() == 2 && matches!(all[1], Event::DiscreteGaussian { .. })));
    assert!(line(asked.as_ref(), "noise that a step takes back").unwrap().contains("3 steps before"));
    let lines: Vec<_> = asked.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    assert!(super::super::also(METHOD.name, &lines).iter().any(|s| s.contains("All T steps are one Gaussian release")));
    for (set, says) in [
        (&[("correlated", 0.0), ("bands", 2.0)][..], "leave them out"),
        (&[("taken_back", 0.5), ("bands", 2.0)], "give one of them"),
    ] {
        let problem = Problem {
            settings: super::super::Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
            ..of(1.0, &[("correlated", 0.0)]).problem
        };
        assert!(networks(&problem).err().unwrap().to_string().contains(says));
    }
}

/// Stated moments: a network sees (pixel - mean) / deviation, at no cost; paying for them as well is refused.
#[test]
fn stated_moments_cost_nothing() {
    let text = |more: &str| {
        let text = format!(
            "[dataset]\nname = \"t\"\n[target]\n{CLASSES}\n[features]\nkind = \"image\"\nshape = [2, 2, 2]\nmax = 255\n{more}"
        );
        Schema::parse(&text).unwrap()
    };
    let stated = text("mean = [100, 150]\ndeviation = [50, 60]\n");
    let network = networks_of(&stated, &[("steps", 3.0)]);
    assert!(matches!(&network.event, Event::Repeat { times: 3, .. }));
    assert_eq!(network.event, networks_of(&text("encoder = \"pixels\"\n"), &[("steps", 3.0)]).event);
    let Inputs::Public(normal) = &network.inputs else { panic!() };
    // A pixel is encoded as its part of the largest one, over the root of all pixels and the constant.
    let pixels = [100.0, 150.0, 255.0, 0.0];
    let mut inputs: Vec<f32> = pixels.iter().map(|p| (p / 255.0 / 3.0) as f32 * network.network.scale).collect();
    crate::network::normal::apply(normal, &mut inputs);
    let expected = [0.0, 0.0, 3.1, -2.5];
    assert!(inputs.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{inputs:?}");
    let problem = plan(&stated, "network", "softmax", 2000, 1.0, &[("steps", 3.0)]).problem;
    let both = Problem { settings: super::super::Settings([("normalise".to_string(), 0.1)].into()), ..problem };
    assert!(networks(&both).err().unwrap().to_string().contains("leave out one"));
}

/// A random number of steps: in closed form the mu of all of them where everybody is in each; every number comes as often as any other, what was executed is that many steps, and more are refused.
#[test]
fn random_rounds_are_paid_for_in_full() {
    let schema = schema(3, "", CLASSES);
    let of = |set: &[(&str, f64)]| networks_of(&schema, &[&[("random_rounds", 1.0), ("steps", 8.0)], set].concat());
    let full = of(&[("sampling_rate", 1.0)]);
    let Event::AtMost { times: 8, event: step } = &full.event else { panic!("{:?}", full.event) };
    let Event::DiscreteGaussian { sigma, sensitivity, .. } = step.as_ref() else { panic!("{step:?}") };
    let mu = 8f64.sqrt() * *sensitivity as f64 / *sigma as f64;
    let found = epsilon(&full.event, Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
    let closed = epsilon(&Event::gaussian(1.0 / mu), Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
    assert!((found / closed - 1.0).abs() < 1e-3 && found <= 1.0, "{found} {closed}");
    let sampled = of(&[]);
    let Event::AtMost { times: 8, event } = &sampled.event else { panic!("{:?}", sampled.event) };
    let all = networks_of(&schema, &[("steps", 8.0)]);
    assert_eq!(event.as_ref().clone().repeated(8), all.event, "the price is that of all steps");
    let mut random = Random(7);
    let rows: Vec<Vec<f64>> = (0..60).map(|i| vec![random.next(), random.next(), random.next(), f64::from(i % 3)]).collect();
    let (engine, entropy) = (Threads::new(1), Entropy::system().unwrap());
    let data = dataset(&schema, 3, false, &rows, &entropy);
    let mut counts = [0u32; 8];
    for plan in [&sampled, &of(&[("fresh", 0.5), ("normalise", 0.1)])] {
        let more = if matches!(plan.event, Event::Compose(_)) { 1 } else { 0 };
        for _ in 0..400 {
            let mut run = Run::begin(&data, &engine, &entropy, &plan.event).unwrap();
            let numbers = plan.run(&mut run, &|| {}).unwrap();
            let executed = run.executed().unwrap().count() - more;
            counts[executed as usize - 1] += 1;
            // One step more than was drawn is refused where all were taken.
            let one_more = plan.normal(&mut run).is_err();
            assert!(one_more || more == 0);
            let Learned::Network(model) = plan.learned(numbers) else { panic!() };
            let told = model.history.as_ref().map(|h| h.steps);
            assert_eq!(told, Some(executed), "the file tells how many steps were taken");
            assert!(run.close(()).is_ok());
        }
    }
    // Chi-squared with 7 degrees of freedom: 52 is passed with a chance below 1e-8.
    let square: f64 = counts.iter().map(|c| (f64::from(*c) - 100.0).powi(2) / 100.0).sum();
    assert!(square < 52.0, "{counts:?}");
    let lines: Vec<_> = sampled.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    assert!(lines.iter().any(|l| l.0 == "steps that are taken" && l.1.contains("from 1 to 8 alike")), "{lines:?}");
    assert!(super::super::also(METHOD.name, &lines).iter().any(|s| s.contains("without looking at records")));
    // Every step has the same length, and the last iterate is the answer.
    assert!((0..8).all(|step| sampled.rate(step) == sampled.learning_rate) && sampled.settings.averaged == 0.0);
    for (set, says) in [
        (&[("random_rounds", 1.0), ("decay", 0.3)][..], "leave out decay"),
        (&[("random_rounds", 1.0), ("averaged", 0.5)], "leave out averaged"),
        (&[("random_rounds", 1.0), ("correlated", 1.0)], "leave out random_rounds"),
        (&[("random_rounds", 1.0), ("bands", 3.0)], "leave out random_rounds"),
    ] {
        let problem = Problem {
            settings: super::super::Settings(set.iter().map(|(k, v)| (k.to_string(), *v)).collect()),
            ..plan(&schema, "network", "softmax", 2000, 1.0, &[("steps", 8.0)]).problem
        };
        let error = networks(&problem).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// All records in every step: noisy gradient descent, whose event is that of full Gaussians, in closed form.
#[test]
fn all_records_in_every_step_are_noisy_gradient_descent() {
    let network = networks_of(&schema(3, "", CLASSES), &[("sampling_rate", 1.0), ("steps", 20.0)]);
    let Event::Repeat { times: 20, event } = &network.event else { panic!("{:?}", network.event) };
    let Event::DiscreteGaussian { sigma, sensitivity, .. } = event.as_ref() else { panic!("{event:?}") };
    let mu = 20f64.sqrt() * *sensitivity as f64 / *sigma as f64;
    let closed = epsilon(&Event::gaussian(1.0 / mu), Adjacency::ZeroOut, 1e-8).unwrap().bound.upper;
    assert!(closed <= 1.0 + 1e-3 && closed > 0.99, "{closed}");
    assert!(network.sampled.is_none() && network.correlated.is_none() && network.divide == 2000.0 * network.clip);
    assert!(network.describe().iter().all(|line| line.0 != "sampling rate"));
}

/// Records in their order: the same event as with drawn batches, a line and a sentence about it, and the place of a row among what counts as public.
#[test]
fn an_order_that_is_given_is_stated() {
    let schema = schema(3, "", CLASSES);
    let set = [("steps", 8.0), ("sampling_rate", 0.25), ("bands", 3.0)];
    let drawn = networks_of(&schema, &set);
    let given = networks_of(&schema, &[&set[..], &[("in_order", 1.0)]].concat());
    assert!(given.event == drawn.event && given.follows_order() && !drawn.follows_order());
    let sentences = |plan: &Networks| {
        let lines: Vec<_> = plan.describe().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        super::super::also(METHOD.name, &lines)
    };
    assert!(sentences(&given).iter().any(|s| s.contains("its place alone")));
    assert!(!sentences(&drawn).iter().any(|s| s.contains("its place alone")));
    let stated = |set: &[(&str, f64)]| plan(&schema, "network", "softmax", 2000, 1.0, set).public_facts(2000);
    let places = |facts: &[crate::training::Fact]| facts.iter().any(|f| f.what.contains("the place of each row"));
    assert!(places(&stated(&[&set[..], &[("in_order", 1.0)]].concat())) && !places(&stated(&set)));
}
