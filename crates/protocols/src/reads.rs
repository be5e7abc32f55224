//! Reads without a lock that are checked at commit: the item's mark keeps the version that was read.

use crate::host::{Algorithm, Host};
use crate::stable::{self, StableWord};
use hotrow_core::{
    Attempt, Before, ConflictCause, ConflictTarget, Flags, Item, ItemId, LoggedRead, Protocol, Reason,
    TouchedSegment,
};

/// A protocol whose headers are stable words and whose marks have room for a version.
pub(crate) trait KeepsVersions: Algorithm<Header: StableWord> {
    /// Returns the version in a mark.
    fn version(mark: &mut Self::Mark) -> &mut VersionOf<Self>;
}

/// The version of a protocol's headers.
pub(crate) type VersionOf<A> = <<A as Algorithm>::Header as StableWord>::Version;

/// The first half of a look at an item's segment. A writer that has it may have left it in a moment.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn before<A: Algorithm<Header: StableWord>, H: Host<A>>(
    attempt: &Attempt<H>,
    id: ItemId,
) -> Result<Before, ConflictCause> {
    stable::before(H::header(attempt.items.get(id).header()))
        .map_err(|reason| passing(reason, ConflictTarget::Item(id)))
}

/// The second half of a peek. Returns the version of the value.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn after_peek<A: Algorithm<Header: StableWord>, H: Host<A>>(
    attempt: &Attempt<H>,
    id: ItemId,
    before: Before,
) -> Result<VersionOf<A>, ConflictCause> {
    stable::after(H::header(attempt.items.get(id).header()), before)
        .map_err(|reason| passing(reason, ConflictTarget::Item(id)))
}

/// The second half of a read: keeps the version in the item. A second read by the item must find the same version.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn after_read<A: KeepsVersions, H: Host<A>>(
    attempt: &mut Attempt<H>,
    id: ItemId,
    before: Before,
) -> Result<VersionOf<A>, ConflictCause> {
    let item = attempt.items.get_mut(id);
    let version = stable::after(H::header(item.header()), before)
        .map_err(|reason| passing(reason, ConflictTarget::Item(id)))?;
    if !item.is(Flags::READ) {
        *A::version(H::mark_mut(&mut item.mark)) = version;
        item.set(Flags::READ);
    } else if *A::version(H::mark_mut(&mut item.mark)) != version {
        return Err(ConflictCause::item(Reason::ReadChanged, id));
    }
    Ok(version)
}

/// The first half of a read that is logged.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn before_logged<A: Algorithm<Header: StableWord>, H: Host<A>>(
    segment: &TouchedSegment<H>,
) -> Result<Before, ConflictCause> {
    // The caller knows the segment.
    stable::before(H::header(segment.header())).map_err(|reason| passing(reason, ConflictTarget::Nothing))
}

/// The second half of a read that is logged, without the log: returns the version that was read.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn after_logged<A: Algorithm<Header: StableWord>, H: Host<A>>(
    segment: &TouchedSegment<H>,
    before: Before,
) -> Result<VersionOf<A>, ConflictCause> {
    stable::after(H::header(segment.header()), before)
        .map_err(|reason| passing(reason, ConflictTarget::Nothing))
}

/// Out of line, so that a look that no writer meets does not prepare it.
#[cold]
#[inline(never)]
fn passing(reason: Reason, target: ConflictTarget) -> ConflictCause {
    ConflictCause::new(reason, target).passing()
}

/// The second half of a read that is logged. Returns the version that was read.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn log<A: KeepsVersions, H: Host<A>>(
    attempt: &mut Attempt<H>,
    segment: &TouchedSegment<H>,
    before: Before,
) -> Result<VersionOf<A>, ConflictCause> {
    let version = after_logged::<A, H>(segment, before)?;
    attempt.reads.push(segment, mark_of::<A, H>(version));
    Ok(version)
}

/// The mark of a version.
#[cfg_attr(not(debug_assertions), inline(always))]
fn mark_of<A: KeepsVersions, H: Host<A>>(version: VersionOf<A>) -> H::Mark {
    let mut mark = H::Mark::default();
    *A::version(H::mark_mut(&mut mark)) = version;
    mark
}

/// The second half of a read of a segment that is going to be written: returns the mark for its item, if the read succeeds.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn mark_to_write<A: KeepsVersions, H: Host<A>>(
    segment: &TouchedSegment<H>,
    before: Before,
) -> Option<H::Mark> {
    after_logged::<A, H>(segment, before).ok().map(mark_of::<A, H>)
}

/// True if the attempt has locked the segment of a logged read since, to write it.
#[cold]
pub(crate) fn is_locked_since<H: Protocol>(attempt: &Attempt<H>, read: &LoggedRead<H>) -> bool {
    let item = attempt.items.at(read.segment().address());
    item.is_some_and(|id| attempt.items.get(id).is(Flags::LOCKED))
}

/// Checks each predicate (sto §3.5). Where the attempt holds the segment, it is checked in place. Otherwise it is
/// checked on a stable state, which becomes a read of that state and is validated as one.
#[inline]
pub(crate) fn upgrade_predicates<A: KeepsVersions, H: Host<A>>(
    attempt: &mut Attempt<H>,
    is_held: impl Fn(&Item<H>) -> bool,
) -> Result<(), ConflictCause> {
    attempt.check_predicates(|attempt, id| {
        let item = attempt.items.get(id);
        if is_held(item) {
            return Ok(attempt.predicate_holds(id));
        }
        let stable = H::header(item.header()).stable(|| attempt.predicate_holds(id));
        let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
        let item = attempt.items.get_mut(id);
        if !item.is(Flags::READ) {
            *A::version(H::mark_mut(&mut item.mark)) = version;
            item.set(Flags::READ);
        }
        Ok(holds)
    })
}
