//! `holon events`: the record of an agent, as far back as it goes, and on as it grows.

use super::agent::named;
use super::{Globals, Outcome, print};
use clap::Args;
use futures::StreamExt;
use serde_json::Value;

#[derive(Args)]
pub(super) struct EventsArgs {
    /// The agent; the default agent when not given.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Go on printing as events are recorded.
    #[arg(long, short)]
    follow: bool,
    /// Only events after this one.
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// How many at most: the last ones, or the first after --after.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// operator, or local_debug for the raw record.
    #[arg(long, default_value = "operator")]
    projection: String,
}

pub(super) async fn events(globals: &Globals, args: &EventsArgs) -> Outcome {
    let client = globals.client()?;
    let id = named(&client, args.agent.as_deref()).await?;
    let projection = &args.projection;
    if args.follow {
        let mut path = format!("/agents/{id}/events/stream?projection={projection}");
        if let Some(after) = args.after {
            path.push_str(&format!("&after_seq={after}"));
        }
        if let Some(limit) = args.limit {
            path.push_str(&format!("&limit={limit}"));
        }
        let mut stream = client.stream(&path).await?;
        while let Some(event) = stream.next().await {
            show(globals, &event?.data);
        }
        return Ok(());
    }
    let mut path = format!("/agents/{id}/events?projection={projection}");
    let order = if args.after.is_some() { "asc" } else { "desc" };
    path.push_str(&format!("&order={order}"));
    if let Some(after) = args.after {
        path.push_str(&format!("&after_seq={after}"));
    }
    if let Some(limit) = args.limit {
        path.push_str(&format!("&limit={limit}"));
    }
    let page = client.get(&path).await?;
    let mut shown: Vec<&Value> = page["events"].as_array().map(Vec::as_slice).unwrap_or_default().iter().collect();
    if order == "desc" {
        shown.reverse();
    }
    shown.into_iter().for_each(|event| show(globals, event));
    Ok(())
}

fn show(globals: &Globals, event: &Value) {
    if globals.json {
        return print::json_line(event);
    }
    let (seq, time, kind) = (print::text(&event["event_seq"]), print::text(&event["ts"]), print::text(&event["type"]));
    print::data(&format!("{seq:>6}  {time}  {kind:<22} {}", event["payload"]));
}
