//! A disk in memory under redb: it fails when told to, and remembers every call, so that a test can rebuild what a
//! crash after each of them would have left.

use holon::ledger::redb::{Opener, RedbStore};
use redb::{Database, StorageBackend};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// ENOSPC and EIO of Linux.
const NO_SPACE: i32 = 28;
const IO: i32 = 5;

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    image: Vec<u8>,
    /// Calls that change something, since the beginning.
    calls: u64,
    steps: Vec<Step>,
    fault: Option<Fault>,
    /// Reads that are still to fail.
    failing_reads: u64,
}

/// A call that changes something.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
    Sync,
}

/// What goes wrong, and at which calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// Counted from 0.
    pub(crate) first: u64,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    NoSpace,
    Io,
    Panic,
}

impl Disk {
    pub(crate) fn of(image: Vec<u8>) -> Self {
        let inner = Inner { image, ..Inner::default() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    pub(crate) fn failing(fault: Fault) -> Self {
        let inner = Inner { fault: Some(fault), ..Inner::default() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.inner().fault = Some(fault);
    }

    pub(crate) fn fail_reads(&self, count: u64) {
        self.inner().failing_reads = count;
    }

    pub(crate) fn wipe(&self) {
        self.inner().image.clear();
    }

    pub(crate) fn image(&self) -> Vec<u8> {
        self.inner().image.clone()
    }

    /// Calls so far that change something.
    pub(crate) fn calls(&self) -> u64 {
        self.inner().calls
    }

    /// Everything written so far, call by call.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.inner().steps.clone()
    }

    pub(crate) fn database(&self) -> Result<Database, redb::DatabaseError> {
        // Without a cache every read comes here.
        Database::builder().set_cache_size(0).create_with_backend(self.clone())
    }

    pub(crate) fn opener(&self) -> Opener {
        let disk = self.clone();
        Box::new(move || disk.database())
    }

    pub(crate) fn store(&self) -> RedbStore {
        RedbStore::with_opener(self.opener()).expect("the file opens")
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write that fails has come half way; all else that fails did nothing.
    fn call(&self, step: Step) -> io::Result<()> {
        let mut inner = self.inner();
        let call = inner.calls;
        inner.calls += 1;
        let fault = inner.fault.filter(|fault| (fault.first..fault.first + fault.count).contains(&call));
        let Some(fault) = fault else {
            inner.take(step);
            return Ok(());
        };
        if let Step::Write { offset, bytes } = step {
            let half = bytes.len() / 2;
            inner.take(Step::Write { offset, bytes: bytes[..half].to_vec() });
        }
        drop(inner);
        match fault.kind {
            FaultKind::NoSpace => Err(io::Error::from_raw_os_error(NO_SPACE)),
            FaultKind::Io => Err(io::Error::from_raw_os_error(IO)),
            FaultKind::Panic => panic!("the disk panics at call {call}"),
        }
    }
}

impl Inner {
    fn take(&mut self, step: Step) {
        step.apply(&mut self.image);
        self.steps.push(step);
    }
}

impl Step {
    pub(crate) fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => image[*offset..*offset + bytes.len()].copy_from_slice(bytes),
            Self::SetLen(bytes) => image.resize(*bytes, 0),
            Self::Sync => {}
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().image.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.failing_reads > 0 {
            inner.failing_reads -= 1;
            return Err(io::Error::from_raw_os_error(IO));
        }
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = inner.image.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.call(Step::SetLen(usize::try_from(len).map_err(io::Error::other)?))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.call(Step::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.call(Step::Write { offset, bytes: data.to_vec() })
    }
}
