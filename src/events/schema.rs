//! The catalogue of `ledger-schema/`, read from the vocabulary itself.

use super::vocabulary::{FieldRow, ShapeRow};
use super::{PLANES, actor, agent, call, home, memory, operator, queue, task, turn, waiting, work, workspace};
use std::fmt::Write as _;

/// Every type that events are made of.
pub const SHAPES: &[ShapeRow] = &[
    super::Cause::SHAPE,
    actor::ControlSurface::SHAPE,
    actor::ActorPeer::SHAPE,
    actor::Actor::SHAPE,
    agent::Visibility::SHAPE,
    agent::Ownership::SHAPE,
    agent::Preset::SHAPE,
    agent::Role::SHAPE,
    agent::WakeDisposition::SHAPE,
    agent::Answer::SHAPE,
    agent::Speaker::SHAPE,
    agent::ErrandKind::SHAPE,
    agent::ErrandOutcome::SHAPE,
    queue::Lane::SHAPE,
    queue::MessageKind::SHAPE,
    queue::Trust::SHAPE,
    queue::DerivedFrom::SHAPE,
    queue::Author::SHAPE,
    queue::Origin::SHAPE,
    queue::Surface::SHAPE,
    queue::Admission::SHAPE,
    queue::BodyType::SHAPE,
    queue::Subject::SHAPE,
    queue::MessageOutcome::SHAPE,
    turn::TurnPolicy::SHAPE,
    turn::SectionKind::SHAPE,
    turn::Section::SHAPE,
    turn::StopReason::SHAPE,
    turn::Usage::SHAPE,
    turn::UsageTotal::SHAPE,
    turn::AttemptErrorKind::SHAPE,
    turn::AttemptError::SHAPE,
    turn::AfterAttempt::SHAPE,
    turn::Entry::SHAPE,
    turn::TurnOutcome::SHAPE,
    turn::AbortMode::SHAPE,
    task::TaskStatus::SHAPE,
    task::CommandSpec::SHAPE,
    task::TreeLimit::SHAPE,
    task::Exit::SHAPE,
    task::Supervisor::SHAPE,
    task::Kept::SHAPE,
    task::CommandOutput::SHAPE,
    task::Caller::SHAPE,
    task::ChildLifecycle::SHAPE,
    task::WorkspaceMode::SHAPE,
    operator::BriefKind::SHAPE,
    operator::BindingTerms::SHAPE,
    operator::ReplyRoute::SHAPE,
    work::PlanStatus::SHAPE,
    work::TodoStatus::SHAPE,
    work::Todo::SHAPE,
    work::BlockerChange::SHAPE,
    work::WorkChange::SHAPE,
    waiting::WaitOwner::SHAPE,
    waiting::WakeOn::SHAPE,
    waiting::Recoverability::SHAPE,
    waiting::WaitTrigger::SHAPE,
    waiting::DeliveryMode::SHAPE,
    workspace::WorkspaceName::SHAPE,
    workspace::Projection::SHAPE,
    workspace::Worktree::SHAPE,
    workspace::ChangedFile::SHAPE,
    workspace::WorktreeSummary::SHAPE,
    workspace::GuidanceScope::SHAPE,
    workspace::SkillSource::SHAPE,
    workspace::SkillMode::SHAPE,
    memory::EpisodeBoundary::SHAPE,
    call::ExecRequest::SHAPE,
    call::CallError::SHAPE,
    call::WaitFor::SHAPE,
    call::ContextMode::SHAPE,
    call::SpawnRequest::SHAPE,
    call::View::SHAPE,
    call::Action::SHAPE,
    call::Call::SHAPE,
    call::Shown::SHAPE,
    call::FileChange::SHAPE,
    call::PatchedFile::SHAPE,
    call::CallResult::SHAPE,
    home::Scope::SHAPE,
    home::SettingValue::SHAPE,
];

/// Every file of `ledger-schema/` that is generated: its name and its text.
pub fn files() -> Vec<(String, String)> {
    let planes = PLANES.iter().map(|(plane, _)| (format!("{plane}.toml"), plane_file(plane)));
    planes.chain([("shapes.toml".to_owned(), shapes_file())]).collect()
}

fn plane_file(plane: &str) -> String {
    let kinds = PLANES.iter().find(|(name, _)| *name == plane).map_or(&[][..], |(_, kinds)| kinds);
    let mut text = format!("# Events of the {plane} plane. A row that has shipped never changes.\n");
    for kind in kinds {
        let _ = write!(text, "\n[{}]\ntag = {:#06x}\nversion = {}\n", kind.kind, kind.tag, kind.version);
        let _ = writeln!(text, "since = {:?}\nmeaning = {:?}", kind.since, kind.meaning.trim());
        write_parts(&mut text, "fields", kind.fields);
    }
    text
}

fn shapes_file() -> String {
    let mut text = String::from("# Types that events are made of. Parts are only ever added at the end of an enum.\n");
    for shape in SHAPES {
        let _ = write!(text, "\n[{}]\nform = {:?}\n", shape.name, shape.form);
        write_parts(&mut text, "parts", shape.parts);
    }
    text
}

/// Writing into a string cannot fail, hence the ignored results in this file.
fn write_parts(text: &mut String, name: &str, parts: &[FieldRow]) {
    let _ = writeln!(text, "{name} = [");
    for part in parts {
        let _ = writeln!(text, "  [{:?}, {:?}],", part.name, part.shape_text());
    }
    let _ = writeln!(text, "]");
}
