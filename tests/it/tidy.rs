//! The house keeps its shape: floors, what may not be where, and sizes. A plain-text pass, and a proof for each rule
//! that it can say no.

use std::path::{Path, PathBuf};

/// Floors from the ground up. A file uses its own and those below.
const FLOORS: &[&[&str]] = &[
    &["words"],
    &["events"],
    &["fold"],
    &["decide"],
    &["tools", "context"],
    &["wire"],
    &["ledger"],
    &["offline"],
    &["runtime"],
    &["http", "client", "cli"],
];

/// The last floor that is pure.
const PURE: &str = "context";

/// Imports between the surfaces, and why each is there.
const SIDEWAYS: &[(&str, &str)] = &[
    ("cli", "client"), // A verb talks to a server as anybody could.
    ("cli", "http"),   // `serve` starts the surface.
];

/// What no pure file may name.
const IMPURE: &[&str] = &[
    "tokio",
    "async fn",
    ".await",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "HashMap",
    "HashSet",
    "SystemTime",
    "Instant::now",
    "f32",
    "f64",
];

const FILE_LINES_MAX: usize = 600;

/// What a file breaks, as `line: reason`.
fn broken(name: &str, text: &str) -> Vec<String> {
    let module = name.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
    let mut found = Vec::new();
    if text.lines().count() > FILE_LINES_MAX {
        found.push(format!("{name} has more than {FILE_LINES_MAX} lines"));
    }
    let mut testing = false;
    for (number, line) in text.lines().enumerate() {
        testing |= line.starts_with("#[cfg(test)]");
        let code = line.split("//").next().unwrap_or_default();
        let mut say = |reason: String| found.push(format!("{name}:{}: {reason}", number + 1));
        for used in used(code) {
            if let Some(reason) = refused(&module, &used) {
                say(reason);
            }
        }
        if code.contains("use crate::{") || code.contains("super::super::") {
            say("hides which floor it uses".into());
        }
        if is_pure(&module) && !testing {
            IMPURE.iter().filter(|word| has_word(code, word)).for_each(|word| say(format!("{word} is not pure")));
        }
        if code.contains("bincode") && name != "events/codec.rs" {
            say("only events/codec.rs names bincode".into());
        }
        if code.contains("serde_json") && rank(&module) < rank("tools") && !testing {
            say("JSON begins with the tools".into());
        }
        for word in ["todo!(", "unimplemented!(", "dbg!(", "#[ignore]", "FIXME"] {
            if line.contains(word) {
                say(format!("{word} is not to be left behind"));
            }
        }
        if code.trim_start().starts_with("#[allow(") && code.contains(")]") && !code.contains("reason") {
            say("an allowance says why, or is an expectation".into());
        }
        let comment = line.split_once("//").map(|(_, comment)| format!(" {} ", comment.to_lowercase()));
        for word in [" no longer ", " previously ", " used to be "] {
            if comment.as_ref().is_some_and(|comment| comment.contains(word)) {
                say(format!("{word:?} tells of a change, not of the code"));
            }
        }
    }
    found
}

fn rank(module: &str) -> usize {
    FLOORS.iter().position(|floor| floor.contains(&module)).unwrap_or(FLOORS.len())
}

fn is_pure(module: &str) -> bool {
    rank(module) <= rank(PURE)
}

/// The floors that a line of code names.
fn used(code: &str) -> Vec<String> {
    let after = code.split("crate::").skip(1);
    let word = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    after.map(word).filter(|word| !word.is_empty()).collect()
}

fn refused(here: &str, there: &str) -> Option<String> {
    if rank(here) == FLOORS.len() || here == there {
        return None; // lib.rs and main.rs are the doors.
    }
    if rank(there) == FLOORS.len() {
        return Some(format!("{there} is on no floor"));
    }
    let surfaces = rank(here) == FLOORS.len() - 1 && rank(there) == rank(here);
    if rank(there) > rank(here) {
        Some(format!("{here} may not use {there}, which is above it"))
    } else if surfaces && !SIDEWAYS.contains(&(here, there)) {
        Some(format!("{here} may not use {there} beside it"))
    } else {
        None
    }
}

/// Whether the code holds the word, and not as part of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word)
        .any(|(at, _)| !part(code[..at].chars().next_back()) && !part(code[at + word.len()..].chars().next()))
}

/// Every file below `folder`, by its path from there.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_house_keeps_its_shape() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found: Vec<String> = files(&src).iter().flat_map(|(name, text)| broken(name, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_top_level_is_as_it_was_drawn() {
    let drawn = [
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "README.md",
        "benches",
        "ledger-schema",
        "replay-fixtures",
        "rfcs",
        "src",
        "target",
        "tests",
    ];
    for entry in std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with('.') || drawn.contains(&name.as_str()), "{name} is not part of the drawing");
    }
}

#[test]
fn each_rule_can_say_no() {
    let long = "\n".repeat(FILE_LINES_MAX + 1);
    let cases = [
        ("fold/task.rs", "use crate::decide::Command;", "may not use decide, which is above it"),
        ("events/turn.rs", "let head = crate::ledger::Head::default();", "may not use ledger, which is above it"),
        ("http/agents.rs", "use crate::cli::main;", "may not use cli beside it"),
        ("client.rs", "use crate::http::App;", "may not use http beside it"),
        ("fold/task.rs", "use crate::cellar::Wine;", "is on no floor"),
        ("fold/task.rs", "use crate::{events, words};", "hides which floor"),
        ("decide/turn.rs", "use super::super::fold;", "hides which floor"),
        ("decide/turn.rs", "use std::collections::HashMap;", "HashMap is not pure"),
        ("words/time.rs", "pub async fn now() {}", "async fn is not pure"),
        ("context/mod.rs", "let text = std::fs::read_to_string(path);", "std::fs is not pure"),
        ("fold/turn.rs", "let share: f64 = 0.5;", "f64 is not pure"),
        ("ledger/chain.rs", "bincode::config::standard()", "only events/codec.rs names bincode"),
        ("fold/row.rs", "serde_json::to_string(&row)", "JSON begins with the tools"),
        ("runtime/host.rs", "todo!()", "is not to be left behind"),
        ("runtime/host.rs", "#[allow(dead_code)]", "says why"),
        ("runtime/host.rs", "// The lock is no longer taken here.", "tells of a change"),
        ("runtime/host.rs", long.as_str(), "more than 600 lines"),
    ];
    for (name, text, reason) in cases {
        let found = broken(name, text);
        assert!(found.iter().any(|found| found.contains(reason)), "{name}: {text:?} gave {found:?}");
    }
    let fine = ("runtime/host.rs", "use crate::ledger::Store;\nuse tokio::sync::watch; // once HashMap");
    assert_eq!(broken(fine.0, fine.1), Vec::<String>::new());
}
