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
    match Url::parse(url) {
        Ok(parsed) if !parsed.has_host() => what_follows_user(url).to_owned(),
        Err(_) => what_follows_user(url).to_owned(),
        Ok(parsed) if parsed.username().is_empty() && parsed.password().is_none() && parsed.query().is_none() => {
            url.to_owned()
        }
        Ok(mut parsed) => {
            // Both are refused to URLs without a host alone.
            let _ = parsed.set_username("").and_then(|()| parsed.set_password(None));
            parsed.set_query(None);
            parsed.to_string()
        }
    }
}

/// What is no URL may still be meant as one.
fn what_follows_user(text: &str) -> &str {
    let text = text.split('?').next().unwrap_or_default();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// Whether the host is this machine. A proxy of the environment is for the world outside.
pub(super) fn is_here(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    url.host_str().is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_what_may_be_secret() {
        let cases = [
            ("http://host:1/v1", "http://host:1/v1"),
            ("https://host/ai/@name", "https://host/ai/@name"),
            ("http://user:geheim@host/v1", "http://host/v1"),
            ("http://geheim@host", "http://host/"),
            ("http://host/v1?key=geheim", "http://host/v1"),
            ("user:geheim@host/v1", "host/v1"),
            ("http://user:geheim@[v1?key=geheim", "[v1"),
            ("not a url", "not a url"),
        ];
        for (url, shown) in cases {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
