//! Reads on which a transaction does not depend.

use crate::kernel::attempt::ReadPath;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::profile::{Isolation, Profile};
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;

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
        attempt.read_path = ReadPath::Item;
        attempt.hears.add(Moments::READ_APART);
        let running = Untracked { access: &mut self.0, profile, read_path, moments };
        part(running.access)
    }
}
