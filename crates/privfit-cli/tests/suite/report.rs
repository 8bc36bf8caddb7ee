//! `privfit report` as a user meets it: the pages, what is refused, and how a real browser shows them.

use crate::browser::{Scheme, View, open, shot};
use crate::harness::Scratch;
use privfit::Artifact;
use privfit::account::{Adjacency, Event};
use privfit::ledger::chain::MacKey;
use privfit::ledger::record::Scope;
use privfit::ledger::{Ledger, Request, digest};

/// Names that would like to be code.
const HOSTILE: [&str; 3] =
    ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "</title></svg><b onclick='alert(2)'>"];

const MODEL_SECTIONS: [&str; 12] = [
    "guarantee",
    "curve",
    "tradeoff",
    "meaning",
    "weights",
    "accuracy",
    "assumptions",
    "theorems",
    "not-covered",
    "numerics",
    "limits",
    "identity",
];
const LEDGER_SECTIONS: [&str; 7] = ["budget", "spending", "jobs", "next", "meaning", "chain", "limits"];

const SCHEMA: &str = "[dataset]\nname = \"visits\"\n[target]\ncolumn = \"ill\"\nclasses = [\"no\", \"yes\"]\n\
                      [features.age]\ntype = \"number\"\nmin = 0\nmax = 10\n\
                      [features.ward]\ntype = \"category\"\nvalues = [\"north\", \"south\", \"west\"]\n";
const JOB: &str = "data = \"d.csv\"\nschema = \"s.toml\"\nepsilon = 0.5\ndelta = 1e-6\nout = \"m.json\"\ndate = \"2024-05-17\"\n\
                   [registry]\nname = \"Visits model\"\ncurator = \"Clinic\"\n";

/// A directory with a small table, its schema and a job.
fn place(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let wards = ["north", "south", "west"];
    let rows: String =
        (0..300).map(|i| format!("{},{},{}\n", i % 10, wards[i % 3], if i % 10 > 4 { "yes" } else { "no" })).collect();
    scratch.write("d.csv", format!("age,ward,ill\n{rows}"));
    scratch.write("s.toml", SCHEMA);
    scratch.write("job.toml", JOB);
    scratch
}

/// A ledger with eight jobs, one of which was never released.
fn eight_jobs(at: &Scratch) {
    at.ok("ledger create l --schema s.toml --epsilon 4 --delta 1e-6");
    for i in 1..=2 {
        at.ok(&format!("fit job.toml --ledger l --request fit-{i} --out m{i}.json"));
    }
    let mut ledger = Ledger::open(at.join("l").to_str().unwrap(), MacKey::default()).unwrap();
    for i in 3..=8u8 {
        let request = digest(&[&[i]]);
        let noise = 6.0 + f64::from(i);
        ledger
            .reserve(&Request {
                name: format!("count-{i}"),
                job: "query".into(),
                digest: request.clone(),
                scope: Scope { dataset: "visits".into(), unit: "row".into(), adjacency: Adjacency::ZeroOut },
                event: Event::gaussian(noise).repeated(2),
                resumable: false,
            })
            .unwrap();
        if i != 5 {
            ledger.commit(&request, vec![i]).unwrap();
        }
    }
}

fn has_sections(page: &str, ids: &[&str]) {
    ids.iter().for_each(|id| assert!(page.contains(&format!("<section id=\"{id}\"")), "no section {id}"));
}

/// What every page has: it asks nobody for anything, and says so to the browser.
fn is_closed(page: &str) {
    assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none';") && page.contains("name=\"viewport\""));
    for loads in
        ["http://", "https://", "src=\"", "url(", "@import", " onclick", " onload", " style=\"", "<link rel=\"stylesheet"]
    {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn a_model_has_a_page_a_card_and_its_numbers() {
    let at = place("model");
    at.ok("fit job.toml");
    at.write("r.json", "{\"rows\": 30, \"accuracy\": 0.875, \"auc\": 0.9}");
    at.ok("report m.json --results r.json");
    let page = at.read("m.html");
    has_sections(&page, &MODEL_SECTIONS);
    has_sections(&page, &["check"]);
    is_closed(&page);
    let certificate = at.ok("certificate show m.json --format json");
    let certificate: serde_json::Value = serde_json::from_str(&certificate).unwrap();
    let sentence = certificate["plain"]["sentence"].as_str().unwrap().replace('\'', "&#39;");
    for says in
        [&sentence, "Visits model", "2024-05-17", "Clinic", "87.50 %", "privfit certificate verify", "<b>0.5000</b>", "1e-6"]
    {
        assert!(page.contains(says), "{says}");
    }
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 3);
    // The same model, the same bytes; a report may be written over, whatever form it has.
    at.ok("report m.json --results r.json --out again.html");
    assert_eq!(at.read("again.html"), page);
    at.ok("report m.json --out again.html --format markdown");
    let card = at.read("again.html");
    assert!(
        card.starts_with("<!-- privfit report -->\n# Visits model\n") && card.contains("| zero-out | 0.5000 | 1e-6 |"),
        "{card}"
    );
    let json = at.ok("report m.json --format json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["private"] == true && json["certificate"] == certificate, "{json:#}");
    let curve = &json["curves"][0];
    let (points, attacks) = (curve["points"].as_array().unwrap(), curve["attacks"].as_array().unwrap());
    assert!(points.len() > 50 && attacks.len() > 20 && curve["adjacency"] == "zero-out");
    let at_one = attacks.iter().find(|a| a["false_positive_rate"] == 0.01).unwrap();
    let known = certificate["plain"]["zero_out"]["true_positive_rate"].as_f64().unwrap();
    let found = at_one["true_positive_rate"].as_f64().unwrap();
    assert!(found <= known && found > 0.97 * known, "{found} {known}");
    assert_eq!(at.ok("report m.json --out -").lines().next(), Some("<!DOCTYPE html>"));
}

/// Images of 4 x 4 pixels whose class is the brighter half, as IDX files, with a schema.
fn images(at: &Scratch) {
    let count = 400u32;
    let mut pixels: Vec<u8> = vec![0, 0, 8, 3];
    [count, 4, 4].iter().for_each(|n| pixels.extend(n.to_be_bytes()));
    let mut labels: Vec<u8> = vec![0, 0, 8, 1];
    labels.extend(count.to_be_bytes());
    for i in 0..count {
        let class = i % 2;
        pixels.extend((0..16).map(|p| if (p % 4 > 1) == (class == 1) { 200 + (i * p % 50) as u8 } else { (i * p % 50) as u8 }));
        labels.push(class as u8);
    }
    at.write("x.idx", pixels);
    at.write("y.idx", labels);
    at.write(
        "i.toml",
        "[dataset]\nname = \"halves\"\n[target]\nclasses = [\"0\", \"1\"]\n[features]\nkind = \"image\"\nshape = [4, 4]\nmax = 255\n",
    );
}

/// A network has its layers, its windows and a picture of its training; a linear model of images has a picture of its weights.
#[test]
fn a_network_shows_its_layers_and_its_training() {
    let at = place("network");
    images(&at);
    let fit = "fit --data x.idx --labels y.idx --schema i.toml --epsilon 2 --delta 1e-6";
    at.write(
        "n.toml",
        "out = \"n.json\"\n[model]\nkind = \"network\"\nlayers = [\"convolution 4 3 padding 1\", \"tanh\", \"flatten\", \"dense 5\", \"relu\"]\n\
         [set]\nsteps = 60\n",
    );
    at.ok(&format!("{fit} n.toml"));
    at.ok("report n.json --out n.html");
    let page = at.read("n.html");
    has_sections(&page, &MODEL_SECTIONS);
    has_sections(&page, &["training"]);
    is_closed(&page);
    for says in [
        "convolution 4 3 stride 1 padding 1",
        "4 x 4 x 4",
        "dense 2 (scores)",
        "Signal and noise of the gradient",
        "costs nothing",
    ] {
        assert!(page.contains(says), "{says}");
    }
    assert_eq!((page.matches("<svg class=\"plot\"").count(), page.matches("<svg class=\"filters\"").count()), (4, 1));
    let seen = open(&at, "n.html", View::Phone(360), Scheme::Dark);
    assert!(seen.complaints.is_empty() && seen.overflow.is_empty(), "{:?} {}", seen.complaints, seen.overflow);
    assert_eq!(seen.readouts, 4);
    // Sixty steps in fifty points, and the estimate is what the two lengths leave.
    let json: serde_json::Value = serde_json::from_str(&at.ok("report n.json --format json")).unwrap();
    let history = &json["layers"]["history"];
    let (points, noise) = (history["points"].as_array().unwrap(), history["noise"].as_f64().unwrap());
    assert!(points.len() == 50 && points[49]["step"] == 60 && noise > 0.0, "{history}");
    for p in points {
        let [noisy, signal] = ["noisy", "signal"].map(|k| p[k].as_f64().unwrap());
        assert!(
            (signal - (noisy * noisy - noise * noise).max(0.0).sqrt()).abs() < 1e-9 && p["moved"].as_f64().unwrap() > 0.0,
            "{p}"
        );
    }
    assert_eq!(json["filters"]["size"], serde_json::json!([3, 3]));
    assert!(at.ok("report n.json --format markdown").contains("| dense 5 | 5 | 325 |"));
    // The same on the screen, and for programs.
    let shown = at.ok("model show n.json");
    assert!(
        shown.contains("60 steps") && shown.contains("dense 2 (scores of the classes)") && shown.contains("377 weights"),
        "{shown}"
    );
    let listed = at.json("model show n.json");
    assert!(listed["layers"][0]["shape"] == serde_json::json!([4, 4, 4]) && listed["history"] == *history, "{listed}");
    at.refused("model show n.json --column age", 2, "has no curves");
    let weights = at.ok("export n.json --format csv");
    assert!(weights.lines().count() == 378 && weights.contains("\n4,dense 5,bias,,4,"), "{weights}");
    at.ok(&format!("{fit} --method objective --loss logistic --out l.json"));
    at.ok("report l.json --out l.html");
    let page = at.read("l.html");
    assert!(
        page.contains("The weights of each score")
            && page.contains("Weights, largest first")
            && !page.contains("id=\"training\"")
    );
}

#[test]
fn results_are_lines_of_runs_too() {
    let at = place("results");
    at.ok("fit job.toml");
    at.write(
        "r.jsonl",
        "{\"epsilon\": 0.5, \"accuracy\": 0.7}\n{\"epsilon\": 0.5, \"accuracy\": 0.72}\n{\"epsilon\": 2, \"accuracy\": 0.8}\n\
         {\"epsilon\": null, \"accuracy\": 0.9}\n",
    );
    at.ok("report m.json --results r.jsonl --out r.html");
    let page = at.read("r.html");
    assert!(page.contains("2 runs from 70.00 % to 72.00 %") && page.contains("without privacy: 90.00 %"), "{page}");
    at.write("bad.json", "{\"accuracy\": \"high\"}");
    assert_eq!(
        at.refused("report m.json --results bad.json --out r.html", 2, "give the JSON that `privfit evaluate` prints"),
        ""
    );
}

#[test]
fn what_does_not_hold_gets_no_page() {
    let at = place("refused");
    at.ok("fit job.toml");
    let text = at.read("m.json");
    let mut false_one = Artifact::from_json(&text).unwrap();
    false_one.certificate.guarantee.zero_out = Some(0.1);
    at.write("false.json", false_one.to_json().unwrap());
    assert_eq!(at.refused("report false.json --out r.html", 1, "does not hold: epsilon under zero-out"), "");
    let mut worded = Artifact::from_json(&text).unwrap();
    worded.certificate.plain.sentence = "Nobody can learn anything.".into();
    at.write("worded.json", worded.to_json().unwrap());
    assert_eq!(at.refused("report worded.json --out r.html", 1, "edited in plain"), "");
    at.write("damaged.json", text.replacen("visits", "visitz", 1));
    assert_eq!(at.refused("report damaged.json --out r.html", 4, "digest"), "");
    at.write("random.json", [0u8, 159, 146, 150]);
    assert_eq!(at.refused("report random.json --out r.html", 4, "damaged"), "");
    assert_eq!(at.refused("report nothing.json --out r.html", 2, "check the path"), "");
    assert!(!at.join("r.html").exists());
    // A simulation says so, and states no epsilon.
    at.ok("fit job.toml --simulate 7 --out sim.json");
    let (code, _, err) = at.outcome("report sim.json");
    assert!(code == Some(0) && err.contains("not private"), "{err}");
    let page = at.read("sim.html");
    assert!(page.contains("<h2 id=\"guarantee-h\">Nothing is guaranteed</h2>") && !page.contains("Why it is private"));
    assert!(
        page.contains("class=\"banner\"")
            && page.contains("This model is NOT private.")
            && page.contains("Nothing is guaranteed")
    );
    assert!(
        !page.contains("<section id=\"curve\"") && !page.contains("0.5000") && !page.contains("epsilon 0."),
        "states an epsilon"
    );
    assert!(at.ok("report sim.json --format markdown").contains("**This model is NOT private.**"));
    // A certificate that claims to be private over a record that is not.
    let mut liar = Artifact::from_json(&at.read("sim.json")).unwrap();
    liar.certificate.guarantee.private = true;
    at.write("liar.json", liar.to_json().unwrap());
    assert_eq!(at.refused("report liar.json --out r.html", 1, "not private"), "");
}

#[test]
fn files_that_are_needed_are_not_written_over() {
    let at = place("places");
    at.ok("fit job.toml");
    eight_jobs(&at);
    let model = at.read("m.json");
    at.write("r.json", "{\"accuracy\": 0.8}");
    assert_eq!(at.refused("report m.json --out m.json", 2, "give another --out"), "");
    assert_eq!(at.refused("report m.json --out ./m.json --overwrite", 2, "give another --out"), "");
    assert_eq!(at.refused("report l --out l --overwrite", 2, "give another --out"), "");
    assert_eq!(at.refused("report l --out l-wal", 2, "give another --out"), "");
    assert_eq!(at.refused("report m.json --results r.json --out r.json --overwrite", 2, "give another --out"), "");
    assert_eq!(at.refused("report m.json --out d.csv", 2, "--overwrite"), "");
    assert_eq!(at.refused("report m.json --out nowhere/r.html", 2, "there is no directory"), "");
    assert_eq!(at.refused("report l --results r.json --out r.html", 2, "leave out --results"), "");
    assert_eq!(at.refused("report m.json --ledger-key d.csv --out r.html", 2, "leave out --ledger-key"), "");
    assert_eq!(at.refused("report postgres://nobody@localhost/none#x", 2, "give --out"), "");
    assert!(at.read("m.json") == model && at.read("d.csv").starts_with("age"));
    at.write("old.txt", "a letter");
    at.ok("report m.json --out old.txt --overwrite");
    assert!(at.read("old.txt").starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_ledger_has_a_page() {
    let at = place("ledger");
    eight_jobs(&at);
    at.ok("report l");
    let page = at.read("l.html");
    has_sections(&page, &LEDGER_SECTIONS);
    is_closed(&page);
    let shown: serde_json::Value = serde_json::from_str(&at.ok("ledger show l --format json")).unwrap();
    let up = |key: &str| privfit::certificate::round_up(shown["spent"][key].as_f64().unwrap());
    let sentence = format!("8 jobs, epsilon {} composed; basic composition {}", up("fixed"), up("added"));
    for says in
        [sentence.as_str(), &up("filter"), "cap 4", "1 job was reserved and not released", "count-7", "One more job may have"]
    {
        assert!(page.contains(says), "{says}\n{page}");
    }
    assert_eq!(page.matches("reserved, not released").count(), 1);
    at.ok("report l --out again.html");
    assert_eq!(at.read("again.html"), page);
    let json: serde_json::Value = serde_json::from_str(&at.ok("report l --format json")).unwrap();
    assert_eq!((json["jobs"].as_array().unwrap().len(), json["filter"].as_f64()), (8, shown["spent"]["filter"].as_f64()));
    assert!(at.ok("report l --format markdown").contains(&sentence));
    // An empty one, one with a key, and a damaged one.
    std::fs::write(at.join("key"), [7u8; 32]).unwrap();
    at.ok("ledger create k --schema s.toml --epsilon 2 --delta 1e-6 --ledger-key key");
    at.ok("report k --ledger-key key");
    assert!(at.read("k.html").contains("Nothing was spent yet."));
    assert_eq!(at.refused("report k --out r.html", 4, "--ledger-key"), "");
    let mut bytes = std::fs::read(at.join("l")).unwrap();
    let body = b"count-7";
    let place = bytes.windows(body.len()).position(|w| w == body).unwrap();
    bytes[place] = b'C';
    std::fs::write(at.join("l"), bytes).unwrap();
    assert_eq!(at.refused("report l --out r.html", 4, "damaged"), "");
}

/// A model whose every name would like to be code.
fn hostile(at: &Scratch) {
    let quote = |t: &str| format!("\"{}\"", t.replace('\\', "\\\\").replace('"', "\\\""));
    let schema = format!(
        "[dataset]\nname = {}\n[target]\ncolumn = \"ill\"\nclasses = [{}, \"no\"]\n[features.{}]\ntype = \"number\"\nmin = 0\nmax = 10\n\
         [features.ward]\ntype = \"category\"\nvalues = [{}, {}, {}]\n",
        quote(HOSTILE[0]),
        quote(HOSTILE[2]),
        quote(HOSTILE[0]),
        quote(HOSTILE[0]),
        quote(HOSTILE[1]),
        quote(HOSTILE[2]),
    );
    at.write("hostile.toml", schema);
    let rows: String = (0..60).map(|i| format!("{},north,{}\n", i % 10, if i % 2 == 0 { "no" } else { HOSTILE[2] })).collect();
    at.write("hostile.csv", format!("{},ward,ill\n{rows}", HOSTILE[0]));
    let mut job = String::from(
        "data = \"hostile.csv\"\nschema = \"hostile.toml\"\nepsilon = 1.0\ndelta = 1e-6\nout = \"h.json\"\n[registry]\n",
    );
    for (i, key) in ["name", "curator", "contact", "description", "utility", "intended_use"].iter().enumerate() {
        job += &format!("{key} = {}\n", quote(HOSTILE[i % 3]));
    }
    at.write("hostile-job.toml", job);
    at.ok("fit hostile-job.toml");
    at.write("h-results.json", "{\"accuracy\": 0.5, \"<img src=x onerror=alert(3)>\": 1}");
}

#[test]
fn names_are_not_code() {
    let at = place("hostile");
    hostile(&at);
    at.ok("report h.json --results h-results.json --out h.html");
    let page = at.read("h.html");
    assert_eq!(page.matches("<script>").count(), 1, "only ours");
    assert!(!page.contains("<img") && !page.contains("<b onclick") && page.matches("</title>").count() > 100);
    assert!(
        page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;")
    );
    let card = at.ok("report h.json --format markdown");
    assert!(!card.contains("<script") && !card.contains("<img") && card.contains("&lt;img src=x"), "{card}");
    // And a browser thinks so too: no script of a name ran, nothing was asked for.
    let seen = open(&at, "h.html", View::Desktop, Scheme::Light);
    assert!(seen.complaints.is_empty(), "{:?}", seen.complaints);
    assert!(!seen.dom.contains("<img") && !seen.dom.contains("<b onclick"));
    // Even if a script came into the page, the policy would not let it run.
    at.write("forced.html", page.replace("</main>", "<script>document.documentElement.dataset.ran = 1</script></main>"));
    let forced = open(&at, "forced.html", View::Desktop, Scheme::Light);
    assert!(!forced.dom.contains("data-ran") && forced.complaints.iter().any(|c| c.contains("Content Security Policy")));
}

#[test]
fn browsers_show_both_pages() {
    let at = place("browser");
    at.ok("fit job.toml");
    eight_jobs(&at);
    at.write("r.jsonl", "{\"epsilon\": 0.5, \"accuracy\": 0.7}\n{\"epsilon\": 2, \"accuracy\": 0.8}\n");
    at.ok("report m.json --results r.jsonl --out model.html");
    at.ok("report l --out ledger.html");
    hostile(&at);
    at.ok("report h.json --out hostile.html");
    for (page, sections, plots) in
        [("model.html", &MODEL_SECTIONS[..], 3), ("ledger.html", &LEDGER_SECTIONS, 1), ("hostile.html", &MODEL_SECTIONS, 2)]
    {
        // A browser takes over a second to start: every view of one page, and the widest and narrowest of the others, which share its style.
        let every = page == "model.html" || std::env::var_os("PRIVFIT_SWEEP").is_some();
        let mut pictures = Vec::new();
        for scheme in [Scheme::Light, Scheme::Dark] {
            let views = match (every, scheme) {
                (true, Scheme::Light) => &[View::Desktop, View::Phone(390), View::Phone(360)][..],
                (true, Scheme::Dark) => &[View::Desktop, View::Phone(390)],
                (false, Scheme::Light) => &[View::Desktop, View::Phone(360)],
                (false, Scheme::Dark) => &[],
            };
            for &view in views {
                let seen = open(&at, page, view, scheme);
                assert!(seen.complaints.is_empty(), "{page} {view:?} {scheme:?}: {:?}", seen.complaints);
                assert!(seen.overflow.is_empty(), "{page} {view:?}: wider than the screen: {}", seen.overflow);
                assert_eq!((seen.width, seen.dark), (view.width(), scheme == Scheme::Dark), "{page} {view:?} {scheme:?}");
                // The script found every plot and offers to read values off.
                assert_eq!(seen.readouts, plots, "{page} {view:?}");
                if view == View::Desktop {
                    has_sections(&seen.dom, sections);
                }
            }
            if every {
                pictures.push(shot(&at, page, View::Desktop, scheme));
                pictures.push(shot(&at, page, View::Phone(390), scheme));
            }
        }
        assert!(pictures.iter().all(|p| p.starts_with(b"\x89PNG") && p.len() > 20_000), "{page}");
        assert!(!every || pictures[0] != pictures[2] && pictures[1] != pictures[3], "{page}: dark looks like light");
    }
}
