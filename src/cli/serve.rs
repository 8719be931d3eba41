//! `holon serve`: the runtime and its surfaces, until told to stop.

use super::{Failure, Globals, Outcome, print};
use crate::client::Client;
use crate::decide::home::HomeCommand;
use crate::events::Cause;
use crate::events::home::SettingValue;
use crate::http::serve::{Socket, serve as listen};
use crate::http::{App, Auth, Place, WebhookMode};
use crate::ledger::home::{Home, HomeError};
use crate::runtime::handle::SubmitError;
use crate::runtime::host::{Host, Parts};
use crate::runtime::model::catalog::Models;
use crate::runtime::process::Processes;
use crate::runtime::secret::Secrets;
use crate::runtime::settings::Settings;
use crate::runtime::source::Source;
use crate::words::hash::Hash;
use clap::{Args, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Args)]
pub(super) struct ServeArgs {
    /// Where to listen.
    #[arg(long, env = "HOLON_HTTP_ADDR", value_name = "HOST:PORT")]
    pub(super) listen: Option<String>,
    #[command(flatten)]
    pub(super) runtime: RuntimeArgs,
}

/// What the runtime takes, whoever starts it.
#[derive(Args, Default)]
pub(super) struct RuntimeArgs {
    /// The folder that the default agent works in; where holon was started when not given.
    #[arg(long, env = "HOLON_WORKSPACE_DIR", value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,
    /// The agent that the default-agent routes mean.
    #[arg(long, env = "HOLON_DEFAULT_AGENT", value_name = "ID")]
    pub(super) default_agent: Option<String>,
    /// provider/model; builtin/runbook when nothing names one.
    #[arg(long, env = "HOLON_MODEL", value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// How the log is written: for people, or a JSON object a line; text when not given.
    #[arg(long, env = "HOLON_LOG_FORMAT", value_name = "FORMAT")]
    pub(super) log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Default, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// A runtime with its surfaces, in this process.
pub(super) struct Running {
    pub app: Arc<App>,
    host: Host,
    server: tokio::task::JoinHandle<()>,
    /// Nobody else serves this home for as long as it lives.
    _home: Home,
}

/// The listener, and whether a token guards it.
struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
}

pub(super) async fn serve(globals: &Globals, args: &ServeArgs) -> Outcome {
    log(args.runtime.log_format.unwrap_or_default());
    // Whoever is told that we are ready may tell us to end.
    let mut ends = ends();
    let running = start(globals, &args.runtime, Some(args)).await?;
    let address = running.app.place.listen.map_or_else(String::new, |address| address.to_string());
    if globals.json {
        print::json_line(&json!({"ok": true, "listen": address, "socket": running.app.place.socket}));
    } else {
        print::data(&format!("holon is listening on http://{address}"));
    }
    let reason = tokio::select! {
        signal = told(&mut ends) => signal,
        () = running.app.going_down() => "requested",
    };
    tokio::select! {
        outcome = running.stop(reason) => outcome,
        _ = told(&mut ends) => Err(Failure::refused("told to end at once", "what was answered is in the ledger")),
    }
}

/// Starts the runtime; with `args` it also listens on TCP.
pub(super) async fn start(
    globals: &Globals,
    runtime: &RuntimeArgs,
    args: Option<&ServeArgs>,
) -> Result<Running, Failure> {
    globals.close_home()?;
    let config = globals.config()?;
    let token = globals.control_token(&config)?;
    let (public_base_url, access) = (config.public_base_url()?, config.access()?);
    let home = open_home(&config.home).await?;
    let paths = home.paths().clone();
    let listener = match args {
        Some(args) => Some(bind(&config.listen(args.listen.as_deref()), token.is_some()).await?),
        None => None,
    };
    if listener.is_some() && token.is_some() && access.webhooks == WebhookMode::Open {
        tracing::warn!("anybody may send webhooks to an agent that has no secret: webhooks = \"signed\" ends that");
    }
    let (store, boot) = home.open_store()?;
    let processes = Processes::new(&paths.runs(), None).map_err(|error| failed("the run folders", &error))?;
    let processes = processes.with_descriptors(raise_descriptors());
    let mut settings = Settings::new(
        config.default_agent(runtime.default_agent.as_deref())?,
        config.workspace(runtime.workspace.as_deref())?,
        config.models(runtime.model.as_deref()),
    );
    settings.command_environment = config.command_environment();
    settings.recorded = recorded(config.settings(globals, args.and_then(|args| args.listen.as_deref()), runtime)?);
    settings.tree_limits = config.tree_limits();
    if let Some(listener) = &listener {
        settings.callback_base_url = public_base_url.clone().unwrap_or_else(|| format!("http://{}", listener.address));
    }
    let source = Source::system();
    let place = Place {
        home: paths.home.clone(),
        socket: paths.socket(),
        listen: listener.as_ref().map(|listener| listener.address),
        public_base_url,
        started_at: source.now(),
        fingerprint: Hash::of(format!("{settings:?}").as_bytes()).to_string(),
    };
    let parts = Parts {
        store: Arc::new(store),
        boot,
        blobs_folder: paths.blobs(),
        agents_folder: paths.agents(),
        processes,
        models: Models::new(config.providers()?),
        source,
        secrets: Secrets::open(&paths.secrets()).map_err(|error| failed("the secrets", &error))?,
        settings,
    };
    let host = Host::start(parts).await.map_err(|error| failed("the runtime", &error))?;
    let app = Arc::new(App::new(host.handle(), Auth::new(token.as_deref()), place, access));
    let socket = Socket::bind(&paths.socket()).map_err(|error| failed("the socket in the home", &error))?;
    let server = tokio::spawn(listen(app.clone(), listener.map(|listener| listener.tcp), socket));
    Ok(Running { app, host, server, _home: home })
}

/// Settings as the home's ledger keeps them. Secrets are not among them: of these it is shown whether they are set.
fn recorded(settings: Vec<Value>) -> Vec<SettingValue> {
    let setting =
        |setting: &Value| SettingValue { name: print::text(&setting["name"]), value: print::text(&setting["value"]) };
    settings.iter().map(setting).collect()
}

impl Running {
    /// Ends the surfaces, then the runtime. Commands go on. The reason is recorded, unless somebody's request was.
    pub(super) async fn stop(self, reason: &str) -> Outcome {
        let command = HomeCommand::ShutDown { reason: reason.into() };
        match self.app.handle.submit_home(command, Cause::Runtime).await {
            Ok(()) | Err(SubmitError::Rejected(_)) => {}
            Err(error) => tracing::warn!(%error, "the shutdown is not recorded in the home's ledger"),
        }
        self.app.shut_down();
        let served = self.server.await;
        drop(self.app);
        self.host.shutdown().await;
        served.map_err(|error| failed("serving", &error))
    }
}

/// Opens as many files as this process may: each subscriber is one. Answers the limit before, which is the commands'.
fn raise_descriptors() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => current,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            None
        }
    }
}

/// Another server of this home is worth naming.
async fn open_home(path: &std::path::Path) -> Result<Home, Failure> {
    match Home::open(path) {
        Err(error @ HomeError::Locked { .. }) => {
            let socket = path.join("holon.sock");
            let served = Client::answers(&socket).await;
            let hint = if served {
                "a server runs on this home: holon status asks it; stop it first, or use another --home"
            } else {
                error.hint()
            };
            Err(Failure::refused(error.to_string(), hint))
        }
        opened => Ok(opened?),
    }
}

/// Beyond loopback a token must guard.
async fn bind(listen: &str, guarded: bool) -> Result<Listener, Failure> {
    let tcp = TcpListener::bind(listen).await;
    let tcp = tcp.map_err(|error| {
        Failure::refused(format!("cannot listen on {listen}: {error}"), "choose another address with --listen")
    })?;
    let address = tcp.local_addr().map_err(|error| failed("the listener", &error))?;
    if !guarded && !address.ip().is_loopback() {
        let hint = "set a control token with --token-file or HOLON_CONTROL_TOKEN, or listen on 127.0.0.1";
        return Err(Failure::refused(format!("{address} is open to others and no control token is set"), hint));
    }
    Ok(Listener { tcp, address })
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(format!("{what}: {error}"), "the log above tells more; HOLON_LOG=debug tells all")
}

/// The signals by which a process is asked to end, caught from here on.
fn ends() -> Vec<(&'static str, Signal)> {
    let kinds =
        [("SIGTERM", SignalKind::terminate()), ("SIGINT", SignalKind::interrupt()), ("SIGHUP", SignalKind::hangup())];
    let caught = kinds.map(|(name, kind)| match signal(kind) {
        Ok(caught) => Some((name, caught)),
        Err(error) => {
            tracing::warn!(%error, "{name} is not caught");
            None
        }
    });
    caught.into_iter().flatten().collect()
}

/// Resolves when one of them comes, with its name.
async fn told(ends: &mut [(&'static str, Signal)]) -> &'static str {
    if ends.is_empty() {
        return std::future::pending().await;
    }
    let names: Vec<&'static str> = ends.iter().map(|(name, _)| *name).collect();
    let waits = ends.iter_mut().map(|(_, end)| Box::pin(end.recv()));
    let (_, index, _) = futures::future::select_all(waits).await;
    names[index]
}

/// Logs go to stderr; `HOLON_LOG` says how much.
pub(super) fn log(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("HOLON_LOG")
        .unwrap_or_else(|_| "warn,genai=off".parse().unwrap_or_default());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second call finds the log set up.
    let _ = match format {
        LogFormat::Text => log.with_ansi(print::takes_colour(&std::io::stderr())).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}
