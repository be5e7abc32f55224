//! Read timestamps that have no room in a segment's word.
//!
//! TicToc (§3.6) moves a version's write timestamp up if the distance to the read timestamp no longer fits, as if the value had
//! been written again. But the write timestamp names the version, for everybody who has read it: such a move aborts them, the mover
//! among them if it looks at the word once more. So here only a write changes the write timestamp. A distance that does not fit is
//! left at its maximum, and the read timestamp is noted beside the word: in one of a few words that only grow, each for many
//! segments. Their next writers commit above that word. It holds the timestamp of a commit, so logical time goes up by one with each
//! write as before.
//!
//! # Why no read is missed
//!
//! A reader notes its timestamp, and then sets the distance in the unlocked word (release); a writer that locks the word later (acquire)
//! loads the note. If the distance is at its maximum already, the reader loads the word, and finds it unlocked. This load and the note,
//! the writer's lock and its load of the note are sequentially consistent, so the one sees the lock, or the other the note. A reader
//! that finds the lock has noted in vain, which does no harm.

use super::word::{TimestampWord, Timestamps};
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// Number of words. Segments whose addresses differ by a multiple of this number of cache lines share one; it divides a page, so that
/// it does not change between runs of a simulation which.
const WORDS: usize = if cfg!(test) { 2 } else { 64 };

/// The size of a cache line.
const LINE: usize = 64;

/// The latest timestamps at which versions were read whose words have no room for it.
#[derive(Debug)]
pub(super) struct LateReads {
    words: Box<[CachePadded<AtomicU64>]>,
}

impl LateReads {
    pub(super) fn new() -> Self {
        Self { words: (0..WORDS).map(|_| CachePadded::default()).collect() }
    }

    fn of(&self, word: &TimestampWord) -> &AtomicU64 {
        &self.words[std::ptr::from_ref(word).addr() / LINE % WORDS]
    }

    /// Notes that a version is read at `commit_ts`.
    #[cold]
    pub(super) fn note(&self, word: &TimestampWord, commit_ts: u64) {
        super::absences::raise(self.of(word), commit_ts);
    }

    /// Returns a timestamp that is not before any at which the version under a lock was read.
    #[inline]
    pub(super) fn last_read(&self, word: &TimestampWord, below: Timestamps) -> u64 {
        let noted = if below.is_read_late() { self.of(word).load(Ordering::SeqCst) } else { 0 };
        below.read().max(noted)
    }
}
