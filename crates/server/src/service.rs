//! The parts of a server that all of its connections share.

use crate::counters::Counters;
use crate::engine::Engine;
use crate::error::{End, ServerError};
use crate::options::ServerOptions;
use crate::passwords::Passwords;
use crate::peers::Peers;
use hotrow_sql::SqlError;
use hotrow_sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// The parts of a server that all of its connections share.
pub(crate) struct Service<E> {
    pub(crate) engine: E,
    pub(crate) options: ServerOptions,
    pub(crate) passwords: Option<Passwords>,
    pub(crate) peers: Peers,
    pub(crate) counters: Counters,
    admitted: AtomicUsize,
    is_stopping: AtomicBool,
}

impl<E: Engine> Service<E> {
    /// Reads what the options name.
    pub(crate) fn new(engine: E, options: ServerOptions) -> Result<Self, ServerError> {
        options.check()?;
        let passwords = options.passwords.as_deref().map(Passwords::read).transpose()?;
        Ok(Self {
            engine,
            options,
            passwords,
            peers: Peers::default(),
            counters: Counters::default(),
            admitted: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        })
    }

    /// True from the server's stop on.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(SeqCst)
    }

    /// Tells all connections that the server stops.
    pub(crate) fn stop(&self) {
        // Before the connections are woken: each of them looks here when it is.
        self.is_stopping.store(true, SeqCst);
        self.peers.stop();
    }

    /// Takes a place for a connection.
    pub(crate) fn admit(&self) -> Result<Admission<'_>, End> {
        // A count alone, which guards no other memory. Dropping the place gives it back, also one that is not there.
        let place = Admission(&self.admitted);
        if self.admitted.fetch_add(1, Relaxed) < self.options.connections_max {
            return Ok(place);
        }
        self.counters.connections_refused.add(1);
        Err(End::Fatal(too_many()))
    }
}

/// The error of a connection beyond the limit.
pub(crate) fn too_many() -> SqlError {
    SqlError::new("53300", "sorry, too many clients already")
}

/// A place for a connection.
pub(crate) struct Admission<'a>(&'a AtomicUsize);

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
