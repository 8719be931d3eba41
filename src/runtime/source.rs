//! The clock and the randomness. Nothing else reads either (architecture 4).

use crate::words::hash::Hash;
use crate::words::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::rand::GetRandomFlags;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the time comes from.
#[derive(Clone)]
pub struct Source(Kind);

#[derive(Clone)]
enum Kind {
    System,
    Manual(Arc<AtomicI64>),
}

impl Source {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// A clock that stands where it is put, for tests.
    pub fn manual(at: Timestamp) -> Self {
        Self(Kind::Manual(Arc::new(AtomicI64::new(at.0))))
    }

    /// Puts a manual clock; the machine's clock is not ours to put.
    pub fn set(&self, at: Timestamp) {
        if let Kind::Manual(clock) = &self.0 {
            clock.store(at.0, Ordering::SeqCst);
        }
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::System => system_now(),
            Kind::Manual(clock) => Timestamp(clock.load(Ordering::SeqCst)),
        }
    }

    /// Measures how long something takes, which decides nothing.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock")]
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// How long from now until `at`; zero when it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since_ms(self.now()))
    }
}

/// A beginning whose age can be told.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn elapsed_us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A clock before 1970 counts backwards from there.
#[expect(clippy::disallowed_methods, reason = "this is the one reading of the clock")]
fn system_now() -> Timestamp {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(millis(since)),
        Err(before) => Timestamp(-millis(before.duration())),
    }
}

/// Draws what a webhook's sender signs with, in the form of Standard Webhooks.
pub fn draw_webhook_secret() -> std::io::Result<SecretString> {
    Ok(format!("whsec_{}", STANDARD.encode(random()?)).into())
}

/// 32 bytes from the kernel that nobody can guess.
pub(super) fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let drawn = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    if drawn < bytes.len() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// A capability's secret: 32 random bytes, which are shown once and of which only the hash is kept.
pub struct Token(SecretString);

/// Begins the secret of every capability.
pub const CAPABILITY_PREFIX: &str = "cb_";

impl Token {
    /// Draws one from the kernel. The prefix tells people and scanners what it is.
    pub fn draw(prefix: &str) -> std::io::Result<Self> {
        Ok(Self(format!("{prefix}{}", Hash(random()?)).into()))
    }

    /// The text that whoever holds the capability presents.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// What is kept of it.
    pub fn hash(&self) -> Hash {
        Hash::of(self.expose().as_bytes())
    }
}
