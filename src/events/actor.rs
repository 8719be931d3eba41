//! Who asked for a change on the control plane: the same record in every plane's ledger, and in the home's own.

use super::queue::Trust;
use crate::words::id::{AgentId, TokenName};

shape! {
    /// The surface that took a control request in.
    pub enum ControlSurface {
        /// A TCP listener.
        Http,
        /// The unix socket in the home.
        Socket,
        /// The process that runs the runtime asked it itself: `holon run` without a server.
        InProcess,
    }
}
names!(ControlSurface { Http = "http", Socket = "socket", InProcess = "in_process", });

shape! {
    /// What a connection came from.
    pub enum ActorPeer {
        /// Neither an address nor a process could be found.
        Unknown,
        /// A process of this machine, as the kernel names it. The program is the name that the process gave itself.
        Local { uid: u32, pid: u32, program: Option<String>, },
        /// An address and its port.
        Address(String),
        /// A process that descends from a command of this agent.
        AgentProcess(AgentId),
    }
}

shape! {
    /// Who asked for a change on the control plane.
    pub struct Actor {
        /// The name of the token that the request carried; none in local mode and over the socket.
        token: Option<TokenName>,
        surface: ControlSurface,
        peer: ActorPeer,
        /// The trust that the request claimed for itself; it elevates nothing.
        provided_trust: Option<Trust>,
    }
}
