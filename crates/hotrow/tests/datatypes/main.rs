//! Every datatype beside the collection of the standard library that it stands for, under every protocol: alone, in
//! schedules stepped by hand, and on threads.

#[path = "../support/mod.rs"]
mod support;

mod boosted;
mod changes;
mod conflicts;
mod counter;
mod edges;
mod elements;
mod hostile;
mod lists;
mod maps;
mod queues;
mod tree;
mod vector;
mod words;
