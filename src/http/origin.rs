//! Whom a request was really made for (wire, Servers): a browser sends what a hostile page wants, and a proxy passes on
//! what a stranger wants, with the address and the rights of somebody else.
//!
//! | request | refused when |
//! |---|---|
//! | over TCP without a token | Host is not loopback; a page of another site sent it; a proxy passed it on |
//! | over TCP | Origin is not the origin that the request was sent to |
//! | one that alters, from a browser | it is not same-origin, or has neither a JSON content type nor our header |
//! | over the socket | a proxy passed it on |
//!
//! Webhooks and callbacks take no cookie and no ambient right, so with a token any page may send them.

use super::App;
use super::extract::{is_json, media_type};
use super::peer::Peer;
use super::reply::Failure;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, uri};
use std::net::{IpAddr, Ipv6Addr};

/// A header that no page can send to another origin without being allowed to.
const OUR_HEADER: HeaderName = HeaderName::from_static("holon-request");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what its sender had no right to have sent.
pub(super) fn check(app: &App, peer: &Peer, request: &Request) -> Result<(), Failure> {
    let headers = request.headers();
    let is_local = !app.requires_token();
    let is_socket = !peer.is_tcp();
    if is_local || is_socket {
        check_not_forwarded(headers)?;
    }
    if is_socket {
        return Ok(());
    }
    let path = request.uri().path();
    if is_local {
        check_host(request)?;
        check_site(request)?;
    }
    if is_local || !is_open(path) {
        check_origin(app, request)?;
    }
    if alters(request.method()) && !is_open(path) { check_browser(headers) } else { Ok(()) }
}

/// Routes that tell nothing of agents.
fn is_discovery(path: &str) -> bool {
    matches!(path, "/" | "/handshake" | "/healthz" | "/readyz")
}

/// Those, and the ways in for callers who have no token: what they need instead is theirs.
fn is_open(path: &str) -> bool {
    is_discovery(path) || path.starts_with("/callbacks/") || path.starts_with("/webhooks/")
}

fn alters(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

/// Without a token, whoever connects is the operator; a proxy would lend that to everybody.
fn check_not_forwarded(headers: &HeaderMap) -> Result<(), Failure> {
    let is_proxys = |name: &HeaderName| {
        matches!(name.as_str(), "forwarded" | "via" | "x-real-ip") || name.as_str().starts_with("x-forwarded-")
    };
    let Some(name) = headers.keys().find(|name| is_proxys(name)) else { return Ok(()) };
    let detail = format!("a proxy passed the request on ({name}), and no token guards this way in");
    Err(Failure::new(StatusCode::FORBIDDEN, "forwarded_request", detail)
        .hint("set a control token, and let the proxy connect over TCP: holon help security"))
}

/// A name that resolves to this machine today may have been another's when the page was loaded.
fn check_host(request: &Request) -> Result<(), Failure> {
    let named = request.uri().authority().map(uri::Authority::as_str);
    let host = text(request.headers(), &HOST)?;
    if named.into_iter().chain(host).all(|host| Authority::parse(host).is_some_and(|host| host.is_loopback())) {
        return Ok(());
    }
    Err(Failure::new(StatusCode::FORBIDDEN, "foreign_host", "the Host is not this machine's own"))
}

/// Browsers send no Origin with most GETs, but they say where the page is from.
fn check_site(request: &Request) -> Result<(), Failure> {
    let site = text(request.headers(), &FETCH_SITE)?;
    let is_harmless = !alters(request.method()) && is_discovery(request.uri().path());
    if is_harmless || matches!(site, None | Some("same-origin" | "none")) { Ok(()) } else { Err(foreign_origin()) }
}

fn check_origin(app: &App, request: &Request) -> Result<(), Failure> {
    let Some(origin) = text(request.headers(), &ORIGIN)? else { return Ok(()) };
    let named = request.uri().authority().map(uri::Authority::as_str);
    let host = named.or(text(request.headers(), &HOST)?).unwrap_or_default();
    let is_own = if app.requires_token() {
        // A proxy that speaks TLS may have passed the Host on as it came, or not.
        let public = app.place.public_base_url.as_deref().and_then(Origin::of_url);
        Origin::parse(origin).is_some_and(|origin| {
            Some(&origin) == public.as_ref() || Some(&origin) == Origin::new(origin.scheme, host).as_ref()
        })
    } else {
        let own = Origin::new(Scheme::Http, host);
        own.is_some() && Origin::parse(origin) == own
    };
    if is_own { Ok(()) } else { Err(foreign_origin()) }
}

/// A form of another page can be posted, and so can a request without a body; neither can have these headers.
fn check_browser(headers: &HeaderMap) -> Result<(), Failure> {
    let is_browsers =
        headers.contains_key(ORIGIN) || headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"));
    if !is_browsers {
        return Ok(());
    }
    if !matches!(text(headers, &FETCH_SITE)?, None | Some("same-origin")) {
        return Err(foreign_origin());
    }
    if headers.contains_key(OUR_HEADER) || media_type(headers).is_some_and(|kind| is_json(&kind)) {
        return Ok(());
    }
    let detail = "what a browser sends must be JSON, or have the header Holon-Request";
    Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
        .hint("send Content-Type: application/json, or Holon-Request: 1"))
}

/// The one value of a header; a second one might be meant for another reader.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else { return Ok(None) };
    match (value.to_str(), second) {
        (Ok(value), None) => Ok(Some(value)),
        _ if *name == HOST => Err(Failure::new(StatusCode::FORBIDDEN, "foreign_host", "there is more than one Host")),
        _ => Err(foreign_origin()),
    }
}

fn foreign_origin() -> Failure {
    let detail = "a page of another origin sent the request";
    Failure::new(StatusCode::FORBIDDEN, "foreign_origin", detail)
        .hint("behind a proxy, set public_base_url in config.toml to the address that browsers see")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// What a browser takes for one site's own: RFC 6454.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    scheme: Scheme,
    name: Name,
    port: u16,
}

impl Origin {
    fn new(scheme: Scheme, authority: &str) -> Option<Self> {
        let Authority { name, port } = Authority::parse(authority)?;
        let default = match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        Some(Self { scheme, name, port: port.unwrap_or(default) })
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once("://")? {
            ("http", authority) => Self::new(Scheme::Http, authority),
            ("https", authority) => Self::new(Scheme::Https, authority),
            _ => None,
        }
    }

    fn of_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split('/').next()?;
        Self::parse(&format!("{scheme}://{authority}"))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Name {
    Address(IpAddr),
    /// In lower case.
    Domain(String),
}

/// `name` or `name:port`, and nothing besides: what cannot be read whole is nobody's.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    name: Name,
    port: Option<u16>,
}

impl Authority {
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                (Name::Address(address.parse::<Ipv6Addr>().ok()?.into()), rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                (Name::parse(name)?, rest)
            }
        };
        let port = if rest.is_empty() { None } else { Some(port(rest.strip_prefix(':')?)?) };
        Some(Self { name, port })
    }

    fn is_loopback(&self) -> bool {
        match &self.name {
            Name::Address(address) => address.is_loopback(),
            Name::Domain(name) => name == "localhost",
        }
    }
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let fits = !text.is_empty() && text.bytes().all(is_plain);
        fits.then(|| Self::Domain(text.to_ascii_lowercase()))
    }
}

/// Digits alone: the parser of numbers would take a sign as well.
fn port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machines_names_are_its_own() {
        let is_loopback = |host: &str| Authority::parse(host).is_some_and(|host| host.is_loopback());
        for own in ["localhost", "LOCALHOST:7878", "127.0.0.1:1", "127.8.8.8", "[::1]:7878", "[::1]"] {
            assert!(is_loopback(own), "{own}");
        }
        for foreign in ["evil.example", "127.0.0.1.evil.example:7878", "10.0.0.1", "[::2]:1", "", "?", "[::1]evil"] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }

    #[test]
    fn an_origin_is_scheme_name_and_port_with_their_defaults() {
        assert_eq!(Origin::parse("http://LocalHost"), Origin::new(Scheme::Http, "localhost:80"));
        assert_eq!(Origin::parse("https://a.example"), Origin::of_url("https://a.example:443/base"));
        assert_ne!(Origin::parse("http://a.example"), Origin::parse("https://a.example"));
        for none in ["null", "file://", "http://", "ftp://a.example", "http://a.example/", "http://a@b", "HTTP://a"] {
            assert_eq!(Origin::parse(none), None, "{none}");
        }
    }
}
