//! `holon binding …`, `holon notices`: how an agent reaches its operator, and what it wanted known.

use super::agent::{AgentArg, ListArgs};
use super::waiting::{end, show};
use super::{Globals, Outcome, print};
use crate::words::id::BindingId;
use clap::Subcommand;
use serde_json::Value;

/// Characters of a text that a row has room for.
const TEXT_CHARS_MAX: usize = 60;

#[derive(Subcommand)]
pub(super) enum BindingVerb {
    /// What is bound, then what was revoked. Secrets are not shown.
    List(ListArgs),
    /// One binding in full, without its secrets.
    Show {
        /// Such as opbind-1.
        id: BindingId,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Have a transport carry nothing more; what it was owed goes with it.
    Revoke {
        /// Such as opbind-1.
        id: BindingId,
        #[command(flatten)]
        agent: AgentArg,
    },
}

pub(super) async fn dispatch(globals: &Globals, verb: &BindingVerb) -> Outcome {
    match verb {
        BindingVerb::List(args) => list(globals, args).await,
        BindingVerb::Show { id, agent } => show(globals, agent, "operator-bindings", id).await,
        BindingVerb::Revoke { id, agent } => {
            end(globals, agent, &format!("operator-bindings/{id}/revoke"), id, "revoked").await
        }
    }
}

async fn list(globals: &Globals, args: &ListArgs) -> Outcome {
    let bindings = args.page(&globals.client()?, "operator-bindings").await?;
    let row = |binding: &Value| {
        let names = ["id", "binding_id", "transport", "status", "owed_count", "last_failure"];
        names.map(|name| print::cut(&print::text(&binding[name]), TEXT_CHARS_MAX)).to_vec()
    };
    print::list(globals.json, bindings, &["BINDING", "NAME", "TRANSPORT", "STATUS", "OWED", "LAST FAILURE"], row)
}

pub(super) async fn notices(globals: &Globals, args: &ListArgs) -> Outcome {
    let notices = args.page(&globals.client()?, "operator-notifications").await?;
    let row = |notice: &Value| {
        let summary = print::text(&notice["summary"]).replace('\n', " ");
        vec![
            print::text(&notice["notification_id"]),
            print::text(&notice["created_at"]),
            print::text(&notice["work_item_id"]),
            print::cut(&summary, TEXT_CHARS_MAX),
        ]
    };
    print::list(globals.json, notices, &["NOTICE", "SINCE", "WORK", "SUMMARY"], row)
}
