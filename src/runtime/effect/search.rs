//! Searching the text files of an execution root, as far as git would look at them.

use super::file::{Files, refused, unfit_file};
use crate::events::call::CallError;
use crate::runtime::root::{self, Entry, FileError};
use crate::words::content::excerpt;
use crate::words::limit::{
    EXCERPT_BYTES_MAX, FILE_BYTES_MAX, FILE_SHOWN_BYTES_MAX, IGNORE_FILE_BYTES_MAX, SEARCH_FILES_MAX, SEARCH_MS_MAX,
};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use regex::Regex;
use rustix::fs::FileType;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Files that say what is left out of a search; the last one that says something about a path is heard.
const IGNORE_FILES: &[&str] = &[".git/info/exclude", ".gitignore", ".ignore"];

/// Searches text files for a regular expression. What git ignores, hidden files, symlinks and other than text are left
/// out; so is what may not be read.
pub(super) fn search(
    files: &Files,
    pattern: &str,
    path: Option<&str>,
    glob: Option<&str>,
    matches_max: u32,
) -> Result<Value, CallError> {
    let fault = |field, error: &dyn std::fmt::Display| refused(field, &error.to_string(), None);
    let pattern = Regex::new(pattern).map_err(|error| fault("pattern", &error))?;
    let mut wanted = OverrideBuilder::new(files.root.path());
    if let Some(glob) = glob {
        wanted.add(glob).map_err(|error| fault("glob", &error))?;
    }
    let begin = files.relative("path", path.unwrap_or("."))?;
    let mut search = Search {
        files,
        pattern,
        wanted: wanted.build().map_err(|error| fault("glob", &error))?,
        clock: Clock::start(),
        matches: Vec::new(),
        matches_max: matches_max as usize,
        bytes: 0,
        searched: 0,
        cut: false,
    };
    search.begin(begin.clone()).map_err(|error| unfit_file("path", &begin, &error))?;
    Ok(json!({"matches": search.matches, "files_searched": search.searched, "truncated": search.cut}))
}

struct Search<'a> {
    files: &'a Files,
    pattern: Regex,
    wanted: Override,
    clock: Clock,
    matches: Vec<Value>,
    matches_max: usize,
    bytes: usize,
    searched: usize,
    cut: bool,
}

/// What the ignore files of a folder and of those above it leave out.
struct Ignored {
    here: Gitignore,
    above: Option<Rc<Ignored>>,
}

/// What is still to be looked at.
struct Open {
    entry: Entry,
    above: Option<Rc<Ignored>>,
}

impl Search<'_> {
    /// Searches a folder and those in it, in the order of their names; or a file, whatever would leave it out.
    fn begin(&mut self, begin: PathBuf) -> Result<(), FileError> {
        let root = &self.files.root;
        match root.entries(&begin, 0) {
            Ok(_) => {
                let above = begin.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev();
                let above = above.fold(None, |above, folder| Some(self.ignored(folder, above)));
                self.walk(Open { entry: Entry { path: begin, kind: FileType::Directory }, above });
            }
            Err(FileError::NotFolder) => self.file(&begin, &root.read(&begin, FILE_BYTES_MAX).and_then(root::text)?),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn walk(&mut self, begin: Open) {
        let mut open = vec![begin];
        while let Some(Open { entry, above }) = open.pop() {
            self.cut |= self.searched > SEARCH_FILES_MAX || open.len() > SEARCH_FILES_MAX;
            self.cut |= self.clock.ms() > SEARCH_MS_MAX;
            if self.cut {
                return;
            }
            if entry.kind == FileType::Directory {
                let ignored = self.ignored(&entry.path, above);
                let entries = self.files.root.entries(&entry.path, SEARCH_FILES_MAX).unwrap_or_default();
                let kept = entries.into_iter().rev().filter(|entry| self.looks_at(entry, &ignored));
                open.extend(kept.map(|entry| Open { entry, above: Some(ignored.clone()) }));
            } else {
                self.searched += 1;
                if let Ok(text) = self.files.root.read(&entry.path, FILE_BYTES_MAX).and_then(root::text) {
                    self.file(&entry.path, &text);
                }
            }
        }
    }

    fn file(&mut self, path: &Path, text: &str) {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| self.pattern.is_match(line)) {
            if self.matches.len() == self.matches_max || self.bytes > FILE_SHOWN_BYTES_MAX {
                self.cut = true;
                return;
            }
            let line = excerpt(line, 2 * EXCERPT_BYTES_MAX);
            self.bytes += line.len();
            self.matches.push(json!({"path": path.to_string_lossy(), "line": index + 1, "text": line}));
        }
    }

    fn looks_at(&self, entry: &Entry, ignored: &Ignored) -> bool {
        let is_folder = entry.kind == FileType::Directory;
        let is_hidden = entry.path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let whole = self.files.root.path().join(&entry.path);
        (is_folder || entry.kind == FileType::RegularFile)
            && match self.wanted.matched(&whole, is_folder) {
                Match::Whitelist(_) => true,
                Match::Ignore(_) => false,
                Match::None => !is_hidden && !ignored.leaves_out(&whole, is_folder),
            }
    }

    fn ignored(&self, folder: &Path, above: Option<Rc<Ignored>>) -> Rc<Ignored> {
        let mut here = GitignoreBuilder::new(self.files.root.path().join(folder));
        for name in IGNORE_FILES {
            let text = self.files.root.read(&folder.join(name), IGNORE_FILE_BYTES_MAX).and_then(root::text);
            for line in text.unwrap_or_default().lines() {
                // A line that is no pattern leaves nothing out, as with git.
                let _ = here.add_line(None, line);
            }
        }
        Rc::new(Ignored { here: here.build().unwrap_or_else(|_| Gitignore::empty()), above })
    }
}

impl Ignored {
    fn leaves_out(&self, path: &Path, is_folder: bool) -> bool {
        match (self.here.matched(path, is_folder), &self.above) {
            (Match::Ignore(_), _) => true,
            (Match::Whitelist(_), _) | (Match::None, None) => false,
            (Match::None, Some(above)) => above.leaves_out(path, is_folder),
        }
    }
}

/// How long something has taken, by the monotonic clock.
struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a duration for a bound, which nothing recorded rests on")]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
