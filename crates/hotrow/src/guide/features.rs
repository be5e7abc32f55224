//! # Cargo features
//!
//! The default build of crate `hotrow` has no feature. Each one adds crates, so that a program compiles only what it uses.
//!
//! ```toml
//! [dependencies]
//! hotrow = { version = "0.1", features = ["durable", "metrics"] }
//! ```
//!
//! # Crate `hotrow`
//!
//! | feature | gives | adds |
//! |---|---|---|
//! | `durable` | databases in a directory: log, checkpoints, recovery, backups; module `durable`, page [crash](super::crash) | `hotrow-durable`, `hotrow-log`, `crc32c`, `rustix` |
//! | `erased` | databases with bytes as keys and rows, the protocol chosen by name; module `erased` | no crate; tables are compiled under every protocol |
//! | `metrics` | an engine's counts for a recorder of crate `metrics`, such as Prometheus; module `metrics` | `metrics` |
//! | `serde` | `Serialize` for reports: statistics, hot keys, conflicts, retained memory, snapshots | `serde` |
//! | `tracing` | events for a subscriber of crate `tracing`: lost attempts, escalations, transactions that give up | `tracing` |
//! | `uuid` | `Uuid` of crate `uuid` as key and stored value | `uuid`, which decides the version of Rust that it needs |
//! | `sim` | the program may run on virtual cores (`hotrow-sim`) | `hotrow-sim`; each operation of a thread checks if a simulation runs, even if none does |
//!
//! [`Stored`](trait@Stored) and its derive macro need no feature. Neither do [asynchronous transactions](super::tasks): they run on any executor.
//!
//! Cargo unites the features of a build: if one crate of a program asks for `sim`, it costs time in all crates.
//!
//! # Crate `hotrow-remote`
//!
//! | feature | gives | adds |
//! |---|---|---|
//! | `etcd`, the default | stores in etcd, also under TLS: `EtcdStore`, `StoreAddress` | `prost`, `tokio`, `tonic`; a C compiler for `ring` |
//! | `moving` | copies between directories and clusters: module `moving` | `hotrow-durable` |
//! | `sim` | clients on virtual cores, for tests | `hotrow-sim` |
//!
//! Without `etcd` there are the stores in memory and over a [`Database`], and the trait for stores of your own.
//!
//! # The command, crate `hotrow-cli`
//!
//! The default build has `bench`, `compare`, `check`, `chop`, `log`, `list`, `completions`, `man`, and `figures`, whose simulated runs need `sim`. If
//! a build lacks a subcommand, its message names the feature that the subcommand needs.
//!
//! | feature | gives | adds |
//! |---|---|---|
//! | `serve` | `hotrow serve`: PostgreSQL's clients ([serving](super::serving)) | `hotrow-server`, `hotrow-sql`: a parser and TLS |
//! | `remote` | `hotrow copy`, and `bench --store` over etcd ([machines](super::machines)) | `hotrow-remote` with `etcd` and `moving` |
//! | `sim` | `hotrow sim`, `hotrow explore`, `hotrow fidelity` | `hotrow-sim`; do not measure real threads with this build |
//! | `stamp` | `hotrow bench stamp`: the STAMP applications, and with `sim` also `hotrow sim stamp` | `hotrow-stamp` |
//!
//! ```sh
//! cargo run --release --features serve,remote -- --help
//! ```
//!
//! The library needs Rust 1.89, the command 1.95 and a C compiler.
//!
//! See also: [guarantees and versions](super::guarantees), `docs/command.md`.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
