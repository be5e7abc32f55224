//! # More than one machine: the same tables in a distributed store
//!
//! A database of this crate belongs to one process. Crate `hotrow-remote` keeps the same tables in etcd, so that several processes can change them,
//! and a failed machine does not stop access to them. Its transactions are strictly serializable among all processes.
//!
//! This program has two clients of one store. The store is in memory here; use `EtcdStore` or `StoreAddress` in its place.
//!
//! ```
//! use hotrow::{Stored, Value, column_of};
//! use hotrow_remote::{Cluster, ClusterError, MemoryStore, RemoteTable};
//! use std::sync::Arc;
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Value, Stored)]
//! #[value(inline)]
//! struct Event {
//!     price: u32,
//!     #[value(group = "seats")] // A group of one integer: changes of it read nothing.
//!     free: u32,
//! }
//!
//! #[derive(Debug, thiserror::Error)]
//! #[error("event {0} is sold out")]
//! struct SoldOut(u32);
//!
//! /// A client, with a handle of its own of each table.
//! struct Shop {
//!     cluster: Cluster,
//!     events: RemoteTable<u32, Event>,
//!     tickets: RemoteTable<String, u32>,
//! }
//!
//! impl Shop {
//!     fn open(cluster: Cluster) -> Result<Self, ClusterError> {
//!         let events = cluster.table("events").create_or_open()?;
//!         let tickets = cluster.table("tickets").create_or_open()?;
//!         Ok(Self { cluster, events, tickets })
//!     }
//!
//!     /// Sells a ticket once for each key. Safe to repeat if the outcome is unknown.
//!     fn buy(&self, key: &str, event: u32) -> Result<(), ClusterError> {
//!         self.cluster.transact(|tx| {
//!             if !tx.insert_if_absent(&self.tickets, key.to_owned(), event)? {
//!                 return Ok(());
//!             }
//!             let took = tx.subtract_if_enough(&self.events, &event, column_of!(Event, free), 1)?;
//!             if took { Ok(()) } else { Err(SoldOut(event).into()) }
//!         })
//!     }
//! }
//!
//! // In etcd: `"etcd://10.0.0.1:2379,10.0.0.2:2379/shop".parse::<StoreAddress>()?.open()?`.
//! let store = Arc::new(MemoryStore::new());
//! let (one, two) = (Shop::open(Cluster::over(store.clone()))?, Shop::open(Cluster::over(store))?);
//! one.cluster.transact(|tx| tx.insert(&one.events, 7, Event { price: 20, free: 10 }))?;
//! let sold: usize = std::thread::scope(|scope| {
//!     let sell = |shop: &'static str, client| {
//!         let client: &Shop = client;
//!         move || (0..8).filter(|n| client.buy(&format!("{shop}-{n}"), 7).is_ok()).count()
//!     };
//!     let clients = [scope.spawn(sell("one", &one)), scope.spawn(sell("two", &two))];
//!     clients.into_iter().map(|client| client.join().unwrap()).sum()
//! });
//! assert_eq!(sold, 10);
//! let refused = two.buy("late", 7).unwrap_err();
//! assert_eq!(refused.to_string(), "rolled back: event 7 is sold out");
//! assert!(refused.downcast_ref::<SoldOut>().is_some());
//! # Ok::<(), ClusterError>(())
//! ```
//!
//! # Moving there and back
//!
//! [Procedures](super::procedures) run over a `Cluster` without a change; closures get another `tx`, whose operations take the table as an argument.
//! The command moves rows, if it is built with `--features remote`:
//!
//! ```sh
//! hotrow copy accounts 'etcd://10.0.0.1:2379,10.0.0.2:2379/accounts?max-txn-ops=1024'
//! hotrow copy 'etcd://10.0.0.1:2379/accounts' accounts-again
//! ```
//!
//! The directory must be closed. If a copy was stopped half-way, start the same command again: it goes on from there.
//!
//! # Guarantees
//!
//! A transaction is atomic, and strictly serializable among all processes. An acknowledged transaction is as durable as the store.
//! `Cluster::snapshot` reads one version and conflicts with nobody.
//!
//! # Failures
//!
//! | error | meaning | do |
//! |---|---|---|
//! | `ClusterError::Transaction` | as [`Error`] in one process: `rolled back: …`, `conflict: …` | the same |
//! | `ClusterError::Store`: `the store does not answer: …` | no effect | run it again: `is_retryable` is true |
//! | `ClusterError::Unknown`: `it is not known if the transaction has committed: …` | the answer was lost, and the client could not find out the outcome | run it again with a key, as `buy` does |
//!
//! A transaction ends with an error after the `deadline` of `Settings`, which is 30 seconds by default.
//!
//! # Speed
//!
//! - **A hot row does not scale out.** One machine changes it far more often than a store can: figures are in `docs/results/README.md`. Use a cluster
//!   for availability, and keep what is hot on one machine.
//! - Each read without a prefetch waits for one answer of the store. A commit that writes waits for one, too. `prefetch` reads several rows together;
//!   a procedure sends independent operations together.
//! - `add` and `subtract_if_enough` on a group of one integer read nothing. If several such changes wait in one process, it sends them together.
//!
//! See also: the front page of crate `hotrow-remote` (`cargo doc --open -p hotrow-remote`), [crash safety](super::crash), [SQL](super::serving).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
