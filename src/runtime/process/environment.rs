//! What a command may know of the daemon's environment.

use crate::words::id::AgentId;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The variable that tells a command which agent it runs for.
pub const AGENT_ID_VARIABLE: &str = "HOLON_AGENT_ID";
/// The variable that tells a command where its agent's home folder is.
const AGENT_HOME_VARIABLE: &str = "HOLON_AGENT_HOME";

const ALLOWED: [&str; 5] = ["PATH", "HOME", "LANG", "TERM", "TZ"];
/// Our own variables may hold the control token, so configuration cannot let them through.
const OWN_PREFIX: &str = "HOLON_";

/// The variables of the daemon that commands see. Whoever starts the runtime takes them out of its environment once.
#[derive(Clone)]
pub struct CommandEnvironment(BTreeMap<String, String>);

impl CommandEnvironment {
    /// The usual variables, and those that are `configured` by name.
    ///
    /// `read` reads a variable of the daemon. Variables that are not set are left out, and so are configured names of
    /// our own (`HOLON_…`).
    #[must_use]
    pub fn new(configured: &[String], read: impl Fn(&str) -> Option<String>) -> Self {
        let configured = configured.iter().map(String::as_str).filter(|name| !name.starts_with(OWN_PREFIX));
        let names = ALLOWED.into_iter().chain(configured);
        Self(names.filter_map(|name| Some((name.to_owned(), read(name)?))).collect())
    }

    /// The whole environment of an agent's command: these, and the agent's id and home folder.
    #[must_use]
    pub fn of_agent(&self, agent: &AgentId, home: &Path) -> BTreeMap<String, String> {
        let own = [(AGENT_ID_VARIABLE, agent.to_string()), (AGENT_HOME_VARIABLE, home.to_string_lossy().into_owned())];
        self.0.clone().into_iter().chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
    }
}

/// The usual variables of this process.
impl Default for CommandEnvironment {
    fn default() -> Self {
        Self::new(&[], |name| std::env::var(name).ok())
    }
}

/// Names alone: what an operator lets commands see may be a secret all the same.
impl fmt::Debug for CommandEnvironment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything(name: &str) -> Option<String> {
        Some(format!("the {name}"))
    }

    #[test]
    fn only_what_is_named_gets_through() {
        let agent = AgentId::parse("main").expect("valid");
        let configured = ["CARGO_HOME".to_owned(), "HOLON_CONTROL_TOKEN".to_owned()];
        let environment = CommandEnvironment::new(&configured, everything);
        assert!(!format!("{environment:?}").contains("the PATH"), "{environment:?}");
        let environment = environment.of_agent(&agent, Path::new("/agents/main"));
        let names = environment.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(names, ["CARGO_HOME", "HOLON_AGENT_HOME", "HOLON_AGENT_ID", "HOME", "LANG", "PATH", "TERM", "TZ"]);
        assert_eq!(environment["HOLON_AGENT_ID"], "main");
        assert_eq!(environment["HOLON_AGENT_HOME"], "/agents/main");
    }

    #[test]
    fn no_token_gets_through() {
        let agent = AgentId::parse("main").expect("valid");
        let daemon = [("PATH", "/bin"), ("HOLON_TOKEN", "secret"), ("OPENAI_API_KEY", "secret")];
        let read = |name: &str| daemon.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let environment = CommandEnvironment::new(&[], read).of_agent(&agent, Path::new("/agents/main"));
        assert!(environment.values().all(|value| value != "secret"), "{environment:?}");
        assert_eq!(environment.len(), 3);
    }
}
