//! The reader's half of a sequence lock: a read counts only if no writer came in between.
//!
//! Each word has its own writer's half: the writer marks the word, executes a release fence, stores the value, and
//! publishes another version with a release store.

use hotrow_core::Reason;
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::spin::Spin;

/// Runs `load`, within bounds, until no writer touched its result meanwhile. `before` loads the word, with acquire
/// at least, and returns `None` while a writer has it. `after` loads it again, relaxed, and returns the version that
/// was read, or `None` if a writer came.
#[inline]
pub(crate) fn stable<W, M, V>(
    before: impl Fn() -> Option<W>,
    mut load: impl FnMut() -> V,
    after: impl Fn(W) -> Option<M>,
) -> Result<(M, V), Reason> {
    match once(&before, &mut load, &after) {
        Ok(read) => Ok(read),
        // Taken apart and put together, so that the first result need not be in memory, where the call leaves the other.
        Err(seen) => match again(seen, before, load, after) {
            Ok((version, value)) => Ok((version, value)),
            Err(reason) => Err(reason),
        },
    }
}

#[inline]
fn once<W, M, V>(
    before: &impl Fn() -> Option<W>,
    load: &mut impl FnMut() -> V,
    after: &impl Fn(W) -> Option<M>,
) -> Result<(M, V), Reason> {
    let word = before().ok_or(Reason::ReadLocked)?;
    let value = load();
    // Pairs with the writer's release fence.
    fence(Ordering::Acquire);
    after(word).map(|version| (version, value)).ok_or(Reason::ReadChanged)
}

/// Out of line, so that a read that no writer meets keeps nothing for a second one. For the same reason it takes its
/// arguments by value.
#[cold]
#[inline(never)]
fn again<W, M, V>(
    mut seen: Reason,
    before: impl Fn() -> Option<W>,
    mut load: impl FnMut() -> V,
    after: impl Fn(W) -> Option<M>,
) -> Result<(M, V), Reason> {
    let mut spin = Spin::new();
    while spin.turn() {
        match once(&before, &mut load, &after) {
            Ok(read) => return Ok(read),
            Err(reason) => seen = reason,
        }
    }
    Err(seen)
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
