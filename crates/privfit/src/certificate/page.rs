//! The certificate as a page of plain text, for a privacy officer. Epsilons and percentages are rounded up.

use super::{Certificate, Release, Risk};
use privfit_kernel::account::Adjacency;

/// Columns of the page.
const WIDTH: usize = 100;
/// Where text begins.
const INDENT: usize = 14;
/// Kinds of releases that the page lists.
const LISTED: usize = 8;

/// An epsilon with four digits, rounded up: what is printed must not be smaller than what is proved.
pub fn round_up(epsilon: f64) -> String {
    let rounded = (epsilon * 1e4).ceil() / 1e4;
    format!("{:.4}", if rounded < epsilon { rounded + 1e-4 } else { rounded })
}

/// A share as a percentage with two digits, rounded up, 100 at the most.
pub(crate) fn percent_up(share: f64) -> String {
    format!("{:.2}", ((share * 1e4).ceil() / 1e2).min(100.0))
}

fn epsilon(value: Option<f64>) -> String {
    value.map_or("infinite".into(), round_up)
}

fn stated(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "not stated".into())
}

/// Lines of at most so many columns. Nothing of a file may move the cursor of whoever reads it.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => line.push_str(&format!(" {word}")),
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

struct Page(String);

impl Page {
    fn heading(&mut self, text: &str) {
        self.0.push_str(&format!("\n{}\n", text.to_uppercase()));
    }

    /// Text alone.
    fn text(&mut self, text: &str) {
        wrap(text, WIDTH - 2).iter().for_each(|line| self.0.push_str(&format!("  {line}\n")));
    }

    /// A label and text beside it.
    fn line(&mut self, label: &str, text: &str) {
        for (i, line) in wrap(text, WIDTH - INDENT).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            self.0.push_str(format!("  {label:<width$}{line}", width = INDENT - 2).trim_end());
            self.0.push('\n');
        }
    }

    fn list<'a>(&mut self, label: &str, items: impl IntoIterator<Item = &'a str>) {
        for (i, item) in items.into_iter().enumerate() {
            for (k, line) in wrap(item, WIDTH - INDENT - 2).iter().enumerate() {
                let label = if i + k == 0 { label } else { "" };
                let mark = if k == 0 { "-" } else { " " };
                self.0.push_str(&format!("  {label:<width$}{mark} {line}\n", width = INDENT - 2));
            }
        }
    }

    fn row(&mut self, cells: [&str; 4]) {
        let line = format!("  {:<42}{:>12}{:>12}{:>30}", cells[0], cells[1], cells[2], cells[3]);
        self.0.push_str(&format!("{}\n", line.trim_end()));
    }

    fn risk(&mut self, question: &str, risk: Option<Risk>) {
        let Some(r) = risk else { return self.row([question, "no bound", "no bound", "no bound"]) };
        let belief = match r.except == 0.0 {
            true => format!("{} %", percent_up(r.posterior)),
            false => format!("{} % (but for {:.1e})", percent_up(r.posterior), 1.05 * r.except),
        };
        let (right, found) = (format!("{} %", percent_up(r.accuracy)), format!("{} %", percent_up(r.true_positive_rate)));
        self.row([question, &right, &found, &belief]);
    }
}

/// A release in a line: how often, what, with which noise.
pub(crate) fn release_line(r: &Release) -> String {
    let mut text = if r.times == 1 { "once: ".to_string() } else { format!("{} times: ", r.times) };
    text.push_str(&r.what);
    if let Some(nm) = r.noise_multiplier {
        text.push_str(&format!(", noise {} times the sensitivity of one unit", crate::method::rounded(nm)));
    }
    if let Some(rate) = r.rate {
        text.push_str(&format!(", each unit taking part with probability {}", crate::method::rounded(rate)));
    }
    text
}

/// The page. `released` are lines about the released numbers themselves, which the certificate does not hold.
pub fn render(c: &Certificate, released: &[String]) -> String {
    let mut p = Page("PRIVACY CERTIFICATE\n".into());
    head(c, &mut p);
    claim(c, &mut p);
    basis(c, released, &mut p);
    rest(c, &mut p);
    p.text("Check it: `privfit certificate verify MODEL` recomputes every number from the recorded noise.");
    p.0
}

fn head(c: &Certificate, p: &mut Page) {
    let units = if c.unit.kind == "row" { "rows" } else { "units" };
    p.line("model", &stated(&c.registry.name));
    p.line("data", &format!("{}, {} {units}", c.identity.data, c.adjacency.units));
    p.line("written", &format!("by {}, {}", c.identity.program, c.identity.date.as_deref().unwrap_or("day not stated")));
    p.line("weights", &format!("SHA-256 {}", c.identity.model_sha256));
    match &c.identity.ledger {
        None => p.line("ledger", "none: what else was released from these records is not known"),
        Some(l) => {
            let spent = format!("epsilon {} of {} spent at delta {:e}", round_up(l.epsilon), l.cap_epsilon, l.delta);
            p.line("ledger", &format!("{}, record {}, job {} of the data set: {spent}", l.ledger, l.sequence, l.jobs));
        }
    }
}

fn claim(c: &Certificate, p: &mut Page) {
    let g = &c.guarantee;
    p.heading("In plain words");
    p.text(&c.plain.sentence);
    if g.private {
        p.row(["the attacker asks", "is right", "finds", "believes afterwards"]);
        p.risk("was this record used, or blank? (zero-out)", c.plain.zero_out);
        p.risk("this record, or that one? (replace-one)", c.plain.replace_one);
        p.text("At most. Is right: at even odds. Finds: at 1 % false alarms. Believes: after even odds, exceptions in brackets.");
    }
    p.heading("Guarantee");
    if !g.private {
        p.line("epsilon", "infinite: not private");
        p.line("because", &stated(&g.why_not));
        p.line("asked for", &format!("epsilon {} at delta {:e} under {}", g.asked_epsilon, g.delta, g.asked_adjacency));
        return;
    }
    let more = match g.asked_adjacency == Adjacency::AddRemove {
        true => format!(", {} under add-remove", epsilon(g.add_remove)),
        false => String::new(),
    };
    p.line("epsilon", &format!("{} under zero-out, {} under replace-one{more}", epsilon(g.zero_out), epsilon(g.replace_one)));
    p.line("delta", &format!("{:e} ({} differential privacy); epsilons are rounded {}", g.delta, g.variant, g.rounding));
    p.line("asked for", &format!("epsilon {} under {}", g.asked_epsilon, g.asked_adjacency));
    p.line("covers", &g.scope);
    let cells = |pick: &dyn Fn(&super::Point) -> String| g.profile.iter().map(pick).collect::<Vec<_>>().concat();
    p.0.push_str(&format!("  at delta    {}\n", cells(&|x| format!("{:>9}", format!("{:e}", x.delta)))));
    p.0.push_str(&format!("  zero-out    {}\n", cells(&|x| format!("{:>9}", epsilon(x.zero_out)))));
    p.0.push_str(&format!("  replace-one {}\n", cells(&|x| format!("{:>9}", epsilon(x.replace_one)))));
}

fn basis(c: &Certificate, released: &[String], p: &mut Page) {
    p.heading("Whose privacy");
    p.line("unit", &format!("{}; {}", c.unit.mapping, c.unit.group));
    for notion in &c.adjacency.notions {
        p.line(notion.name.name(), &notion.meaning);
    }
    p.heading("What was released");
    let m = &c.mechanism;
    p.line("method", &format!("{}, loss {} ({})", m.method, m.loss, m.source));
    p.list("released", released.iter().map(String::as_str));
    let mut releases: Vec<String> = m.releases.iter().take(LISTED).map(release_line).collect();
    if m.releases.len() > LISTED {
        releases.push(format!("and {} more: the JSON form lists them", m.releases.len() - LISTED));
    }
    p.list("noise", releases.iter().map(String::as_str));
    let plan: Vec<String> = m.plan.iter().map(|(k, v)| format!("{k}: {v}")).collect();
    p.line("plan", &plan.join("; "));
    p.line("theorem", &m.theorem);
    if !m.edits.is_empty() {
        p.line(
            "edited",
            &format!("{}; edits look at released numbers only, so that the guarantee is the same", m.edits.join("; ")),
        );
    }
    p.heading("How the numbers were worked out");
    for (label, bounds) in [("zero-out", &c.accounting.zero_out), ("replace-one", &c.accounting.replace_one)] {
        let Some(b) = bounds else { continue };
        let low = if b.lower > 0.0 { format!(", and none can prove less than {:.4}", b.lower) } else { String::new() };
        let renyi = b.renyi.map_or(String::new(), |r| format!("; Renyi accounting would say {}", round_up(r)));
        p.line(label, &format!("at most {} by the {} accountant{low}{renyi}", round_up(b.upper), b.accountant));
    }
    p.line("sampling", &c.accounting.amplification);
    p.line("composition", &c.accounting.composition);
    p.heading("Not protected");
    let facts: Vec<String> = c.unprotected.facts.iter().map(|f| format!("{} [{}]", f.what, f.source)).collect();
    p.line("public", &facts.join("; "));
    p.list("not covered", c.unprotected.not_covered.iter().map(String::as_str));
}

fn rest(c: &Certificate, p: &mut Page) {
    p.heading("What it rests on");
    let enforced: Vec<&str> = c.assumptions.enforced.iter().map(|e| e.what.as_str()).collect();
    p.line("enforced", &format!("{} (the JSON form names the test behind each)", enforced.join("; ")));
    p.list("assumed", c.assumptions.assumed.iter().map(String::as_str));
    p.heading("Before training");
    p.line("method", &format!("chosen {}", c.preparation.method));
    let given: Vec<String> = c.preparation.given.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    let given = if given.is_empty() { "none".into() } else { given.join(", ") };
    p.line("settings", &format!("given: {given}; others: {}", c.preparation.other));
    p.line("tuning", &c.preparation.declaration);
    p.heading("Deployment and security");
    p.line("trust", &format!("{} model: {}", c.deployment.model, c.deployment.actors));
    p.line("access", &format!("{}; {}; {}", c.deployment.release, c.deployment.access, c.deployment.retention));
    p.line("randomness", &c.security.randomness);
    p.line("numerics", &c.security.precision);
    p.line("limits", &c.security.limits.join("; "));
    p.heading("Declared by the publisher, not checked");
    let r = &c.registry;
    let curators = (!r.curators.is_empty()).then(|| r.curators.join(", "));
    let mut open = Vec::new();
    for (label, value) in [
        ("curator", &curators),
        ("contact", &c.contact.contact),
        ("description", &r.description),
        ("use", &r.intended_use),
        ("region", &r.region),
        ("sector", &r.sector),
        ("published", &r.publication_date),
        ("usefulness", &c.utility.statement),
        ("licence", &c.contact.licence),
        ("expiry", &c.contact.expiry),
        ("revision", &c.contact.revision),
    ] {
        match value {
            Some(value) => p.line(label, value),
            None => open.push(label),
        }
    }
    if !open.is_empty() {
        p.line("not stated", &open.join(", "));
    }
    p.0.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up() {
        for (x, text) in [(1.0, "1.0000"), (1.00001, "1.0001"), (0.99999, "1.0000"), (0.0, "0.0000"), (3.25, "3.2500")] {
            assert_eq!(round_up(x), text);
        }
        for i in 0..10_000 {
            let x = f64::from(i) * 1.000_37e-3;
            let shown: f64 = round_up(x).parse().unwrap();
            assert!(shown >= x && shown < x + 2.001e-4, "{x} {shown}");
        }
        let shares = [percent_up(0.519_938_81), percent_up(0.999_999_9), percent_up(0.5)];
        assert_eq!(shares, ["52.00", "100.00", "50.00"]);
    }

    #[test]
    fn lines_are_wrapped_and_harmless() {
        assert_eq!(wrap("one two\u{1b}[2J three", 8), ["one two", "[2J", "three"]);
        assert_eq!(wrap("", 8), [""]);
    }
}
