//! Metrics in the text form that Prometheus reads. Labels come from closed lists alone: no agent has its own series.

use super::Shared;
use super::auth::FailureCounts;
use super::extract::{Nothing, Query};
use super::reply::Failure;
use crate::fold::posture::PostureKind;
use crate::runtime::meter::{APPEND_BUCKETS_US, Counts};
use crate::runtime::permit::Occupied;
use crate::words::limit::PAGE_MAX;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(app): State<Shared>, _: Query<Nothing>) -> Result<Response, Failure> {
    let mut page = Page::default();
    page.appends(&app.handle.counts());
    page.agents(&agents(&app).await?);
    let occupancy = app.handle.occupancy();
    page.gauge("holon_loops_awake", "Agents that are loaded.", occupancy.agents_awake);
    page.gauge("holon_agents_quarantined", "Agents that are set apart.", app.handle.quarantined().len());
    let (open, behind) = app.frames.subscribers();
    page.gauge("holon_subscribers", "Event streams that are open.", open);
    page.gauge("holon_subscribers_behind", "Event streams that have not yet sent all there is.", behind);
    page.gauge("holon_request_bodies_bytes", "What request bodies under way hold together.", app.bodies_bytes());
    page.failures(app.auth.counts());
    let effects = [
        ("turn", occupancy.turns),
        ("model_call", occupancy.model_calls),
        ("command", occupancy.commands),
        ("background_command", occupancy.background_commands),
    ];
    page.head("holon_effects", "gauge", "Effects that run, and that wait for a place.");
    for (kind, Occupied { running, waiting, .. }) in effects {
        page.line(&format!("holon_effects{{kind=\"{kind}\",state=\"running\"}}"), running);
        page.line(&format!("holon_effects{{kind=\"{kind}\",state=\"waiting\"}}"), waiting);
    }
    Ok(([(CONTENT_TYPE, FORMAT)], page.0).into_response())
}

/// What the list rows of all agents add up to.
#[derive(Default)]
struct Sums {
    postures: BTreeMap<&'static str, u64>,
    messages_waiting: u64,
    tasks_open: u64,
    deliveries_owed: u64,
    /// Agents whose row cannot be read.
    unreadable: u64,
}

async fn agents(app: &Shared) -> Result<Sums, Failure> {
    let mut sums = Sums { postures: PostureKind::ALL.iter().map(|kind| (kind.name(), 0)).collect(), ..Sums::default() };
    let mut seen = None;
    loop {
        let rows = app.handle.list(seen, PAGE_MAX).await?;
        let Some((last, ..)) = rows.last() else { return Ok(sums) };
        seen = Some(last.clone());
        for (_, row, _) in rows {
            let Some(row) = row else {
                sums.unreadable += 1;
                continue;
            };
            *sums.postures.entry(row.posture.name()).or_default() += 1;
            sums.messages_waiting += row.messages_waiting;
            sums.tasks_open += row.tasks_open;
            sums.deliveries_owed += row.deliveries_owed;
        }
    }
}

/// The text so far. Writing into a string cannot fail, hence the ignored results.
#[derive(Default)]
struct Page(String);

impl Page {
    fn appends(&mut self, counts: &Counts) {
        self.counter("holon_commits_total", "Transactions, each of as many appends as waited.", counts.commits);
        self.counter("holon_append_failures_total", "Appends that did not become durable.", counts.failures);
        self.counter("holon_events_total", "Events that became durable.", counts.events);
        self.head("holon_append_seconds", "histogram", "Time until an append was durable.");
        for (bound, count) in APPEND_BUCKETS_US.iter().zip(counts.buckets) {
            self.line(&format!("holon_append_seconds_bucket{{le=\"{}\"}}", seconds(*bound)), count);
        }
        self.line("holon_append_seconds_bucket{le=\"+Inf\"}", counts.appends);
        self.line("holon_append_seconds_sum", seconds(counts.append_us));
        self.line("holon_append_seconds_count", counts.appends);
    }

    fn failures(&mut self, counts: &FailureCounts) {
        let (failed, refused) = (counts.failed.load(Ordering::Relaxed), counts.refused.load(Ordering::Relaxed));
        let failures = "Requests without the right token or signature.";
        self.counter("holon_authentication_failures_total", failures, failed);
        self.counter("holon_authentication_refusals_total", "Those of them that were answered 429.", refused);
    }

    fn agents(&mut self, sums: &Sums) {
        self.head("holon_agents", "gauge", "Agents by their posture.");
        for (posture, count) in &sums.postures {
            self.line(&format!("holon_agents{{posture=\"{posture}\"}}"), count);
        }
        self.gauge("holon_queue_depth", "Messages that wait, of all agents.", sums.messages_waiting);
        self.gauge("holon_tasks_open", "Tasks that have not ended, of all agents.", sums.tasks_open);
        self.gauge("holon_deliveries_owed", "Deliveries that operators' transports are owed.", sums.deliveries_owed);
        self.gauge("holon_agents_unreadable", "Agents whose list entry cannot be read.", sums.unreadable);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, value);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, series: &str, value: impl Display) {
        let _ = writeln!(self.0, "{series} {value}");
    }
}

/// Microseconds as seconds, in decimals.
fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
