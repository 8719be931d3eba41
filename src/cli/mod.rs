//! The command line: data on stdout, the rest on stderr, exit codes that are a contract.
//!
//! One file a verb, or a family of them. A verb talks to a server through [`crate::client`], as anybody could;
//! `serve` and `run` start the runtime.

mod actor;
mod agent;
mod binding;
mod config;
mod doctor;
mod environment;
mod events;
mod guide;
mod ledger;
mod model;
mod print;
mod run;
mod serve;
mod skills;
mod task;
mod token;
mod toml_text;
mod transcript;
mod waiting;
mod webhook;
mod work;
mod workspace;

use crate::client::{Address, Client, ClientError};
use crate::ledger::StoreError;
use crate::ledger::home::{Home, HomeError};
use crate::ledger::owner::{self, Standing};
use clap::{Args, Parser, Subcommand};
use config::{Config, ConfigError};
use environment::Environment;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

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
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "HOLON_SERVER", hide_env_values = true, value_name = "URL")]
    server: Option<String>,
    /// The control token of the server. Others see it in the list of processes: use --token-file, or HOLON_CONTROL_TOKEN.
    #[arg(long, global = true, help_heading = EVERYWHERE, value_name = "TOKEN")]
    token: Option<String>,
    /// A file that holds the control token. Not together with --token; before HOLON_CONTROL_TOKEN.
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "HOLON_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    /// What the process was started with.
    #[arg(skip)]
    environment: Arc<Environment>,
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
    /// Named tokens, each with what it may be used for: create, list, revoke.
    #[command(subcommand)]
    Token(token::TokenVerb),
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
        Ok(Config::load(self.home.as_deref(), &self.environment)?)
    }

    /// Closes the home to other users, before anything of it is read; refuses one that is another user's.
    fn close_home(&self) -> Outcome {
        Ok(Home::close(&config::home(self.home.as_deref())?)?)
    }

    /// Whose the home is, where it is there and that can be told.
    fn standing(&self) -> Option<Standing> {
        owner::look(&config::home(self.home.as_deref()).ok()?).ok()?
    }

    /// Tells whoever only reads a home that it is not theirs alone.
    fn warn_of_home(&self) {
        if let Some(Standing { owner, mode }) = self.standing().filter(|standing| !standing.is_trusted()) {
            print::note(&format!(
                "warning: the home is open to others (uid {owner}, mode {mode:03o}): do not trust it"
            ));
        }
    }

    /// The named server, else the one in the home. Whoever listens in another user's home gets no token.
    fn client(&self) -> Result<Client, Failure> {
        let config = self.config()?;
        let address = match &self.server {
            Some(url) => Address::Url(server(url)?),
            None => Address::Socket(config.paths().socket()),
        };
        let is_theirs = self.server.is_none() && self.standing().is_some_and(|standing| !standing.is_trusted());
        let token = if is_theirs { None } else { self.control_token(&config)? };
        Ok(Client::new(address, token)?)
    }

    /// `events --home` asks for the home's own events, and names no folder by that.
    fn forget_nameless_home(&mut self, environment: &Environment) {
        if self.home.as_ref().is_some_and(|home| home.as_os_str().is_empty()) {
            self.home = environment.variable("HOLON_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        }
    }

    fn control_token(&self, config: &Config) -> Result<Option<String>, Failure> {
        Ok(config.control_token(self)?.map(|(token, _)| token))
    }
}

/// A server's URL. It may hold a password, so it is not repeated when it is none.
fn server(url: &str) -> Result<String, Failure> {
    match reqwest::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => Ok(url.to_owned()),
        Ok(_) | Err(_) => Err(Failure::Usage("--server is not a URL such as http://HOST:PORT".into())),
    }
}

impl Cli {
    /// Whether this process will run agents, unless a server of the home answers in its place.
    fn runs_agents(&self) -> bool {
        let asks_elsewhere = self.globals.server.is_some();
        matches!(self.verb, Verb::Serve(_)) || (matches!(self.verb, Verb::Run(_)) && !asks_elsewhere)
    }
}

/// Reads the arguments. A process that will run agents goes on as one whose secrets nobody else can read.
fn prepare() -> Result<Cli, Failure> {
    let failed = |error: std::io::Error| {
        Failure::refused(format!("the secrets cannot be kept from other processes: {error}"), "check the machine")
    };
    let environment = Environment::take().map_err(failed)?;
    let mut cli = Cli::parse_from(environment.arguments());
    cli.globals.forget_nameless_home(&environment);
    if !environment.is_sealed() {
        if cli.globals.token.is_some() {
            print::warning("--token shows the token in the list of processes and in the shell's history");
            print::hint("use --token-file FILE");
        }
        if cli.runs_agents() {
            return Err(failed(environment.start_again()));
        }
    }
    cli.globals.environment = Arc::new(environment);
    Ok(cli)
}

/// Parses the arguments and does what they ask.
pub fn main() -> ExitCode {
    let cli = match prepare() {
        Ok(cli) => cli,
        Err(failure) => return print::failure(&failure),
    };
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
    if !matches!(cli.verb, Verb::Serve(_) | Verb::Run(_) | Verb::Completions(_) | Verb::Help(_)) {
        globals.warn_of_home();
    }
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
        Verb::Token(verb) => token::dispatch(globals, verb).await,
        Verb::Config(verb) => config::dispatch(globals, verb),
        Verb::Doctor(args) => doctor::doctor(globals, args).await,
        Verb::Completions(args) => guide::completions(globals, args),
        Verb::Help(args) => guide::help(globals, args),
        Verb::Supervise { .. } => Ok(()),
    }
}
