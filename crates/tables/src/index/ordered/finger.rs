//! The finger of an insertion: its place in the tree, from which the next insertion may start.

use hotrow_core::Observed;
use std::ptr::NonNull;

/// The place of an insertion in a tree. The next key may come right behind it, so that no new descent from the root is
/// needed (a finger search). The nodes' versions tell if they have changed since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finger {
    /// The tree.
    pub(super) tree: NonNull<()>,
    /// The leaf, as it was after the insertion.
    pub(super) leaf: Observed,
    /// The node above it, as it was on the way down.
    pub(super) parent: Observed,
    /// The position of the leaf among that node's children.
    pub(super) child: u32,
    /// The position in the leaf behind the inserted key.
    pub(super) position: u32,
}
