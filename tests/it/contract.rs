//! Answers held against the document that describes them. Whatever a test is answered goes through here, so the whole
//! suite shows that answers are as they are documented.

use crate::pinned;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// The committed document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&pinned::read_text(&path())).expect("JSON"))
}

pub fn path() -> std::path::PathBuf {
    pinned::path("tests/openapi.json")
}

/// Requires that an answer is one that its route is documented to give. What is no documented route is left alone.
#[track_caller]
pub fn hold(method: &str, path: &str, status: u16, answer: &Value) {
    let Some(operation) = operation(method, path) else { return };
    let response = resolved(&operation["responses"][status.to_string()]);
    let schema = response["content"].as_object().and_then(|content| content.values().next());
    let schema = schema.unwrap_or_else(|| panic!("{method} {path}: {status} is not documented: {answer}"));
    let found = misfits(&schema["schema"], answer);
    let shown: String = answer.to_string().chars().take(2_000).collect();
    assert!(found.is_empty(), "{method} {path} -> {status}: {found:#?}\nin {shown}");
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next()?;
    let paths = document()["paths"].as_object()?;
    // A path that is written out wins over one with a parameter.
    let written = paths.iter().find(|(template, _)| *template == path);
    let (_, members) = written.or_else(|| paths.iter().find(|(template, _)| fits(template, path)))?;
    members.get(method.to_lowercase())
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    let same = |(template, part): (&&str, &&str)| template.starts_with('{') || template == part;
    template.len() == path.len() && template.iter().zip(&path).all(same)
}

/// What a reference leads to, or the value itself.
pub fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let found = document().pointer(reference.trim_start_matches('#'));
            found.unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => value,
    }
}

/// Where a value does not fit a schema. A member that its shape does not name fits neither: clients may be given more
/// than they know, but not more than is documented.
pub fn misfits(schema: &'static Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(schema, value, "", &mut found);
    found
}

fn compare(schema: &'static Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = resolved(schema);
    if let Some(all) = schema["allOf"].as_array() {
        all.iter().for_each(|one| compare(one, value, at, found));
    }
    if let Some(any) = schema["anyOf"].as_array()
        && !any.iter().any(|one| misfits(one, value).is_empty())
    {
        found.push(format!("{at}: {value} is none of {schema}"));
    }
    if !is_of_type(&schema["type"], value) || !is_allowed(schema, value) {
        found.push(format!("{at}: {value} does not fit {schema}"));
    }
    if let (Some(items), Some(entries)) = (schema.get("items"), value.as_array()) {
        entries.iter().enumerate().for_each(|(index, entry)| compare(items, entry, &format!("{at}[{index}]"), found));
    }
    if let Some(members) = value.as_object() {
        compare_members(schema, members, at, found);
    }
}

fn compare_members(schema: &'static Value, members: &Map<String, Value>, at: &str, found: &mut Vec<String>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            found.push(format!("{at}.{name} is missing"));
        }
    }
    let is_shape = schema["type"] == "object" && schema.get("properties").is_some();
    for (name, member) in members {
        let at = format!("{at}.{name}");
        match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => found.push(format!("{at} may not be there")),
            Some(schema) => compare(schema, member, &at, found),
            None if is_shape => found.push(format!("{at} is not documented")),
            None => {}
        }
    }
}

fn is_of_type(expected: &Value, value: &Value) -> bool {
    let is = |expected: &Value| match expected.as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("null") => value.is_null(),
        other => panic!("the document has a type {other:?}"),
    };
    match expected {
        Value::Null => true,
        Value::Array(types) => types.iter().any(is),
        _ => is(expected),
    }
}

fn is_allowed(schema: &Value, value: &Value) -> bool {
    let is_same = schema.get("const").is_none_or(|expected| expected == value);
    let is_listed = schema["enum"].as_array().is_none_or(|listed| listed.contains(value));
    let matches = |pattern: &str, text: &str| Regex::new(pattern).expect("a pattern").is_match(text);
    let is_shaped = schema["pattern"].as_str().zip(value.as_str()).is_none_or(|(pattern, text)| matches(pattern, text));
    let is_enough = schema["minimum"].as_i64().zip(value.as_i64()).is_none_or(|(minimum, number)| number >= minimum);
    is_same && is_listed && is_shaped && is_enough
}

#[test]
fn an_answer_that_is_not_as_documented_is_found() {
    use serde_json::json;
    let schema = &document()["components"]["schemas"]["Sent"];
    let fine = json!({"ok": true, "agent_id": "main", "message_id": "msg-1"});
    assert_eq!(misfits(schema, &fine), Vec::<String>::new());
    for (name, value) in [
        ("ok", json!(false)),
        ("agent_id", json!(1)),
        ("message_id", json!("msg-0")),
        ("message_id", Value::Null),
        ("more", json!(1)),
    ] {
        let mut answer = fine.clone();
        answer[name] = value;
        assert_eq!(misfits(schema, &answer).len(), 1, "{answer}");
    }
    assert_eq!(misfits(schema, &json!({"ok": true})).len(), 2);
    let nullable = &document()["components"]["schemas"]["Session"];
    let session = json!({"current_run_id": null, "pending_count": -1, "last_turn": null});
    assert_eq!(misfits(nullable, &session).len(), 1);
}
