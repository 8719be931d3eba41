//! What all benchmarks share: sizes, rounds, figures, ledgers to measure on, and the bare side of redb.
//!
//! Every figure is a ratio of two things measured in turns in one run, since absolute times mean little on a shared
//! machine. `HOLON_BENCH_SCALE=10` runs the sizes that the project promises; without it they are a tenth or so.

#![allow(dead_code, reason = "each benchmark uses its part")]

pub mod bare;
pub mod ledger;
pub mod server;
pub mod socket;

use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How many times larger than by default the sizes are.
pub fn scale() -> usize {
    std::env::var("HOLON_BENCH_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}

/// A folder on the disk that holds the build, so that a sync is a sync; `/tmp` may be memory.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder to measure in")
}

/// Measures both in turns, the second first in every other round; answers what each said in each round.
pub fn in_turns<A, B>(rounds: usize, mut ours: impl FnMut() -> A, mut bare: impl FnMut() -> B) -> (Vec<A>, Vec<B>) {
    let (mut all_ours, mut all_bare) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            all_ours.push(ours());
            all_bare.push(bare());
        } else {
            all_bare.push(bare());
            all_ours.push(ours());
        }
    }
    (all_ours, all_bare)
}

pub fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = act();
    (value, start.elapsed())
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

pub fn microseconds(durations: &[Duration]) -> Vec<f64> {
    durations.iter().map(|duration| duration.as_secs_f64() * 1e6).collect()
}

/// What a ratio is to reach.
#[derive(Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Shown for its own sake.
    None,
}

pub fn title(text: &str) {
    println!("\n## {text}\n");
    println!("| what | ours | bare | ratio | target | reached |");
    println!("|---|---|---|---|---|---|");
}

/// One line of the table: our figure, the bare one, and their ratio.
pub fn figure(what: &str, ours: f64, bare: f64, unit: &str, target: Target) {
    let ratio = ours / bare;
    let (ours, bare) = (shown(ours), shown(bare));
    println!("| {what} | {ours} {unit} | {bare} {unit} | {ratio:.2} | {} |", verdict(ratio, target));
}

/// One line without another side: the figure itself has its target.
pub fn alone(what: &str, value: f64, unit: &str, target: Target) {
    println!("| {what} | {} {unit} | | | {} |", shown(value), verdict(value, target));
}

fn verdict(value: f64, target: Target) -> String {
    let word = |reached: bool| if reached { "yes" } else { "no" };
    match target {
        Target::AtMost(most) => format!("<= {most} | {}", word(value <= most)),
        Target::AtLeast(least) => format!(">= {least} | {}", word(value >= least)),
        Target::None => " | ".into(),
    }
}

fn shown(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// This benchmark again, as a child that does something else.
pub fn child(role: &str, arguments: &[String]) -> std::process::Command {
    let program: PathBuf = std::env::current_exe().expect("this program has a path");
    let mut command = std::process::Command::new(program);
    command.env("HOLON_BENCH_ROLE", role).env("HOLON_BENCH_ARGUMENTS", arguments.join("\n"));
    command
}

/// The role of a child, and what it was told.
pub fn role() -> Option<(String, Vec<String>)> {
    let role = std::env::var("HOLON_BENCH_ROLE").ok()?;
    let arguments = std::env::var("HOLON_BENCH_ARGUMENTS").unwrap_or_default();
    Some((role, arguments.lines().map(str::to_owned).collect()))
}
