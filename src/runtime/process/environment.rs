//! What a command may know of the daemon's environment.

use crate::words::id::AgentId;
use std::collections::BTreeMap;
use std::path::Path;

/// The variable that tells a command which agent it runs for.
pub const AGENT_ID_VARIABLE: &str = "HOLON_AGENT_ID";
/// The variable that tells a command where its agent's home folder is.
const AGENT_HOME_VARIABLE: &str = "HOLON_AGENT_HOME";

const ALLOWED: [&str; 5] = ["PATH", "HOME", "LANG", "TERM", "TZ"];
/// Our own variables may hold the control token, so configuration cannot let them through.
const OWN_PREFIX: &str = "HOLON_";

/// The whole environment of an agent's commands: what is allowed, what is `configured` by name, and the agent's id
/// and home folder.
///
/// `read` reads a variable of the daemon ([`of_the_daemon`]). Variables that are not set are left out, and so are
/// configured names of our own (`HOLON_…`).
#[must_use]
pub fn command_environment(
    agent: &AgentId,
    home: &Path,
    configured: &[String],
    read: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let configured = configured.iter().map(String::as_str).filter(|name| !name.starts_with(OWN_PREFIX));
    let names = ALLOWED.into_iter().chain(configured);
    let inherited = names.filter_map(|name| Some((name.to_owned(), read(name)?)));
    let own = [(AGENT_ID_VARIABLE, agent.to_string()), (AGENT_HOME_VARIABLE, home.to_string_lossy().into_owned())];
    inherited.chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// A variable of this process; none when it is not set or is not UTF-8.
#[must_use]
pub fn of_the_daemon(name: &str) -> Option<String> {
    std::env::var(name).ok()
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
        let environment = command_environment(&agent, Path::new("/agents/main"), &configured, everything);
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
        let environment = command_environment(&agent, Path::new("/agents/main"), &[], read);
        assert!(environment.values().all(|value| value != "secret"), "{environment:?}");
        assert_eq!(environment.len(), 3);
    }
}
