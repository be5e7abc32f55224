//! The read log: reads that need no item.
//!
//! An optimistic protocol only checks its reads again at commit. For that it needs the segment and the version, not an
//! item that is found through a map. So a read is appended to a log. A segment that is written later gets an item
//! besides. (Silo's read set; STO has an item for each read, sto §3.2.)
//!
//! Reads at read committed, and those that a datatype makes of an item, use items under every protocol.

use crate::kernel::abort::Reason;
use crate::kernel::item::TouchedSegment;
use crate::kernel::object::Object;
use crate::kernel::protocol::{ConflictCause, ConflictTarget, Protocol};
use crate::memory::address_index::AddressIndex;
use hotrow_sync::work::{Work, charge};
use std::ptr::NonNull;

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

/// An attempt's logged reads, one for each segment, in their order.
pub struct ReadLog<P: Protocol> {
    reads: Vec<LoggedRead<P>>,
    index: AddressIndex,
}

/// The address of the segment of each read, for the index.
#[inline(always)]
fn address_in<P: Protocol>(reads: &[LoggedRead<P>]) -> impl Fn(usize) -> usize + Copy {
    |at| reads[at].segment.address()
}

impl<P: Protocol> ReadLog<P> {
    pub(crate) fn new() -> Self {
        Self { reads: Vec::new(), index: AddressIndex::new(64) }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
        self.index.clear();
    }

    /// Logs a read. Fails if the mark of an earlier read of the segment is not of the `same` state: an attempt sees one
    /// state of a segment.
    #[inline(always)]
    pub fn push(
        &mut self,
        segment: &TouchedSegment<P>,
        mark: P::Mark,
        same: impl FnOnce(P::Mark, P::Mark) -> bool,
    ) -> Result<(), ConflictCause> {
        charge(Work::LoggedRead);
        let Self { reads, index } = self;
        if reads.len() < reads.capacity() && index.enter_new(segment.address()) {
            // Within the capacity.
            reads.push(LoggedRead { segment: *segment, mark });
            return Ok(());
        }
        let (segment, object) = segment.into_parts();
        self.push_slowly(segment, object, mark, same)
    }

    /// Out of line, so that the others call nothing. Takes the segment in parts: as a whole it would be in memory for the others, too.
    #[inline(never)]
    fn push_slowly(
        &mut self,
        segment: NonNull<P::Header>,
        object: NonNull<dyn Object<P>>,
        mark: P::Mark,
        same: impl FnOnce(P::Mark, P::Mark) -> bool,
    ) -> Result<(), ConflictCause> {
        // SAFETY: the parts of a touched segment.
        let segment = unsafe { TouchedSegment::new(segment, object) };
        let Self { reads, index } = self;
        match index.find_or_enter(segment.address(), reads.len(), address_in(reads)) {
            None => {
                reads.push(LoggedRead { segment, mark });
                Ok(())
            }
            Some(at) if same(reads[at as usize].mark, mark) => Ok(()),
            Some(at) => Err(self.lost(at as usize, Reason::ReadChanged)),
        }
    }

    /// Returns the mark of a logged read of a segment.
    #[inline(always)]
    pub fn mark_of(&self, segment: usize) -> Option<P::Mark> {
        let at = self.index.find(segment, self.reads.len(), address_in(&self.reads))?;
        Some(self.reads[at as usize].mark)
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
    use crate::memory::address_index::FEW;
    use crate::testing::{Silent, Unprotected};

    fn touched<'a>(segment: &'a u64, object: &'a Silent) -> TouchedSegment<Unprotected> {
        // SAFETY: nothing looks into the segment, and both outlive the log.
        unsafe {
            TouchedSegment::new(NonNull::from(segment), NonNull::from(object as &dyn Object<Unprotected>))
        }
    }

    fn same(first: u64, second: u64) -> bool {
        first == second
    }

    #[test]
    fn a_log_grows_with_the_segments_read_and_not_with_the_reads() {
        let segments = [0u64; 100];
        let object = Silent::default();
        let mut log = ReadLog::<Unprotected>::new();
        for count in [1, FEW - 1, FEW, FEW + 1, 100] {
            log.clear();
            for _ in 0..3 {
                for segment in &segments[..count] {
                    log.push(&touched(segment, &object), 7, same).unwrap();
                }
            }
            let logged: Vec<_> = log.iter().map(|read| read.segment().address()).collect();
            let read: Vec<_> =
                segments[..count].iter().map(|segment| std::ptr::from_ref(segment).addr()).collect();
            assert_eq!(logged, read);
        }
    }

    #[test]
    fn a_segment_is_not_read_in_two_states() {
        let segments = [0u64; 100];
        let object = Silent::default();
        let mut log = ReadLog::<Unprotected>::new();
        for (count, again) in [(1, 0), (3, 1), (100, 0), (100, 99)] {
            log.clear();
            for segment in &segments[..count] {
                log.push(&touched(segment, &object), 7, same).unwrap();
            }
            let lost = log.push(&touched(&segments[again], &object), 8, same).unwrap_err();
            assert_eq!(lost.reason(), Reason::ReadChanged);
            assert_eq!(lost.target(), ConflictTarget::Read(again as u32));
        }
    }
}
