//! The read log: reads that need no item.
//!
//! An optimistic protocol only checks its reads again at commit. For that it needs the segment and the version, not an
//! item that is found through an index. So a read is appended to a log. A segment that is written later gets an item
//! besides. (Silo's read set; STO has an item for each read, sto §3.2.)
//!
//! Reads at read committed, and those that a datatype makes of an item, use items under every protocol. Reads in an untracked part leave
//! nothing, unless a writer is in the way.

use crate::kernel::abort::Reason;
use crate::kernel::item::TouchedSegment;
use crate::kernel::protocol::{ConflictCause, ConflictTarget, Protocol};
use crate::memory::address_map::AddressMap;
use hotrow_sync::work::{Work, charge};

/// A read that the commit checks.
pub struct LoggedRead<P: Protocol> {
    segment: TouchedSegment<P>,
    mark: P::Mark,
}

impl<P: Protocol> LoggedRead<P> {
    /// The segment that was read.
    #[inline(always)]
    pub fn segment(&self) -> &TouchedSegment<P> {
        &self.segment
    }

    /// The protocol's trace of the read.
    #[inline(always)]
    pub fn mark(&self) -> P::Mark {
        self.mark
    }
}

/// An attempt's logged reads, in their order. A segment that is read several times may be there several times.
///
/// The commit checks each. So if two reads of a segment have seen two states, the attempt cannot commit.
pub struct ReadLog<P: Protocol> {
    reads: Vec<LoggedRead<P>>,
    /// Memory for the compaction of a full log.
    segments: AddressMap,
}

/// Number of reads for which a log has room at first.
const ROOM: usize = if cfg!(test) { 4 } else { 128 };

impl<P: Protocol> ReadLog<P> {
    pub(crate) fn new() -> Self {
        Self { reads: Vec::new(), segments: AddressMap::new(4) }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
    }

    /// Logs a read.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn push(&mut self, segment: &TouchedSegment<P>, mark: P::Mark) {
        charge(Work::LoggedRead);
        if self.reads.len() == self.reads.capacity() {
            self.make_room();
        }
        // Within the capacity.
        self.reads.push(LoggedRead { segment: *segment, mark });
    }

    /// Makes room in a full log: removes all but the first read of each segment, and doubles the log if that is no half of it. So the log
    /// grows with the segments that are read, and not with the reads, and a read costs constant time on average.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let Self { reads, segments } = self;
        segments.clear();
        let mut kept = 0;
        for at in 0..reads.len() {
            reads.swap(kept, at);
            let address = reads[kept].segment.address();
            if segments.find_or_enter(address, |at| reads[at].segment.address()).is_err() {
                kept += 1;
            }
        }
        reads.truncate(kept);
        if kept * 2 >= reads.capacity() {
            reads.reserve_exact(ROOM.max(reads.capacity() * 2) - kept);
        }
    }

    /// Returns the mark of the last logged read of a segment. Searches from the end: for a segment that was read just now.
    pub(crate) fn last_mark_of(&self, segment: usize) -> Option<P::Mark> {
        self.reads.iter().rev().find(|read| read.segment.address() == segment).map(LoggedRead::mark)
    }

    /// The logged reads.
    #[inline(always)]
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedRead<P>> {
        self.reads.iter()
    }

    /// Returns the conflict over a read with this position in the log.
    #[cold]
    pub fn lost(&self, position: usize, reason: Reason) -> ConflictCause {
        ConflictCause::new(reason, ConflictTarget::Read(position as u32))
    }

    /// Returns the conflict over a read that was never stable. It is logged so that a report finds it; the attempt will
    /// not commit.
    #[cold]
    pub(crate) fn lost_at_read(&mut self, segment: &TouchedSegment<P>, reason: Reason) -> ConflictCause {
        self.reads.push(LoggedRead { segment: *segment, mark: P::Mark::default() });
        self.lost(self.reads.len() - 1, reason)
    }

    pub(crate) fn get(&self, position: u32) -> &TouchedSegment<P> {
        &self.reads[position as usize].segment
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::object::Object;
    use crate::testing::{Silent, Unprotected};
    use std::ptr::NonNull;

    #[test]
    fn a_log_grows_with_the_segments_read_and_not_with_the_reads() {
        let segments = [0u64; 100];
        let object = Silent::default();
        let mut log = ReadLog::<Unprotected>::new();
        for count in [1, ROOM - 1, ROOM, ROOM + 1, 100] {
            log.clear();
            for round in 0..100 {
                for segment in &segments[..count] {
                    // SAFETY: nothing looks into the segment, and both outlive the log.
                    let touched = unsafe {
                        TouchedSegment::new(
                            NonNull::from(segment),
                            NonNull::from(&object as &dyn Object<Unprotected>),
                        )
                    };
                    log.push(&touched, round);
                }
            }
            assert!(
                log.reads.capacity() <= 4 * count.max(ROOM),
                "{count} segments: {}",
                log.reads.capacity()
            );
            for segment in &segments[..count] {
                let address = std::ptr::from_ref(segment).addr();
                let first = log.iter().find(|read| read.segment().address() == address).unwrap();
                assert_eq!(first.mark(), 0, "the first read of each segment stays");
            }
        }
    }
}
