//! Agents: listed, summarised, whole.

use super::Shared;
use super::extract::{Agent, Nothing, Query, malformed};
use super::reply::{Failure, Reply};
use crate::wire::agent;
use crate::words::id::AgentId;
use crate::words::limit::{AGENTS_PAGE_DEFAULT, PAGE_MAX};
use axum::extract::State;
use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;

/// Open tasks that a state shows.
const STATE_TASKS_MAX: usize = 40;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents/list", get(list))
        .route("/agents/{id}/status", get(status))
        .route("/agents/{id}/state", get(state))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    limit: Option<usize>,
    /// The last id of the page before.
    cursor: Option<String>,
}

async fn list(State(app): State<Shared>, Query(query): Query<ListQuery>) -> Result<Response, Failure> {
    let limit = query.limit.unwrap_or(AGENTS_PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let cursor = query.cursor.as_deref().map(AgentId::parse).transpose();
    let cursor = cursor.map_err(|error| malformed("invalid_cursor", &error.to_string()))?;
    let rows = app.handle.list(cursor, limit + 1).await?;
    let next = rows.get(limit - 1).filter(|_| rows.len() > limit).map(|(id, ..)| id.clone());
    let entries: Vec<_> = rows
        .iter()
        .take(limit)
        .map(|(id, row, apart)| {
            let root = String::new();
            let setting = app.setting(&root);
            match row {
                Some(row) => agent::list_entry(id, row, apart.as_deref(), &setting),
                None => agent::unreadable_entry(id, "its list entry cannot be read", &setting),
            }
        })
        .collect();
    let mut response = Json(entries).into_response();
    if let Some(next) = next {
        let link = format!("</agents/list?limit={limit}&cursor={next}>; rel=\"next\"");
        let link = link.parse().map_err(|_| malformed("invalid_cursor", "the cursor fits no header"))?;
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

async fn status(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    let (shown, root) = (app.clone(), app.root(&id));
    let summary = app.handle.read(&id, move |state| agent::summary(state, &shown.setting(&root))).await?;
    Ok(Json(summary))
}

async fn state(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    let (shown, root) = (app.clone(), app.root(&id));
    let look = move |state: &crate::fold::AgentState| {
        let tasks = super::records::open_tasks(state, STATE_TASKS_MAX);
        agent::state(state, &shown.setting(&root), tasks)
    };
    Ok(Json(app.handle.read(&id, look).await?))
}
