//! A server for PostgreSQL's clients: psql, pgbench, and every driver, over Hotrow's tables.
//!
//! A server of a directory, with a procedure of its own: `CALL sell(7, 'ada@example.com')` is one message and one transaction, which the
//! server runs again until it commits.
//!
//! ```no_run
//! use hotrow_server::{Server, ServerOptions};
//! use hotrow_sql::values::Type;
//! use hotrow_sql::{Instance, InstanceOptions, Outcome, SqlError};
//!
//! let options = InstanceOptions { directory: Some("shop".into()), ..InstanceOptions::default() };
//! let instance = Instance::open(options)?;
//! instance.register("sell", [Type::Int4, Type::Text], |call, arguments| {
//!     let sell = "INSERT INTO tickets (event, email) VALUES ($1, $2)";
//!     let take = "UPDATE events SET free = free - 1 WHERE id = $1 AND free >= 1";
//!     call.execute(sell, arguments)?;
//!     match call.execute(take, &arguments[..1])? {
//!         Outcome::Done { tag } if tag == "UPDATE 1" => Ok(()),
//!         _ => Err(SqlError::new("P0001", "sold out").into()), // Undoes the ticket, too.
//!     }
//! });
//! let server = Server::bind(instance, ServerOptions::default())?;
//! println!("psql -h 127.0.0.1 -p {}", server.local_address().port());
//! server.serve()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Everything is synchronous. Each connection has a thread, because a statement may wait for locks, and the engine's
//! side of a connection stays on its thread. The layers, from the client to the engine:
//!
//! - `socket` reads and writes bytes, in TLS or not, and never blocks but in one wait: for the socket, for a bell that
//!   other threads ring, and for a deadline. Tests put a script in its place (`transport`).
//! - `input` cuts bytes into frames. A length is checked before memory is taken for it.
//! - `decode` checks a frame's layout before `pgwire` reads it, because `pgwire` trusts what is inside.
//! - `wire` collects the messages to the client. They are sent at a Sync or a Flush, or when there are 64 kB of them.
//! - `startup` begins a connection: TLS, requests to cancel, parameters, passwords (`scram`, `passwords`).
//! - `session` serves its messages, `extended` those of the extended protocol; `client` is what the engine sees of it.
//! - `peers` is the list of all connections: requests to cancel, the server's stop, and the watch over clients that
//!   vanish while a statement runs look there.
//! - `listener` accepts connections, and ends them.
//!
//! # Differences from PostgreSQL
//!
//! A message whose body is not laid out as its kind says ends the connection (08P01); PostgreSQL goes on after most of
//! them. Channel binding, client certificates, replication and function calls are not supported.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod base64;
mod client;
mod counters;
mod decode;
mod endpoint;
mod engine;
mod error;
mod extended;
mod formats;
mod input;
mod instance;
mod listener;
mod metrics;
mod options;
mod passwords;
mod peers;
mod scram;
mod server;
mod service;
mod session;
mod socket;
mod startup;
#[cfg(test)]
mod tests;
mod tls;
mod transport;
mod wire;

pub use error::ServerError;
pub use options::{ServerOptions, TlsFiles};
pub use passwords::password_verifier;
pub use server::{Server, Stopper};
