//! Reads without a lock that are checked at commit: the item's mark keeps the version that was read.

use hotrow_core::{
    Attempt, ConflictCause, Flags, Item, ItemId, LoggedRead, Protocol, Reason, TouchedSegment,
};

/// A protocol whose marks have room for a version.
pub(crate) trait KeepsVersions: Protocol {
    /// Tells one state of a segment from another.
    type Version: Copy + PartialEq;

    /// Runs `load` until no writer touched its result meanwhile. Returns the state that was read and the result.
    fn stable<V>(header: &Self::Header, load: impl FnMut() -> V) -> Result<(Self::Version, V), Reason>;

    /// Returns the version in a mark.
    fn version(mark: &mut Self::Mark) -> &mut Self::Version;
}

/// Makes a stable read and keeps its version in the item. A second read of the segment must find the same version.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn read<P: KeepsVersions, V>(
    attempt: &mut Attempt<P>,
    id: ItemId,
    load: impl FnMut() -> V,
) -> Result<(P::Version, V), ConflictCause> {
    let item = attempt.items.get_mut(id);
    let (version, value) =
        P::stable(item.header(), load).map_err(|reason| ConflictCause::item(reason, id))?;
    let earlier = if item.is(Flags::READ) {
        Some(*P::version(&mut item.mark))
    } else {
        *P::version(&mut item.mark) = version;
        item.set(Flags::READ);
        let logged = attempt.reads.mark_of(item.segment().addr().get());
        logged.map(|mut mark| *P::version(&mut mark))
    };
    if earlier.is_some_and(|earlier| earlier != version) {
        return Err(ConflictCause::item(Reason::ReadChanged, id));
    }
    Ok((version, value))
}

/// Makes a stable read and logs its version. A second read of the segment must find the same version.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn log<P: KeepsVersions, V>(
    attempt: &mut Attempt<P>,
    segment: TouchedSegment<P>,
    load: impl FnMut() -> V,
) -> Result<(P::Version, V), ConflictCause> {
    match P::stable(segment.header(), load) {
        Ok((version, value)) => {
            let mut mark = P::Mark::default();
            *P::version(&mut mark) = version;
            attempt.reads.push(segment, mark, |mut first, mut second| {
                P::version(&mut first) == P::version(&mut second)
            })?;
            Ok((version, value))
        }
        Err(reason) => Err(attempt.reads.lost_at_read(segment, reason)),
    }
}

/// True if the attempt has locked the segment of a logged read since, to write it.
#[cold]
pub(crate) fn is_locked_since<P: Protocol>(attempt: &Attempt<P>, read: &LoggedRead<P>) -> bool {
    let item = attempt.items.at(read.segment().address());
    item.is_some_and(|id| attempt.items.get(id).is(Flags::LOCKED))
}

/// Checks each predicate (sto §3.5). Where the attempt holds the segment, it is checked in place. Otherwise it is
/// checked on a stable state, which becomes a read of that state and is validated as one.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn upgrade_predicates<P: KeepsVersions>(
    attempt: &mut Attempt<P>,
    is_held: impl Fn(&Item<P>) -> bool,
) -> Result<(), ConflictCause> {
    attempt.check_predicates(|attempt, id| {
        let item = attempt.items.get(id);
        if is_held(item) {
            return Ok(attempt.predicate_holds(id));
        }
        let stable = P::stable(item.header(), || attempt.predicate_holds(id));
        let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
        let item = attempt.items.get_mut(id);
        if !item.is(Flags::READ) {
            *P::version(&mut item.mark) = version;
            item.set(Flags::READ);
        }
        Ok(holds)
    })
}
