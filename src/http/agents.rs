//! Agents: listed, summarised, whole.

use super::Shared;
use super::extract::{Agent, Nothing, Query, malformed};
use super::reply::{Failure, Reply, page};
use crate::events::agent::Visibility;
use crate::fold::posture::PostureKind;
use crate::fold::row::ListRow;
use crate::wire::{agent, diagnostic};
use crate::words::id::AgentId;
use crate::words::limit::{AGENTS_LOOKED_AT_MAX, AGENTS_PAGE_DEFAULT, PAGE_MAX};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents", get(filtered))
        .route("/agents/list", get(list))
        .route("/status", get(status))
        .route("/state", get(state))
        .route("/agents/{id}/status", get(status))
        .route("/agents/{id}/state", get(state))
        .route("/agents/{id}/diagnostics", get(diagnostics))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    limit: Option<usize>,
    /// The last id that was looked at.
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilteredQuery {
    limit: Option<usize>,
    cursor: Option<String>,
    posture: Option<PostureKind>,
}

async fn list(State(app): State<Shared>, Query(query): Query<ListQuery>) -> Result<Response, Failure> {
    let ListQuery { limit, cursor } = query;
    listed(&app, "/agents/list", FilteredQuery { limit, cursor, posture: None }).await
}

async fn filtered(State(app): State<Shared>, Query(query): Query<FilteredQuery>) -> Result<Response, Failure> {
    listed(&app, "/agents", query).await
}

/// The public agents of a page. One that a filter makes short may have a next one all the same.
async fn listed(app: &Shared, path: &str, query: FilteredQuery) -> Result<Response, Failure> {
    let limit = query.limit.unwrap_or(AGENTS_PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let cursor = query.cursor.as_deref().map(AgentId::parse).transpose();
    let mut seen = cursor.map_err(|error| malformed("invalid_cursor", &error.to_string()))?;
    let rows_at_once = if query.posture.is_some() { PAGE_MAX } else { limit + 1 };
    let (mut entries, mut looked_at) = (Vec::new(), 0);
    let more = 'looking: loop {
        let rows = app.handle.list(seen.clone(), rows_at_once).await?;
        if rows.is_empty() {
            break false;
        }
        for (id, row, apart) in rows {
            if is_listed(&id, row.as_ref(), query.posture) {
                if entries.len() == limit {
                    break 'looking true;
                }
                entries.push(entry(app, &id, row.as_ref(), apart.as_deref()));
            }
            (seen, looked_at) = (Some(id), looked_at + 1);
        }
        if looked_at >= AGENTS_LOOKED_AT_MAX {
            break true;
        }
    };
    let posture = query.posture.map(|posture| format!("&posture={}", posture.name())).unwrap_or_default();
    let next = seen.filter(|_| more).map(|id| format!("{path}?limit={limit}&cursor={id}{posture}"));
    page(entries, next)
}

/// A private agent is shown to whoever knows it, and listed to nobody: its id tells, where its row cannot be read. A
/// public one is named then, too.
fn is_listed(id: &AgentId, row: Option<&ListRow>, posture: Option<PostureKind>) -> bool {
    let Some(row) = row else { return posture.is_none() && !id.has_child_form() };
    row.visibility == Visibility::Public && posture.is_none_or(|posture| posture == row.posture)
}

fn entry(app: &Shared, id: &AgentId, row: Option<&ListRow>, apart: Option<&str>) -> Value {
    let home = String::new();
    let setting = app.setting(&home);
    match row {
        Some(row) => agent::list_entry(id, row, apart, &setting),
        None => agent::unreadable_entry(id, "its list entry cannot be read", &setting),
    }
}

async fn status(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    let (shown, home) = (app.clone(), app.home(&id));
    let mut summary = app.handle.read(&id, move |state| agent::summary(state, &shown.setting(&home))).await?;
    summary["waiting_for_permit"] = json!(app.handle.waits_for_permit(&id));
    Ok(Json(summary))
}

async fn state(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    let (shown, home) = (app.clone(), app.home(&id));
    let mut shown = app.handle.read(&id, move |state| agent::state(state, &shown.setting(&home))).await?;
    shown["agent"]["waiting_for_permit"] = json!(app.handle.waits_for_permit(&id));
    Ok(Json(shown))
}

async fn diagnostics(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    Ok(Json(app.handle.read(&id, diagnostic::diagnostics).await?))
}
