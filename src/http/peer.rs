//! What a connection comes from: an address, or a process of this machine; and whether that may ask anything here.

use super::App;
use super::network::Network;
use super::reply::Failure;
use crate::events::actor::{ActorPeer, ControlSurface};
use crate::runtime::caller::Caller;
use crate::runtime::process::tcp_socket;
use crate::words::id::AgentId;
use axum::http::StatusCode;
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Once};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// What a connection comes from.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    Tcp {
        address: SocketAddr,
        /// Our end.
        own: SocketAddr,
    },
    /// The socket in the home, which only its owner may open; none where the kernel does not name the process.
    Socket(Option<Process>),
}

/// The process at the other end of the socket, as the kernel named it when it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    uid: u32,
    pid: u32,
    /// The name that the process gave itself.
    program: Option<Arc<str>>,
}

impl Peer {
    pub(super) fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp { .. })
    }

    /// Whom it is counted as; the socket's owner is not counted.
    pub(super) fn network(&self) -> Option<Network> {
        match self {
            Self::Tcp { address, .. } => Some(Network::of(address.ip())),
            Self::Socket(_) => None,
        }
    }

    /// The surface that took the request in. A process that talks to itself is `holon run`.
    pub(super) fn surface(&self) -> ControlSurface {
        match self {
            Self::Tcp { .. } => ControlSurface::Http,
            Self::Socket(Some(process)) if process.pid == std::process::id() => ControlSurface::InProcess,
            Self::Socket(_) => ControlSurface::Socket,
        }
    }

    /// As records name it.
    pub(super) fn recorded(&self) -> ActorPeer {
        match self {
            Self::Tcp { address, .. } => ActorPeer::Address(address.to_string()),
            Self::Socket(None) => ActorPeer::Unknown,
            Self::Socket(Some(process)) => ActorPeer::Local {
                uid: process.uid,
                pid: process.pid,
                program: process.program.as_deref().map(str::to_owned),
            },
        }
    }
}

/// Whether a peer may ask anything at all, found once for its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Admitted,
    /// Without a token, only this server's user and root are its operators. None: the process has gone.
    OtherUser(Option<u32>),
    /// A process that descends from a command of this agent.
    AgentProcess(AgentId),
    /// A command runs, and it cannot be told that the peer is not that command's.
    Undetermined,
}

impl From<Caller> for Standing {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::Independent => Self::Admitted,
            Caller::Agent(agent) => Self::AgentProcess(agent),
            Caller::Undetermined => Self::Undetermined,
        }
    }
}

impl Standing {
    /// Looks for the process of a peer. Whoever is on another machine is none of this one's.
    pub(super) async fn of(app: &App, peer: &Peer) -> Self {
        // The semaphore is never closed.
        let _one_of_few = app.lookups.acquire().await;
        let (address, own) = match peer {
            Peer::Socket(process) => {
                return app.handle.socket_caller(process.as_ref().map(|process| process.pid)).await.into();
            }
            Peer::Tcp { address, own } => (*address, *own),
        };
        let is_here = address.ip().to_canonical().is_loopback();
        let socket = match tcp_socket(address, own) {
            Ok(None) if !is_here => return Self::Admitted,
            Ok(socket) => Ok(socket.filter(|socket| !socket.is_orphaned())),
            Err(error) => Err(error),
        };
        match (&socket, app.requires_token()) {
            (Ok(Some(socket)), false) if !is_operator(socket.uid) => return Self::OtherUser(Some(socket.uid)),
            (Ok(None), false) => return Self::OtherUser(None),
            (Err(error), _) => {
                static TOLD: Once = Once::new();
                TOLD.call_once(|| tracing::warn!(%error, "the kernel does not tell whose connection one is"));
            }
            (Ok(_), _) => {}
        }
        app.handle.tcp_caller(socket.unwrap_or_default()).await.into()
    }

    /// Refuses who may not ask. The process of an agent may if the operator has allowed it.
    pub(super) fn check(&self, app: &App) -> Result<(), Failure> {
        let forbidden = |code, detail: String| Failure::new(StatusCode::FORBIDDEN, code, detail);
        match self {
            Self::Admitted => Ok(()),
            Self::AgentProcess(_) if app.access.agents_may_control => Ok(()),
            Self::OtherUser(uid) => {
                let who = uid.map_or_else(|| "a process that has gone".to_owned(), |uid| format!("user {uid}"));
                Err(forbidden("foreign_user", format!("{who} is not the user who runs the server"))
                    .hint("set a control token, which opens to every user who has it: holon help security"))
            }
            Self::AgentProcess(agent) => {
                Err(forbidden("agent_process", format!("a command of {agent} asks, which is not the operator"))
                    .hint("agents_may_control = true in config.toml lets commands of agents ask"))
            }
            Self::Undetermined => {
                let detail =
                    "a command of an agent runs, and it cannot be told that this is another process".to_owned();
                Err(forbidden("agent_process", detail).hint(
                    "ask through the socket in the home, or from another user's process; agents_may_control = true \
                     in config.toml lets commands of agents ask",
                ))
            }
        }
    }
}

fn is_operator(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// The listener for TCP, which tells of each connection where both of its ends are.
pub(super) struct TcpPeers(pub TcpListener);

impl Listener for TcpPeers {
    type Io = TcpStream;
    type Addr = Peer;

    async fn accept(&mut self) -> (TcpStream, Peer) {
        loop {
            let (stream, address) = Listener::accept(&mut self.0).await;
            // A connection that has no end of ours is closed already.
            if let Ok(own) = stream.local_addr() {
                return (stream, Peer::Tcp { address, own });
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        let own = self.0.local_addr()?;
        Ok(Peer::Tcp { address: own, own })
    }
}

/// The socket's listener, which tells of each connection what process it comes from.
pub(super) struct SocketListener(pub UnixListener);

impl Listener for SocketListener {
    type Io = UnixStream;
    type Addr = Peer;

    async fn accept(&mut self) -> (UnixStream, Peer) {
        let (stream, _) = Listener::accept(&mut self.0).await;
        let process = process(&stream);
        (stream, Peer::Socket(process))
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::Socket(None))
    }
}

fn process(stream: &UnixStream) -> Option<Process> {
    let credentials = stream.peer_cred().ok()?;
    let pid = u32::try_from(credentials.pid()?).ok()?;
    Some(Process { uid: credentials.uid(), pid, program: program(pid) })
}

/// The name of a process, at most 15 bytes by the kernel's own limit. Whatever is no plain letter of it is left out.
fn program(pid: u32) -> Option<Arc<str>> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    let plain = name.into_iter().filter(u8::is_ascii_graphic).map(char::from);
    Some(plain.collect::<String>().into()).filter(|name: &Arc<str>| !name.is_empty())
}
