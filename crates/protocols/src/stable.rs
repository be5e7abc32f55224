//! The reader's half of a sequence lock: a look that counts only if no writer came in between.
//!
//! The writer's half is each word's own: it marks the word, then a release fence, then it stores the value, and
//! publishes with a release store of another version.

use hotrow_core::Reason;
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::spin::Spin;

/// Runs `load`, within bounds, until its result is one that no writer touched meanwhile. `before` looks at the word,
/// with acquire at least: `None` while a writer has it. `after` looks again, relaxed, and gives the version that was
/// read: `None` if a writer came.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn stable<W, M, V>(
    before: impl Fn() -> Option<W>,
    mut load: impl FnMut() -> V,
    after: impl Fn(W) -> Option<M>,
) -> Result<(M, V), Reason> {
    let mut spin = Spin::new();
    let mut seen = Reason::ReadLocked;
    loop {
        if let Some(word) = before() {
            let value = load();
            // Pairs with the writer's release fence.
            fence(Ordering::Acquire);
            if let Some(version) = after(word) {
                return Ok((version, value));
            }
            seen = Reason::ReadChanged;
        }
        if !spin.turn() {
            return Err(seen);
        }
    }
}
