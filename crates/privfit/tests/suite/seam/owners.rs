//! Data owners who do not trust each other: what an owner sends is its share, with noise of its own, under masks that it shares with each other
//! owner and that add up to zero.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use privfit::KernelError;
use privfit::engine::{Confidential, Engine, Key, Needs, Place, Share, Step, Threads};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

type Result<T> = std::result::Result<T, KernelError>;

/// What one owner did in one step. A test sees all of it; an owner sees its own share and noise, and what everybody sent.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) owner: usize,
    pub(crate) share: Vec<i64>,
    pub(crate) noise: Vec<i64>,
    pub(crate) sent: Vec<i64>,
}

enum Message {
    Masked(Vec<i64>),
    Public(Vec<u8>),
    Failed,
}

/// One owner.
pub(crate) struct Owner {
    owner: usize,
    owners: usize,
    divisor: u32,
    threads: Threads,
    /// A key for each other owner, known to the two of them.
    keys: Vec<[u8; 32]>,
    to: Vec<Sender<Message>>,
    from: Vec<Mutex<Receiver<Message>>>,
    pub(crate) log: Arc<Mutex<Vec<Seen>>>,
}

/// So many of them, of whom `colluding` may put together what they know.
pub(crate) fn owners(count: usize, colluding: usize) -> Vec<Owner> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut senders: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    let mut receivers: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
    for from in senders.iter_mut() {
        for to in receivers.iter_mut() {
            let (send, receive) = channel();
            from.push(send);
            to.push(Mutex::new(receive));
        }
    }
    let key = |a: usize, b: usize| {
        let mut key = [7u8; 32];
        (key[0], key[1]) = (a.min(b) as u8, a.max(b) as u8);
        key
    };
    let lines = senders.into_iter().zip(receivers).enumerate();
    lines
        .map(|(owner, (to, from))| Owner {
            owner,
            owners: count,
            divisor: (count - colluding) as u32,
            threads: Threads::new(1),
            keys: (0..count).map(|other| key(owner, other)).collect(),
            to,
            from,
            log: log.clone(),
        })
        .collect()
}

fn gone() -> KernelError {
    KernelError::Engine { what: "an owner is gone" }
}

impl Owner {
    fn receive(&self, from: usize) -> Result<Message> {
        self.from[from].lock().unwrap().recv().map_err(|_| gone())
    }

    /// Masks of one step: the one of two owners with the lower number adds what the other subtracts. Used once.
    fn masked(&self, step: Step, values: &mut [i64]) {
        for other in (0..self.owners).filter(|o| *o != self.owner) {
            let mut key = self.keys[other];
            key[8..16].copy_from_slice(&step.run.to_le_bytes());
            key[16..24].copy_from_slice(&step.number.to_le_bytes());
            let mut rng = ChaCha20Rng::from_seed(key);
            for value in values.iter_mut() {
                let mask = rng.next_u64() as i64;
                *value = if self.owner < other { value.wrapping_add(mask) } else { value.wrapping_sub(mask) };
            }
        }
    }
}

impl Engine for Owner {
    fn threads(&self) -> &Threads {
        &self.threads
    }

    fn place(&self) -> Place {
        let own = self.owner as u32;
        Place { process: self.owner, processes: self.owners, offers: Needs::Sums, noise: own..own + 1, divisor: self.divisor }
    }

    fn open(&self, step: Step, share: Share<'_>, noise: Vec<i64>) -> Result<Vec<i64>> {
        let share = share.values().to_vec();
        let mut sent: Vec<i64> = share.iter().zip(&noise).map(|(s, n)| s.wrapping_add(*n)).collect();
        self.masked(step, &mut sent);
        self.log.lock().unwrap().push(Seen { owner: self.owner, share, noise, sent: sent.clone() });
        for other in (0..self.owners).filter(|o| *o != self.owner) {
            self.to[other].send(Message::Masked(sent.clone())).map_err(|_| gone())?;
        }
        for other in (0..self.owners).filter(|o| *o != self.owner) {
            let Message::Masked(values) = self.receive(other)? else { return Err(gone()) };
            sent.iter_mut().zip(&values).for_each(|(a, b)| *a = a.wrapping_add(*b));
        }
        Ok(sent)
    }

    fn collect(&self, _: Step, _: Share<'_>) -> Result<Confidential<Vec<i64>>> {
        Err(KernelError::Engine { what: "owners do not show each other totals" })
    }

    fn secret(&self, own: Key) -> Result<Confidential<[u8; 32]>> {
        Ok(own.into_secret())
    }

    fn abandon(&self) {
        self.to.iter().for_each(|line| drop(line.send(Message::Failed)));
    }

    fn agree(&self, public: &[u8]) -> Result<Vec<u8>> {
        if self.owner > 0 {
            let Message::Public(bytes) = self.receive(0)? else { return Err(gone()) };
            return Ok(bytes);
        }
        for other in 1..self.owners {
            self.to[other].send(Message::Public(public.to_vec())).map_err(|_| gone())?;
        }
        Ok(public.to_vec())
    }
}

/// One process that holds all records and adds the noise of all owners: what owners must reproduce.
pub(crate) struct Together {
    pub(crate) threads: Threads,
    pub(crate) parts: Range<u32>,
    pub(crate) divisor: u32,
}

impl Engine for Together {
    fn threads(&self) -> &Threads {
        &self.threads
    }

    fn place(&self) -> Place {
        Place { offers: Needs::Sums, noise: self.parts.clone(), divisor: self.divisor, ..Place::alone() }
    }

    fn open(&self, step: Step, share: Share<'_>, noise: Vec<i64>) -> Result<Vec<i64>> {
        self.threads.open(step, share, noise)
    }

    fn collect(&self, _: Step, _: Share<'_>) -> Result<Confidential<Vec<i64>>> {
        Err(gone())
    }

    fn secret(&self, own: Key) -> Result<Confidential<[u8; 32]>> {
        self.threads.secret(own)
    }

    fn abandon(&self) {}

    fn agree(&self, public: &[u8]) -> Result<Vec<u8>> {
        self.threads.agree(public)
    }
}
