//! holon: a headless, event-sourced runtime for long-lived agents.
//!
//! Every control-plane mutation is an event appended to one agent's append-only ledger; all state is a fold over that
//! ledger; everything the runtime does to the outside world is *owed* by that state.
//!
//! ```text
//!             command + one clock reading
//!                      |
//!    AgentState --> decide --> decision | rejection      pure: no clock, no file, no randomness
//!         ^                       |
//!         +------- evolve <-------+--> staged --> ledger    one transaction, one sync, then answers
//!         |
//!         +--> posture, owed effects, next deadline         functions of the state
//!                      |
//!              reconcile with what is running --> start, stop --> the world
//!                                                                   |
//!              a result comes back as a command <-------------------+
//! ```
//!
//! # The house
//!
//! A file uses its own floor and those below; `tests/it/tidy.rs` holds it to that. Read from the ground up:
//!
//! | floor | what lives there | invariant |
//! |---|---|---|
//! | [`words`] | ids, time arithmetic, hashes, content, text of prompts, limits | nothing here knows what an agent does |
//! | [`events`] | the vocabulary of the ledger, plane by plane; its codec and schema | old bytes never change |
//! | [`fold`] | the state, `evolve`, posture, owed effects, rows | the state is bounded by what is open |
//! | [`decide`] | commands to events; the scheduler; the one door | nothing is written that the fold has not accepted |
//! | [`tools`], [`context`] | what a model sees: tools, results, prompts | pure, and a prompt only grows within a turn |
//! | [`wire`] | JSON shapes and conversions | decides nothing, waits for nothing |
//! | [`ledger`] | stores, the writer, the chain, verified reading, payloads | every append names the head it expects |
//! | [`offline`] | verify and replay without a runtime | never writes |
//! | [`runtime`] | loops, reconcile, effects, models, processes, the feed | effects start from durable state alone |
//! | [`http`], [`client`], [`cli`] | the surfaces | translate, and decide nothing |
//!
//! Everything up to [`tools`] and [`context`] is synchronous and knows no tokio, file, clock or unordered map.
//!
//! # The planes
//!
//! Each plane has the same places under the same name: `events/task.rs` is its vocabulary, `fold/task.rs` its state
//! with the legal moves as a table on top, `decide/task.rs` its commands. To learn one is to learn all. A new event is
//! a row in its plane's vocabulary, an arm in its fold, a command that leads to it, and its row in `ledger-schema/`.
//!
//! | plane | what it is about |
//! |---|---|
//! | agent | who there is: births, lifecycles, what agents owe each other |
//! | queue | what came in, and what became of it |
//! | turn | model rounds, tool calls, and how they end |
//! | work | what is to be achieved, and who goes on with it |
//! | task | commands and children that run beside the turns |
//! | waiting | waits, timers, wakes and capabilities |
//! | workspace | where the agent works, what guides it, and its skills |
//! | operator | what people are told, and the transports that carry it |
//! | memory | notes, and episodes of past turns |
//! | home | what concerns no agent: boots, settings and tokens, in the home's own ledger |

pub mod words;

pub mod events;

pub mod fold;

pub mod decide;

pub mod context;
pub mod tools;

pub mod wire;

pub mod ledger;

pub mod offline;

pub mod runtime;

pub mod cli;
pub mod client;
pub mod http;
