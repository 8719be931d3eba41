//! The command line: data on stdout, the rest on stderr, exit codes that are a contract.
//!
//! One file a verb, or a family of them. A verb talks to a server through [`crate::client`], as anybody could;
//! `serve` and `run` start the runtime.

mod agent;
mod binding;
mod config;
mod doctor;
mod events;
mod guide;
mod ledger;
mod model;
mod print;
mod run;
mod serve;
mod skills;
mod task;
mod transcript;
mod waiting;
mod webhook;
mod work;
mod workspace;

use crate::client::{Address, Client, ClientError};
use crate::ledger::StoreError;
use crate::ledger::home::HomeError;
use clap::{Args, Parser, Subcommand};
use config::{Config, ConfigError};
use std::path::PathBuf;
use std::process::ExitCode;

/// A headless, event-sourced runtime for long-lived agents.
#[derive(Parser)]
#[command(name = "holon", version, about, disable_help_subcommand = true)]
#[command(after_help = guide::AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

/// The heading of what every verb takes.
const EVERYWHERE: &str = "Everywhere";

/// What every verb takes.
#[derive(Args)]
struct Globals {
    /// The folder that holds the ledgers.
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "HOLON_HOME", value_name = "DIR")]
    home: Option<PathBuf>,
    /// A server to talk to, instead of the one in the home: http://HOST:PORT
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "HOLON_SERVER", value_name = "URL", value_parser = server)]
    server: Option<String>,
    /// The control token of the server.
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "HOLON_CONTROL_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// A file that holds the control token. Not together with --token; before HOLON_CONTROL_TOKEN.
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "HOLON_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the runtime and its HTTP surface until told to stop.
    Serve(serve::ServeArgs),
    /// Send a prompt, wait, print the answer. Starts the runtime for that if none runs.
    Run(run::RunArgs),
    /// Send a prompt and do not wait.
    Prompt(agent::PromptArgs),
    /// What an agent is doing, and why.
    Status(agent::AgentArg),
    /// What an agent has answered of late.
    Tail(transcript::TailArgs),
    /// What was said and called in the turn that runs, or in the last one.
    Transcript(transcript::TranscriptArgs),
    /// The events of an agent.
    Events(events::EventsArgs),
    /// Agents: list, create, status, model, start, stop, abort, archive, drop-messages, webhook-secret.
    #[command(subcommand)]
    Agent(agent::AgentVerb),
    /// Work items: list, show, create, update, pick, complete.
    #[command(subcommand)]
    Work(work::WorkVerb),
    /// Tasks: list, show, create, output, input, stop.
    #[command(subcommand)]
    Task(task::TaskVerb),
    /// Timers: list, show, create, cancel.
    #[command(subcommand)]
    Timer(waiting::TimerVerb),
    /// What an agent waits for: list, show, cancel.
    #[command(subcommand)]
    Wait(waiting::WaitVerb),
    /// URLs by which the outside reaches an agent: list, show, create, revoke.
    #[command(subcommand)]
    Trigger(waiting::TriggerVerb),
    /// Transports by which an agent reaches its operator: list, show, revoke.
    #[command(subcommand)]
    Binding(binding::BindingVerb),
    /// What an agent wanted its operator to know, the newest first.
    Notices(agent::ListArgs),
    /// Where an agent works: list, attach, exit, detach.
    #[command(subcommand)]
    Workspace(workspace::WorkspaceVerb),
    /// What an agent has to read up on: list, install, uninstall.
    #[command(subcommand)]
    Skills(skills::SkillsVerb),
    /// Ledgers: verify, stats, head, prompt.
    #[command(subcommand)]
    Ledger(ledger::LedgerVerb),
    /// What an agent would do: prompt.
    #[command(subcommand)]
    Debug(model::DebugVerb),
    /// The configuration: show, path.
    #[command(subcommand)]
    Config(config::ConfigVerb),
    /// Whether this machine has what holon needs.
    Doctor(doctor::DoctorArgs),
    /// A script that completes the command line in a shell.
    Completions(guide::CompletionsArgs),
    /// A guide, or the help of a verb.
    Help(guide::HelpArgs),
    /// Hold one command, so that it outlives the runtime.
    #[command(hide = true)]
    Supervise {
        folder: PathBuf,
        /// The soft limit of open files that the command gets.
        #[arg(long)]
        descriptors: Option<u64>,
    },
}

/// Why a verb did not do what it was asked. Each kind has its exit code.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{message}")]
    Refused { message: String, hint: Option<String> },
    #[error("{0}")]
    Usage(String),
    /// What failed was printed as data.
    #[error("verification failed")]
    NotWhole,
    /// The answer was printed, and it is one of failure.
    #[error("the run failed")]
    RunFailed,
}

fn server(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        Ok(_) => Err("a server is named by http://HOST:PORT".into()),
        Err(error) => Err(format!("{error}; a server is named by http://HOST:PORT")),
    }
}

type Outcome = Result<(), Failure>;

const REFUSED: u8 = 1;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;
const NOT_WHOLE: u8 = 4;

impl Failure {
    fn refused(message: impl Into<String>, hint: &str) -> Self {
        Self::Refused { message: message.into(), hint: Some(hint.into()) }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Client(ClientError::Unreachable { .. }) => UNREACHABLE,
            Self::Usage(_) | Self::Config(_) => USAGE,
            // A file that a kill left open says nothing about what is in it.
            Self::Home(HomeError::Ledger { error: StoreError::Unfinished, .. }) => REFUSED,
            Self::NotWhole | Self::Home(HomeError::Ledger { .. }) => NOT_WHOLE,
            Self::Client(_) | Self::Home(_) | Self::Refused { .. } | Self::RunFailed => REFUSED,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Client(ClientError::Unreachable { .. }) => {
                Some("start it with holon serve, or name it with --server URL or --home DIR".into())
            }
            Self::Client(ClientError::Refused(problem)) => problem.hint.clone(),
            Self::Home(error) => Some(error.hint().into()),
            Self::Config(error) => Some(error.hint().into()),
            Self::Refused { hint, .. } => hint.clone(),
            Self::Usage(_) | Self::NotWhole | Self::RunFailed | Self::Client(ClientError::Unreadable(_)) => None,
        }
    }
}

impl Globals {
    fn config(&self) -> Result<Config, Failure> {
        Ok(Config::load(self.home.as_deref())?)
    }

    /// The named server, else the one in the home.
    fn client(&self) -> Result<Client, Failure> {
        let config = self.config()?;
        let address = match &self.server {
            Some(url) => Address::Url(url.clone()),
            None => Address::Socket(config.paths().socket()),
        };
        Ok(Client::new(address, self.control_token(&config)?)?)
    }

    fn control_token(&self, config: &Config) -> Result<Option<String>, Failure> {
        Ok(config.control_token(self)?.map(|(token, _)| token))
    }
}

/// Parses the arguments and does what they ask.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Verb::Supervise { folder, descriptors } = &cli.verb {
        return crate::runtime::process::supervise(folder, *descriptors);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return print::failure(&Failure::refused(format!("no threads: {error}"), "check the machine")),
    };
    let outcome = runtime.block_on(dispatch(&cli));
    // Whoever is told to end at once does not wait for what is under way.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print::failure(&failure),
    }
}

async fn dispatch(cli: &Cli) -> Outcome {
    let globals = &cli.globals;
    match &cli.verb {
        Verb::Serve(args) => serve::serve(globals, args).await,
        Verb::Run(args) => run::run(globals, args).await,
        Verb::Prompt(args) => agent::prompt(globals, args).await,
        Verb::Status(args) => agent::status(globals, args).await,
        Verb::Tail(args) => transcript::tail(globals, args).await,
        Verb::Transcript(args) => transcript::transcript(globals, args).await,
        Verb::Events(args) => events::events(globals, args).await,
        Verb::Agent(verb) => agent::dispatch(globals, verb).await,
        Verb::Work(verb) => work::dispatch(globals, verb).await,
        Verb::Task(verb) => task::dispatch(globals, verb).await,
        Verb::Timer(verb) => waiting::timer(globals, verb).await,
        Verb::Wait(verb) => waiting::wait(globals, verb).await,
        Verb::Trigger(verb) => waiting::trigger(globals, verb).await,
        Verb::Binding(verb) => binding::dispatch(globals, verb).await,
        Verb::Notices(args) => binding::notices(globals, args).await,
        Verb::Workspace(verb) => workspace::dispatch(globals, verb).await,
        Verb::Skills(verb) => skills::dispatch(globals, verb).await,
        Verb::Ledger(verb) => ledger::dispatch(globals, verb).await,
        Verb::Debug(verb) => model::debug(globals, verb).await,
        Verb::Config(verb) => config::dispatch(globals, verb),
        Verb::Doctor(args) => doctor::doctor(globals, args).await,
        Verb::Completions(args) => guide::completions(globals, args),
        Verb::Help(args) => guide::help(globals, args),
        Verb::Supervise { .. } => Ok(()),
    }
}
