//! Printing: the only place of the command line that writes.

use super::{Failure, Outcome};
use serde_json::Value;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

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
        note(&format!("error: {failure}"));
    }
    if let Some(hint) = failure.hint() {
        note(&format!("hint: {hint}"));
    }
    ExitCode::from(failure.code())
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

/// Rows under their headings, each column as wide as it needs.
pub(super) fn table(headings: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    data(&line(&mut headings.iter().copied()));
    for row in rows {
        data(&line(&mut row.iter().map(String::as_str)));
    }
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
