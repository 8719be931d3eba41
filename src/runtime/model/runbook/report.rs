//! The answer at the end, as plain text: paragraphs with a blank line between them.

use super::reading::Ending;
use super::step::Step;
use std::fmt::Write;

/// Lines of an output or of a quoted message that an answer repeats.
const SHOWN_LINES_MAX: usize = 12;
/// Characters of such a line.
const SHOWN_CHARS_MAX: usize = 200;

/// What has been done so far.
#[derive(Default)]
pub(super) struct Report {
    text: String,
    /// Steps that have been numbered.
    calls: usize,
    quoting: bool,
}

impl Report {
    pub(super) fn text(&self) -> String {
        self.text.clone()
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.quoting = false;
    }

    pub(super) fn quote(&mut self, line: &str) {
        let line = format!("> {}", shown_line(line));
        if self.quoting {
            self.text.push('\n');
            self.text.push_str(&line);
        } else {
            self.paragraph(&line);
        }
        self.quoting = true;
    }

    pub(super) fn ended(&mut self, line: &str, ending: &Ending) {
        self.calls += 1;
        let mut step = format!("{}. {}\n   {}", self.calls, shown_line(line), ending.outcome);
        write_lines(&mut step, "   | ", &ending.output.lines().collect::<Vec<_>>());
        if let Some(bytes) = ending.cut_from_bytes {
            let _ = write!(step, "\n   (the whole output has {bytes} bytes)"); // Writing to a String cannot fail.
        }
        self.paragraph(&step);
    }

    /// Says so once.
    pub(super) fn done(&mut self) {
        match std::mem::take(&mut self.calls) {
            0 => {}
            1 => self.paragraph("The step is done."),
            calls => self.paragraph(&format!("All {calls} steps are done.")),
        }
    }

    pub(super) fn stopped(&mut self, rest: &[Step]) {
        let rest: Vec<String> = rest.iter().filter(|step| step.is_instruction()).map(Step::line).collect();
        if !rest.is_empty() {
            let lines: Vec<String> = rest.iter().map(|line| format!("   {}", shown_line(line))).collect();
            self.paragraph(&format!("Not run:\n{}", lines.join("\n")));
        }
        self.paragraph(&format!("The runbook stopped at step {}.", self.calls));
    }
}

pub(super) fn write_lines(text: &mut String, mark: &str, lines: &[&str]) {
    for line in lines.iter().take(SHOWN_LINES_MAX) {
        let _ = write!(text, "\n{mark}{}", shown_line(line)); // Writing to a String cannot fail.
    }
    if let Some(more) = lines.len().checked_sub(SHOWN_LINES_MAX).filter(|more| *more > 0) {
        let _ = write!(text, "\n{mark}... {more} more lines"); // Writing to a String cannot fail.
    }
}

pub(super) fn shown_line(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
