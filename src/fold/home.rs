//! The home's own state: the boot, the settings it came up with, and the tokens.
//!
//! | from                 | event           | to                    |
//! |----------------------|-----------------|-----------------------|
//! | any                  | Booted          | up                    |
//! | up                   | ShutDown        | down                  |
//! | up                   | SettingsChanged | up, on these settings |
//! | no token of the name | TokenCreated    | a token of the name   |
//! | a token of the name  | TokenRevoked    | none                  |
//!
//! **Invariant:** `requires_token` is never taken back between two boots: whoever revokes the last token does not open
//! the home to everybody on the machine.

use super::{IllegalEvent, Place};
use crate::events::home::{HomeEvent, Scope, SettingValue, TokenCreated, TokenRevoked};
use crate::events::{Envelope, Event};
use crate::words::hash::Hash;
use crate::words::id::{Boot, EventSeq, TokenName};
use crate::words::time::Timestamp;
use std::collections::BTreeMap;

/// What the home's own ledger folds to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeState {
    /// The last event folded in.
    pub head: EventSeq,
    pub boot: Boot,
    /// Whether the last boot has not been shut down in good order.
    pub is_up: bool,
    pub settings: Vec<SettingValue>,
    pub tokens: BTreeMap<TokenName, Token>,
    /// Whether TCP asks for a token because the home has named ones, or had some since its boot.
    pub requires_token: bool,
}

/// A named token. Its secret is known to its holder alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub scopes: Vec<Scope>,
    pub token_hash: Hash,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

impl Token {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

impl HomeState {
    /// Takes in the next event. On an error the state must be dropped.
    pub fn evolve(&mut self, envelope: &Envelope) -> Result<(), IllegalEvent> {
        let illegal = |reason| IllegalEvent { seq: envelope.seq, kind: envelope.event.kind(), reason };
        if envelope.seq != self.head.next() {
            return Err(illegal("its event_seq does not follow"));
        }
        let Event::Home(event) = &envelope.event else {
            return Err(illegal("an agent's event is not the home's"));
        };
        if self.head == EventSeq::ZERO && !matches!(event, HomeEvent::Booted(_)) {
            return Err(illegal("the home's ledger begins with a boot"));
        }
        self.apply(event, Place { seq: envelope.seq, at: envelope.at }).map_err(illegal)?;
        self.head = envelope.seq;
        Ok(())
    }

    fn apply(&mut self, event: &HomeEvent, place: Place) -> Result<(), &'static str> {
        match event {
            HomeEvent::Booted(event) => {
                (self.boot, self.is_up) = (event.boot, true);
                self.requires_token = !self.tokens.is_empty();
                Ok(())
            }
            HomeEvent::ShutDown(_) if !self.is_up => Err("the runtime is down"),
            HomeEvent::ShutDown(_) => {
                self.is_up = false;
                Ok(())
            }
            HomeEvent::SettingsChanged(event) => {
                self.settings.clone_from(&event.settings);
                Ok(())
            }
            HomeEvent::TokenCreated(event) => self.create(event, place),
            HomeEvent::TokenRevoked(TokenRevoked { name }) => {
                self.tokens.remove(name).map(drop).ok_or("there is no token of this name")
            }
        }
    }

    fn create(&mut self, event: &TokenCreated, place: Place) -> Result<(), &'static str> {
        let TokenCreated { name, scopes, token_hash, expires_at } = event.clone();
        let token = Token { scopes, token_hash, created_at: place.at, expires_at };
        self.requires_token = true;
        match self.tokens.insert(name, token) {
            None => Ok(()),
            Some(_) => Err("there is a token of this name"),
        }
    }
}
