//! A real Chromium that looks at a page: what it complains about, how wide the page becomes, and a picture.
//!
//! A window can't be as narrow as a phone, so that a phone is a frame of its width inside of a larger page. What is measured comes
//! from a script that is added to a copy of the page; the page itself is opened as it is, to hear complaints.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How large the screen is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum View {
    /// A window.
    Desktop,
    /// A phone of so many pixels.
    Phone(u32),
}

impl View {
    pub(crate) fn width(self) -> u32 {
        match self {
            View::Desktop => 1280,
            View::Phone(width) => width,
        }
    }
}

/// What the reader prefers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

/// What was seen.
pub(crate) struct Seen {
    /// The document after scripts ran; for a phone that of the outer page.
    pub(crate) dom: String,
    /// What the console said.
    pub(crate) complaints: Vec<String>,
    /// Width of the page's own window.
    pub(crate) width: u32,
    /// Elements that sensitivity over its right edge; empty if none.
    pub(crate) overflow: String,
    /// Whether the dark colours are in force.
    pub(crate) dark: bool,
    /// Plots that values can be read off.
    pub(crate) readouts: usize,
}

/// Measures a page from inside and tells the frame around it.
const PROBE: &str = "<script>addEventListener('load', function () {
  var wide = document.documentElement.clientWidth, out = [];
  document.querySelectorAll('body *').forEach(function (e) {
    if (!e.closest('.scroll') && !e.closest('svg') && e.getBoundingClientRect().right > wide + 0.5) { out.push(e.tagName + '.' + e.className); }
  });
  if (document.documentElement.scrollWidth > wide) { out.push('page ' + document.documentElement.scrollWidth); }
  document.querySelectorAll('.scroll').forEach(function (e) {
    if (wide < 500 && e.offsetParent && e.scrollWidth > e.clientWidth + 1) { out.push('table ' + e.scrollWidth); }
  });
  // Reading off works: a key moves the cross, and the values change.
  var read = 0;
  document.querySelectorAll('svg.plot').forEach(function (svg) {
    var line = svg.parentNode.querySelector('.readout'), before = line.textContent;
    svg.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
    read += !line.hidden && line.textContent !== before && svg.querySelector('.cross.on') ? 1 : 0;
  });
  var said = [wide, matchMedia('(prefers-color-scheme: dark)').matches ? 1 : 0,
    read, out.slice(0, 5).join(' ')].join('|');
  document.documentElement.dataset.seen = said;
  if (parent !== window) { parent.postMessage(said, '*'); }
});</script></body>";

fn chromium(directory: &Path, page: &str, window: (u32, u32), scheme: Scheme, what: &str) -> (String, Vec<String>) {
    let program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .into_iter()
        .find(|p| Path::new(p).exists())
        .expect("the pages are tested in a real browser and there is none: install the Debian package chromium (apt-get install chromium)");
    let profile = directory.join("profile");
    let _ = std::fs::remove_dir_all(&profile);
    let (out, err) = (directory.join("out.txt"), directory.join("err.txt"));
    let file = |path: &Path| Stdio::from(std::fs::File::create(path).unwrap());
    let colours = if scheme == Scheme::Dark { 0 } else { 1 };
    let mut child = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000"])
        .arg(format!("--blink-settings=preferredColorScheme={colours}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={},{}", window.0, window.1))
        .arg(what)
        .arg(format!("file://{}", directory.join(page).display()))
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .unwrap();
    let start = Instant::now();
    let done = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.success(),
            None if start.elapsed() > Duration::from_secs(180) => {
                let _ = child.kill();
                break false;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let said = std::fs::read(&err).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
    assert!(done, "the browser failed on {page}: {said}");
    let complaints = said.lines().filter(|l| l.contains("CONSOLE")).map(String::from).collect();
    (std::fs::read_to_string(&out).unwrap_or_default(), complaints)
}

/// A page around a page, as wide as a phone. It repeats what the probe says.
fn frame(directory: &Path, page: &str, width: u32, height: u32) -> String {
    let name = format!("frame-{page}");
    let text = format!(
        "<!DOCTYPE html><html><head><style>body{{margin:0}}iframe{{border:0}}</style></head><body><script>addEventListener('message', \
         function (e) {{ document.documentElement.dataset.seen = e.data; }});</script><iframe width=\"{width}\" height=\"{height}\" \
         src=\"{page}\"></iframe></body></html>"
    );
    std::fs::write(directory.join(&name), text).unwrap();
    name
}

/// Opens a page as it is, then a copy that is measured.
pub(crate) fn open(directory: &Path, page: &str, view: View, scheme: Scheme) -> Seen {
    let text = std::fs::read_to_string(directory.join(page)).unwrap();
    let (start, end) = (text.find("<meta http-equiv=").unwrap(), text.find("<meta name=\"viewport\"").unwrap());
    let probed = format!("probed-{page}");
    // The policy would not let the probe run.
    std::fs::write(directory.join(&probed), format!("{}{}", &text[..start], &text[end..]).replace("</body>", PROBE)).unwrap();
    let show = |name: &str| match view {
        View::Desktop => chromium(directory, name, (1280, 900), scheme, "--dump-dom"),
        View::Phone(width) => chromium(directory, &frame(directory, name, width, 844), (800, 900), scheme, "--dump-dom"),
    };
    let (dom, complaints) = show(page);
    let (measured, _) = show(&probed);
    let said =
        measured.split("data-seen=\"").nth(1).and_then(|t| t.split('"').next()).expect("the probe said nothing").to_string();
    let parts: Vec<&str> = said.splitn(4, '|').collect();
    Seen {
        dom,
        complaints,
        width: parts[0].parse().unwrap(),
        dark: parts[1] == "1",
        readouts: parts[2].parse().unwrap(),
        overflow: parts[3].to_string(),
    }
}

/// A picture of the top of a page, as PNG.
pub(crate) fn shot(directory: &Path, page: &str, view: View, scheme: Scheme) -> Vec<u8> {
    let picture = directory.join("shot.png");
    let _ = std::fs::remove_file(&picture);
    let what = format!("--screenshot={}", picture.display());
    match view {
        View::Desktop => chromium(directory, page, (1280, 1600), scheme, &what),
        View::Phone(width) => chromium(directory, &frame(directory, page, width, 1600), (800, 1600), scheme, &what),
    };
    std::fs::read(&picture).expect("the browser made no picture")
}
