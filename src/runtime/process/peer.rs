//! Which process is at the other end of a local connection, and whether a command of an agent started it.
//!
//! A supervisor takes in every descendant whose parent dies, so that whatever a command starts stays below its
//! supervisor, in a session or a namespace of its own too. Three things do not, and are not found here: what another
//! service starts on a command's behalf (`at`, a container daemon), a connection through a process that is no
//! command's (a proxy), and what is left of a supervisor that was killed.

use super::Processes;
use super::proc::{self, Seen};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose process a local peer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerProcess {
    /// No command's.
    Independent,
    /// It descends from the command of this run.
    Command { run: String },
    /// A command runs, and it cannot be told that the peer is not that command's.
    Undetermined,
}

/// The socket at the other end of a TCP connection, if this machine holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    pub uid: u32,
    /// What its descriptors link to; zero when no process holds it.
    inode: u32,
}

impl TcpSocket {
    /// Whether its process has closed it or ended.
    pub fn is_orphaned(&self) -> bool {
        self.inode == 0
    }
}

/// The supervisors that this daemon launched or found again. What a run folder says of itself, its command may have
/// written.
#[derive(Clone, Debug, Default)]
pub(super) struct Supervisors(Arc<Mutex<BTreeMap<i32, (Seen, String)>>>);

impl Supervisors {
    /// Remembers the supervisor of a run for as long as it lives.
    pub(super) fn add(&self, pid: i32, run: &str) {
        if let Some(process) = proc::seen(pid) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(pid, (process, run.to_owned()));
        }
    }

    fn alive(&self) -> BTreeMap<i32, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|pid, (process, _)| proc::seen(*pid).is_some_and(|there| there.identity() == process.identity()));
        known.iter().map(|(pid, (_, run))| (*pid, run.clone())).collect()
    }
}

impl Processes {
    /// Whose process `pid` is, which is at the other end of a unix socket.
    pub fn process_peer(&self, pid: i32) -> PeerProcess {
        let supervisors = self.supervisors();
        if supervisors.is_empty() {
            return PeerProcess::Independent;
        }
        match lineage(pid, &supervisors, proc::seen) {
            Lineage::Below(supervisor) => command(&supervisors, supervisor),
            Lineage::Outside => PeerProcess::Independent,
            Lineage::Broken => PeerProcess::Undetermined,
        }
    }

    /// Whose process holds the other end of a TCP connection. `socket`: what [`tcp_socket`] found.
    pub fn tcp_peer(&self, socket: Option<TcpSocket>) -> PeerProcess {
        let supervisors = self.supervisors();
        if supervisors.is_empty() {
            return PeerProcess::Independent;
        }
        let Some(socket) = socket.filter(|socket| !socket.is_orphaned()) else { return PeerProcess::Undetermined };
        holder(socket, &supervisors).unwrap_or_else(|error| {
            tracing::warn!(%error, "the process of a connection cannot be looked for");
            PeerProcess::Undetermined
        })
    }

    /// The supervisors that live, with their runs: those that are known, and those that hold a run folder and have not
    /// been found again yet.
    fn supervisors(&self) -> BTreeMap<i32, String> {
        let mut supervisors = self.supervisors.alive();
        let known: BTreeSet<String> = supervisors.values().cloned().collect();
        let names = self.names().unwrap_or_else(|error| {
            tracing::warn!(%error, "run folders cannot be listed");
            Vec::new()
        });
        for name in names.into_iter().filter(|name| !known.contains(name)) {
            if let Ok(Some(begun)) = self.folder(&name).claimed_by()
                && proc::seen(begun.pid).is_some_and(|there| there.start_time == begun.start_time)
            {
                supervisors.insert(begun.pid, name);
            }
        }
        supervisors
    }
}

fn command(supervisors: &BTreeMap<i32, String>, supervisor: i32) -> PeerProcess {
    PeerProcess::Command { run: supervisors.get(&supervisor).cloned().unwrap_or_default() }
}

/// Where the parents of a process lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lineage {
    /// To this supervisor.
    Below(i32),
    Outside,
    /// A parent was gone when it was looked for.
    Broken,
}

/// Goes up from a process to a supervisor, or to the process that has no parent here.
fn lineage(pid: i32, supervisors: &BTreeMap<i32, String>, find: impl Fn(i32) -> Option<Seen>) -> Lineage {
    let Some(mut process) = find(pid) else { return Lineage::Broken };
    while !supervisors.contains_key(&process.pid) {
        if process.parent == 0 {
            return Lineage::Outside;
        }
        match find(process.parent) {
            // A parent is older than its child: a younger one was given the number of a parent that has gone.
            Some(parent) if parent.start_time <= process.start_time => process = parent,
            Some(_) | None => return Lineage::Broken,
        }
    }
    Lineage::Below(process.pid)
}

/// Looks for the process that holds a socket: among the commands' own first, so that one who shares the socket with
/// them changes nothing; then among all others.
///
/// A socket that nobody seems to hold may be on its way from one process to another, or be held by a process that may
/// not be looked into. The second is no command's if none of theirs runs as the user that the socket was made by.
fn holder(socket: TcpSocket, supervisors: &BTreeMap<i32, String>) -> io::Result<PeerProcess> {
    let all: BTreeMap<i32, Seen> = proc::all()?.into_iter().map(|process| (process.pid, process)).collect();
    let (mut below, mut others) = (Vec::new(), Vec::new());
    for process in all.values() {
        match lineage(process.pid, supervisors, |pid| all.get(&pid).copied()) {
            Lineage::Below(supervisor) => below.push((process, supervisor)),
            Lineage::Outside => others.push(process),
            Lineage::Broken => {}
        }
    }
    if let Some((_, supervisor)) = below.iter().find(|(process, _)| holds(process, socket)) {
        return Ok(command(supervisors, *supervisor));
    }
    let daemon = rustix::process::geteuid().as_raw();
    if socket.uid != daemon && !below.iter().any(|(process, _)| may_be(process, socket.uid)) {
        return Ok(PeerProcess::Independent);
    }
    // Whoever asks has mostly begun a moment ago.
    others.sort_by_key(|process| std::cmp::Reverse(process.start_time));
    let is_held = others.iter().any(|process| holds(process, socket));
    Ok(if is_held { PeerProcess::Independent } else { PeerProcess::Undetermined })
}

/// Whether a process has a descriptor of the socket. One that cannot be looked into is not known to.
fn holds(process: &Seen, socket: TcpSocket) -> bool {
    let wanted = format!("socket:[{}]", socket.inode);
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", process.pid)) else { return false };
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.into_iter().any(|link| link.as_os_str() == wanted.as_str())
}

/// Whether a process has the user's id in any of its roles, or has ended meanwhile.
fn may_be(process: &Seen, uid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", process.pid)) else { return true };
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    ids.split_ascii_whitespace().any(|id| id.parse() == Ok(uid))
}

/// The socket from which `peer` is connected to `own`; none if it is another machine's, or in another network
/// namespace.
///
/// # Errors
/// When the kernel does not tell of sockets.
pub fn tcp_socket(peer: SocketAddr, own: SocketAddr) -> io::Result<Option<TcpSocket>> {
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    send(&netlink, &question(peer, own), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, length) = recv(&netlink, &mut answer, RecvFlags::empty())?;
    read_answer(answer.get(..length).unwrap_or(&answer), own.port())
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: sock_diag(7).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;

fn question(peer: SocketAddr, own: SocketAddr) -> Vec<u8> {
    let mut body = vec![if peer.is_ipv4() { 2 } else { 10 }, TCP, 0, 0];
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(peer.port().to_be_bytes());
    body.extend(own.port().to_be_bytes());
    body.extend(address(peer.ip()));
    body.extend(address(own.ip()));
    // No interface, and no cookie.
    body.extend(0_u32.to_ne_bytes());
    body.extend([u8::MAX; 8]);
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            bytes
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The kernel answers with a listener of the peer's port when the connection is gone; that is another socket.
fn read_answer(answer: &[u8], own_port: u16) -> io::Result<Option<TcpSocket>> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = answer.get(4..6).ok_or_else(malformed)?;
    let body = answer.get(HEADER_BYTES..).ok_or_else(malformed)?;
    let word = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    if kind == NLMSG_ERROR.to_ne_bytes() {
        let code = word(0).ok_or_else(malformed)?.cast_signed();
        let error = io::Error::from_raw_os_error(-code);
        return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
    }
    let state = *body.get(1).ok_or_else(malformed)?;
    let port = body.get(6..8).ok_or_else(malformed)?;
    if state == TCP_LISTEN || port != own_port.to_be_bytes() {
        return Ok(None);
    }
    let (uid, inode) = word(64).zip(word(68)).ok_or_else(malformed)?;
    Ok(Some(TcpSocket { uid, inode }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_socket_of_a_peer_is_found_for_as_long_as_its_process_holds_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let own = listener.local_addr().unwrap();
            let client = TcpStream::connect(own).unwrap();
            let (_accepted, peer) = listener.accept().unwrap();
            let found = tcp_socket(peer, own).unwrap().unwrap();
            assert_eq!(found.uid, rustix::process::geteuid().as_raw());
            let this = proc::seen(std::process::id().cast_signed()).unwrap();
            assert!(!found.is_orphaned() && holds(&this, found));
            drop(client);
            assert!(tcp_socket(peer, own).unwrap().is_none_or(|left| left.is_orphaned()));
        }
    }

    #[test]
    fn a_process_is_below_its_ancestors_and_beside_its_children() {
        let this = std::process::id().cast_signed();
        let parent = proc::seen(this).unwrap().parent;
        let named = |pid: i32| BTreeMap::from([(pid, "run".to_owned())]);
        assert_eq!(lineage(this, &named(parent), proc::seen), Lineage::Below(parent));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(lineage(this, &named(child.id().cast_signed()), proc::seen), Lineage::Outside);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lineage(child.id().cast_signed(), &named(parent), proc::seen), Lineage::Broken);
    }
}
