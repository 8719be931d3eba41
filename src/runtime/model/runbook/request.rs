//! What a request says: the messages of the turn, what its calls came to, and the work that it may resume.

use super::step::{Step, instructs};
use crate::context::request::{Part, ToolResultPart};
use crate::events::queue::{MessageKind, Trust};
use crate::words::prompt_text::operator_line;

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

/// A message: the runtime's label and what the sender said.
#[derive(Clone)]
pub(super) struct Message<'a> {
    label: &'a str,
    /// Without its quotation marks.
    pub body: String,
    /// How many results of calls the turn had when it came.
    pub results_before: usize,
}

impl<'a> Message<'a> {
    /// None for a section that is no message.
    fn read(text: &'a str, results_before: usize) -> Option<Self> {
        let (first, shown) = text.split_once('\n').unwrap_or((text, ""));
        let label = first.strip_prefix('[')?.strip_suffix(']')?;
        let kind = kind(label).filter(|_| label.starts_with("msg-"))?;
        let body = if kind == MessageKind::OperatorPrompt { unescaped(shown) } else { unquoted(shown) };
        Some(Self { label, body, results_before })
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        if self.instructs() { Step::read_all(&self.body) } else { Step::quote_all(&self.body) }
    }

    /// Only what derives from the operator is done. What it derives from is the last but one word of the label, or its
    /// trust where that is the same: those before it may repeat what a sender calls itself.
    pub(super) fn instructs(&self) -> bool {
        let said = self.label.rsplit(", ").nth(1).unwrap_or_default();
        let said = said.strip_prefix("derived from ").unwrap_or(said);
        let trust = Trust::from_name(said.split(':').next().unwrap_or_default());
        trust == Some(Trust::TrustedOperator) && kind(self.label).is_some_and(instructs)
    }
}

fn kind(label: &str) -> Option<MessageKind> {
    label.split(' ').nth(1).and_then(MessageKind::from_name)
}

/// What the operator said, of which some lines may stand behind a backslash.
fn unescaped(shown: &str) -> String {
    shown.split('\n').map(operator_line).collect::<Vec<_>>().join("\n")
}

/// What is quoted; the words of the runtime around it are left out, unless there is nothing else.
fn unquoted(shown: &str) -> String {
    let quoted: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    if quoted.is_empty() { shown.to_owned() } else { quoted.join("\n") }
}

/// The work in focus, as the prompt tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkSection {
    pub id: String,
    pub objective: String,
    pub is_blocked: bool,
    /// The plan, without its quotation marks.
    pub plan: String,
    /// Whether the plan derives from the operator, so that it may be done.
    pub instructs: bool,
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

    /// Headings, each with what is quoted below it.
    fn read_body(&mut self, text: &str) {
        let mut part = "";
        for line in text.lines() {
            match line.strip_prefix("> ") {
                None => part = line,
                Some(objective) if part == "objective:" => objective.clone_into(&mut self.objective),
                Some(todo) if part == "todo:" => self.todos.extend(Todo::read(todo)),
                Some(step) if part.starts_with("plan, ") => {
                    self.instructs = part == "plan, trusted_operator:";
                    self.plan.push_str(step);
                    self.plan.push('\n');
                }
                Some(_) => {}
            }
        }
    }
}

impl Todo {
    fn read(line: &str) -> Option<Self> {
        let (mark, text) = line.strip_prefix('[')?.split_once("] ")?;
        Some(Self { mark: mark.chars().next()?, text: text.to_owned() })
    }

    pub(super) fn is_completed(&self) -> bool {
        self.mark == 'x'
    }

    pub(super) fn is_in_progress(&self) -> bool {
        self.mark == '~'
    }
}
