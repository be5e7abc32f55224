//! The facade under every protocol, and what only one of them does. One test binary: what is generic over the protocol is
//! compiled once for it. Only tests of what the whole process shares (its epoch, the memory that it retains, who drops what)
//! have binaries of their own, and the replay, whose long run is built with optimization.

#[path = "../gate/mod.rs"]
mod gate;
#[path = "../support/mod.rs"]
mod support;

mod additions;
mod anomalies;
mod beliefs;
mod both_sides;
mod cached_tables;
mod cancelling;
mod chopping;
mod churn;
mod column_groups;
mod columns;
mod commit_steps;
mod commit_time;
mod constraints;
mod contention;
mod copies;
mod databases;
mod deadlocks;
mod deferred;
mod deferred_failures;
mod deferred_late;
mod deferred_orders;
mod deferred_procedures;
mod deferred_program_order;
mod deferred_queues;
mod deferred_same_key;
mod deferred_tables;
mod deferred_threads;
mod errors;
mod giants;
mod half_changes;
mod histories;
mod inputs;
mod interleavings;
mod loading;
mod local_sessions;
mod long_keys;
mod messages;
mod model;
mod objects;
mod observed_parts;
mod ordered_pieces;
mod own_changes;
mod own_datatypes;
mod panics;
mod phantoms;
mod pipeline;
mod profiles;
mod range_locks;
mod ranges;
mod reclamation;
mod replacements;
mod savepoints;
mod schedules;
mod secondary_indexes;
mod sequences;
mod sessions;
mod soundness;
mod starvation;
mod tables;
mod transfers;
mod unique_indexes;
mod untracked;
mod users_code;
mod waits;
