//! `holon help TOPIC`, `holon completions SHELL`: what can be read about the command line without a server.

use super::{Cli, Failure, Globals, Outcome, print};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

/// The guides, in the order in which they are best read.
pub(super) const GUIDES: &[(&str, &str)] = &[
    ("first-agent", include_str!("../guide/first-agent.md")),
    ("long-work", include_str!("../guide/long-work.md")),
    ("skills", include_str!("../guide/skills.md")),
    ("webhooks", include_str!("../guide/webhooks.md")),
    ("transports", include_str!("../guide/transports.md")),
    ("crash", include_str!("../guide/crash.md")),
    ("providers", include_str!("../guide/providers.md")),
    ("security", include_str!("../guide/security.md")),
    ("operations", include_str!("../guide/operations.md")),
    ("problem-codes", include_str!("../guide/problem-codes.md")),
    ("event-kinds", include_str!("../guide/event-kinds.md")),
];

/// Where the guides are named.
pub(super) const AFTER_HELP: &str = "\
Guides, by holon help TOPIC:
  first-agent, long-work, skills, webhooks, transports, crash, providers, security, operations,
  problem-codes, event-kinds";

#[derive(Args)]
pub(super) struct HelpArgs {
    /// A guide, or a verb; all verbs and guides when not given.
    topic: Vec<String>,
}

#[derive(Args)]
pub(super) struct CompletionsArgs {
    /// The shell that is to complete.
    shell: Shell,
}

pub(super) fn help(globals: &Globals, args: &HelpArgs) -> Outcome {
    let topic = args.topic.join(" ");
    let guide = GUIDES.iter().find(|(name, _)| *name == topic);
    let text = guide.map(|(_, text)| (*text).to_owned()).or_else(|| verb(&args.topic));
    let unknown = || Failure::Usage(format!("there is no guide and no verb {topic:?}; holon help names them all"));
    let text = text.ok_or_else(unknown)?;
    print::done(globals.json, &json!({"topic": topic, "text": text}), text.trim_end())
}

/// The help of a verb, as `holon VERB --help` has it.
fn verb(path: &[String]) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    let verb = path.iter().try_fold(&mut command, |command, name| command.find_subcommand_mut(name))?;
    Some(verb.render_help().to_string())
}

pub(super) fn completions(globals: &Globals, args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "holon", &mut script);
    let script = String::from_utf8_lossy(&script);
    print::done(globals.json, &json!({"shell": args.shell.to_string(), "script": script}), script.trim_end())
}
