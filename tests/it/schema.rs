//! `ledger-schema/` lists what this build writes, and a row that has shipped never changes.

use crate::pinned;
use holon::events::schema;
use std::collections::BTreeMap;

/// What became of a row since it was written down.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    New,
    /// An enum has further parts at its end.
    Extended,
    Changed,
    Gone,
}

/// The rows of a file by name, each with its lines.
fn rows(text: &str) -> BTreeMap<&str, &str> {
    text.split("\n\n").filter_map(|row| Some((row.strip_prefix('[')?.split_once(']')?.0, row.trim_end()))).collect()
}

fn changes<'a>(shipped: &'a str, today: &'a str) -> Vec<(&'a str, Change)> {
    let (shipped, today) = (rows(shipped), rows(today));
    let gone = shipped.keys().filter(|name| !today.contains_key(*name)).map(|name| (*name, Change::Gone));
    let rest = today.iter().filter_map(|(name, row)| Some((*name, change(shipped.get(name).copied(), row)?)));
    gone.chain(rest).collect()
}

fn change(shipped: Option<&str>, today: &str) -> Option<Change> {
    let Some(shipped) = shipped else { return Some(Change::New) };
    let is_enum = today.contains("\nform = \"enum\"\n");
    match shipped.strip_suffix(']') {
        _ if shipped == today => None,
        Some(parts) if is_enum && today.starts_with(parts) => Some(Change::Extended),
        _ => Some(Change::Changed),
    }
}

const NEVER: &str = "A row that has shipped never changes: old ledgers are written in it. A body that must change gets \
                     a new version and an upcaster. (A row that no release holds may be deleted by hand first.)";
const WRITE: &str = "There are new rows: `UPDATE_SCHEMA=1 cargo test schema` writes them.";

#[test]
fn the_schema_lists_what_is_written_and_no_shipped_row_has_changed() {
    for (name, today) in schema::files() {
        let path = pinned::path("ledger-schema").join(&name);
        let shipped = if path.exists() { pinned::read_text(&path) } else { String::new() };
        let changes = changes(&shipped, &today);
        let refused: Vec<_> =
            changes.iter().filter(|(_, change)| matches!(change, Change::Changed | Change::Gone)).collect();
        assert!(refused.is_empty(), "ledger-schema/{name}: {refused:?}. {NEVER}");
        if pinned::is_writing("UPDATE_SCHEMA") {
            pinned::write(&path, today.as_bytes());
        } else {
            assert!(shipped == today, "ledger-schema/{name}: {changes:?}. {WRITE}");
        }
    }
}

#[test]
fn every_shape_that_a_row_names_is_listed() {
    let files: BTreeMap<String, String> = schema::files().into_iter().collect();
    let shapes = rows(&files["shapes.toml"]);
    let words = [
        "Option",
        "Vec",
        "BTreeMap",
        "String",
        "Hash",
        "EventSeq",
        "Boot",
        "Timestamp",
        "Content",
        "Incoming",
        "SkillName",
        "TokenName",
    ];
    let is_listed = |name: &str| {
        shapes.contains_key(name) || words.contains(&name) || (name.ends_with("Id") && name.len() > "Id".len())
    };
    for text in files.values().flat_map(|file| rows(file).into_values().map(str::to_owned).collect::<Vec<_>>()) {
        for shape in text.lines().filter_map(|line| line.trim().strip_prefix("[\"")?.split_once("\", \"")) {
            let names = shape.1.split(|c: char| !c.is_alphanumeric());
            let missing: Vec<&str> =
                names.filter(|name| name.starts_with(char::is_uppercase) && !is_listed(name)).collect();
            assert!(missing.is_empty(), "{shape:?} names shapes that are not listed: {missing:?}");
        }
    }
}

#[test]
fn a_changed_row_is_told_from_a_new_one() {
    let row = |name: &str, parts: &str| format!("[{name}]\nform = \"enum\"\nparts = [\n{parts}]\n");
    let shipped = format!("# Title.\n\n{}\n{}", row("A", "  [\"X\", \"\"],\n"), row("B", "  [\"X\", \"\"],\n"));
    let cases = [
        (row("B", "  [\"X\", \"\"],\n  [\"Y\", \"\"],\n"), Change::Extended),
        (row("B", "  [\"Y\", \"\"],\n  [\"X\", \"\"],\n"), Change::Changed),
        (row("B", ""), Change::Changed),
        (row("B", "  [\"X\", \"\"],\n").replace("enum", "struct"), Change::Changed),
    ];
    for (today, expected) in cases {
        let today = format!("# Title.\n\n{}\n{today}", row("A", "  [\"X\", \"\"],\n"));
        assert_eq!(changes(&shipped, &today), [("B", expected)]);
    }
    assert_eq!(changes(&shipped, "# Title.\n"), [("A", Change::Gone), ("B", Change::Gone)]);
    assert_eq!(changes("", &shipped), [("A", Change::New), ("B", Change::New)]);
    assert_eq!(changes(&shipped, &shipped), []);
}
