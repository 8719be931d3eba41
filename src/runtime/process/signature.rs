//! Who wrote a record of a run folder.
//!
//! A command may run as the user that its run folder belongs to, so a file in it proves nothing. The daemon draws a key
//! for each execution, records the digest of its public half on the ledger before it launches, and hands the key to the
//! supervisor alone, through a pipe. Nobody keeps it: the daemon forgets it with its process, and the supervisor ends
//! with its command. Any later daemon can tell the supervisor's records from others'.

use crate::words::hash::Hash;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretBox};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// What this process draws the keys of its executions from.
#[derive(Clone, Debug)]
pub(super) struct KeySource(Arc<SecretBox<[u8; 32]>>);

/// The key of one execution.
pub struct RunKey(SecretBox<[u8; 32]>);

/// A public key, and what it signed.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Signed {
    key: String,
    signature: String,
}

impl KeySource {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self(Arc::new(SecretBox::new(Box::new(secret))))
    }

    /// The same name has the same key for as long as this process lives.
    pub(super) fn key(&self, name: &str) -> RunKey {
        let seed = blake3::keyed_hash(self.0.expose_secret(), name.as_bytes());
        RunKey(SecretBox::new(Box::new(*seed.as_bytes())))
    }
}

impl RunKey {
    /// Takes the key that [`RunKey::give`] gave.
    pub(super) fn take(mut from: impl Read) -> io::Result<Self> {
        let mut seed = [0; 32];
        from.read_exact(&mut seed)?;
        Ok(Self(SecretBox::new(Box::new(seed))))
    }

    /// Hands the key to a supervisor: it is the first that comes on its standard input.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn give(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(self.0.expose_secret())
    }

    /// The digest by which the signer of a record is known.
    #[must_use]
    pub fn signer(&self) -> Hash {
        Hash::of(self.pair().public_key().as_ref())
    }

    /// Signs the text of the record that will lie at `path`.
    pub(super) fn sign(&self, path: &Path, record: &str) -> Signed {
        let pair = self.pair();
        let signature = pair.sign(&message(path, record));
        Signed { key: STANDARD.encode(pair.public_key()), signature: STANDARD.encode(signature) }
    }

    fn pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(self.0.expose_secret()).expect("each 32 bytes are a key")
    }
}

impl Signed {
    /// The signer of the record that lies at `path`; none if the signature is not one.
    pub(super) fn signer(&self, path: &Path, record: &str) -> Option<Hash> {
        let (key, signature) = (STANDARD.decode(&self.key).ok()?, STANDARD.decode(&self.signature).ok()?);
        UnparsedPublicKey::new(&ED25519, &key).verify(&message(path, record), &signature).ok()?;
        Some(Hash::of(&key))
    }
}

/// A record counts in its own file of its own run folder alone, wherever the home lies.
fn message(path: &Path, record: &str) -> Vec<u8> {
    let file = path.file_name().unwrap_or_default();
    let run = path.parent().and_then(Path::file_name).unwrap_or_default();
    let parts: [&[u8]; 4] = [b"holon run record", run.as_encoded_bytes(), file.as_encoded_bytes(), record.as_bytes()];
    parts.join(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_counts_for_its_record_and_its_place_alone() {
        let source = KeySource::new([7; 32]);
        let (key, other) = (source.key("main-task-1"), source.key("main-task-2"));
        let signed = key.sign(Path::new("/run/one/exit.json"), "record");
        let signer = |path: &str, record: &str| signed.signer(Path::new(path), record);
        assert_eq!(signer("/elsewhere/one/exit.json", "record"), Some(key.signer()));
        assert_ne!(signer("/run/one/exit.json", "record"), Some(other.signer()));
        assert_eq!(signer("/run/two/exit.json", "record"), None);
        assert_eq!(signer("/run/one/claim.json", "record"), None);
        assert_eq!(signer("/run/one/exit.json", "another"), None);
        let broken = Signed { signature: "AAAA".into(), ..signed.clone() };
        assert_eq!(broken.signer(Path::new("/run/one/exit.json"), "record"), None);
    }

    #[test]
    fn a_key_that_was_given_is_the_same() {
        let key = KeySource::new([7; 32]).key("main-task-1");
        let mut given = Vec::new();
        key.give(&mut given).expect("room");
        assert_eq!(RunKey::take(&given[..]).expect("whole").signer(), key.signer());
        assert!(RunKey::take(&given[1..]).is_err());
    }
}
