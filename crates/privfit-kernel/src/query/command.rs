//! A model on each part that a command of the user trains: it reads a file with the rows of the part and one with public points, and writes a label for
//! each point.
//!
//! *Privacy.* What is said of an ensemble of learners of our own (`confident.rs`, `threshold.rs`) asks one thing of a learner: that a part's answers depend on
//! the rows of that part alone. A command that crashes, hangs, writes garbage or too little has a fixed answer, no label for any point; how it ended,
//! what it printed and how long it took is told to nobody. Every part takes the same public time: the next one begins when the time of this one is over,
//! even if it was done at once. One call leaves nothing for the next (`sandbox.rs`); where the system offers no namespaces, that is said before data
//! are opened and rests on the command. Several at once share memory and disk of the machine: whoever asks for that takes it that one part cannot slow
//! another down so much that it misses its time.

use crate::batch::Batch;
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::run::{Query, Run};
use crate::sandbox::{self, Isolation, Limits};
use crate::store::dataset::Unit;
use crate::value::Sensitive;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time after the last moment of a command in which its directory is removed.
const TIDY: Duration = Duration::from_millis(250);

/// A command, and what it may use: public.
#[derive(Clone, Debug)]
pub struct CommandLearner {
    /// Program and first arguments; three paths follow them: rows, points, and where labels go.
    pub command: Vec<OsString>,
    /// The file with the public points.
    pub points: PathBuf,
    /// How many there are.
    pub count: usize,
    /// Labels that there are.
    pub classes: usize,
    /// Time for a part.
    pub time: Duration,
    /// Bytes of address space.
    pub memory: u64,
    /// Parts at once.
    pub at_once: usize,
    /// Where private directories are made.
    pub directory: PathBuf,
    /// How far it is kept apart.
    pub isolation: Isolation,
}

impl CommandLearner {
    /// How long so many parts take: public.
    pub fn duration(&self, parts: u32) -> Duration {
        (self.time + TIDY) * parts.div_ceil(self.at_once.max(1) as u32)
    }
}

/// Trains by a command. Each model is its labels of the points.
pub struct TrainByCommand<'a, 'd> {
    /// The parts.
    pub parts: &'a [Batch<'d>],
    /// How.
    pub learner: &'a CommandLearner,
    /// Called for each model.
    pub progress: &'a dyn Fn(),
}

/// A directory that nobody else may look into, and that goes with this value.
struct Private(PathBuf);

impl Private {
    fn new(parent: &Path, name: &str) -> std::io::Result<Private> {
        let path = parent.join(name);
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Private(path))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.0).is_err() {
            open_up(&self.0);
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Directories that a command has locked can be removed again.
fn open_up(path: &Path) {
    #[cfg(unix)]
    let _ = std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// A file that only its owner reads.
fn own_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Rows of features with a heading; the label comes last.
pub(crate) fn write_rows(path: &Path, features: usize, units: &mut dyn Iterator<Item = Unit<'_>>) -> std::io::Result<()> {
    let mut out = BufWriter::new(own_file(path)?);
    (0..features).try_for_each(|i| write!(out, "x{i},"))?;
    writeln!(out, "label")?;
    let mut cells = vec![0f32; features];
    for unit in units {
        for row in 0..unit.rows() {
            cells.fill(0.0);
            unit.each(row, |i, x| cells[i] = x as f32);
            cells.iter().try_for_each(|x| write!(out, "{x},"))?;
            writeln!(out, "{}", unit.label(row))?;
        }
    }
    out.flush()
}

/// The labels of a file with exactly so many lines; none if it is anything else. Pipes, links and what is too long are not read.
fn read_labels(path: &Path, count: usize, classes: usize) -> Option<Vec<u32>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let most = 24 * (count as u64 + 1);
    if !file.metadata().ok().filter(|m| m.is_file() && m.len() <= most).is_some() {
        return None;
    }
    let mut text = String::new();
    file.take(most).read_to_string(&mut text).ok()?;
    let label = |line: &str| -> Option<u32> {
        let number: f64 = line.trim().parse().ok()?;
        (number >= 0.0 && number < classes as f64 && number.fract() == 0.0).then_some(number as u32)
    };
    let labels: Option<Vec<u32>> = text.lines().map(label).collect();
    labels.filter(|l| l.len() == count)
}

impl CommandLearner {
    /// Labels of one part; none whatever goes wrong.
    fn answer(&self, name: &str, processor: usize, until: Instant, part: &Batch<'_>) -> Option<Vec<u32>> {
        let private = Private::new(&self.directory, name).ok()?;
        let (rows, labels) = (private.0.join("rows.csv"), private.0.join("labels.txt"));
        let mut own = Vec::new();
        part.chosen.each(0..part.data.unit_count(), |unit_index| own.push(unit_index));
        write_rows(&rows, part.data.dimension(), &mut own.into_iter().map(|unit_index| part.data.unit(unit_index))).ok()?;
        let limits = Limits { until, memory: self.memory, processor, isolation: self.isolation };
        let arguments = [rows.into_os_string(), self.points.clone().into_os_string(), labels.clone().into_os_string()];
        sandbox::run(&self.command, &arguments, &private.0, limits).ok()?;
        read_labels(&labels, self.count, self.classes)
    }
}

impl<'d> Query<'d> for TrainByCommand<'_, 'd> {
    type Output = Vec<Sensitive<Option<Vec<u32>>>>;

    fn execute(self, run: &mut Run<'d>) -> Result<Self::Output> {
        run.seam.needs(Needs::Records)?;
        if self.parts.iter().any(|part| part.run != run.id) {
            return Err(Error::Mismatch { what: "the batch belongs to another run" });
        }
        let learner = self.learner;
        if learner.isolation == Isolation::None {
            return Err(Error::Mismatch { what: "commands are run on Linux only" });
        }
        let at_once = learner.at_once.max(1);
        let mut secret = run.entropy.rng(crate::rng::Stream::Unit)?;
        let began = Instant::now();
        let mut models = Vec::with_capacity(self.parts.len());
        for (wave, parts) in self.parts.chunks(at_once).enumerate() {
            // Waves begin at public times, whatever the one before has done.
            let slot = learner.time + TIDY;
            let until = began + slot * wave as u32 + learner.time;
            let names: Vec<String> = parts.iter().map(|_| format!("privfit-{:016x}", secret.next_word())).collect();
            let answers: Vec<Option<Vec<u32>>> = std::thread::scope(|scope| {
                let each = parts.iter().zip(&names).enumerate();
                let calls: Vec<_> =
                    each.map(|(i, (part, name))| scope.spawn(move || learner.answer(name, i, until, part))).collect();
                calls.into_iter().map(|call| call.join().ok().flatten()).collect()
            });
            std::thread::sleep((until + TIDY).saturating_duration_since(Instant::now()));
            for (value, part) in answers.into_iter().zip(parts) {
                (self.progress)();
                let part = part.origin.part;
                models.push(Sensitive { value, run: run.id, part, claim: None, order_dependent: false });
            }
        }
        Ok(models)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::engine::Threads;
    use crate::tests::dataset;
    use crate::{AskVotes, ConfidentVotes, Entropy};

    /// Labels of the points by a script, for each of some parts: `None` where it counts as silent.
    fn answers(script: &str, parts: u32, seconds: f64) -> (Vec<Option<Vec<u32>>>, Duration, usize) {
        let directory = Private::new(
            &std::env::temp_dir(),
            &format!("privfit-test-{:016x}", crate::rng::Entropy::system().unwrap().for_units().unwrap().next_word()),
        )
        .unwrap();
        let points = directory.0.join("points.csv");
        std::fs::write(&points, "x0,x1\n0,0\n1,1\n0.5,0\n").unwrap();
        let learner = CommandLearner {
            command: ["sh", "-c", script, "sh"].map(OsString::from).to_vec(),
            points,
            count: 3,
            classes: 2,
            time: Duration::from_secs_f64(seconds),
            memory: 1 << 28,
            at_once: 2,
            directory: directory.0.clone(),
            isolation: Isolation::of_this_system(),
        };
        let (data, engine, entropy) = (dataset(40, 2, false, None), Threads::new(1), Entropy::simulated(3));
        let plan = crate::account::Event::NotPrivate { why: "test".into() };
        let mut run = Run::begin(&data, &engine, &entropy, &plan).unwrap();
        let parts = run.parts(parts).unwrap();
        let began = Instant::now();
        let models = run.execute(TrainByCommand { parts: &parts, learner: &learner, progress: &|| {} }).unwrap();
        let took = began.elapsed();
        assert!(took >= learner.duration(parts.len() as u32), "{took:?}");
        let left = std::fs::read_dir(&directory.0).unwrap().count();
        (models.into_iter().map(|m| m.value).collect(), took, left)
    }

    /// A command reads its rows and answers; whatever else it does, its answer is none, its directory is gone, and it took as long as all others.
    #[test]
    fn commands_answer_or_are_silent() {
        let (good, took, left) = answers("test $(wc -l < \"$1\") -gt 1 && printf '0\\n1\\n1\\n' > \"$3\"", 4, 0.25);
        assert!(good.iter().all(|a| a.as_deref() == Some(&[0, 1, 1])), "{good:?}");
        assert!(took < Duration::from_secs_f64(1.6) && left == 1, "{took:?} {left}");
        for bad in [
            "exit 3",
            "sleep 100",
            "kill -9 $$",
            "printf '0\\n1\\n' > \"$3\"",
            "printf '0\\n1\\n7\\n' > \"$3\"",
            "printf '0\\n1\\nnan\\n' > \"$3\"",
            "printf '0\\n1\\n1\\n0\\n' > \"$3\"",
            "head -c 100000 /dev/zero > \"$3\"",
            "mkfifo \"$3\"",
            "ln -s /etc/hostname \"$3\"",
            "mkdir -p deep/er; chmod 000 deep; exit 1",
        ] {
            let (bad_answers, _, left) = answers(bad, 2, 0.15);
            assert!(bad_answers.iter().all(Option::is_none) && left == 1, "{bad}: {bad_answers:?} {left}");
        }
        // It may look at rows, not at what others left; and processes that it leaves do not outlive it.
        let leave = "echo 1 > \"$(dirname \"$2\")\"/left 2> /dev/null; setsid sh -c 'while :; do sleep 1; done' & printf '0\\n0\\n0\\n' > \"$3\"";
        let (all, _, left) = answers(leave, 2, 0.25);
        assert!(all.iter().all(Option::is_some), "{all:?}");
        if Isolation::of_this_system() == Isolation::Full {
            assert_eq!(left, 1, "a file was left outside of the private directory");
            // Nor can it make the rest writable again.
            let undo =
                "mount -o remount,bind,rw / ; umount /; unshare -rm true; test -w / && exit 1; printf '0\\n0\\n0\\n' > \"$3\"";
            assert!(answers(undo, 1, 0.25).0[0].is_some());
        }
    }

    /// Nothing comes of memory beyond the limit, and nothing reaches a network.
    #[test]
    fn limits_hold() {
        let eats = "python3 -c 'x = bytearray(1 << 30)' && printf '0\\n0\\n0\\n' > \"$3\"";
        assert!(answers(eats, 1, 0.6).0[0].is_none());
        let fine = "python3 -c 'x = bytearray(1 << 20)' && printf '0\\n0\\n0\\n' > \"$3\"";
        assert!(answers(fine, 1, 0.6).0[0].is_some());
        if Isolation::of_this_system() == Isolation::Full {
            let devices = "test $(tail -n +3 /proc/net/dev | grep -vc 'lo:') = 0 && printf '0\\n0\\n0\\n' > \"$3\"";
            let (own, _, _) = answers(&devices.replace("/proc/net/dev", "/proc/self/net/dev"), 1, 0.25);
            assert!(own[0].is_some(), "there is a network");
        }
    }

    /// Votes of commands go the way of all votes.
    #[test]
    fn labels_of_commands_are_votes() {
        let plan = ConfidentVotes::new(2, (3, 3), 0.05, None).unwrap();
        let label: fn(&Vec<u32>, &[f32]) -> u32 = |labels, point| labels.get(point[0] as usize).copied().unwrap_or(u32::MAX);
        let (data, engine, entropy) = (dataset(40, 2, false, None), Threads::new(1), Entropy::simulated(3));
        let mut run = Run::begin(&data, &engine, &entropy, &plan.event()).unwrap();
        let parts = run.parts(3).unwrap();
        let model = |part: &Batch<'_>, value| Sensitive {
            value,
            run: run.id,
            part: part.origin.part,
            claim: None,
            order_dependent: false,
        };
        let models = [model(&parts[0], Some(vec![1, 1, 0])), model(&parts[1], Some(vec![1, 0, 0])), model(&parts[2], None)];
        let mut open = run.execute(plan).unwrap();
        let votes = run.execute(AskVotes { open: &mut open, models: &models, label, point: &[0.0] }).unwrap().unwrap();
        assert!((votes[1] - 2.0).abs() < 1.0 && votes[0].abs() < 1.0, "{votes:?}");
    }
}
