//! Printing: the only place of the command line that writes.

use super::{Failure, Outcome};
use rustix::termios::tcgetwinsize;
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

/// A last column is not cut to less than this: a terminal may be too narrow for anything.
const CELL_CHARS_MIN: usize = 8;

const BOLD: &str = "1";
const RED: &str = "1;31";
const CYAN: &str = "1;36";

/// Data, for programs and people: one line, or a JSON document.
pub(super) fn data(text: &str) {
    write(&mut stdout().lock(), text);
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
    write(&mut stderr().lock(), text);
}

/// Says what failed and what to do, and gives the exit code.
pub(super) fn failure(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::RunFailed) {
        note(&format!("{} {failure}", styled("error:", RED, takes_colour(&stderr()))));
    }
    if let Some(text) = failure.hint() {
        hint(&text);
    }
    ExitCode::from(failure.code())
}

/// What to do.
pub(super) fn hint(text: &str) {
    note(&format!("{} {text}", styled("hint:", CYAN, takes_colour(&stderr()))));
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
    for (name, member) in record.as_object().into_iter().flatten() {
        let empty = member.as_array().is_some_and(Vec::is_empty) || member.as_str() == Some("");
        if !member.is_null() && !empty {
            data(&format!("{name:<24}{}", text(member)));
        }
    }
    Ok(())
}

/// Rows under their headings, each column as wide as it needs; on a terminal the last one as wide as is left.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) {
    let mut lines = lines(headings, rows, columns()).into_iter();
    lines.next().iter().for_each(|heading| data(&styled(heading, BOLD, takes_colour(&stdout()))));
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
    fn a_table_is_as_wide_as_its_cells_or_as_the_terminal() {
        let rows = [vec!["a".to_owned(), "a text of some length".to_owned()]];
        assert_eq!(lines(&["ID", "TEXT"], &rows, None), ["ID  TEXT", "a   a text of some length"]);
        assert_eq!(lines(&["ID", "TEXT"], &rows, Some(80)), lines(&["ID", "TEXT"], &rows, None));
        assert_eq!(lines(&["ID", "TEXT"], &rows, Some(16)), ["ID  TEXT", "a   a text of s…"]);
        assert_eq!(lines(&["ID", "TEXT"], &rows, Some(1)), ["ID  TEXT", "a   a text …"], "no narrower than this");
    }
}
