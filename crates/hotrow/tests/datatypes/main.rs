//! Every datatype beside the collection of the standard library that it stands for, under every protocol: alone, in
//! schedules stepped by hand, and on threads.

#[path = "../models/mod.rs"]
mod models;
#[path = "../support/mod.rs"]
mod support;

mod alike;
mod boosted;
mod conflicts;
mod edges;
mod elements;
mod hostile;
mod iterators;
mod tree;
mod unkept;
