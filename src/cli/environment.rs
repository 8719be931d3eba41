//! What the process was started with: its arguments and its variables, secrets among them.
//!
//! The kernel shows both to other processes of the user for as long as the process runs (`ps`, `/proc/PID/environ`). A
//! process that serves agents therefore starts itself a second time: with the arguments and variables that hold no
//! secrets, and with all of them in a sealed memory file, which it reads and closes before it does anything else.

use super::Cli;
use crate::runtime::process::keep_memory_private;
use clap::CommandFactory;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Names the descriptor of the sealed file. It holds its number.
const DESCRIPTOR: &str = "HOLON_ENVIRONMENT_DESCRIPTOR";
/// The flag whose value is left out of the second start's arguments.
const TOKEN_FLAG: &str = "--token";
/// Nobody can alter the file, nor take these seals off.
const SEALS: SealFlags = SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// Variables that hold no secrets, beside those that are read by flags: what finds programs and folders, and what
/// libraries, loggers and the loader go by. Any other may hold a key, whatever it is called.
const PUBLIC: [&str; 22] = [
    "COLORTERM",
    "HOLON_LOG",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "PWD",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TOKIO_WORKER_THREADS",
    "TZ",
    "TZDIR",
    "USER",
];
const PUBLIC_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// Variables that the HTTP client reads by itself. The address of a proxy may hold a password.
const PROXIES: [&str; 8] =
    ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "all_proxy", "http_proxy", "https_proxy", "no_proxy"];

/// The arguments and variables that the process was started with.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Environment {
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    /// Whether they came by the sealed file, so that nobody else sees them.
    #[serde(skip)]
    is_sealed: bool,
}

impl Environment {
    /// Reads the sealed file if there is one, else the process's own arguments and variables.
    ///
    /// # Errors
    /// When a descriptor is named that does not hold what this program put there.
    pub(super) fn take() -> io::Result<Self> {
        match std::env::var_os(DESCRIPTOR) {
            None => {
                let (arguments, variables) = (std::env::args_os().collect(), std::env::vars_os().collect());
                Ok(Self { arguments, variables, is_sealed: false })
            }
            Some(number) => {
                keep_memory_private()?;
                let environment = Self { is_sealed: true, ..unsealed(&number)? };
                rustix::thread::set_name(c"holon")?;
                set_proxies(&environment);
                Ok(environment)
            }
        }
    }

    pub(super) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// A variable as it was set; none if it was not.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// A variable that is set to some text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.variable(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// All variables that are text. One that is not is none that we read.
    pub(super) fn texts(&self) -> BTreeMap<String, String> {
        let text = |text: &OsStr| text.to_str().map(str::to_owned);
        self.variables.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
    }

    /// Starts the program again with what holds no secrets, and with everything in a sealed file. Comes back only when
    /// that fails.
    pub(super) fn start_again(&self) -> io::Error {
        let start = || {
            keep_memory_private()?;
            let file = self.sealed()?;
            let read_by_flags = variables_of_flags(&Cli::command());
            let is_public = |name: &OsStr| name.to_str().is_some_and(|name| is_public(name, &read_by_flags));
            let mut again = Command::new("/proc/self/exe");
            again.env_clear().env(DESCRIPTOR, file.as_raw_fd().to_string());
            again.envs(self.variables.iter().filter(|(name, _)| is_public(name)).map(|(name, value)| (name, value)));
            let mut arguments = without_token(&self.arguments).into_iter();
            again.arg0(arguments.next().unwrap_or_default()).args(arguments);
            Err(again.exec())
        };
        let Err(error) = start() as io::Result<std::convert::Infallible>;
        error
    }

    /// A file of memory with all of this, which nobody can alter and which the next program inherits.
    fn sealed(&self) -> io::Result<File> {
        let create = |flags: MemfdFlags| memfd_create(c"holon-environment", flags | MemfdFlags::ALLOW_SEALING);
        // A kernel before 6.3 does not know that flag; a later one may demand it.
        let file = match create(MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => create(MemfdFlags::empty()),
            created => created,
        };
        let mut file = File::from(file?);
        file.write_all(&serde_json::to_vec(self)?)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok(file)
    }
}

/// Gives the HTTP client what it reads by itself. It does not come into the block that other processes see.
#[expect(clippy::disallowed_methods, reason = "there is no other thread yet")]
fn set_proxies(environment: &Environment) {
    for name in PROXIES {
        if let Some(value) = environment.variable(name) {
            // SAFETY: the process has one thread, which is this one. Children are given their variables by name.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// Names alone: a value may be a secret.
impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

/// What the sealed file holds. It is closed with that.
fn unsealed(number: &OsStr) -> io::Result<Environment> {
    let foreign = || io::Error::other(format!("{DESCRIPTOR} does not name a sealed file of holon's"));
    let number: RawFd = number.to_str().and_then(|text| text.parse().ok()).filter(|fd| *fd > 2).ok_or_else(foreign)?;
    // SAFETY: it is only asked for its seals, which fails for what is no open file of memory.
    let seals = fcntl_get_seals(unsafe { BorrowedFd::borrow_raw(number) }).map_err(|_| foreign())?;
    if !seals.contains(SEALS) {
        return Err(foreign());
    }
    // SAFETY: it is open, and nothing of this process knows of it but this function.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
    file.rewind()?;
    serde_json::from_reader(io::BufReader::new(file)).map_err(|_| foreign())
}

fn is_public(name: &str, read_by_flags: &[String]) -> bool {
    PUBLIC.contains(&name)
        || PUBLIC_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || read_by_flags.iter().any(|known| known == name)
}

/// The variables that the flags of all verbs read, without those whose values the help hides.
fn variables_of_flags(command: &clap::Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_env_values_set());
    let own = shown.filter_map(|argument| Some(argument.get_env()?.to_str()?.to_owned()));
    own.chain(command.get_subcommands().flat_map(variables_of_flags)).collect()
}

/// The arguments without `--token` and its value.
fn without_token(arguments: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            kept.push(argument.clone());
            kept.extend(rest.cloned());
            break;
        }
        let text = argument.to_string_lossy();
        match text.strip_prefix(TOKEN_FLAG) {
            Some("") => drop(rest.next()),
            Some(value) if value.starts_with('=') => {}
            Some(_) | None => kept.push(argument.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd as _;

    #[test]
    fn the_token_is_left_out_of_the_arguments() {
        let cases = [
            ("holon serve --token X --json", "holon serve --json"),
            ("holon --token=X serve --token-file f", "holon serve --token-file f"),
            ("holon run --token X -- --token", "holon run -- --token"),
            ("holon serve --token", "holon serve"),
        ];
        for (given, kept) in cases {
            let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(without_token(&words(given)), words(kept), "{given}");
        }
    }

    #[test]
    fn a_variable_is_public_only_when_it_is_known_to_hold_no_secret() {
        let flags = variables_of_flags(&Cli::command());
        for public in ["PATH", "LC_ALL", "XDG_DATA_HOME", "HOLON_HOME", "HOLON_MODEL", "HOLON_TOKEN_FILE"] {
            assert!(is_public(public, &flags), "{public}");
        }
        for secret in ["HOLON_CONTROL_TOKEN", "HOLON_SERVER", "OPENAI_API_KEY", "HTTPS_PROXY", "DATABASE_URL", "Path"] {
            assert!(!is_public(secret, &flags), "{secret}");
        }
    }

    #[test]
    fn a_sealed_file_cannot_be_altered_and_gives_back_what_it_was_given() {
        let given = Environment {
            arguments: vec!["holon".into()],
            variables: vec![("A".into(), "a b\n".into()), ("B".into(), OsString::new())],
            is_sealed: false,
        };
        let mut file = given.sealed().expect("a file of memory");
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
        let number = OsString::from(file.into_raw_fd().to_string());
        let read = unsealed(&number).expect("what was written");
        assert_eq!((read.arguments, read.variables), (given.arguments, given.variables));
        assert!(unsealed(&number).is_err(), "it was closed");
        assert!(unsealed(OsStr::new("0")).is_err() && unsealed(OsStr::new("x")).is_err());
    }
}
