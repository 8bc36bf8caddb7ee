//! The chain: every record carries a digest of its own text, its number and the digest before it, so that none can be changed, left
//! out, doubled or moved without breaking all that follow. With a key that is kept elsewhere nobody else can make a chain that fits.

use hmac::{Hmac, KeyInit, Mac};
use privfit_data::error::{Error, Result};
use sha2::{Digest, Sha256};

/// One record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 0.
    pub sequence: u64,
    /// Its text: one record as JSON.
    pub body: String,
    /// Digest of number, text and the digest before.
    pub hash: String,
}

/// What the first record follows.
pub const ROOT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Bytes of a key at the most.
pub const LONGEST_KEY: usize = 4096;

/// How digests are made: by anybody, or by whoever has the key.
#[derive(Clone, Default)]
pub struct MacKey {
    key: Option<Vec<u8>>,
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

impl MacKey {
    /// With a key of at least 16 bytes.
    pub fn keyed(key: &[u8]) -> Result<MacKey> {
        if key.len() < 16 || key.len() > LONGEST_KEY {
            return Err(Error::misuse("a key of a ledger has 16 to 4096 bytes: make one with `head -c 32 /dev/urandom`"));
        }
        Ok(MacKey { key: Some(key.to_vec()) })
    }

    /// Whether there is a key.
    pub fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    fn digest(&self, sequence: u64, before: &str, body: &str) -> String {
        let mut text = Vec::with_capacity(body.len() + 160);
        // Each part with its length, so that no two lists of parts are the same bytes.
        for part in ["privfit-ledger", &sequence.to_string(), before, body] {
            text.extend((part.len() as u64).to_le_bytes());
            text.extend(part.as_bytes());
        }
        let keyed = self.key.as_ref().and_then(|key| Hmac::<Sha256>::new_from_slice(key).ok());
        match keyed {
            Some(mut mac) => {
                mac.update(&text);
                hex(&mac.finalize().into_bytes())
            }
            None => hex(&Sha256::digest(&text)),
        }
    }

    /// The entry that comes after the last one.
    pub fn next(&self, entries: &[Entry], body: String) -> Entry {
        let (sequence, before) = entries.last().map_or((0, ROOT), |e| (e.sequence + 1, e.hash.as_str()));
        Entry { sequence, hash: self.digest(sequence, before, &body), body }
    }

    /// Whether every entry follows from the one before.
    pub fn check(&self, entries: &[Entry]) -> Result<()> {
        self.check_from(entries, 0)
    }

    /// The same, where the first ones were checked before.
    pub(super) fn check_from(&self, entries: &[Entry], start: usize) -> Result<()> {
        let mut before = if start == 0 { ROOT } else { &entries[start - 1].hash };
        for (i, entry) in entries.iter().enumerate().skip(start) {
            if entry.sequence != i as u64 || entry.hash != self.digest(entry.sequence, before, &entry.body) {
                let damaged = Error::damaged(format!(
                    "the ledger is damaged at record {i}, whose digest does not follow from the one before; or "
                ));
                let with_key = match self.key {
                    Some(_) => damaged.text("the key is another one"),
                    None => damaged.text("it was made with a key, which ").give("ledger_key", "FILE").text(" gives"),
                };
                return Err(with_key.text(": restore it from a copy, nothing is released meanwhile"));
            }
            before = &entry.hash;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(mac_key: &MacKey, n: usize) -> Vec<Entry> {
        (0..n).fold(Vec::new(), |mut all, i| {
            let entry = mac_key.next(&all, format!("{{\"record\":{i}}}"));
            all.push(entry);
            all
        })
    }

    #[test]
    fn every_change_breaks_the_chain() {
        let mac_key = MacKey::default();
        let good = chain(&mac_key, 20);
        assert!(mac_key.check(&good).is_ok() && mac_key.check(&[]).is_ok());
        for i in 0..20 {
            let mut bad = good.clone();
            bad.remove(i);
            // The last one left out is what heads in stores and labels of models are for.
            assert!(i == 19 || mac_key.check(&bad).is_err(), "a record left out at {i}");
            let mut bad = good.clone();
            bad.insert(i, good[i].clone());
            assert!(mac_key.check(&bad).is_err(), "a record doubled at {i}");
            if i > 0 {
                let mut bad = good.clone();
                bad.swap(i, i - 1);
                assert!(mac_key.check(&bad).is_err());
            }
            for field in 0..3 {
                for bit in 0..7 {
                    let mut bad = good.clone();
                    match field {
                        0 => bad[i].sequence ^= 1 << bit,
                        1 => bad[i].body = flip(&bad[i].body, 3, bit),
                        _ => bad[i].hash = flip(&bad[i].hash, 5, bit),
                    }
                    assert!(bad != good && mac_key.check(&bad).is_err(), "{i} {field} {bit}");
                }
            }
        }
    }

    #[test]
    fn a_key_is_needed_to_make_and_to_read() {
        let (ours, theirs) = (MacKey::keyed(&[7; 32]).unwrap(), MacKey::keyed(&[8; 32]).unwrap());
        let entries = chain(&ours, 3);
        assert!(ours.check(&entries).is_ok() && theirs.check(&entries).is_err() && MacKey::default().check(&entries).is_err());
        assert!(MacKey::keyed(&[0; 15]).is_err());
    }

    fn flip(text: &str, at: usize, bit: u32) -> String {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1 << bit;
        String::from_utf8(bytes).unwrap()
    }
}
