//! The document of the surface: committed, whole, and true of what routes take.

use crate::ask::Ask;
use crate::contract::{self, document, misfits, resolved};
use crate::daemon::Home;
use crate::pinned;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A documented operation.
pub struct Operation {
    /// In capitals.
    pub method: String,
    pub template: &'static str,
    pub told: &'static Value,
}

impl Operation {
    /// The path with the examples of its parameters.
    pub fn path(&self) -> String {
        self.parameters("path").fold(self.template.to_owned(), |path, parameter| {
            let name = parameter["name"].as_str().expect("a name");
            path.replace(&format!("{{{name}}}"), parameter["example"].as_str().expect("an example"))
        })
    }

    pub fn parameters(&self, place: &str) -> impl Iterator<Item = &'static Value> {
        let parameters = self.told["parameters"].as_array().expect("parameters").iter();
        parameters.filter(move |parameter| parameter["in"] == place)
    }

    /// Whether it asks for a token in bearer mode.
    pub fn is_guarded(&self) -> bool {
        self.told["security"].as_array().is_some_and(|schemes| !schemes.is_empty())
    }

    /// The scope that a token needs for it; none where none is asked for.
    pub fn scope(&self) -> Option<&'static str> {
        self.told["security"][0]["control_token"][0].as_str()
    }

    /// The schema and the example of its JSON body.
    pub fn body(&self) -> Option<(&'static Value, &'static Value)> {
        let json = self.told["requestBody"]["content"].get("application/json")?;
        Some((&json["schema"], &json["example"]))
    }
}

/// All of them.
pub fn operations() -> Vec<Operation> {
    let paths = document()["paths"].as_object().expect("paths");
    let operation = |template: &'static String, (method, told): (&String, &'static Value)| Operation {
        method: method.to_uppercase(),
        template,
        told,
    };
    paths
        .iter()
        .flat_map(|(template, members)| {
            members.as_object().expect("methods").iter().map(move |member| operation(template, member))
        })
        .collect()
}

#[tokio::test]
async fn the_document_is_the_committed_one() {
    let daemon = Home::new().serve();
    let served = daemon.client.get("/openapi.json").await.expect("a document");
    let text = format!("{}\n", serde_json::to_string_pretty(&served).expect("JSON"));
    if pinned::is_writing("UPDATE_OPENAPI") {
        pinned::write(&contract::path(), text.as_bytes());
    } else {
        assert!(
            text == pinned::read_text(&contract::path()),
            "the surface has changed: `UPDATE_OPENAPI=1 cargo test openapi` writes it down, and then read what changed"
        );
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_example_fits() {
    let mut pending = vec![document()];
    let mut examples = 0;
    while let Some(value) = pending.pop() {
        resolved(value);
        let of_a_shape = value["examples"].as_array().into_iter().flatten().map(|example| (value, example));
        let of_a_value = value.get("schema").zip(value.get("example"));
        for (schema, example) in of_a_shape.chain(of_a_value) {
            assert_eq!(misfits(schema, example), Vec::<String>::new(), "{example}");
            examples += 1;
        }
        match value {
            Value::Object(members) => pending.extend(members.values()),
            Value::Array(entries) => pending.extend(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(examples > 200, "{examples}");
}

#[test]
fn every_shape_every_body_and_every_parameter_has_an_example() {
    let shapes = document()["components"]["schemas"].as_object().expect("shapes");
    for (name, shape) in shapes {
        assert!(
            shape.get("enum").is_some() || shape["examples"].as_array().is_some_and(|list| !list.is_empty()),
            "{name}"
        );
    }
    for operation in operations() {
        let bodies =
            operation.told["requestBody"]["content"].as_object().into_iter().flat_map(|content| content.values());
        let parameters = operation.told["parameters"].as_array().into_iter().flatten();
        for told in bodies.chain(parameters) {
            assert!(told.get("example").is_some(), "{}: {told}", operation.template);
        }
    }
}

/// The names that a refusal of an unknown one says are known.
fn known(detail: &str) -> BTreeSet<String> {
    let expected = detail.split_once("expected").map_or("", |(_, expected)| expected);
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn routes_take_the_members_that_are_documented_and_no_others() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for operation in operations() {
        let Some((schema, _)) = operation.body().filter(|(schema, _)| schema.get("$ref").is_some()) else { continue };
        let path = operation.path();
        let problem = ask.post(&path, json!({"no_such_member": 1})).await.refused(422, "invalid_field");
        let documented = resolved(schema)["properties"].as_object().expect("properties");
        let documented: BTreeSet<String> = documented.keys().cloned().collect();
        assert_eq!(known(problem["detail"].as_str().expect("a text")), documented, "POST {path}: {problem}");
        ask.post(&path, "{\"").await.refused(400, "invalid_json");
        ask.post(&path, "[]").await.refused(422, "invalid_field");
        let unsaid = ask.send("POST", &path, |request| request.body("{}")).await;
        unsaid.refused(415, "unsupported_media_type");
    }
}

#[tokio::test]
async fn routes_take_the_parameters_that_are_documented_and_no_others() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for operation in operations().into_iter().filter(|operation| operation.method == "GET" && operation.is_guarded()) {
        let path = operation.path();
        let problem = ask.get(&format!("{path}?no_such_parameter=1")).await.refused(400, "invalid_query");
        let documented = operation.parameters("query").map(|parameter| parameter["name"].as_str().unwrap().to_owned());
        assert_eq!(known(problem["detail"].as_str().unwrap()), documented.collect(), "GET {path}: {problem}");
    }
}

#[tokio::test]
async fn routes_have_the_methods_that_are_documented_and_no_others() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for operation in operations() {
        let members = &document()["paths"][operation.template];
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            if members.get(method.to_lowercase()).is_some() {
                continue;
            }
            let told = ask.send(method, &operation.path(), |request| request).await;
            told.refused(405, "method_not_allowed");
            let allowed = match (members.get("get"), members.get("post")) {
                (Some(_), Some(_)) => "GET,HEAD,POST",
                (Some(_), None) => "GET,HEAD",
                (None, _) => "POST",
            };
            assert_eq!(told.header("allow"), allowed, "{method} {}", operation.template);
        }
    }
}
