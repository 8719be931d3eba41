//! The one test binary. Each module tells the stories of one subject.

#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test may fail by a panic, and what modules share stays within this one binary"
)]

mod abort;
mod archive;
mod ask;
mod asked;
mod attack;
mod auth;
mod body;
mod callbacks;
mod cli;
mod cli_help;
mod cli_machine;
mod cli_planes;
mod codec;
mod context;
mod contract;
mod crash;
mod curl;
mod daemon;
mod damage;
mod disk;
mod drive;
mod everyone;
mod family;
mod fault;
mod fork;
mod fuzz;
mod guides;
mod home_ledger;
mod host;
mod http;
mod ingress;
mod interjection;
mod invariant;
mod journey;
mod ledger_maker;
mod lesson;
mod long_work;
mod metrics;
mod model;
mod model_choice;
mod model_server;
mod openapi;
mod orphan;
mod other_user;
mod pinned;
mod posture;
mod posture_table;
mod preview;
mod private;
mod process;
mod projection;
mod prompt;
mod property;
mod protocol;
mod provider;
mod quarantine;
mod readme;
mod replay;
mod route_table;
mod run;
mod sample;
mod scale;
mod schema;
mod secret;
mod shell;
mod shutdown;
mod signature;
mod size;
mod skills;
mod slow;
mod store;
mod story;
mod stream;
mod task;
mod task_end;
mod task_input;
mod task_output;
mod tasks_http;
mod tidy;
mod tool_refusal;
mod transport;
mod trigger;
mod unbegun;
mod waits;
mod walk;
mod work_items;
mod workspaces;
mod world;
