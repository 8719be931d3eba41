//! A real `holon serve` on a home of its own, to be talked to, killed and started again.

use crate::contract;
use crate::model_server::ModelServer;
use crate::other_user;
use futures::StreamExt;
use holon::client::{Address, Client, ClientError, StreamedEvent};
use holon::wire::problem::Problem;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Longer than anything here takes; what waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Events with which the default agent begins: its creation, and its workspace attached and entered.
pub const BORN: u64 = 3;

const PROGRAM: &str = env!("CARGO_BIN_EXE_holon");

/// A home, and how its daemons are started.
pub struct Home {
    folder: Arc<TempDir>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    is_of_other_user: bool,
}

/// A pipe in the workspace in which a command waits: `read go < NAME`.
pub struct Gate(File);

/// A pipe in the workspace through which a command tells how far it is: `echo > NAME`.
pub struct Signs(pipe::Receiver);

/// A running daemon. It is killed when dropped.
pub struct Daemon {
    child: Child,
    pub url: String,
    pub client: Client,
    socket: PathBuf,
    /// Its home is there for as long as it runs.
    _folder: Arc<TempDir>,
}

impl Home {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder for a home");
        std::fs::create_dir(folder.path().join("workspace")).expect("a folder to work in");
        Self { folder: Arc::new(folder), arguments: Vec::new(), environment: Vec::new(), is_of_other_user: false }
    }

    /// The home of an ordinary user, as whom its daemons and verbs run; see [`other_user`].
    pub fn of_other_user(mut self) -> Self {
        self.is_of_other_user = true;
        self
    }

    /// Whether its daemons and verbs run as root.
    pub fn is_of_root(&self) -> bool {
        other_user::is_root() && !self.is_of_other_user
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

    /// With this `config.toml`, which is closed to other users as the home is.
    pub fn configured(self, text: &str) -> Self {
        fs::create_dir_all(self.path()).expect("a home");
        fs::write(self.path().join("config.toml"), text).expect("a configuration");
        for (name, mode) in [("", 0o700), ("config.toml", 0o600)] {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(self.path().join(name), permissions).expect("they are ours");
        }
        self
    }

    /// With this service for a model.
    pub fn asking(self, server: &ModelServer) -> Self {
        self.environment("HOLON_MODEL", "anthropic/model")
            .environment("ANTHROPIC_API_KEY", "key")
            .environment("ANTHROPIC_BASE_URL", &server.url())
    }

    /// With this script for a model; its rounds wait for files in the workspace.
    pub fn scripted(self, script: &Value) -> Self {
        let model = format!("scripted/{}", self.script().display());
        let home = self.environment("HOLON_MODEL", &model);
        home.rewrite(script);
        home
    }

    /// Puts another script in the place of the one there.
    pub fn rewrite(&self, script: &Value) {
        fs::write(self.script(), script.to_string()).expect("a script");
    }

    fn script(&self) -> PathBuf {
        self.workspace().join("script.json")
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// A variable that no other home's commands have.
    pub fn marker(&self, name: &str) -> String {
        format!("MARKED={}.{name}.", self.folder.path().file_name().expect("a folder has a name").display())
    }

    pub fn gate(&self, name: &str) -> Gate {
        Gate(File::options().read(true).write(true).open(self.pipe(name)).expect("a pipe"))
    }

    pub fn signs(&self, name: &str) -> Signs {
        let opened = pipe::OpenOptions::new().read_write(true).open_receiver(self.pipe(name));
        Signs(opened.expect("a pipe"))
    }

    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.workspace().join(name);
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        if self.is_of_other_user {
            other_user::give_to_other_user(&path);
        }
        path
    }

    /// What a command has written to a file of the workspace; empty when it is not there.
    pub fn written(&self, name: &str) -> String {
        fs::read_to_string(self.workspace().join(name)).unwrap_or_default()
    }

    /// What the daemons so far have written to stderr.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// `holon ARGUMENTS` on this home, to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.holon(arguments).output().expect("holon runs")
    }

    /// `holon ARGUMENTS` on this home.
    pub fn holon(&self, arguments: &[&str]) -> Command {
        let mut command = holon(&self.path(), &self.workspace());
        if self.is_of_other_user {
            command = self.holon_of_other_user();
        }
        command.args(arguments).envs(self.environment.iter().cloned());
        command
    }

    /// What the test has made so far is given to the other user, too.
    fn holon_of_other_user(&self) -> Command {
        other_user::give_to_other_user(self.folder.path());
        let program = other_user::program_for_other_user(Path::new(PROGRAM), self.folder.path());
        let mut command = holon_by(&program, &self.path(), &self.workspace());
        other_user::act_as_other_user(&mut command);
        command
    }

    /// Starts a daemon and waits for the line that says it is ready.
    pub fn serve(&self) -> Daemon {
        let mut command = self.holon(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(&self.arguments);
        self.serve_by(command)
    }

    /// The same by another command that comes to `holon serve`.
    pub fn serve_by(&self, mut command: Command) -> Daemon {
        let log = File::options().create(true).append(true).open(self.log_path()).expect("a log");
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("holon serve starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is ours");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        let url = line.trim().rsplit(' ').next().expect("an address").to_owned();
        assert!(url.starts_with("http://"), "not ready: {line:?}");
        let socket = self.path().join("holon.sock");
        let client = Client::new(Address::Socket(socket.clone()), None).expect("a client");
        Daemon { child, url, client, socket, _folder: self.folder.clone() }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}

impl Gate {
    /// Lets one command through.
    pub fn open(&self) {
        (&self.0).write_all(b"go\n").expect("room in the pipe");
    }
}

impl Signs {
    /// Waits for the next line.
    pub async fn next(&mut self) {
        let line = async { while self.0.read_u8().await.expect("a sign") != b'\n' {} };
        tokio::time::timeout(PATIENCE, line).await.expect("a sign in time");
    }
}

/// `holon` with nothing of this environment but what finds programs.
pub fn holon(home: &Path, workspace: &Path) -> Command {
    holon_by(Path::new(PROGRAM), home, workspace)
}

/// The same by another program.
pub fn holon_by(program: &Path, home: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(program);
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
    pub fn stop(self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.ended()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        nix::sys::signal::kill(pid, signal).expect("it runs");
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

    /// A client over the socket that shows a token all the same.
    pub fn client_with(&self, token: &str) -> Client {
        Client::new(Address::Socket(self.socket.clone()), Some(token.into())).expect("a client")
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(path).await.unwrap_or_else(|error| panic!("GET {path}: {error:?}"));
        contract::hold("GET", path, 200, &answer);
        answer
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.client.post(path, &body).await.unwrap_or_else(|error| panic!("POST {path}: {error:?}"));
        contract::hold("POST", path, 200, &answer);
        answer
    }

    /// The problem that a POST is answered with.
    pub async fn refusal(&self, path: &str, body: Value) -> Problem {
        refused(path, self.client.post(path, &body).await)
    }

    /// The problem that a GET is answered with.
    pub async fn problem(&self, path: &str) -> Problem {
        refused(path, self.client.get(path).await)
    }

    pub async fn create(&self, agent: &str) {
        self.post(&format!("/control/agents/{agent}/create"), json!({})).await;
    }

    pub async fn control(&self, agent: &str, action: &str) {
        self.post(&format!("/control/agents/{agent}/control"), json!({"action": action})).await;
    }

    pub async fn abort(&self, agent: &str, body: Value) -> Value {
        self.post(&format!("/control/agents/{agent}/current-run/abort"), body).await
    }

    pub async fn status(&self, agent: &str) -> Value {
        self.get(&format!("/agents/{agent}/status")).await
    }

    /// The posture, and the reason for it.
    pub async fn posture(&self, agent: &str) -> (String, String) {
        let posture = self.status(agent).await["scheduling_posture"].take();
        let text = |name: &str| posture[name].as_str().expect("a text").to_owned();
        (text("posture"), text("reason"))
    }

    /// Enqueues a text as a webhook would; answers its message id.
    pub async fn enqueue(&self, agent: &str, text: &str) -> String {
        let body = json!({"text": text, "origin": {"kind": "webhook", "source": "test"}});
        let sent = self.post(&format!("/agents/{agent}/enqueue"), body).await;
        sent["message_id"].as_str().expect("a message id").to_owned()
    }

    /// The event that the ledger of an agent ends with.
    pub async fn head(&self, agent: &str) -> u64 {
        self.get(&format!("/agents/{agent}/ledger")).await["event_seq"].as_u64().expect("a number")
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

    /// Waits for the first event after `after` that is as wanted.
    pub async fn wait(&self, agent: &str, after: u64, wanted: impl FnMut(&StreamedEvent) -> bool) -> StreamedEvent {
        self.watch(agent, after, wanted).await.pop().expect("it ends with the event")
    }

    /// Waits for the first event of a kind, from the beginning.
    pub async fn wait_for(&self, agent: &str, kind: &str) -> StreamedEvent {
        self.wait(agent, 0, |event| event.kind == kind).await
    }

    /// All events after `after`, up to the first that is as wanted.
    pub async fn watch(
        &self,
        agent: &str,
        after: u64,
        mut wanted: impl FnMut(&StreamedEvent) -> bool,
    ) -> Vec<StreamedEvent> {
        let path = format!("/agents/{agent}/events/stream?projection=local_debug&after_seq={after}");
        let mut stream = self.client.stream(&path).await.expect("a stream");
        let mut seen = Vec::new();
        let collect = async {
            while let Some(event) = stream.next().await {
                seen.push(event.expect("an event"));
                if seen.last().is_some_and(&mut wanted) {
                    return;
                }
            }
            panic!("the stream ended");
        };
        if tokio::time::timeout(PATIENCE, collect).await.is_err() {
            let kinds: Vec<&str> = seen.iter().map(|event| event.kind.as_str()).collect();
            panic!("what was waited for did not happen in time: {agent} has {kinds:?}");
        }
        seen
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

fn refused(path: &str, answer: Result<Value, ClientError>) -> Problem {
    match answer {
        Err(ClientError::Refused(problem)) => *problem,
        other => panic!("{path} was not refused: {other:?}"),
    }
}

/// The events of a kind.
pub fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// KiB of memory that a daemon occupies.
pub fn resident(daemon: &Daemon) -> u64 {
    memory_kib(daemon.id(), "VmRSS")
}

fn memory_kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The most memory that a process has occupied, without the pages of its program.
pub fn peak_kib(pid: u32) -> u64 {
    memory_kib(pid, "VmHWM").saturating_sub(memory_kib(pid, "RssFile"))
}

/// What became of each message that was settled, in the order in which they were.
pub fn outcomes(events: &[Value]) -> Vec<(String, String)> {
    let named = |payload: &Value| {
        let (outcome, _) =
            payload["outcome"].as_object().and_then(|outcome| outcome.iter().next()).expect("an outcome");
        (payload["message"].as_str().expect("a message").to_owned(), outcome.clone())
    };
    of_kind(events, "message_settled").into_iter().map(named).collect()
}

/// Processes that carry the marker among their arguments or in their environment.
pub fn marked(marker: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.windows(marker.len()).any(|window| window == marker.as_bytes());
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let has = |pid: &String| {
        ["cmdline", "environ"]
            .iter()
            .any(|file| fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| holds(&bytes)))
    };
    pids.filter(|pid| pid.parse::<u32>().is_ok()).filter(has).collect()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have been ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
