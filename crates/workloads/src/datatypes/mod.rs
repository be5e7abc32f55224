//! The microbenchmarks of datatypes: a hash table (sto §5.3), a vector and a priority queue (sto §5.5).

mod hashtable;
mod heap;
mod priority_queue;
mod vector;

pub use hashtable::HashtableOptions;
pub use priority_queue::PriorityQueueOptions;
pub use vector::VectorOptions;

use hotrow::Error;
use hotrow_driver::{Check, End, Ran};

/// Compares what is found after a run with what the commits say.
fn equal(name: &str, found: i128, committed: i128) -> Check {
    let result =
        if found == committed { Ok(()) } else { Err(format!("found {found}, committed {committed}")) };
    Check::new(name, result)
}

/// Turns a transaction's result into the driver's, and passes what it returned to `count`.
fn ran<R>(result: Result<R, Error>, count: impl FnOnce(R)) -> Ran {
    let end = match result {
        Ok(returned) => {
            count(returned);
            End::Committed
        }
        Err(error) => End::Failed(error.to_string()),
    };
    Ran { kind: 0, end }
}
