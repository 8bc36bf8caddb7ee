//! Which methods run on which sets, at which settings. Settings that are not defaults were chosen on validation rows (every fifth row for training), never on test rows.

use crate::Failure;
use crate::tables::sets::{Set, generated, mnist, own_files};
use privfit::account::Adjacency;
use std::path::Path;

/// A data set, and how its tables are read.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Whether cells are about cross-entropy and gradients of the nonconvex logistic loss, not about accuracy alone.
    pub(super) two_classes: bool,
    pub(super) load: fn(&Path) -> Result<Set, Failure>,
}

/// Every set.
pub(super) const SETS: &[Entry] = &[
    Entry { name: "Synthetic-L", two_classes: true, load: |_| generated(10_000, 20, 10, 1, true) },
    Entry { name: "a9a", two_classes: true, load: |shared| own_files(shared, "a9a", ["-1", "+1"], 123, 3.742) },
    Entry { name: "ijcnn1", two_classes: true, load: |shared| own_files(shared, "ijcnn1", ["-1", "1"], 22, 2.0) },
    Entry { name: "MNIST", two_classes: false, load: |shared| mnist(shared, "0 1 2 3 4 5 6 7 8 9", "pixels") },
    Entry { name: "MNIST features", two_classes: false, load: |shared| mnist(shared, "0 1 2 3 4 5 6 7 8 9", "scattering") },
];

/// Strength of the regulariser in the published runs.
pub(super) const STRENGTH: f64 = 0.001;
pub(super) const DELTA: f64 = 1e-5;

/// A method on a set.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) method: &'static str,
    pub(super) loss: Option<&'static str>,
    pub(super) settings: Vec<(&'static str, f64)>,
    pub(super) layers: Option<&'static str>,
    pub(super) adjacency: Adjacency,
    pub(super) epsilons: Vec<f64>,
    pub(super) seeds: usize,
}

/// Numbers of passes of the curves over passes.
pub(super) const PASSES: [f64; 5] = [1.5, 2.0, 3.0, 4.0, 5.0];
/// Strengths of smoothing.
pub(super) const SMOOTHING: [f64; 4] = [0.0, 1.0, 2.0, 3.0];

pub(super) fn smoothed(strength: f64) -> String {
    format!("noisy-sgd s={strength}")
}

fn two_classes(set: &str, epsilon: f64) -> Vec<Candidate> {
    // The length of a step, by validation rows.
    let long = if epsilon < 0.3 { 3.0 } else { 6.0 };
    let rows = match set {
        "a9a" => 32_561.0,
        "ijcnn1" => 49_990.0,
        _ => 8_000.0,
    };
    let rate: f64 = (1024.0f64 / rows).clamp(0.01, 1.0);
    let make = |name: &str, method: &'static str, settings: &[(&'static str, f64)]| Candidate {
        name: name.into(),
        method,
        loss: Some("logistic"),
        settings: settings.to_vec(),
        layers: None,
        adjacency: Adjacency::ReplaceOne,
        epsilons: vec![epsilon],
        seeds: 10,
    };
    let regular = ("nonconvex", STRENGTH);
    let sgd = |passes: f64| [regular, ("sampling_rate", rate), ("steps", (passes / rate).round()), ("learning_rate", long)];
    let mut out = vec![
        make("recursive-momentum", "recursive-momentum", &[regular]),
        make("recursive-momentum tuned", "recursive-momentum", &[regular, ("learning_rate", long)]),
        make("recursive-momentum joint", "recursive-momentum", &[regular, ("joint", 0.275), ("learning_rate", long)]),
        // At most five gradients of every record, each of the two of a step counted.
        make(
            "recursive-momentum 5 gradients",
            "recursive-momentum",
            &[regular, ("steps", 1.0 + (2.0 / rate).floor()), ("learning_rate", 4.0)],
        ),
        make("noisy-sgd", "noisy-sgd", &sgd(5.0)),
        make("noisy-gd 5 passes", "noisy-gd", &[regular, ("steps", 5.0)]),
        make("noisy-gd", "noisy-gd", &[regular]),
        make(
            "noisy-gd as DP-GD",
            "noisy-gd",
            &[regular, ("steps", 20.0), ("momentum", 0.0), ("learning_rate", 4.0), ("slope_clip", 1.0)],
        ),
        make("adaptive-gd", "adaptive-gd", &[regular]),
        make("random-round-sgd", "random-round-sgd", &[regular, ("sampling_rate", rate), ("steps", (8.0 / rate).round())]),
        make("objective", "objective", &[]),
        make("published-dp-srm", "published-dp-srm", &[regular, ("learning_rate", 0.1)]),
        make("published-dp-srm gamma 0.1", "published-dp-srm", &[regular, ("learning_rate", 0.3), ("fresh", 0.1)]),
        make("storm-without-noise", "storm-without-noise", &[regular, ("learning_rate", 4.0)]),
    ];
    for passes in PASSES {
        let steps = 1.0 + ((passes - 1.0) / rate).round();
        out.push(make(
            &format!("recursive-momentum {passes} passes"),
            "recursive-momentum",
            &[regular, ("steps", steps), ("learning_rate", long)],
        ));
        out.push(make(&format!("noisy-sgd {passes} passes"), "noisy-sgd", &sgd(passes)));
    }
    for strength in SMOOTHING {
        let mut settings = sgd(5.0).to_vec();
        settings.push(("smoothing", strength));
        out.push(make(&smoothed(strength), "noisy-sgd", &settings));
    }
    out
}

fn softmax() -> Vec<Candidate> {
    let make = |name: &str, method: &'static str, settings: &[(&'static str, f64)], epsilons: &[f64], seeds| Candidate {
        name: name.into(),
        method,
        loss: Some("softmax"),
        settings: settings.to_vec(),
        layers: None,
        adjacency: Adjacency::ZeroOut,
        epsilons: epsilons.to_vec(),
        seeds,
    };
    let every = [0.1, 0.15, 0.2, 0.25, 0.3];
    let mut out = vec![make("noisy-gd", "noisy-gd", &[], &every, 2)];
    for strength in SMOOTHING {
        let settings = [("smoothing", strength), ("sampling_rate", 0.05), ("steps", 100.0)];
        out.push(make(&smoothed(strength), "noisy-sgd", &settings, &every, 10));
    }
    for strength in [0.0, 3.0] {
        let name = format!("published-dp-lssgd s={strength}");
        out.push(make(&name, "published-dp-lssgd", &[("smoothing", strength)], &[0.1, 0.3], 1));
    }
    out.push(make("recursive-momentum", "recursive-momentum", &[("sampling_rate", 0.05), ("steps", 101.0)], &[0.1, 0.3], 3));
    let network = |name: &str, layers, settings: &[(&'static str, f64)]| Candidate {
        layers: Some(layers),
        ..make(name, "network", settings, &[1.2, 3.0, 7.0], 1)
    };
    out.push(network("network", "mnist_cnn", &[("correlated", 0.0)]));
    out
}

/// Methods of a set.
pub(super) fn of(set: &str) -> Vec<Candidate> {
    match set {
        "MNIST" => softmax(),
        "MNIST features" => vec![Candidate {
            name: "network".into(),
            method: "network",
            loss: Some("softmax"),
            settings: vec![("correlated", 0.0)],
            layers: None,
            adjacency: Adjacency::ZeroOut,
            epsilons: vec![0.1, 0.3, 1.2, 3.0, 7.0],
            seeds: 2,
        }],
        _ => [0.2, 0.5].into_iter().flat_map(|epsilon| two_classes(set, epsilon)).collect(),
    }
}
