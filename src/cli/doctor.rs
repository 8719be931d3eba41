//! `holon doctor`: whether this machine has what holon needs. It alters nothing.

use super::config::Config;
use super::serve::ServeArgs;
use super::{Failure, Globals, Outcome, print};
use crate::client::Client;
use crate::http::WebhookMode;
use crate::ledger::StoreError;
use crate::ledger::home::{HomeError, Paths, open_read_only};
use crate::ledger::owner::look;
use crate::runtime::model::catalog::Models;
use crate::runtime::source::Source;
use crate::words::time::Timestamp;
use clap::{Args, ValueEnum};
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of free disk with which work can begin, and with which it can go on for a while.
const DISK_BYTES_MIN: u64 = 64 * 1024 * 1024;
const DISK_BYTES_FINE: u64 = 1024 * 1024 * 1024;
/// Open files with which a busy host does not run short: each subscriber and each command has some.
const DESCRIPTORS_FINE: u64 = 4_096;
/// The first Linux that has all that is used.
const LINUX_MIN: (u32, u32) = (5, 11);
/// 2025-01-01T00:00:00Z: a clock that is earlier was never set.
const CLOCK_MIN: Timestamp = Timestamp(1_735_689_600_000);
const SHELL: &str = "/bin/sh";

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Print a service description instead: a user unit, for systemctl --user.
    #[arg(long, value_enum, value_name = "FORM")]
    emit: Option<Emit>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    Systemd,
}

/// What a look at one thing came to.
struct Check {
    name: &'static str,
    result: Finding,
    detail: String,
    /// What to do; empty when all is well.
    hint: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Ok,
    Warning,
    Failed,
}

impl Finding {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Check {
    fn new(name: &'static str, result: Finding, detail: impl Into<String>, hint: &'static str) -> Self {
        Self { name, result, detail: detail.into(), hint }
    }

    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self::new(name, Finding::Ok, detail, "")
    }

    fn failed(name: &'static str, detail: impl Into<String>, hint: &'static str) -> Self {
        Self::new(name, Finding::Failed, detail, hint)
    }

    fn warning(name: &'static str, detail: impl Into<String>, hint: &'static str) -> Self {
        Self::new(name, Finding::Warning, detail, hint)
    }
}

pub(super) async fn doctor(globals: &Globals, args: &DoctorArgs) -> Outcome {
    let config = globals.config()?;
    if args.emit.is_some() {
        let unit = unit(&config)?;
        return print::done(globals.json, &json!({"unit": unit}), unit.trim_end());
    }
    let is_served = Client::answers(&config.paths().socket()).await;
    told(globals, &checks(&config, globals, &args.serve, is_served))
}

fn checks(config: &Config, globals: &Globals, args: &ServeArgs, is_served: bool) -> Vec<Check> {
    let paths = config.paths();
    vec![
        linux(),
        clock(),
        shell(),
        git(),
        limits(),
        home(&paths.home),
        disk(&paths.home),
        lock(&paths, is_served),
        ledger(&paths),
        models(config, args),
        port(&config.listen(args.listen.as_deref()), is_served),
        webhooks(config, globals),
    ]
}

fn told(globals: &Globals, checks: &[Check]) -> Outcome {
    let failed: Vec<&str> =
        checks.iter().filter(|check| check.result == Finding::Failed).map(|check| check.name).collect();
    if globals.json {
        let shown = |check: &Check| json!({"name": check.name, "result": check.result.name(), "detail": check.detail, "hint": check.hint});
        print::json(&json!({"ok": failed.is_empty(), "checks": checks.iter().map(shown).collect::<Vec<Value>>()}));
    } else {
        let row = |check: &Check| vec![check.name.to_owned(), check.result.name().to_owned(), check.detail.clone()];
        print::table(&["CHECK", "RESULT", "DETAIL"], &checks.iter().map(row).collect::<Vec<_>>());
    }
    let advised = checks.iter().filter(|check| check.result == Finding::Warning);
    advised.for_each(|check| print::note(&format!("{}: {}", check.name, check.hint)));
    match checks.iter().find(|check| check.result == Finding::Failed) {
        Some(first) => Err(Failure::refused(format!("not fit: {}", failed.join(", ")), first.hint)),
        None => Ok(()),
    }
}

fn linux() -> Check {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < LINUX_MIN => {
            Check::failed("linux", release, "holon needs Linux 5.11 or later")
        }
        _ => Check::ok("linux", release),
    }
}

fn clock() -> Check {
    let now = Source::system().now();
    if now < CLOCK_MIN {
        return Check::failed("clock", now.to_string(), "set the clock: waits and timers go by it");
    }
    Check::ok("clock", now.to_string())
}

fn shell() -> Check {
    match access(SHELL, Access::EXEC_OK) {
        Ok(()) => Check::ok("shell", SHELL),
        Err(error) => Check::failed("shell", format!("{SHELL}: {error}"), "install a shell: commands are run by it"),
    }
}

fn git() -> Check {
    const HINT: &str = "install git: children in worktrees and diffs need it";
    match Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => Check::ok("git", String::from_utf8_lossy(&output.stdout).trim()),
        Ok(output) => Check::warning("git", format!("git --version ends with {}", output.status), HINT),
        Err(error) => Check::warning("git", error.to_string(), HINT),
    }
}

fn limits() -> Check {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < DESCRIPTORS_FINE => {
            Check::warning("limits", format!("{most} open files"), "raise the hard limit of open files (ulimit -Hn)")
        }
        Some(most) => Check::ok("limits", format!("{most} open files")),
        None => Check::ok("limits", "any number of open files"),
    }
}

/// A home that is not there yet is made by whoever serves it, if its folder may be written to.
fn home(home: &Path) -> Check {
    const HINT: &str = "name a folder that you may write to, with --home or HOLON_HOME";
    let place = home.display();
    let Some(there) = existing(home) else { return Check::failed("home", format!("{place} is nowhere"), HINT) };
    let is_folder = there.is_dir();
    match access(&there, Access::WRITE_OK | Access::EXEC_OK) {
        _ if !is_folder => Check::failed("home", format!("{} is no folder", there.display()), HINT),
        Err(error) => Check::failed("home", format!("{}: {error}", there.display()), HINT),
        Ok(()) if there != home => Check::ok("home", format!("{place} is not there yet")),
        Ok(()) => standing(home),
    }
}

/// Whose the home is, and who may enter it.
fn standing(home: &Path) -> Check {
    const FOREIGN: &str = "name a home of your own with --home or HOLON_HOME";
    const CLOSE: &str = "close it: chmod 700 on the home, as holon serve does";
    let standing = match look(home) {
        Ok(Some(standing)) => standing,
        Ok(None) => return Check::failed("home", format!("{} is gone", home.display()), FOREIGN),
        Err(error) => return Check::failed("home", error.to_string(), error.hint()),
    };
    let detail = format!("{}, uid {}, mode {:03o}", home.display(), standing.owner, standing.mode);
    if !standing.is_own() {
        return Check::failed("home", format!("{detail}: it belongs to another user"), FOREIGN);
    }
    if !standing.is_private() {
        return Check::warning("home", format!("{detail}: it is open to other users"), CLOSE);
    }
    Check::ok("home", detail)
}

/// The path, or the nearest folder above it that is there.
fn existing(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find(|folder| folder.exists()).map(Path::to_owned)
}

fn disk(home: &Path) -> Check {
    let space = existing(home).and_then(|there| statvfs(&there).ok());
    let Some(space) = space else { return Check::warning("disk", "not known", "check the file system of the home") };
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    let detail = format!("{} MiB free", free_bytes / (1024 * 1024));
    match free_bytes {
        DISK_BYTES_FINE.. => Check::ok("disk", detail),
        DISK_BYTES_MIN.. => Check::warning("disk", detail, "free some space: a full disk refuses what is sent"),
        _ => Check::failed("disk", detail, "free some space: nothing can be recorded on a full disk"),
    }
}

fn lock(paths: &Paths, is_served: bool) -> Check {
    match (is_served, paths.is_locked()) {
        (true, _) => Check::ok("lock", "a server runs on this home"),
        (false, true) => {
            Check::failed("lock", "another holon has the home and does not answer", "stop it, or use another --home")
        }
        (false, false) => Check::ok("lock", "free"),
    }
}

/// Whether the file opens; `holon ledger verify` proves what is in it.
fn ledger(paths: &Paths) -> Check {
    if paths.is_locked() {
        return Check::ok("ledger", "the server has it open");
    }
    match open_read_only(&paths.home) {
        Ok(_) => Check::ok("ledger", "opens"),
        Err(HomeError::NoLedger { .. }) => Check::ok("ledger", "none yet"),
        Err(HomeError::Ledger { error: StoreError::Unfinished, .. }) => {
            Check::ok("ledger", "the last server was killed; the next one mends the file as it opens it")
        }
        Err(error) => Check::failed("ledger", error.to_string(), error.hint()),
    }
}

fn models(config: &Config, args: &ServeArgs) -> Check {
    const HINT: &str = "holon help providers tells how models are configured";
    let providers = match config.providers() {
        Ok(providers) => Models::new(providers),
        Err(error) => return Check::failed("models", error.to_string(), HINT),
    };
    let models = config.models(args.runtime.model.as_deref());
    let faults = models.iter().filter_map(|model| providers.resolve(model).err());
    match faults.map(|fault| fault.to_string()).reduce(|all, fault| format!("{all}; {fault}")) {
        Some(faults) => Check::failed("models", faults, HINT),
        None => Check::ok("models", models.join(", ")),
    }
}

fn port(listen: &str, is_served: bool) -> Check {
    match TcpListener::bind(listen) {
        Ok(_) => Check::ok("port", format!("{listen} is free")),
        Err(_) if is_served => Check::ok("port", format!("{listen} is in use, as it may be by the server")),
        Err(error) => Check::failed("port", format!("{listen}: {error}"), "choose another address with --listen"),
    }
}

/// Where a token guards everything else, open webhooks are worth a word.
fn webhooks(config: &Config, globals: &Globals) -> Check {
    let access = match config.access() {
        Ok(access) => access,
        Err(error) => return Check::failed("webhooks", error.to_string(), error.hint()),
    };
    let is_guarded = matches!(globals.control_token(config), Ok(Some(_)));
    match access.webhooks {
        WebhookMode::Open if is_guarded => Check::warning(
            "webhooks",
            "anybody may send them to an agent that has no secret",
            "webhooks = \"signed\" in config.toml takes signed ones alone, \"off\" none",
        ),
        WebhookMode::Open => Check::ok("webhooks", "open to this machine"),
        WebhookMode::Signed => Check::ok("webhooks", "signed ones alone"),
        WebhookMode::Off => Check::ok("webhooks", "none"),
    }
}

/// Commands are held by supervisors of their own: a restart that killed the whole group would end them.
fn unit(config: &Config) -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::refused(format!("this program's path: {error}"), "name it in the unit by hand"))?;
    let home = std::path::absolute(&config.home).unwrap_or_else(|_| config.home.clone());
    // A percent sign begins a specifier.
    let [program, home] = [program, home].map(|path| path.display().to_string().replace('%', "%%"));
    Ok(format!(
        "[Unit]\n\
        Description=holon, a runtime for long-lived agents\n\
        \n\
        [Service]\n\
        ExecStart=\"{program}\" serve\n\
        Environment=\"HOLON_HOME={home}\"\n\
        WorkingDirectory=%h\n\
        Restart=on-failure\n\
        # Supervised commands outlive a restart of the service, which finds them again.\n\
        KillMode=process\n\
        LimitNOFILE=65536\n\
        \n\
        [Install]\n\
        WantedBy=default.target\n"
    ))
}
