//! `holon events`: the record of an agent, as far back as it goes, and on as it grows.

use super::agent::named;
use super::{Failure, Globals, Outcome, actor, print};
use crate::words::id::AgentId;
use clap::Args;
use futures::StreamExt;
use serde_json::Value;
use std::path::PathBuf;

/// Events shown when nothing says how many.
const LIMIT_DEFAULT: u64 = 128;
/// Characters of a payload on a line for people.
const PAYLOAD_CHARS_MAX: usize = 160;

#[derive(Args)]
pub(super) struct EventsArgs {
    /// The agent; the default agent when not given.
    #[arg(long, value_name = "ID", value_parser = AgentId::parse)]
    agent: Option<AgentId>,
    /// The events of the home itself: boots, shutdowns, settings, tokens. With a folder it is the folder of the ledgers,
    /// as everywhere.
    #[arg(id = "home", long, num_args = 0..=1, default_missing_value = "", value_name = "DIR", value_parser = folder)]
    home: Option<PathBuf>,
    /// Go on printing as events are recorded.
    #[arg(long, short)]
    follow: bool,
    /// Only events after this one.
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// How many at most: the first after --after, else the last ones.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// operator, or local_debug for the raw record.
    #[arg(long, default_value = "operator", value_parser = ["operator", "local_debug"])]
    projection: String,
}

pub(super) async fn events(globals: &Globals, args: &EventsArgs) -> Outcome {
    if args.is_of_home() && args.agent.is_some() {
        return Err(Failure::Usage("--home and --agent cannot be used together".into()));
    }
    let client = globals.client()?;
    let of = if args.is_of_home() {
        "/home".to_owned()
    } else {
        format!("/agents/{}", named(&client, args.agent.as_ref()).await?)
    };
    let ledger = client.get(&format!("{of}/ledger")).await?;
    let head = ledger["event_seq"].as_u64().unwrap_or(0);
    let (after, limit) = span(args, head);
    if limit == Some(0) {
        return Ok(());
    }
    let mut path = format!("{of}/events/stream?projection={}&after_seq={after}", args.projection);
    path.extend(limit.map(|limit| format!("&limit={limit}")));
    let mut stream = client.stream(&path).await?;
    let mut seen = after;
    while let Some(event) = stream.next().await {
        let event = event?;
        seen = event.seq;
        show(globals, &event.data);
    }
    match limit {
        Some(limit) if seen >= after.saturating_add(limit) => Ok(()),
        _ => Err(Failure::refused(
            format!("the server ended the stream after event {seen}"),
            &format!("go on with --after {seen} when it runs again"),
        )),
    }
}

impl EventsArgs {
    fn is_of_home(&self) -> bool {
        self.home.as_ref().is_some_and(|home| home.as_os_str().is_empty())
    }
}

/// A folder, or the empty text that stands for none.
fn folder(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(PathBuf::from(text))
}

/// After which event to begin, and how many to show; without an end when the ledger is followed.
fn span(args: &EventsArgs, head: u64) -> (u64, Option<u64>) {
    if args.follow {
        return (args.after.unwrap_or(head), args.limit);
    }
    let first = head.saturating_sub(args.limit.unwrap_or(LIMIT_DEFAULT));
    let after = args.after.unwrap_or(first);
    // One beyond the head is asked for all the same: the server says where the head is.
    let there = if after > head { 1 } else { head - after };
    (after, Some(args.limit.unwrap_or(there).min(there)))
}

fn show(globals: &Globals, event: &Value) {
    if globals.json {
        return print::json_line(event);
    }
    let (seq, time, kind) = (print::text(&event["event_seq"]), print::text(&event["ts"]), print::text(&event["type"]));
    let payload = print::cut(&event["payload"].to_string(), PAYLOAD_CHARS_MAX);
    let by = actor::in_words(&event["provenance"]["actor"]).map(|actor| format!("[{actor}] ")).unwrap_or_default();
    print::line(&format!("{seq:>6}  {time}  {kind:<22} {by}{payload}"));
}
