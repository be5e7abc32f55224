//! A web server on threads of its own.

use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Serves until it is dropped.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    _runtime: Runtime,
}

impl Service {
    /// Listens at an address.
    pub(crate) fn start(router: axum::Router, address: &str) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_io().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, _runtime: runtime })
    }
}
