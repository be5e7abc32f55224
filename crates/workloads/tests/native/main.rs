//! The workloads on threads of the system, under every protocol. One test binary: what is generic over the protocol is
//! compiled once for it.

mod articles;
mod chopping;
mod clients;
mod durable;
mod histories;
#[path = "../mutants/mod.rs"]
mod mutants;
mod own_workload;
mod registry;
mod tables32;
mod tickets;
mod tpcc;
mod ycsb;
