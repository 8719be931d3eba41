//! Files of a run folder, opened so that nothing a command put in their place can do harm.
//!
//! A command may run as the user that the run folder belongs to. So below the run root no symbolic link is followed,
//! nothing is waited for, only the kind of file that belongs there is opened, and what is read has a bound.

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Opens a regular file for reading; none if there is no such file.
pub(super) fn read(run: &Path, name: &str) -> io::Result<Option<File>> {
    match open(run, name, OFlags::RDONLY, Metadata::is_file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens a regular file for writing.
pub(super) fn write(run: &Path, name: &str) -> io::Result<File> {
    open(run, name, OFlags::WRONLY, Metadata::is_file)
}

/// Makes an empty regular file unless it is there.
pub(super) fn make(run: &Path, name: &str) -> io::Result<()> {
    open(run, name, OFlags::WRONLY | OFlags::CREATE, Metadata::is_file).map(drop)
}

/// Opens a pipe for writing.
pub(super) fn write_pipe(run: &Path, name: &str) -> io::Result<File> {
    open(run, name, OFlags::WRONLY, |found| found.file_type().is_fifo())
}

/// All that is in a file of at most `bytes_max` bytes.
pub(super) fn whole(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(unfit(&format!("is longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn open(run: &Path, name: &str, access: OFlags, is_fit: impl Fn(&Metadata) -> bool) -> io::Result<File> {
    let (root, folder) = run.parent().zip(run.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = if access.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = openat2(root, Path::new(folder).join(name), flags, mode, resolve);
    let file = File::from(opened.map_err(|error| match error {
        Errno::LOOP => unfit("is a symbolic link, or lies behind one"),
        _ => error.into(),
    })?);
    if is_fit(&file.metadata()?) { Ok(file) } else { Err(unfit("is not the kind of file that belongs there")) }
}

fn unfit(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    fn run() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let run = root.path().join("run");
        fs::create_dir(&run).expect("writable");
        (root, run)
    }

    fn refusal<T>(opened: io::Result<T>) -> String {
        opened.err().expect("refused").to_string()
    }

    #[test]
    fn links_devices_and_pipes_are_not_read_or_written() {
        let (root, run) = run();
        fs::write(root.path().join("outside"), "precious").expect("writable");
        symlink("../outside", run.join("link")).expect("writable");
        symlink("/dev/zero", run.join("zero")).expect("writable");
        symlink("..", run.join("up")).expect("writable");
        nix::unistd::mkfifo(&run.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("writable");
        for name in ["link", "zero", "up/outside"] {
            assert!(refusal(read(&run, name)).contains("symbolic link"), "{name}");
            assert!(refusal(write(&run, name)).contains("symbolic link"), "{name}");
            assert!(refusal(make(&run, name)).contains("symbolic link"), "{name}");
        }
        assert!(refusal(read(&run, "pipe")).contains("kind of file"));
        assert!(refusal(read(&run, ".")).contains("kind of file"));
        assert!(matches!(read(&run, "nothing"), Ok(None)));
        make(&run, "new").expect("writable");
        assert!(refusal(write_pipe(&run, "new")).contains("kind of file"));
    }

    #[test]
    fn what_is_too_long_is_refused_and_not_read() {
        let (_root, run) = run();
        fs::write(run.join("text"), "12345").expect("writable");
        let file = || read(&run, "text").expect("readable").expect("there");
        assert_eq!(whole(&file(), 5).expect("short enough"), b"12345");
        assert_eq!(refusal(whole(&file(), 4)), "is longer than 4 bytes");
    }
}
