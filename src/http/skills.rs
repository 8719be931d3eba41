//! Skills: which an agent has, and giving it one or taking one away.

use super::Shared;
use super::extract::{Agent, Control, Nothing, Public, Query, malformed};
use super::reply::{Failure, Reply};
use crate::decide::Rejection;
use crate::events::workspace::SkillMode;
use crate::fold::AgentState;
use crate::runtime::skill::{Installed, NewSkill};
use crate::wire::message::says_trust;
use crate::words::id::SkillName;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/agents/{id}/skills", get(list))
        .route("/control/agents/{id}/skills/install", post(install))
        .route("/control/agents/{id}/skills/uninstall", post(uninstall))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InstallBody {
    kind: Kind,
    trust: Option<String>,
}

/// Where the skill is to come from.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Kind {
    Builtin {
        name: String,
    },
    Named {
        name: String,
        mode: Option<Mode>,
    },
    Local {
        path: String,
        mode: Option<Mode>,
    },
    #[expect(dead_code, reason = "what is asked for is understood, and nobody is there to fetch it")]
    Remote {
        package: String,
        skill: Option<String>,
        mode: Option<Mode>,
    },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Linked,
    Copied,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UninstallBody {
    name: String,
    trust: Option<String>,
}

says_trust!(InstallBody, UninstallBody);

async fn list(State(app): State<Shared>, Agent(id): Agent, _: Query<Nothing>) -> Reply {
    let skills: Vec<Value> = app.handle.skills(&id).await?.iter().map(shown).collect();
    Ok(Json(json!({"ok": true, "agent_id": id, "skills": skills})))
}

fn shown(installed: &Installed) -> Value {
    let Installed { name, skill, folder, link_target, description } = installed;
    let mut shown = json!({
        "skill_id": format!("agent:{name}"),
        "name": name,
        "path": folder,
        "scope": "agent",
        "source": skill.source.name(),
        "install_mode": skill.mode.name(),
    });
    match description {
        Ok(description) => shown["description"] = json!(description),
        Err(reason) => shown["warning"] = json!(format!("the skill {reason}; uninstall it, and install it again")),
    }
    if let Some(target) = link_target {
        shown["link_target"] = json!(target);
    }
    shown
}

async fn install(State(app): State<Shared>, Public(id): Public, body: Control<InstallBody>) -> Reply {
    let new = match body.value.kind {
        Kind::Builtin { name } => NewSkill::Builtin { name: named("kind.name", &name)? },
        Kind::Named { name, mode } => NewSkill::Named { name: named("kind.name", &name)?, mode: chosen(mode) },
        Kind::Local { path, mode } => local(&app, &path, chosen(mode)).await?,
        Kind::Remote { .. } => {
            // Whose agent is not there hears of that first.
            app.handle.read(&id, |_: &AgentState| ()).await?;
            return Err(no_manager());
        }
    };
    let name = new.name().clone();
    let installed = app.handle.install_skill(&id, new, body.by).await;
    installed.map_err(|error| match Failure::from(error) {
        Failure(problem) if problem.code == "skill_already_installed" => {
            Failure(problem.with("destination", app.handle.skill_folder(&id, &name).display().to_string()))
        }
        failure => failure,
    })?;
    Ok(Json(json!({"ok": true, "agent_id": id, "skill_name": name})))
}

async fn local(app: &Shared, path: &str, mode: SkillMode) -> Result<NewSkill, Failure> {
    let unfit = |reason: String| malformed("invalid_path", &reason).hint("name the skill's folder by its whole path");
    let folder = app.handle.folder(path).await?.map_err(unfit)?;
    let last = Path::new(&folder).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(NewSkill::Local { name: named("kind.path", last)?, folder: folder.into(), mode })
}

async fn uninstall(State(app): State<Shared>, Public(id): Public, body: Control<UninstallBody>) -> Reply {
    let name = named("name", &body.value.name)?;
    app.handle.uninstall_skill(&id, name.clone(), body.by).await?;
    Ok(Json(json!({"ok": true, "agent_id": id, "skill_name": name})))
}

fn named(field: &'static str, name: &str) -> Result<SkillName, Rejection> {
    name.parse().map_err(|_| Rejection::Invalid {
        field,
        reason: format!("names no skill: {name:?} is not of ASCII letters, digits, '-' and '_' alone, 64 at most"),
    })
}

fn chosen(mode: Option<Mode>) -> SkillMode {
    match mode {
        Some(Mode::Copied) => SkillMode::Copied,
        Some(Mode::Linked) | None => SkillMode::Linked,
    }
}

/// Nothing is at fault with the request, and nothing here could ever fetch it: no 4xx of the body, and no 503 either.
fn no_manager() -> Failure {
    let detail = "no source of skills from elsewhere is configured";
    let failure = Failure::new(StatusCode::FAILED_DEPENDENCY, "skill_manager_unavailable", detail);
    Failure(failure.0.with("manager", Value::Null)).hint("fetch it yourself, and install its folder: kind local")
}
