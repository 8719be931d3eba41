//! Payloads by hash: small ones are rows of the store, large ones are files `blobs/ab/<hash>` (architecture 23).
//!
//! A file is written and synced, and its folder too, before an event that names it is staged. Before that, a mark
//! `blobs/new/<boot>/<hash>` says that it may turn out an orphan: its request may be refused, and its boot may end. The
//! next boot looks at what is marked, and removes what no event has come to name.

use super::{Store, StoreError};
use crate::words::content::Blob;
use crate::words::hash::Hash;
use crate::words::id::Boot;
use crate::words::limit::BLOB_IN_TRANSACTION_BYTES_MAX;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads and keeps payloads.
#[derive(Clone)]
pub struct Blobs {
    store: Arc<dyn Store>,
    folder: PathBuf,
    boot: Boot,
}

/// A payload that cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("payload {0} is not there")]
    Missing(Hash),
    #[error("payload {0} is damaged")]
    Damaged(Hash),
    #[error("payload {hash}: {error}")]
    Io { hash: Hash, error: io::Error },
    #[error("a payload could not be read: {0}")]
    Source(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where marks and temporary files lie, a folder for each boot.
const MARKS: &str = "new";

/// Tells temporary files of one process apart.
static TEMPORARY: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Blobs {
    pub fn new(store: Arc<dyn Store>, folder: PathBuf) -> Self {
        Self { store, folder, boot: Boot::default() }
    }

    /// What is kept from here on is swept by a later boot, unless an event has come to name it.
    #[must_use]
    pub fn in_boot(self, boot: Boot) -> Self {
        Self { boot, ..self }
    }

    /// The whole payload, verified.
    pub fn read(&self, hash: &Hash) -> Result<Vec<u8>, BlobError> {
        let bytes = match self.store.blob(hash)? {
            Some(bytes) => bytes,
            None => self.read_file(hash)?,
        };
        if Hash::of(&bytes) == *hash { Ok(bytes) } else { Err(BlobError::Damaged(*hash)) }
    }

    /// The payload from the byte `offset` on, in at most `bytes_max` bytes, and how many bytes it has; verified whole. It
    /// never lies in memory whole, unless it is a row.
    pub fn read_from(&self, hash: &Hash, offset: u64, bytes_max: u64) -> Result<(Vec<u8>, u64), BlobError> {
        self.check(hash)?;
        let read = match self.store.blob(hash)? {
            Some(row) => part(io::Cursor::new(row), offset, bytes_max),
            None => File::open(self.path(hash)).and_then(|file| part(file, offset, bytes_max)),
        };
        read.map_err(|error| unread(*hash, error))
    }

    fn read_file(&self, hash: &Hash) -> Result<Vec<u8>, BlobError> {
        fs::read(self.path(hash)).map_err(|error| unread(*hash, error))
    }

    /// Whether the payload is there and whole. It never lies in memory whole, unless it is a row.
    pub fn check(&self, hash: &Hash) -> Result<(), BlobError> {
        let found = match self.store.blob(hash)? {
            Some(bytes) => Hash::of(&bytes),
            None => File::open(self.path(hash)).and_then(hash_bytes).map_err(|error| unread(*hash, error))?.0,
        };
        if found == *hash { Ok(()) } else { Err(BlobError::Damaged(*hash)) }
    }

    /// Where a large payload lies. The file may be absent.
    pub fn path(&self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        self.folder.join(&name[..2]).join(name)
    }

    /// Keeps what is too large for a transaction, and gives back what is not.
    pub fn keep_large(&self, blobs: Vec<Blob>) -> Result<Vec<Blob>, BlobError> {
        let (small, large): (Vec<_>, Vec<_>) =
            blobs.into_iter().partition(|blob| blob.bytes.len() <= BLOB_IN_TRANSACTION_BYTES_MAX);
        for blob in large {
            self.keep(blob.hash, |file| file.write_all(&blob.bytes))?;
        }
        Ok(small)
    }

    /// Keeps a copy of the first `bytes_max` bytes of a file as a payload. It never lies in memory whole.
    ///
    /// # Errors
    /// When the file cannot be read, changes meanwhile, or cannot be kept.
    pub fn keep_file(&self, mut source: &File, bytes_max: u64) -> Result<(Hash, u64), BlobError> {
        let (hash, bytes) = hash_bytes(source.take(bytes_max)).map_err(BlobError::Source)?;
        self.keep(hash, |file| {
            source.rewind()?;
            io::copy(&mut source.take(bytes), file)?;
            file.rewind()?;
            let is_same = hash_bytes(file)?.0 == hash;
            if is_same { Ok(()) } else { Err(io::Error::other("the file changed while it was copied")) }
        })?;
        Ok((hash, bytes))
    }

    fn keep(&self, hash: Hash, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), BlobError> {
        let path = self.path(&hash);
        if path.exists() {
            return Ok(());
        }
        let marks = self.folder.join(MARKS).join(self.boot.0.to_string());
        let marked = fs::create_dir_all(&marks).and_then(|()| File::create(marks.join(hash.to_string())));
        let written = marked.and_then(|_| write_synced(&marks, &path, write));
        written.map_err(|error| BlobError::Io { hash, error })
    }

    /// Removes what earlier boots kept and no event names, and what they had not finished. Before this boot keeps anything.
    ///
    /// A mark of a boot that this ledger has not seen yet is another ledger's, and says nothing about this one.
    pub fn sweep(&self) -> io::Result<()> {
        let folder = self.folder.join(MARKS);
        for boot in names(&folder)? {
            let marks = folder.join(&boot);
            if boot.parse::<u64>().is_ok_and(|boot| boot < self.boot.0) {
                names(&marks)?.iter().filter_map(|mark| Hash::parse(mark)).try_for_each(|hash| self.resolve(&hash))?;
            }
            fs::remove_dir_all(&marks)?;
        }
        Ok(())
    }

    /// Removes a marked payload if no event names it.
    fn resolve(&self, hash: &Hash) -> io::Result<()> {
        if self.store.names_file(hash).map_err(io::Error::other)? {
            return Ok(());
        }
        match fs::remove_file(self.path(hash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The names in a folder; none when it is not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn unread(hash: Hash, error: io::Error) -> BlobError {
    if error.kind() == io::ErrorKind::NotFound { BlobError::Missing(hash) } else { BlobError::Io { hash, error } }
}

fn part(mut source: impl Read + Seek, offset: u64, bytes_max: u64) -> io::Result<(Vec<u8>, u64)> {
    let (bytes, mut part) = (source.seek(SeekFrom::End(0))?, Vec::new());
    source.seek(SeekFrom::Start(offset))?;
    source.take(bytes_max).read_to_end(&mut part)?;
    Ok((part, bytes))
}

fn hash_bytes(mut source: impl Read) -> io::Result<(Hash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BLOB_IN_TRANSACTION_BYTES_MAX];
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            return Ok((Hash(*hasher.finalize().as_bytes()), hasher.count()));
        }
        hasher.update(&buffer[..count]);
    }
}

/// Writes a file, first among `marks`, so that it is there whole or not at all, and stays.
fn write_synced(marks: &Path, path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let number = TEMPORARY.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let temporary = marks.join(format!("unfinished-{number}"));
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&temporary)?;
    let written = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // Best effort: the error that matters is the one before.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(folder)?.sync_all()?;
    // The folder itself may be new.
    folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}
