//! A real `holon serve` on a home of its own, to be talked to, killed and started again.

use futures::StreamExt;
use holon::client::{Address, Client, ClientError, StreamedEvent};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Longer than anything here takes; what waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A home, and how its daemons are started.
pub struct Home {
    folder: TempDir,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A running daemon. It is killed when dropped.
pub struct Daemon {
    child: Child,
    pub url: String,
    pub client: Client,
    socket: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder for a home");
        std::fs::create_dir(folder.path().join("workspace")).expect("a folder to work in");
        Self { folder, arguments: Vec::new(), environment: Vec::new() }
    }

    /// An argument of `holon serve`.
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// `holon ARGUMENTS` on this home.
    pub fn holon(&self, arguments: &[&str]) -> Command {
        let mut command = holon(&self.path(), &self.workspace());
        command.args(arguments).envs(self.environment.iter().cloned());
        command
    }

    /// Starts a daemon and waits for the line that says it is ready.
    pub fn serve(&self) -> Daemon {
        let mut command = self.holon(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(&self.arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("holon serve starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is ours");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        let url = line.trim().rsplit(' ').next().expect("an address").to_owned();
        assert!(url.starts_with("http://"), "not ready: {line:?}");
        let socket = self.path().join("holon.sock");
        let client = Client::new(Address::Socket(socket.clone()), None).expect("a client");
        Daemon { child, url, client, socket }
    }
}

/// `holon` with nothing of this environment but what finds programs.
pub fn holon(home: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holon"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOLON_HOME", home);
    command.current_dir(workspace).stdin(Stdio::null());
    command
}

impl Daemon {
    /// As a power cut would end it.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }

    /// As an operator would end it: SIGTERM, and wait.
    pub fn stop(mut self) -> ExitStatus {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it runs");
        self.child.wait().expect("it is ours")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a daemon that ends by itself.
    pub fn ended(mut self) -> ExitStatus {
        self.child.wait().expect("it is ours")
    }

    /// Another client of the same daemon.
    pub fn another_client(&self) -> Client {
        Client::new(Address::Socket(self.socket.clone()), None).expect("a client")
    }

    pub async fn get(&self, path: &str) -> Value {
        self.client.get(path).await.unwrap_or_else(|error| panic!("GET {path}: {error:?}"))
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.client.post(path, &body).await.unwrap_or_else(|error| panic!("POST {path}: {error:?}"))
    }

    /// The code of the problem that a POST is answered with.
    pub async fn refusal(&self, path: &str, body: Value) -> String {
        match self.client.post(path, &body).await {
            Err(ClientError::Refused(problem)) => problem.code,
            other => panic!("POST {path} was not refused: {other:?}"),
        }
    }

    /// Sends a prompt to an agent; answers its message id.
    pub async fn prompt(&self, agent: &str, text: &str) -> String {
        let sent = self.post(&format!("/control/agents/{agent}/prompt"), json!({"text": text})).await;
        sent["message_id"].as_str().expect("a message id").to_owned()
    }

    /// All events of an agent, as they are recorded.
    pub async fn events(&self, agent: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let path =
                format!("/agents/{agent}/events?projection=local_debug&order=asc&limit=512&after_seq={}", events.len());
            let page = self.get(&path).await;
            events.extend(page["events"].as_array().expect("events").iter().cloned());
            if page["has_newer"] == false {
                return events;
            }
        }
    }

    /// Waits for the first event, from `after` on, that is as wanted.
    pub async fn wait(&self, agent: &str, after: u64, wanted: impl Fn(&StreamedEvent) -> bool) -> StreamedEvent {
        let path = format!("/agents/{agent}/events/stream?projection=local_debug&after_seq={after}");
        let mut stream = self.client.stream(&path).await.expect("a stream");
        let find = async {
            while let Some(event) = stream.next().await {
                let event = event.expect("an event");
                if wanted(&event) {
                    return event;
                }
            }
            panic!("the stream ended");
        };
        tokio::time::timeout(PATIENCE, find).await.expect("it happens in time")
    }

    /// Waits until a message has its outcome; answers its name.
    pub async fn settled(&self, agent: &str, message: &str) -> String {
        let event = self
            .wait(agent, 0, |event| event.kind == "message_settled" && event.data["payload"]["message"] == message)
            .await;
        let outcome = &event.data["payload"]["outcome"];
        outcome.as_object().and_then(|outcome| outcome.keys().next().cloned()).expect("an outcome")
    }

    /// Waits until a message is settled and its run has ended, then gives the brief that answers it.
    pub async fn answer(&self, agent: &str, message: &str) -> Value {
        self.settled(agent, message).await;
        let told = self.get(&format!("/agents/{agent}/messages/{message}")).await;
        let run = told["run_id"].clone();
        self.wait(agent, 0, |event| event.kind == "turn_terminal" && event.data["payload"]["run"] == run).await;
        let briefs = self.get(&format!("/agents/{agent}/briefs?limit=1000")).await;
        let briefs = briefs.as_array().expect("briefs").clone();
        let of_run = |brief: &Value| brief["run_id"] == run && brief["kind"] != "ack";
        briefs.into_iter().rev().find(of_run).expect("a brief answers the run")
    }

    /// Whether the ledger of an agent is whole.
    pub async fn is_whole(&self, agent: &str) -> bool {
        self.get(&format!("/agents/{agent}/ledger/verify")).await["ok"] == true
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have been ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
