//! `builtin/runbook`: a model that is a pure function.
//!
//! It reads the message of the turn as a runbook, one step a line, and does the steps in order with one tool call a
//! round. Everything it knows is in the request, so after any crash it goes on where the conversation ends.
//!
//! | line        | step                                     |
//! |-------------|------------------------------------------|
//! | `$ CMD`     | runs the command and waits for its end   |
//! | `say: TEXT` | answers the text                         |
//! | anything    | is quoted back                           |
//!
//! Only what the operator or the runtime says is a runbook: others could make it run anything, for it never doubts.

use super::Provider;
use crate::context::request::{AssistantPart, ModelAnswer, ModelRequest, Part, RawCall, ToolResultPart};
use crate::events::queue::Trust;
use crate::events::turn::{AttemptError, StopReason, Usage};
use crate::words::limit::TASK_OUTPUT_BLOCK_MS_MAX;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;

/// Lines of an output or of a quoted message that an answer repeats.
const SHOWN_LINES_MAX: usize = 12;
/// Characters of such a line.
const SHOWN_CHARS_MAX: usize = 200;
/// The statuses of a task that has ended.
const ENDED: &[&str] = &["completed", "failed", "cancelled", "interrupted"];

const VERBS: &[Verb] = &[Verb { prefix: "$ ", step: command }, Verb { prefix: "say:", step: say }];

/// A kind of step: how its lines begin, and what the rest of the line makes.
struct Verb {
    prefix: &'static str,
    step: fn(&str) -> Step,
}

/// The provider that answers with [`answer`].
pub struct Runbook;

impl Provider for Runbook {
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelAnswer, AttemptError>> {
        Box::pin(std::future::ready(Ok(answer(request))))
    }
}

/// What the runbook says next: its next tool call, or its report when there is none left.
pub fn answer(request: &ModelRequest) -> ModelAnswer {
    let turn = Turn::read(&request.parts);
    if !turn.steps.iter().any(Step::is_instruction) {
        return finished(turn.noted());
    }
    let mut results = turn.results.iter().copied();
    let mut report = Report::default();
    for (index, step) in turn.steps.iter().enumerate() {
        match step {
            Step::Say(text) => report.paragraph(text),
            Step::Quote(line) => report.quote(line),
            Step::Call(asked) => match asked.follow(&mut results) {
                Progress::Owed { tool, arguments } => return calling(turn.results.len() + 1, tool, arguments),
                Progress::Ended(ending) if ending.failed => {
                    report.ended(asked, &ending);
                    return finished(report.stopped(&turn.steps[index + 1..]));
                }
                Progress::Ended(ending) => report.ended(asked, &ending),
            },
        }
    }
    finished(report.done())
}

fn calling(number: usize, tool: &str, arguments: String) -> ModelAnswer {
    let call = RawCall { id: format!("call-{number}"), tool: tool.to_owned(), arguments };
    answered(AssistantPart { text: String::new(), calls: vec![call] }, StopReason::ToolUse)
}

fn finished(text: String) -> ModelAnswer {
    answered(AssistantPart { text, calls: Vec::new() }, StopReason::EndTurn)
}

fn answered(said: AssistantPart, stop: StopReason) -> ModelAnswer {
    ModelAnswer { said, stop, usage: Usage { input_tokens: Some(0), output_tokens: Some(0) } }
}

/// A step of a runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Call(Asked),
    Say(String),
    /// A line that is no step.
    Quote(String),
}

/// A step that takes a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    /// The step as its author wrote it.
    line: String,
    tool: &'static str,
    arguments: String,
}

fn command(rest: &str) -> Step {
    let arguments = format!(r#"{{"cmd":{}}}"#, Value::from(rest));
    Step::Call(Asked { line: format!("$ {rest}"), tool: "ExecCommand", arguments })
}

fn say(rest: &str) -> Step {
    Step::Say(rest.to_owned())
}

impl Step {
    fn read(line: &str) -> Self {
        let verb = VERBS.iter().find_map(|verb| Some((verb, line.strip_prefix(verb.prefix)?.trim())));
        match verb {
            Some((verb, rest)) if !rest.is_empty() => (verb.step)(rest),
            Some(_) | None => Self::Quote(line.to_owned()),
        }
    }

    fn is_instruction(&self) -> bool {
        !matches!(self, Self::Quote(_))
    }

    /// How the step is named where it was not done.
    fn line(&self) -> Option<String> {
        match self {
            Self::Call(asked) => Some(asked.line.clone()),
            Self::Say(text) => Some(format!("say: {text}")),
            Self::Quote(_) => None,
        }
    }
}

/// The turn as the request shows it.
struct Turn<'a> {
    first: Message<'a>,
    steps: Vec<Step>,
    results: Vec<&'a ToolResultPart>,
}

impl<'a> Turn<'a> {
    fn read(parts: &'a [Part]) -> Self {
        let mut turn = Self { first: Message::read(""), steps: Vec::new(), results: Vec::new() };
        for (index, part) in current(parts).iter().enumerate() {
            match part {
                Part::User(text) => {
                    let message = Message::read(text);
                    turn.steps.extend(message.steps());
                    if index == 0 {
                        turn.first = message;
                    }
                }
                Part::ToolResult(result) => turn.results.push(result),
                Part::System(_) | Part::Assistant(_) => {}
            }
        }
        turn
    }

    /// The answer to a turn in which nothing is asked for.
    fn noted(&self) -> String {
        let lines: Vec<&str> = self.first.body.lines().filter(|line| !line.trim().is_empty()).collect();
        let heading = match (lines.is_empty(), self.first.instructs()) {
            (true, _) => return "The message is empty.".to_owned(),
            (false, true) => "No steps here. A step is a line such as `$ date` or `say: hello`.",
            (false, false) => "Noted.",
        };
        let mut text = format!("{heading}\n");
        write_lines(&mut text, "> ", &lines);
        text
    }
}

/// The parts of the current turn: from the first message after the last answer that ended a turn.
fn current(parts: &[Part]) -> &[Part] {
    let is_answer = |part: &Part| matches!(part, Part::Assistant(said) if said.calls.is_empty());
    let rest = &parts[parts.iter().rposition(is_answer).map_or(0, |index| index + 1)..];
    let start = rest.iter().position(|part| matches!(part, Part::User(_))).unwrap_or(rest.len());
    &rest[start..]
}

/// A user part: the runtime's label and what the sender wrote.
#[derive(Clone, Copy)]
struct Message<'a> {
    label: &'a str,
    body: &'a str,
}

impl<'a> Message<'a> {
    fn read(text: &'a str) -> Self {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        match first.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(label) => Self { label, body: rest },
            None => Self { label: "", body: text },
        }
    }

    fn steps(self) -> Vec<Step> {
        let read = if self.instructs() { Step::read } else { |line: &str| Step::Quote(line.to_owned()) };
        self.body.lines().map(str::trim).filter(|line| !line.is_empty()).map(read).collect()
    }

    /// The trust is the last but one word of the label: those before it may repeat what a sender calls itself.
    fn instructs(self) -> bool {
        let trust = self.label.rsplit(", ").nth(1).and_then(Trust::from_name);
        let from_task = self.label.split_once(" from ").is_some_and(|(_, origin)| origin.starts_with("task"));
        matches!(trust, Some(Trust::TrustedOperator | Trust::TrustedSystem)) && !from_task
    }
}

/// How far a step has come.
enum Progress {
    Owed { tool: &'static str, arguments: String },
    Ended(Ending),
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
struct Ending {
    failed: bool,
    outcome: String,
    output: String,
    /// Bytes of the whole output, when `output` leaves something out.
    cut_from_bytes: Option<u64>,
}

impl Asked {
    /// Goes through the results that are there; a command that became a task is followed to its end.
    fn follow<'a>(&self, results: &mut impl Iterator<Item = &'a ToolResultPart>) -> Progress {
        let mut owed = Progress::Owed { tool: self.tool, arguments: self.arguments.clone() };
        for result in results {
            match Reading::of(&result.text) {
                Reading::Ended(ending) => return Progress::Ended(ending),
                Reading::Running(task) => owed = Progress::Owed { tool: "TaskOutput", arguments: task_output(&task) },
            }
        }
        owed
    }
}

fn task_output(task: &str) -> String {
    let task = Value::from(task);
    format!(r#"{{"task_id":{task},"block":true,"timeout_ms":{TASK_OUTPUT_BLOCK_MS_MAX}}}"#)
}

/// A tool result's envelope.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum Envelope {
    Success {
        #[serde(default)]
        summary_text: String,
        #[serde(default)]
        result: Outcome,
    },
    Error {
        error: Refusal,
    },
}

#[derive(Deserialize)]
struct Refusal {
    kind: String,
    message: String,
    hint: Option<String>,
}

/// What the results of `ExecCommand` and `TaskOutput` have between them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Outcome {
    task_handle: Option<TaskHandle>,
    task_id: Option<String>,
    disposition: Option<String>,
    status: Option<String>,
    exit_code: Option<i64>,
    signal: Option<i64>,
    failure: Option<String>,
    output: String,
    output_bytes: u64,
    truncated: bool,
}

#[derive(Deserialize)]
struct TaskHandle {
    task_id: String,
}

/// A tool result as the runbook takes it.
enum Reading {
    Running(String),
    Ended(Ending),
}

impl Reading {
    fn of(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(Envelope::Success { summary_text, result }) => result.read(summary_text),
            Ok(Envelope::Error { error }) => Self::Ended(error.ending()),
            Err(error) => Self::Ended(Ending::failed(format!("its result cannot be read: {error}"))),
        }
    }
}

impl Outcome {
    fn read(self, summary: String) -> Reading {
        if let Some(handle) = self.task_handle {
            return Reading::Running(handle.task_id);
        }
        match (&self.status, &self.task_id) {
            (Some(status), Some(task)) if !ENDED.contains(&status.as_str()) => Reading::Running(task.clone()),
            (None, _) if self.disposition.is_none() => Reading::Ended(Ending::succeeded(summary)),
            (Some(_) | None, _) => Reading::Ended(self.exit()),
        }
    }

    fn exit(self) -> Ending {
        let outcome = match (self.failure, self.signal, self.exit_code) {
            (Some(failure), ..) => failure,
            (None, Some(signal), _) => format!("ended by signal {signal}"),
            (None, None, Some(code)) => format!("exit {code}"),
            (None, None, None) => self.status.unwrap_or_else(|| "ended without an exit code".to_owned()),
        };
        let cut_from_bytes = self.truncated.then_some(self.output_bytes);
        Ending { failed: outcome != "exit 0", outcome, output: self.output, cut_from_bytes }
    }
}

impl Refusal {
    fn ending(self) -> Ending {
        let hint = self.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Ending::failed(format!("{}: {}{hint}", self.kind, self.message))
    }
}

impl Ending {
    fn failed(outcome: String) -> Self {
        Self { failed: true, outcome, output: String::new(), cut_from_bytes: None }
    }

    fn succeeded(outcome: String) -> Self {
        Self { failed: false, ..Self::failed(outcome) }
    }
}

/// The answer at the end, as plain text: paragraphs with a blank line between them.
#[derive(Default)]
struct Report {
    text: String,
    calls: usize,
    quoting: bool,
}

impl Report {
    fn paragraph(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        self.quoting = false;
    }

    fn quote(&mut self, line: &str) {
        let line = format!("> {}", shown_line(line));
        if self.quoting {
            self.text.push('\n');
            self.text.push_str(&line);
        } else {
            self.paragraph(&line);
        }
        self.quoting = true;
    }

    fn ended(&mut self, asked: &Asked, ending: &Ending) {
        self.calls += 1;
        let mut step = format!("{}. {}\n   {}", self.calls, shown_line(&asked.line), ending.outcome);
        write_lines(&mut step, "   | ", &ending.output.lines().collect::<Vec<_>>());
        if let Some(bytes) = ending.cut_from_bytes {
            let _ = write!(step, "\n   (the whole output has {bytes} bytes)"); // Writing to a String cannot fail.
        }
        self.paragraph(&step);
    }

    fn done(mut self) -> String {
        match self.calls {
            0 => {}
            1 => self.paragraph("The step is done."),
            calls => self.paragraph(&format!("All {calls} steps are done.")),
        }
        self.text
    }

    fn stopped(mut self, rest: &[Step]) -> String {
        let rest: Vec<String> = rest.iter().filter_map(Step::line).collect();
        if !rest.is_empty() {
            let lines: Vec<String> = rest.iter().map(|line| format!("   {}", shown_line(line))).collect();
            self.paragraph(&format!("Not run:\n{}", lines.join("\n")));
        }
        self.paragraph(&format!("The runbook stopped at step {}.", self.calls));
        self.text
    }
}

fn write_lines(text: &mut String, mark: &str, lines: &[&str]) {
    for line in lines.iter().take(SHOWN_LINES_MAX) {
        let _ = write!(text, "\n{mark}{}", shown_line(line)); // Writing to a String cannot fail.
    }
    if let Some(more) = lines.len().checked_sub(SHOWN_LINES_MAX).filter(|more| *more > 0) {
        let _ = write!(text, "\n{mark}... {more} more lines"); // Writing to a String cannot fail.
    }
}

fn shown_line(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
#[path = "runbook_tests.rs"]
mod tests;
