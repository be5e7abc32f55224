//! The read log: reads that need no item.
//!
//! What an optimistic protocol has read it only checks again at commit. For that it needs the segment and the version,
//! not an item that is found through a map. So a read is appended to a log. A segment that is written later gets an item
//! besides. (Silo's read set; STO has an item for each read, sto §3.2.)
//!
//! Attempts that are recorded in a history, and reads that a datatype makes of an item, use items under every protocol.

use crate::abort::Reason;
use crate::address_map::AddressMap;
use crate::attempt::Attempt;
use crate::object::Object;
use crate::protocol::{Absent, ConflictCause, ConflictTarget, Protocol};
use std::ptr::NonNull;

/// Reads that are logged, for a protocol that only checks them at commit.
pub trait LoggedReads<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// Reads a segment of which the attempt has no pending write, as [`Protocol::read`] does: runs `load` until its
    /// result is stable, and [logs](ReadLog::push) what `prepare` needs to know.
    fn read<V>(
        &self,
        attempt: &mut Attempt<P>,
        segment: TouchedSegment<P>,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause>;
}

impl<P: Protocol> LoggedReads<P> for Absent {
    const PRESENT: bool = false;

    #[inline(always)]
    fn of(_: &P) -> Option<&Self> {
        None
    }

    fn read<V>(
        &self,
        _: &mut Attempt<P>,
        _: TouchedSegment<P>,
        _: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        match *self {}
    }
}

/// A segment and its object, which both stay in memory until the attempt ends.
pub struct TouchedSegment<P: Protocol> {
    segment: NonNull<P::Header>,
    object: NonNull<dyn Object<P>>,
}

impl<P: Protocol> TouchedSegment<P> {
    /// # Safety
    ///
    /// The segment is the object's, and both stay in memory until the attempt ends.
    #[inline(always)]
    pub(crate) unsafe fn new(segment: NonNull<P::Header>, object: NonNull<dyn Object<P>>) -> Self {
        Self { segment, object }
    }

    /// The segment's header.
    #[inline(always)]
    pub fn header(&self) -> &P::Header {
        // SAFETY: in memory until the attempt ends, promised the maker.
        unsafe { self.segment.as_ref() }
    }

    /// The segment's address.
    #[inline(always)]
    pub fn address(&self) -> usize {
        self.segment.addr().get()
    }

    pub(crate) fn segment(&self) -> NonNull<P::Header> {
        self.segment
    }

    pub(crate) fn object(&self) -> &dyn Object<P> {
        // SAFETY: as for the header.
        unsafe { self.object.as_ref() }
    }
}

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

/// Number of reads up to which a second read of a segment is looked for one by one.
const FEW: usize = if cfg!(test) { 4 } else { 32 };

/// An attempt's logged reads, one for each segment, in their order.
pub struct ReadLog<P: Protocol> {
    reads: Vec<LoggedRead<P>>,
    /// A bit for each segment that was read; several may share one. All bits, once the reads are in the map.
    filter: u64,
    /// The positions of segments among the reads, once there are many.
    map: AddressMap,
    /// True if all reads are in the map.
    is_mapped: bool,
}

impl<P: Protocol> ReadLog<P> {
    pub(crate) fn new() -> Self {
        Self { reads: Vec::new(), filter: 0, map: AddressMap::new(2 * FEW), is_mapped: false }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        if self.is_mapped {
            self.map.clear();
            self.is_mapped = false;
        }
        self.reads.clear();
        self.filter = 0;
    }

    /// Logs a read. Fails if an earlier read of the segment has left another mark: an attempt sees one state of a
    /// segment.
    #[inline(always)]
    pub fn push(&mut self, segment: TouchedSegment<P>, mark: P::Mark) -> Result<(), ConflictCause> {
        // The upper bits of the product depend on all bits of the address.
        let bit = 1 << ((segment.address() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58);
        if self.filter & bit != 0 {
            let TouchedSegment { segment, object } = segment;
            return self.push_again(segment, object, mark);
        }
        self.filter |= bit;
        self.reads.push(LoggedRead { segment, mark });
        Ok(())
    }

    /// Logs a read of a segment that may have been read before.
    ///
    /// Takes the segment in parts: as a whole it would be in memory where [`push`](Self::push) is inlined.
    #[inline(never)]
    fn push_again(
        &mut self,
        segment: NonNull<P::Header>,
        object: NonNull<dyn Object<P>>,
        mark: P::Mark,
    ) -> Result<(), ConflictCause> {
        if self.reads.len() >= FEW && !self.is_mapped {
            self.enter_all();
        }
        let address = |read: &LoggedRead<P>| read.segment.address();
        let wanted = segment.addr().get();
        let Self { reads, map, .. } = self;
        let found = if self.is_mapped {
            map.find_or_enter(wanted, |at| address(&reads[at])).ok().map(|at| at as usize)
        } else {
            reads.iter().position(|read| address(read) == wanted)
        };
        match found {
            Some(at) if reads[at].mark == mark => Ok(()),
            Some(at) => Err(self.lost(at, Reason::ReadChanged)),
            None => {
                self.reads.push(LoggedRead { segment: TouchedSegment { segment, object }, mark });
                Ok(())
            }
        }
    }

    /// Enters all reads into the map, when there are many.
    #[cold]
    fn enter_all(&mut self) {
        let Self { reads, map, filter, is_mapped } = self;
        for read in reads.iter() {
            let _ = map.find_or_enter(read.segment.address(), |at| reads[at].segment.address());
        }
        (*filter, *is_mapped) = (u64::MAX, true);
    }

    /// The logged reads.
    #[inline(always)]
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedRead<P>> {
        self.reads.iter()
    }

    /// Returns the conflict over a read with this position in the log.
    #[cold]
    pub fn lost(&self, position: usize, reason: Reason) -> ConflictCause {
        ConflictCause { reason, target: ConflictTarget::Read(position as u32) }
    }

    /// Returns the conflict over a read that was never stable. It is logged so that a report finds it; the attempt will
    /// not commit.
    #[inline(always)]
    pub fn lost_at_read(&mut self, segment: TouchedSegment<P>, reason: Reason) -> ConflictCause {
        let TouchedSegment { segment, object } = segment;
        self.log_lost(segment, object, reason)
    }

    /// Takes the segment in parts, as [`push_again`](Self::push_again).
    #[cold]
    #[inline(never)]
    fn log_lost(
        &mut self,
        segment: NonNull<P::Header>,
        object: NonNull<dyn Object<P>>,
        reason: Reason,
    ) -> ConflictCause {
        self.reads.push(LoggedRead { segment: TouchedSegment { segment, object }, mark: P::Mark::default() });
        self.lost(self.reads.len() - 1, reason)
    }

    pub(crate) fn get(&self, position: u32) -> &TouchedSegment<P> {
        &self.reads[position as usize].segment
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::testing::{Silent, Unprotected};

    fn touched<'a>(segment: &'a u64, object: &'a Silent) -> TouchedSegment<Unprotected> {
        // SAFETY: nothing looks into the segment, and both outlive the log.
        unsafe {
            TouchedSegment::new(NonNull::from(segment), NonNull::from(object as &dyn Object<Unprotected>))
        }
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
                    log.push(touched(segment, &object), 7).unwrap();
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
                log.push(touched(segment, &object), 7).unwrap();
            }
            let lost = log.push(touched(&segments[again], &object), 8).unwrap_err();
            assert_eq!(lost.reason, Reason::ReadChanged);
            assert_eq!(lost.target, ConflictTarget::Read(again as u32));
        }
    }
}
