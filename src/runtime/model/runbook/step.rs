//! The steps of a runbook, read from its lines.

use crate::events::queue::MessageKind;

/// A kind of step: how its lines begin, and what the rest of the line makes.
struct Verb {
    prefix: &'static str,
    step: fn(&str) -> Option<Step>,
}

const VERBS: &[Verb] = &[
    Verb { prefix: "$ ", step: |rest| Some(Step::Command(rest.to_owned())) },
    Verb { prefix: "say:", step: |rest| Some(Step::Say(rest.to_owned())) },
    Verb { prefix: "work:", step: |rest| Some(Step::Work(rest.to_owned())) },
    Verb { prefix: "wait ", step: |rest| WaitStep::read(rest).map(Step::Wait) },
    Verb { prefix: "timer ", step: timer },
    Verb { prefix: "spawn", step: |rest| Spawn::read(rest).map(Step::Spawn) },
];

/// A step of a runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Command(String),
    Say(String),
    /// Opens a work item, to which all that follows belongs.
    Work(String),
    /// Completes it.
    Done,
    Wait(WaitStep),
    Timer {
        after_ms: u64,
        text: String,
    },
    Spawn(Spawn),
    /// A line that is no step.
    Quote(String),
}

/// What a runbook waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// The task that the step before began.
    Task,
    External,
    Operator,
    Time {
        after_ms: u64,
    },
}

/// A child, and its runbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spawn {
    pub in_worktree: bool,
    pub forks: bool,
    /// Its first line is for people; the rest is what the child does.
    pub message: String,
}

impl Step {
    /// Reads a runbook. Lines that are indented below `spawn:` are the child's.
    pub(super) fn read_all(text: &str) -> Vec<Self> {
        let mut steps: Vec<Self> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match steps.last_mut() {
                Some(Self::Spawn(spawn)) if line.starts_with([' ', '\t']) => spawn.push(line),
                Some(_) | None => steps.push(Self::read(line.trim())),
            }
        }
        steps
    }

    fn read(line: &str) -> Self {
        if line == "done" {
            return Self::Done;
        }
        let step = VERBS.iter().find_map(|verb| {
            let rest = line.strip_prefix(verb.prefix)?.trim();
            (!rest.is_empty()).then(|| (verb.step)(rest)).flatten()
        });
        step.unwrap_or_else(|| Self::Quote(line.to_owned()))
    }

    /// Every line as it stands, with nothing in it that is done.
    pub(super) fn quote_all(text: &str) -> Vec<Self> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| Self::Quote(line.to_owned())).collect()
    }

    pub(super) fn is_instruction(&self) -> bool {
        !matches!(self, Self::Quote(_))
    }

    /// Whether it can outlast a turn, so that the runbook has to be kept in a work item.
    pub(super) fn outlasts_the_turn(&self) -> bool {
        matches!(self, Self::Work(_) | Self::Wait(_) | Self::Done)
    }

    /// The step as its author wrote it, in one line.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Command(command) => format!("$ {command}"),
            Self::Say(text) => format!("say: {text}"),
            Self::Work(objective) => format!("work: {objective}"),
            Self::Done => "done".to_owned(),
            Self::Wait(wait) => wait.line(),
            Self::Timer { after_ms, text } => format!("timer {}s: {text}", after_ms / 1_000),
            Self::Spawn(spawn) => format!("spawn: {}", spawn.label()),
            Self::Quote(line) => line.clone(),
        }
    }
}

impl WaitStep {
    fn read(rest: &str) -> Option<Self> {
        match rest {
            "task" => Some(Self::Task),
            "external" => Some(Self::External),
            "operator" => Some(Self::Operator),
            _ => duration_ms(rest).map(|after_ms| Self::Time { after_ms }),
        }
    }

    fn line(self) -> String {
        match self {
            Self::Task => "wait task".to_owned(),
            Self::External => "wait external".to_owned(),
            Self::Operator => "wait operator".to_owned(),
            Self::Time { after_ms } => format!("wait {}s", after_ms / 1_000),
        }
    }
}

impl Spawn {
    /// `: TEXT`, or ` in a worktree: TEXT`, ` with a fork: TEXT`; the words before the colon choose.
    fn read(rest: &str) -> Option<Self> {
        let (words, text) = rest.split_once(':')?;
        let known = |word: &str| matches!(word, "in" | "with" | "a" | "and" | "worktree" | "fork");
        if !words.split_whitespace().all(known) || text.trim().is_empty() {
            return None;
        }
        let has = |word| words.split_whitespace().any(|other| other == word);
        let message = text.trim().to_owned();
        Some(Self { in_worktree: has("worktree"), forks: has("fork"), message })
    }

    fn push(&mut self, line: &str) {
        self.message.push('\n');
        self.message.push_str(line.trim());
    }

    fn label(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

fn timer(rest: &str) -> Option<Step> {
    let (duration, text) = rest.split_once(':')?;
    let after_ms = duration_ms(duration.trim())?;
    let text = text.trim().to_owned();
    (!text.is_empty()).then_some(Step::Timer { after_ms, text })
}

/// `500ms`, `30s`, `5m`, `2h`.
fn duration_ms(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms).filter(|duration| *duration > 0)
}

/// Whether a message of this kind may tell a runbook what to do. What the runtime quotes in its ticks is read, not done:
/// so are results and states of tasks, and the work that a continuation is about.
pub(super) fn instructs(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::OperatorPrompt | MessageKind::InternalFollowup | MessageKind::TimerTick)
}
