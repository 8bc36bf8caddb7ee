//! A signature under a model file: who says that its weights came from this run.
//!
//! *Claim.* `certificate verify` recomputes everything in a file but the weights, which rest on the publisher's word. An Ed25519 signature
//! says whose word: it covers the digest at the end of the file, and with it every byte. It stands in a file of its own beside the model, so
//! that the bytes that a ledger has recorded stay as they are. Keys are 32 bytes in hexadecimal digits behind a word that says which.

use crate::artifact::{Artifact, digest_of_file};
use crate::error::{Error, Result};
use crate::verify::Check;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a signature is about, so that one made for something else never fits.
const ABOUT: &str = "privfit-model-signature 1\n";
const PRIVATE: &str = "privfit-ed25519-private";
const PUBLIC: &str = "privfit-ed25519-public";

/// The file beside a model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    format: String,
    version: u32,
    /// Digest of the model file.
    sha256: String,
    /// Who signed.
    public_key: String,
    signature: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let digit = |d: u8| (d as char).to_digit(16).filter(|_| !d.is_ascii_uppercase());
    if digits.len() != 2 * N {
        return None;
    }
    let mut out = [0; N];
    for (out, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *out = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(out)
}

/// The key in a file of one line: the word that says which it is, and its digits.
fn key(text: &str, word: &str, fix: &str) -> Result<[u8; 32]> {
    let digits = text.trim_end().strip_prefix(word).and_then(|t| t.strip_prefix(' '));
    digits.and_then(bytes).ok_or_else(|| Error::misuse(format!("the key file does not hold a {word} key: {fix}")))
}

/// Makes a pair of keys: the private one in a file that only its owner can read, the public one beside it with `.pub` at the end.
pub fn make_keys(path: &Path) -> Result<std::path::PathBuf> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|_| Error::Host)?;
    let own = SigningKey::from_bytes(&secret);
    let mut name = path.as_os_str().to_owned();
    name.push(".pub");
    let beside = std::path::PathBuf::from(name);
    let there = [path, &beside].into_iter().find(|p| p.symlink_metadata().is_ok());
    if let Some(there) = there {
        return Err(Error::misuse(format!(
            "{} is there already: give another name, a key is never written over",
            there.display()
        )));
    }
    write(path, &format!("{PRIVATE} {}\n", hex(&secret)), 0o600)?;
    write(&beside, &format!("{PUBLIC} {}\n", hex(own.verifying_key().as_bytes())), 0o644)?;
    Ok(beside)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|e| Error::misuse(format!("cannot write {}: {e}; check the directory", path.display())))
}

/// Signs a model file; gives the text of the signature file.
pub fn sign(model: &[u8], private_key: &str) -> Result<String> {
    Artifact::from_bytes(model)?;
    let sha256 = digest_of_file(model);
    let own = SigningKey::from_bytes(&key(private_key, PRIVATE, "make one with `privfit certificate key`")?);
    let signed = Signed {
        format: "privfit-signature".into(),
        version: 1,
        public_key: hex(own.verifying_key().as_bytes()),
        signature: hex(&own.sign(format!("{ABOUT}{sha256}").as_bytes()).to_bytes()),
        sha256,
    };
    let text = serde_json::to_string_pretty(&signed).map_err(|_| Error::Host)?;
    Ok(text + "\n")
}

/// Whether a signature file is by the holder of a public key, and about these bytes of a model file.
pub fn check(model: &[u8], signature: &str, public_key: &str) -> Result<Check> {
    let fix = "give the file that ends with .pub";
    let public = key(public_key, PUBLIC, fix)?;
    let who = VerifyingKey::from_bytes(&public).map_err(|_| Error::misuse(format!("the public key is none: {fix}")))?;
    let damaged = || Error::damaged("the signature file is damaged: fetch it again from where the model was published");
    let signed: Signed = serde_json::from_str(signature).map_err(|_| damaged())?;
    if (signed.format.as_str(), signed.version) != ("privfit-signature", 1) {
        return Err(damaged());
    }
    let own = Signature::from_bytes(&bytes::<64>(&signed.signature).ok_or_else(damaged)?);
    let text = |why: &str| Ok(Check::new("signature", false, why));
    if signed.public_key != hex(&public) {
        return text("it was signed with another key");
    }
    if signed.sha256 != digest_of_file(model) {
        return text("another file was signed");
    }
    // Strict: no two keys and no two signatures pass for one another.
    match who.verify_strict(format!("{ABOUT}{}", signed.sha256).as_bytes(), &own) {
        Ok(()) => Ok(Check::new("signature", true, format!("the holder of the key {} signed every byte", hex(&public)))),
        Err(_) => text("the signature was not made by this key for this file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first test of RFC 8032, section 7.1.
    #[test]
    fn keys_are_those_of_the_standard() {
        let own = SigningKey::from_bytes(&bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap());
        assert_eq!(hex(own.verifying_key().as_bytes()), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(hex(&own.sign(b"").to_bytes()), signature);
        assert!(
            bytes::<1>("0").is_none()
                && bytes::<1>("0G").is_none()
                && bytes::<1>("0A").is_none()
                && bytes::<1>("0a") == Some([10])
        );
    }

    #[test]
    fn signatures_are_for_one_file_and_one_key() {
        let model = include_bytes!("../tests/corpus/model/objective.json").as_slice();
        let keys = |byte: u8| {
            let own = SigningKey::from_bytes(&[byte; 32]);
            (format!("{PRIVATE} {}\n", hex(&[byte; 32])), format!("{PUBLIC} {}\n", hex(own.verifying_key().as_bytes())))
        };
        let (private, public) = keys(1);
        let text = sign(model, &private).unwrap();
        assert!(check(model, &text, &public).unwrap().held());
        assert!(!check(model, &text, &keys(2).1).unwrap().held());
        let other = include_bytes!("../tests/corpus/model/simulated.json").as_slice();
        assert!(!check(other, &text, &public).unwrap().held());
        // Every digit of the signature counts.
        let start = text.find("\"signature\": \"").unwrap() + 14;
        for i in start..start + 128 {
            let mut forged = text.clone().into_bytes();
            forged[i] = if forged[i] == b'0' { b'1' } else { b'0' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(forged == text || !check(model, &forged, &public).unwrap().held(), "digit {i}");
        }
        // Somebody else's signature with this key's name on it.
        let (theirs, mine) =
            (sign(model, &keys(2).0).unwrap(), hex(&bytes::<32>(&public[PUBLIC.len() + 1..public.len() - 1]).unwrap()));
        let yours = keys(2).1;
        let renamed = theirs.replace(&yours[PUBLIC.len() + 1..yours.len() - 1], &mine);
        assert!(!check(model, &renamed, &public).unwrap().held());
        assert!(sign(model, &public).is_err() && check(model, &text, &private).is_err() && check(model, "{}", &public).is_err());
    }
}
