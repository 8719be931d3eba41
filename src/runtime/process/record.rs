//! The records of a run folder: JSON files `{"v": 1, "record": …, "signed": …}` that another release may have written.
//!
//! **Invariant:** a field that a record lacks has its default, one that is not known is left aside, and a record of a
//! version that this release does not know is told as such and never guessed at.

use super::entry;
use super::folder::FolderError;
use super::signature::{RunKey, Signed};
use crate::words::hash::Hash;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::File;
use std::path::Path;

/// The version of what is written here, and the newest that is read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Version {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct Written<'a> {
    v: u32,
    #[serde(borrow)]
    record: &'a RawValue,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed: Option<Signed>,
}

/// A record, and who signed it.
#[derive(Debug)]
pub(super) struct Record<T> {
    pub(super) record: T,
    /// None when it is not signed, or its signature is not one.
    pub(super) signer: Option<Hash>,
}

/// The text of a record, signed by `key` if it is given; `path` is where it will lie.
pub(super) fn text<T: Serialize>(path: &Path, record: &T, key: Option<&RunKey>) -> Result<Vec<u8>, FolderError> {
    let write = || {
        let record = serde_json::value::to_raw_value(record)?;
        let signed = key.map(|key| key.sign(path, record.get()));
        serde_json::to_vec(&Written { v: VERSION, record: &record, signed })
    };
    write().map_err(malformed(path))
}

/// The record in the file `name` of a run folder, of at most `bytes_max` bytes; none if there is no such file.
pub(super) fn read<T: DeserializeOwned>(
    run: &Path,
    name: &str,
    bytes_max: u64,
) -> Result<Option<Record<T>>, FolderError> {
    let path = run.join(name);
    let file = entry::read(run, name).map_err(FolderError::io(&path))?;
    file.map(|file| parse(&path, &file, bytes_max)).transpose()
}

fn parse<T: DeserializeOwned>(path: &Path, file: &File, bytes_max: u64) -> Result<Record<T>, FolderError> {
    let text = entry::whole(file, bytes_max).map_err(FolderError::io(path))?;
    let Version { v } = serde_json::from_slice(&text).map_err(malformed(path))?;
    if v > VERSION {
        return Err(FolderError::Newer { path: path.to_owned(), version: v });
    }
    let written: Written<'_> = serde_json::from_slice(&text).map_err(malformed(path))?;
    let signer = written.signed.and_then(|signed| signed.signer(path, written.record.get()));
    let record = serde_json::from_str(written.record.get()).map_err(malformed(path))?;
    Ok(Record { record, signer })
}

fn malformed(path: &Path) -> impl Fn(serde_json::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Malformed { path: path.clone(), source }
}
