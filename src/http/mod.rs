//! The HTTP surface: the control-plane seed's routes over a [`Handle`].
//!
//! Each file owns the routes of one subject and their handlers; this one merges them. A handler reads its arguments,
//! asks the handle, and shapes the answer; it decides nothing.

mod agents;
mod auth;
mod bindings;
mod callbacks;
mod connections;
mod control;
mod discovery;
mod events;
mod extract;
mod ingress;
mod kinds;
mod ledger;
mod messages;
mod metrics;
mod models;
mod network;
mod openapi;
mod origin;
mod patience;
mod peer;
mod rate;
mod records;
mod reply;
pub mod serve;
mod signature;
mod skills;
mod stream;
mod tasks;
mod tokens;
mod waiting;
mod webhooks;
mod work;
mod workspace;

pub use auth::Auth;
pub use ingress::{Access, WebhookMode};

use crate::runtime::handle::Handle;
use crate::wire::agent::Setting;
use crate::words::id::AgentId;
use crate::words::limit::{PEER_LOOKUPS_AT_ONCE, REQUEST_BODIES_BYTES_MAX};
use crate::words::time::Timestamp;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::Response;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// What every handler has at hand.
pub struct App {
    pub handle: Handle,
    pub auth: Auth,
    pub place: Place,
    pub access: Access,
    ingress: ingress::Ingress,
    /// Looks for the processes of peers that are under way.
    lookups: Semaphore,
    frames: stream::Frames,
    /// Room for the bytes of request bodies, all of them together.
    bodies: Arc<Semaphore>,
    shutdown: watch::Sender<bool>,
}

/// Where this server runs.
#[derive(Clone, Debug)]
pub struct Place {
    pub home: PathBuf,
    pub socket: PathBuf,
    /// None when only the socket is served.
    pub listen: Option<SocketAddr>,
    /// What the outside knows this server by, if the operator says so; without a slash at its end.
    pub public_base_url: Option<String>,
    pub started_at: Timestamp,
    /// Of the settings, without their secrets.
    pub fingerprint: String,
}

type Shared = Arc<App>;

impl App {
    pub fn new(handle: Handle, auth: Auth, place: Place, access: Access) -> Self {
        let bodies = Arc::new(Semaphore::new(REQUEST_BODIES_BYTES_MAX));
        let frames = stream::Frames::new(serve::streams());
        let (ingress, lookups) = (ingress::Ingress::new(&access), Semaphore::new(PEER_LOOKUPS_AT_ONCE));
        let shutdown = watch::Sender::new(false);
        Self { handle, auth, place, access, ingress, lookups, frames, bodies, shutdown }
    }

    /// Whether TCP asks for a token: one is configured, or the home has named ones.
    pub fn requires_token(&self) -> bool {
        self.auth.has_control_token() || self.handle.requires_token()
    }

    /// What request bodies under way hold together.
    fn bodies_bytes(&self) -> usize {
        REQUEST_BODIES_BYTES_MAX - self.bodies.available_permits()
    }

    /// Asks the server to go down.
    pub fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }

    fn is_going_down(&self) -> bool {
        *self.shutdown.borrow()
    }

    /// Resolves when the server is to go down.
    pub async fn going_down(&self) {
        let mut shutdown = self.shutdown.subscribe();
        // The sender lives in `self`.
        let _ = shutdown.wait_for(|down| *down).await;
    }

    /// The home folder of an agent.
    fn home(&self, agent: &AgentId) -> String {
        self.place.home.join("agents").join(agent.as_str()).display().to_string()
    }

    fn setting<'a>(&'a self, home: &'a str) -> Setting<'a> {
        let settings = self.handle.settings();
        Setting { default_agent: &settings.default_agent, models: &settings.models, home }
    }
}

/// No browser is to find another type in an answer than the one that it has.
async fn say_no_sniffing(mut response: Response) -> Response {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// What comes when the server goes down is not begun any more.
async fn begin(State(app): State<Shared>, request: Request, next: Next) -> Result<Response, reply::Failure> {
    if app.is_going_down() { Err(reply::going_down().into()) } else { Ok(next.run(request).await) }
}

/// All routes, with authentication before them.
pub fn router(app: Shared) -> Router {
    routes()
        .fallback(reply::unknown_route)
        .method_not_allowed_fallback(reply::method_not_allowed)
        .layer(from_fn_with_state(app.clone(), auth::check))
        .layer(from_fn_with_state(app.clone(), begin))
        .layer(map_response(say_no_sniffing))
        .with_state(app)
}

fn routes() -> Router<Shared> {
    Router::new()
        .merge(discovery::routes())
        .merge(openapi::routes())
        .merge(agents::routes())
        .merge(messages::routes())
        .merge(models::routes())
        .merge(metrics::routes())
        .merge(records::routes())
        .merge(kinds::routes())
        .merge(work::routes())
        .merge(tasks::routes())
        .merge(waiting::routes())
        .merge(workspace::routes())
        .merge(skills::routes())
        .merge(bindings::routes())
        .merge(callbacks::routes())
        .merge(webhooks::routes())
        .merge(events::routes())
        .merge(ledger::routes())
        .merge(control::routes())
        .merge(tokens::routes())
}
