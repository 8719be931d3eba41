//! How the tables write down what a value is: a word of [`WORDS`]; a shape's or a list of names' own name; `a|b` for one
//! of these texts; `?kind` for a value that may be null; `[kind]` for an array; `{kind}` for an object of such members.

use super::shape::{self, NAMES, Shape};
use serde_json::{Map, Value, json};

/// A word, its schema and its example, as JSON.
const WORDS: &[(&str, &str, &str)] = &[
    ("text", r#"{"type": "string"}"#, r#""text""#),
    ("bool", r#"{"type": "boolean"}"#, "false"),
    ("yes", r#"{"const": true}"#, "true"),
    ("no", r#"{"const": false}"#, "false"),
    ("count", r#"{"type": "integer", "minimum": 0}"#, "1"),
    ("number", r#"{"type": "integer"}"#, "0"),
    ("any", "{}", r#"{"any": "value"}"#),
    ("object", r#"{"type": "object"}"#, "{}"),
    ("time", r#"{"type": "string", "format": "date-time"}"#, r#""2026-01-01T00:00:00.000Z""#),
    ("path", r#"{"type": "string"}"#, r#""/home/ada/project""#),
    ("hash", r#"{"type": "string", "pattern": "^[0-9a-f]{64}$"}"#, HASH),
    ("agent", r#"{"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$", "maxLength": 64}"#, r#""main""#),
    ("model", r#"{"type": "string"}"#, r#""builtin/runbook""#),
    ("message", r#"{"type": "string", "pattern": "^msg-[1-9][0-9]*$"}"#, r#""msg-1""#),
    ("run", r#"{"type": "string", "pattern": "^run-[1-9][0-9]*$"}"#, r#""run-1""#),
    ("brief", r#"{"type": "string", "pattern": "^brief-[1-9][0-9]*$"}"#, r#""brief-1""#),
    ("work", r#"{"type": "string", "pattern": "^work-[1-9][0-9]*$"}"#, r#""work-1""#),
    ("task", r#"{"type": "string", "pattern": "^task-[1-9][0-9]*$"}"#, r#""task-1""#),
    ("timer", r#"{"type": "string", "pattern": "^timer-[1-9][0-9]*$"}"#, r#""timer-1""#),
    ("wait", r#"{"type": "string", "pattern": "^wait-[1-9][0-9]*$"}"#, r#""wait-1""#),
    ("trigger", r#"{"type": "string", "pattern": "^trigger-[1-9][0-9]*$"}"#, r#""trigger-1""#),
    ("binding", r#"{"type": "string", "pattern": "^opbind-[1-9][0-9]*$"}"#, r#""opbind-1""#),
    ("notice", r#"{"type": "string", "pattern": "^notice-[1-9][0-9]*$"}"#, r#""notice-1""#),
    ("url", r#"{"type": "string", "format": "uri"}"#, r#""https://example.com/callback""#),
    ("workspace", r#"{"type": "string", "pattern": "^(agent_home|ws-[1-9][0-9]*)$"}"#, r#""ws-1""#),
    ("long", r##"{"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/StoredText"}]}"##, r#""text""#),
    ("key", r#"{"type": "string", "minLength": 1, "maxLength": 255}"#, r#""a-name-for-this-request""#),
    ("cursor", r#"{"type": "string", "pattern": "^(open|ended)-[0-9]{1,19}$"}"#, r#""open-7""#),
    ("event", r#"{"type": "string"}"#, r#""main:7""#),
    (
        "ledger",
        r#"{"type": "string", "pattern": "^(\\.home|[A-Za-z0-9_-][A-Za-z0-9._-]*)$", "maxLength": 64}"#,
        r#""main""#,
    ),
    ("secret", r#"{"type": "string", "pattern": "^holon_[0-9a-f]{64}$"}"#, SECRET),
    ("token", r#"{"type": "string"}"#, r#""cb_0123456789abcdef""#),
];

const HASH: &str = r#""6cbcb75303dbfef559b2623fa729793c5b32b10f7335e5f44f222aed001a9840""#;

const SECRET: &str = r#""holon_6cbcb75303dbfef559b2623fa729793c5b32b10f7335e5f44f222aed001a9840""#;

/// A kind, taken apart.
enum Parts<'a> {
    Nullable(&'a str),
    Array(&'a str),
    Members(&'a str),
    OneOf(Vec<&'a str>),
    Named(&'a str),
    Word { schema: &'static str, example: &'static str },
}

fn parts(kind: &str) -> Parts<'_> {
    let inside = |open, close| kind.strip_prefix(open)?.strip_suffix(close);
    if let Some(kind) = kind.strip_prefix('?') {
        Parts::Nullable(kind)
    } else if let Some(kind) = inside('[', ']') {
        Parts::Array(kind)
    } else if let Some(kind) = inside('{', '}') {
        Parts::Members(kind)
    } else if kind.contains('|') {
        Parts::OneOf(kind.split('|').collect())
    } else if kind.starts_with(|c: char| c.is_ascii_uppercase()) {
        Parts::Named(kind)
    } else {
        let word = WORDS.iter().find(|(word, ..)| *word == kind);
        let (_, schema, example) = word.unwrap_or_else(|| panic!("the tables use {kind}, which is no word"));
        Parts::Word { schema, example }
    }
}

/// The schema of a kind; a shape is referred to.
pub(super) fn schema(kind: &str) -> Value {
    match parts(kind) {
        Parts::Nullable(kind) => nullable(schema(kind)),
        Parts::Array(kind) => json!({"type": "array", "items": schema(kind)}),
        Parts::Members(kind) => json!({"type": "object", "additionalProperties": schema(kind)}),
        Parts::OneOf(names) => json!({"type": "string", "enum": names}),
        Parts::Named(name) => json!({"$ref": format!("#/components/schemas/{name}")}),
        Parts::Word { schema, .. } => parse(schema),
    }
}

fn nullable(schema: Value) -> Value {
    let Some(kind) = schema.get("type").filter(|_| schema.get("enum").is_none()).cloned() else {
        return json!({"anyOf": [schema, {"type": "null"}]});
    };
    let mut schema = schema;
    schema["type"] = json!([kind, "null"]);
    schema
}

/// A value of a kind, every member there.
pub(super) fn example(kind: &str) -> Value {
    match parts(kind) {
        Parts::Nullable(kind) => example(kind),
        Parts::Array(kind) => json!([example(kind)]),
        Parts::Members(kind) => json!({"name": example(kind)}),
        Parts::OneOf(names) => json!(names[0]),
        Parts::Named(name) => match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, names)) => json!(names[0]),
            None => shape_example(named(name)),
        },
        Parts::Word { example, .. } => parse(example),
    }
}

fn shape_example(shape: &Shape) -> Value {
    let member = |(named, kind): &(&str, &str)| (name(named).0.to_owned(), example(kind));
    Value::Object(shape.members.iter().map(member).collect())
}

/// All shapes and lists of names, as [`schema`] refers to them.
pub(super) fn schemas() -> Value {
    let shapes = shape::all().map(|shape| (shape.name.to_owned(), shape_schema(shape)));
    let names = NAMES.iter().map(|(name, names)| ((*name).to_owned(), json!({"type": "string", "enum": names})));
    Value::Object(shapes.chain(names).collect())
}

fn shape_schema(shape: &Shape) -> Value {
    let member = |(named, kind): &(&str, &str)| (name(named).0.to_owned(), schema(kind));
    let properties: Map<String, Value> = shape.members.iter().map(member).collect();
    let required: Vec<&str> =
        shape.members.iter().map(|(named, _)| name(named)).filter(|(_, is)| *is).map(|(name, _)| name).collect();
    let mut shown = json!({"type": "object", "description": shape.about, "properties": properties});
    shown["examples"] = json!([shape_example(shape)]);
    if !required.is_empty() {
        shown["required"] = json!(required);
    }
    // What is sent holds nothing else; what is answered may come to hold more.
    if shape.is_sent {
        shown["additionalProperties"] = json!(false);
    }
    shown
}

fn named(name: &str) -> &'static Shape {
    shape::all().find(|shape| shape.name == name).unwrap_or_else(|| panic!("the tables use {name}, which is no shape"))
}

/// Whether a body of this shape must say something.
pub(super) fn has_required(name: &str) -> bool {
    named(name).members.iter().any(|(named, _)| self::name(named).1)
}

/// A name, and whether its member is always there: `?` at its end says that it may not be.
pub(super) fn name(named: &str) -> (&str, bool) {
    named.strip_suffix('?').map_or((named, true), |name| (name, false))
}

/// The kind of a part of a path, from what stands before it.
pub(super) fn path_member(before: &str, name: &str) -> &'static str {
    match (before, name) {
        ("messages", _) => "message",
        ("work-items", _) => "work",
        ("tasks", _) => "task",
        ("timers", _) => "timer",
        ("waits", _) => "wait",
        ("external-triggers", _) => "trigger",
        ("operator-bindings" | "tokens", _) => "text",
        ("operator-notifications", _) => "notice",
        (_, "token") => "token",
        _ => "agent",
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("the tables' values are JSON")
}
