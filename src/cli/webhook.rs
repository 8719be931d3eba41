//! `holon agent webhook-secret`: what webhooks must be signed with.

use super::agent::AgentArg;
use super::{Failure, Globals, Outcome, print};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use std::io::{read_to_string, stdin};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct SecretArgs {
    /// Have one that counts from now on, alone or beside the one before for another day; or let webhooks come unsigned.
    action: Action,
    /// A file that holds the secret, or - for standard input; one is drawn when not given, and shown this once.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    agent: AgentArg,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Action {
    Set,
    Rotate,
    Clear,
}

pub(super) async fn secret(globals: &Globals, args: &SecretArgs) -> Outcome {
    let client = globals.client()?;
    let id = args.agent.id(&client).await?;
    let secret = args.secret_file.as_deref().map(secret_in).transpose()?;
    let body = json!({"action": args.action, "secret": secret});
    let answer = client.post(&format!("/control/agents/{id}/webhook-secret"), &body).await?;
    let text = match answer["secret"].as_str() {
        Some(drawn) => {
            print::hint("give it to who sends the webhooks: it is shown this once");
            drawn.to_owned()
        }
        None if args.action == Action::Clear => format!("webhooks of {id} need no signature"),
        None => format!("webhooks of {id} must be signed"),
    };
    print::done(globals.json, &answer, &text)
}

/// The line break with which a file ends is not the secret's.
fn secret_in(path: &Path) -> Result<String, Failure> {
    let text = if path == Path::new("-") { read_to_string(stdin()) } else { std::fs::read_to_string(path) };
    let text = text.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
