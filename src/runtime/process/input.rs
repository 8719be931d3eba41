//! The input of a command: written down by daemons, and fed to the command as it takes it.
//!
//! `input/text` holds all input so far, each piece at its own place, so that a daemon that writes a piece once more
//! changes nothing; `input/end` is there when no more will come; and what is written to the pipe `input/bell` tells the
//! supervisor to look. How far the command has been fed is known to the supervisor alone, with which the command lives
//! and dies.
//!
//! **Invariant:** each byte reaches the command at most once and in its order, whatever becomes of daemons.

use super::entry;
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::stat::Mode;
use std::fs::{DirBuilder, File};
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const READ_BYTES: usize = 64 * 1024;

const FOLDER: &str = "input";
const TEXT: &str = "input/text";
const END: &str = "input/end";
const BELL: &str = "input/bell";

/// Makes room for input in a run folder.
pub(super) fn make(run: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(run.join(FOLDER))?;
    nix::unistd::mkfifo(&run.join(BELL), Mode::S_IRUSR | Mode::S_IWUSR)?;
    entry::make(run, TEXT)
}

/// Writes `bytes` down at their place in all input.
pub(super) fn give(run: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    entry::write(run, TEXT)?.write_all_at(bytes, offset)?;
    ring(run)
}

/// Says that no more input will come than was given.
pub(super) fn end(run: &Path) -> io::Result<()> {
    entry::make(run, END)?;
    ring(run)
}

/// A supervisor that has not opened the bell yet looks by itself once it has, and a full bell rings already.
fn ring(run: &Path) -> io::Result<()> {
    match entry::write_pipe(run, BELL) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        bell => match bell?.write_all(b"!") {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            rung => rung,
        },
    }
}

/// The supervisor's side: takes from the files, and gives to the pipe that is the command's standard input.
pub(super) struct Feeder {
    text: File,
    end: PathBuf,
    /// Open for writing too, so that it is not at its end while no daemon writes.
    bell: File,
    pipe: PipeWriter,
    /// Bytes taken from the text so far.
    taken_bytes: u64,
    /// What was taken and not given yet.
    in_hand: Vec<u8>,
}

impl Feeder {
    pub(super) fn open(run: &Path, pipe: PipeWriter) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let bell = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(run.join(BELL))?;
        let text = entry::read(run, TEXT)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { text, end: run.join(END), bell, pipe, taken_bytes: 0, in_hand: Vec::new() })
    }

    /// What is to be waited for before feeding on: room in the pipe, or more input.
    pub(super) fn awaited(&self) -> PollFd<'_> {
        if self.in_hand.is_empty() {
            PollFd::new(self.bell.as_fd(), PollFlags::POLLIN)
        } else {
            PollFd::new(self.pipe.as_fd(), PollFlags::POLLOUT)
        }
    }

    /// Feeds as far as it goes. False when that was the last: no more comes, or nobody takes it.
    pub(super) fn feed(&mut self) -> io::Result<bool> {
        loop {
            if self.in_hand.is_empty() {
                let is_last = self.take()?;
                if self.in_hand.is_empty() {
                    return Ok(!is_last);
                }
            }
            match self.pipe.write(&self.in_hand) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                written => drop(self.in_hand.drain(..written?)),
            }
        }
    }

    /// Takes the next piece; true if no more will come after it than is there by now. What comes while this looks
    /// rings again, and the end is looked for before the text, which is complete by then.
    fn take(&mut self) -> io::Result<bool> {
        self.silence()?;
        let is_last = self.end.try_exists()?;
        let mut bytes = vec![0; READ_BYTES];
        let count = self.text.read_at(&mut bytes, self.taken_bytes)?;
        bytes.truncate(count);
        self.taken_bytes += count as u64;
        self.in_hand = bytes;
        Ok(is_last)
    }

    fn silence(&mut self) -> io::Result<()> {
        loop {
            match self.bell.read(&mut [0; 64]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                read => drop(read?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollTimeout, poll};

    struct Side {
        run: tempfile::TempDir,
        feeder: Feeder,
        command: io::PipeReader,
    }

    fn sides() -> Side {
        let run = tempfile::tempdir().expect("a temporary folder");
        make(run.path()).expect("writable");
        let (command, pipe) = io::pipe().expect("a pipe");
        let feeder = Feeder::open(run.path(), pipe).expect("readable");
        Side { run, feeder, command }
    }

    impl Side {
        fn is_awaited(&self) -> bool {
            let mut awaited = [self.feeder.awaited()];
            poll(&mut awaited, PollTimeout::ZERO).expect("polled") > 0
        }

        fn read(&mut self, bytes: usize) -> String {
            let mut read = vec![0; bytes];
            self.command.read_exact(&mut read).expect("fed");
            String::from_utf8(read).expect("text")
        }
    }

    #[test]
    fn a_piece_that_is_written_again_or_cut_is_fed_once() {
        let mut side = sides();
        assert!(side.feeder.feed().expect("fed") && !side.is_awaited());
        give(side.run.path(), 0, b"on").expect("writable");
        assert!(side.is_awaited());
        assert!(side.feeder.feed().expect("fed"));
        give(side.run.path(), 0, b"one ").expect("writable");
        give(side.run.path(), 0, b"one ").expect("writable");
        give(side.run.path(), 4, b"two").expect("writable");
        end(side.run.path()).expect("writable");
        assert!(side.is_awaited());
        assert!(!side.feeder.feed().expect("fed"), "that was the last");
        assert_eq!(side.read(7), "one two");
    }

    #[test]
    fn what_the_command_does_not_take_waits_in_its_file() {
        let mut side = sides();
        let input = "0123456789abcdef".repeat(64 * 1024);
        give(side.run.path(), 0, input.as_bytes()).expect("writable");
        assert!(side.feeder.feed().expect("fed") && !side.is_awaited());
        assert!(side.feeder.in_hand.len() <= READ_BYTES);
        let mut read = String::new();
        while read.len() < input.len() {
            read += &side.read((input.len() - read.len()).min(4096));
            side.feeder.feed().expect("fed");
        }
        assert_eq!(read, input);
    }

    #[test]
    fn a_command_that_has_closed_its_input_is_fed_no_more() {
        let Side { run, mut feeder, command } = sides();
        drop(command);
        give(run.path(), 0, b"late").expect("writable");
        assert!(!feeder.feed().expect("fed"));
    }
}
