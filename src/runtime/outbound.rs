//! How the runtime speaks to other servers over HTTP.

use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

/// A client for this URL's host. A redirect is not followed: it would take keys and tokens along to any other host.
pub(super) fn client(url: &str) -> ClientBuilder {
    let builder =
        ClientBuilder::new().user_agent(concat!("holon/", env!("CARGO_PKG_VERSION"))).redirect(Policy::none());
    if is_here(url) { builder.no_proxy() } else { builder }
}

/// A URL without the user, the password and the query, any of which may be a secret.
pub fn without_credentials(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return without_user(url).to_owned() };
    if parsed.username().is_empty() && parsed.password().is_none() && parsed.query().is_none() {
        return url.to_owned();
    }
    // A URL without a host has neither.
    let _ = parsed.set_username("").and_then(|()| parsed.set_password(None));
    parsed.set_query(None);
    parsed.to_string()
}

/// What cannot be read as a URL may still begin like one.
fn without_user(text: &str) -> &str {
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// Whether the host is this machine. A proxy of the environment is for the world outside.
pub(super) fn is_here(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    url.host_str().is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}
