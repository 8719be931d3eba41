//! `holon agent model`, `holon debug prompt`: whom an agent asks, and what it would be asked.

use super::agent::{AgentArg, PromptArgs};
use super::{Globals, Outcome, print};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

#[derive(Args)]
pub(super) struct ModelArgs {
    /// The model that is asked first, from the next turn on; when not given, all that are known are listed.
    model: Option<String>,
    /// Go back to the server's models.
    #[arg(long, conflicts_with = "model")]
    clear: bool,
    #[command(flatten)]
    agent: AgentArg,
}

#[derive(Subcommand)]
pub(super) enum DebugVerb {
    /// What the model would be sent if this were prompted now; nobody is asked.
    Prompt(PromptArgs),
}

pub(super) async fn model(globals: &Globals, args: &ModelArgs) -> Outcome {
    let client = globals.client()?;
    let id = args.agent.id(&client).await?;
    let (path, body) = match &args.model {
        None if !args.clear => {
            let chosen = client.get(&format!("/agents/{id}/status")).await?["model"]["effective_model"].clone();
            return list(globals, &client.get("/models").await?, &chosen);
        }
        None => ("model/clear", json!({})),
        Some(model) => ("model", json!({"model": model})),
    };
    let answer = client.post(&format!("/control/agents/{id}/{path}"), &body).await?;
    let text = format!("{id} asks {}", print::text(&answer["model"]["effective_model"]));
    print::done(globals.json, &answer, &text)
}

fn list(globals: &Globals, models: &Value, chosen: &Value) -> Outcome {
    if globals.json {
        print::json(models);
        return Ok(());
    }
    let row = |(model, is_available): (&String, &Value)| {
        let used = if chosen == model { "asked" } else { "" };
        let is_available = if *is_available == true { "yes" } else { "no" };
        vec![model.clone(), is_available.to_owned(), used.to_owned()]
    };
    let rows: Vec<Vec<String>> = models["model_availability"].as_object().into_iter().flatten().map(row).collect();
    print::table(&["MODEL", "CONFIGURED", "USE"], &rows);
    Ok(())
}

pub(super) async fn debug(globals: &Globals, verb: &DebugVerb) -> Outcome {
    let DebugVerb::Prompt(args) = verb;
    let client = globals.client()?;
    let id = args.agent.id(&client).await?;
    let answer = client.post(&format!("/control/agents/{id}/debug-prompt"), &json!({"text": args.text})).await?;
    print::done(globals.json, &answer, print::text(&answer["dump"]).trim_end())
}
