//! Files that say what must not change, and the variables that write them anew.

use std::fs;
use std::path::{Path, PathBuf};

/// A path inside the package.
pub fn path(inside: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(inside)
}

/// Whether the files are to be written rather than compared.
pub fn is_writing(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn read_text(path: &Path) -> String {
    String::from_utf8(read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn write(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
