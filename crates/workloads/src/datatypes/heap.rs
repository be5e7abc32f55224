//! A binary heap over a transactional vector: what `std::priority_queue` over STO's vector is (sto §5.5).
//!
//! Its operations move elements along a path of the heap, and conflict wherever two paths meet.

use hotrow::{Abort, Engine, Protocol, TVector, Transaction};

/// A priority queue of numbers; the greatest comes first.
pub(super) struct Heap<P: Protocol> {
    elements: TVector<u64, P>,
}

impl<P: Protocol> Heap<P> {
    /// A heap of these numbers.
    pub(super) fn new(engine: &Engine<P>, elements: impl Iterator<Item = u64>) -> Self {
        let mut sorted: Vec<_> = elements.collect();
        // A sorted array is a heap.
        sorted.sort_unstable_by(|one, other| other.cmp(one));
        Self { elements: TVector::named(engine, "heap", sorted) }
    }

    pub(super) fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.elements.len(tx)
    }

    pub(super) fn push(&self, tx: &mut Transaction<'_, P>, element: u64) -> Result<(), Abort> {
        let mut at = self.elements.len(tx)?;
        self.elements.push(tx, element)?;
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.get(tx, parent)?;
            if above >= element {
                break;
            }
            self.elements.set(tx, at, above)?;
            self.elements.set(tx, parent, element)?;
            at = parent;
        }
        Ok(())
    }

    pub(super) fn pop(&self, tx: &mut Transaction<'_, P>) -> Result<Option<u64>, Abort> {
        let Some(last) = self.elements.pop(tx)? else { return Ok(None) };
        let length = self.elements.len(tx)?;
        if length == 0 {
            return Ok(Some(last));
        }
        let first = self.get(tx, 0)?;
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= length {
                break;
            }
            let (mut child, mut below) = (left, self.get(tx, left)?);
            if right < length {
                let other = self.get(tx, right)?;
                if other > below {
                    (child, below) = (right, other);
                }
            }
            if below <= last {
                break;
            }
            self.elements.set(tx, at, below)?;
            at = child;
        }
        self.elements.set(tx, at, last)?;
        Ok(Some(first))
    }

    fn get(&self, tx: &mut Transaction<'_, P>, at: usize) -> Result<u64, Abort> {
        // Absent only if the length has changed since, so that the attempt cannot commit.
        Ok(self.elements.get(tx, at)?.unwrap_or_default())
    }
}
