//! Reads without a lock that are checked at commit: the item's mark keeps the version that was read.

use crate::host::{Algorithm, Host};
use hotrow_core::{
    Attempt, ConflictCause, Flags, Item, ItemId, LoggedRead, Protocol, Reason, TouchedSegment,
};

/// A protocol whose marks have room for a version.
pub(crate) trait KeepsVersions: Algorithm {
    /// Tells one state of a segment from another.
    type Version: Copy + PartialEq;

    /// Runs `load` until no writer touched its result meanwhile. Returns the state that was read and the result.
    fn stable<V>(header: &Self::Header, load: impl FnMut() -> V) -> Result<(Self::Version, V), Reason>;

    /// Returns the version in a mark.
    fn version(mark: &mut Self::Mark) -> &mut Self::Version;
}

/// Makes a stable read and keeps its version in the item. A second read of the segment must find the same version.
#[inline(always)]
pub(crate) fn read<A: KeepsVersions, H: Host<A>, V>(
    attempt: &mut Attempt<H>,
    id: ItemId,
    load: impl FnMut() -> V,
) -> Result<(A::Version, V), ConflictCause> {
    let item = attempt.items.get_mut(id);
    let (version, value) =
        A::stable(H::header(item.header()), load).map_err(|reason| ConflictCause::item(reason, id))?;
    let earlier = if item.is(Flags::READ) {
        Some(*A::version(H::mark_mut(&mut item.mark)))
    } else {
        *A::version(H::mark_mut(&mut item.mark)) = version;
        item.set(Flags::READ);
        let logged = attempt.reads.mark_of(item.segment().addr().get());
        logged.map(|mut mark| *A::version(H::mark_mut(&mut mark)))
    };
    if earlier.is_some_and(|earlier| earlier != version) {
        return Err(ConflictCause::item(Reason::ReadChanged, id));
    }
    Ok((version, value))
}

/// Makes a stable read and logs its version. A second read of the segment must find the same version.
#[inline(always)]
pub(crate) fn log<A: KeepsVersions, H: Host<A>, V>(
    attempt: &mut Attempt<H>,
    segment: TouchedSegment<H>,
    load: impl FnMut() -> V,
) -> Result<(A::Version, V), ConflictCause> {
    match A::stable(H::header(segment.header()), load) {
        Ok((version, value)) => {
            let mut mark = H::Mark::default();
            *A::version(H::mark_mut(&mut mark)) = version;
            attempt.reads.push(segment, mark, |mut first, mut second| {
                A::version(H::mark_mut(&mut first)) == A::version(H::mark_mut(&mut second))
            })?;
            Ok((version, value))
        }
        Err(reason) => Err(attempt.reads.lost_at_read(segment, reason)),
    }
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
        let stable = A::stable(H::header(item.header()), || attempt.predicate_holds(id));
        let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
        let item = attempt.items.get_mut(id);
        if !item.is(Flags::READ) {
            *A::version(H::mark_mut(&mut item.mark)) = version;
            item.set(Flags::READ);
        }
        Ok(holds)
    })
}
