//! `builtin/runbook`: a model that is a pure function.
//!
//! It reads messages as runbooks, one step a line, and does the steps in order. Everything it knows is in the request,
//! so after any crash it goes on where the conversation ends.
//!
//! | line                  | step                                              |
//! |-----------------------|---------------------------------------------------|
//! | `$ CMD`               | runs the command and waits for its end; before `wait task` it goes on as a task |
//! | `say: TEXT`           | answers the text                                  |
//! | `work: OBJECTIVE`     | opens a work item                                 |
//! | `wait task`           | waits for the task that was begun last, a child's included |
//! | `wait 30s`            | waits for that time (`ms`, `s`, `m`, `h`)         |
//! | `wait external`       | waits for a webhook, a callback, a channel, a wake |
//! | `wait operator`       | waits for the operator                            |
//! | `timer 10s: TEXT`     | sets a timer that brings the text                 |
//! | `spawn: TEXT`         | makes a child; lines indented below are its runbook; `spawn in a worktree:`, `spawn with a fork:` |
//! | `done`                | completes the work item                           |
//! | anything              | is quoted back                                    |
//!
//! A runbook that can outlast its turn is kept in a work item: its text is the plan, and its progress the todo list, so
//! that any later turn resumes it. A step that fails ends the runbook; a work item is then blocked, and says why.
//!
//! Only what derives from the operator is a runbook: others could make it run anything, for it never doubts.

mod program;
mod reading;
mod report;
mod request;
mod step;

use super::Provider;
use crate::context::request::{AssistantPart, ModelAnswer, ModelRequest, RawCall, ToolResultPart};
use crate::events::turn::{AttemptError, StopReason, Usage};
use futures::future::BoxFuture;
use program::{Flow, Program};
use report::{Report, write_lines};
use request::{Message, Turn};
use serde_json::Value;
use step::Step;

/// The provider that answers with [`answer`].
pub struct Runbook;

impl Provider for Runbook {
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelAnswer, AttemptError>> {
        Box::pin(std::future::ready(Ok(answer(request))))
    }
}

/// A tool call to be made.
struct Asked {
    tool: &'static str,
    arguments: Value,
}

/// What the runbook says next: its next tool calls, or its report when there are none left.
pub fn answer(request: &ModelRequest) -> ModelAnswer {
    let turn = Turn::read(&request.parts);
    if turn.is_recapped {
        return finished(
            "This runbook has outgrown its turn; what was done stays done. Send the rest as another one.".into(),
        );
    }
    let programs = programs(&turn);
    if programs.is_empty() {
        return finished(noted(&turn));
    }
    let first = turn.results.len() + 1;
    let mut results = Results { all: &turn.results, taken: 0 };
    let (mut report, mut waits) = (Report::default(), Vec::new());
    for (mut program, message) in programs.into_iter().zip(&turn.messages) {
        // What came after the waits had begun is done beside them.
        if results.begin_with(&waits, message.results_before) {
            waits.clear();
        }
        match program.run(&mut results, &mut report) {
            Flow::Owed(calls) => return calling(first, String::new(), calls),
            Flow::Yields(calls) => waits.extend(calls),
            Flow::Done => {}
            Flow::Stopped if waits.is_empty() => return finished(report.text()),
            Flow::Stopped => break,
        }
    }
    if !waits.is_empty() && !results.begin_with(&waits, turn.results.len()) {
        return calling(first, report.text(), waits);
    }
    report.done();
    finished(report.text())
}

/// The results of the turn's calls, in the order in which the calls were made.
struct Results<'a> {
    all: &'a [&'a ToolResultPart],
    taken: usize,
}

impl<'a> Iterator for Results<'a> {
    type Item = &'a ToolResultPart;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.all.get(self.taken).copied();
        self.taken += usize::from(next.is_some());
        next
    }
}

impl Results<'_> {
    /// Whether `calls` were made next, and had their results when there were `until` of them; they are passed over.
    fn begin_with(&mut self, calls: &[Asked], until: usize) -> bool {
        let are_made = !calls.is_empty() && self.taken + calls.len() <= until;
        self.taken += if are_made { calls.len() } else { 0 };
        are_made
    }
}

/// A runbook for each message; what was left of the work in focus, if the turn's own message tells none. Empty when
/// nothing at all is asked for.
fn programs(turn: &Turn<'_>) -> Vec<Program> {
    let told = turn.messages.iter().enumerate().map(|(index, message)| {
        let steps = message.steps();
        let resumes = index == 0 && !steps.iter().any(Step::is_instruction);
        match turn.work.as_ref().filter(|work| resumes && work.instructs && !work.todos.is_empty()) {
            Some(work) => Program::resumed(work),
            None => Program::new(steps),
        }
    });
    let programs: Vec<Program> = told.collect();
    if programs.iter().any(Program::instructs) { programs } else { Vec::new() }
}

/// The answer to a turn in which nothing is asked for.
fn noted(turn: &Turn<'_>) -> String {
    let Some(first) = turn.messages.first() else { return "The message is empty.".to_owned() };
    let lines: Vec<&str> = first.body.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut text = format!("{}\n", heading(first, lines.is_empty()));
    write_lines(&mut text, "> ", &lines);
    text.trim_end().to_owned()
}

fn heading(message: &Message<'_>, is_empty: bool) -> &'static str {
    match (is_empty, message.instructs()) {
        (true, _) => "The message is empty.",
        (false, true) => {
            "No steps here. This is the built-in runbook, no language model: a step is a line such as `$ date` or \
             `say: hello`, and `holon help providers` tells how to have a model."
        }
        (false, false) => "Noted.",
    }
}

fn calling(first: usize, text: String, calls: Vec<Asked>) -> ModelAnswer {
    let raw = |(index, asked): (usize, Asked)| RawCall {
        id: format!("call-{}", first + index),
        tool: asked.tool.to_owned(),
        arguments: asked.arguments.to_string(),
    };
    answered(AssistantPart { text, calls: calls.into_iter().enumerate().map(raw).collect() }, StopReason::ToolUse)
}

fn finished(text: String) -> ModelAnswer {
    answered(AssistantPart { text, calls: Vec::new() }, StopReason::EndTurn)
}

fn answered(said: AssistantPart, stop: StopReason) -> ModelAnswer {
    ModelAnswer { said, stop, usage: Usage { input_tokens: Some(0), output_tokens: Some(0) } }
}

#[cfg(test)]
mod tests;
