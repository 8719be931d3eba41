//! The one test binary. Each module tells the stories of one subject.

mod daemon;
mod host;
mod journey;
mod model;
mod model_server;
mod process;
mod story;
mod world;
