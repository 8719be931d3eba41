//! Secrets that are used later, so that no hash can stand for them (wire, Servers).
//!
//! They lie in one file of the home that only its owner may read. Events, states, logs and errors know them by key.

use super::handle::{Handle, SubmitError};
use super::host::Shared;
use crate::fold::row;
use crate::words::id::AgentId;
use crate::words::limit::SECRETS_MAX;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The secrets of a home, by key.
pub struct Secrets {
    path: PathBuf,
    kept: Mutex<BTreeMap<String, SecretString>>,
    /// Held by whoever alters the file, so that nobody who reads waits for the disk.
    altering: Mutex<()>,
}

/// A secret that cannot be kept, or a file that cannot be read. It says nothing of what the file holds.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} does not hold secrets: line {line} cannot be read")]
    Damaged { path: PathBuf, line: usize },
    #[error("there are {SECRETS_MAX} secrets already, which is the most there may be")]
    TooMany,
}

impl Secrets {
    /// Reads the file; there are none when it is not there.
    pub fn open(path: &Path) -> Result<Self, SecretError> {
        let kept = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| SecretError::Damaged { path: path.to_owned(), line: error.line() })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(SecretError::Io { path: path.to_owned(), error }),
        };
        Ok(Self { path: path.to_owned(), kept: Mutex::new(kept), altering: Mutex::default() })
    }

    pub fn get(&self, key: &str) -> Option<SecretString> {
        self.kept().get(key).cloned()
    }

    /// The keys that begin with `prefix`.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let kept = self.kept();
        let from = kept.range(prefix.to_owned()..).map(|(key, _)| key);
        from.take_while(|key| key.starts_with(prefix)).cloned().collect()
    }

    /// Keeps a secret in place of the one that the key had. It is durable when this returns.
    pub fn set(&self, key: &str, secret: SecretString) -> Result<(), SecretError> {
        self.alter(|kept| {
            kept.insert(key.to_owned(), secret);
        })
    }

    /// Forgets the secret of the key, if it has one.
    pub fn clear(&self, key: &str) -> Result<(), SecretError> {
        if self.get(key).is_none() {
            return Ok(());
        }
        self.alter(|kept| {
            kept.remove(key);
        })
    }

    /// The file is altered first: what cannot be written is not kept either.
    fn alter(&self, change: impl FnOnce(&mut BTreeMap<String, SecretString>)) -> Result<(), SecretError> {
        let _altering = self.altering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut altered = self.kept().clone();
        change(&mut altered);
        if altered.len() > SECRETS_MAX {
            return Err(SecretError::TooMany);
        }
        self.write(&altered).map_err(|error| SecretError::Io { path: self.path.clone(), error })?;
        *self.kept() = altered;
        Ok(())
    }

    fn write(&self, kept: &BTreeMap<String, SecretString>) -> io::Result<()> {
        let shown: BTreeMap<&String, &str> = kept.iter().map(|(key, secret)| (key, secret.expose_secret())).collect();
        let temporary = self.path.with_extension("new");
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(&shown)?)?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, SecretString>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets secrets that nothing names any more, off the loop.
pub(super) fn forget(shared: &Arc<Shared>, names: Vec<String>) {
    let shared = shared.clone();
    tokio::task::spawn_blocking(move || {
        for name in names {
            if let Err(error) = shared.secrets.clear(&name) {
                tracing::warn!(name, %error, "a secret that nothing names stays until the next boot");
            }
        }
    });
}

/// Forgets what a crash left: secrets that were kept, and named by no event; or named once, and not forgotten since.
pub(super) async fn sweep(handle: Handle) {
    let shared = handle.shared.clone();
    // Whoever holds it may have kept a secret that is not recorded yet.
    let _one_at_a_time = shared.secrets_change.lock().await;
    for name in shared.secrets.keys("") {
        let Some(agent) = name.split('/').nth(1).and_then(|agent| AgentId::parse(agent).ok()) else { continue };
        let wanted = name.clone();
        let swept = match handle.read(&agent, move |state| row::secrets(state).contains(&wanted)).await {
            Ok(true) => Ok(()),
            Ok(false) | Err(SubmitError::Rejected(_)) => handle.keep_secret(name.clone(), None).await,
            Err(error) => Err(error),
        };
        if let Err(error) = swept {
            tracing::warn!(name, %error, "whether a secret is named cannot be told, or it cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

    fn shown(secrets: &Secrets, key: &str) -> Option<String> {
        secrets.get(key).map(|secret| secret.expose_secret().to_owned())
    }

    #[test]
    fn a_secret_lasts_until_another_takes_its_place_or_it_is_cleared() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("secrets.json");
        let secrets = Secrets::open(&path).unwrap();
        secrets.clear("a").unwrap();
        assert!(!path.exists(), "nothing was there to be forgotten");
        secrets.set("a", "first".into()).unwrap();
        secrets.set("b", "second \"quoted\"\n".into()).unwrap();
        secrets.set("a", "third".into()).unwrap();
        secrets.clear("c").unwrap();
        let again = Secrets::open(&path).unwrap();
        for secrets in [&secrets, &again] {
            assert_eq!(shown(secrets, "a").as_deref(), Some("third"));
            assert_eq!(shown(secrets, "b").as_deref(), Some("second \"quoted\"\n"));
            assert_eq!(shown(secrets, "c"), None);
            assert_eq!((secrets.keys(""), secrets.keys("b")), (vec!["a".into(), "b".into()], vec!["b".to_owned()]));
        }
        again.clear("a").unwrap();
        assert_eq!(shown(&Secrets::open(&path).unwrap(), "a"), None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_secret_that_cannot_be_written_is_not_kept() {
        let folder = TempDir::new().unwrap();
        let secrets = Secrets::open(&folder.path().join("gone").join("secrets.json")).unwrap();
        assert!(matches!(secrets.set("a", "first".into()), Err(SecretError::Io { .. })));
        assert_eq!(shown(&secrets, "a"), None);
    }

    #[test]
    fn a_damaged_file_is_told_of_without_what_it_holds() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("secrets.json");
        fs::write(&path, "{\"a\":\n\"never-told").unwrap();
        let error = Secrets::open(&path).err().unwrap().to_string();
        assert!(error.contains("line 2") && !error.contains("never-told"), "{error}");
    }
}
