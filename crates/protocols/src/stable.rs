//! The reader's half of a sequence lock: a read counts only if no writer came in between.
//!
//! Each word has its own writer's half: the writer marks the word, executes a release fence, stores the value, and
//! publishes another version with a release store.

use hotrow_core::{Before, Reason};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::spin::Spin;

/// A word beside a value by which a reader tells if a writer came in between.
pub(crate) trait StableWord {
    /// Tells one state of the value from another.
    type Version: Copy + PartialEq;

    /// Loads the word, with acquire at least; `None` while a writer has it.
    fn version_before(&self) -> Option<Self::Version>;

    /// Loads the word again, relaxed; returns the version that was read, or `None` if a writer came.
    fn version_after(&self, before: Self::Version) -> Option<Self::Version>;

    /// Keeps a version from the first half of a look for the second.
    fn note(version: Self::Version) -> Before;

    /// Returns the version of a note.
    fn noted(before: Before) -> Self::Version;

    /// Runs `load`, within bounds, until no writer touched its result meanwhile.
    fn stable<V>(&self, mut load: impl FnMut() -> V) -> Result<(Self::Version, V), Reason>
    where
        Self: Sized,
    {
        let mut spin = Spin::new();
        loop {
            let read = before(self).and_then(|before| {
                let value = load();
                after(self, before).map(|version| (version, value))
            });
            if read.is_ok() || !spin.turn() {
                return read;
            }
        }
    }
}

/// The first half of a stable read.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn before<W: StableWord>(word: &W) -> Result<Before, Reason> {
    word.version_before().map(W::note).ok_or(Reason::ReadLocked)
}

/// The second half, after the value was loaded: returns the version that was read.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn after<W: StableWord>(word: &W, before: Before) -> Result<W::Version, Reason> {
    // Pairs with the writer's release fence.
    fence(Ordering::Acquire);
    word.version_after(W::noted(before)).ok_or(Reason::ReadChanged)
}

/// The first half of a stable read that waits, within bounds, while a writer has the word.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn wait_before<W: StableWord>(word: &W) -> Result<Before, Reason> {
    before(word).or_else(|_| wait_longer(word))
}

#[cold]
#[inline(never)]
fn wait_longer<W: StableWord>(word: &W) -> Result<Before, Reason> {
    let mut spin = Spin::new();
    while spin.turn() {
        if let Ok(before) = before(word) {
            return Ok(before);
        }
    }
    Err(Reason::ReadLocked)
}

#[cfg(all(test, loom))]
pub(crate) mod models {
    //! The model that every word with a stable read must pass.

    use super::*;
    use hotrow_sync::Arc;
    use hotrow_sync::atomic::AtomicU64;
    use hotrow_sync::model::{Model, Part};
    use hotrow_sync::thread::spawn;

    /// A segment of two words, relaxed like those of an inline cell.
    type Words = [AtomicU64; 2];

    /// Checks, beside one writer, that a stable read is whole and is the value of its version. `write` marks the
    /// word, calls its argument, which stores 1 in both words of the value, and publishes them as version 1. `read`
    /// returns the version as a number.
    pub(crate) fn stable_reads_are_whole<W: Default + Send + Sync + 'static>(
        write: impl Fn(&W, &dyn Fn()) + Copy + Send + Sync + 'static,
        read: impl Fn(&W, &dyn Fn() -> [u64; 2]) -> Result<(u64, [u64; 2]), Reason> + Send + Sync + 'static,
    ) {
        Model::new()
            .needs(Part::LOADS)
            .needs(Part::STORES)
            .needs(Part::ACQUIRE_FENCES)
            .needs(Part::RELEASE_FENCES)
            .check(move || {
                let segment = Arc::new((W::default(), Words::default()));
                let writer = segment.clone();
                let writer = spawn(move || {
                    let (word, value) = &*writer;
                    write(word, &|| value.iter().for_each(|word| word.store(1, Ordering::Relaxed)));
                });
                let (word, value) = &*segment;
                let load = || value.each_ref().map(|word| word.load(Ordering::Relaxed));
                if let Ok((version, value)) = read(word, &load) {
                    assert_eq!(value, [version; 2]);
                }
                writer.join().unwrap();
            });
    }
}
