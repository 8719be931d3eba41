//! Configuration: flag over environment over file over default. `holon config …` tells which of them spoke.

use super::environment::Environment;
use super::serve::{RuntimeArgs, ServeArgs};
use super::{Globals, Outcome, print, toml_text};
use crate::http::{Access, WebhookMode};
use crate::ledger::home::Paths;
use crate::runtime::model::catalog::{ModelError, ProviderSettings, provider_configs, variable};
use crate::runtime::model::remote::ProviderConfig;
use crate::runtime::outbound::without_credentials;
use crate::runtime::process::{CommandEnvironment, TreeLimits};
use crate::words::id::AgentId;
use crate::words::limit::{CONTROL_TOKEN_BYTES_MAX, CONTROL_TOKEN_BYTES_MIN, INGRESS_PER_MINUTE_MAX};
use clap::Subcommand;
use etcetera::BaseStrategy;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The model that needs no key.
pub(super) const MODEL_DEFAULT: &str = "builtin/runbook";
pub(super) const LISTEN_DEFAULT: &str = "127.0.0.1:7878";
pub(super) const AGENT_DEFAULT: &str = "main";

/// The rates of what comes from outside, as the file names them.
const RATES: [&str; 2] = ["ingress_per_minute_of_peer", "ingress_per_minute_of_agent"];

/// Who says what nobody else did.
const DEFAULT: &str = "default";
const FILE: &str = "config.toml";
const FLAG: &str = "flag";

#[derive(Subcommand)]
pub(super) enum ConfigVerb {
    /// Each setting as holon serve would have it, and where it comes from.
    Show(Box<ServeArgs>),
    /// Where the configuration file lies, or would.
    Path,
}

/// What a home's `config.toml` may hold.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<String>,
    fallbacks: Vec<String>,
    listen: Option<String>,
    default_agent: Option<String>,
    workspace: Option<PathBuf>,
    control_token: Option<SecretString>,
    /// Names of environment variables that commands may see beside the usual ones.
    command_environment: Vec<String>,
    /// What URLs that are given out begin with, where a proxy stands before the server.
    public_base_url: Option<String>,
    /// Whether commands of agents may ask what their operator may.
    agents_may_control: bool,
    /// Who may send webhooks: `open`, `signed` or `off`.
    webhooks: WebhookMode,
    ingress_per_minute_of_peer: Option<u32>,
    ingress_per_minute_of_agent: Option<u32>,
    commands: Commands,
    providers: BTreeMap<String, ProviderSettings>,
}

/// What a command and all that it starts may use together.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Commands {
    processes_max: Option<NonZeroU64>,
    memory_bytes_max: Option<NonZeroU64>,
    file_bytes_max: Option<NonZeroU64>,
}

/// The home, what its file says, and what the process was started with.
pub(super) struct Config {
    pub home: PathBuf,
    file: File,
    environment: Arc<Environment>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    #[error("no home: neither HOLON_HOME nor a home directory is known")]
    NoHome,
    #[error("{path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("--token and --token-file cannot be used together")]
    TwoTokens,
    #[error("the control token from {named} {fault}")]
    Token { named: String, fault: String },
    #[error("the default agent {id:?}: {reason}")]
    Agent { id: String, reason: String },
    #[error("{0} is not from 1 to {INGRESS_PER_MINUTE_MAX}")]
    Rate(&'static str),
    #[error("public_base_url {0}")]
    PublicBaseUrl(&'static str),
    #[error(transparent)]
    Providers(#[from] ModelError),
}

impl ConfigError {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::NoHome => "set HOLON_HOME, or use --home DIR",
            Self::File { .. } => "mend the file, or remove it to use the defaults",
            Self::TwoTokens => "leave one of them out",
            Self::Token { .. } => "make one with: head -c 32 /dev/urandom | base64 > FILE, and use --token-file FILE",
            Self::Agent { .. } => "choose a plain name such as main",
            Self::Rate(_) => "name a number of requests a minute, or leave it out",
            Self::PublicBaseUrl(_) => "name the address that the outside uses, such as https://holon.example",
            Self::Providers(_) => "mend the providers in config.toml",
        }
    }
}

impl Config {
    pub(super) fn paths(&self) -> Paths {
        Paths::new(self.home.clone())
    }

    /// Reads the home's file, if there is one.
    pub(super) fn load(home: Option<&Path>, environment: &Arc<Environment>) -> Result<Self, ConfigError> {
        let home = self::home(home)?;
        let path = Paths::new(home.clone()).config();
        let fault = |reason: String| ConfigError::File { path: path.clone(), reason };
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => toml_text::parse(&text).map_err(fault)?,
            // Whoever needs the home says what is wrong with it.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => File::default(),
            Err(error) => return Err(fault(error.to_string())),
        };
        Ok(Self { home, file, environment: environment.clone() })
    }

    /// The chosen model, then its fallbacks.
    pub(super) fn models(&self, flag: Option<&str>) -> Vec<String> {
        let chosen = flag.or(self.file.model.as_deref()).unwrap_or(MODEL_DEFAULT).to_owned();
        let fallbacks = self.file.fallbacks.iter().filter(|fallback| **fallback != chosen).cloned();
        std::iter::once(chosen.clone()).chain(fallbacks).collect()
    }

    pub(super) fn listen(&self, flag: Option<&str>) -> String {
        flag.or(self.file.listen.as_deref()).unwrap_or(LISTEN_DEFAULT).to_owned()
    }

    pub(super) fn default_agent(&self, flag: Option<&str>) -> Result<AgentId, ConfigError> {
        let id = flag.or(self.file.default_agent.as_deref()).unwrap_or(AGENT_DEFAULT);
        AgentId::chosen(id).map_err(|error| ConfigError::Agent { id: id.into(), reason: error.to_string() })
    }

    /// The folder the default agent works in: where we were started, unless something names another.
    pub(super) fn workspace(&self, flag: Option<&Path>) -> Result<PathBuf, ConfigError> {
        let path = flag.or(self.file.workspace.as_deref()).unwrap_or(Path::new("."));
        let fault = |error: std::io::Error| ConfigError::File { path: path.to_owned(), reason: error.to_string() };
        path.canonicalize().map_err(fault)
    }

    /// The control token of whoever calls, and where it comes from: a flag, a variable, the file. A token goes before a
    /// file that holds one. A token that is named has to be one: a secret that is not mounted yet opens nothing.
    pub(super) fn control_token(&self, globals: &Globals) -> Result<Option<(String, String)>, ConfigError> {
        const VARIABLE: &str = "HOLON_CONTROL_TOKEN";
        let path = globals.token_file.as_deref();
        let path_from = self.environment.given("HOLON_TOKEN_FILE", path.map(Path::to_string_lossy).as_deref());
        let is_path_by_flag = path_from.as_deref() == Some(FLAG);
        let (text, named, from) = match (&globals.token, path.zip(path_from), self.environment.variable(VARIABLE)) {
            (Some(_), Some(_), _) if is_path_by_flag => return Err(ConfigError::TwoTokens),
            (Some(token), _, _) => (token.clone(), "--token".to_owned(), FLAG.to_owned()),
            (None, Some((path, from)), variable) if is_path_by_flag || variable.is_none() => {
                (token_in(path)?, path.display().to_string(), from)
            }
            (None, _, Some(text)) => (text.to_string_lossy().into_owned(), VARIABLE.to_owned(), VARIABLE.to_owned()),
            (None, _, None) => match &self.file.control_token {
                Some(token) => (token.expose_secret().to_owned(), FILE.to_owned(), FILE.to_owned()),
                None => return Ok(None),
            },
        };
        let token = text.trim();
        match token_fault(token) {
            Some(fault) => Err(ConfigError::Token { named, fault }),
            None => Ok(Some((token.to_owned(), from))),
        }
    }

    /// What commands see of the variables that the process was started with.
    pub(super) fn command_environment(&self) -> CommandEnvironment {
        let read = |name: &str| self.environment.variable(name)?.to_str().map(str::to_owned);
        CommandEnvironment::new(&self.file.command_environment, read)
    }

    /// What URLs that are given out begin with, if the file says so. The value is not repeated in an error: it may hold a
    /// password.
    pub(super) fn public_base_url(&self) -> Result<Option<String>, ConfigError> {
        let Some(text) = &self.file.public_base_url else { return Ok(None) };
        let url = reqwest::Url::parse(text).map_err(|_| ConfigError::PublicBaseUrl("is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ConfigError::PublicBaseUrl("does not begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ConfigError::PublicBaseUrl("names a user or a password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(ConfigError::PublicBaseUrl("has a query or a fragment"));
        }
        Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// Whom the operator lets in beside itself.
    pub(super) fn access(&self) -> Result<Access, ConfigError> {
        let (file, default) = (&self.file, Access::default());
        let rate = |name, given: Option<u32>, default| match given.unwrap_or(default) {
            rate @ 1..=INGRESS_PER_MINUTE_MAX => Ok(rate),
            _ => Err(ConfigError::Rate(name)),
        };
        let (peer, agent) = (file.ingress_per_minute_of_peer, file.ingress_per_minute_of_agent);
        Ok(Access {
            agents_may_control: file.agents_may_control,
            webhooks: file.webhooks,
            ingress_per_minute_of_peer: rate(RATES[0], peer, default.ingress_per_minute_of_peer)?,
            ingress_per_minute_of_agent: rate(RATES[1], agent, default.ingress_per_minute_of_agent)?,
        })
    }

    pub(super) fn tree_limits(&self) -> TreeLimits {
        let (default, file) = (TreeLimits::default(), &self.file.commands);
        let or = |set: Option<NonZeroU64>, default| set.map_or(default, NonZeroU64::get);
        TreeLimits {
            processes_max: or(file.processes_max, default.processes_max),
            memory_bytes_max: or(file.memory_bytes_max, default.memory_bytes_max),
            file_bytes_max: or(file.file_bytes_max, default.file_bytes_max),
        }
    }

    /// Providers from the file and the environment.
    pub(super) fn providers(&self) -> Result<Vec<ProviderConfig>, ConfigError> {
        Ok(provider_configs(&self.file.providers, &self.environment.texts())?)
    }
}

pub(super) fn dispatch(globals: &Globals, verb: &ConfigVerb) -> Outcome {
    match verb {
        ConfigVerb::Show(args) => {
            let settings = globals.config()?.settings(globals, args.listen.as_deref(), &args.runtime)?;
            let row = |setting: &Value| ["name", "value", "from"].map(|name| print::text(&setting[name])).to_vec();
            print::list(globals.json, settings, &["SETTING", "VALUE", "FROM"], row)
        }
        ConfigVerb::Path => {
            // A file that cannot be read has a place all the same.
            let path = Paths::new(home(globals.home.as_deref())?).config();
            print::done(globals.json, &json!({"path": path, "exists": path.exists()}), &path.display().to_string())
        }
    }
}

impl Config {
    /// Secrets are told of, and not told.
    pub(super) fn settings(
        &self,
        globals: &Globals,
        listen: Option<&str>,
        runtime: &RuntimeArgs,
    ) -> Result<Vec<Value>, ConfigError> {
        let file = &self.file;
        let models = self.models(runtime.model.as_deref());
        let log_format = json!(runtime.log_format.unwrap_or_default());
        let named = runtime.log_format.map(|format| json!(format));
        let path = |path: &Option<PathBuf>| path.as_deref().map(|path| path.display().to_string());
        let from = |variable, flag: Option<&str>, in_file| self.environment.given(variable, flag).or(by_file(in_file));
        let mut settings = vec![
            setting("home", &self.home, from("HOLON_HOME", path(&globals.home).as_deref(), false)),
            setting("listen", self.listen(listen), from("HOLON_HTTP_ADDR", listen, file.listen.is_some())),
            setting(
                "default_agent",
                self.default_agent(runtime.default_agent.as_deref())?,
                from("HOLON_DEFAULT_AGENT", runtime.default_agent.as_deref(), file.default_agent.is_some()),
            ),
            setting(
                "workspace",
                self.workspace(runtime.workspace.as_deref())?,
                from("HOLON_WORKSPACE_DIR", path(&runtime.workspace).as_deref(), file.workspace.is_some()),
            ),
            setting("model", &models[0], from("HOLON_MODEL", runtime.model.as_deref(), file.model.is_some())),
            setting("log_format", log_format, from("HOLON_LOG_FORMAT", named.as_ref().and_then(Value::as_str), false)),
            setting("fallbacks", models[1..].join(", "), by_file(!file.fallbacks.is_empty())),
            self.token(globals)?,
            setting(
                "command_environment",
                file.command_environment.join(", "),
                by_file(!file.command_environment.is_empty()),
            ),
        ];
        settings.extend(self.access_settings()?);
        if let Some(url) = self.public_base_url()? {
            settings.push(setting("public_base_url", url, by_file(true)));
        }
        let (limits, commands) = (self.tree_limits(), &file.commands);
        settings.extend(
            [
                ("commands.processes_max", limits.processes_max, commands.processes_max),
                ("commands.memory_bytes_max", limits.memory_bytes_max, commands.memory_bytes_max),
                ("commands.file_bytes_max", limits.file_bytes_max, commands.file_bytes_max),
            ]
            .map(|(name, value, in_file)| setting(name, value, by_file(in_file.is_some()))),
        );
        for provider in self.providers()? {
            settings.extend(self.provider(&provider));
        }
        Ok(settings)
    }

    fn access_settings(&self) -> Result<[Value; 4], ConfigError> {
        let (file, access) = (&self.file, self.access()?);
        let (peer, agent) = (file.ingress_per_minute_of_peer, file.ingress_per_minute_of_agent);
        Ok([
            setting("agents_may_control", access.agents_may_control, by_file(file.agents_may_control)),
            setting("webhooks", access.webhooks, by_file(file.webhooks != WebhookMode::default())),
            setting(RATES[0], access.ingress_per_minute_of_peer, by_file(peer.is_some())),
            setting(RATES[1], access.ingress_per_minute_of_agent, by_file(agent.is_some())),
        ])
    }

    fn token(&self, globals: &Globals) -> Result<Value, ConfigError> {
        let token = self.control_token(globals)?;
        Ok(setting("control_token", is_set(token.is_some()), token.map(|(_, from)| from)))
    }

    /// What is configured of a provider.
    fn provider(&self, provider: &ProviderConfig) -> Vec<Value> {
        let in_file = self.file.providers.get(&provider.name);
        let name = |what: &str| format!("providers.{}.{what}", provider.name);
        let from = |variables: &[String]| {
            let is_set = |name: &&String| self.environment.text(name).is_some();
            variables.iter().find(is_set).cloned().or(by_file(in_file.is_some()))
        };
        let mut told = Vec::new();
        if let Some(url) = &provider.base_url {
            let variables = [variable(&provider.name, "BASE_URL"), "OLLAMA_HOST".to_owned()];
            let known = if provider.name == "ollama" { &variables[..] } else { &variables[..1] };
            told.push(setting(&name("base_url"), without_credentials(url), from(known)));
        }
        if provider.api_key.is_some() {
            let variables = ["API_KEY", "AUTH_TOKEN"].map(|what| variable(&provider.name, what));
            told.push(setting(&name("api_key"), is_set(true), from(&variables)));
        }
        told
    }
}

fn token_in(path: &Path) -> Result<String, ConfigError> {
    let fault = |error: std::io::Error| ConfigError::File { path: path.into(), reason: error.to_string() };
    let file = std::fs::File::open(path).map_err(fault)?;
    // One byte more shows that it is no token.
    std::io::read_to_string(file.take(CONTROL_TOKEN_BYTES_MAX as u64 + 1)).map_err(fault)
}

/// Why a text is no control token; none when it is one.
fn token_fault(token: &str) -> Option<String> {
    let bytes = token.len();
    match bytes {
        0 => Some("is empty".into()),
        _ if bytes < CONTROL_TOKEN_BYTES_MIN => {
            Some(format!("has {bytes} bytes, and {CONTROL_TOKEN_BYTES_MIN} are the least"))
        }
        _ if bytes > CONTROL_TOKEN_BYTES_MAX => Some(format!("has more than {CONTROL_TOKEN_BYTES_MAX} bytes")),
        // A header could not carry it, so that no request would be let in.
        _ if token.chars().any(char::is_control) => Some("has more than one line, or control characters".into()),
        _ => None,
    }
}

fn setting(name: &str, value: impl serde::Serialize, from: Option<String>) -> Value {
    json!({"name": name, "value": value, "from": from.unwrap_or_else(|| DEFAULT.to_owned())})
}

fn is_set(is_set: bool) -> &'static str {
    if is_set { "set" } else { "not set" }
}

impl Environment {
    /// Whether a value that a flag has came by its variable or by the flag itself.
    pub(super) fn given(&self, variable: &str, value: Option<&str>) -> Option<String> {
        let value = value?;
        Some(if self.text(variable) == Some(value) { variable.to_owned() } else { FLAG.to_owned() })
    }

    /// Whether a value was asked for by the flag, and not by the variable.
    pub(super) fn is_by_flag(&self, variable: &str, value: Option<&str>) -> bool {
        self.given(variable, value).is_some_and(|from| from == FLAG)
    }
}

fn by_file(is_there: bool) -> Option<String> {
    is_there.then(|| FILE.to_owned())
}

/// The home that is named, else the one of whoever runs this.
pub(super) fn home(named: Option<&Path>) -> Result<PathBuf, ConfigError> {
    match named {
        Some(home) => Ok(home.to_owned()),
        None => default_home(),
    }
}

fn default_home() -> Result<PathBuf, ConfigError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| ConfigError::NoHome)?;
    Ok(strategy.data_dir().join("holon"))
}
