//! Golden accounting values: an answer below its lower tolerance is a privacy bug, above only looseness.

use privfit::request::{Query, parse};

/// The whole file through the same door as `privfit account --request`.
#[test]
fn every_golden_vector() {
    let text = include_str!("../data/accounting.json");
    let requests = parse(text).unwrap();
    let raw: serde_json::Value = serde_json::from_str(text).unwrap();
    let vectors = raw["vectors"].as_array().unwrap();
    assert_eq!((requests.len(), vectors.len()), (44, 44));
    for (request, vector) in requests.iter().zip(vectors) {
        let id = vector["id"].as_str().unwrap();
        let expected = vector["expected"].as_f64().unwrap();
        let tolerance = |key: &str| vector["tolerance"][key].as_f64().unwrap();
        let reply = request.answer().unwrap_or_else(|p| panic!("{id}: {p}"));
        assert!(reply.value >= expected * (1.0 - tolerance("below_rel")), "{id} under-reports: {} < {expected}", reply.value);
        assert!(reply.value <= expected * (1.0 + tolerance("above_rel")), "{id} is loose: {} > {expected}", reply.value);
        assert!(reply.lower <= reply.upper && reply.value == reply.upper, "{id}");
        // The lower bound is a bound as well.
        if reply.accountant == "pld" && reply.query == Query::Epsilon {
            assert!(reply.lower <= expected * (1.0 + 1e-7), "{id}: {} > {expected}", reply.lower);
            assert!(reply.upper - reply.lower <= 2e-3 * reply.upper, "{id}: a gap of {} .. {}", reply.lower, reply.upper);
        }
    }
}

fn ask(text: &str) -> Result<(f64, f64), String> {
    let requests = parse(text).map_err(|p| p.0)?;
    requests[0].answer().map(|r| (r.lower, r.upper)).map_err(|p| p.0)
}

/// Requests that an earlier version under-reported, hung or crashed on, with the truth by exact enumeration or a single step.
#[test]
fn hostile_numbers_are_answered_on_the_safe_side() {
    let epsilon = |adjacency: &str, delta: f64, mechanisms: &str| {
        ask(&format!(r#"{{"query":"epsilon","adjacency":"{adjacency}","delta":{delta:e},"mechanisms":[{mechanisms}]}}"#))
    };
    // Infinite mass above delta: no finite epsilon.
    assert!(epsilon("add_remove", 1e-5, r#"{"type":"approx","epsilon":0.1,"delta":1e-5,"count":2}"#).is_err());
    assert!(epsilon("add_remove", 1e-5, r#"{"type":"approx","epsilon":1,"delta":1e-3}"#).is_err());
    // An atom a rounding error away from the grid.
    let (_, upper) = epsilon("replace_one", 1e-5, r#"{"type":"approx","epsilon":0.0296,"delta":4.216e-8,"count":7}"#).unwrap();
    assert!(upper > 0.4 && upper < 0.42, "{upper}");
    // Lattice distributions, where the saddle point runs away: monotone in delta.
    let lattice = r#"{"type":"pure","epsilon":1.398,"count":5,"sampling":"poisson","sampling_probability":0.0002278}"#;
    let answers = [1e-6, 1e-7, 7e-9, 3e-9].map(|d| epsilon("replace_one", d, lattice).unwrap().1);
    assert!(answers.windows(2).all(|w| w[0] <= w[1]) && answers[1] > 0.0115, "{answers:?}");
    // Exponentials that do not fit in a double.
    let sampled = |nm: f64, q: f64, count: u32| {
        format!(
            r#"{{"type":"gaussian","noise_multiplier":{nm},"count":{count},"sampling":"poisson","sampling_probability":{q}}}"#
        )
    };
    for (nm, q, count, at_least) in [
        (0.05, 0.01, 10, 256.27),
        (0.06, 0.01, 100, 184.9),
        (0.05, 0.5, 100, 280.5),
        (0.02, 0.5, 1, 1453.7),
        (0.025, 0.01, 1, 918.0),
    ] {
        let (_, upper) = epsilon("add_remove", 1e-5, &sampled(nm, q, count)).unwrap();
        assert!(upper >= at_least, "{nm} {q} {count}: {upper}");
    }
    let (_, upper) = epsilon("add_remove", 1e-5, r#"{"type":"laplace","scale_over_sensitivity":0.001,"count":2}"#).unwrap();
    assert!(upper > 1999.0, "{upper}");
    // Almost nothing is lost, and almost nothing is reported; no panic on the way.
    for (nm, q) in [(1.0, 1e-16), (1.0, 1e-300), (1e17, 0.1), (1e300, 0.01)] {
        let (_, upper) = epsilon("add_remove", 1e-5, &sampled(nm, q, 10)).unwrap();
        assert!(upper < 0.1, "{nm} {q}: {upper}");
    }
    // Cancellation at tiny rates.
    let text = format!(r#"{{"query":"rdp","order":2,"adjacency":"add_remove","mechanisms":[{}]}}"#, sampled(1000.0, 1e-8, 1));
    let (_, upper) = ask(&text).unwrap();
    assert!((1.0000005e-22..1.0001e-22).contains(&upper), "{upper:e}");
    // Delta far in the tail: small, and not 1.
    let text = format!(
        r#"{{"query":"delta","epsilon":8.948e-4,"adjacency":"add_remove","mechanisms":[{}]}}"#,
        sampled(286.6, 6.778e-5, 3)
    );
    let (lower, upper) = ask(&text).unwrap();
    assert!(lower <= upper && upper < 1e-15, "{lower} {upper}");
    // Tables of the discrete Gaussian in a composition.
    let (lower, upper) =
        epsilon("add_remove", 1e-5, r#"{"type":"discrete_gaussian","sigma_int":4,"sensitivity_int":4,"count":2}"#).unwrap();
    assert!(lower <= upper && (6.57..6.58).contains(&upper), "{lower} {upper}");
}

#[test]
fn malformed_requests_say_what_to_do() {
    for (text, word) in [
        ("{", "JSON"),
        ("[]", "no request"),
        ("7", "no object"),
        (r#"{"query":"epsilon"}"#, "adjacency"),
        (r#"{"query":"epsilon","query":"delta","adjacency":"add_remove"}"#, "twice"),
        (r#"{"query":"tea","adjacency":"add_remove"}"#, "epsilon, delta"),
        (r#"{"query":"epsilon","adjacency":"sideways"}"#, "zero-out"),
        (r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5}"#, "no mechanism"),
        (r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"colour":1,"mechanisms":[]}"#, "unknown key"),
        (r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"magic"}]}"#, "unknown: use"),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":1,"sparkle":2}]}"#,
            "unknown key",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":-1}]}"#,
            "positive",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":1e400}]}"#,
            "JSON",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":null}]}"#,
            "left open",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":1,"count":0}]}"#,
            "whole number",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":0,"mechanisms":[{"type":"gaussian","noise_multiplier":1}]}"#,
            "give a delta",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"mechanisms":[{"type":"gaussian","noise_multiplier":1,"sampling":"poisson","sampling_probability":1.5}]}"#,
            "at most 1",
        ),
        (
            r#"{"query":"epsilon","adjacency":"add_remove","delta":1e-5,"route":"magic","mechanisms":[{"type":"gaussian","noise_multiplier":1}]}"#,
            "route",
        ),
    ] {
        let error = ask(text).expect_err(text);
        assert!(error.contains(word) && error.contains(':'), "{text}: {error}");
    }
    let deep = "[".repeat(100_000);
    assert!(ask(&deep).is_err(), "deep nesting ends in an error, not in a crash");
}
