//! Files inside an execution root: reading one, and patching several. [`super::search`] searches them.
//!
//! **Invariant:** they are reached through [`Root`] alone, so no path leads outside.

use super::workspace::Place;
use crate::events::call::{CallError, FileChange, PatchedFile};
use crate::runtime::root::private::Private;
use crate::runtime::root::write::Takes;
use crate::runtime::root::{self, FileError, Root};
use crate::tools::patch::{self, FilePatch};
use crate::words::content::excerpt;
use crate::words::limit::{EXCERPT_BYTES_MAX, FILE_BYTES_MAX, FILE_SHOWN_BYTES_MAX};
use rustix::fs::Mode;
use serde_json::{Value, json};
use std::path::{Component, Path, PathBuf};

/// An execution root, and the folder in it from which paths are read.
pub(super) struct Files {
    pub root: Root,
    cwd: PathBuf,
}

/// Reads lines of a text file.
pub(super) fn read(files: &Files, path: &str, first_line: u64, lines_max: u32) -> Result<Value, CallError> {
    let relative = files.relative("path", path)?;
    let text = files.root.read(&relative, FILE_BYTES_MAX).and_then(root::text);
    let text = text.map_err(|error| unfit_file("path", &relative, &error))?;
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

/// What a patch makes of one file.
struct Change {
    old: Option<PathBuf>,
    new: Option<PathBuf>,
    text: String,
    mode: Mode,
    told: PatchedFile,
}

/// The mode of a file that a patch creates.
const MODE_DEFAULT: Mode = Mode::from_raw_mode(0o644);

/// Applies a unified diff: all of it is worked out first, so that one that does not fit changes nothing.
pub(super) fn apply(files: &Files, diff: &str) -> Result<Vec<PatchedFile>, CallError> {
    let patches = patch::read(diff).map_err(|error| unfit(&error))?;
    let changes = patches.iter().map(|patch| files.change(patch)).collect::<Result<Vec<_>, _>>()?;
    for change in &changes {
        files.carry_out(change)?;
    }
    Ok(changes.into_iter().map(|change| change.told).collect())
}

impl Files {
    pub(super) fn open(place: &Place, private: Private) -> Result<Self, CallError> {
        let root = Root::open(&place.root, private);
        let root = root.map_err(|error| refused("path", &format!("the execution root {error}"), error.hint()))?;
        Ok(Self { root, cwd: place.cwd.clone() })
    }

    /// A path below the root, as it is written: an absolute one inside is made relative.
    pub(super) fn relative(&self, field: &'static str, path: &str) -> Result<PathBuf, CallError> {
        let path = Path::new(path);
        let joined = match path.strip_prefix(self.root.path()) {
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

    fn change(&self, file: &FilePatch) -> Result<Change, CallError> {
        let named = |path: &Option<String>| path.as_ref().map(|path| self.relative("patch", path)).transpose();
        let (old, new) = (named(&file.old)?, named(&file.new)?);
        let (text, mode) = old.as_ref().map_or(Ok((String::new(), MODE_DEFAULT)), |path| self.patched(path))?;
        let applied = file.apply(&text).map_err(|error| unfit(&error))?;
        if let Some(path) = new.as_ref().filter(|path| old.as_ref() != Some(path))
            && self.root.exists(path)
        {
            return Err(unfit_file("patch", path, &FileError::Exists));
        }
        let change = match (&old, &new) {
            (None, _) => FileChange::Created,
            (Some(_), None) => FileChange::Deleted,
            (Some(old), Some(new)) if old == new => FileChange::Modified,
            (Some(_), Some(_)) => FileChange::Renamed,
        };
        let path = file.path().to_owned();
        let told = PatchedFile { path, change, added: applied.added, removed: applied.removed };
        Ok(Change { old, new, text: applied.text, mode, told })
    }

    /// What a patch begins from: the file itself, as a symlink would stay behind when its file is replaced.
    fn patched(&self, path: &Path) -> Result<(String, Mode), CallError> {
        let read = self.root.read_itself(path, FILE_BYTES_MAX);
        let read = read.and_then(|(bytes, mode)| Ok((root::text(bytes)?, mode)));
        read.map_err(|error| unfit_file("patch", path, &error))
    }

    /// The new text takes its place in one step; then what was there before goes.
    fn carry_out(&self, change: &Change) -> Result<(), CallError> {
        let failed = |error: FileError| {
            let text = format!("{} could not be written: it {error}", change.told.path);
            let hint = "files before it in the patch are changed already: look before you repeat it";
            CallError { kind: "write_failed".into(), field: None, message: text, hint: Some(hint.into()) }
        };
        let replaces = change.new == change.old;
        if let Some(new) = &change.new {
            let takes = if replaces { Takes::Place } else { Takes::FreeNameAlone };
            self.root.write(new, change.text.as_bytes(), change.mode, takes).map_err(failed)?;
        }
        match &change.old {
            Some(old) if !replaces => self.root.remove(old).map_err(failed),
            Some(_) | None => Ok(()),
        }
    }
}

pub(super) fn refused(field: &str, message: &str, hint: Option<&str>) -> CallError {
    let message = excerpt(message, 2 * EXCERPT_BYTES_MAX).to_owned();
    let (kind, field) = ("invalid_tool_input".to_owned(), Some(field.to_owned()));
    CallError { kind, field, message, hint: hint.map(str::to_owned) }
}

fn outside(field: &str) -> CallError {
    refused(field, "the path is outside the execution root", Some("name a path inside it"))
}

/// Why a file cannot be used.
pub(super) fn unfit_file(field: &str, path: &Path, error: &FileError) -> CallError {
    if matches!(error, FileError::Outside) {
        return outside(field);
    }
    refused(field, &format!("{} {error}", path.display()), error.hint())
}

fn unfit(error: &patch::PatchError) -> CallError {
    refused("patch", &error.to_string(), Some("read the file and make the patch from what it says now"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::effect::search::search;
    use std::os::unix::fs::symlink;

    fn place(root: &Path) -> Files {
        within(Place { root: root.to_owned(), cwd: PathBuf::new() })
    }

    /// Files of a place beside which a home lies.
    fn within(place: Place) -> Files {
        let home = place.root.with_file_name("home");
        Files::open(&place, Private::of_home(&home, [])).unwrap()
    }

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/src")).unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
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
        let elsewhere = within(Place { root: root.clone(), cwd: PathBuf::from("up") });
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
        assert_eq!(names, ["home", "root", "root-beside", "secret"]);
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
