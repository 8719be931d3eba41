//! Waits, timers and external triggers: as the state holds them, and once they have left it.
//!
//! The shapes are those that models are shown, with the names that clients of the control plane read beside them.

use crate::events::queue::DerivedFrom;
use crate::events::waiting::{
    DeliveryMode, Recoverability, TimerCreated, TriggerCreated, WaitCreated, WaitingEvent, WakeOn,
};
use crate::events::{Envelope, Event};
use crate::fold::waiting::{Timer, Trigger, Wait};
use crate::tools::view;
use crate::words::id::{AgentId, TimerId, TriggerId, WaitId};
use serde_json::{Value, json};

/// A timer that is set.
pub fn timer(agent: &AgentId, id: TimerId, timer: &Timer) -> Value {
    let mut shown = view::timer(id, timer);
    shown["agent_id"] = json!(agent);
    shown
}

/// A timer that brings nothing more, told by its first and its last event.
pub fn ended_timer(agent: &AgentId, first: &Envelope, last: &Envelope) -> Option<Value> {
    let Event::Waiting(WaitingEvent::TimerCreated(created)) = &first.event else { return None };
    let fired = matches!(&last.event, Event::Waiting(WaitingEvent::TimerFired(_)));
    let mut shown = timer(agent, created.timer, &timer_of(created, first));
    shown["status"] = json!(if fired { "completed" } else { "cancelled" });
    shown["next_fire_at"] = Value::Null;
    shown["last_fired_at"] = json!(fired.then_some(last.at));
    // How often an interval fired before it was cancelled is told by its events alone.
    shown["fire_count"] = if fired || created.interval_ms.is_none() { json!(u8::from(fired)) } else { Value::Null };
    shown["ended_at"] = json!(last.at);
    Some(shown)
}

fn timer_of(created: &TimerCreated, first: &Envelope) -> Timer {
    Timer {
        created: first.seq,
        created_at: first.at,
        duration_ms: created.duration_ms,
        interval_ms: created.interval_ms,
        due: first.at.after_ms(created.duration_ms),
        summary: created.summary.clone(),
        work: created.work,
        fired: 0,
        fired_at: None,
        derived: DerivedFrom::or_operator(created.derived_from.as_ref()),
    }
}

/// A wait that is open.
pub fn wait(agent: &AgentId, id: WaitId, wait: &Wait) -> Value {
    let mut shown = view::wait(id, wait);
    let kind = match wait.wake {
        WakeOn::OperatorInput => "operator",
        WakeOn::TaskResult(_) => "task",
        WakeOn::External { .. } => "external",
        WakeOn::Timer { .. } => "timer",
    };
    let why = match &wait.recoverability {
        Some(Recoverability::ExplicitNoFallback(why)) => Some(why),
        Some(Recoverability::Recoverable | Recoverability::Weak) | None => None,
    };
    shown["agent_id"] = json!(agent);
    shown["kind"] = json!(kind);
    shown["waiting_for"] = json!(wait.reason);
    shown["subject_ref"] = shown["resource"].clone();
    shown["external_recoverability"] = shown["recoverability"].clone();
    shown["no_fallback_reason"] = json!(why);
    shown["updated_at"] = json!(wait.created_at);
    shown
}

/// A wait that is over, told by its first and its last event.
pub fn ended_wait(agent: &AgentId, first: &Envelope, last: &Envelope) -> Option<Value> {
    let Event::Waiting(WaitingEvent::WaitCreated(created)) = &first.event else { return None };
    let Event::Waiting(end) = &last.event else { return None };
    let mut shown = wait(agent, created.wait, &wait_of(created, first));
    shown["status"] = json!(end_of_wait(end)?);
    shown["updated_at"] = json!(last.at);
    shown["ended_at"] = json!(last.at);
    Some(shown)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other event ends a wait")]
fn end_of_wait(end: &WaitingEvent) -> Option<&'static str> {
    match end {
        WaitingEvent::WaitConsumed(_) => Some("consumed"),
        WaitingEvent::WaitCancelled(_) => Some("cancelled"),
        WaitingEvent::WaitSuperseded(_) => Some("superseded"),
        WaitingEvent::WaitExpired(_) => Some("expired"),
        _ => None,
    }
}

fn wait_of(created: &WaitCreated, first: &Envelope) -> Wait {
    Wait {
        created: first.seq,
        created_at: first.at,
        owner: created.owner.clone(),
        wake: created.wake.clone(),
        reason: created.reason.clone(),
        due: None,
        recoverability: created.recoverability.clone(),
        triggered: None,
        derived: DerivedFrom::or_operator(created.derived_from.as_ref()),
    }
}

/// A wait for the outside, under its older name.
pub fn intent(agent: &AgentId, id: WaitId, wait: &Wait) -> Value {
    let shown = view::wait(id, wait);
    json!({
        "id": id,
        "agent_id": agent,
        "scope": if wait.work().is_some() { "work_item" } else { "agent" },
        "work_item_id": wait.work(),
        "description": wait.reason,
        "source": "external",
        "resource": shown["resource"],
        "condition": null,
        "delivery_mode": "wake_hint",
        "status": "active",
        "trigger_count": 0,
        "created_at": wait.created_at,
        "cancelled_at": null,
        "last_triggered_at": null,
    })
}

/// An external trigger. Its URL is known to whoever was given it, and to nobody else.
pub fn trigger(agent: &AgentId, id: TriggerId, trigger: &Trigger) -> Value {
    json!({
        "id": id,
        "external_trigger_id": id,
        "agent_id": agent,
        "target_agent_id": agent,
        "scope": if trigger.work.is_some() { "work_item" } else { "agent" },
        "work_item_id": trigger.work,
        "label": trigger.label,
        "delivery_mode": delivery_mode(trigger.mode),
        "status": "active",
        "trigger_url": null,
        "delivery_count": trigger.deliveries,
        "created_at": trigger.created_at,
        "revoked_at": null,
        "last_delivered_at": trigger.delivered_at,
    })
}

/// A trigger that was revoked, told by its first and its last event.
pub fn revoked_trigger(agent: &AgentId, first: &Envelope, last: &Envelope) -> Option<Value> {
    let Event::Waiting(WaitingEvent::TriggerCreated(created)) = &first.event else { return None };
    let mut shown = trigger(agent, created.trigger, &trigger_of(created, first));
    shown["status"] = json!("revoked");
    shown["revoked_at"] = json!(last.at);
    // What it delivered before is told by its events alone.
    shown["delivery_count"] = Value::Null;
    Some(shown)
}

fn trigger_of(created: &TriggerCreated, first: &Envelope) -> Trigger {
    Trigger {
        created: first.seq,
        created_at: first.at,
        mode: created.mode,
        token_hash: created.token_hash,
        label: created.label.clone(),
        work: created.work,
        deliveries: 0,
        delivered_at: None,
    }
}

/// A mode under the name that clients read.
pub fn delivery_mode(mode: DeliveryMode) -> &'static str {
    match mode {
        DeliveryMode::Wake => "wake_hint",
        DeliveryMode::Enqueue => "enqueue_message",
    }
}

/// A mode by either of its names.
pub fn delivery_mode_named(name: &str) -> Option<DeliveryMode> {
    match name {
        "wake_hint" | "wake_only" => Some(DeliveryMode::Wake),
        "enqueue_message" => Some(DeliveryMode::Enqueue),
        other => DeliveryMode::from_name(other),
    }
}
