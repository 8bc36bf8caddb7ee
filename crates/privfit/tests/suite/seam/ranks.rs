//! Ranks of one owner: threads as processes, messages over channels, a reduction to the first rank and a broadcast.

use privfit::KernelError;
use privfit::engine::{Confidential, Engine, Key, Needs, Place, Share, Step, Threads};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

type Result<T> = std::result::Result<T, KernelError>;

/// Numbers, or the news that the sender has failed.
enum Message {
    Numbers(Vec<i64>),
    Failed,
}

/// One rank.
pub(crate) struct Rank {
    process: usize,
    processes: usize,
    threads: Threads,
    to: Vec<Sender<Message>>,
    from: Vec<Mutex<Receiver<Message>>>,
    opened: Mutex<HashSet<Step>>,
    dies: Option<Death>,
}

/// Which rank ends at which step: it fails and can say so, or it is killed and can't.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    pub(crate) rank: usize,
    pub(crate) at: u64,
    pub(crate) fails: bool,
}

/// So many of them, connected.
pub(crate) fn ranks(processes: usize, dies: Option<Death>) -> Vec<Rank> {
    let mut lines: Vec<Vec<_>> = (0..processes).map(|_| (0..processes).map(|_| Some(channel())).collect()).collect();
    let mut out = Vec::new();
    let mut senders: Vec<Vec<Sender<Message>>> = (0..processes).map(|_| Vec::new()).collect();
    let mut receivers: Vec<Vec<Mutex<Receiver<Message>>>> = (0..processes).map(|_| Vec::new()).collect();
    for (from, line) in lines.iter_mut().enumerate() {
        for (to, pair) in line.iter_mut().enumerate() {
            let (send, receive) = pair.take().unwrap();
            senders[from].push(send);
            receivers[to].push(Mutex::new(receive));
        }
    }
    for (process, (to, from)) in senders.into_iter().zip(receivers).enumerate() {
        let threads = Threads::new(1 + process % 2);
        out.push(Rank { process, processes, threads, to, from, opened: Mutex::default(), dies });
    }
    out
}

fn gone() -> KernelError {
    KernelError::Engine { what: "a rank of this job is gone" }
}

impl Rank {
    fn send(&self, to: usize, values: Vec<i64>) -> Result<()> {
        self.to[to].send(Message::Numbers(values)).map_err(|_| gone())
    }

    fn receive(&self, from: usize) -> Result<Vec<i64>> {
        match self.from[from].lock().unwrap().recv() {
            Ok(Message::Numbers(values)) => Ok(values),
            Ok(Message::Failed) | Err(_) => Err(gone()),
        }
    }

    /// What the first rank has, to all of them.
    fn broadcast(&self, values: Vec<i64>) -> Result<Vec<i64>> {
        if self.process > 0 {
            return self.receive(0);
        }
        (1..self.processes).try_for_each(|rank| self.send(rank, values.clone()))?;
        Ok(values)
    }

    /// Wrapping total over all ranks, known to all of them.
    fn total(&self, mut own: Vec<i64>) -> Result<Vec<i64>> {
        if self.process > 0 {
            self.send(0, own)?;
            return self.receive(0);
        }
        for rank in 1..self.processes {
            let other = self.receive(rank)?;
            own.iter_mut().zip(&other).for_each(|(a, b)| *a = a.wrapping_add(*b));
        }
        self.broadcast(own)
    }

    fn once(&self, step: Step) -> Result<()> {
        match self.dies {
            Some(Death { rank, at, fails }) if rank == self.process && step.number >= at => match fails {
                true => return Err(KernelError::Engine { what: "this rank failed" }),
                false => std::panic::panic_any("this rank was killed"),
            },
            _ => {}
        }
        match self.opened.lock().unwrap().insert(step) {
            true => Ok(()),
            false => Err(KernelError::Engine { what: "this step was opened before" }),
        }
    }

    pub(crate) fn steps(&self) -> usize {
        self.opened.lock().unwrap().len()
    }
}

impl Engine for Rank {
    fn threads(&self) -> &Threads {
        &self.threads
    }

    fn place(&self) -> Place {
        let noise = if self.process == 0 { 0..1 } else { 0..0 };
        Place { process: self.process, processes: self.processes, offers: Needs::Totals, noise, divisor: 1 }
    }

    fn open(&self, step: Step, share: Share<'_>, mut noise: Vec<i64>) -> Result<Vec<i64>> {
        self.once(step)?;
        // Only the first rank has noise; the sum that it broadcasts has it in it.
        noise.iter_mut().zip(share.values()).for_each(|(n, s)| *n = n.wrapping_add(*s));
        self.total(noise)
    }

    fn collect(&self, step: Step, share: Share<'_>) -> Result<Confidential<Vec<i64>>> {
        self.once(step)?;
        Ok(Confidential::new(self.total(share.values().to_vec())?))
    }

    fn secret(&self, own: Key) -> Result<Confidential<[u8; 32]>> {
        let bytes = self.broadcast(own.bytes().iter().map(|b| i64::from(*b)).collect())?;
        let bytes: Vec<u8> = bytes.iter().map(|b| *b as u8).collect();
        Ok(Confidential::new(bytes.try_into().map_err(|_| gone())?))
    }

    fn abandon(&self) {
        self.to.iter().for_each(|line| drop(line.send(Message::Failed)));
    }

    fn agree(&self, public: &[u8]) -> Result<Vec<u8>> {
        let bytes = self.broadcast(public.iter().map(|b| i64::from(*b)).collect())?;
        Ok(bytes.iter().map(|b| *b as u8).collect())
    }
}
