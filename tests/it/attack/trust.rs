//! Trust is never raised by passing text along (semantics 2).

use crate::story::tell;
use crate::world::World;
use holon::events::Event;
use holon::events::QueueEvent;
use holon::events::queue::{MessageEnqueued, Trust};
use serde_json::json;

/// Tells a story whose lines are parted by `; `. None of them is refused.
fn live(world: &mut World, story: &str) {
    for line in story.split(';').map(str::trim) {
        let told = tell(world, line);
        assert!(told.iter().all(|told| !told.starts_with('!') && !told.contains("refused")), "{line}: {told:?}");
    }
}

/// The messages of an agent and its children, in their order.
fn messages(world: &World) -> Vec<MessageEnqueued> {
    let own = world.ledger.iter().filter_map(|envelope| match &envelope.event {
        Event::Queue(QueueEvent::Enqueued(message)) => Some(message.clone()),
        _ => None,
    });
    own.chain(world.children.values().flat_map(messages)).collect()
}

/// A turn that answers `sender` makes all that a turn can make; what that leads to goes on in the same way.
fn chain(sender: &str) -> World {
    let mut world = World::new();
    live(&mut world, sender);
    live(
        &mut world,
        r#"begin; round; answer | Enqueue {"text":"dig on"} | SpawnAgent {"initial_message":"dig"}
           | SpawnAgent {"preset":"public_named","agent_id":"mole","initial_message":"dig"}
           | CreateTimer {"duration_ms":1000,"summary":"dig again"} | TaskInput {"task_id":"task-1","text":"deeper"}
           | exec dig | CreateWorkItem {"objective":"dig"} | WaitFor {"wake":"timer","after_ms":2000,"reason":"dig"};
           call; bring; call; bring {"agent_id":"mole"}; run task-2; promote task-2; hand task-1"#,
    );
    live(&mut world, "clock +1000; fire timer-1; clock +1000; due wait-1; exit task-2 0 dug; begin; round; answer dug");
    live(&mut world, "begin; round; answer dug; begin; round; answer dug; begin; round; answer dug");
    live(
        &mut world,
        r#"of main.c1 begin; of main.c1 round; of main.c1 answer | NotifyOperator {"message":"dug"}; take main.c1;
           of main.c1 round; of main.c1 answer dug; of main.c1 begin; of main.c1 round; of main.c1 answer dug;
           take main.c1; begin; round; answer dug; begin; round; answer dug"#,
    );
    // The work goes on by itself, and a turn for it makes another child.
    live(&mut world, r#"begin; round; answer | SpawnAgent {"initial_message":"dig for the work"}; call; bring"#);
    live(
        &mut world,
        r#"round; answer | UpdateWorkItem {"work_item_id":"work-1","blocker":"a stone","recheck_after_ms":5000}"#,
    );
    live(&mut world, "clock +5000; recheck");
    world
}

#[test]
fn what_a_turn_makes_is_trusted_no_more_than_the_message_that_it_answers() {
    for (sender, trust) in
        [("channel ops dig", Trust::UntrustedExternal), ("webhook ci dig", Trust::TrustedIntegration)]
    {
        let world = chain(sender);
        let messages = messages(&world);
        let raised: Vec<_> = messages.iter().filter(|message| message.trust != trust).collect();
        assert!(raised.is_empty(), "{sender}: {raised:#?}");
        let made: Vec<_> = messages.iter().map(|message| message.kind.name()).collect();
        assert!(made.len() == 13, "{made:?}");
    }
}

#[test]
fn what_an_operators_turn_makes_is_the_runtimes_and_says_that_it_derives_from_the_operator() {
    for message in messages(&chain("prompt dig")).iter().skip(1) {
        assert_eq!(message.trust, Trust::TrustedSystem, "{message:?}");
        let message = serde_json::to_value(message).unwrap();
        assert_eq!(message["derived_from"]["trust"], "trusted_operator", "{message}");
    }
}

#[test]
fn a_turn_that_took_in_an_operators_prompt_beside_a_webhook_makes_what_the_webhook_may() {
    let mut world = World::new();
    live(&mut world, r#"webhook ci dig; begin; prompt and hurry; round; answer | Enqueue {"text":"dig on"}"#);
    assert_eq!(messages(&world).last().unwrap().trust, Trust::TrustedIntegration);
}

#[test]
fn what_a_child_heard_from_outside_lowers_what_it_says() {
    let mut world = World::new();
    live(
        &mut world,
        r#"prompt dig; begin; round; answer | SpawnAgent {"initial_message":"dig"}; call; bring; round; answer it digs;
           of main.c1 trigger enqueue token ci; of main.c1 begin; of main.c1 round;
           of main.c1 answer | WaitFor {"wake":"external","reason":"a spade"};
           of main.c1 callback enqueue token a spade; of main.c1 begin; of main.c1 round;
           of main.c1 answer | NotifyOperator {"message":"the spade is here"}; take main.c1"#,
    );
    let notice = messages(&world).into_iter().rev().find(|message| message.kind.name() == "task_status").unwrap();
    assert_eq!(notice.trust, Trust::TrustedIntegration, "{notice:?}");
}

#[test]
fn work_keeps_the_least_trust_of_all_who_wrote_it() {
    let mut world = World::new();
    live(&mut world, "open dig; webhook ci deeper; begin; round; answer dug");
    live(
        &mut world,
        r#"begin; round; answer | UpdateWorkItem {"work_item_id":"work-1","plan":"deeper"}; round; answer dug"#,
    );
    let ticks: Vec<_> = messages(&world).into_iter().filter(|message| message.kind.name() == "system_tick").collect();
    let trust: Vec<_> = ticks.iter().map(|tick| tick.trust.name()).collect();
    assert_eq!(trust, ["trusted_system", "trusted_integration"]);
}

#[test]
fn a_wake_by_a_capability_is_not_the_operators() {
    let mut world = World::new();
    live(&mut world, "trigger wake token ci; wake look; callback wake token build; begin; round");
    live(&mut world, r#"answer | Enqueue {"text":"dig on"}"#);
    assert_eq!(messages(&world).last().unwrap().trust, Trust::TrustedIntegration);
    let mut world = World::new();
    live(&mut world, r#"wake look; begin; round; answer | Enqueue {"text":"dig on"}"#);
    assert_eq!(messages(&world).last().unwrap().trust, Trust::TrustedSystem);
}

#[test]
fn an_operators_input_reaches_the_child_with_a_trace_of_the_operator() {
    let mut world = World::new();
    live(
        &mut world,
        r#"channel ops dig; begin; round; answer | SpawnAgent {"initial_message":"dig"}; call; bring; round; answer it digs;
           input task-1 stop there; hand task-1"#,
    );
    let heard = messages(&world.children.into_values().next().unwrap());
    let shown: Vec<_> =
        heard.iter().map(|message| serde_json::to_value(message).unwrap()["derived_from"].clone()).collect();
    let expected = [
        json!({"trust": "untrusted_external", "agent": "main", "message": "msg-1"}),
        json!({"trust": "trusted_operator", "agent": "main", "message": null}),
    ];
    assert_eq!(shown, expected);
    assert_eq!(heard[1].trust, Trust::TrustedSystem);
}
