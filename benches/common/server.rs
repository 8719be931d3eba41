//! A real daemon on a home that was prepared, and what the system says of its process.

use super::ledger::Author;
use holon::ledger::home::Home;
use holon::ledger::redb::RedbStore;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Memory of a process in bytes, and the processor time that it used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub memory_bytes: u64,
    pub processor: Duration,
}

/// A process that serves at an address. It is killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts `holon serve` and waits for the line that says that it is ready.
    pub fn daemon(home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holon"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("HOLON_HOME", home).current_dir(home);
        Self::start(command)
    }

    /// Starts a program that ends its first line with its address.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a server");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is ours");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().rsplit(['/', ' ']).next().and_then(|text| text.parse().ok());
        Self { address: address.unwrap_or_else(|| panic!("not ready: {line:?}")), child }
    }

    pub fn usage(&self) -> Usage {
        usage(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes from outside is measured, and not held to a rate.
const CONFIG: &str = "ingress_per_minute_of_peer = 6_000_000\ningress_per_minute_of_agent = 6_000_000\n";

/// Lets `write` fill the ledger of a new home. The default agent is paused, so that it does nothing by itself.
pub fn prepare(home: &Path, write: impl FnOnce(&RedbStore)) {
    let opened = Home::open(home).expect("a new home");
    std::fs::write(opened.paths().config(), CONFIG).expect("a configuration");
    let (store, _) = opened.open_store().expect("a new ledger");
    super::ledger::write_agents(&store, &mut [Author::paused("main")]);
    write(&store);
}

fn usage(process: u32) -> Usage {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).expect("the process runs");
    let status = read("status");
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).map(|rest| rest.trim_end_matches("kB"));
    let kilobytes: u64 = kilobytes.and_then(|text| text.trim().parse().ok()).expect("a resident size");
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // Fields 14 and 15 of the line; the split begins at field 3. Linux counts in hundredths of a second.
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Usage { memory_bytes: kilobytes * 1024, processor: Duration::from_millis(ticks * 10) }
}
