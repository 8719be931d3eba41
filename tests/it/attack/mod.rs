//! What an attacker tries, each told as it was tried: the boundaries that hold.

mod actor;
mod edge;
mod errand;
mod flood;
mod hog;
mod key;
mod secret;
mod token;
