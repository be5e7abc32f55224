//! Reads on which a transaction does not depend: at read committed, and in an untracked part of a body.
//!
//! Such a read is a peek, or, under a protocol that logs reads, a glance that leaves no item. No bucket or leaf is observed, and no condition is
//! kept. An operation that looks at two segments finds out by itself if what it has seen was true at one moment
//! ([`keeps_reads`](ObjectAccess::keeps_reads)). The protocol takes no part in that.

use crate::kernel::abort::Abort;
use crate::kernel::attempt::ReadPath;
use crate::kernel::capabilities::LoggedReads;
use crate::kernel::item::TouchedSegment;
use crate::kernel::object_access::{ObjectAccess, ReadValue};
use crate::kernel::profile::{Isolation, Profile};
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;
use hotrow_sync::atomic::{Ordering, fence};

/// A part of a body whose reads are not kept. Ends when it is dropped.
struct Untracked<'a, 'w, P: Protocol> {
    access: &'a mut ObjectAccess<'w, P>,
    profile: Profile,
    read_path: ReadPath,
    moments: Moments,
}

impl<P: Protocol> Drop for Untracked<'_, '_, P> {
    fn drop(&mut self) {
        let attempt = &mut self.access.attempt;
        attempt.profile = self.profile;
        attempt.read_path = self.read_path;
        attempt.hears.set(Moments::READ_APART, self.moments.have(Moments::READ_APART));
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// Runs a part of the body that only reads, and on whose reads the transaction does not depend: it neither aborts nor waits
    /// because something changes that was read there. For hints: which row to try, how full a queue was.
    ///
    /// This gives up serializability for these reads, as [`Isolation::ReadCommitted`] does for a whole transaction. Each call
    /// returns one committed fact, or one that the transaction itself has made; two calls may see two states; a key that was absent may
    /// have come. What the body decides by them must be right whatever they say, or be read again outside of the part. A
    /// [`retry`](Self::retry) is woken by their changes, too. Histories do not show them. On a snapshot, reads are as elsewhere.
    /// Deferred operations that are waiting run before the part.
    ///
    /// A write in the part is [`Misuse::ReadOnly`](crate::Misuse::ReadOnly).
    ///
    /// # Errors
    ///
    /// Those of the part.
    pub fn untracked<R, E>(&mut self, part: impl FnOnce(&mut Self) -> Result<R, E>) -> Result<R, E> {
        let attempt = &mut self.0.attempt;
        if attempt.profile.isolation.is_on_snapshot() {
            return part(self);
        }
        // Operations that were deferred before are no part of this part. If one fails, so does each operation from here on.
        let _ = self.0.deferral_mut().settle();
        let attempt = &mut self.0.attempt;
        let (profile, read_path) = (attempt.profile, attempt.read_path);
        let moments = attempt.hears;
        attempt.profile = Profile { read_only: true, isolation: Isolation::ReadCommitted, ..profile };
        attempt.read_path = match read_path {
            ReadPath::Log | ReadPath::Unkept => ReadPath::Unkept,
            ReadPath::LogAndRecord | ReadPath::Item => ReadPath::Item,
        };
        attempt.hears.add(Moments::READ_APART);
        let running = Untracked { access: &mut self.0, profile, read_path, moments };
        part(running.access)
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Reads a segment on which the attempt does not depend, and of which nobody hears: leaves an item only if a writer is in the way.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(never)]
    pub(crate) unsafe fn read_unkept(
        &mut self,
        touched: TouchedSegment<P>,
        load: &mut dyn FnMut(),
    ) -> Result<ReadValue<()>, Abort> {
        if let Some(id) = self.own_write(touched.segment()) {
            return Ok(ReadValue::Own(id));
        }
        match self.glance(touched, &mut *load) {
            Some(()) => {
                self.attempt.note_seen_segment(&touched);
                Ok(ReadValue::Shared(()))
            }
            // SAFETY: the caller's promise.
            None => unsafe { self.read_by_item(touched, load) },
        }
    }

    /// True if a [`glance`](Self::glance) alone is a read: the attempt depends on no segment that it reads, nobody hears of them, and it
    /// has written nothing.
    #[inline]
    pub(crate) fn may_glance(&self) -> bool {
        P::LOGS_READS
            && self.attempt.read_path == ReadPath::Unkept
            && self.attempt.items.writes().is_empty()
            && self.attempt.features.logging.is_none()
    }

    /// Loads the value of a segment that the attempt has not written, once. `None` if a writer came in between, so that the value may be torn.
    ///
    /// The protocol's first half of a logged read succeeds before and after the load, with the same note: so it holds of the load what
    /// [`LoggedReads::before_load`] says.
    #[inline(always)]
    pub(crate) fn glance<V>(&self, touched: TouchedSegment<P>, load: impl FnOnce() -> V) -> Option<V> {
        touched.announce();
        let logged = P::LoggedReads::of(self.protocol)?;
        let before = logged.before_load(&touched).ok()?;
        let value = load();
        // Pairs with the release fence of a writer that has locked the word, as in the second half of a read.
        fence(Ordering::Acquire);
        (logged.before_load(&touched).ok()? == before).then_some(value)
    }
}
