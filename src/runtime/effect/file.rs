//! Files inside an execution root.
//!
//! **Invariant:** no path leads outside, symlinks included: the kernel resolves each one beneath the root's descriptor,
//! in one step with opening it, so nothing can be put in its way in between.

use super::workspace::Place;
use crate::events::call::{CallError, FileChange, PatchedFile};
use crate::tools::patch::{self, FilePatch};
use crate::words::limit::{EXCERPT_BYTES_MAX, FILE_BYTES_MAX, FILE_SHOWN_BYTES_MAX, SEARCH_FILES_MAX, SEARCH_MS_MAX};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, unlinkat};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// An execution root, held open.
struct Root {
    folder: OwnedFd,
    path: PathBuf,
    cwd: PathBuf,
}

/// Reads lines of a text file.
pub(super) fn read(place: &Place, path: &str, first_line: u64, lines_max: u32) -> Result<Value, CallError> {
    let root = Root::open(place)?;
    let relative = root.relative("path", path)?;
    let text = root.text(&relative)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let first = usize::try_from(first_line - 1).unwrap_or(usize::MAX).min(lines.len());
    let mut shown = String::new();
    let mut last = first;
    for line in lines[first..].iter().take(lines_max as usize) {
        if shown.len() + line.len() > FILE_SHOWN_BYTES_MAX {
            break;
        }
        shown.push_str(line);
        last += 1;
    }
    Ok(json!({
        "path": relative.to_string_lossy(), "text": shown, "first_line": first_line, "lines": last - first,
        "total_lines": lines.len(), "bytes": text.len(), "truncated": first > 0 || last < lines.len(),
    }))
}

/// Searches text files for a regular expression. What git ignores, hidden files and other than text are left out.
pub(super) fn search(
    place: &Place,
    pattern: &str,
    path: Option<&str>,
    glob: Option<&str>,
    matches_max: u32,
) -> Result<Value, CallError> {
    let root = Root::open(place)?;
    let fault = |field, error: &dyn std::fmt::Display| refused(field, &error.to_string(), None);
    let pattern = regex::Regex::new(pattern).map_err(|error| fault("pattern", &error))?;
    let begin = root.relative("path", path.unwrap_or("."))?;
    // Opened once for the refusal: the walk below follows no symlinks.
    drop(root.open_at(&begin, OFlags::PATH).map_err(|error| unopened(path.unwrap_or("."), error))?);
    let mut walk = ignore::WalkBuilder::new(root.path.join(&begin));
    walk.follow_links(false).require_git(false).sort_by_file_name(std::cmp::Ord::cmp);
    if let Some(glob) = glob {
        let mut only = ignore::overrides::OverrideBuilder::new(&root.path);
        only.add(glob).map_err(|error| fault("glob", &error))?;
        walk.overrides(only.build().map_err(|error| fault("glob", &error))?);
    }
    let mut found = Search { matches: Vec::new(), bytes: 0, files: 0, cut: false, matches_max: matches_max as usize };
    let clock = Clock::start();
    for entry in walk.build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())) {
        let relative = entry.path().strip_prefix(&root.path).unwrap_or(entry.path());
        found.files += 1;
        found.cut |= found.files > SEARCH_FILES_MAX || clock.ms() > SEARCH_MS_MAX;
        if found.cut {
            break;
        }
        if let Ok(text) = root.text(relative) {
            found.file(&pattern, relative, &text);
        }
    }
    Ok(json!({"matches": found.matches, "files_searched": found.files, "truncated": found.cut}))
}

struct Search {
    matches: Vec<Value>,
    bytes: usize,
    files: usize,
    cut: bool,
    matches_max: usize,
}

impl Search {
    fn file(&mut self, pattern: &regex::Regex, path: &Path, text: &str) {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
            if self.matches.len() == self.matches_max || self.bytes > FILE_SHOWN_BYTES_MAX {
                self.cut = true;
                return;
            }
            let line = crate::words::content::excerpt(line, 2 * EXCERPT_BYTES_MAX);
            self.bytes += line.len();
            self.matches.push(json!({"path": path.to_string_lossy(), "line": index + 1, "text": line}));
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

/// What a patch makes of one file.
struct Change {
    old: Option<PathBuf>,
    new: Option<PathBuf>,
    text: String,
    mode: Mode,
    told: PatchedFile,
}

/// Applies a unified diff: all of it is worked out first, so that one that does not fit changes nothing.
pub(super) fn apply(place: &Place, diff: &str) -> Result<Vec<PatchedFile>, CallError> {
    let root = Root::open(place)?;
    let files = patch::read(diff).map_err(|error| unfit(&error))?;
    let changes = files.iter().map(|file| root.change(file)).collect::<Result<Vec<_>, _>>()?;
    for change in &changes {
        root.carry_out(change)?;
    }
    Ok(changes.into_iter().map(|change| change.told).collect())
}

impl Root {
    fn open(place: &Place) -> Result<Self, CallError> {
        let path = super::workspace::resolve(&place.root).map_err(|reason| refused("path", &reason, None))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| unopened("the execution root", error))?;
        Ok(Self { folder, path, cwd: place.cwd.clone() })
    }

    /// A path below the root, as it is written: an absolute one inside is made relative.
    fn relative(&self, field: &'static str, path: &str) -> Result<PathBuf, CallError> {
        let path = Path::new(path);
        let joined = match path.strip_prefix(&self.path) {
            Ok(inside) => inside.to_owned(),
            Err(_) if path.is_absolute() => return Err(outside(field)),
            Err(_) => self.cwd.join(path),
        };
        let mut relative = PathBuf::new();
        for part in joined.components() {
            match part {
                Component::Normal(name) => relative.push(name),
                Component::CurDir => {}
                Component::ParentDir if relative.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside(field)),
            }
        }
        Ok(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative })
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }

    /// A regular file's text. A pipe is not waited for.
    fn text(&self, path: &Path) -> Result<String, CallError> {
        let name = path.to_string_lossy();
        let opened = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
        let mut file = File::from(opened.map_err(|error| unopened(&name, error))?);
        let about = file.metadata().map_err(|error| refused("path", &error.to_string(), None))?;
        if !about.is_file() {
            return Err(refused("path", &format!("{name} is no regular file"), Some("list folders with a command")));
        }
        if about.len() > FILE_BYTES_MAX {
            let hint = Some("read a part of it with a command");
            return Err(refused("path", &format!("{name} is longer than {FILE_BYTES_MAX} bytes"), hint));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| refused("path", &error.to_string(), None))?;
        String::from_utf8(bytes).map_err(|_| refused("path", &format!("{name} is not text in UTF-8"), None))
    }

    fn change(&self, file: &FilePatch) -> Result<Change, CallError> {
        let named = |path: &Option<String>| path.as_ref().map(|path| self.relative("patch", path)).transpose();
        let (old, new) = (named(&file.old)?, named(&file.new)?);
        let text = old.as_ref().map(|path| self.text(path)).transpose()?;
        let applied = file.apply(text.as_deref().unwrap_or_default()).map_err(|error| unfit(&error))?;
        if let Some(path) = new.as_ref().filter(|path| old.as_ref() != Some(path))
            && self.open_at(path, OFlags::PATH).is_ok()
        {
            return Err(refused("patch", &format!("{} is there already", path.display()), None));
        }
        let change = match (&old, &new) {
            (None, _) => FileChange::Created,
            (Some(_), None) => FileChange::Deleted,
            (Some(old), Some(new)) if old == new => FileChange::Modified,
            (Some(_), Some(_)) => FileChange::Renamed,
        };
        let path = file.path().to_owned();
        let told = PatchedFile { path, change, added: applied.added, removed: applied.removed };
        let mode = old.as_ref().map_or(Mode::from_raw_mode(0o644), |path| self.mode(path));
        Ok(Change { old, new, text: applied.text, mode, told })
    }

    fn mode(&self, path: &Path) -> Mode {
        let about = self.open_at(path, OFlags::PATH).and_then(rustix::fs::fstat);
        about.map_or(Mode::from_raw_mode(0o644), |about| Mode::from_raw_mode(about.st_mode & 0o777))
    }

    /// The new text is written beside the file and takes its place in one step; then what was there before goes.
    fn carry_out(&self, change: &Change) -> Result<(), CallError> {
        let failed = |error: &dyn std::fmt::Display| {
            let text = format!("{} could not be written: {error}", change.told.path);
            let hint = "files before it in the patch are changed already: look before you repeat it";
            CallError { kind: "write_failed".into(), field: None, message: text, hint: Some(hint.into()) }
        };
        if let Some(new) = &change.new {
            let (folder, name) = self.folder_of(new).map_err(|error| failed(&error))?;
            let temporary = format!(".holon-{name}.new");
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::openat(&folder, temporary.as_str(), flags, change.mode);
            let mut file = File::from(made.map_err(|error| failed(&error))?);
            file.write_all(change.text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| failed(&error))?;
            rustix::fs::fchmod(&file, change.mode).map_err(|error| failed(&error))?;
            renameat(&folder, temporary.as_str(), &folder, name.as_str()).map_err(|error| failed(&error))?;
        }
        if let Some(old) = change.old.as_ref().filter(|old| Some(*old) != change.new.as_ref()) {
            let (folder, name) = self.folder_of(old).map_err(|error| failed(&error))?;
            unlinkat(&folder, name.as_str(), AtFlags::empty()).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// The folder of a path, made where it is not there, and the last name.
    fn folder_of(&self, path: &Path) -> Result<(OwnedFd, String), Errno> {
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_string_lossy().into_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut made = PathBuf::from(".");
        for part in parent.components() {
            made.push(part);
            match self.open_at(&made, OFlags::PATH | OFlags::DIRECTORY) {
                Err(Errno::NOENT) => {
                    let above = self.open_at(made.parent().unwrap_or(Path::new(".")), OFlags::PATH)?;
                    mkdirat(&above, Path::new(part.as_os_str()), Mode::from_raw_mode(0o755))?;
                }
                opened => drop(opened?),
            }
        }
        Ok((self.open_at(parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }
}

fn refused(field: &str, message: &str, hint: Option<&str>) -> CallError {
    let message = crate::words::content::excerpt(message, 2 * EXCERPT_BYTES_MAX).to_owned();
    let (kind, field) = ("invalid_tool_input".to_owned(), Some(field.to_owned()));
    CallError { kind, field, message, hint: hint.map(str::to_owned) }
}

fn outside(field: &str) -> CallError {
    refused(field, "the path is outside the execution root", Some("name a path inside it"))
}

fn unopened(path: &str, error: Errno) -> CallError {
    match error {
        Errno::XDEV | Errno::LOOP => outside("path"),
        Errno::NOENT => refused("path", &format!("{path} is not there"), Some("SearchFiles or a command lists files")),
        _ => refused("path", &format!("{path}: {error}"), None),
    }
}

fn unfit(error: &patch::PatchError) -> CallError {
    refused("patch", &error.to_string(), Some("read the file and make the patch from what it says now"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn place(root: &Path) -> Place {
        Place { root: root.to_owned(), cwd: PathBuf::new() }
    }

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/src")).unwrap();
        std::fs::write(folder.path().join("root/src/a.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(folder.path().join("secret"), "secret\n").unwrap();
        folder
    }

    #[test]
    fn lines_are_read_and_counted() {
        let folder = tree();
        let read = read(&place(&folder.path().join("root")), "src/a.txt", 2, 1).unwrap();
        assert_eq!((read["text"].as_str(), read["total_lines"].as_u64()), (Some("two\n"), Some(3)));
        assert_eq!(read["truncated"], true);
    }

    /// Links that lead out of the root, and one that stays inside.
    fn with_links(folder: &Path) -> PathBuf {
        let root = folder.join("root");
        symlink("../secret", root.join("link")).unwrap();
        symlink(folder, root.join("up")).unwrap();
        symlink("up", root.join("again")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink("src", root.join("inner")).unwrap();
        std::fs::create_dir(folder.join("root-beside")).unwrap();
        std::fs::write(folder.join("root-beside/secret"), "secret\n").unwrap();
        root
    }

    #[test]
    fn no_path_leads_outside() {
        let folder = tree();
        let root = with_links(folder.path());
        let absolute = |inside: &str| folder.path().join(inside).to_string_lossy().into_owned();
        let (secret, beside, through) =
            (absolute("secret"), absolute("root-beside/secret"), absolute("root/up/secret"));
        let relative = ["../secret", "link", "up/secret", "again/secret", "src/../../secret", "magic/etc/passwd"];
        for path in relative.into_iter().chain([secret.as_str(), &beside, &through, "/etc/passwd"]) {
            let read = read(&place(&root), path, 1, 10).unwrap_err();
            let searched = search(&place(&root), "secret", Some(path), None, 10).unwrap_err();
            for error in [read, searched] {
                assert_eq!(
                    (error.kind.as_str(), error.field.as_deref()),
                    ("invalid_tool_input", Some("path")),
                    "{path}"
                );
                assert!(error.message.contains("outside"), "{path}: {error:?}");
            }
        }
        let elsewhere = Place { root: root.clone(), cwd: PathBuf::from("up") };
        assert!(read(&elsewhere, "secret", 1, 10).is_err(), "a working folder that became a link leads nowhere else");
        for inside in ["inner/a.txt", "src/../src/a.txt", &absolute("root/src/a.txt")] {
            assert!(read(&place(&root), inside, 1, 10).is_ok(), "{inside} is inside");
        }
    }

    #[test]
    fn a_search_of_the_root_does_not_follow_links_out_of_it() {
        let folder = tree();
        let root = with_links(folder.path());
        let found = search(&place(&root), "secret", None, None, 10).unwrap();
        assert_eq!(found["matches"], json!([]), "{found}");
    }

    #[test]
    fn no_patch_changes_what_is_outside() {
        let folder = tree();
        let root = with_links(folder.path());
        let changed = |path: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-secret\n+known\n");
        let made = |path: &str| format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+made\n");
        let gone = |path: &str| format!("--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-secret\n");
        let moved = |old: &str, new: &str| format!("diff --git a/x b/x\nrename from {old}\nrename to {new}\n");
        let mut patches = vec![moved("src/a.txt", "../moved"), moved("src/a.txt", "up/moved"), moved("link", "mine")];
        for path in ["../secret", "link", "up/secret", "again/secret"] {
            patches.extend([changed(path), gone(path)]);
        }
        patches.extend(["../made", "up/made", "up/deep/made", "again/made"].map(made));
        for patch in patches {
            assert!(apply(&place(&root), &patch).is_err(), "{patch}");
        }
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["root", "root-beside", "secret"]);
        assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), "secret\n");
        assert_eq!(std::fs::read_to_string(root.join("src/a.txt")).unwrap(), "one\ntwo\nthree\n");
    }

    #[test]
    fn pipes_and_folders_are_refused_at_once() {
        let folder = tree();
        let root = folder.path().join("root");
        nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in ["pipe", "src", "missing"] {
            assert!(read(&place(&root), path, 1, 10).is_err(), "{path}");
        }
    }

    #[test]
    fn a_search_finds_lines_and_leaves_out_what_is_ignored() {
        let folder = tree();
        let root = folder.path().join("root");
        std::fs::write(root.join(".gitignore"), "built\n").unwrap();
        std::fs::create_dir(root.join("built")).unwrap();
        std::fs::write(root.join("built/b.txt"), "two\n").unwrap();
        let found = search(&place(&root), "^t", None, Some("*.txt"), 10).unwrap();
        let paths: Vec<_> =
            found["matches"].as_array().unwrap().iter().map(|one| one["line"].as_u64().unwrap()).collect();
        assert_eq!(paths, [2, 3], "{found}");
        assert_eq!(search(&place(&root), "(", None, None, 10).unwrap_err().field.as_deref(), Some("pattern"));
        assert_eq!(search(&place(&root), "t", None, None, 1).unwrap()["truncated"], true);
    }

    #[test]
    fn a_patch_that_does_not_fit_changes_nothing() {
        let folder = tree();
        let root = folder.path().join("root");
        let good = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
        let bad = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-missing\n+x\n";
        assert!(apply(&place(&root), &format!("{good}{bad}")).is_err());
        assert_eq!(std::fs::read_to_string(root.join("src/a.txt")).unwrap(), "one\ntwo\nthree\n");
        let new = "--- /dev/null\n+++ b/deep/er/new.txt\n@@ -0,0 +1 @@\n+made\n";
        let told = apply(&place(&root), &format!("{good}{new}")).unwrap();
        assert_eq!(told.iter().map(|file| file.change.name()).collect::<Vec<_>>(), ["modified", "created"]);
        assert_eq!(std::fs::read_to_string(root.join("src/a.txt")).unwrap(), "one\n2\nthree\n");
        assert_eq!(std::fs::read_to_string(root.join("deep/er/new.txt")).unwrap(), "made\n");
        let gone = "--- a/deep/er/new.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-made\n";
        apply(&place(&root), gone).unwrap();
        assert!(!root.join("deep/er/new.txt").exists());
    }
}
