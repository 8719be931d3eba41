//! Where a descriptor leads, in terms of the file system that it is on: the same place has one location, by whatever
//! mount it was reached.

use rustix::fs::{AtFlags, StatxFlags, statx};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// A place on a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    device: String,
    path: PathBuf,
}

/// The mounts that were met, by their ids.
#[derive(Default)]
pub(super) struct Mounts {
    known: RefCell<BTreeMap<u64, Mount>>,
}

/// A folder of a file system, and the path by which it is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    folder: PathBuf,
    point: PathBuf,
}

impl Location {
    /// The path from `above` to here, if this lies beneath it or is it.
    pub(super) fn beneath<'a>(&'a self, above: &Location) -> Option<&'a Path> {
        (self.device == above.device).then(|| self.path.strip_prefix(&above.path).ok()).flatten()
    }
}

impl Mounts {
    /// Where the descriptor leads at this moment.
    pub(super) fn locate(&self, descriptor: impl AsFd) -> io::Result<Location> {
        let about = statx(&descriptor, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
        let path = std::fs::read_link(of_descriptor(descriptor.as_fd().as_raw_fd()))?;
        let mount = match self.mount(about.stx_mnt_id)? {
            Some(mount) => mount,
            // A mount above a changed root is not listed. What lies on it has one path all the same.
            None => Mount {
                device: format!("{}:{}", about.stx_dev_major, about.stx_dev_minor),
                folder: "/".into(),
                point: "/".into(),
            },
        };
        let inside = path.strip_prefix(&mount.point).map_err(|_| io::Error::other("its mount has moved"))?;
        Ok(Location { device: mount.device, path: mount.folder.join(inside) })
    }

    fn mount(&self, id: u64) -> io::Result<Option<Mount>> {
        let mut known = self.known.borrow_mut();
        if let Some(mount) = known.get(&id) {
            return Ok(Some(mount.clone()));
        }
        known.extend(std::fs::read("/proc/self/mountinfo")?.split(|byte| *byte == b'\n').filter_map(read_mount));
        Ok(known.get(&id).cloned())
    }
}

/// The path by which this process reaches what a descriptor of its own has open.
pub(super) fn of_descriptor(descriptor: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{descriptor}"))
}

/// A line such as `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw` (proc_pid_mountinfo(5)).
fn read_mount(line: &[u8]) -> Option<(u64, Mount)> {
    let mut words = line.split(|byte| *byte == b' ');
    let text = |word: &[u8]| std::str::from_utf8(word).ok().map(str::to_owned);
    let id = text(words.next()?)?.parse().ok()?;
    let device = text(words.nth(1)?)?;
    let (folder, point) = (unescaped(words.next()?), unescaped(words.next()?));
    Some((id, Mount { device, folder, point }))
}

/// Blanks, line ends and backslashes stand as three octal digits behind a backslash.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mounts_is_read() {
        let line = br"36 35 98:0 /a\040b /c\134d rw,noatime master:1 - ext3 /dev/root rw";
        let (id, mount) = read_mount(line).unwrap();
        assert_eq!((id, mount.device.as_str()), (36, "98:0"));
        assert_eq!((mount.folder.as_path(), mount.point.as_path()), (Path::new("/a b"), Path::new("/c\\d")));
        assert!(read_mount(b"").is_none() && read_mount(b"x 1 2").is_none());
    }

    #[test]
    fn a_folder_lies_beneath_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inside")).unwrap();
        let locate = |path: &Path| Mounts::default().locate(std::fs::File::open(path).unwrap()).unwrap();
        let (above, inside) = (locate(folder.path()), locate(&folder.path().join("inside")));
        assert_eq!(inside.beneath(&above), Some(Path::new("inside")));
        assert_eq!(above.beneath(&inside), None);
    }
}
