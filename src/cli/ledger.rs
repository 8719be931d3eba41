//! `holon ledger …`
use super::{Globals, Outcome};
use clap::Subcommand;
#[derive(Subcommand)]
pub(super) enum LedgerVerb {
    /// Verify
    Verify,
}
pub(super) async fn dispatch(_: &Globals, _: &LedgerVerb) -> Outcome {
    Ok(())
}
