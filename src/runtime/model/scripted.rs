//! `scripted/<path>`: answers that a JSON file gives, for tests and rehearsals.
//!
//! ```json
//! {
//!   "rounds": [
//!     {"text": "first", "calls": [{"tool": "ExecCommand", "arguments": {"cmd": "ls"}}]},
//!     {"error": {"kind": "rate_limited", "status": 429, "message": "slow down", "retry_after_ms": 50}},
//!     {"wait_for": "go", "text": "second"},
//!     {"abort": true}
//!   ],
//!   "default": {"text": "there is nothing left to say"}
//! }
//! ```
//!
//! The agent's recorded rounds choose the answer, so a restart asks for the same one again. `wait_for` names a file,
//! seen from the script's own directory, and holds the round back until it is there; `abort` ends the process.

use super::failure::{bounded, failed};
use super::{Provider, raw_text, within_bound};
use crate::context::request::{AssistantPart, ModelAnswer, ModelRequest, RawCall};
use crate::events::turn::{AttemptError, AttemptErrorKind, StopReason, Usage};
use futures::future::BoxFuture;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Room for some changes; one takes at most 16 bytes and a file name.
const INOTIFY_BYTES: usize = 4_096;

/// The provider whose models are paths of scripts.
pub struct Scripted;

impl Provider for Scripted {
    fn complete<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<ModelAnswer, AttemptError>> {
        Box::pin(answer(request))
    }
}

/// Why a script gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("the script {path} cannot be read: {reason}")]
    Unreadable { path: String, reason: String },
    #[error("the script {path} has no round {round} and no default", round = index + 1)]
    NoRound { path: String, index: u64 },
    #[error("round {round} of the script {path}: {reason}", round = index + 1)]
    BadRound { path: String, index: u64, reason: &'static str },
    #[error("cannot wait for {path}: {reason}")]
    NoWait { path: String, reason: String },
}

impl From<ScriptError> for AttemptError {
    fn from(error: ScriptError) -> Self {
        failed(AttemptErrorKind::InvalidAnswer, error.to_string())
    }
}

async fn answer(request: &ModelRequest) -> Result<ModelAnswer, AttemptError> {
    let round = read_round(&request.model, request.rounds_before).await?;
    if let Some(file) = &round.wait_for {
        file_exists(&beside(&request.model, file)).await?;
    }
    if round.abort {
        std::process::abort();
    }
    match round.error {
        Some(error) => Err(error.into()),
        None => round.answer(request.rounds_before),
    }
}

async fn read_round(path: &str, index: u64) -> Result<Round, ScriptError> {
    let unreadable = |reason: String| ScriptError::Unreadable { path: path.to_owned(), reason };
    let bytes = tokio::fs::read(path).await.map_err(|error| unreadable(error.to_string()))?;
    let mut script: Script = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    let place = usize::try_from(index).ok().filter(|place| *place < script.rounds.len());
    let round = place.map(|place| script.rounds.swap_remove(place)).or(script.default);
    let round = round.ok_or_else(|| ScriptError::NoRound { path: path.to_owned(), index })?;
    round.check().map_err(|reason| ScriptError::BadRound { path: path.to_owned(), index, reason })?;
    Ok(round)
}

fn beside(script: &str, file: &Path) -> PathBuf {
    Path::new(script).parent().unwrap_or(Path::new("")).join(file)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    rounds: Vec<Round>,
    default: Option<Round>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Round {
    text: String,
    calls: Vec<ScriptedCall>,
    #[serde(deserialize_with = "stop_reason")]
    stop: Option<StopReason>,
    usage: ScriptedUsage,
    error: Option<ScriptedFailure>,
    abort: bool,
    wait_for: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    id: Option<String>,
    tool: String,
    /// A text stands for itself, whatever is in it; anything else for its JSON.
    arguments: Value,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScriptedUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedFailure {
    #[serde(deserialize_with = "error_kind")]
    kind: AttemptErrorKind,
    status: Option<u16>,
    #[serde(default)]
    message: String,
    retry_after_ms: Option<u64>,
}

fn stop_reason<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<StopReason>, D::Error> {
    named(deserializer, StopReason::from_name, StopReason::NAMES).map(Some)
}

fn error_kind<'a, D: Deserializer<'a>>(deserializer: D) -> Result<AttemptErrorKind, D::Error> {
    named(deserializer, AttemptErrorKind::from_name, AttemptErrorKind::NAMES)
}

fn named<'a, D: Deserializer<'a>, T>(
    deserializer: D,
    from_name: fn(&str) -> Option<T>,
    names: &'static [&'static str],
) -> Result<T, D::Error> {
    let name = String::deserialize(deserializer)?;
    from_name(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, names))
}

impl Round {
    fn check(&self) -> Result<(), &'static str> {
        let answers = !self.text.is_empty() || !self.calls.is_empty() || self.stop.is_some();
        match (self.abort, self.error.is_some(), answers) {
            (true, true, _) | (true, _, true) => Err("abort goes with wait_for alone"),
            (false, true, true) => Err("it cannot both fail and answer"),
            (true, false, false) | (false, _, _) => Ok(()),
        }
    }

    fn answer(self, index: u64) -> Result<ModelAnswer, AttemptError> {
        let derived = if self.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let calls = self.calls.into_iter().enumerate().map(|(place, call)| call.raw(index, place)).collect();
        let said = AssistantPart { text: self.text, calls };
        within_bound(&said)?;
        let ScriptedUsage { input_tokens, output_tokens } = self.usage;
        let usage = Usage { input_tokens, output_tokens };
        Ok(ModelAnswer { said, stop: self.stop.unwrap_or(derived), usage })
    }
}

impl ScriptedCall {
    fn raw(self, round: u64, place: usize) -> RawCall {
        let id = self.id.unwrap_or_else(|| format!("call-{}-{}", round + 1, place + 1));
        RawCall { id, tool: self.tool, arguments: raw_text(self.arguments) }
    }
}

impl From<ScriptedFailure> for AttemptError {
    fn from(failure: ScriptedFailure) -> Self {
        let ScriptedFailure { kind, status, message, retry_after_ms } = failure;
        Self { kind, status, message: bounded(message), retry_after_ms }
    }
}

/// Waits until a file is there. Its directory has to be there already.
async fn file_exists(path: &Path) -> Result<(), ScriptError> {
    let fault = |error: io::Error| ScriptError::NoWait { path: path.display().to_string(), reason: error.to_string() };
    let mut changes = watch_directory(path).map_err(fault)?;
    let mut change = [0; INOTIFY_BYTES];
    while !path.try_exists().map_err(fault)? {
        changes.read(&mut change).await.map_err(fault)?;
    }
    Ok(())
}

/// Tokio has no type for inotify; its pipe reads any descriptor that can be polled.
fn watch_directory(path: &Path) -> io::Result<pipe::Receiver> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let watch = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    watch.add_watch(directory, AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO)?;
    pipe::Receiver::from_owned_fd_unchecked(OwnedFd::from(watch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    struct Script {
        directory: tempfile::TempDir,
        path: String,
    }

    fn script(text: &str) -> Script {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("script.json");
        std::fs::write(&path, text).expect("a script");
        Script { path: path.display().to_string(), directory }
    }

    async fn ask(path: &str, rounds_before: u64) -> Result<ModelAnswer, AttemptError> {
        let model = path.to_owned();
        let request = ModelRequest { model, parts: vec![], tools: vec![], output_tokens_max: 1, rounds_before };
        Scripted.complete(&request).await
    }

    #[tokio::test]
    async fn rounds_are_answered_by_their_number() {
        let script = script(
            r#"{"rounds": [
                {"text": "a", "calls": [{"tool": "T", "arguments": {"b": 1, "a": [2]}},
                                        {"id": "mine", "tool": "U", "arguments": "{\"cut"}],
                 "usage": {"input_tokens": 7}},
                {"text": "b", "stop": "max_tokens"},
                {"error": {"kind": "rate_limited", "status": 429, "message": "slow", "retry_after_ms": 5}}
            ], "default": {"text": "over"}}"#,
        );
        let first = ask(&script.path, 0).await.expect("the first round");
        let call = |id: &str, tool: &str, arguments: &str| RawCall {
            id: id.to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        };
        assert_eq!(first.said.calls, [call("call-1-1", "T", r#"{"b":1,"a":[2]}"#), call("mine", "U", r#"{"cut"#)]);
        assert_eq!(first.stop, StopReason::ToolUse);
        assert_eq!(first.usage, Usage { input_tokens: Some(7), output_tokens: None });
        let second = ask(&script.path, 1).await.expect("the second round");
        assert_eq!((second.said.text.as_str(), second.stop), ("b", StopReason::MaxTokens));
        let third = ask(&script.path, 2).await.expect_err("a failure");
        let expected = AttemptError {
            kind: AttemptErrorKind::RateLimited,
            status: Some(429),
            message: "slow".to_owned(),
            retry_after_ms: Some(5),
        };
        assert_eq!(third, expected);
        assert_eq!(ask(&script.path, 99).await.expect("the default").said.text, "over");
    }

    #[tokio::test]
    async fn a_bad_script_is_explained() {
        let cases = [
            (r#"{"rounds": []}"#, "has no round 1 and no default"),
            (r#"{"rounds": [{"txt": "a"}]}"#, "unknown field `txt`"),
            (r#"{"rounds": [{"stop": "soon"}]}"#, "unknown variant `soon`"),
            (r#"{"rounds": [{"error": {"kind": "bad"}}]}"#, "unknown variant `bad`"),
            (r#"{"rounds": [{"text": "a", "error": {"kind": "server"}}]}"#, "it cannot both fail and answer"),
            (r#"{"rounds": [{"text": "a", "abort": true}]}"#, "abort goes with wait_for alone"),
            (r#"{"rounds": [{"wait_for": "not/here"}]}"#, "cannot wait for"),
        ];
        for (text, reason) in cases {
            let error = ask(&script(text).path, 0).await.expect_err(text);
            assert_eq!(error.kind, AttemptErrorKind::InvalidAnswer);
            assert!(error.message.contains(reason), "{text}: {}", error.message);
        }
        assert!(ask("/not/here", 0).await.expect_err("no file").message.contains("/not/here cannot be read"));
    }

    #[tokio::test]
    async fn a_round_waits_for_its_file() {
        let script = script(r#"{"rounds": [{"wait_for": "go", "text": "gone"}]}"#);
        let mut answer = Box::pin(ask(&script.path, 0));
        let other = script.directory.path().join("other");
        for waits in 0..3 {
            std::fs::write(other.with_extension(waits.to_string()), "").expect("another file");
            assert!(futures::poll!(&mut answer).is_pending());
        }
        std::fs::write(script.directory.path().join("go"), "").expect("the file");
        assert_eq!(answer.await.expect("an answer").said.text, "gone");
        assert_eq!(ask(&script.path, 0).await.expect("an answer at once").said.text, "gone");
    }

    #[test]
    fn an_abort_ends_the_process() {
        let child = "runtime::model::scripted::tests::the_process_that_is_aborted";
        let program = std::env::current_exe().expect("this program");
        let ended =
            std::process::Command::new(program).args(["--exact", child, "--ignored"]).output().expect("a process");
        assert_eq!(ended.status.signal(), Some(nix::libc::SIGABRT));
    }

    #[tokio::test]
    #[ignore = "it ends its process; the test before it gives it one of its own"]
    async fn the_process_that_is_aborted() {
        let answer = ask(&script(r#"{"rounds": [{"abort": true}]}"#).path, 0).await;
        panic!("still here: {answer:?}");
    }
}
