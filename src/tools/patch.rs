//! Unified diffs: reading one, and applying it to a text. Nothing here touches a file.
//!
//! A hunk applies where its lines stand exactly as it says: at its line number, or at the one other place where they
//! do. What could apply in two places is refused, for a guess may damage.

use crate::words::limit::PATCH_FILES_MAX;

/// What a diff does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// None for a file that is created.
    pub old: Option<String>,
    /// None for a file that is deleted.
    pub new: Option<String>,
    hunks: Vec<Hunk>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// The line of the old text where it begins, from 1.
    line: usize,
    /// What is to be there, each line with its end.
    before: Vec<String>,
    after: Vec<String>,
}

/// A text with a diff applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub text: String,
    pub added: u32,
    pub removed: u32,
}

/// Why a diff cannot be read or applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("line {line} of the patch: {reason}")]
    Unreadable { line: usize, reason: &'static str },
    #[error("the patch names no file")]
    Empty,
    #[error("the patch changes more than {PATCH_FILES_MAX} files")]
    TooManyFiles,
    #[error("hunk {hunk} of {path} does not fit: its lines are not there as they stand in the patch")]
    Missing { path: String, hunk: usize },
    #[error("hunk {hunk} of {path} fits in more than one place; give more context")]
    Ambiguous { path: String, hunk: usize },
}

/// Reads a unified diff, plain or as git writes it.
pub fn read(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reader = Reader { lines: patch.split_inclusive('\n').collect(), next: 0 };
    let mut files = Vec::new();
    while let Some(file) = reader.file()? {
        if files.len() == PATCH_FILES_MAX {
            return Err(PatchError::TooManyFiles);
        }
        files.push(file);
    }
    if files.is_empty() { Err(PatchError::Empty) } else { Ok(files) }
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    next: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.next).copied()
    }

    fn fault(&self, reason: &'static str) -> PatchError {
        PatchError::Unreadable { line: self.next + 1, reason }
    }

    /// The next file; what stands before its header is for people.
    fn file(&mut self) -> Result<Option<FilePatch>, PatchError> {
        let (mut from, mut to) = (None, None);
        while let Some(line) = self.peek() {
            let line = line.trim_end();
            if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(self.fault("binary files cannot be patched"));
            }
            if let Some(name) = line.strip_prefix("rename from ") {
                from = Some(name.to_owned());
            } else if let Some(name) = line.strip_prefix("rename to ") {
                to = Some(name.to_owned());
            } else if line.starts_with("diff --git ") && from.is_some() && to.is_some() {
                break;
            } else if let Some(old) = line.strip_prefix("--- ") {
                self.next += 1;
                return self.changed(old).map(Some);
            }
            self.next += 1;
        }
        // A rename that changes nothing has no header of its own.
        Ok(from.zip(to).map(|(old, new)| FilePatch { old: Some(old), new: Some(new), hunks: Vec::new() }))
    }

    fn changed(&mut self, old: &str) -> Result<FilePatch, PatchError> {
        let Some(new) = self.peek().and_then(|line| line.strip_prefix("+++ ")) else {
            return Err(self.fault("`+++ path` must follow `--- path`"));
        };
        self.next += 1;
        let (old, new) = (path(old, "a/"), path(new.trim_end(), "b/"));
        if old.is_none() && new.is_none() {
            return Err(self.fault("one of the two paths must be a file"));
        }
        let mut hunks = Vec::new();
        while self.peek().is_some_and(|line| line.starts_with("@@")) {
            hunks.push(self.hunk()?);
        }
        if hunks.is_empty() {
            return Err(self.fault("a hunk must follow, which begins with `@@ -line,count +line,count @@`"));
        }
        Ok(FilePatch { old, new, hunks })
    }

    fn hunk(&mut self) -> Result<Hunk, PatchError> {
        let head = self.peek().unwrap_or_default();
        let (line, old, new) = header(head).ok_or_else(|| self.fault("not `@@ -line,count +line,count @@`"))?;
        self.next += 1;
        let mut hunk = Hunk { line, ..Hunk::default() };
        while hunk.before.len() < old || hunk.after.len() < new {
            let Some(line) = self.peek() else { return Err(self.fault("the hunk ends before its count")) };
            self.body(line, &mut hunk)?;
            self.next += 1;
        }
        self.without_end(&mut hunk);
        Ok(hunk)
    }

    fn body(&mut self, line: &str, hunk: &mut Hunk) -> Result<(), PatchError> {
        let text = line.get(1..).unwrap_or_default().to_owned();
        match line.as_bytes().first() {
            Some(b' ') => {
                hunk.before.push(text.clone());
                hunk.after.push(text);
            }
            Some(b'-') => hunk.before.push(text),
            Some(b'+') => hunk.after.push(text),
            Some(b'\\') => Self::cut_end(hunk),
            // Some writers leave the space of an empty line out.
            Some(b'\n') => {
                hunk.before.push("\n".to_owned());
                hunk.after.push("\n".to_owned());
            }
            Some(_) | None => return Err(self.fault("a line of a hunk begins with a space, `+` or `-`")),
        }
        Ok(())
    }

    /// `\ No newline at end of file` after the last line.
    fn without_end(&mut self, hunk: &mut Hunk) {
        while self.peek().is_some_and(|line| line.starts_with('\\')) {
            Self::cut_end(hunk);
            self.next += 1;
        }
    }

    /// The line before has no end, on whichever side it stands.
    fn cut_end(hunk: &mut Hunk) {
        for side in [&mut hunk.before, &mut hunk.after] {
            if let Some(last) = side.last_mut() {
                last.truncate(last.trim_end_matches('\n').len());
            }
        }
    }
}

/// A path without git's prefix; none for /dev/null. What follows a tab is a time.
fn path(text: &str, prefix: &str) -> Option<String> {
    let name = text.split('\t').next().unwrap_or_default().trim_end();
    (name != "/dev/null").then(|| name.strip_prefix(prefix).unwrap_or(name).to_owned())
}

/// `@@ -line,count +line,count @@`: the old line, and both counts.
fn header(line: &str) -> Option<(usize, usize, usize)> {
    let ranges = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (line, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((line.parse::<usize>().ok()?, count.trim_end().parse::<usize>().ok()?))
    };
    let ((line, old), (_, new)) = (range(old)?, range(new)?);
    Some((line, old, new))
}

impl FilePatch {
    /// The file as it is named where it is, or will be.
    pub fn path(&self) -> &str {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// The old text with every hunk applied.
    pub fn apply(&self, old: &str) -> Result<Applied, PatchError> {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut text, mut done) = (String::new(), 0);
        let (mut added, mut removed) = (0, 0);
        for (index, hunk) in self.hunks.iter().enumerate() {
            let at = self.place(&lines, done, hunk, index + 1)?;
            lines[done..at].iter().for_each(|line| text.push_str(line));
            hunk.after.iter().for_each(|line| text.push_str(line));
            done = at + hunk.before.len();
            let same = hunk.after.iter().filter(|line| hunk.before.contains(line)).count();
            added += u32::try_from(hunk.after.len() - same).unwrap_or(u32::MAX);
            removed += u32::try_from(hunk.before.len().saturating_sub(same)).unwrap_or(u32::MAX);
        }
        lines[done..].iter().for_each(|line| text.push_str(line));
        Ok(Applied { text, added, removed })
    }

    /// Where a hunk fits: at its line, or at the one other place behind the hunks before it.
    fn place(&self, lines: &[&str], done: usize, hunk: &Hunk, number: usize) -> Result<usize, PatchError> {
        let fits = |at: usize| {
            let end = at + hunk.before.len();
            end <= lines.len() && lines[at..end].iter().zip(&hunk.before).all(|(line, expected)| line == expected)
        };
        let named = if hunk.before.is_empty() { hunk.line } else { hunk.line.saturating_sub(1) };
        if named >= done && named <= lines.len() && fits(named) {
            return Ok(named);
        }
        let path = || self.path().to_owned();
        if hunk.before.is_empty() {
            return Err(PatchError::Missing { path: path(), hunk: number });
        }
        let mut places = (done..lines.len()).filter(|at| fits(*at));
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            (None, _) => Err(PatchError::Missing { path: path(), hunk: number }),
            (Some(_), Some(_)) => Err(PatchError::Ambiguous { path: path(), hunk: number }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(patch: &str, old: &str) -> Result<String, PatchError> {
        read(patch).and_then(|files| files[0].apply(old)).map(|applied| applied.text)
    }

    const CHANGE: &str = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

    #[test]
    fn a_hunk_applies_at_its_line_or_where_its_lines_stand_once() {
        assert_eq!(apply(CHANGE, "one\ntwo\nthree\n").unwrap(), "one\n2\nthree\n");
        assert_eq!(apply(CHANGE, "zero\none\ntwo\nthree\nfour\n").unwrap(), "zero\none\n2\nthree\nfour\n");
        let twice = "zero\none\ntwo\nthree\none\ntwo\nthree\n";
        assert_eq!(apply(CHANGE, twice), Err(PatchError::Ambiguous { path: "x".into(), hunk: 1 }));
        assert_eq!(apply(CHANGE, "one\nTWO\nthree\n"), Err(PatchError::Missing { path: "x".into(), hunk: 1 }));
    }

    #[test]
    fn files_are_created_deleted_and_renamed() {
        let created = "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n";
        let file = &read(created).unwrap()[0];
        assert_eq!((file.old.as_deref(), file.new.as_deref()), (None, Some("new")));
        assert_eq!(file.apply("").unwrap(), Applied { text: "a\nb".into(), added: 2, removed: 0 });

        let deleted = "--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        let file = &read(deleted).unwrap()[0];
        assert_eq!((file.old.as_deref(), file.new.as_deref()), (Some("old"), None));
        assert_eq!(file.apply("a\n").unwrap().text, "");

        let renamed = "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n";
        let file = &read(renamed).unwrap()[0];
        assert_eq!((file.old.as_deref(), file.new.as_deref()), (Some("x"), Some("y")));
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_line() {
        assert_eq!(read("hello"), Err(PatchError::Empty));
        assert_eq!(read("--- a/x\n+++ b/x\n").unwrap_err().to_string().split(':').next(), Some("line 3 of the patch"));
        assert!(matches!(read("--- a/x\n@@"), Err(PatchError::Unreadable { line: 2, .. })));
        assert!(matches!(read("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n"), Err(PatchError::Unreadable { .. })));
        assert!(matches!(read("GIT binary patch\n"), Err(PatchError::Unreadable { line: 1, .. })));
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+2\r\n";
        assert_eq!(apply(patch, "one\r\ntwo\r\n").unwrap(), "one\r\n2\r\n");
    }

    #[test]
    fn several_hunks_follow_each_other() {
        let patch = "--- x\n+++ x\n@@ -1 +1,2 @@\n+zero\n a\n@@ -3 +4 @@\n-c\n+C\n";
        assert_eq!(apply(patch, "a\nb\nc\n").unwrap(), "zero\na\nb\nC\n");
    }
}
