//! How the runtime speaks to other servers over HTTP.

use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

/// A client for this URL's host. A redirect is not followed: it would take keys and tokens along to any other host.
pub(super) fn client(url: &str) -> ClientBuilder {
    let builder =
        ClientBuilder::new().user_agent(concat!("holon/", env!("CARGO_PKG_VERSION"))).redirect(Policy::none());
    if is_here(url) { builder.no_proxy() } else { builder }
}

/// Whether the host is this machine. A proxy of the environment is for the world outside.
pub(super) fn is_here(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    url.host_str().is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}
