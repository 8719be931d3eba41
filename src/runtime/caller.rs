//! Whether a caller on this machine is an agent's: a command is not its operator.

use super::effect::command::parse_run_name;
use super::handle::{Handle, blocking};
use super::process::{PeerProcess, Processes, TcpSocket};
use crate::ledger::StoreError;
use crate::words::id::AgentId;

/// Whose process a caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No agent's.
    Independent,
    /// It descends from a command of this agent.
    Agent(AgentId),
    /// A command runs, and it cannot be told that the caller is not that command's.
    Undetermined,
}

impl Handle {
    /// Whose process holds the other end of a TCP connection.
    pub async fn tcp_caller(&self, socket: Option<TcpSocket>) -> Caller {
        self.caller(move |processes| processes.tcp_peer(socket)).await
    }

    /// Whose process connected to the socket in the home; none where the kernel does not name it.
    pub async fn socket_caller(&self, pid: Option<u32>) -> Caller {
        let pid = pid.and_then(|pid| i32::try_from(pid).ok());
        self.caller(move |processes| pid.map_or_else(|| processes.tcp_peer(None), |pid| processes.process_peer(pid)))
            .await
    }

    async fn caller(&self, look: impl FnOnce(&Processes) -> PeerProcess + Send + 'static) -> Caller {
        let shared = self.shared.clone();
        let found = blocking(move || Ok::<_, StoreError>(look(&shared.processes))).await;
        match found {
            Ok(PeerProcess::Independent) => Caller::Independent,
            Ok(PeerProcess::Command { run }) => {
                parse_run_name(&run).map_or(Caller::Undetermined, |(agent, _)| Caller::Agent(agent))
            }
            Ok(PeerProcess::Undetermined) | Err(_) => Caller::Undetermined,
        }
    }
}
