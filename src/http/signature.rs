//! Signatures of webhooks, over the body as it came: Standard Webhooks, and GitHub's `X-Hub-Signature-256`.
//!
//! A Standard Webhooks secret is `whsec_` and base64; GitHub signs with the text of whatever secret it was given. So no
//! secret makes the same signature both ways. GitHub signs neither an id nor a time, so that whoever captured a delivery
//! can send it again under any id: it is known by its signature for as long as receipts are kept.

use crate::decide::RequestKey;
use crate::words::hash::Hash;
use crate::words::limit::{SIGNATURE_AGE_MS_MAX, WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_SECRET_BYTES_MIN};
use crate::words::time::Timestamp;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

/// Why a request does not pass for signed.
type Unsigned = &'static str;

/// Checks that one of the secrets signed the request. Answers the name of the delivery: whatever comes again under that
/// name is answered as the first was.
pub(super) fn check(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[SecretString],
    now: Timestamp,
) -> Result<RequestKey, Unsigned> {
    if headers.contains_key("webhook-signature") {
        standard(headers, body, secrets, now)
    } else if headers.contains_key("x-hub-signature-256") {
        github(headers, body, secrets)
    } else {
        Err("the webhook is not signed")
    }
}

/// What is wrong with a secret.
pub(super) fn unfit(secret: &str) -> Option<&'static str> {
    let bytes = secret.strip_prefix(PREFIX).map_or_else(|| Some(secret.as_bytes().to_vec()), decoded);
    match bytes.map(|bytes| bytes.len()) {
        None => Some("begins with whsec_ and goes on with what is no base64"),
        Some(length) if length < WEBHOOK_SECRET_BYTES_MIN => Some("is too short to be a secret: use 24 bytes or more"),
        Some(length) if length > WEBHOOK_SECRET_BYTES_MAX => Some("is too long: use 128 bytes or fewer"),
        Some(_) => None,
    }
}

fn standard(
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[SecretString],
    now: Timestamp,
) -> Result<RequestKey, Unsigned> {
    let header = |name| text(headers, name).ok_or("webhook-id, webhook-timestamp and webhook-signature go together");
    let (id, seconds, given) = (header("webhook-id")?, header("webhook-timestamp")?, header("webhook-signature")?);
    let given: Vec<Vec<u8>> = given.split(' ').filter_map(|one| decoded(one.strip_prefix("v1,")?)).collect();
    let signed = [id.as_bytes(), b".", seconds.as_bytes(), b".", body];
    let keys = secrets.iter().filter_map(|secret| decoded(secret.expose_secret().strip_prefix(PREFIX)?));
    if !keys.into_iter().any(|key| given.iter().any(|given| signs(&key, &signed, given))) {
        return Err("the signature is not the secret's");
    }
    let sent = seconds.parse::<i64>().map_err(|_| "webhook-timestamp is no number of seconds")?;
    let sent = Timestamp(sent.saturating_mul(1_000));
    if now.since_ms(sent).max(sent.since_ms(now)) > SIGNATURE_AGE_MS_MAX {
        return Err("the webhook was signed more than five minutes from now");
    }
    Ok(named(id))
}

fn github(headers: &HeaderMap, body: &[u8], secrets: &[SecretString]) -> Result<RequestKey, Unsigned> {
    let given = text(headers, "x-hub-signature-256").and_then(|given| Hash::parse(given.strip_prefix("sha256=")?));
    let given = given.ok_or("X-Hub-Signature-256 is sha256= and 64 hexadecimal digits")?;
    if !secrets.iter().any(|secret| signs(secret.expose_secret().as_bytes(), &[body], &given.0)) {
        return Err("the signature is not the secret's");
    }
    Ok(named(&given.to_string()))
}

/// Compares in constant time.
fn signs(key: &[u8], signed: &[&[u8]], given: &[u8]) -> bool {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    signed.iter().fold(mac, Mac::chain_update).verify_slice(given).is_ok()
}

/// The name of a delivery as an idempotency key. No header can hold a line break, so that no caller's own key is the same.
fn named(id: &str) -> RequestKey {
    let fingerprint = Hash::of(id.as_bytes());
    RequestKey { key: format!("webhook\n{fingerprint}"), fingerprint }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that the two schemes publish.
    const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const STANDARD_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const STANDARD_SENT: Timestamp = Timestamp(1_614_265_330_000);
    const GITHUB_SECRET: &str = "It's a Secret to Everybody";
    const GITHUB_SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn standard_with(signature: &str, body: &str, secrets: &[&str], now: Timestamp) -> Result<bool, Unsigned> {
        let headers = headers(&[
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", signature),
        ]);
        let secrets: Vec<SecretString> = secrets.iter().map(|secret| (*secret).into()).collect();
        check(&headers, body.as_bytes(), &secrets, now).map(|_| true)
    }

    #[test]
    fn a_standard_webhook_is_signed_by_one_of_the_secrets_and_in_time() {
        let body = r#"{"test": 2432232314}"#;
        let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        for (signature, secrets) in [
            (STANDARD_SIGNATURE.to_owned(), vec![STANDARD_SECRET]),
            (format!("v1,AAAA v1a,AAAA {STANDARD_SIGNATURE}"), vec![other, STANDARD_SECRET]),
        ] {
            assert_eq!(standard_with(&signature, body, &secrets, STANDARD_SENT), Ok(true));
        }
        let (wrong, own) = (Err("the signature is not the secret's"), &[STANDARD_SECRET]);
        assert_eq!(standard_with(STANDARD_SIGNATURE, body, &[other], STANDARD_SENT), wrong);
        assert_eq!(standard_with(STANDARD_SIGNATURE, body, &[], STANDARD_SENT), wrong);
        assert_eq!(standard_with(STANDARD_SIGNATURE, "{}", own, STANDARD_SENT), wrong);
        assert_eq!(standard_with(&STANDARD_SIGNATURE[3..], body, own, STANDARD_SENT), wrong);
        assert_eq!(standard_with(&STANDARD_SIGNATURE[..30], body, own, STANDARD_SENT), wrong);
        for (away_ms, passes) in [(-300_000, true), (300_000, true), (-301_000, false), (301_000, false)] {
            let now = Timestamp(STANDARD_SENT.0 + away_ms);
            assert_eq!(standard_with(STANDARD_SIGNATURE, body, own, now).is_ok(), passes, "{away_ms}");
        }
    }

    #[test]
    fn a_delivery_of_github_is_signed_with_the_text_of_the_secret() {
        let secrets = [SecretString::from(GITHUB_SECRET)];
        let signed = headers(&[("x-hub-signature-256", GITHUB_SIGNATURE)]);
        let passes = |headers: &HeaderMap, body: &[u8]| check(headers, body, &secrets, Timestamp(0));
        let named = headers(&[("x-hub-signature-256", GITHUB_SIGNATURE), ("x-github-delivery", "72d3162e")]);
        let first = passes(&signed, b"Hello, World!").unwrap();
        assert_eq!(passes(&named, b"Hello, World!"), Ok(first), "another id makes it no other delivery");
        assert!(passes(&signed, b"Hello, World?").is_err());
        for unreadable in [&GITHUB_SIGNATURE[7..], &GITHUB_SIGNATURE[..70], "sha256=", "sha1=00"] {
            assert!(passes(&headers(&[("x-hub-signature-256", unreadable)]), b"Hello, World!").is_err());
        }
        assert_eq!(passes(&HeaderMap::new(), b"Hello, World!"), Err("the webhook is not signed"));
    }

    #[test]
    fn a_secret_has_some_length() {
        for fit in [STANDARD_SECRET, GITHUB_SECRET, "24 bytes are long enough"] {
            assert_eq!(unfit(fit), None, "{fit}");
        }
        for (no_secret, why) in [
            ("", "too short"),
            ("23 bytes are not enough", "too short"),
            ("whsec_c2hvcnQ=", "too short"),
            ("whsec_not base64, though it is long enough", "no base64"),
            (&"x".repeat(129), "too long"),
        ] {
            assert!(unfit(no_secret).is_some_and(|told| told.contains(why)), "{no_secret}");
        }
    }
}
