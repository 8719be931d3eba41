//! Listening: TCP and the home's unix socket, one router behind both.

use super::connections::{Connections, Permit};
use super::patience::Patient;
use super::peer::{Peer, SocketListener, Standing, TcpPeers};
use super::reply::going_down;
use super::{App, router};
use crate::wire::problem::Problem;
use crate::words::limit::{
    CONNECTIONS_MAX, CONNECTIONS_REFUSED_MAX, REQUEST_HEAD_BYTES_MAX, REQUEST_HEAD_MS_MAX, SUBSCRIBERS_MAX,
    WRITE_MS_MAX,
};
use axum::Router;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long requests under way may take when the server goes down; streams end at once.
const DRAIN: Duration = Duration::from_secs(5);
/// How long one who is turned away may take to hear it.
const TURNED_AWAY: Duration = Duration::from_secs(1);

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

/// Serves until [`App::shut_down`] is called, then lets requests under way end and refuses what comes meanwhile.
pub async fn serve(app: Arc<App>, tcp: Option<TcpListener>, socket: Socket) {
    let router = router(app.clone());
    let over_socket = accept(&app, router.clone(), SocketListener(socket.listener));
    let over_tcp = async {
        if let Some(tcp) = tcp {
            accept(&app, router, TcpPeers(tcp)).await;
        }
    };
    let drained = async {
        app.going_down().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(over_socket, over_tcp) } => {}
        () = drained => tracing::warn!("connections were still open when the server went down"),
    }
    if let Err(error) = fs::remove_file(&socket.path) {
        tracing::debug!(%error, "the socket's file is gone already");
    }
}

/// Serves whoever connects, within the places of this listener, until the server goes down; then lets them end.
async fn accept<L: Listener<Addr = Peer>>(app: &Arc<App>, router: Router, mut listener: L) {
    let (permits, refusals) = (Connections::new(places()), Arc::new(Semaphore::new(CONNECTIONS_REFUSED_MAX)));
    let connections = GracefulShutdown::new();
    let turned_away = |io, problem| {
        if let Ok(place) = refusals.clone().try_acquire_owned() {
            tokio::spawn(turn_away(io, problem, place));
        }
    };
    loop {
        let (io, peer) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.going_down() => break,
        };
        let Some(permit) = permits.admit(peer.network()) else {
            turned_away(io, too_many());
            continue;
        };
        let (app, router, watcher) = (app.clone(), router.clone(), connections.watcher());
        tokio::spawn(async move {
            let standing = Standing::of(&app, &peer).await;
            converse(router, io, (peer, standing), watcher, permit).await;
        });
    }
    let mut ended = pin!(connections.shutdown());
    loop {
        tokio::select! {
            (io, _) = listener.accept() => turned_away(io, going_down()),
            () = &mut ended => break,
        }
    }
}

fn too_many() -> Problem {
    Problem::new(503, "too_many_connections", "the server has no room for another connection of yours")
}

/// Places of a listener. There are two, and half of the files that this process may open are left to its work.
fn places() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    CONNECTIONS_MAX.min(usize::try_from(files / 4).unwrap_or(usize::MAX))
}

/// Streams that may be open at once. Each listener has places beyond them, for requests that end.
pub(super) fn streams() -> usize {
    places() * SUBSCRIBERS_MAX / CONNECTIONS_MAX
}

/// Answers the requests of one connection, one after the other. It is closed on whoever does not bring the head of
/// one in time, or does not take the answers.
async fn converse<I>(router: Router, io: I, (peer, standing): (Peer, Standing), watcher: Watcher, _permit: Permit)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer.clone()));
        request.extensions_mut().insert(standing.clone());
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(REQUEST_HEAD_MS_MAX))
        .max_buf_size(REQUEST_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Patient::new(io, Duration::from_millis(WRITE_MS_MAX))), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection was cut");
    }
}

/// Says why there is no answer. What was sent meanwhile is taken off, or the answer would be lost with it.
async fn turn_away(mut io: impl AsyncRead + AsyncWrite + Unpin, problem: Problem, _place: OwnedSemaphorePermit) {
    let body = json!(problem).to_string();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let told = async {
        io.write_all(answer.as_bytes()).await?;
        io.shutdown().await?;
        tokio::io::copy(&mut io, &mut tokio::io::sink()).await
    };
    // Whoever does not listen has gone, or goes without an answer.
    let _ = tokio::time::timeout(TURNED_AWAY, told).await;
}
