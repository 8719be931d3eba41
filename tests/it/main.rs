//! The one test binary. Each module tells the stories of one subject.

mod abort;
mod codec;
mod context;
mod crash;
mod daemon;
mod drive;
mod host;
mod interjection;
mod invariant;
mod journey;
mod model;
mod model_server;
mod pinned;
mod process;
mod property;
mod provider;
mod replay;
mod sample;
mod schema;
mod size;
mod story;
mod task;
mod walk;
mod world;
