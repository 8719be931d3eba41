//! Configuration: flag over environment over file over default.

use crate::ledger::home::Paths;
use crate::runtime::model::catalog::{ModelError, ProviderSettings, provider_configs};
use crate::runtime::model::remote::ProviderConfig;
use crate::words::id::AgentId;
use etcetera::BaseStrategy;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The model that needs no key.
pub(super) const MODEL_DEFAULT: &str = "builtin/runbook";
pub(super) const LISTEN_DEFAULT: &str = "127.0.0.1:7878";
pub(super) const AGENT_DEFAULT: &str = "main";

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
    providers: BTreeMap<String, ProviderSettings>,
}

/// The home, and what its file says.
pub(super) struct Config {
    pub home: PathBuf,
    file: File,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    #[error("no home: neither HOLON_HOME nor a home directory is known")]
    NoHome,
    #[error("{path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("the default agent {id:?}: {reason}")]
    Agent { id: String, reason: String },
    #[error(transparent)]
    Providers(#[from] ModelError),
}

impl ConfigError {
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::NoHome => "set HOLON_HOME, or use --home DIR",
            Self::File { .. } => "mend the file, or remove it to use the defaults",
            Self::Agent { .. } => "choose a plain name such as main",
            Self::Providers(_) => "mend the providers in config.toml",
        }
    }
}

impl Config {
    pub(super) fn paths(&self) -> Paths {
        Paths::new(self.home.clone())
    }

    /// Reads the home's file, if there is one.
    pub(super) fn load(home: Option<&Path>) -> Result<Self, ConfigError> {
        let home = match home {
            Some(home) => home.to_owned(),
            None => default_home()?,
        };
        let path = home.join("config.toml");
        let fault = |reason: String| ConfigError::File { path: path.clone(), reason };
        let file = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| fault(error.to_string()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => File::default(),
            Err(error) => return Err(fault(error.to_string())),
        };
        Ok(Self { home, file })
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

    pub(super) fn control_token(
        &self,
        flag: Option<&str>,
        flag_file: Option<&Path>,
    ) -> Result<Option<String>, ConfigError> {
        let given = match (flag, flag_file) {
            (Some(token), _) => Some(token.to_owned()),
            (None, Some(path)) => {
                let fault = |error: std::io::Error| ConfigError::File { path: path.into(), reason: error.to_string() };
                Some(std::fs::read_to_string(path).map_err(fault)?)
            }
            (None, None) => self.file.control_token.as_ref().map(|token| token.expose_secret().to_owned()),
        };
        Ok(given.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()))
    }

    pub(super) fn command_environment(&self) -> Vec<String> {
        self.file.command_environment.clone()
    }

    /// Providers from the file and the environment.
    pub(super) fn providers(&self) -> Result<Vec<ProviderConfig>, ConfigError> {
        // A variable that is not text is none that we read.
        let environment =
            std::env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
        Ok(provider_configs(&self.file.providers, &environment.collect())?)
    }
}

fn default_home() -> Result<PathBuf, ConfigError> {
    let strategy = etcetera::choose_base_strategy().map_err(|_| ConfigError::NoHome)?;
    Ok(strategy.data_dir().join("holon"))
}
