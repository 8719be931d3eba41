//! Tasks: commands of the operator's; the output, the input and the end of any.

use super::Shared;
use super::extract::{Agent, Control, Public, Query, Rid, TrustBody};
use super::kinds::{self, TASKS};
use super::messages::unexpected;
use super::reply::Reply;
use crate::decide::Attribution;
use crate::decide::task::TaskCommand;
use crate::events::agent::Answer;
use crate::events::call::ExecRequest;
use crate::events::task::CommandSpec;
use crate::wire::message::{BodyError, says_trust};
use crate::words::content::{Blob, Content, excerpt};
use crate::words::id::{AgentId, TaskId};
use crate::words::limit::{
    EXCERPT_BYTES_MAX, OUTPUT_PAGE_BYTES_DEFAULT, OUTPUT_PAGE_BYTES_MAX, SHOWN_TOKENS_DEFAULT, SHOWN_TOKENS_MAX,
};
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents/{id}/tasks/{rid}/output", get(output))
        .route("/control/agents/{id}/tasks", post(create))
        .route("/control/agents/{id}/tasks/{rid}/input", post(input))
        .route("/control/agents/{id}/tasks/{rid}/stop", post(stop))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputQuery {
    /// In bytes, from the beginning of what was kept.
    offset: Option<u64>,
    limit_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    summary: String,
    cmd: String,
    workdir: Option<String>,
    shell: Option<String>,
    #[serde(default)]
    login: bool,
    #[serde(default)]
    accepts_input: bool,
    max_output_tokens: Option<u32>,
    /// Nobody waits for the command, so there is nothing to yield.
    #[serde(rename = "yield_time_ms")]
    _yield_time_ms: Option<u64>,
    #[serde(default)]
    tty: bool,
    trust: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputBody {
    text: String,
    trust: Option<String>,
}

says_trust!(CreateBody, InputBody);

async fn output(State(app): State<Shared>, Agent(id): Agent, rid: Rid, Query(query): Query<OutputQuery>) -> Reply {
    // An unknown agent is told before an unknown task.
    app.handle.read(&id, |_| ()).await?;
    let task = rid.parse("task")?;
    let bytes_max = query.limit_bytes.unwrap_or(OUTPUT_PAGE_BYTES_DEFAULT).clamp(1, OUTPUT_PAGE_BYTES_MAX);
    Ok(Json(app.handle.task_output(&id, task, query.offset.unwrap_or(0), bytes_max).await?))
}

async fn create(State(app): State<Shared>, Public(id): Public, body: Control<CreateBody>) -> Reply {
    let command = TaskCommand::Create(body.value.request()?);
    let request = body.by.request(command);
    let answer = app.handle.submit(&id, request, Vec::new()).await?;
    let Answer::Task(task) = answer else { return Err(unexpected(&answer)) };
    kinds::one(&TASKS, &app, &id, &task.to_string()).await
}

impl CreateBody {
    fn request(self) -> Result<ExecRequest, BodyError> {
        let invalid = |field, reason: &str| Err(BodyError::Invalid { field, reason: reason.into() });
        if self.summary.trim().is_empty() {
            return invalid("summary", "must not be empty");
        }
        if self.tty {
            return invalid("tty", "is not supported: commands run without a terminal");
        }
        let Self { cmd, workdir, shell, login, accepts_input, .. } = self;
        Ok(ExecRequest {
            spec: CommandSpec { cmd, workdir, shell, login, accepts_input },
            yield_ms: 0,
            shown_tokens: self.max_output_tokens.unwrap_or(SHOWN_TOKENS_DEFAULT).min(SHOWN_TOKENS_MAX),
            reuse_running: false,
            summary: Some(excerpt(self.summary.trim(), EXCERPT_BYTES_MAX).to_owned()),
        })
    }
}

async fn input(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<InputBody>) -> Reply {
    let task = rid.parse("task")?;
    let (text, blob) = Content::new(body.value.text);
    done(&app, &id, task, TaskCommand::Input { task, text }, body.by, blob).await
}

async fn stop(State(app): State<Shared>, Public(id): Public, rid: Rid, body: Control<TrustBody>) -> Reply {
    let task = rid.parse("task")?;
    let command = TaskCommand::Stop { task, reason: "stopped_by_operator".into() };
    done(&app, &id, task, command, body.by, None).await
}

async fn done(
    app: &Shared,
    id: &AgentId,
    task: TaskId,
    command: TaskCommand,
    by: Attribution,
    blob: Option<Blob>,
) -> Reply {
    let request = by.request(command);
    app.handle.submit(id, request, blob.into_iter().collect()).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "task_id": task})))
}
