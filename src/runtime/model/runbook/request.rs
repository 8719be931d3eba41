//! What a request says: the messages of the turn, what its calls came to, and the work that it may resume.

use super::step::{Step, instructs};
use crate::context::request::{Part, ToolResultPart};
use crate::events::queue::{MessageKind, Trust};

/// The turn as the request shows it.
pub(super) struct Turn<'a> {
    pub messages: Vec<Message<'a>>,
    pub results: Vec<&'a ToolResultPart>,
    pub work: Option<WorkSection>,
    /// Whether earlier rounds gave way to a recap, so that what was done cannot be told any more.
    pub is_recapped: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn read(parts: &'a [Part]) -> Self {
        let mut turn = Self { messages: Vec::new(), results: Vec::new(), work: None, is_recapped: false };
        for part in current(parts) {
            match part {
                Part::User(text) if text.starts_with("[recap ") => turn.is_recapped = true,
                Part::User(text) => match WorkSection::read(text) {
                    Some(work) => turn.work = Some(work),
                    None => turn.messages.extend(Message::read(text, turn.results.len())),
                },
                Part::ToolResult(result) => turn.results.push(result),
                Part::System(_) | Part::Assistant(_) => {}
            }
        }
        turn
    }
}

/// The parts after the last answer that ended a turn.
fn current(parts: &[Part]) -> &[Part] {
    let is_answer = |part: &Part| matches!(part, Part::Assistant(said) if said.calls.is_empty());
    &parts[parts.iter().rposition(is_answer).map_or(0, |index| index + 1)..]
}

/// A message: the runtime's label and what the sender wrote.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    label: &'a str,
    pub body: &'a str,
    /// How many results of calls the turn had when it came.
    pub results_before: usize,
}

impl<'a> Message<'a> {
    /// None for a section that is no message.
    fn read(text: &'a str, results_before: usize) -> Option<Self> {
        let (first, body) = text.split_once('\n').unwrap_or((text, ""));
        let label = first.strip_prefix('[')?.strip_suffix(']')?;
        label.starts_with("msg-").then_some(Self { label, body, results_before })
    }

    pub(super) fn steps(self) -> Vec<Step> {
        if self.instructs() { Step::read_all(self.body) } else { Step::quote_all(self.body) }
    }

    /// The trust is the last but one word of the label: those before it may repeat what a sender calls itself.
    pub(super) fn instructs(self) -> bool {
        let trust = self.label.rsplit(", ").nth(1).and_then(Trust::from_name);
        matches!(trust, Some(Trust::TrustedOperator | Trust::TrustedSystem)) && self.kind().is_some_and(instructs)
    }

    fn kind(self) -> Option<MessageKind> {
        self.label.split(' ').nth(1).and_then(MessageKind::from_name)
    }
}

/// The work in focus, as the prompt tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkSection {
    pub id: String,
    pub objective: String,
    pub is_blocked: bool,
    /// The plan, without its quotation marks.
    pub plan: String,
    pub todos: Vec<Todo>,
    /// Whether the item waits for something.
    pub is_waiting: bool,
}

/// A todo as the prompt shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Todo {
    pub mark: char,
    pub text: String,
}

impl WorkSection {
    fn read(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n')?;
        let label = first.strip_prefix('[')?.strip_suffix(']')?;
        let (id, standing) = label.split_once(" in focus, ")?;
        if !id.starts_with("work-") {
            return None;
        }
        let is_blocked = standing.starts_with("blocked");
        let is_waiting = standing.starts_with("waiting");
        let mut section = Self { id: id.to_owned(), is_blocked, is_waiting, ..Self::default() };
        section.read_body(rest);
        Some(section)
    }

    fn read_body(&mut self, text: &str) {
        let mut part = "";
        for line in text.lines() {
            if let Some(objective) = line.strip_prefix("objective: ") {
                objective.clone_into(&mut self.objective);
            } else if let Some(quoted) = line.strip_prefix("> ").filter(|_| part == "plan:") {
                self.plan.push_str(quoted);
                self.plan.push('\n');
            } else if let Some(todo) = Todo::read(line).filter(|_| part == "todo:") {
                self.todos.push(todo);
            } else if line.ends_with(':') {
                part = line;
            }
        }
    }
}

impl Todo {
    fn read(line: &str) -> Option<Self> {
        let (mark, text) = line.strip_prefix("- [")?.split_once("] ")?;
        Some(Self { mark: mark.chars().next()?, text: text.to_owned() })
    }

    pub(super) fn is_completed(&self) -> bool {
        self.mark == 'x'
    }

    pub(super) fn is_in_progress(&self) -> bool {
        self.mark == '~'
    }
}
