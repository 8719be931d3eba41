//! Every verb: what its help says, and what it says when all is well and when it is not.

use crate::cli::{Said, say, wait};
use crate::daemon::Home;
use crate::pinned;
use regex::Regex;
use serde_json::json;
use std::fmt::Write as _;

/// Verbs whose output is this machine's; `cli_machine` has their tests.
const OF_THE_MACHINE: &[&str] = &["serve", "config show", "config path", "doctor", "completions", "help"];
const GOLDEN: &str = "tests/it/golden/verbs.txt";

const LONG: &str = "prompt 'what takes long'";

/// One after another, on a server with the default agent alone. Each verb is here.
const STORY: &[&str] = &[
    "run hello",
    "tail",
    "transcript",
    "agent list",
    "agent create other",
    "agent status other",
    "agent model",
    "agent model builtin/runbook --agent other",
    "agent model nobody/x --agent other",
    "agent model --clear --agent other",
    "agent webhook-secret set",
    "agent webhook-secret rotate --secret-file -",
    "agent webhook-secret clear",
    "agent abort other",
    "agent archive other",
    "agent start other",
    LONG,
    "agent abort",
    "agent drop-messages --all",
    "status",
    "work create Ship",
    "work list",
    "work update work-1 --plan 'look, then ship'",
    "work pick work-1",
    "work show work-1",
    "work complete work-1 --report shipped",
    "work show work-2",
    "task list",
    "task show task-1",
    "task output task-1",
    "task input task-1 word",
    "task stop task-1",
    "timer create --after-ms 3600000 --summary look",
    "timer list",
    "timer show timer-1",
    "timer cancel timer-1",
    "timer create --after-ms 5 --every-ms 5",
    "wait list",
    "wait show wait-1",
    "wait cancel wait-1",
    "trigger create ci",
    "trigger list",
    "trigger show trigger-1",
    "trigger revoke trigger-1",
    "binding list",
    "binding show opbind-1",
    "binding revoke opbind-1",
    "notices",
    "workspace attach part",
    "workspace list",
    "workspace exit",
    "workspace detach ws-2",
    "skills install runbook --builtin",
    "skills install runbook --builtin",
    "skills install nowhere",
    "skills list",
    "skills uninstall runbook",
    "skills uninstall runbook",
    "ledger verify",
    "ledger stats",
    "ledger head",
    "ledger prompt run-9",
    "token create ci --scope read --expires 30d",
    "token create ci --scope operate",
    "token list",
    "token revoke ci",
    "events --home --limit 2",
    "debug prompt --agent other hello",
    "events --limit 4",
    "agent stop",
    "prompt hello",
    "task create count 'ls -l'",
    "agent start",
];

/// The verbs below these words, by what their help lists.
fn below(home: &Home, words: &[&str]) -> Vec<String> {
    let said = say(home, &[words, &["--help"]].concat());
    let Some((_, listed)) = said.data().split_once("\nCommands:\n") else { return Vec::new() };
    let listed = listed.split("\n\n").next().unwrap_or_default();
    // What a line goes on with stands further in.
    let verb =
        |line: &str| line.strip_prefix("  ")?.split(' ').next().filter(|verb| !verb.is_empty()).map(str::to_owned);
    listed.lines().filter_map(verb).collect()
}

/// Every verb, by the words that lead to it.
fn verbs(home: &Home) -> Vec<String> {
    let families = below(home, &[]).into_iter().map(|verb| (below(home, &[&verb]), verb));
    families
        .flat_map(|(below, verb)| match below.is_empty() {
            true => vec![verb],
            false => below.iter().map(|name| format!("{verb} {name}")).collect(),
        })
        .collect()
}

/// The words of a line, as a shell would take them.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words =
        |(index, part): (usize, _)| if index % 2 == 1 { vec![part] } else { str::split_whitespace(part).collect() };
    parts.flat_map(words).collect()
}

fn is_of(verb: &str) -> impl Fn(&&&str) -> bool {
    move |line| line.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// A line for each verb that asks a server.
fn asking() -> impl Iterator<Item = &'static str> {
    // These two need none.
    STORY.iter().copied().filter(|line| !line.starts_with("run ") && !line.starts_with("ledger "))
}

#[test]
fn the_help_of_every_verb_says_what_it_is_and_what_its_options_are() {
    let home = Home::new();
    let name = Regex::new(r"^ +(-\w, )?(--[a-z-]+)?[ \[]*(<[A-Z:]+>|\[[A-Z]+\])?(\.{3})?$").expect("a pattern");
    for verb in verbs(&home) {
        let said = say(&home, &[&words(&verb)[..], &["--help"]].concat());
        let help = said.data();
        let (about, rest) = help.split_once("\n\nUsage: holon ").expect("a usage");
        assert!(!about.trim().is_empty() && rest.starts_with(&verb), "{verb}: {help}");
        assert!(help.contains("\nEverywhere:\n") && help.contains("--json"), "{verb}: {help}");
        let bare: Vec<&str> = rest.lines().skip(1).filter(|line| name.is_match(line.trim_end())).collect();
        assert!(bare.is_empty(), "{verb} does not explain {bare:?}");
    }
    assert_eq!(say(&home, &["help", "work", "list"]).data(), say(&home, &["work", "list", "--help"]).data());
    say(&home, &["help", "nonsense"]).refused(2, &["nonsense", "holon help"]);
}

#[test]
fn the_help_of_a_family_names_its_verbs() {
    let home = Home::new();
    for family in below(&home, &[]) {
        let help = say(&home, &[&family, "--help"]);
        let about = help.data().lines().next().unwrap_or_default();
        let missing: Vec<String> = below(&home, &[&family]).into_iter().filter(|verb| !about.contains(verb)).collect();
        assert!(missing.is_empty(), "{about} misses {missing:?}");
    }
}

#[test]
fn every_verb_is_in_the_story() {
    let missing =
        |verb: &String| !OF_THE_MACHINE.contains(&verb.as_str()) && !STORY.iter().any(|line| is_of(verb)(&line));
    let verbs: Vec<String> = verbs(&Home::new()).into_iter().filter(missing).collect();
    assert!(verbs.is_empty(), "{verbs:?}");
}

/// What differs from run to run, by a word for each.
fn steady(home: &Home, said: &Said) -> String {
    let mut text = format!("{}{}", said.out, said.err);
    let workspace = home.workspace().canonicalize().expect("it is there");
    for (path, word) in [(home.path(), "HOME"), (workspace, "WORKSPACE")] {
        text = text.replace(&path.display().to_string(), word);
    }
    for (pattern, word) in [
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r"(cb|holon)_\w+", "TOKEN"),
        (r"whsec_[\w+/=]+", "SECRET"),
        (" {30,}", "  "),
        // Texts name paths, and so are as long as these.
        (r"(?m)^(\w[\w ]*?) +\d+ +\d+$", "$1 N N"),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, word).into_owned();
    }
    text
}

#[test]
fn what_the_verbs_say_is_pinned() {
    // The second run goes on until it is aborted, and the agent rests from then on.
    let script = json!({"rounds": [{"text": "hello to you"}, {"wait_for": "never"}], "default": {"text": "noted"}});
    let home = Home::new().scripted(&script);
    std::fs::create_dir(home.workspace().join("part")).expect("a folder");
    let daemon = home.serve();
    let mut today = String::new();
    for line in STORY {
        let said = say(&home, &words(line));
        if *line == LONG {
            wait(
                daemon.wait("main", 0, |event| {
                    event.kind == "round_attempted" && event.data["payload"]["run"] == "run-2"
                }),
            );
        }
        let code = said.code.filter(|code| *code != 0).map(|code| format!("-> {code}\n")).unwrap_or_default();
        write!(today, "$ holon {line}\n{}{code}\n", steady(&home, &said)).expect("a string takes all");
    }
    let path = pinned::path(GOLDEN);
    if pinned::is_writing("UPDATE_VERBS") {
        pinned::write(&path, today.as_bytes());
    }
    let golden = pinned::read_text(&path);
    let differs = golden.lines().zip(today.lines()).find(|(golden, today)| golden != today);
    assert!(golden == today, "{differs:?}: `UPDATE_VERBS=1 cargo test cli_help` writes {GOLDEN}:\n{today}");
}

#[test]
fn every_verb_says_when_the_server_is_not_there() {
    let home = Home::new();
    for line in asking() {
        say(&home, &words(line)).refused(3, &["cannot reach holon at", "holon serve"]);
    }
}

#[test]
fn every_verb_says_when_the_token_is_wrong() {
    let elsewhere = Home::new().environment("HOLON_CONTROL_TOKEN", "the-wrong-control-token");
    let lines: Vec<&str> = asking().chain(["ledger verify", "run x"]).collect();
    // More failures than these are not listened to.
    for lines in lines.chunks(8) {
        let daemon = Home::new().environment("HOLON_CONTROL_TOKEN", "the-right-control-token").serve();
        for line in lines {
            let arguments = [&words(line)[..], &["--server", &daemon.url]].concat();
            say(&elsewhere, &arguments).refused(1, &["token is missing or wrong", "--token-file"]);
        }
    }
}

#[test]
fn every_verb_of_one_agent_says_when_there_is_no_such_agent() {
    let home = Home::new();
    std::fs::create_dir(home.workspace().join("part")).expect("a folder");
    let _daemon = home.serve();
    let mut asked = 0;
    for line in asking().map(|line| line.replace(" --agent other", "")) {
        let verb: Vec<&str> = words(&line).into_iter().take(if line.starts_with("agent ") { 2 } else { 1 }).collect();
        let arguments = match verb[..] {
            ["agent", "list" | "create"] | ["token"] => continue,
            ["events"] if line.contains("--home") => continue,
            ["agent", "model"] => vec!["agent", "model", "builtin/runbook", "--agent", "nobody"],
            ["agent", "webhook-secret"] => vec!["agent", "webhook-secret", "clear", "--agent", "nobody"],
            ["agent", "drop-messages"] => vec!["agent", "drop-messages", "nobody", "--all"],
            ["agent", verb] => vec!["agent", verb, "nobody"],
            _ => [words(&line), vec!["--agent", "nobody"]].concat(),
        };
        say(&home, &arguments).refused(1, &["there is no such agent", "agents"]);
        asked += 1;
    }
    assert!(asked > 30, "{asked} verbs were asked");
}

#[test]
fn every_verb_answers_in_json_when_asked_to() {
    let home = Home::new();
    let _daemon = home.serve();
    for line in STORY {
        let said = say(&home, &[&words(line)[..], &["--json"]].concat());
        if said.code == Some(0) {
            let lines = serde_json::Deserializer::from_str(&said.out).into_iter::<serde_json::Value>();
            assert!(lines.into_iter().all(|value| value.is_ok()) && !said.out.is_empty(), "{line}: {said:?}");
        }
    }
}

#[test]
fn a_guide_and_the_completions_are_read_without_a_server() {
    let home = Home::new();
    let all = say(&home, &["help"]);
    let (_, guides) = all.data().split_once("Guides, by holon help TOPIC:\n").expect("they are named");
    for name in guides.split(',').map(str::trim) {
        let guide = say(&home, &["help", name]);
        assert!(guide.data().starts_with("# "), "{name}: {guide:?}");
        assert_eq!(say(&home, &["help", name, "--json"]).json(), json!({"topic": name, "text": guide.data()}));
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = say(&home, &["completions", shell]);
        assert!(script.data().contains("workspace"), "{script:?}");
    }
    say(&home, &["completions", "tcsh"]);
    assert!(!home.path().exists(), "nothing was made");
}

#[test]
fn what_an_agent_said_is_told_oldest_first() {
    let home = Home::new();
    let daemon = home.serve();
    for word in ["one", "two", "three"] {
        assert_eq!(say(&home, &["run", &format!("say: {word}")]).code, Some(0));
    }
    let tail = say(&home, &["tail", "--limit", "1"]);
    assert!(tail.data().ends_with("  run-3  result\n  three\n"), "{tail:?}");
    let texts = |said: Said| {
        said.json().as_array().expect("a list").iter().map(|brief| brief["text"].clone()).collect::<Vec<_>>()
    };
    let told = texts(say(&home, &["tail", "--json"]));
    let answers: Vec<_> =
        told.iter().filter(|text| !text.as_str().is_some_and(|text| text.starts_with("run-"))).collect();
    assert_eq!(answers, ["one", "two", "three"]);
    wait(async {
        let message = daemon.prompt("main", "$ echo called").await;
        daemon.answer("main", &message).await;
    });
    let transcript = say(&home, &["transcript"]);
    let data = transcript.data();
    let [asked, called, came] =
        ["$ echo called", "-> ExecCommand echo called", "| called"].map(|words| data.find(words));
    assert!(asked.is_some() && asked < called && called < came, "{data}");
    say(&home, &["run", "spawn in a worktree: what no repository allows"]);
    let transcript = say(&home, &["transcript"]);
    assert!(transcript.data().contains("tool_results 1\n  {\"kind\":\"invalid_tool_input\""), "{transcript:?}");
}
