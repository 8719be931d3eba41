//! Who may ask (control-plane seed, Authentication; wire, Servers).
//!
//! A configured token means bearer mode on every TCP listener. Without one the server trusts the machine's own users,
//! and refuses what a browser was tricked into sending. The unix socket is guarded by its file mode.

use super::Shared;
use super::reply::Failure;
use super::serve::Peer;
use crate::words::hash::Hash;
use crate::words::limit::AUTH_FAILURES_PER_MINUTE_MAX;
use crate::words::time::Timestamp;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Peers whose failures are counted at once; beyond that one is forgotten for each that is new.
const PEERS_MAX: usize = 4_096;
const WINDOW_MS: u64 = 60_000;

/// The server's way to know its callers.
pub struct Auth {
    /// The digest of the control token. Digests compare in constant time, and hide the token.
    token: Option<Hash>,
    failures: Mutex<BTreeMap<IpAddr, Failures>>,
}

#[derive(Clone, Copy)]
struct Failures {
    since: Timestamp,
    count: u32,
}

impl Auth {
    pub fn new(token: Option<&str>) -> Self {
        Self { token: token.map(|token| Hash::of(token.as_bytes())), failures: Mutex::default() }
    }

    pub fn requires_token(&self) -> bool {
        self.token.is_some()
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = self.token else { return true };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|value| value.split_at_checked(7));
        let scheme_fits = |scheme: &[u8]| scheme.eq_ignore_ascii_case(b"bearer ");
        given.is_some_and(|(scheme, given)| {
            // Both digests have the same length and are compared to their end.
            scheme_fits(scheme) && blake3::Hash::from(Hash::of(given).0) == blake3::Hash::from(token.0)
        })
    }

    /// Counts a failure; when the peer has had too many, answers for how many seconds it is held off.
    fn held_off(&self, peer: IpAddr, now: Timestamp) -> Option<u64> {
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
        let left_ms = WINDOW_MS - now.since_ms(entry.since);
        (entry.count > AUTH_FAILURES_PER_MINUTE_MAX).then(|| left_ms.div_ceil(1_000))
    }
}

/// Routes that tell nothing of agents, and the ways in for those who have no token: what they need instead is theirs.
pub(super) fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/handshake" | "/healthz" | "/readyz")
        || path.starts_with("/callbacks/")
        || path.starts_with("/webhooks/")
}

/// Refuses whoever may not ask, before anything is looked up.
pub(super) async fn check(
    State(app): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    if matches!(peer, Peer::Tcp(_)) {
        if app.auth.requires_token() {
            if !is_open(request.uri().path()) && !app.auth.admits(request.headers()) {
                return Err(refuse(&app, peer));
            }
        } else {
            refuse_foreign(request.headers(), request.uri())?;
        }
    }
    Ok(next.run(request).await)
}

fn refuse(app: &Shared, peer: Peer) -> Failure {
    held_off(app, peer).unwrap_or_else(|| {
        Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", "the control token is missing or wrong")
            .hint("send Authorization: Bearer TOKEN; holon reads HOLON_CONTROL_TOKEN or --token-file")
    })
}

/// Counts a failure of the peer's; what it is told once it has had too many.
pub(super) fn held_off(app: &Shared, peer: Peer) -> Option<Failure> {
    let Peer::Tcp(address) = peer else { return None };
    let seconds = app.auth.held_off(address.ip(), app.handle.now())?;
    let detail = "too many requests without the right token or signature";
    let failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", detail);
    let hint = format!("wait {seconds} seconds, and send the right one");
    Some(Failure(failure.0.with("retry_after", seconds)).hint(&hint))
}

/// A page in a browser must not reach an unguarded server: by another name for this host, or from another origin.
fn refuse_foreign(headers: &HeaderMap, uri: &Uri) -> Result<(), Failure> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).map(str::to_owned).or_else(|| uri.authority().map(ToString::to_string));
    if host.is_some_and(|host| !is_loopback(&host)) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "foreign_host", "the Host is not this machine's own"));
    }
    let origin = text(ORIGIN).and_then(|origin| origin.split_once("://").map(|(_, host)| host).or(Some("?")));
    if origin.is_some_and(|host| !is_loopback(host)) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "foreign_origin", "the Origin is not this machine's own"));
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_names_are_its_own() {
        for own in ["localhost", "LOCALHOST:7878", "127.0.0.1:1", "127.8.8.8", "[::1]:7878", "[::1]"] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in ["evil.example", "127.0.0.1.evil.example:7878", "10.0.0.1", "[::2]:1", "", "?"] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_peer_that_fails_too_often_is_held_off_for_a_while() {
        let auth = Auth::new(Some("secret"));
        let peer = IpAddr::from([127, 0, 0, 1]);
        for _ in 0..AUTH_FAILURES_PER_MINUTE_MAX {
            assert_eq!(auth.held_off(peer, Timestamp(0)), None);
        }
        assert_eq!(auth.held_off(peer, Timestamp(1)), Some(60));
        assert_eq!(auth.held_off(peer, Timestamp(58_500)), Some(2));
        assert_eq!(auth.held_off(peer, Timestamp(60_000)), None, "the window has passed");
    }
}
