//! Guesses: what an intention will see at its turn, before the turn.
//!
//! The first row of a queue is sure for a taker only when the taker before it has deleted its own row. So transactions that take rows
//! and then work on what these name would follow each other from end to end. But the row of the one before is known as soon as it has
//! queued for it. So a datatype may defer a *guess* beside an intention on a segment. It runs if a [late](super::late) operation
//! would have to wait for that intention, when all attempts before this one have queued for the segments up to a rank. What depends
//! on the intention takes the guess instead of its result ([`Early`]). The intention gets the guess ([`Guessed`]), and ends the
//! attempt if it sees something else at its turn.
//!
//! An attempt that has guessed and commits has done what it would have done at its turn. Until then it may see what is never
//! committed, if an attempt before it is aborted. So its rollbacks and panics are not believed: it has lost, and the next attempt
//! waits for its turns ([`Deferral::wait_for_earlier`](crate::Deferral::wait_for_earlier)).

use crate::features::deferred::DeferralAccess;
use crate::features::operations::{Deferred, Input, Results};
use crate::kernel::abort::Abort;
use crate::kernel::capabilities::Deferral as _;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use std::num::NonZeroU64;

/// The guess that an intention checks: `None` if nothing was guessed.
#[derive(Debug, Clone)]
pub struct Guessed<O>(pub Deferred<Option<O>>);

impl<O: Clone + 'static> Input for Guessed<O> {
    type Value = Option<O>;

    fn get(&self, results: &Results) -> Option<Option<O>> {
        Some(self.0.get(results).flatten())
    }
    fn is_known(&self, _: &Results) -> bool {
        true
    }
    fn belongs_to(&self, results: &Results) -> bool {
        self.0.belongs_to(results)
    }
    fn each_slot(&self, _: &mut dyn FnMut(u32)) {}
}

/// The guess at the result of an intention, or the result itself if nothing was guessed.
#[derive(Debug, Clone)]
pub struct Early<O> {
    /// The guess.
    pub guess: Deferred<Option<O>>,
    /// The result at the turn.
    pub at_turn: Deferred<Option<O>>,
}

impl<O: Clone + 'static> Input for Early<O> {
    type Value = Option<O>;

    fn get(&self, results: &Results) -> Option<Option<O>> {
        let guess = self.guess.get(results).flatten();
        guess.map(Some).or_else(|| self.at_turn.get(results))
    }
    fn is_known(&self, results: &Results) -> bool {
        self.get(results).is_some()
    }
    fn belongs_to(&self, results: &Results) -> bool {
        self.guess.belongs_to(results) && self.at_turn.belongs_to(results)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        self.at_turn.each_slot(visit);
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Runs all guesses that have not run. True if there are any.
    #[cold]
    pub(super) fn guess(&mut self) -> Result<bool, Abort> {
        let Some(deferral) = P::Deferral::of(self.protocol) else { return Ok(false) };
        let waiting = std::mem::take(&mut self.attempt.features.intentions.waiting);
        let mut has_run = false;
        for intention in &waiting {
            let Some(rank) = intention.guesses else { continue };
            if !self.attempt.features.operations.results.is_known(intention.operation.slot) {
                deferral.wait_for_earlier(self.attempt, rank.get());
                self.run_one(intention)?;
                has_run = true;
            }
        }
        self.attempt.features.intentions.waiting = waiting;
        Ok(has_run)
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// True if an operation that is deferred on a segment now had better [guess](Self::defer_guess) what it will see at its turn.
    pub fn may_guess(&self, segment: &P::Header) -> bool {
        let deferral = P::Deferral::of(self.protocol);
        self.defers() && deferral.is_some_and(|deferral| deferral.may_guess(self.attempt, segment))
    }

    /// Defers a guess at the result of the intention that is deferred next. It runs only if something waits for that intention, when
    /// all attempts before this one have queued for the segments up to `rank`; or with all others, in the body. It touches nothing.
    ///
    /// # Errors
    ///
    /// As [`compute`](crate::Transaction::compute).
    pub fn defer_guess<O: 'static>(
        &mut self,
        rank: u64,
        guess: impl FnOnce(&mut ObjectAccess<'_, P>) -> Result<Option<O>, Abort> + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let guess = self.intend((), |tx, ()| guess(tx))?;
        if let Some(last) = self.attempt.features.intentions.waiting.last_mut() {
            last.guesses = NonZeroU64::new(rank);
        }
        Ok(guess)
    }

    /// True if an attempt is going to change a segment, and is in its queue; `None` if that may be the one that has made the segment.
    pub fn is_claimed(&self, segment: &P::Header) -> Option<bool> {
        P::Deferral::of(self.protocol)?.is_claimed(segment)
    }
}
