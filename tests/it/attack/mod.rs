//! What an attacker tries, each told as it was tried: the boundaries that hold.

mod actor;
mod agent_process;
mod edge;
mod errand;
mod files;
mod flood;
mod forged;
mod git;
mod hog;
mod home;
mod ingress;
mod key;
mod label;
mod limits;
mod secret;
mod supervisor;
mod token;
mod trust;
