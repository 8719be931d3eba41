//! The README keeps its word: its commands are run as they stand there, on a home and a port of the test's.

use crate::daemon::Home;
use crate::shell::{self, ADDRESS, Shell, steps};
use serde_json::Value;

/// The code blocks in `language` below a heading of the README.
pub fn blocks(heading: &str, language: &str) -> Vec<String> {
    let readme = crate::pinned::read_text(&crate::pinned::path("README.md"));
    let below = readme.split_once(&format!("\n{heading}\n")).expect("the heading is there").1;
    let level = format!("\n{} ", heading.split(' ').next().unwrap_or_default());
    shell::blocks(below.split(&level).next().unwrap_or_default(), language)
}

fn commands(block: &str) -> Vec<String> {
    steps(block).into_iter().map(|step| step.command).collect()
}

#[test]
fn killed_in_the_middle_as_the_readme_shows_it_loses_and_repeats_nothing() {
    let home = Home::new();
    let [block] = &blocks("## Kill it", "sh")[..] else { panic!("one block tells it") };
    let steps = steps(&block.replace("$(mktemp -d)", &home.path().display().to_string()));
    let printed = Shell::open(&home).follow(&steps);
    let of = |begin: &str| {
        let at = steps.iter().position(|step| step.command.starts_with(begin)).expect("the README has it");
        &printed[at]
    };
    assert_eq!(steps.iter().filter(|step| step.command == "holon serve &").count(), 2);
    assert_eq!(of("wc -l").trim(), "1 ran.txt");
    assert!(of("holon events").contains("task_exited"), "{}", of("holon events"));
    assert!(of("holon ledger verify").contains("whole"), "{}", of("holon ledger verify"));
}

#[test]
fn the_requests_of_the_readme_are_answered() {
    let home = Home::new();
    let [_, curl, ..] = &blocks("## Use it", "sh")[..] else { panic!("verbs, and requests") };
    let mut shell = Shell::open(&home);
    shell.run(&format!("export PATH=\"$PWD/target/release:$PATH\" HOLON_HOME={}", home.path().display()));
    let address = shell.serve("holon serve &");
    assert!(curl.contains(ADDRESS), "{curl}");
    let [status, prompt, stream] = &commands(&curl.replace(ADDRESS, &address))[..] else { panic!("three requests") };
    let json = |printed: String| serde_json::from_str::<Value>(&printed).expect("JSON");
    assert_eq!(json(shell.run(status))["identity"]["agent_id"], "main");
    assert_eq!(json(shell.run(prompt))["ok"], true);
    assert!(shell.watch(stream, "event: turn_terminal").contains("id: 1\n"));
}

#[test]
fn the_verbs_of_the_readme_are_there() {
    let home = Home::new();
    let [verbs, ..] = &blocks("## Use it", "sh")[..] else { panic!("verbs, and requests") };
    for line in commands(verbs) {
        // `holon agent list | create`: one line for several.
        let many = line.contains(" | ") && !line.contains('\'');
        let words: Vec<&str> = line.split(' ').filter(|word| *word != "|").collect();
        let paths =
            if many { words[2..].iter().map(|verb| vec![words[1], *verb]).collect() } else { vec![vec![words[1]]] };
        for path in paths {
            let help = home.run(&[&path[..], &["--help"]].concat());
            assert!(help.status.success(), "{path:?}");
            let help = String::from_utf8(help.stdout).expect("text");
            let options = words.iter().filter(|word| word.starts_with("--"));
            options.for_each(|option| assert!(help.contains(option), "{path:?} takes no {option}"));
        }
    }
}

#[test]
fn the_long_work_of_the_readme_is_done() {
    let home = Home::new();
    crate::long_work::repository(&home.workspace());
    let _daemon = home.serve();
    let [block] = &blocks("## Let it work for long", "sh")[..] else { panic!("one block tells it") };
    let mut shell = Shell::open(&home);
    shell.run(&format!("export PATH=\"$PWD/target/release:$PATH\" HOLON_HOME={}", home.path().display()));
    let steps = steps(block);
    assert!(steps.iter().filter(|step| step.comment.starts_with("prints ")).count() > 4);
    shell.follow(&steps);
}

#[tokio::test]
async fn the_configuration_of_the_readme_is_one() {
    let [toml] = &blocks("### Models", "toml")[..] else { panic!("one block tells it") };
    let daemon = Home::new().configured(toml).serve();
    assert!(!toml.is_empty() && daemon.is_whole("main").await);
}
