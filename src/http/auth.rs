//! Who may ask (control-plane seed, Authentication; wire, Servers).
//!
//! In bearer mode every request over TCP shows a token: the configured one, which may do everything, or a named one of
//! the home, which may do what its scopes say. A home is in bearer mode when a token is configured, and from its first
//! named token on. Without tokens the server trusts the machine's own users; what these did not mean to send is refused
//! by [`super::origin`]. The unix socket is guarded by its file mode; whoever shows a token there is taken at its word.

use super::Shared;
use super::network::Network;
use super::openapi::{Access, access};
use super::origin;
use super::peer::{Peer, Standing};
use super::reply::Failure;
use crate::events::Actor;
use crate::events::actor::{ActorPeer, ControlSurface};
use crate::events::home::Scope;
use crate::fold::home::Token;
use crate::words::hash::Hash;
use crate::words::id::TokenName;
use crate::words::limit::AUTH_FAILURES_PER_MINUTE_MAX;
use crate::words::time::Timestamp;
use axum::Extension;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Peers whose failures are counted at once; beyond that one is forgotten for each that is new.
const PEERS_MAX: usize = 4_096;
const WINDOW_MS: u64 = 60_000;

/// The server's way to know its callers.
pub struct Auth {
    /// The digest of the control token. Digests compare in constant time, and hide the token.
    token: Option<Hash>,
    failures: Mutex<BTreeMap<Network, Failures>>,
    counts: FailureCounts,
}

/// The failures of one peer in the window that began with the first of them.
#[derive(Clone, Copy)]
struct Failures {
    since: Timestamp,
    count: u32,
}

/// All failures since the start.
#[derive(Default)]
pub(super) struct FailureCounts {
    pub failed: AtomicU64,
    /// Those that were answered 429.
    pub refused: AtomicU64,
}

impl Auth {
    pub fn new(token: Option<&str>) -> Self {
        Self {
            token: token.map(|token| Hash::of(token.as_bytes())),
            failures: Mutex::default(),
            counts: FailureCounts::default(),
        }
    }

    /// Whether a token is configured.
    pub fn has_control_token(&self) -> bool {
        self.token.is_some()
    }

    fn is_control(&self, presented: Hash) -> bool {
        self.token.is_some_and(|token| is_same(token, presented))
    }

    pub(super) fn counts(&self) -> &FailureCounts {
        &self.counts
    }

    /// Counts a failure. Answers for how many seconds the peer is held off, once it has failed too often.
    ///
    /// The token is compared before this is asked, so that a guess costs the same whether or not its answer is 429. With
    /// tokens of 16 bytes or more no rate of guesses finds one, and nobody who fails on purpose from the operator's
    /// address, or through the same proxy, can hold the operator off.
    fn fail(&self, peer: Network, now: Timestamp) -> Option<u64> {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let Failures { since, count } = self.count_failure(peer, now);
        if count == 1 {
            tracing::warn!(%peer, "a request came with a wrong token or signature, or without one");
        }
        let is_refused = count > AUTH_FAILURES_PER_MINUTE_MAX;
        self.counts.refused.fetch_add(u64::from(is_refused), Ordering::Relaxed);
        is_refused.then(|| (WINDOW_MS - now.since_ms(since)).div_ceil(1_000))
    }

    fn count_failure(&self, peer: Network, now: Timestamp) -> Failures {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= PEERS_MAX && !failures.contains_key(&peer) {
            failures.retain(|_, failures| now.since_ms(failures.since) < WINDOW_MS);
            if failures.len() >= PEERS_MAX {
                failures.pop_first();
            }
        }
        let entry = failures.entry(peer).or_insert(Failures { since: now, count: 0 });
        if now.since_ms(entry.since) >= WINDOW_MS {
            *entry = Failures { since: now, count: 0 };
        }
        entry.count = entry.count.saturating_add(1);
        *entry
    }
}

/// Whoever sent a request, as [`check`] found it before any route was asked.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) actor: Actor,
    right: Right,
}

/// By what right a caller is served.
#[derive(Clone, Debug)]
enum Right {
    /// By none: what asks for nothing is open to it.
    Nobody,
    /// By the way it came: over the socket, or in local mode.
    Local,
    /// By the configured token.
    Control,
    /// By a named token of the home.
    Named { name: TokenName, token_hash: Hash, scopes: Vec<Scope> },
}

impl Right {
    fn of(app: &Shared, peer: &Peer, headers: &HeaderMap) -> Self {
        let by_token = presented(headers).and_then(|token_hash| {
            if app.auth.is_control(token_hash) { Some(Self::Control) } else { Self::named(app, token_hash) }
        });
        let otherwise = if peer.is_tcp() && app.requires_token() { Self::Nobody } else { Self::Local };
        by_token.unwrap_or(otherwise)
    }

    /// Every token is compared to its end, so that the time it takes tells nothing.
    fn named(app: &Shared, token_hash: Hash) -> Option<Self> {
        let (home, now) = (app.handle.home(), app.handle.now());
        let compare = |found, (name, token): (_, &Token)| {
            if is_same(token.token_hash, token_hash) { Some((name, token.clone())) } else { found }
        };
        let matching = home.tokens.iter().fold(None, compare);
        let (name, token) = matching.filter(|(_, token)| !token.is_expired(now))?;
        Some(Self::Named { name: TokenName::clone(name), token_hash, scopes: token.scopes })
    }

    fn token(&self) -> Option<TokenName> {
        match self {
            Self::Nobody | Self::Local => None,
            Self::Control => Some(TokenName::control()),
            Self::Named { name, .. } => Some(name.clone()),
        }
    }
}

impl Caller {
    /// Whoever sent the request that these belong to.
    pub(super) fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().expect("every request passes the check of who sends it")
    }

    pub(super) fn may(&self, needed: Scope) -> bool {
        match &self.right {
            Right::Nobody => false,
            Right::Local | Right::Control => true,
            Right::Named { scopes, .. } => scopes.iter().any(|scope| scope.includes(needed)),
        }
    }

    /// Refuses what needs a scope that the caller's token does not have.
    pub(super) fn needs(&self, scope: Scope) -> Result<(), Failure> {
        if self.may(scope) {
            return Ok(());
        }
        let detail = format!("the token does not have the scope {scope}");
        let failure = Failure::new(StatusCode::FORBIDDEN, "insufficient_scope", detail);
        Err(failure.hint("use a token with that scope: holon token list names the tokens and their scopes"))
    }

    /// Whether it showed a token that is known.
    pub(super) fn has_token(&self) -> bool {
        matches!(self.right, Right::Control | Right::Named { .. })
    }

    /// Whether the right by which it was served is still one: a token may have been revoked since, or have expired.
    pub(super) fn is_still_admitted(&self, app: &Shared) -> bool {
        match &self.right {
            Right::Nobody | Right::Control => true,
            Right::Local => self.actor.surface != ControlSurface::Http || !app.requires_token(),
            Right::Named { token_hash, .. } => Right::named(app, *token_hash).is_some(),
        }
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &Shared) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.extensions))
    }
}

/// The digest of the token that a request shows.
fn presented(headers: &HeaderMap) -> Option<Hash> {
    let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes)?;
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| Hash::of(token))
}

/// Digests have one length and are compared to their end: nothing can be learnt of a token from how long it takes.
fn is_same(one: Hash, other: Hash) -> bool {
    blake3::Hash::from(one.0) == blake3::Hash::from(other.0)
}

/// Refuses whoever may not ask, before anything is looked up.
pub(super) async fn check(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(standing): Extension<Standing>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    standing.check(&app)?;
    let right = Right::of(&app, &peer, request.headers());
    let recorded = match standing {
        Standing::AgentProcess(agent) => ActorPeer::AgentProcess(agent),
        Standing::Admitted | Standing::OtherUser(_) | Standing::Undetermined => peer.recorded(),
    };
    let actor = Actor { token: right.token(), surface: peer.surface(), peer: recorded, provided_trust: None };
    let caller = Caller { actor, right };
    let template = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    match access(request.method(), template, request.uri().path()) {
        Access::Open => {}
        _ if matches!(caller.right, Right::Nobody) => return Err(refuse(&app, &peer)),
        Access::Scope(scope) => caller.needs(scope)?,
        Access::Anyone => {}
    }
    origin::check(&app, &peer, &request)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn refuse(app: &Shared, peer: &Peer) -> Failure {
    held_off(app, peer).unwrap_or_else(|| {
        Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", "the token is missing or wrong")
            .hint("send Authorization: Bearer TOKEN; holon reads HOLON_CONTROL_TOKEN or --token-file")
    })
}

/// Counts a failure of the peer's; what it is told once it has had too many.
pub(super) fn held_off(app: &Shared, peer: &Peer) -> Option<Failure> {
    let seconds = app.auth.fail(peer.network()?, app.handle.now())?;
    let detail = "too many requests without the right token or signature";
    let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", detail);
    let hint = format!("wait {seconds} seconds, and send the right one");
    Some(Failure(failure.0.with("retry_after", seconds)).hint(&hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_too_often_is_held_off_for_a_while() {
        let auth = Auth::new(Some("secret"));
        let peer = Network::of([127, 0, 0, 1].into());
        for _ in 0..AUTH_FAILURES_PER_MINUTE_MAX {
            assert_eq!(auth.fail(peer, Timestamp(0)), None);
        }
        assert_eq!(auth.fail(peer, Timestamp(1)), Some(60));
        assert_eq!(auth.fail(peer, Timestamp(58_500)), Some(2));
        assert_eq!(auth.fail(peer, Timestamp(60_000)), None, "the window has passed");
    }
}
