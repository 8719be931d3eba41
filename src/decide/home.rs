//! What concerns the home and no agent: coming up, going down, settings, tokens.
//!
//! [`handle`] is the home's door, as [`super::handle`] is the agents': it decides, numbers and folds, and nothing
//! reaches the home's ledger that its fold has not accepted.

use super::Rejection;
use crate::events::home::{
    RuntimeBooted, RuntimeShutDown, Scope, SettingValue, SettingsChanged, TokenCreated, TokenRevoked,
};
use crate::events::{Cause, Envelope, Event};
use crate::fold::IllegalEvent;
use crate::fold::home::HomeState;
use crate::words::content::excerpt;
use crate::words::hash::Hash;
use crate::words::id::{Boot, TokenName};
use crate::words::limit::{EXCERPT_BYTES_MAX, SETTINGS_MAX, TOKENS_MAX};
use crate::words::time::Timestamp;

/// A request to decide about the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeCommand {
    Boot {
        boot: Boot,
        release: String,
        settings: Vec<SettingValue>,
    },
    ShutDown {
        reason: String,
    },
    /// A token without a lifetime does not expire.
    CreateToken {
        name: TokenName,
        scopes: Vec<Scope>,
        token_hash: Hash,
        lifetime_ms: Option<u64>,
    },
    RevokeToken {
        name: TokenName,
    },
}

/// Decides a command and folds what it leads to into `state`. The inner error is a refusal: nothing was folded.
pub fn handle(
    state: &mut HomeState,
    command: &HomeCommand,
    cause: &Cause,
    at: Timestamp,
) -> Result<Result<Vec<Envelope>, Rejection>, IllegalEvent> {
    let events = match decide(state, command, at) {
        Ok(events) => events,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let mut envelopes = Vec::with_capacity(events.len());
    for event in events {
        let envelope = Envelope { seq: state.head.next(), at, cause: cause.clone(), event };
        state.evolve(&envelope)?;
        envelopes.push(envelope);
    }
    Ok(Ok(envelopes))
}

/// A refusal, or the events to be recorded.
pub fn decide(state: &HomeState, command: &HomeCommand, at: Timestamp) -> Result<Vec<Event>, Rejection> {
    match command {
        HomeCommand::Boot { boot, release, settings } => Ok(boot_up(state, *boot, release, settings)),
        HomeCommand::ShutDown { .. } if !state.is_up => Err(Rejection::NothingToDo),
        HomeCommand::ShutDown { reason } => Ok(vec![RuntimeShutDown { reason: reason.clone() }.into()]),
        HomeCommand::CreateToken { name, scopes, token_hash, lifetime_ms } => {
            check_token(state, name, scopes, *lifetime_ms)?;
            let (name, token_hash) = (name.clone(), *token_hash);
            let expires_at = lifetime_ms.map(|lifetime_ms| at.after_ms(lifetime_ms));
            Ok(vec![TokenCreated { name, scopes: in_order(scopes), token_hash, expires_at }.into()])
        }
        HomeCommand::RevokeToken { name } if !state.tokens.contains_key(name) => {
            Err(Rejection::Unknown { what: "token", id: name.to_string() })
        }
        HomeCommand::RevokeToken { name } => Ok(vec![TokenRevoked { name: name.clone() }.into()]),
    }
}

/// Settings are recorded as far as they fit, and only where they differ from those before.
fn boot_up(state: &HomeState, boot: Boot, release: &str, settings: &[SettingValue]) -> Vec<Event> {
    let fit = |text: &str| excerpt(text, EXCERPT_BYTES_MAX).to_owned();
    let settings = settings.iter().take(SETTINGS_MAX);
    let settings: Vec<_> =
        settings.map(|setting| SettingValue { name: fit(&setting.name), value: fit(&setting.value) }).collect();
    let mut events = vec![RuntimeBooted { boot, release: release.to_owned() }.into()];
    if settings != state.settings {
        events.push(SettingsChanged { settings }.into());
    }
    events
}

fn check_token(
    state: &HomeState,
    name: &TokenName,
    scopes: &[Scope],
    lifetime_ms: Option<u64>,
) -> Result<(), Rejection> {
    let invalid = |field, reason: &str| Err(Rejection::Invalid { field, reason: reason.into() });
    if *name == TokenName::control() {
        return invalid("name", "control is the token that the server is configured with");
    }
    if scopes.is_empty() {
        return invalid("scopes", "names at least one of read, operate, ingress, admin");
    }
    if lifetime_ms == Some(0) {
        return invalid("lifetime_ms", "is at least 1");
    }
    if state.tokens.contains_key(name) {
        return Err(Rejection::TokenExists { name: name.clone() });
    }
    if state.tokens.len() >= TOKENS_MAX {
        return Err(Rejection::TooMany { what: "tokens", max: TOKENS_MAX });
    }
    Ok(())
}

/// Each scope once.
fn in_order(scopes: &[Scope]) -> Vec<Scope> {
    let all = [Scope::Read, Scope::Operate, Scope::Ingress, Scope::Admin];
    all.into_iter().filter(|scope| scopes.contains(scope)).collect()
}
