//! The listener: accepts connections, gives each a thread, and ends them all when the server stops.

use crate::endpoint::{Connected, Endpoint, listen};
use crate::engine::Engine;
use crate::error::{End, ServerError};
use crate::metrics;
use crate::options::ServerOptions;
use crate::peers::Peer;
use crate::service::{Service, too_many};
use crate::session;
use crate::socket::{Bell, Socket, wait_for};
use crate::tls;
use crate::transport::Transport;
use crate::wire::Wire;
use hotrow_sql::SqlError;
use hotrow_sync::clock::{Duration, now};
use hotrow_sync::thread;
use rustix::event::{PollFd, PollFlags};
use rustls::ServerConfig;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// The virtual memory of a connection's stack.
const STACK_BYTES: usize = 32 * 1024 * 1024;
/// Connections beyond the limit that are heard all the same: requests to cancel, which are short.
const EXTRA_CONNECTIONS: usize = 64;
/// The pause after an error of accept: for lack of files, until some are closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A stop is repeated this often, for statements that begin at the same moment.
const STOP_INTERVAL: Duration = Duration::from_millis(50);
/// The time for threads to end after their sockets have been closed.
const LAST_LIMIT: Duration = Duration::from_millis(500);

/// A server that listens.
pub(crate) struct Listener<E: Engine> {
    pub(crate) service: Arc<Service<E>>,
    endpoints: Vec<Endpoint>,
    address: SocketAddr,
    metrics: Option<(TcpListener, SocketAddr)>,
    tls: Option<Arc<ServerConfig>>,
    pub(crate) stop: Arc<Bell>,
}

impl<E: Engine> Listener<E> {
    /// Checks the options and listens.
    pub(crate) fn bind(engine: E, options: ServerOptions) -> Result<Self, ServerError> {
        let tls = options.tls.as_ref().map(tls::configuration).transpose()?;
        let service = Arc::new(Service::new(engine, options)?);
        let (endpoint, address) = Endpoint::at(service.options.address)?;
        let mut endpoints = vec![endpoint];
        if let Some(directory) = &service.options.directory {
            endpoints.push(Endpoint::within(directory, address.port())?);
        }
        let metrics = service.options.metrics.map(listen).transpose()?;
        let stop = Arc::new(Bell::new().map_err(|source| ServerError::System { what: "an event", source })?);
        Ok(Self { service, endpoints, address, metrics, tls, stop })
    }

    /// The address listened on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The path of the socket in a directory.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.endpoints.iter().find_map(Endpoint::path)
    }

    /// The address for metrics.
    pub(crate) fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(_, address)| *address)
    }

    /// Accepts connections until the bell rings; then ends them.
    pub(crate) fn serve(self) -> Result<(), ServerError> {
        let Self { service, endpoints, metrics, tls, stop, .. } = self;
        thread::scope(|scope| {
            let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
            let threads = spawn("hotrow-watch")
                .spawn_scoped(scope, || service.peers.watch(|| service.counters.clients_lost.add(1)))
                .and_then(|_| match &metrics {
                    Some((socket, _)) => spawn("hotrow-metrics")
                        .spawn_scoped(scope, || metrics::serve(&service, socket, &stop))
                        .map(drop),
                    None => Ok(()),
                });
            if threads.is_ok() {
                accept_all(&service, &endpoints, tls.as_ref(), &stop);
            }
            // No client waits in vain for a connection to be accepted.
            drop(endpoints);
            stop.ring();
            end_all(&service);
            threads.map_err(|source| ServerError::System { what: "a thread", source })
        })
    }
}

/// Accepts connections until the bell rings.
fn accept_all<E: Engine>(
    service: &Arc<Service<E>>,
    endpoints: &[Endpoint],
    tls: Option<&Arc<ServerConfig>>,
    stop: &Bell,
) {
    loop {
        let mut files = vec![PollFd::new(stop, PollFlags::IN)];
        files.extend(endpoints.iter().map(|endpoint| PollFd::new(endpoint, PollFlags::IN)));
        let place = match wait_for(&mut files, None) {
            Ok(Some(0)) => return,
            Ok(Some(place)) => place,
            // Then accepting fails as well, which is counted.
            Ok(None) | Err(_) => 1,
        };
        let accepted = endpoints[place - 1].accept();
        let begun = accepted.and_then(|(client, is_local)| begin(service, client, is_local, tls.cloned()));
        match begun {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            Err(_) => {
                service.counters.accept_errors.add(1);
                let mut files = [PollFd::new(stop, PollFlags::IN)];
                if matches!(wait_for(&mut files, Some(now() + ACCEPT_PAUSE)), Ok(Some(_))) {
                    return;
                }
            }
        }
    }
}

/// Gives a connection a thread.
fn begin<E: Engine>(
    service: &Arc<Service<E>>,
    client: Connected,
    is_local: bool,
    tls: Option<Arc<ServerConfig>>,
) -> io::Result<()> {
    let bell = Arc::new(Bell::new()?);
    let client = Arc::new(client);
    let mut socket = Socket::new(Arc::clone(&client), Arc::clone(&bell), tls, is_local)?;
    service.counters.connections.add(1);
    if service.peers.count() >= service.options.connections_max + EXTRA_CONNECTIONS {
        refuse(service, &mut socket);
        return Ok(());
    }
    let peer = Registered {
        service: Arc::clone(service),
        peer: service.peers.add(Arc::new(move || bell.ring()), Some(client)),
    };
    thread::Builder::new()
        .name(format!("hotrow-{}", peer.peer.process))
        .stack_size(STACK_BYTES)
        .spawn(move || run(&peer, socket))
        .map(drop)
}

/// Tells a client that there are too many. Its connection is new, so that writing does not block.
fn refuse<E: Engine>(service: &Service<E>, socket: &mut impl Transport) {
    service.counters.connections_refused.add(1);
    service.counters.connections_ended.add(1);
    Wire::new(socket, service.options.message_bytes_max, &service.counters).end(&End::Fatal(too_many()));
}

/// Serves a connection on its own thread.
fn run<E: Engine>(peer: &Registered<E>, socket: Socket) {
    let service = &*peer.service;
    let mut wire = Wire::new(socket, service.options.message_bytes_max, &service.counters);
    // A fault of the engine ends one connection, and its client learns of it.
    if catch_unwind(AssertUnwindSafe(|| session::serve(service, &peer.peer, &mut wire))).is_err() {
        wire.end(&End::Fatal(SqlError::new("XX000", "internal error: the connection's thread has panicked")));
    }
}

/// A connection among the peers, until it is dropped.
struct Registered<E: Engine> {
    service: Arc<Service<E>>,
    peer: Arc<Peer>,
}

impl<E: Engine> Drop for Registered<E> {
    fn drop(&mut self) {
        self.service.counters.connections_ended.add(1);
        self.service.peers.remove(self.peer.process);
    }
}

/// Ends all connections, within the limit if they can be.
fn end_all<E: Engine>(service: &Service<E>) {
    let deadline = now() + service.options.stop_limit;
    loop {
        service.stop();
        if service.peers.wait_until_empty(deadline.min(now() + STOP_INTERVAL)) {
            return;
        }
        if now() >= deadline {
            break;
        }
    }
    service.peers.shut_down();
    service.peers.wait_until_empty(now() + LAST_LIMIT);
}
