//! A runbook on its way: which steps are done, and what the next one asks for.

use super::Asked;
use super::reading::{Ending, Reading};
use super::report::{Report, shown_line};
use super::request::WorkSection;
use super::step::{Spawn, Step, WaitStep};
use crate::context::request::ToolResultPart;
use crate::words::limit::{TASK_OUTPUT_BLOCK_MS_MAX, TODO_BYTES_MAX, TODOS_MAX};
use serde_json::{Value, json};

/// Output of a command that a runbook asks for: it repeats a few lines of it.
const OUTPUT_TOKENS: u32 = 2_000;
/// How long a command that is to become a task is waited for.
const TASK_YIELD_MS: u64 = 200;
/// What stands between a todo's step and what it came to.
const CAME_TO: &str = " => ";

/// What a runbook does next.
pub(super) enum Flow {
    /// It needs these calls.
    Owed(Vec<Asked>),
    /// With these calls, made when nothing else is left to do, the turn ends, and a later one resumes the work.
    Yields(Vec<Asked>),
    Done,
    /// A step failed.
    Stopped,
}

/// How far one step has come.
enum Progress {
    Owed(Asked),
    /// It goes on as a task.
    Began(String),
    Ended(Ending),
}

pub(super) struct Program {
    steps: Vec<Step>,
    /// What each step came to, as far as they are done.
    outcomes: Vec<Option<String>>,
    /// The work item that keeps it.
    work: Option<String>,
    /// Whether that is to be opened first.
    opens: bool,
    is_waiting: bool,
    is_blocked: bool,
    /// The task that was begun last.
    task: Option<String>,
    /// The step that a resumed runbook was waiting in.
    waited: Option<usize>,
}

type Results<'a, 'r> = &'a mut dyn Iterator<Item = &'r ToolResultPart>;

impl Program {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        let opens = steps.iter().any(Step::outlasts_the_turn);
        let outcomes = vec![None; steps.len()];
        let (work, task, waited) = (None, None, None);
        Self { steps, outcomes, work, opens, is_waiting: false, is_blocked: false, task, waited }
    }

    /// What was left of the work in focus.
    pub(super) fn resumed(work: &WorkSection) -> Self {
        let steps = Step::read_all(&work.plan);
        let outcome = |index: usize| {
            let todo = work.todos.get(index).filter(|todo| todo.is_completed())?;
            Some(came_to(&todo.text).unwrap_or("done").to_owned())
        };
        let waited = work.todos.iter().position(super::request::Todo::is_in_progress);
        let task = work.todos.iter().rev().find_map(|todo| came_to(&todo.text)?.strip_prefix("goes on as "));
        Self {
            outcomes: (0..steps.len()).map(outcome).collect(),
            work: Some(work.id.clone()),
            opens: false,
            is_waiting: work.is_waiting,
            is_blocked: work.is_blocked,
            task: task.map(str::to_owned),
            waited,
            steps,
        }
    }

    pub(super) fn instructs(&self) -> bool {
        self.steps.iter().any(Step::is_instruction)
    }

    /// Goes through the results that are there, and says what is to be done next.
    pub(super) fn run(&mut self, results: Results<'_, '_>, report: &mut Report) -> Flow {
        if self.is_blocked || self.is_waiting {
            report.paragraph(&self.standing());
            return Flow::Done;
        }
        if self.opens
            && let Some(flow) = self.open(results, report)
        {
            return flow;
        }
        for index in 0..self.steps.len() {
            if self.outcomes[index].is_none()
                && let Some(flow) = self.step(index, results, report)
            {
                return flow;
            }
        }
        self.complete(results, report)
    }

    fn standing(&self) -> String {
        let work = self.work.as_deref().unwrap_or("the work");
        let next = self.steps.iter().zip(&self.outcomes).find(|(_, outcome)| outcome.is_none());
        let next = next.map(|(step, _)| step.line()).unwrap_or_default();
        let standing = if self.is_blocked { "is blocked at" } else { "still waits at" };
        format!("{work} {standing} `{}`.", shown_line(&next))
    }

    /// Opens the work item that keeps the runbook.
    fn open(&mut self, results: Results<'_, '_>, report: &mut Report) -> Option<Flow> {
        if self.steps.len() > TODOS_MAX {
            report.paragraph(&format!("A runbook that waits has at most {TODOS_MAX} steps."));
            return Some(Flow::Stopped);
        }
        let asked = Asked {
            tool: "CreateWorkItem",
            arguments: json!({
                "objective": self.objective(), "plan": self.plan(), "todo_list": self.todos(None),
                "plan_status": "ready", "focus": true,
            }),
        };
        let Some(result) = results.next() else { return Some(Flow::Owed(vec![asked])) };
        match Reading::of(&result.text) {
            Reading::Ended(Ending { failed: false, work: Some(work), .. }) => {
                self.work = Some(work);
                None
            }
            Reading::Ended(ending) => {
                report.ended("work", &ending);
                Some(Flow::Stopped)
            }
            Reading::Running(_) => Some(Flow::Stopped),
        }
    }

    fn objective(&self) -> String {
        let work = self.steps.iter().find_map(|step| {
            let Step::Work(objective) = step else { return None };
            Some(objective.clone())
        });
        work.or_else(|| self.steps.first().map(Step::line)).unwrap_or_default()
    }

    /// The runbook's text, as it is read again.
    fn plan(&self) -> String {
        let text = |step: &Step| if let Step::Spawn(spawn) = step { spawn_lines(spawn) } else { step.line() };
        self.steps.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// The todo list: a step each, with what it came to. `current` is the one that is waited in.
    fn todos(&self, current: Option<(usize, &str)>) -> Vec<Value> {
        let todo = |(index, step): (usize, &Step)| {
            let line = shown_line(&step.line());
            let (status, came_to) = match (&self.outcomes[index], current) {
                (Some(outcome), _) => ("completed", Some(outcome.as_str())),
                (None, Some((at, note))) if at == index => ("in_progress", Some(note)),
                (None, _) => ("pending", None),
            };
            let text = came_to.map_or(line.clone(), |note| format!("{line}{CAME_TO}{}", shown_line(note)));
            json!({"text": crate::words::content::excerpt(&text, TODO_BYTES_MAX), "status": status})
        };
        self.steps.iter().enumerate().map(todo).collect()
    }

    /// Does one step; none when it is done and the next one follows.
    fn step(&mut self, index: usize, results: Results<'_, '_>, report: &mut Report) -> Option<Flow> {
        let step = self.steps[index].clone();
        let line = step.line();
        match &step {
            Step::Say(text) => report.paragraph(text),
            Step::Quote(text) => report.quote(text),
            Step::Work(objective) => {
                report.paragraph(&format!("{}: {objective}", self.work.as_deref().unwrap_or("work")));
            }
            Step::Done => {}
            Step::Wait(wait) => return self.wait(index, *wait, results, report),
            Step::Command(_) | Step::Timer { .. } | Step::Spawn(_) => {
                let in_background = matches!(self.steps.get(index + 1), Some(Step::Wait(WaitStep::Task)));
                match follow(&step, in_background, results) {
                    Progress::Owed(asked) => return Some(Flow::Owed(vec![asked])),
                    Progress::Began(task) => {
                        let outcome = format!("goes on as {task}");
                        report.ended(&line, &Ending::succeeded(outcome.clone()));
                        self.outcomes[index] = Some(outcome);
                        self.task = Some(task);
                        return None;
                    }
                    Progress::Ended(ending) => return self.ended(index, &line, &ending, results, report),
                }
            }
        }
        self.outcomes[index] = Some("done".to_owned());
        None
    }

    fn ended(
        &mut self,
        index: usize,
        line: &str,
        ending: &Ending,
        results: Results<'_, '_>,
        report: &mut Report,
    ) -> Option<Flow> {
        report.ended(line, ending);
        if !ending.failed {
            self.outcomes[index] = Some(ending.outcome.clone());
            return None;
        }
        if let Some(flow) = self.block(index, ending, results) {
            return Some(flow);
        }
        report.stopped(&self.steps[index + 1..]);
        Some(Flow::Stopped)
    }

    /// A work item whose runbook has failed is blocked, and says by what.
    fn block(&self, index: usize, ending: &Ending, results: Results<'_, '_>) -> Option<Flow> {
        let work = self.work.as_ref()?;
        if results.next().is_some() {
            return None;
        }
        let blocker = format!("`{}` failed: {}", shown_line(&self.steps[index].line()), shown_line(&ending.outcome));
        let todos = self.todos(Some((index, &ending.outcome)));
        let arguments = json!({"work_item_id": work, "todo_list": todos, "blocker": blocker});
        Some(Flow::Owed(vec![Asked { tool: "UpdateWorkItem", arguments }]))
    }

    /// A wait ends the turn. The turn that resumes finds the wait gone, and goes on.
    fn wait(&mut self, index: usize, wait: WaitStep, results: Results<'_, '_>, report: &mut Report) -> Option<Flow> {
        if wait == WaitStep::Task {
            return self.wait_for_task(index, results, report);
        }
        if self.waited == Some(index) {
            self.outcomes[index] = Some("came".to_owned());
            return None;
        }
        self.yields(index, wait, report)
    }

    /// A task is looked at before it is waited for: it may have ended meanwhile.
    fn wait_for_task(&mut self, index: usize, results: Results<'_, '_>, report: &mut Report) -> Option<Flow> {
        let Some(task) = self.task.clone() else {
            self.outcomes[index] = Some("nothing to wait for".to_owned());
            return None;
        };
        let arguments = json!({"task_id": task, "block": false, "max_output_tokens": OUTPUT_TOKENS});
        let asked = Asked { tool: "TaskOutput", arguments };
        let Some(result) = results.next() else { return Some(Flow::Owed(vec![asked])) };
        let line = format!("wait task ({task})");
        match Reading::of(&result.text) {
            Reading::Ended(ending) => self.ended(index, &line, &ending, results, report),
            Reading::Running(_) => self.yields(index, WaitStep::Task, report),
        }
    }

    fn yields(&mut self, index: usize, wait: WaitStep, report: &mut Report) -> Option<Flow> {
        let Some(work) = &self.work else { return Some(Flow::Stopped) };
        let reason = shown_line(&self.steps[index].line());
        let mut arguments = json!({"work_item_id": work, "reason": reason});
        match wait {
            WaitStep::Task => {
                arguments["wake"] = json!("task_result");
                arguments["resource"] = json!(self.task);
            }
            WaitStep::External => arguments["wake"] = json!("external"),
            WaitStep::Operator => arguments["wake"] = json!("operator_input"),
            WaitStep::Time { after_ms } => {
                arguments["wake"] = json!("timer");
                arguments["after_ms"] = json!(after_ms);
            }
        }
        let note = self.task.as_deref().filter(|_| wait == WaitStep::Task).unwrap_or("waiting");
        let update = json!({"work_item_id": work, "todo_list": self.todos(Some((index, note)))});
        report.paragraph(&format!("Waiting: {reason}."));
        Some(Flow::Yields(vec![
            Asked { tool: "UpdateWorkItem", arguments: update },
            Asked { tool: "WaitFor", arguments },
        ]))
    }

    /// The end: a work item is completed with the report, whether the runbook says so or not.
    fn complete(&mut self, results: Results<'_, '_>, report: &mut Report) -> Flow {
        let Some(work) = &self.work else { return Flow::Done };
        report.done();
        if results.next().and_then(|_| results.next()).is_some() {
            return Flow::Done;
        }
        let update = json!({"work_item_id": work, "todo_list": self.todos(None)});
        let arguments = json!({"work_item_id": work, "result_summary": report.text()});
        Flow::Owed(vec![
            Asked { tool: "UpdateWorkItem", arguments: update },
            Asked { tool: "CompleteWorkItem", arguments },
        ])
    }
}

/// Goes through the results of a step; a command that became a task is followed to its end, unless it is to go on.
fn follow(step: &Step, in_background: bool, results: Results<'_, '_>) -> Progress {
    let mut owed = asked(step, in_background);
    for result in results {
        match Reading::of(&result.text) {
            Reading::Ended(ending) => return Progress::Ended(ending),
            Reading::Running(task) if in_background || matches!(step, Step::Spawn(_)) => return Progress::Began(task),
            Reading::Running(task) => owed = task_output(&task),
        }
    }
    Progress::Owed(owed)
}

fn asked(step: &Step, in_background: bool) -> Asked {
    match step {
        Step::Timer { after_ms, text } => {
            Asked { tool: "CreateTimer", arguments: json!({"duration_ms": after_ms, "summary": text}) }
        }
        Step::Spawn(spawn) => spawned(spawn),
        Step::Command(command) if in_background => {
            let arguments = json!({"cmd": command, "yield_time_ms": TASK_YIELD_MS, "max_output_tokens": OUTPUT_TOKENS});
            Asked { tool: "ExecCommand", arguments }
        }
        Step::Command(command) => {
            Asked { tool: "ExecCommand", arguments: json!({"cmd": command, "max_output_tokens": OUTPUT_TOKENS}) }
        }
        Step::Say(_) | Step::Work(_) | Step::Done | Step::Wait(_) | Step::Quote(_) => {
            unreachable!("the step asks for nothing")
        }
    }
}

fn spawned(spawn: &Spawn) -> Asked {
    let mode = if spawn.in_worktree { "worktree" } else { "inherit" };
    let context = if spawn.forks { "fork" } else { "fresh" };
    let arguments = json!({"initial_message": spawn.message, "workspace_mode": mode, "context": context});
    Asked { tool: "SpawnAgent", arguments }
}

fn task_output(task: &str) -> Asked {
    let arguments = json!({"task_id": task, "block": true, "timeout_ms": TASK_OUTPUT_BLOCK_MS_MAX});
    Asked { tool: "TaskOutput", arguments }
}

/// A child's step as it is read again: what it does is indented below.
fn spawn_lines(spawn: &Spawn) -> String {
    let words = match (spawn.in_worktree, spawn.forks) {
        (false, false) => "",
        (true, false) => " in a worktree",
        (false, true) => " with a fork",
        (true, true) => " in a worktree and with a fork",
    };
    format!("spawn{words}: {}", spawn.message.replace('\n', "\n  "))
}

fn came_to(todo: &str) -> Option<&str> {
    todo.rsplit_once(CAME_TO).map(|(_, outcome)| outcome)
}
