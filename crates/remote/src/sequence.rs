//! Sequences: sources of numbers that are outside of the transactions' conflicts.

use crate::marker::unique_numbers;
use crate::shared::Shared;
use crate::transaction::Transaction;
use hotrow_core::Abort;
use hotrow_sync::{Arc, Mutex, lock};
use std::collections::VecDeque;
use std::fmt;

/// The numbers that a process takes from the store at once.
const BLOCK: u64 = 1 << 10;

/// A source of numbers, for the keys of new rows, say. No two transactions get the same one, in whichever processes they are.
///
/// A process takes numbers from the store in blocks of 1,024, so that few draws wait for an answer of the store. The price is order:
///
/// - *Gaps.* A number is not given back. One that an attempt has drawn is lost if the attempt does not commit, and those of a block
///   that were not drawn when the last handle in a process was dropped are nobody's.
/// - *No order.* A smaller number may be drawn after a larger one: by another process, or by another thread if both have taken a block.
///
/// Behind 2⁶⁴ − 1 it begins again at 0.
#[derive(Clone)]
pub struct RemoteSequence {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    name: String,
    first: u64,
    /// The first numbers of what is left of blocks, and how many are left; at least one of each.
    blocks: Mutex<VecDeque<(u64, u64)>>,
}

impl fmt::Debug for RemoteSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSequence").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl RemoteSequence {
    pub(crate) fn new(shared: Arc<Shared>, name: String, first: u64) -> Self {
        Self { inner: Arc::new(Inner { shared, name, first, blocks: Mutex::default() }) }
    }

    /// The sequence's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Draws a number: one that no other call has returned or will return.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on: pass it up with `?`.
    pub fn next(&self, tx: &mut Transaction<'_>) -> Result<u64, Abort> {
        let Inner { shared, name, first, blocks } = &*self.inner;
        loop {
            let mut free = lock(blocks);
            if let Some((next, left)) = free.front_mut() {
                let number = *next;
                (*next, *left) = (number.wrapping_add(1), *left - 1);
                if *left == 0 {
                    free.pop_front();
                }
                return Ok(number);
            }
            drop(free);
            let place = shared.layout.sequence(name);
            let taken = unique_numbers(&*shared.store, place, *first, BLOCK, tx.deadline);
            let begin = taken.map_err(|error| tx.fail(error))?;
            lock(blocks).push_back((begin, BLOCK));
        }
    }
}
