//! Transactional objects: datatypes that define conflicts by their own semantics (sto §3.2, §4).
//!
//! [`TBox`] is the worked example for authors of datatypes over segments, [`TCounter`] for authors of others.

mod boosted;
mod counting;
mod leftist_heap;
mod numbered;
mod range;
mod red_black;
mod segment_operations;
mod sequence;
mod tarray;
mod tbox;
mod tcounter;
mod tlist;
mod tlist_set;
mod tpriority_queue;
mod tqueue;
mod ttree_map;
mod tvector;
mod twords;

pub use boosted::{ConcurrentMap, TBoostedMap};
pub use sequence::{Reserve, Sequence};
pub use tarray::TArray;
pub use tbox::TBox;
pub use tcounter::{TCounter, TCounters};
pub use tlist::TList;
pub use tlist_set::TListSet;
pub use tpriority_queue::TPriorityQueue;
pub use tqueue::TQueue;
pub use ttree_map::{Iter as TreeMapIter, TTreeMap};
pub use tvector::{Iter as VectorIter, TVector};
pub use twords::TWords;
