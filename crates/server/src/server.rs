//! The server as a program sees it.

use crate::error::ServerError;
use crate::listener::Listener;
use crate::options::ServerOptions;
use crate::socket::Bell;
use hotrow_sql::Instance;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// A server that listens for PostgreSQL's clients.
///
/// Each connection has a thread of its own. The server trusts the clients of its own machine, unless there is a file
/// of passwords; it does not listen for those of others without passwords and TLS.
pub struct Server {
    listener: Listener<Instance>,
}

impl Server {
    /// Listens at the address of the options. Clients wait until [`serve`](Self::serve) is called.
    ///
    /// # Errors
    ///
    /// If an option is out of its range or would leave the server open to strangers, if a file cannot be used, if the
    /// address is taken.
    pub fn bind(instance: Instance, options: ServerOptions) -> Result<Self, ServerError> {
        Ok(Self { listener: Listener::bind(instance, options)? })
    }

    /// The address that it listens at, with the port that the system has chosen.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The path of its socket in a directory, if it has one.
    pub fn local_path(&self) -> Option<&Path> {
        self.listener.path()
    }

    /// The address of its metrics, if they are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.listener.metrics_address()
    }

    /// A handle that stops it, for another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.listener.stop))
    }

    /// Serves clients on this thread and others until a [`Stopper`] stops it. Then it accepts no more, ends the
    /// statements that run, tells each client (57P01), and returns when all connections have ended, or when the
    /// options' limit has passed.
    ///
    /// # Errors
    ///
    /// If the system refuses the threads that every server needs.
    pub fn serve(self) -> Result<(), ServerError> {
        self.listener.serve()
    }
}

/// A handle that stops a [`Server`].
#[derive(Clone)]
pub struct Stopper(Arc<Bell>);

impl Stopper {
    /// Stops the server. Returns at once: it has stopped when [`Server::serve`] returns. Calling it again, or before
    /// the server serves, does no harm.
    pub fn stop(&self) {
        self.0.ring();
    }
}
