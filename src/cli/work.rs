//! `holon work …`: what an agent is to achieve.

use super::agent::{AgentArg, ListArgs};
use super::{Globals, Outcome, print};
use crate::words::id::WorkId;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

/// Characters of an objective that a row has room for.
const OBJECTIVE_CHARS_MAX: usize = 60;

#[derive(Subcommand)]
pub(super) enum WorkVerb {
    /// What is open, then what was completed.
    List(ListArgs),
    /// One item in full.
    Show(OneItem),
    /// Open an item.
    Create {
        /// What is to be achieved.
        objective: String,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Alter an item; what is not given stays.
    Update(Box<UpdateArgs>),
    /// Take an item into focus.
    Pick(OneItem),
    /// Complete an item, for good.
    Complete {
        #[command(flatten)]
        item: OneItem,
        /// What came of it.
        #[arg(long, value_name = "TEXT")]
        report: Option<String>,
    },
}

#[derive(Args)]
pub(super) struct OneItem {
    /// Such as work-2.
    id: WorkId,
    #[command(flatten)]
    agent: AgentArg,
}

#[derive(Args)]
pub(super) struct UpdateArgs {
    #[command(flatten)]
    item: OneItem,
    /// What is to be achieved.
    #[arg(long, value_name = "TEXT")]
    objective: Option<String>,
    /// How it is to be achieved.
    #[arg(long, value_name = "TEXT")]
    plan: Option<String>,
    /// draft, ready or needs_input
    #[arg(long, value_name = "STATUS")]
    plan_status: Option<String>,
    /// What must hold for it to be done.
    #[arg(long, value_name = "TEXT")]
    acceptance: Option<String>,
    /// What stands in its way; an empty text clears it.
    #[arg(long, value_name = "TEXT")]
    blocked_by: Option<String>,
    /// When to look at the blocker again.
    #[arg(long, value_name = "MS", requires = "blocked_by")]
    recheck_after_ms: Option<u64>,
    /// What the result is delivered to.
    #[arg(long, value_name = "TEXT")]
    delivery_target: Option<String>,
}

pub(super) async fn dispatch(globals: &Globals, verb: &WorkVerb) -> Outcome {
    match verb {
        WorkVerb::List(args) => list(globals, args).await,
        WorkVerb::Show(item) => {
            let client = globals.client()?;
            let id = item.agent.id(&client).await?;
            print::record(globals.json, &client.get(&format!("/agents/{id}/work-items/{}", item.id)).await?)
        }
        WorkVerb::Create { objective, agent } => {
            let client = globals.client()?;
            let id = agent.id(&client).await?;
            let body = json!({"objective": objective});
            let made = client.post(&format!("/control/agents/{id}/work-items"), &body).await?;
            let text = format!("{} of {id} is open", print::text(&made["id"]));
            print::done(globals.json, &made, &text)
        }
        WorkVerb::Update(args) => alter(globals, &args.item, "update", &args.body(), "altered").await,
        WorkVerb::Pick(item) => alter(globals, item, "pick", &json!({}), "in focus").await,
        WorkVerb::Complete { item, report } => {
            alter(globals, item, "complete", &json!({"result_summary": report}), "completed").await
        }
    }
}

async fn list(globals: &Globals, args: &ListArgs) -> Outcome {
    let items = args.page(&globals.client()?, "work-items").await?;
    let row = |item: &Value| {
        vec![
            print::text(&item["id"]),
            print::text(&item["scheduling"]),
            print::text(&item["reason"]),
            print::cut(&print::text(&item["objective"]), OBJECTIVE_CHARS_MAX),
        ]
    };
    print::list(globals.json, items, &["ITEM", "STANDS", "REASON", "OBJECTIVE"], row)
}

async fn alter(globals: &Globals, item: &OneItem, verb: &str, body: &Value, word: &str) -> Outcome {
    let client = globals.client()?;
    let id = item.agent.id(&client).await?;
    let answer = client.post(&format!("/control/agents/{id}/work-items/{}/{verb}", item.id), body).await?;
    print::done(globals.json, &answer, &format!("{} of {id} is {word}", item.id))
}

impl UpdateArgs {
    fn body(&self) -> Value {
        let texts = [
            ("objective", &self.objective),
            ("plan", &self.plan),
            ("plan_status", &self.plan_status),
            ("acceptance", &self.acceptance),
            ("blocked_by", &self.blocked_by),
            ("delivery_target", &self.delivery_target),
        ];
        let given = texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?))));
        let recheck = self.recheck_after_ms.map(|after_ms| ("recheck_after_ms".to_owned(), json!(after_ms)));
        Value::Object(given.chain(recheck).collect::<Map<_, _>>())
    }
}
