//! Named tokens as clients see them. What is kept of their secrets is not among it.

use crate::events::home::Scope;
use crate::fold::home::Token;
use crate::words::id::TokenName;
use crate::words::time::Timestamp;
use serde::Serialize;

/// A token, without its secret.
#[derive(Serialize)]
pub struct TokenView {
    name: TokenName,
    scopes: Vec<Scope>,
    /// None for the token that the server is configured with.
    created_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    status: TokenStatus,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum TokenStatus {
    Valid,
    Expired,
    /// By the server's configuration; it is not revoked here.
    Configured,
}

pub fn named(name: &TokenName, token: &Token, now: Timestamp) -> TokenView {
    let status = if token.is_expired(now) { TokenStatus::Expired } else { TokenStatus::Valid };
    TokenView {
        name: name.clone(),
        scopes: token.scopes.clone(),
        created_at: Some(token.created_at),
        expires_at: token.expires_at,
        status,
    }
}

/// The token that the server is configured with.
pub fn configured() -> TokenView {
    let (name, scopes) = (TokenName::control(), vec![Scope::Admin]);
    TokenView { name, scopes, created_at: None, expires_at: None, status: TokenStatus::Configured }
}
