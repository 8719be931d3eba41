//! The one test binary. Each module tells the stories of one subject.

mod codec;
mod context;
mod daemon;
mod host;
mod journey;
mod model;
mod model_server;
mod pinned;
mod process;
mod sample;
mod schema;
mod story;
mod world;
