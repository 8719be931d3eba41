//! Which provider a model reference names, and how providers are configured.
//!
//! A reference is `provider/model`; the model may hold further slashes. A bare model is looked up among the lists of
//! the configured providers. Two providers need no configuration: `builtin/runbook` and `scripted/<path>`.

use super::Provider;
use super::failure::failed;
use super::remote::{Protocol, ProviderConfig, Remote};
use super::runbook::Runbook;
use super::scripted::Scripted;
use crate::events::turn::{AttemptError, AttemptErrorKind};
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Longest wait for an answer's headers, and longest silence within it: models that think may take minutes.
pub const MODEL_TIMEOUT_MS_DEFAULT: u64 = 10 * 60 * 1_000;

/// The services that are known by name.
const SERVICES: &[(&str, Protocol)] = &[
    ("anthropic", Protocol::Anthropic),
    ("gemini", Protocol::Gemini),
    ("ollama", Protocol::Ollama),
    ("openai", Protocol::OpenAi),
];

/// Names that no configured provider may take.
const RESERVED: &[&str] = &["builtin", "scripted"];

/// A provider as the configuration file describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderSettings {
    /// None for the named service's own, and for `OpenAI`'s with any other name.
    pub protocol: Option<Protocol>,
    pub base_url: Option<String>,
    pub api_key: Option<SecretString>,
    pub timeout_ms: Option<u64>,
    /// Models that are found by their bare name.
    pub models: Vec<String>,
}

/// A model reference or a configuration that cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("there is no model provider {provider}: configure it with its base_url, or use one of {known}")]
    UnknownProvider { provider: String, known: String },
    #[error("no provider lists the model {model}: write provider/model, or add it to a provider's models")]
    UnknownModel { model: String },
    #[error("the model {model} is listed by {providers}: write provider/model")]
    AmbiguousModel { model: String, providers: String },
    #[error("the provider {provider} has no API key: set {variables} or its api_key")]
    KeyMissing { provider: String, variables: String },
    #[error("{reason}")]
    NoClient { reason: String },
    #[error("a model provider cannot be called {name:?}: it is reserved, empty or has a slash in it")]
    BadName { name: String },
}

impl From<ModelError> for AttemptError {
    fn from(error: ModelError) -> Self {
        failed(AttemptErrorKind::NotConfigured, error.to_string())
    }
}

/// The providers that a configuration file and an environment describe; where both speak, the environment wins.
///
/// The environment gives `NAME_API_KEY` and `NAME_BASE_URL` for each provider, and also `ANTHROPIC_AUTH_TOKEN`, a key
/// that is sent as a bearer token, and `OLLAMA_HOST`. Empty variables count as not set.
///
/// # Errors
/// When the file names a provider in a way that no reference could.
pub fn provider_configs(
    file: &BTreeMap<String, ProviderSettings>,
    environment: &BTreeMap<String, String>,
) -> Result<Vec<ProviderConfig>, ModelError> {
    if let Some(name) = file.keys().find(|name| is_bad_name(name)) {
        return Err(ModelError::BadName { name: name.clone() });
    }
    let services = SERVICES.iter().map(|(name, _)| *name);
    let names: BTreeSet<&str> = services.chain(file.keys().map(String::as_str)).collect();
    let settings = |name: &str| file.get(name).cloned().unwrap_or_default();
    Ok(names.into_iter().map(|name| provider_config(name, settings(name), environment)).collect())
}

fn is_bad_name(name: &str) -> bool {
    name.is_empty() || name.contains('/') || RESERVED.contains(&name)
}

fn provider_config(name: &str, file: ProviderSettings, environment: &BTreeMap<String, String>) -> ProviderConfig {
    let set = |variable: &str| environment.get(variable).map(|text| text.trim()).filter(|text| !text.is_empty());
    let service = SERVICES.iter().find(|(known, _)| *known == name).map(|(_, protocol)| *protocol);
    let host = (name == "ollama").then(|| set("OLLAMA_HOST").map(ollama_url)).flatten();
    let key = set(&variable(name, "API_KEY"));
    let token = if name == "anthropic" && key.is_none() { set("ANTHROPIC_AUTH_TOKEN") } else { None };
    ProviderConfig {
        name: name.to_owned(),
        protocol: file.protocol.or(service).unwrap_or(Protocol::OpenAi),
        base_url: set(&variable(name, "BASE_URL")).map(str::to_owned).or(host).or(file.base_url),
        api_key: key.or(token).map(SecretString::from).or(file.api_key),
        bearer: token.is_some(),
        models: file.models,
        timeout_ms: file.timeout_ms.unwrap_or(MODEL_TIMEOUT_MS_DEFAULT),
    }
}

/// `ANTHROPIC_API_KEY` for `anthropic`, `MY_HOST_API_KEY` for `my-host`.
pub fn variable(provider: &str, what: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    format!("{}_{what}", provider.chars().map(letter).collect::<String>())
}

/// Ollama's own tools take a host without scheme or port.
fn ollama_url(host: &str) -> String {
    match host {
        url if url.contains("://") => url.to_owned(),
        host if host.contains(':') => format!("http://{host}"),
        host => format!("http://{host}:11434"),
    }
}

/// Every model that can be asked.
pub struct Models {
    providers: BTreeMap<String, Configured>,
}

/// A model, and who answers for it.
pub struct Resolved {
    pub provider: Arc<dyn Provider>,
    /// The model's name as the provider takes it in its requests.
    pub model: String,
}

/// Its client is built when it is first needed: reading the roots of trust takes a while.
struct Configured {
    config: ProviderConfig,
    remote: OnceLock<Result<Arc<Remote>, ModelError>>,
}

/// Where a reference leads.
enum Place<'a> {
    Runbook,
    Scripted(&'a str),
    Remote(&'a Configured, &'a str),
}

impl Models {
    /// Of two configurations with one name the later counts.
    pub fn new(configs: Vec<ProviderConfig>) -> Self {
        let entry = |config: ProviderConfig| (config.name.clone(), Configured { config, remote: OnceLock::new() });
        Self { providers: configs.into_iter().map(entry).collect() }
    }

    /// The provider and the model's name for a reference.
    ///
    /// # Errors
    /// When nothing answers for the reference, or its provider has no key.
    pub fn resolve(&self, reference: &str) -> Result<Resolved, ModelError> {
        let (provider, model): (Arc<dyn Provider>, &str) = match self.place(reference)? {
            Place::Runbook => (Arc::new(Runbook), "runbook"),
            Place::Scripted(path) => (Arc::new(Scripted), path),
            Place::Remote(configured, model) => (configured.remote()?, model),
        };
        Ok(Resolved { provider, model: model.to_owned() })
    }

    /// The references that are configured: what needs no configuration, and what providers list.
    pub fn references(&self) -> Vec<String> {
        let listed = self.providers.iter().flat_map(|(provider, configured)| {
            configured.config.models.iter().map(move |model| format!("{provider}/{model}"))
        });
        ["builtin/runbook".to_owned()].into_iter().chain(listed).collect()
    }

    /// A reference in full: a bare name is that of the provider which lists it.
    ///
    /// # Errors
    /// When nothing answers for the reference.
    pub fn in_full(&self, reference: &str) -> Result<String, ModelError> {
        Ok(match self.place(reference)? {
            Place::Remote(configured, model) => format!("{}/{model}", configured.config.name),
            Place::Runbook | Place::Scripted(_) => reference.to_owned(),
        })
    }

    /// Whether a reference leads to a provider that has its key or needs none. Nothing is asked of the provider.
    pub fn is_available(&self, reference: &str) -> bool {
        match self.place(reference) {
            Ok(Place::Runbook | Place::Scripted(_)) => true,
            Ok(Place::Remote(configured, _)) => configured.check_key().is_ok(),
            Err(_) => false,
        }
    }

    fn place<'a>(&'a self, reference: &'a str) -> Result<Place<'a>, ModelError> {
        match reference.split_once('/') {
            None => self.listed(reference),
            Some(("builtin", "runbook")) => Ok(Place::Runbook),
            Some(("builtin", _) | (_, "")) => Err(ModelError::UnknownModel { model: reference.to_owned() }),
            Some(("scripted", path)) => Ok(Place::Scripted(path)),
            Some((provider, model)) => match self.providers.get(provider) {
                Some(configured) => Ok(Place::Remote(configured, model)),
                None => Err(ModelError::UnknownProvider { provider: provider.to_owned(), known: self.known() }),
            },
        }
    }

    fn listed<'a>(&'a self, model: &'a str) -> Result<Place<'a>, ModelError> {
        let lists = |configured: &&Configured| configured.config.models.iter().any(|listed| listed == model);
        let found: Vec<&Configured> = self.providers.values().filter(lists).collect();
        match found.as_slice() {
            [] => Err(ModelError::UnknownModel { model: model.to_owned() }),
            [only] => Ok(Place::Remote(only, model)),
            several => {
                let names: Vec<&str> = several.iter().map(|configured| configured.config.name.as_str()).collect();
                Err(ModelError::AmbiguousModel { model: model.to_owned(), providers: names.join(", ") })
            }
        }
    }

    fn known(&self) -> String {
        let names = RESERVED.iter().copied().chain(self.providers.keys().map(String::as_str));
        names.collect::<Vec<_>>().join(", ")
    }
}

impl Configured {
    fn remote(&self) -> Result<Arc<Remote>, ModelError> {
        self.check_key()?;
        let build = || Remote::new(self.config.clone()).map(Arc::new);
        self.remote.get_or_init(|| build().map_err(|error| ModelError::NoClient { reason: error.to_string() })).clone()
    }

    /// The services ask for a key; a server of one's own may do without.
    fn check_key(&self) -> Result<(), ModelError> {
        let ProviderConfig { name, protocol, base_url, api_key, .. } = &self.config;
        if api_key.is_some() || base_url.is_some() || *protocol == Protocol::Ollama {
            return Ok(());
        }
        let mut variables = variable(name, "API_KEY");
        if name == "anthropic" {
            variables.push_str(" or ANTHROPIC_AUTH_TOKEN");
        }
        Err(ModelError::KeyMissing { provider: name.clone(), variables })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn file(pairs: Vec<(&str, ProviderSettings)>) -> BTreeMap<String, ProviderSettings> {
        pairs.into_iter().map(|(name, settings)| (name.to_owned(), settings)).collect()
    }

    /// One line a provider: name, protocol, base URL, key, with `bearer` at the end where it is one.
    fn shown(file: &BTreeMap<String, ProviderSettings>, pairs: &[(&str, &str)]) -> Vec<String> {
        let line = |config: ProviderConfig| {
            let base = config.base_url.as_deref().unwrap_or("-");
            let key = config.api_key.as_ref().map_or("-", |key| key.expose_secret());
            let bearer = if config.bearer { " bearer" } else { "" };
            format!("{} {:?} {base} {key}{bearer}", config.name, config.protocol)
        };
        provider_configs(file, &environment(pairs)).expect("good names").into_iter().map(line).collect()
    }

    #[test]
    fn the_environment_configures_the_services() {
        let pairs = [
            ("ANTHROPIC_AUTH_TOKEN", "token"),
            ("ANTHROPIC_BASE_URL", "http://gate"),
            ("OPENAI_API_KEY", " sk-1\n"),
            ("GEMINI_API_KEY", ""),
            ("OLLAMA_HOST", "box"),
        ];
        let expected = [
            "anthropic Anthropic http://gate token bearer",
            "gemini Gemini - -",
            "ollama Ollama http://box:11434 -",
            "openai OpenAi - sk-1",
        ];
        assert_eq!(shown(&BTreeMap::new(), &pairs), expected);
        let pairs = [("ANTHROPIC_AUTH_TOKEN", "token"), ("ANTHROPIC_API_KEY", "key"), ("OLLAMA_HOST", "::1:99")];
        let lines = shown(&BTreeMap::new(), &pairs);
        assert_eq!(
            (lines[0].as_str(), lines[2].as_str()),
            ("anthropic Anthropic - key", "ollama Ollama http://::1:99 -")
        );
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let settings = |base: &str| ProviderSettings {
            base_url: Some(base.to_owned()),
            api_key: Some(SecretString::from("file")),
            ..ProviderSettings::default()
        };
        let file = file(vec![("openai", settings("http://a/v1")), ("my-host", settings("http://b/v1"))]);
        let lines = shown(&file, &[("OPENAI_API_KEY", "env"), ("MY_HOST_BASE_URL", "http://c/v1")]);
        assert_eq!(lines[2], "my-host OpenAi http://c/v1 file");
        assert_eq!(lines[4], "openai OpenAi http://a/v1 env");
    }

    #[test]
    fn a_provider_may_not_hide_another() {
        for name in ["builtin", "scripted", "", "a/b"] {
            let file = file(vec![(name, ProviderSettings::default())]);
            let error = provider_configs(&file, &BTreeMap::new()).expect_err(name);
            assert_eq!(error, ModelError::BadName { name: name.to_owned() });
        }
    }

    fn models(pairs: &[(&str, &str)]) -> Models {
        let listing = |models: &[&str], base: Option<&str>| ProviderSettings {
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            base_url: base.map(str::to_owned),
            ..ProviderSettings::default()
        };
        let file = file(vec![
            ("openai", listing(&["gpt-5", "both"], None)),
            ("local", listing(&["both", "tiny"], Some("http://127.0.0.1:1/v1"))),
        ]);
        Models::new(provider_configs(&file, &environment(pairs)).expect("good names"))
    }

    #[test]
    fn references_are_resolved_or_say_what_to_do() {
        let models = models(&[("OPENAI_API_KEY", "k")]);
        let cases: [(&str, Result<&str, &str>); 13] = [
            ("builtin/runbook", Ok("runbook")),
            ("scripted//tmp/a/b.json", Ok("/tmp/a/b.json")),
            ("openai/org/model", Ok("org/model")),
            ("ollama/qwen3:8b", Ok("qwen3:8b")),
            ("local/tiny", Ok("tiny")),
            ("gpt-5", Ok("gpt-5")),
            ("tiny", Ok("tiny")),
            ("both", Err("listed by local, openai")),
            ("gpt-6", Err("no provider lists the model gpt-6")),
            ("builtin/other", Err("no provider lists the model builtin/other")),
            ("openai/", Err("no provider lists the model openai/")),
            ("groq/x", Err("use one of builtin, scripted, anthropic, gemini, local, ollama, openai")),
            ("anthropic/x", Err("set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN or its api_key")),
        ];
        for (reference, expected) in cases {
            match (models.resolve(reference), expected) {
                (Ok(resolved), Ok(model)) => assert_eq!(resolved.model, model),
                (Err(error), Err(reason)) => {
                    let error = AttemptError::from(error);
                    assert_eq!(error.kind, AttemptErrorKind::NotConfigured);
                    assert!(error.message.contains(reason), "{reference}: {}", error.message);
                }
                (got, _) => panic!("{reference}: {:?}", got.err()),
            }
            assert_eq!(models.is_available(reference), expected.is_ok(), "{reference}");
        }
    }

    #[test]
    fn settings_are_read_from_toml() {
        let text = "protocol = \"openai\"\nbase_url = \"http://b/v1\"\napi_key = \"k\"\nmodels = [\"m\"]";
        let settings: ProviderSettings = toml::from_str(text).expect("settings");
        assert_eq!(settings.protocol, Some(Protocol::OpenAi));
        assert!(!format!("{settings:?}").contains("\"k\""), "a key shows in debug output");
        assert!(toml::from_str::<ProviderSettings>("api-key = \"k\"").is_err());
    }
}
