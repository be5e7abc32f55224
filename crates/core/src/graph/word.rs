//! The word of an operation: which batch it belongs to, and what has become of it. It decides who runs it (stealdb,
//! Algorithm 2, line 1, where it is the identity of the owner's transaction).

use hotrow_sync::atomic::{AtomicU64, Ordering};

/// What an operation's word says of it, beside its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// Of an earlier batch, or run by its owner, or adopted.
    Finished = 0,
    /// Its inputs are not known, or it is a computation.
    Waiting = 1,
    /// Anybody may take it.
    Runnable = 2,
    /// Somebody runs it.
    Taken = 3,
    /// A thief has run it.
    Done = 4,
    /// It is the owner's, in its turn.
    GivenBack = 5,
}

const STATE_BITS: u32 = 3;
const STATE: u64 = (1 << STATE_BITS) - 1;

impl State {
    fn of(word: u64) -> Self {
        match word & STATE {
            1 => State::Waiting,
            2 => State::Runnable,
            3 => State::Taken,
            4 => State::Done,
            5 => State::GivenBack,
            _ => State::Finished,
        }
    }

    fn in_batch(self, batch: u64) -> u64 {
        batch << STATE_BITS | self as u64
    }
}

/// An operation's word.
#[derive(Debug, Default)]
pub(super) struct Word(AtomicU64);

impl Word {
    /// The batch that it is of. Whoever goes by it takes the operation with it.
    pub(super) fn batch(&self) -> u64 {
        // Relaxed: `take` compares the whole word.
        self.0.load(Ordering::Relaxed) >> STATE_BITS
    }

    pub(super) fn state(&self) -> State {
        // Acquire: pairs with the release in `set`; who sees that it is done sees what was done.
        State::of(self.0.load(Ordering::Acquire))
    }

    /// The state, if the word is of this batch. For the owner.
    pub(super) fn state_in(&self, batch: u64) -> Option<State> {
        // Relaxed: whether it is of the batch, the owner itself has said.
        let word = self.0.load(Ordering::Relaxed);
        (word >> STATE_BITS == batch).then(|| State::of(word))
    }

    /// For the owner while nobody can take the operation, and for who has taken it.
    pub(super) fn set(&self, state: State, batch: u64) {
        // Release: pairs with the acquire in `state` and `take`.
        self.0.store(state.in_batch(batch), Ordering::Release);
    }

    /// Takes an operation of a batch that is in this state. Exactly one succeeds.
    pub(super) fn take(&self, from: State, batch: u64) -> bool {
        // A look first, which is in nobody's way.
        self.0.load(Ordering::Relaxed) == from.in_batch(batch) && self.change(from, State::Taken, batch)
    }

    /// Changes the state, if it is this one.
    pub(super) fn change(&self, from: State, to: State, batch: u64) -> bool {
        let (from, to) = (from.in_batch(batch), to.in_batch(batch));
        // Acquire: pairs with the release in `set`; who takes an operation sees its plan. Release: who makes it runnable has
        // seen the results that it needs, and so does who takes it then.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_takes_an_operation_and_nobody_one_of_another_batch() {
        let word = Word::default();
        assert_eq!((word.state(), word.take(State::Runnable, 7)), (State::Finished, false));
        word.set(State::Waiting, 7);
        assert!(!word.take(State::Runnable, 7) && !word.change(State::Waiting, State::Runnable, 6));
        assert!(word.change(State::Waiting, State::Runnable, 7));
        assert!(!word.take(State::Runnable, 8));
        assert!(word.take(State::Runnable, 7) && !word.take(State::Runnable, 7));
        assert_eq!((word.state(), word.batch()), (State::Taken, 7));
        assert_eq!((word.state_in(7), word.state_in(8)), (Some(State::Taken), None));
    }
}
