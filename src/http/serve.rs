//! Listening: TCP and the home's unix socket, one router behind both.

use super::{App, router};
use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};

/// How long requests under way may take when the server goes down; streams end at once.
const DRAIN: Duration = Duration::from_secs(5);

/// Whom a connection comes from.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    Tcp(SocketAddr),
    /// Through the socket in the home, which only its owner may open.
    Socket,
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self::Tcp(*stream.remote_addr())
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(_stream: IncomingStream<'_, UnixListener>) -> Self {
        Self::Socket
    }
}

/// A socket file that is removed when nobody listens on it any more.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens at `path`, over whatever a crash has left there. The home's lock keeps others away.
    pub fn bind(path: &Path) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path: path.to_owned() })
    }
}

/// Serves until [`App::shut_down`] is called, then lets requests under way end.
pub async fn serve(app: Arc<App>, tcp: Option<TcpListener>, socket: Socket) -> io::Result<()> {
    let down = |app: Arc<App>| async move { app.going_down().await };
    let make = || router(app.clone()).into_make_service_with_connect_info::<Peer>();
    let over_socket = axum::serve(socket.listener, make()).with_graceful_shutdown(down(app.clone())).into_future();
    let over_tcp = async {
        match tcp {
            Some(tcp) => axum::serve(tcp, make()).with_graceful_shutdown(down(app.clone())).await,
            None => Ok(()),
        }
    };
    let drained = async {
        app.going_down().await;
        tokio::time::sleep(DRAIN).await;
    };
    let outcome = tokio::select! {
        outcome = async { tokio::try_join!(over_socket, over_tcp) } => outcome.map(|_| ()),
        () = drained => {
            tracing::warn!("connections were still open when the server went down");
            Ok(())
        }
    };
    if let Err(error) = fs::remove_file(&socket.path) {
        tracing::debug!(%error, "the socket's file is gone already");
    }
    outcome
}
