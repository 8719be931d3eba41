//! The kept output of a command: its head and its tail, in constant memory.
//!
//! While the command runs, `output` grows to the first half of the bound; what follows goes round in `tail`, a ring
//! behind a count of the bytes that ever entered it. When the command has ended, the ring is put in order behind the
//! head, with a line between them that says how much is missing, and `tail` goes away.

use super::entry;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The count before a ring.
const COUNT_BYTES: u64 = 8;

/// How much a command wrote, and what of it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Extent {
    /// Written by the command.
    pub(super) bytes: u64,
    pub(super) head_bytes: u64,
    pub(super) tail_bytes: u64,
}

impl Extent {
    pub(super) fn left_out_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.head_bytes + self.tail_bytes)
    }
}

const OUTPUT: &str = "output";
const TAIL: &str = "tail";

pub(super) fn output_path(folder: &Path) -> PathBuf {
    folder.join(OUTPUT)
}

fn tail_path(folder: &Path) -> PathBuf {
    folder.join(TAIL)
}

/// Opens the kept output in a run folder; none if there is none.
pub(super) fn open(folder: &Path) -> io::Result<Option<File>> {
    entry::read(folder, OUTPUT)
}

/// The line that stands for what is missing.
pub(super) fn notice(left_out_bytes: u64, reason: Option<&io::Error>) -> String {
    match reason {
        None => format!("\n[{left_out_bytes} bytes left out]\n"),
        Some(reason) => format!("\n[{left_out_bytes} bytes left out: {reason}]\n"),
    }
}

/// Takes everything a command writes. A disk that refuses ends the keeping, never the command.
pub(super) struct Writer {
    folder: PathBuf,
    head: File,
    extent: Extent,
    head_bytes_max: u64,
    tail_bytes_max: u64,
    tail: Option<RingWriter>,
    refused: Option<io::Error>,
}

impl Writer {
    pub(super) fn create(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            head: File::options().read(true).write(true).create_new(true).open(output_path(folder))?,
            extent: Extent::default(),
            head_bytes_max: bytes_max - bytes_max / 2,
            tail_bytes_max: bytes_max / 2,
            tail: None,
            refused: None,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.extent.bytes += bytes.len() as u64;
        if self.refused.is_none() {
            self.refused = self.keep(bytes).err();
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = self.head_bytes_max - self.extent.head_bytes;
        let (head, tail) = bytes.split_at(usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len()));
        self.keep_head(head)?;
        if tail.is_empty() || self.tail_bytes_max == 0 { Ok(()) } else { self.ring()?.push(tail) }
    }

    fn keep_head(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.head.write(bytes)?;
            self.extent.head_bytes += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    fn ring(&mut self) -> io::Result<&mut RingWriter> {
        let ring = match self.tail.take() {
            Some(ring) => ring,
            None => RingWriter::create(&tail_path(&self.folder), self.tail_bytes_max)?,
        };
        Ok(self.tail.insert(ring))
    }

    /// Puts the kept output in order and on the disk. What cannot be is cut from the extent, and the error says why.
    pub(super) fn finish(mut self) -> (Extent, io::Result<()>) {
        let refused = self.refused.take().map_or(Ok(()), Err);
        let composed = self.compose(refused.as_ref().err());
        (self.extent, refused.and(composed))
    }

    fn compose(&mut self, reason: Option<&io::Error>) -> io::Result<()> {
        let ring = open_ring(&self.folder)?;
        self.extent.tail_bytes = ring.as_ref().map_or(0, Ring::kept_bytes);
        let composed = self.append(ring.as_ref(), reason);
        if ring.is_some() {
            drop((ring, self.tail.take()));
            fs::remove_file(tail_path(&self.folder))?;
        }
        if let Err(error) = &composed {
            self.give_up_tail(error)?;
        }
        composed.and(self.head.sync_data())
    }

    /// Leaves the head alone, and says so in the room that the tail took.
    fn give_up_tail(&mut self, reason: &io::Error) -> io::Result<()> {
        self.extent.tail_bytes = 0;
        self.head.set_len(self.extent.head_bytes)?;
        self.append(None, Some(reason))
    }

    fn append(&mut self, ring: Option<&Ring>, reason: Option<&io::Error>) -> io::Result<()> {
        self.head.seek(SeekFrom::Start(self.extent.head_bytes))?;
        if self.extent.left_out_bytes() > 0 {
            self.head.write_all(notice(self.extent.left_out_bytes(), reason).as_bytes())?;
        }
        ring.map_or(Ok(()), |ring| ring.copy_to(&mut self.head))
    }
}

struct RingWriter {
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl RingWriter {
    fn create(path: &Path, bytes_max: u64) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)?, bytes: 0, bytes_max })
    }

    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let overtaken = bytes.len().saturating_sub(usize::try_from(self.bytes_max).unwrap_or(usize::MAX));
        self.bytes += overtaken as u64;
        let mut rest = &bytes[overtaken..];
        while !rest.is_empty() {
            let at = self.bytes % self.bytes_max;
            let room = usize::try_from(self.bytes_max - at).unwrap_or(usize::MAX);
            let (piece, after) = rest.split_at(room.min(rest.len()));
            self.file.write_all_at(piece, COUNT_BYTES + at)?;
            self.bytes += piece.len() as u64;
            rest = after;
        }
        self.file.write_all_at(&self.bytes.to_le_bytes(), 0)
    }
}

/// A ring as a reader finds it.
struct Ring {
    file: File,
    /// Bytes that ever entered.
    bytes: u64,
    /// Bytes that there is room for; at least those that were written.
    bytes_max: u64,
}

fn open_ring(folder: &Path) -> io::Result<Option<Ring>> {
    let Some(mut file) = entry::read(folder, TAIL)? else { return Ok(None) };
    let bytes_max = file.metadata()?.len().saturating_sub(COUNT_BYTES);
    let mut count = [0; 8];
    match file.read_exact(&mut count) {
        // A reader may come between the ring's first bytes and its count.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        read => read?,
    }
    Ok(Some(Ring { file, bytes: u64::from_le_bytes(count), bytes_max }))
}

impl Ring {
    fn kept_bytes(&self) -> u64 {
        self.bytes.min(self.bytes_max)
    }

    /// Up to `bytes_max` bytes from the kept byte `from`, as far as they lie together.
    fn read_some(&self, from: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        let at = (self.bytes - self.kept_bytes() + from) % self.bytes_max;
        let together = (self.bytes_max - at).min(self.kept_bytes() - from).min(bytes_max);
        read_at(&self.file, COUNT_BYTES + at, together)
    }

    fn copy_to(&self, target: &mut File) -> io::Result<()> {
        const STEP_BYTES: u64 = 64 * 1024;
        let mut from = 0;
        while from < self.kept_bytes() {
            let bytes = self.read_some(from, STEP_BYTES)?;
            target.write_all(&bytes)?;
            from += bytes.len() as u64;
        }
        Ok(())
    }
}

fn read_at(file: &File, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut read, at)?;
    Ok(read)
}

/// The kept output as one text with a gap, whether the command still runs or not.
pub(super) struct View {
    file: File,
    ring: Option<Ring>,
    extent: Extent,
}

impl View {
    /// Opens the output in a run folder; `ended` is its extent once the command has ended. None if there is no output.
    pub(super) fn open(folder: &Path, ended: Option<Extent>) -> io::Result<Option<Self>> {
        let Some(file) = open(folder)? else { return Ok(None) };
        if let Some(extent) = ended {
            return Ok(Some(Self { file, ring: None, extent }));
        }
        let ring = open_ring(folder)?;
        let head_bytes = file.metadata()?.len();
        let bytes = head_bytes + ring.as_ref().map_or(0, |ring| ring.bytes);
        let extent = Extent { bytes, head_bytes, tail_bytes: ring.as_ref().map_or(0, Ring::kept_bytes) };
        Ok(Some(Self { file, ring, extent }))
    }

    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.extent.head_bytes + self.extent.tail_bytes
    }

    /// The kept bytes from `from` to `to`, counted as if nothing were missing between head and tail.
    pub(super) fn read(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let head_bytes = self.extent.head_bytes;
        let mut read = read_at(&self.file, from.min(head_bytes), to.min(head_bytes).saturating_sub(from))?;
        self.read_tail(from.saturating_sub(head_bytes), to.saturating_sub(head_bytes), &mut read)?;
        Ok(read)
    }

    fn read_tail(&self, mut from: u64, to: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let Some(ring) = &self.ring else {
            // A file that a command has cut has no such place, and reading there fails.
            let start = self.file.metadata()?.len().saturating_sub(self.extent.tail_bytes);
            into.extend(read_at(&self.file, start + from, to - from)?);
            return Ok(());
        };
        while from < to {
            let bytes = ring.read_some(from, to - from)?;
            from += bytes.len() as u64;
            into.extend(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes_max: u64, chunks: &[&[u8]]) -> (tempfile::TempDir, Writer) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut writer = Writer::create(folder.path(), bytes_max).expect("writable");
        for chunk in chunks {
            writer.write(chunk);
        }
        (folder, writer)
    }

    fn kept(bytes_max: u64, chunks: &[&[u8]]) -> (String, Extent) {
        let (folder, writer) = written(bytes_max, chunks);
        let (extent, kept) = writer.finish();
        kept.expect("writable");
        assert!(!tail_path(folder.path()).exists());
        (fs::read_to_string(output_path(folder.path())).expect("text"), extent)
    }

    #[test]
    fn what_fits_is_kept_as_it_came() {
        let (text, extent) = kept(10, &[b"abc", b"defg", b"hij"]);
        assert_eq!(text, "abcdefghij");
        assert_eq!(extent.left_out_bytes(), 0);
    }

    #[test]
    fn what_does_not_fit_loses_its_middle_and_says_so() {
        let (text, extent) = kept(10, &[b"abc", b"defgh", b"ijk", b"lm"]);
        assert_eq!(text, "abcde\n[3 bytes left out]\nijklm");
        assert_eq!(extent, Extent { bytes: 13, head_bytes: 5, tail_bytes: 5 });
        let (text, _) = kept(10, &[b"0123456789abcdefghijklmnopqrstuvwxyz"]);
        assert_eq!(text, "01234\n[26 bytes left out]\nvwxyz");
    }

    #[test]
    fn a_bound_of_nothing_still_counts() {
        let (text, extent) = kept(0, &[b"abc"]);
        assert_eq!((text.as_str(), extent.bytes), ("\n[3 bytes left out]\n", 3));
        let (text, _) = kept(1, &[b"abc"]);
        assert_eq!(text, "a\n[2 bytes left out]\n");
    }

    #[test]
    fn running_and_ended_output_read_the_same() {
        let (folder, writer) = written(10, &[b"abc", b"defgh", b"ijk", b"lm"]);
        let read = |extent| {
            let view = View::open(folder.path(), extent).expect("readable").expect("there");
            (view.read(0, 10).expect("readable"), view.read(3, 8).expect("readable"), view.extent())
        };
        let running = read(None);
        assert_eq!((&running.0[..], &running.1[..]), (&b"abcdeijklm"[..], &b"deijk"[..]));
        let (extent, kept) = writer.finish();
        kept.expect("writable");
        assert_eq!(read(Some(extent)), running);
    }

    #[test]
    fn a_full_disk_ends_the_keeping_and_is_named() {
        let (_folder, mut writer) = written(10, &[]);
        writer.head = File::options().write(true).open("/dev/full").expect("there");
        writer.write(b"abc");
        writer.write(b"def");
        let (extent, kept) = writer.finish();
        assert_eq!(extent, Extent { bytes: 6, head_bytes: 0, tail_bytes: 0 });
        assert_eq!(kept.expect_err("full").kind(), io::ErrorKind::StorageFull);
    }
}
