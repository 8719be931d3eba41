//! Home plane: what concerns the home and no agent. These events stand in the home's own ledger and in no other.

use crate::words::hash::Hash;
use crate::words::id::{Boot, TokenName};
use crate::words::time::Timestamp;

shape! {
    /// What a token may be used for. The document of the HTTP surface names the scope that each route needs.
    pub enum Scope {
        /// Reading what agents are and do.
        Read,
        /// Controlling agents, and reading their raw records. It includes `read` and `ingress`.
        Operate,
        /// Sending messages in, and nothing else.
        Ingress,
        /// What concerns the host: tokens, secrets, shutdown. It includes all other scopes.
        Admin,
    }
}
names!(Scope { Read = "read", Operate = "operate", Ingress = "ingress", Admin = "admin", });

impl Scope {
    /// Whether a token of this scope may do what needs `other`.
    pub fn includes(self, other: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Operate => other != Self::Admin,
            Self::Read | Self::Ingress => self == other,
        }
    }
}

shape! {
    /// A setting as the runtime was started with it. Of a secret it only says whether it is set.
    pub struct SettingValue {
        name: String,
        value: String,
    }
}

plane! {
    /// Facts about the home.
    HomeEvent {
        /// The runtime came up on the home. The first event of the home's ledger.
        0x0A01 runtime_booted 1 since "0.1.0" => Booted(RuntimeBooted) {
            boot: Boot,
            release: String,
        }
        /// The runtime goes down in good order. A boot that is followed by another one was killed.
        0x0A02 runtime_shut_down 1 since "0.1.0" => ShutDown(RuntimeShutDown) {
            reason: String,
        }
        /// The runtime was started with other settings than before.
        0x0A03 settings_changed 1 since "0.1.0" => SettingsChanged(SettingsChanged) {
            settings: Vec<SettingValue>,
        }
        /// A token was made. Whoever presents what the hash is of may use it until it expires or is revoked.
        0x0A04 token_created 1 since "0.1.0" => TokenCreated(TokenCreated) {
            name: TokenName,
            scopes: Vec<Scope>,
            token_hash: Hash,
            expires_at: Option<Timestamp>,
        }
        /// A token opens nothing from here on.
        0x0A05 token_revoked 1 since "0.1.0" => TokenRevoked(TokenRevoked) {
            name: TokenName,
        }
    }
}
