//! Printing: the only place of the command line that writes.

use super::{Failure, Outcome};
use rustix::termios::tcgetwinsize;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

/// A last column is not cut to less than this: a terminal may be too narrow for anything.
const CELL_CHARS_MIN: usize = 8;

/// The column of names in a record.
const NAME_CHARS: usize = 24;

const BOLD: &str = "1";
const RED: &str = "1;31";
const CYAN: &str = "1;36";
const YELLOW: &str = "1;33";

/// Data, for programs and people: one line, or a JSON document.
pub(super) fn data(text: &str) {
    write(&mut stdout().lock(), &shown(text, stdout().is_terminal()));
}

/// A text as it is given to a reader: a terminal is not given commands, and a program gets every byte.
fn shown(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if is_terminal { harmless(text).into() } else { text.into() }
}

/// A text that does nothing to a terminal: what agents and the outside said may hold its commands.
fn harmless(text: &str) -> String {
    let is_command = |letter: &char| letter.is_control() && !matches!(letter, '\n' | '\t');
    text.chars().map(|letter| if is_command(&letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

pub(super) fn json(value: &Value) {
    data(&format!("{value:#}"));
}

/// JSON on one line, for streams.
pub(super) fn json_line(value: &Value) {
    data(&value.to_string());
}

/// What a person may want to know beside the data.
pub(super) fn note(text: &str) {
    write(&mut stderr().lock(), &shown(text, stderr().is_terminal()));
}

/// A note with what it is before it: `error:`, `hint:`.
fn headed(heading: &str, style: &str, text: &str) {
    let heading = styled(heading, style, takes_colour(&stderr()));
    write(&mut stderr().lock(), &format!("{heading} {}", shown(text, stderr().is_terminal())));
}

/// Says what failed and what to do, and gives the exit code.
pub(super) fn failure(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::RunFailed) {
        headed("error:", RED, &failure.to_string());
    }
    if let Some(text) = failure.hint() {
        hint(&text);
    }
    ExitCode::from(failure.code())
}

/// Says what is not as it should be, and goes on.
pub(super) fn warning(text: &str) {
    headed("warning:", YELLOW, text);
}

/// What to do.
pub(super) fn hint(text: &str) {
    headed("hint:", CYAN, text);
}

/// Whether colours may go there: to a terminal that knows them, unless somebody asked for none.
pub(super) fn takes_colour(out: &impl IsTerminal) -> bool {
    let asked_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    out.is_terminal() && !asked_for_none && !is_dumb
}

fn styled(text: &str, style: &str, in_colour: bool) -> String {
    if in_colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

/// The columns of the terminal that data goes to; none when it goes elsewhere.
fn columns() -> Option<usize> {
    let size = tcgetwinsize(stdout()).ok().filter(|_| stdout().is_terminal());
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A line, cut where the terminal ends.
pub(super) fn line(text: &str) {
    match columns() {
        Some(columns) => data(&cut_to(text, columns)),
        None => data(text),
    }
}

/// A reader that has gone, as `head` does, has what it wanted.
#[expect(clippy::exit, reason = "there is nobody left to write to")]
fn write(out: &mut impl Write, text: &str) {
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        // Nothing can be said about an output that cannot be written.
        Err(_) | Ok(()) => {}
    }
}

/// What came of a verb: the server's answer, or a line for people.
pub(super) fn done(as_json: bool, answer: &Value, text: &str) -> Outcome {
    if as_json {
        json(answer);
    } else {
        data(text);
    }
    Ok(())
}

/// A list: as the server gave it, or a row for each entry.
pub(super) fn list(
    as_json: bool,
    entries: Vec<Value>,
    headings: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
) -> Outcome {
    if as_json {
        json(&Value::Array(entries));
    } else {
        table(headings, &entries.iter().map(row).collect::<Vec<_>>());
    }
    Ok(())
}

/// A record: as the server gave it, or a line for each member that says something.
pub(super) fn record(as_json: bool, record: &Value) -> Outcome {
    if as_json {
        json(record);
        return Ok(());
    }
    members(record, 0).iter().for_each(|line| data(line));
    Ok(())
}

/// What is within a member stands set in below it.
fn members(record: &Value, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, member) in record.as_object().into_iter().flatten() {
        let name = format!("{:indent$}{name}", "");
        let within = within(member, indent + 2);
        let told = if within.is_empty() { told(member) } else { String::new() };
        if !told.is_empty() || !within.is_empty() {
            lines.push(format!("{name:<NAME_CHARS$}{told}").trim_end().to_owned());
            lines.extend(within);
        }
    }
    lines
}

/// The lines of a member that has members, or entries that have.
fn within(member: &Value, indent: usize) -> Vec<String> {
    let entry = |entry: &Value| {
        let values: Vec<String> = entry.as_object().into_iter().flatten().map(|(_, value)| told(value)).collect();
        format!("{:indent$}{}", "", values.join("  "))
    };
    match member.as_array() {
        Some(entries) if entries.iter().all(Value::is_object) => entries.iter().map(entry).collect(),
        Some(_) => Vec::new(),
        None => members(member, indent),
    }
}

/// A member in one column; what has several lines stays in it.
fn told(member: &Value) -> String {
    let text = match member.as_array() {
        Some(entries) => entries.iter().map(text).collect::<Vec<_>>().join(", "),
        None if member.is_object() => String::new(),
        None => text(member),
    };
    text.trim_end().replace('\n', &format!("\n{:NAME_CHARS$}", ""))
}

/// Rows under their headings, each column as wide as it needs; on a terminal the last one as wide as is left.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) {
    let mut lines = lines(headings, rows, columns()).into_iter();
    let heading = lines.next().unwrap_or_default();
    write(&mut stdout().lock(), &styled(&heading, BOLD, takes_colour(&stdout())));
    lines.for_each(|line| data(&line));
}

fn lines(headings: &[&str], rows: &[Vec<String>], columns: Option<usize>) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..headings.len()).map(width).collect();
    if let (Some(columns), Some((last, before))) = (columns, widths.split_last_mut()) {
        let taken: usize = before.iter().map(|width| *width + 2).sum();
        *last = columns.saturating_sub(taken).max(CELL_CHARS_MIN).min(*last);
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{:<width$}", cut_to(cell, *width)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heading = line(&mut headings.iter().copied());
    let rows = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    std::iter::once(heading).chain(rows).collect()
}

/// A text of at most so many characters, the sign of a cut included.
fn cut_to(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max { text.to_owned() } else { cut(text, chars_max.saturating_sub(1)) }
}

/// Each line of a text, set in below its heading.
pub(super) fn below(text: &str) -> String {
    let lines = std::iter::once("").chain(text.trim_end().lines());
    lines.collect::<Vec<_>>().join("\n  ")
}

/// A text that fits a line: cut where it is longer.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text of a member; empty when it is null or not there.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(shown("Exec\x1b]0;pwned\x07", true), "Exec\u{fffd}]0;pwned\u{fffd}");
        assert_eq!(shown("Exec\x1b]0;pwned\x07", false), "Exec\x1b]0;pwned\x07", "a program gets every byte");
        assert_eq!(harmless("a\tb\nc\r\x1b[2J\u{9b}d"), "a\tb\nc\u{fffd}\u{fffd}[2J\u{fffd}d");
    }

    #[test]
    fn a_record_has_its_inner_members_below_it() {
        let record = serde_json::json!({
            "id": "work-1", "none": null, "empty": [], "evidence": [3, 5], "plan": "one\ntwo\n",
            "todos": [{"text": "look", "status": "pending"}], "output": {"bytes": 2, "hash": null}, "detail": {"hash": null},
        });
        let lines = [
            "id                      work-1",
            "evidence                3, 5",
            "plan                    one\n                        two",
            "todos",
            "  look  pending",
            "output",
            "  bytes                 2",
        ];
        assert_eq!(members(&record, 0), lines);
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells_or_as_the_terminal() {
        let rows = [vec!["a".to_owned(), "a text of some length".to_owned()]];
        assert_eq!(lines(&["ID", "TEXT"], &rows, None), ["ID  TEXT", "a   a text of some length"]);
        assert_eq!(lines(&["ID", "TEXT"], &rows, Some(80)), lines(&["ID", "TEXT"], &rows, None));
        assert_eq!(lines(&["ID", "TEXT"], &rows, Some(16)), ["ID  TEXT", "a   a text of s…"]);
        assert_eq!(lines(&["ID", "TEXT"], &rows, Some(1)), ["ID  TEXT", "a   a text …"], "no narrower than this");
    }
}
