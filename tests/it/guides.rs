//! The guides keep their word: their commands are run as they stand there, and their lists are those of the code.

use crate::daemon::Home;
use crate::pinned;
use crate::shell::{Shell, blocks, steps};
use holon::events::PLANES;
use holon::wire::problem::CODES;
use std::fmt::Write as _;

fn guide(name: &str) -> String {
    pinned::read_text(&pinned::path("src/guide").join(format!("{name}.md")))
}

/// Follows a guide from its first command to its last.
fn follow(name: &str) {
    let page = guide(name);
    let mut home = Home::new();
    for toml in blocks(&page, "toml") {
        home = home.configured(&toml);
    }
    let mut shell = Shell::open(&home);
    shell.run("export PATH=\"$PWD/target/release:$PATH\"");
    let commands = blocks(&page, "sh").concat().replace("$(mktemp -d)", &home.path().display().to_string());
    let steps = steps(&commands);
    assert!(steps.len() > 3, "{name} shows something");
    shell.follow(&steps);
}

#[test]
fn the_first_agent() {
    follow("first-agent");
}

#[test]
fn long_work() {
    follow("long-work");
}

#[test]
fn skills() {
    follow("skills");
}

#[test]
fn an_agent_that_the_outside_wakes() {
    follow("webhooks");
}

#[test]
fn an_agent_that_reaches_its_operator() {
    follow("transports");
}

#[test]
fn a_crash() {
    follow("crash");
}

#[test]
fn providers() {
    follow("providers");
}

#[test]
fn security() {
    follow("security");
}

#[test]
fn operations() {
    follow("operations");
}

/// Compares a page with what it is made from, or writes it.
#[track_caller]
fn is_pinned(name: &str, today: &str) {
    let path = pinned::path("src/guide").join(format!("{name}.md"));
    if pinned::is_writing("UPDATE_GUIDES") {
        pinned::write(&path, today.as_bytes());
    }
    assert!(pinned::read_text(&path) == today, "{name} is behind: `UPDATE_GUIDES=1 cargo test guides` writes it");
}

#[test]
fn every_kind_of_event_is_in_the_guide() {
    let mut page = String::from(
        "# Kinds of events\n\nWhat `holon events` shows as the type, plane by plane. `ledger-schema/` has every field.\n",
    );
    for (plane, kinds) in PLANES {
        writeln!(page, "\n## {plane}\n\n| kind | what it says |\n|---|---|").expect("a string takes all");
        for kind in *kinds {
            // What stands in brackets names pages of the design.
            let meaning = kind.meaning.split(" (").next().unwrap_or_default().trim().trim_end_matches('.');
            writeln!(page, "| `{}` | {meaning}. |", kind.kind).expect("a string takes all");
        }
    }
    is_pinned("event-kinds", &page);
}

#[test]
fn every_code_of_a_problem_is_in_the_guide() {
    let mut page = String::from(
        "# Codes of problems\n\nAn error is `application/problem+json`. Its `code` is the contract; its sentences may change. \
         A `hint` says what\nto do where there is something, and `retryable` whether the same request may do later.\n\n\
         | code | status | what it says |\n|---|---|---|\n",
    );
    for (code, status, meaning) in CODES {
        writeln!(page, "| `{code}` | {status} | {meaning} |").expect("a string takes all");
    }
    is_pinned("problem-codes", &page);
}

/// The texts in quotes of the code that gives codes.
fn quoted() -> String {
    let files = |folder: &str| {
        let entries = std::fs::read_dir(pinned::path(folder)).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    let texts = files("src/http").into_iter().chain([pinned::path("src/decide/mod.rs")]);
    texts.map(|path| pinned::read_text(&path)).collect()
}

#[test]
fn the_codes_in_the_guide_are_those_that_are_given() {
    let given = quoted();
    let never: Vec<_> = CODES.iter().filter(|row| !given.contains(&format!("\"{}\"", row.0))).collect();
    assert!(never.is_empty(), "nothing gives {never:?}");
    // Where a code stands: behind these, in the first quotes.
    let openings = ["Failure::new(", "malformed(", "Problem::new(", "=> \""];
    let texts = openings.iter().flat_map(|opening| given.split(opening).skip(1).map(move |rest| (*opening, rest)));
    let codes = texts.filter_map(|(opening, rest)| {
        let rest = if opening.ends_with('"') { rest } else { rest.split_once('"')?.1 };
        let code = rest.split('"').next()?;
        let is_code = code.contains('_') && code.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_code.then_some(code)
    });
    let listed = |code: &str| CODES.iter().any(|row| row.0 == code);
    let unlisted: Vec<&str> = codes.filter(|code| !listed(code)).collect();
    assert!(unlisted.is_empty(), "{unlisted:?} are not in the guide");
}
