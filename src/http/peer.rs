//! What a connection comes from: an address, or a process of this machine.

use crate::events::actor::{ActorPeer, ControlSurface};
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};

/// What a connection comes from.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    Tcp(SocketAddr),
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

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl Peer {
    pub(super) fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// The surface that took the request in. A process that talks to itself is `holon run`.
    pub(super) fn surface(&self) -> ControlSurface {
        match self {
            Self::Tcp(_) => ControlSurface::Http,
            Self::Socket(Some(process)) if process.pid == std::process::id() => ControlSurface::InProcess,
            Self::Socket(_) => ControlSurface::Socket,
        }
    }

    /// As records name it.
    pub(super) fn recorded(&self) -> ActorPeer {
        match self {
            Self::Tcp(address) => ActorPeer::Address(address.to_string()),
            Self::Socket(None) => ActorPeer::Unknown,
            Self::Socket(Some(process)) => ActorPeer::Local {
                uid: process.uid,
                pid: process.pid,
                program: process.program.as_deref().map(str::to_owned),
            },
        }
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
