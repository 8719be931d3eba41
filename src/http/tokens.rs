//! Named tokens: made, listed and revoked. They are folded from the home's own ledger, so each change counts at once.

use super::Shared;
use super::extract::{Control, Nothing, Query, Rid, TrustBody};
use super::reply::Reply;
use crate::decide::Rejection;
use crate::decide::home::HomeCommand;
use crate::events::home::Scope;
use crate::runtime::home::NewToken;
use crate::wire::message::{BodyError, says_trust};
use crate::wire::token;
use crate::words::id::TokenName;
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/control/tokens", get(list).post(create)).route("/control/tokens/{rid}/revoke", post(revoke))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    name: String,
    /// `read`, `operate`, `ingress`, `admin`.
    scopes: Vec<String>,
    /// From now; a token without it does not expire.
    lifetime_ms: Option<u64>,
    trust: Option<String>,
}

says_trust!(CreateBody);

async fn list(State(app): State<Shared>, _: Query<Nothing>) -> Reply {
    let (home, now) = (app.handle.home(), app.handle.now());
    let configured = app.auth.has_control_token().then(token::configured);
    let named = home.tokens.iter().map(|(name, named)| token::named(name, named, now));
    Ok(Json(json!(configured.into_iter().chain(named).collect::<Vec<_>>())))
}

/// The secret is shown here and nowhere else.
async fn create(State(app): State<Shared>, body: Control<CreateBody>) -> Reply {
    let CreateBody { name, scopes, lifetime_ms, .. } = body.value;
    let name: TokenName = name.parse().map_err(|error| invalid("name", &error))?;
    let unknown = |name: &String| format!("knows read, operate, ingress and admin, not {name:?}");
    let scope = |name: &String| Scope::from_name(name).ok_or_else(|| invalid("scopes", &unknown(name)));
    let scopes = scopes.iter().map(scope).collect::<Result<Vec<_>, _>>()?;
    let new = NewToken { name: name.clone(), scopes, lifetime_ms };
    let secret = app.handle.create_token(new, body.by.cause).await?;
    let home = app.handle.home();
    let named = home.tokens.get(&name).ok_or_else(|| unknown_token(&name))?;
    let mut shown = json!(token::named(&name, named, app.handle.now()));
    shown["ok"] = json!(true);
    shown["token"] = json!(secret.expose());
    shown["auth"] = json!({"mode": "bearer", "required": true});
    Ok(Json(shown))
}

async fn revoke(State(app): State<Shared>, Rid(rid): Rid, body: Control<TrustBody>) -> Reply {
    let name: TokenName = rid.parse().map_err(|_| Rejection::Unknown { what: "token", id: rid.clone() })?;
    app.handle.submit_home(HomeCommand::RevokeToken { name: name.clone() }, body.by.cause).await?;
    Ok(Json(json!({"ok": true, "name": name})))
}

fn unknown_token(name: &TokenName) -> Rejection {
    Rejection::Unknown { what: "token", id: name.to_string() }
}

fn invalid(field: &'static str, reason: &dyn std::fmt::Display) -> BodyError {
    BodyError::Invalid { field, reason: reason.to_string() }
}
