//! Stories: what an agent is told, and what its ledger then says.
//!
//! A story is a text. Lines that begin with `>` are told to the agent, one by one; the lines between them are what
//! came of it, an event each. `given` lines are told as well, but what comes of them is not shown; `;` parts them.
//! [`script`] says what can be told, [`show`] how events are written.

mod agent;
mod binding;
mod child;
mod evidence;
mod memory;
mod message;
mod outside;
mod request;
mod retry;
mod script;
mod show;
mod task;
mod timer;
mod transport;
mod trigger;
mod turn;
mod waiting;
mod wake;
mod webhook;
mod work;
mod workspace;

use crate::world::World;
pub use script::tell;
pub use show::event as show;

/// Tells the story and compares what came of it with what it says.
pub fn check(story: &str) -> World {
    let mut world = World::new();
    let told = transcript(&mut world, story);
    let said: String =
        story.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    assert!(told == said, "the story went otherwise:\n{told}\nwhere it says:\n{said}");
    world
}

/// Tells the story, and gives it back with what came of it.
pub fn transcript(world: &mut World, story: &str) -> String {
    let mut told = String::new();
    for line in story.lines().map(str::trim) {
        if let Some(given) = line.strip_prefix("given ") {
            told += &format!("{line}\n");
            given.split("; ").for_each(|command| drop(script::tell(world, command)));
        } else if let Some(command) = line.strip_prefix("> ") {
            told += &format!("{line}\n");
            script::tell(world, command).iter().for_each(|line| told += &format!("{}\n", line.trim_end()));
        }
    }
    told
}
