//! A model on each part that a command of the user trains: it reads a file with the rows of the part and one with public points, and writes a label for
//! each point.
//!
//! *Privacy.* What is said of an ensemble of learners of our own (`confident.rs`, `threshold.rs`) asks one thing of a learner: that a part's answers depend on
//! the rows of that part alone. A command that crashes, hangs, writes garbage or too little has a fixed answer, no label for any point; how it ended,
//! what it printed and how long it took is shown to nobody. Every part takes the same public time: the next one begins when the time of this one is over,
//! even if it was done at once. One call sees nothing of another one and leaves nothing for the next (`sandbox.rs`); a system where that can't be had runs no commands, which is
//! found out before data are opened. The files of the records are hidden from it; that nothing else that it can read was made of them is the word of whoever gives the command.
//! Several at once share memory and caches of the machine: whoever asks for that takes it that one part cannot slow another down so much that it misses its time.

use crate::batch::Batch;
use crate::engine::Needs;
use crate::error::{Error, Result};
use crate::run::{Query, Run};
use crate::sandbox::{self, Call};
use crate::store::dataset::Unit;
use crate::value::Sensitive;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time after the last moment of a command in which its processes and its files in memory go: both are few.
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
    /// A directory that goes with this value, which no call writes to.
    pub directory: PathBuf,
    /// Files and directories that it must not see: those of the records.
    pub hidden: Vec<PathBuf>,
}

impl CommandLearner {
    /// How long so many parts take: public.
    pub fn duration(&self, parts: u32) -> Duration {
        (self.time + TIDY) * parts.div_ceil(self.at_once.max(1) as u32)
    }

    /// Makes the directory ready, and finds out whether commands can be kept apart on this system.
    pub fn prepare(&self) -> bool {
        sandbox::prepare(&self.directory).is_ok() && sandbox::is_possible(&self.directory, &self.hidden)
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

/// Rows of features with a heading; the label comes last.
fn write_rows(file: &File, features: usize, units: &mut dyn Iterator<Item = Unit<'_>>) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
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

/// The labels of a text with exactly so many lines; none if it is anything else.
fn read_labels(bytes: &[u8], count: usize, classes: usize) -> Option<Vec<u32>> {
    let label = |line: &str| -> Option<u32> {
        let number: f64 = line.trim().parse().ok()?;
        (number >= 0.0 && number < classes as f64 && number.fract() == 0.0).then_some(number as u32)
    };
    let labels: Option<Vec<u32>> = std::str::from_utf8(bytes).ok()?.lines().map(label).collect();
    labels.filter(|l| l.len() == count)
}

impl CommandLearner {
    /// Labels of one part; none whatever goes wrong.
    fn answer(&self, processor: usize, until: Instant, part: &Batch<'_>) -> Option<Vec<u32>> {
        let rows = sandbox::memory_file().ok()?;
        let mut own = Vec::new();
        part.chosen.each(0..part.data.unit_count(), |unit_index| own.push(unit_index));
        write_rows(&rows, part.data.dimension(), &mut own.into_iter().map(|unit_index| part.data.unit(unit_index))).ok()?;
        let call = Call {
            command: &self.command,
            directory: &self.directory,
            points: &self.points,
            hidden: &self.hidden,
            rows: &rows,
            most: 24 * (self.count as u64 + 1),
            time: until.saturating_duration_since(Instant::now()),
            memory: self.memory,
            processor,
        };
        read_labels(&sandbox::run(&call).ok()?, self.count, self.classes)
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
        let at_once = learner.at_once.max(1);
        let (began, slot) = (Instant::now(), learner.time + TIDY);
        let wait_for = |wave: usize| std::thread::sleep((began + slot * wave as u32).saturating_duration_since(Instant::now()));
        let mut models = Vec::with_capacity(self.parts.len());
        for (wave, parts) in self.parts.chunks(at_once).enumerate() {
            // Waves begin and end at public times, whatever the one before has done.
            wait_for(wave);
            let until = began + slot * wave as u32 + learner.time;
            let answers: Vec<Option<Vec<u32>>> = std::thread::scope(|scope| {
                let call = |(i, part)| scope.spawn(move || learner.answer(i, until, part));
                let calls: Vec<_> = parts.iter().enumerate().map(call).collect();
                calls.into_iter().map(|call| call.join().ok().flatten()).collect()
            });
            wait_for(wave + 1);
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

    /// A directory that goes at the end.
    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn scratch() -> Scratch {
        let word = crate::rng::Entropy::system().unwrap().for_units().unwrap().next_word();
        let path = std::env::temp_dir().join(format!("privfit-test-{word:016x}"));
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    const MEMORY: u64 = 1 << 28;

    /// Labels of the points by a script, for each of some parts: `None` where it counts as silent.
    fn answers(script: &str, parts: u32, seconds: f64, at_once: usize) -> Vec<Option<Vec<u32>>> {
        let directory = scratch();
        let (points, hidden) = (directory.0.join("points.csv"), directory.0.join("hidden.csv"));
        std::fs::write(&points, "x0,x1\n0,0\n1,1\n0.5,0\n").unwrap();
        std::fs::write(&hidden, "a private row\n").unwrap();
        let learner = CommandLearner {
            command: ["sh", "-c", script, "sh"].map(OsString::from).to_vec(),
            points,
            count: 3,
            classes: 2,
            time: Duration::from_secs_f64(seconds),
            memory: MEMORY,
            at_once,
            directory: directory.0.clone(),
            hidden: vec![hidden.clone()],
        };
        assert!(learner.prepare(), "this system keeps no commands apart");
        let names = || {
            let mut names: Vec<_> = walk(&directory.0);
            names.sort();
            names
        };
        let before = names();
        let (data, engine, entropy) = (dataset(40, 2, false, None), Threads::new(1), Entropy::simulated(3));
        let plan = crate::account::Event::NotPrivate { why: "test".into() };
        let mut run = Run::begin(&data, &engine, &entropy, &plan).unwrap();
        let parts = run.parts(parts).unwrap();
        let began = Instant::now();
        let models = run.execute(TrainByCommand { parts: &parts, learner: &learner, progress: &|| {} }).unwrap();
        let (took, planned) = (began.elapsed(), learner.duration(parts.len() as u32));
        assert!(took >= planned && took < planned + Duration::from_millis(200), "{script}: {took:?} for {planned:?}");
        assert_eq!(names(), before, "{script}: something was left");
        assert_eq!(std::fs::read_to_string(&hidden).unwrap(), "a private row\n");
        models.into_iter().map(|m| m.value).collect()
    }

    fn walk(path: &std::path::Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path());
        entries.flat_map(|e| if e.is_dir() { [vec![e.clone()], walk(&e)].concat() } else { vec![e] }).collect()
    }

    const ANSWER: &str = "printf '0\\n1\\n1\\n' > \"$3\"";

    /// A command reads its rows and answers; whatever else it does, its answer is none, nothing of it is left, and it took as long as all others.
    #[test]
    fn commands_answer_or_are_silent() {
        let good = answers(&format!("test $(wc -l < \"$1\") -gt 1 && test $(wc -l < \"$2\") = 4 && {ANSWER}"), 4, 0.25, 2);
        assert!(good.iter().all(|a| a.as_deref() == Some(&[0, 1, 1])), "{good:?}");
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
            "ln -s /dev/zero \"$3\"",
            "mkdir -p deep/er; chmod 000 deep; exit 1",
            "while mkdir d; do cd d; done; sleep 100",
            "head -c 1000000000 /dev/zero > full; exit 1",
            "trap '' TERM; while :; do sh -c 'sleep 50' & done",
        ] {
            let silent = answers(bad, 2, 0.2, 2);
            assert!(silent.iter().all(Option::is_none), "{bad}: {silent:?}");
        }
    }

    /// What it must not reach it does not reach: others' rows, processes, files and keys, the network, the terminal, sockets with a path, the records.
    #[test]
    fn commands_are_kept_apart() {
        let socket = scratch();
        let _heard = std::os::unix::net::UnixListener::bind(socket.0.join("s")).unwrap();
        let connects = |kind: &str, to: &str| {
            format!("python3 -c \"import socket; socket.socket(socket.AF_UNIX, socket.{kind}).connect('{to}')\"")
        };
        let tries = [
            // Rows of the other part: each has its own alone, wherever it looks.
            "test $(cat $(dirname \"$2\")/*/rows.csv $(dirname \"$2\")/rows.csv /proc/[0-9]*/cwd/rows.csv 2>/dev/null | sort -u | wc -l) -gt 39".to_string(),
            "echo 1 > \"$(dirname \"$2\")\"/left".into(),
            "echo 1 > /tmp/privfit-left".into(),
            "test $(ls -d /proc/[0-9]* | wc -l) -gt 9".into(),
            "test $(tail -n +3 /proc/self/net/dev | grep -vc 'lo:') -gt 0".into(),
            "test -c /dev/tty".into(),
            "ls /dev/pts/*".into(),
            "echo hello >&9".into(),
            "test -s \"$(dirname \"$2\")\"/hidden.csv".into(),
            "mount -o remount,bind,rw / || umount /".into(),
            "umount \"$(dirname \"$2\")\"/hidden.csv".into(),
            "unshare -rm sh -c 'mount -o remount,bind,rw / && test -w /'".into(),
            "python3 -c 'x = bytearray(1 << 30)'".into(),
            "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) != 0)'".into(),
            connects("SOCK_STREAM", socket.0.join("s").to_str().unwrap()),
            "python3 -c \"import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\"".into(),
        ];
        for reaches in tries {
            let all = answers(&format!("if {reaches} 2> /dev/null; then exit 1; fi; {ANSWER}"), 2, 0.5, 2);
            assert!(all.iter().all(Option::is_some), "{reaches}: {all:?}");
        }
        // What it may do: take memory, use threads and pairs of streams, leave processes behind, which go with it.
        for fine in [
            "python3 -c 'x = bytearray(1 << 20); import socket; socket.socketpair()'",
            "setsid sh -c 'while :; do sleep 1; done' &",
            "dd if=/dev/urandom of=/dev/null bs=1k count=4",
            "cat /etc/passwd > copy",
        ] {
            let all = answers(&format!("{fine} 2> /dev/null\n{ANSWER}"), 2, 0.5, 2);
            assert!(all.iter().all(Option::is_some), "{fine}: {all:?}");
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
