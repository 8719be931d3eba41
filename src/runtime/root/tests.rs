//! The one door, tried by hand.

use super::write::Takes;
use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A folder with a home and a root beside each other.
fn beside() -> (TempDir, Root) {
    let folder = TempDir::new().unwrap();
    for name in ["home", "root"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let root = open(&folder.path().join("root"), &folder.path().join("home")).unwrap();
    (folder, root)
}

fn open(path: &Path, home: &Path) -> Result<Root, FileError> {
    Root::open(path, Private::of_home(home, ["agents/main".into()]))
}

fn read(root: &Root, path: &str) -> Result<Vec<u8>, FileError> {
    root.read(Path::new(path), 1_000)
}

#[test]
fn a_root_that_became_a_link_is_not_opened() {
    let (folder, _) = beside();
    let home = folder.path().join("home");
    symlink(folder.path().join("root"), folder.path().join("link")).unwrap();
    assert!(matches!(open(&folder.path().join("link"), &home), Err(FileError::Replaced)));
    fs::create_dir(folder.path().join("root/inner")).unwrap();
    assert!(matches!(open(&folder.path().join("link/inner"), &home), Err(FileError::Replaced)));
    assert!(matches!(open(Path::new("/proc/self/root"), &home), Err(FileError::Replaced)));
    assert!(open(&folder.path().join("root/inner"), &home).is_ok());
}

#[test]
fn of_the_home_only_what_is_open_is_reached() {
    let (folder, _) = beside();
    let home = folder.path().join("home");
    for path in ["agents/main", "agents/mainly", "triggers"] {
        fs::create_dir_all(home.join(path)).unwrap();
        fs::write(home.join(path).join("file"), "text").unwrap();
    }
    fs::write(home.join("secrets.json"), "{}").unwrap();
    fs::hard_link(home.join("triggers/file"), folder.path().join("hard")).unwrap();
    let root = open(folder.path(), &home).unwrap();
    for path in ["home/secrets.json", "home/agents/mainly/file", "home/triggers/file", "hard"] {
        assert!(matches!(read(&root, path), Err(FileError::Private)), "{path}");
        let written = root.write(&Path::new(path).with_file_name("new"), b"", Mode::RUSR, Takes::FreeNameAlone);
        assert_eq!(written.is_err(), path != "hard", "{path}: {written:?}");
    }
    assert!(matches!(root.entries(Path::new("home"), 10), Err(FileError::Private)));
    assert_eq!(read(&root, "home/agents/main/file").unwrap(), b"text");
    assert!(matches!(root.remove(Path::new("home/secrets.json")), Err(FileError::Private)));
    assert!(matches!(root.remove_all(Path::new("home/triggers/file")), Err(FileError::Private)));
    fs::rename(&home, folder.path().join("moved")).unwrap();
    assert!(read(&root, "moved/secrets.json").is_err(), "where the home is not known, nothing is read");
}

#[test]
fn a_folder_exchanged_for_a_link_leads_nowhere_else() {
    const ROUNDS: u32 = 3_000;
    let (folder, root) = beside();
    let path = folder.path().join("root");
    for (name, text) in [("root/inner", "inside"), ("outer", "outside")] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), text).unwrap();
    }
    symlink("../outer", path.join("link")).unwrap();
    let racing = std::thread::spawn(move || {
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        let (inner, link) = (path.join("inner"), path.join("link"));
        for _ in 0..ROUNDS * 4 {
            rustix::fs::renameat_with(rustix::fs::CWD, &inner, rustix::fs::CWD, &link, exchange).unwrap();
        }
    });
    let mut found = 0;
    for _ in 0..ROUNDS {
        if let Ok(bytes) = read(&root, "inner/file") {
            assert_eq!(bytes, b"inside");
            found += 1;
        }
        let written = root.write(Path::new("inner/new"), b"new", Mode::RUSR | Mode::WUSR, Takes::Place);
        assert!(!matches!(written, Err(FileError::Io(_))), "{written:?}");
    }
    racing.join().unwrap();
    assert!(found > 0, "it is a folder in some rounds");
    assert_eq!(fs::read_dir(folder.path().join("outer")).unwrap().count(), 1, "nothing is written outside");
}

#[test]
fn a_file_that_is_replaced_keeps_its_other_names() {
    let (folder, root) = beside();
    let path = |name: &str| folder.path().join("root").join(name);
    fs::write(path("one"), "old").unwrap();
    fs::hard_link(path("one"), path("other")).unwrap();
    root.write(Path::new("one"), b"new", Mode::from_raw_mode(0o640), Takes::Place).unwrap();
    assert_eq!((fs::read(path("one")).unwrap(), fs::read(path("other")).unwrap()), (b"new".to_vec(), b"old".to_vec()));
    let taken = root.write(Path::new("other"), b"new", Mode::RUSR, Takes::FreeNameAlone);
    assert!(matches!(taken, Err(FileError::Exists)), "{taken:?}");
    let mut names: Vec<_> = fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["one", "other"], "no half-made file stays");
}

#[test]
fn removing_follows_no_link() {
    let (folder, root) = beside();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("root/skills/inner")).unwrap();
    fs::create_dir(path("outer")).unwrap();
    fs::write(path("outer/file"), "").unwrap();
    symlink(path("outer"), path("root/skills/inner/link")).unwrap();
    symlink(path("outer"), path("root/link")).unwrap();
    root.remove_all(Path::new("skills")).unwrap();
    root.remove_all(Path::new("link")).unwrap();
    root.remove_all(Path::new("missing")).unwrap();
    assert!(path("outer/file").exists() && !path("root/skills").exists() && !path("root/link").exists());
}

#[test]
fn what_is_longer_than_allowed_is_not_read() {
    let (folder, root) = beside();
    fs::write(folder.path().join("root/long"), "12345").unwrap();
    assert!(matches!(root.read(Path::new("long"), 4), Err(FileError::TooLong(4))));
    assert_eq!(root.read(Path::new("long"), 5).unwrap(), b"12345");
    assert_eq!(root.read_alone(Path::new("long"), 4).unwrap(), b"1234");
}
