//! Recap: what earlier rounds of a long turn came to, in their place (semantics 3, Limits).
//!
//! When the next prompt would outgrow the context budget, the rounds before the last two give way to one section. What
//! an operator said meanwhile stays word for word.

use super::request::{Part, ToolResultPart};
use super::{Contents, Missing};
use crate::events::turn::{Section, SectionKind};
use crate::fold::turn::{Fresh, Turn};
use crate::words::content::excerpt;
use crate::words::hash::Hash;
use crate::words::limit::{BYTES_PER_TOKEN, DIGEST_LINE_BYTES_MAX, RECAP_BYTES_MAX};
use crate::words::prompt_text::{Label, PromptText};
use serde::Deserialize;

/// Rounds that always stay as they are.
const ROUNDS_KEPT: usize = 2;

/// The bytes that a prompt of the turn may have.
pub(super) fn budget_bytes(turn: &Turn) -> u64 {
    turn.policy.context_tokens_max.saturating_mul(BYTES_PER_TOKEN)
}

/// The bytes of prompts that join one round together: what is left for more of them and for the work itself.
pub(super) fn portion_bytes_max(turn: &Turn) -> u64 {
    budget_bytes(turn) / 2
}

/// The sections that give way to a recap, by their places; none while the prompt is within its budget.
pub(super) fn dropped(turn: &Turn) -> Option<std::ops::Range<usize>> {
    let kept: u64 = turn.sections.iter().map(|section| section.bytes).sum();
    let fresh: u64 = turn.fresh.iter().map(bytes).sum();
    // A little is left for labels, envelopes and prompts that join.
    if kept + fresh <= budget_bytes(turn) / 10 * 9 {
        return None;
    }
    let opening = turn.sections.iter().position(|section| section.kind == SectionKind::Message)? + 1;
    let is_round = |section: &Section| section.kind == SectionKind::Assistant;
    let rounds: Vec<usize> = (opening..turn.sections.len()).filter(|at| is_round(&turn.sections[*at])).collect();
    // What is fresh is the last round itself, or the results of it.
    let end = *rounds.get(rounds.len().checked_sub(ROUNDS_KEPT)?)?;
    (end > opening + 1).then_some(opening..end)
}

fn bytes(fresh: &Fresh) -> u64 {
    match fresh {
        Fresh::Assistant(section) => section.bytes,
        Fresh::ToolResult { bytes, .. } => *bytes,
    }
}

/// The stored sections that a recap is made of.
pub(super) fn hashes(turn: &Turn) -> impl Iterator<Item = Hash> {
    let range = dropped(turn).unwrap_or_default();
    turn.sections[range].iter().filter(|section| is_told(section)).map(|section| section.hash)
}

fn is_told(section: &Section) -> bool {
    matches!(section.kind, SectionKind::Assistant | SectionKind::ToolResult | SectionKind::Recap)
}

/// The recap of the sections at `range`.
pub(super) fn text(turn: &Turn, range: std::ops::Range<usize>, contents: &Contents) -> Result<PromptText, Missing> {
    let mut told = PromptText::new();
    for section in turn.sections[range].iter().filter(|section| is_told(section)) {
        let bytes = contents.blobs.get(&section.hash).ok_or(Missing::Blob(section.hash))?;
        told = match Part::read(section.kind, bytes).map_err(|_| Missing::Blob(section.hash))? {
            Part::User(earlier) => told.line().own_text(&below_label(&earlier)),
            Part::Assistant(said) => {
                let text = told.line().own("you said:").quote_item("", first_line(&said.text));
                said.calls.iter().fold(text, |text, call| {
                    text.own("call ").name(&call.tool).own(":").quote_item("", first_line(&call.arguments))
                })
            }
            Part::ToolResult(result) => {
                told.line().own("result of ").name(&result.tool).own(":").quote_item("", first_line(&summary(&result)))
            }
            Part::System(_) => told,
        };
    }
    let label = PromptText::new().own("recap of earlier rounds of this turn, made by the runtime");
    Ok(PromptText::new().label(Label::Recap, &label).line().own_text(&told.last_lines(RECAP_BYTES_MAX)))
}

/// An earlier recap, without its label.
fn below_label(recap: &str) -> PromptText {
    PromptText::kept(recap.split_once('\n').map_or("", |(_, told)| told))
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    summary_text: String,
}

fn summary(result: &ToolResultPart) -> String {
    let envelope = serde_json::from_str::<Envelope>(&result.text);
    envelope.map(|envelope| envelope.summary_text).unwrap_or_default()
}

fn first_line(text: &str) -> &str {
    excerpt(text.lines().next().unwrap_or_default(), DIGEST_LINE_BYTES_MAX)
}
