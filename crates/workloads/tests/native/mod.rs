//! The workloads on threads of the system, under every protocol.

mod articles;
mod chopping;
mod clients;
mod durable;
mod histories;
mod own_workload;
mod registry;
mod tables32;
mod tickets;
mod tpcc;
mod ycsb;
