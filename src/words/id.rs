//! Names of things. Ids are counters in the state, scoped to the agent, in a readable text form (architecture 5).

use super::limit::{AGENT_ID_BYTES_MAX, AGENT_ID_CHOSEN_BYTES_MAX, SKILL_NAME_BYTES_MAX, TOKEN_NAME_BYTES_MAX};
use super::prompt_text::Own;
use super::readable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of an agent: 1 to 64 of ASCII letters, digits, `.`, `-`, `_`, not starting with `.` (semantics 1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgentId(Arc<str>);

const HOME: &str = ".home";

/// Why a text is not an agent id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentIdError {
    #[error("an agent id has 1 to {AGENT_ID_CHOSEN_BYTES_MAX} characters")]
    Length,
    #[error("an agent id consists of ASCII letters, digits, '.', '-' and '_', and does not start with '.'")]
    Characters,
    #[error("ids ending in .c<digits> are given to children by the runtime")]
    Reserved,
}

impl AgentId {
    /// Reads any valid id, those of children included.
    pub fn parse(text: &str) -> Result<Self, AgentIdError> {
        if text.is_empty() || text.len() > AGENT_ID_BYTES_MAX {
            return Err(AgentIdError::Length);
        }
        let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
        if text.starts_with('.') || !text.bytes().all(plain) {
            return Err(AgentIdError::Characters);
        }
        Ok(Self(text.into()))
    }

    /// Reads an id that a caller chose for a new agent: shorter, and not of a child's form.
    pub fn chosen(text: &str) -> Result<Self, AgentIdError> {
        let id = Self::parse(text)?;
        if text.len() > AGENT_ID_CHOSEN_BYTES_MAX {
            return Err(AgentIdError::Length);
        }
        if id.has_child_form() {
            return Err(AgentIdError::Reserved);
        }
        Ok(id)
    }

    /// The id of the home's own ledger. No agent has it: an agent's id does not start with `.`.
    pub fn home() -> Self {
        Self(HOME.into())
    }

    pub fn is_home(&self) -> bool {
        &*self.0 == HOME
    }

    /// Reads the id of any ledger: an agent's, or the home's own.
    pub fn of_ledger(text: &str) -> Result<Self, AgentIdError> {
        if text == HOME { Ok(Self::home()) } else { Self::parse(text) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The agent at the top of its family: itself, or who made its parents.
    #[must_use]
    pub fn family(&self) -> Self {
        let mut top = self.clone();
        while top.has_child_form() {
            top = Self(top.0.rsplit_once(".c").map_or("", |(parent, _)| parent).into());
        }
        top
    }

    /// Whether only the runtime gives such an id: every private agent has one.
    pub fn has_child_form(&self) -> bool {
        let digits = |rest: &str| !rest.is_empty() && rest.bytes().all(|c| c.is_ascii_digit());
        self.0.rsplit_once(".c").is_some_and(|(_, rest)| digits(rest))
    }
}

impl FromStr for AgentId {
    type Err = AgentIdError;

    fn from_str(text: &str) -> Result<Self, AgentIdError> {
        Self::parse(text)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a skill, which is that of its folder too: ASCII letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SkillName(String);

/// A text is not a skill's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is 1 to {SKILL_NAME_BYTES_MAX} of ASCII letters, digits, '-' and '_'")]
pub struct SkillNameError;

impl SkillName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SkillName {
    type Error = SkillNameError;

    fn try_from(text: String) -> Result<Self, SkillNameError> {
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
        let is_name = (1..=SKILL_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
        if is_name { Ok(Self(text)) } else { Err(SkillNameError) }
    }
}

impl FromStr for SkillName {
    type Err = SkillNameError;

    fn from_str(text: &str) -> Result<Self, SkillNameError> {
        text.to_owned().try_into()
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a token, by which records say who asked: ASCII letters, digits, `.`, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct TokenName(String);

/// A text is not a token's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is 1 to {TOKEN_NAME_BYTES_MAX} of ASCII letters, digits, '.', '-' and '_'")]
pub struct TokenNameError;

impl TokenName {
    /// The name of the token that the server is configured with. No other token has it.
    pub fn control() -> Self {
        Self("control".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TokenName {
    type Error = TokenNameError;

    fn try_from(text: String) -> Result<Self, TokenNameError> {
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
        let is_name = (1..=TOKEN_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain);
        if is_name { Ok(Self(text)) } else { Err(TokenNameError) }
    }
}

impl FromStr for TokenName {
    type Err = TokenNameError;

    fn from_str(text: &str) -> Result<Self, TokenNameError> {
        text.to_owned().try_into()
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A position in an agent's ledger: from 1, without gaps, never reused. Zero is "before the first".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventSeq(pub u64);

impl EventSeq {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for EventSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One start of the runtime on a home, counted from 1. Attempts are marked with it (architecture 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Boot(pub u64);

/// Defines ids that count from 1 within an agent and are written `prefix-N`.
macro_rules! counted_ids {
    ($($(#[doc = $doc:literal])* $name:ident = $prefix:literal;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                readable::serialize(&self.0, self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                readable::deserialize(deserializer, |text| counted(text, concat!($prefix, "-"))).map(Self)
            }
        }

        impl $name {
            /// The id that follows this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "-{}"), self.0)
            }
        }

        impl Own for $name {}

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let number = counted(text, concat!($prefix, "-")).filter(|number| *number > 0);
                number.map(Self).ok_or(IdError { form: concat!($prefix, "-N") })
            }
        }
    )*};
}

/// A text is not an id of the form asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id of the form {form}")]
pub struct IdError {
    form: &'static str,
}

fn counted(text: &str, prefix: &str) -> Option<u64> {
    let digits = text.strip_prefix(prefix)?;
    // Zero is "none given yet", which a state may hold and nobody may ask for.
    let canonical = digits.bytes().all(|c| c.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    canonical.then(|| digits.parse().ok()).flatten()
}

counted_ids! {
    /// A message in an agent's queue.
    MessageId = "msg";
    /// One turn of an agent: the current one is its current run.
    RunId = "run";
    /// A managed execution.
    TaskId = "task";
    /// A brief for the operator.
    BriefId = "brief";
    /// A unit of meaningful work.
    WorkId = "work";
    /// A condition that something waits for.
    WaitId = "wait";
    /// A message that time will bring.
    TimerId = "timer";
    /// A capability by which the outside world reaches the agent.
    TriggerId = "trigger";
    /// A folder that was attached to the agent.
    WorkspaceId = "ws";
    /// A finalized summary of a stretch of turns.
    EpisodeId = "episode";
    /// Something the operator, or the parent, is to know.
    NoticeId = "notice";
    /// A transport by which the operator is reached, and speaks.
    BindingId = "opbind";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ids_are_plain_and_children_ids_are_not_for_callers() {
        for good in ["main", "a", "Rev-2_x.y", "a.c", "a.cx1"] {
            assert_eq!(AgentId::chosen(good).unwrap().as_str(), good);
        }
        for (bad, why) in [
            ("", AgentIdError::Length),
            (".hidden", AgentIdError::Characters),
            ("a/b", AgentIdError::Characters),
            ("ä", AgentIdError::Characters),
            ("main.c12", AgentIdError::Reserved),
        ] {
            assert_eq!(AgentId::chosen(bad), Err(why), "{bad}");
        }
        assert_eq!(AgentId::chosen(&"a".repeat(49)), Err(AgentIdError::Length));
        assert_eq!(AgentId::parse("main.c12").unwrap().as_str(), "main.c12");
    }

    #[test]
    fn a_skills_name_leads_to_no_other_folder() {
        for good in ["a", "long-work", "Rev_2", &"a".repeat(64)] {
            assert_eq!(good.parse::<SkillName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".new", "a/b", "a.b", "ä", "a b", &"a".repeat(65)] {
            assert!(bad.parse::<SkillName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn counted_ids_have_one_text_form() {
        assert_eq!("msg-17".parse(), Ok(MessageId(17)));
        assert_eq!(MessageId(17).to_string(), "msg-17");
        for bad in ["msg-", "msg-0", "msg-017", "msg-+1", "run-1", "17", "msg-99999999999999999999"] {
            assert!(bad.parse::<MessageId>().is_err(), "{bad}");
        }
    }
}
