//! The table of shapes: what is sent and what is answered, each named once.

mod agent;
mod done;
mod record;
mod sent;
mod server;

use crate::events::actor::ControlSurface;
use crate::events::agent::{Ownership, Preset, Role, Visibility, WakeDisposition};
use crate::events::home::Scope;
use crate::events::operator::BriefKind;
use crate::events::queue::{Admission, Lane, MessageKind, Surface, Trust};
use crate::events::task::{ChildLifecycle, TaskStatus, WorkspaceMode};
use crate::events::turn::{AbortMode, SectionKind, TurnOutcome};
use crate::events::work::{PlanStatus, TodoStatus};
use crate::events::workspace::{Projection, SkillMode, SkillSource};
use crate::fold::posture::PostureKind;

/// An object. The names of members that may be missing end with `?`.
pub(super) struct Shape {
    pub name: &'static str,
    pub about: &'static str,
    pub members: Members,
    /// Whether clients send it.
    pub is_sent: bool,
}

type Members = &'static [(&'static str, &'static str)];

const TABLES: [&[Shape]; 5] = [sent::SHAPES, done::SHAPES, server::SHAPES, agent::SHAPES, record::SHAPES];

pub(super) fn all() -> impl Iterator<Item = &'static Shape> {
    TABLES.into_iter().flatten()
}

const fn told(name: &'static str, about: &'static str, members: Members) -> Shape {
    Shape { name, about, members, is_sent: false }
}

/// Lists of names, as the vocabulary has them.
pub(super) const NAMES: &[(&str, &[&str])] = &[
    ("AbortMode", AbortMode::NAMES),
    ("AdmissionContext", Admission::NAMES),
    ("AgentStatus", &["booting", "awake_idle", "awake_running", "asleep", "stopped", "archived"]),
    ("AuthorityClass", &AUTHORITY_CLASSES),
    ("BriefKind", BriefKind::NAMES),
    ("ChildLifecycle", ChildLifecycle::NAMES),
    ("ControlSurface", ControlSurface::NAMES),
    ("DeliverySurface", Surface::NAMES),
    ("MessageKind", MessageKind::NAMES),
    ("Ownership", Ownership::NAMES),
    ("PlanStatus", PlanStatus::NAMES),
    ("PostureName", &POSTURES),
    ("Preset", Preset::NAMES),
    ("Priority", Lane::NAMES),
    ("ProjectionKind", Projection::NAMES),
    ("Role", Role::NAMES),
    ("ScopeName", Scope::NAMES),
    ("SectionKind", SectionKind::NAMES),
    ("SkillMode", SkillMode::NAMES),
    ("SkillSource", SkillSource::NAMES),
    ("TaskStatus", TaskStatus::NAMES),
    ("TodoStatus", TodoStatus::NAMES),
    ("TrustLevel", Trust::NAMES),
    ("TurnOutcome", TurnOutcome::NAMES),
    ("Visibility", Visibility::NAMES),
    ("WakeDisposition", WakeDisposition::NAMES),
    ("WorkspaceMode", WorkspaceMode::NAMES),
];

const AUTHORITY_CLASSES: [&str; 4] =
    ["operator_instruction", "runtime_instruction", "integration_signal", "external_evidence"];

const POSTURES: [&str; PostureKind::ALL.len()] = {
    let mut names = [""; PostureKind::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = PostureKind::ALL[index].name();
        index += 1;
    }
    names
};
