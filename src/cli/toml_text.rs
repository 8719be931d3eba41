//! Reading TOML that may hold secrets: a fault is told by its place and its key, and never by the text that stands there.

use serde::de::DeserializeOwned;
use std::ops::Range;

/// Reads a value from a document.
///
/// # Errors
/// Says where the fault is and what was expected there.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    // The parser's own words are fixed: they hold nothing of the text.
    let document = toml::Deserializer::parse(text).map_err(|error| at(text, error.span(), "", error.message()))?;
    serde_path_to_error::deserialize(document).map_err(|error| {
        let key = error.path().to_string();
        at(text, error.inner().span(), &key, without_value(error.inner().message()))
    })
}

fn at(text: &str, span: Option<Range<usize>>, key: &str, reason: &str) -> String {
    let before = span.map(|span| &text.as_bytes()[..span.start.min(text.len())]);
    let place = before.map(|before| {
        let lines: Vec<&[u8]> = before.split(|byte| *byte == b'\n').collect();
        format!("line {}, column {}", lines.len(), lines.last().map_or(0, |line| line.len()) + 1)
    });
    // A dot alone names the document.
    let key = Some(key).filter(|key| !matches!(*key, "" | ".")).map(str::to_owned);
    place.into_iter().chain(key).chain([reason.to_owned()]).collect::<Vec<_>>().join(": ")
}

/// What a reader expected, without the value that it found. Only the names of fields are repeated.
fn without_value(message: &str) -> &str {
    let names_fields = ["unknown field ", "missing field ", "duplicate field "];
    if names_fields.iter().any(|begin| message.starts_with(begin)) {
        return message;
    }
    match message.rfind(", expected ") {
        Some(at) => &message[at + 2..],
        None => "this value cannot be used here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Shape {
        token: Option<String>,
        names: Vec<String>,
        count: Option<u16>,
        choice: Option<Choice>,
        inner: BTreeMap<String, Self>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        One,
        Two,
    }

    #[test]
    fn a_fault_is_told_by_its_place_and_key_and_not_by_the_text() {
        let cases = [
            ("token = \"geheim\nnames = []", "line 1, column 16: invalid basic string, expected `\"`"),
            ("\ntoken = geheim", "line 2, column 9: "),
            ("token = \"geheim\" geheim", "line 1, column 18: "),
            ("token = 4711.0", "line 1, column 9: token: expected a string"),
            ("names = \"geheim, expected geheim\"", "line 1, column 9: names: expected a sequence"),
            ("[inner]\na = \"geheim\"", "line 2, column 5: inner.a: expected struct Shape"),
            ("[inner.a]\nchoice = \"geheim\"", "line 2, column 10: inner.a.choice: expected `one` or `two`"),
            ("count = -4711", "line 1, column 9: count: expected u16"),
            (
                "[inner.a]\ntokne = \"geheim\"",
                "line 2, column 1: inner.a.tokne: unknown field `tokne`, expected one of",
            ),
        ];
        for (text, told) in cases {
            let reason = parse::<Shape>(text).expect_err(text);
            assert!(reason.starts_with(told), "{text:?}: {reason}");
            assert!(!reason.contains("geheim") && !reason.contains("4711"), "{reason}");
        }
        assert_eq!(parse::<Shape>("token = \"x\"").expect("fine").token.as_deref(), Some("x"));
    }
}
