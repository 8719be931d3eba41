//! `holon token …`: named tokens of a home.

use super::{Globals, Outcome, print};
use crate::events::home::Scope;
use crate::words::id::TokenName;
use clap::Subcommand;
use jiff::{Span, SpanRelativeTo, Unit};
use serde_json::{Value, json};

#[derive(Subcommand)]
pub(super) enum TokenVerb {
    /// Make a token. It is shown this once; from then on every request over TCP needs one.
    Create {
        /// By which records name whoever holds it: letters, digits, dots, - and _.
        #[arg(value_parser = name)]
        name: TokenName,
        /// What it may be used for; can be given more than once.
        #[arg(long, required = true, value_name = "SCOPE", value_parser = Scope::NAMES.to_vec())]
        scope: Vec<String>,
        /// How long it may be used, such as 30d or 12h; until it is revoked when not given.
        #[arg(long, value_name = "DURATION", value_parser = lifetime_ms)]
        expires: Option<u64>,
    },
    /// The tokens that there are. Their secrets are not shown.
    List,
    /// Revoke a token; it opens nothing from then on, and its streams end.
    Revoke {
        /// The token's name.
        #[arg(value_parser = name)]
        name: TokenName,
    },
}

pub(super) async fn dispatch(globals: &Globals, verb: &TokenVerb) -> Outcome {
    match verb {
        TokenVerb::Create { name, scope, expires } => create(globals, name, scope, *expires).await,
        TokenVerb::List => list(globals).await,
        TokenVerb::Revoke { name } => {
            let path = format!("/control/tokens/{name}/revoke");
            let answer = globals.client()?.post(&path, &json!({})).await?;
            print::done(globals.json, &answer, &format!("revoked token {name}"))
        }
    }
}

async fn create(globals: &Globals, name: &TokenName, scopes: &[String], lifetime_ms: Option<u64>) -> Outcome {
    let client = globals.client()?;
    let asked_before = client.get("/handshake").await?["auth"]["required"] == true;
    let body = json!({"name": name, "scopes": scopes, "lifetime_ms": lifetime_ms});
    let made = client.post("/control/tokens", &body).await?;
    print::note(&format!("created token {name}; it is shown this once"));
    if !asked_before {
        print::note("every request over TCP needs a token from now on; the socket in the home needs none");
    }
    print::done(globals.json, &made, &print::text(&made["token"]))
}

async fn list(globals: &Globals) -> Outcome {
    let tokens = globals.client()?.get("/control/tokens").await?;
    let row = |token: &Value| {
        let scopes: Vec<String> =
            token["scopes"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(print::text).collect();
        vec![
            print::text(&token["name"]),
            scopes.join(", "),
            print::text(&token["status"]),
            print::text(&token["created_at"]),
            print::text(&token["expires_at"]),
        ]
    };
    let tokens = tokens.as_array().cloned().unwrap_or_default();
    print::list(globals.json, tokens, &["TOKEN", "SCOPES", "STATUS", "CREATED", "EXPIRES"], row)
}

fn name(text: &str) -> Result<TokenName, String> {
    text.parse().map_err(|error| format!("a token's name {error}"))
}

/// A day has 24 hours here, whatever the clocks do.
fn lifetime_ms(text: &str) -> Result<u64, String> {
    let span: Span = text.parse().map_err(|_| "is a duration such as 30d, 12h or 15m".to_owned())?;
    let relative = SpanRelativeTo::days_are_24_hours();
    let ms = span.total((Unit::Millisecond, relative)).map_err(|_| "cannot be told in days and hours".to_owned())?;
    if ms < 1.0 {
        return Err("is longer than nothing".into());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a span is bounded, and it is positive"
    )]
    let lifetime_ms = ms as u64;
    Ok(lifetime_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_told_in_days_hours_and_minutes() {
        assert_eq!(lifetime_ms("30d"), Ok(2_592_000_000));
        assert_eq!(lifetime_ms("1h 30m"), Ok(5_400_000));
        for bad in ["", "soon", "0s", "-1h", "1month"] {
            assert!(lifetime_ms(bad).is_err(), "{bad}");
        }
    }
}
