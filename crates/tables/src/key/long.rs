//! Images of long keys in the nodes of an ordered index.
//!
//! # Slots
//!
//! A slot has room for eight bytes of an image. Neighbours in a sorted node often have the same first bytes (URLs, numbers
//! with leading zeros). So a node knows how many leading bytes all its images *share*, and its slots hold the eight bytes
//! behind these. Slots that differ have the order of their images. Only where they do not differ is the whole image needed:
//! it is made from the key of the record, to which the leaf points anyway, or it lies beside the separator.
//!
//! An image that is looked for may lack the bytes that a node's images share; the range of a node is wider than these, and
//! grows when a neighbour is unlinked. So each search compares these bytes with one whole image: of a leaf with the one that
//! it has found, or one beside it, which the caller reads next in most cases; of an inner node with its *beginning*, a copy of
//! the first 24 of these bytes, or with the first separator if more are shared.
//!
//! # Pointers
//!
//! Whole images are reached by pointers that optimistic readers load from a node. A reader follows such a pointer only
//! after it has found the node's version unchanged since before it began to read the node, as it does with pointers to
//! children. So the pointer, and the length beside it, were the node's at that version, and what is there was in the tree at
//! a moment since the epoch was pinned. It is retired after it has left the tree, and stays in memory until the epoch is
//! unpinned. Records are retired by the table, separators by the tree.
//!
//! # Writers
//!
//! The images of records come from code of the user's, so none is made under a latch. A leaf that must share fewer bytes
//! from now on, or more of them because it is split, gets new slots. They are made before the leaf is latched at the version
//! that was read. Separators are the tree's own bytes; slots of inner nodes are made under the latch.
//!
//! # Starts
//!
//! A record holds a copy of the first bytes of a string. A short key is so read from the record, which the reader of the
//! row needs anyway, and not from the memory that the key owns, which may be anywhere.
//!
//! Wrong images (of a `Key` that breaks its contract) lead to a wrong place in a node, never out of it. They may leave the
//! tree unsorted. A scan then ends where the next border does not lead on.

use super::bytes::{Bytes, Encoded, Encoder, common};
use super::fixed::Fixed;
use super::image::{Found, Image, NodeSlots, partition_point, sealed};
use super::long_enough::LongEnough;
use super::start::KeyStart;
use hotrow_core::epoch::Guard;
use hotrow_core::retire_with;
use hotrow_sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::ptr::{NonNull, null_mut, slice_from_raw_parts_mut};

/// The most leading bytes that a node can leave out.
const SHARED_MAX: usize = u8::MAX as usize;

impl sealed::Sealed for Bytes {}

/// A separator's bytes in shared memory. The node owns them.
#[derive(Debug)]
pub struct SeparatorBytes {
    first: AtomicPtr<u8>,
    length: AtomicUsize,
}

impl Default for SeparatorBytes {
    fn default() -> Self {
        Self { first: AtomicPtr::new(null_mut()), length: AtomicUsize::new(0) }
    }
}

impl SeparatorBytes {
    // All accesses are relaxed: the version of the node orders them (`StructureVersion`).

    #[inline(always)]
    fn load(&self) -> RawBytes {
        RawBytes { first: self.first.load(Ordering::Relaxed), length: self.length.load(Ordering::Relaxed) }
    }

    fn store(&self, bytes: RawBytes) {
        self.first.store(bytes.first, Ordering::Relaxed);
        self.length.store(bytes.length, Ordering::Relaxed);
    }
}

/// The place of a separator's bytes. Address and length may not belong together until the node's version is checked.
#[derive(Debug, Clone, Copy)]
pub struct RawBytes {
    first: *mut u8,
    length: usize,
}

impl RawBytes {
    /// # Safety
    ///
    /// The bytes are in memory for `'g`, and address and length belong together.
    #[inline(always)]
    unsafe fn as_slice<'g>(self) -> &'g [u8] {
        // SAFETY: the caller's promise; separators are made from boxed slices and never change.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }

    /// # Safety
    ///
    /// No thread can reach the bytes any more.
    unsafe fn free(self) {
        // SAFETY: `separator` made it from a box of this length; the caller's promise.
        drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(self.first, self.length)) });
    }
}

/// An image's bytes in an attempt's arena.
#[derive(Debug, Clone, Copy)]
pub struct KeptBytes {
    bytes: NonNull<[u8]>,
    is_behind: bool,
}

/// New slots of a leaf, and the number of leading bytes that they leave out.
#[derive(Debug)]
pub struct NewSlots {
    shared: usize,
    words: Vec<u64>,
}

impl NewSlots {
    fn new<'n>(count: usize, shared: usize, full: impl Fn(usize) -> Option<Encoded<'n>>) -> Option<Self> {
        let words = (0..count).map(|at| full(at).map(|image| image.word(shared))).collect::<Option<_>>()?;
        Some(Self { shared, words })
    }
}

// Relaxed, as all content of a node.

#[inline(always)]
fn shared_by(node: &AtomicU8) -> usize {
    usize::from(node.load(Ordering::Relaxed))
}

fn set_shared(node: &AtomicU8, shared: usize) {
    node.store(shared as u8, Ordering::Relaxed);
}

/// The bytes that the separators of an inner node share, if they are 24 at most: the first eight, the next eight, and the last
/// eight. With them a search need not read a separator elsewhere.
#[derive(Debug, Default)]
pub struct SharedBytes([AtomicU64; 3]);

impl SharedBytes {
    // All accesses are relaxed: the version of the node orders them (`StructureVersion`).

    /// Stores the bytes that an image shares with all others of its node.
    fn store(&self, image: &[u8], shared: usize) {
        let last = shared.saturating_sub(8);
        for (word, from) in self.0.iter().zip([0, 8, last]) {
            let bytes = image.get(from..).unwrap_or_default();
            let bytes = bytes.first_chunk().copied().unwrap_or_else(|| {
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                padded
            });
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// True if an image has all `shared` bytes. False if it has not, or they are too many, or it is too short to tell.
    #[inline(always)]
    fn are_in(&self, image: LongEnough<'_>, shared: usize) -> bool {
        let has = |at: usize, from: usize| image.chunk(from) == Some(self.0[at].load(Ordering::Relaxed));
        match shared {
            // The first bytes are the lowest ones of the word.
            1..=8 => (image.first() ^ self.0[0].load(Ordering::Relaxed)) << (64 - 8 * shared) == 0,
            9..=16 => has(0, 0) && has(2, shared - 8),
            17..=24 => has(0, 0) && has(1, 8) && has(2, shared - 8),
            _ => shared == 0,
        }
    }
}

/// Finds the place of an image among the slots; see the head of the module.
#[inline]
fn find<'n>(
    NodeSlots { slots, shared, begin }: NodeSlots<'_, Bytes>,
    image: &Encoded<'_>,
    full: impl Fn(usize) -> Option<Encoded<'n>>,
) -> Option<Found> {
    if slots.is_empty() {
        return Some(Found { position: 0, is_equal: false, shared: 0 });
    }
    let shared = shared_by(shared);
    let is_inner = begin.is_some();
    let enough = LongEnough::new(image);
    // Returns the place of an image that lacks the leading bytes that all others share.
    let outside = |other: &Encoded<'_>| {
        if shared == 0 {
            return None;
        }
        let order = image.compare_start(other.bytes(), shared);
        let position = if order.is_gt() { slots.len() } else { 0 };
        order.is_ne().then(|| Found {
            position,
            is_equal: false,
            shared: common(image.bytes(), other.bytes()),
        })
    };
    if let Some(begin) = begin
        && !enough.is_some_and(|image| begin.are_in(image, shared))
        && let Some(found) = outside(&full(0)?)
    {
        return Some(found);
    }
    let word = enough.map_or_else(|| image.word(shared), |image| image.word(shared));
    let load = |slot: &AtomicU64| slot.load(Ordering::Relaxed);
    let mut low = partition_point(slots, |slot| load(slot) < word);
    let mut high = low;
    while slots.get(high).is_some_and(|slot| load(slot) == word) {
        high += 1;
    }
    if low == high
        && shared > 0
        && !is_inner
        && let Some(found) = outside(&full(low.min(slots.len() - 1))?)
    {
        return Some(found);
    }
    while low < high {
        let middle = low.midpoint(high);
        let other = full(middle)?;
        if enough.is_some_and(|image| image.is(&other)) {
            return Some(Found { position: middle, is_equal: true, shared });
        }
        match other.compare(image) {
            std::cmp::Ordering::Equal => return Some(Found { position: middle, is_equal: true, shared }),
            order => {
                if let Some(found) = outside(&other) {
                    return Some(found);
                }
                if order.is_lt() { low = middle + 1 } else { high = middle }
            }
        }
    }
    Some(Found { position: low, is_equal: false, shared })
}

/// Returns the first bytes, as many as nodes can leave out.
fn start(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(SHARED_MAX)]
}

/// Adapts the slots of an inner node to its separators: all of them, or the one that is new if the others need no change.
///
/// # Safety
///
/// As for [`Image::store_separator`].
unsafe fn adapt(
    slots: &[AtomicU64],
    rests: &[SeparatorBytes],
    node_shares: &AtomicU8,
    begin: &SharedBytes,
    new: Option<usize>,
) {
    // SAFETY: the caller sees separators that the node owns.
    let bytes = |at: usize| unsafe { rests[at].load().as_slice() };
    let store = |at: usize, shared: usize| {
        slots[at].store(Encoded::new(bytes(at)).word(shared), Ordering::Relaxed);
    };
    let Some(last) = rests.len().checked_sub(1) else { return };
    // The separators are sorted, so all have what the first and the last one share.
    let shared = common(start(bytes(0)), start(bytes(last)));
    match new {
        // The others share as much as before, so they share the same bytes.
        Some(new) if last > 0 && shared == shared_by(node_shares) => store(new, shared),
        _ => {
            set_shared(node_shares, shared);
            begin.store(bytes(0), shared);
            (0..=last).for_each(|at| store(at, shared));
        }
    }
}

impl Image for Bytes {
    type Of<'k> = Encoded<'k>;
    type With<B: Image> = Bytes;
    type After<A: Fixed> = Bytes;

    fn pair<'k, B: Image>(first: Self::Of<'k>, second: B::Of<'k>) -> <Self::With<B> as Image>::Of<'k> {
        let mut encoder = Encoder::new();
        encoder.push_image(&first);
        B::encode(&second, &mut encoder);
        encoder.finish()
    }
    fn after<'k, A: Fixed>(first: A, second: Self::Of<'k>) -> <Self::After<A> as Image>::Of<'k> {
        let mut encoder = Encoder::new();
        A::encode(&first, &mut encoder);
        encoder.push_image(&second);
        encoder.finish()
    }
    fn edge<'k, B: Image>(first: Self::Of<'k>, behind: bool) -> <Self::With<B> as Image>::Of<'k> {
        let mut encoder = Encoder::new();
        encoder.push_image(&first);
        encoder.finish().behind(behind)
    }
    fn edge_after<'k, A: Fixed>(first: A, behind: bool) -> <Self::After<A> as Image>::Of<'k> {
        let mut encoder = Encoder::new();
        A::encode(&first, &mut encoder);
        encoder.finish().behind(behind)
    }
    fn least<'k>() -> Self::Of<'k> {
        Encoded::new(&[])
    }
    fn own<'k>(image: &Self::Of<'_>) -> Self::Of<'k> {
        image.to_owned()
    }
    #[inline(always)]
    fn compare(a: &Self::Of<'_>, b: &Self::Of<'_>) -> std::cmp::Ordering {
        a.compare(b)
    }
    fn put_bytes(image: &Self::Of<'_>, bytes: &mut Vec<u8>) {
        image.put_name(bytes);
    }
    fn head(image: &Self::Of<'_>) -> u64 {
        // An image that is behind others is above all that begin with its bytes.
        let mut head = if image.is_behind() { [u8::MAX; 8] } else { [0; 8] };
        head.iter_mut().zip(image.bytes()).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(head)
    }
    fn encode(image: &Self::Of<'_>, encoder: &mut Encoder) {
        encoder.push_image(image);
    }

    const MADE_ANEW: bool = true;
    type Slot = AtomicU64;
    type Rest = SeparatorBytes;
    type Begin = SharedBytes;
    type Separator = RawBytes;
    type Kept = KeptBytes;
    type Slots = Option<NewSlots>;
    type Start = KeyStart;

    #[inline(always)]
    fn whole<'k>(_: &AtomicU64) -> Option<Self::Of<'k>> {
        None
    }
    fn copy_slot(from: &AtomicU64, to: &AtomicU64) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    fn copy_rest(from: &SeparatorBytes, to: &SeparatorBytes) {
        to.store(from.load());
    }
    fn store(image: &Self::Of<'_>, shared: &AtomicU8, slot: &AtomicU64) {
        slot.store(image.word(shared_by(shared)), Ordering::Relaxed);
    }
    fn is_surely_below(slot: &AtomicU64, image: &Self::Of<'_>) -> bool {
        slot.load(Ordering::Relaxed) < image.word(0)
    }

    #[inline]
    fn find<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Found> {
        find(node, image, full)
    }
    #[inline]
    fn lower_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize> {
        find(node, image, full).map(|found| found.position)
    }
    #[inline]
    fn upper_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize> {
        find(node, image, full).map(|found| found.position + usize::from(found.is_equal))
    }

    fn slots_to_insert<'n>(
        count: usize,
        node_shares: &AtomicU8,
        shared: usize,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Self::Slots> {
        if shared >= shared_by(node_shares) {
            return Some(None);
        }
        NewSlots::new(count, shared, full).map(Some)
    }
    fn slots_to_split<'n>(
        count: usize,
        image: &Self::Of<'_>,
        position: usize,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Self::Slots> {
        // All images have what the least and the greatest one share.
        let with_least = if position == 0 { None } else { Some(full(0)?) };
        let with_greatest = if position == count { None } else { Some(full(count - 1)?) };
        let least = with_least.as_ref().map_or(image.bytes(), Encoded::bytes);
        let greatest = with_greatest.as_ref().map_or(image.bytes(), Encoded::bytes);
        NewSlots::new(count, common(start(least), start(greatest)), full).map(Some)
    }
    fn set_slots(slots: Self::Slots, to: &[AtomicU64], node_shares: &AtomicU8) {
        if let Some(NewSlots { shared, words }) = slots {
            set_shared(node_shares, shared);
            to.iter().zip(words).for_each(|(slot, word)| slot.store(word, Ordering::Relaxed));
        }
    }

    /// Returns the shortest image of those between the two.
    fn between<'k>(left: &Self::Of<'_>, right: &Self::Of<'_>) -> Self::Of<'k> {
        let (left, right) = (left.bytes(), right.bytes());
        Encoded::copied(&right[..right.len().min(common(left, right) + 1)])
    }
    fn separator(image: &Self::Of<'_>) -> RawBytes {
        let bytes = Box::<[u8]>::from(image.bytes());
        let length = bytes.len();
        RawBytes { first: Box::into_raw(bytes).cast(), length }
    }
    #[inline(always)]
    fn load_separator(_: &AtomicU64, rest: &SeparatorBytes) -> RawBytes {
        rest.load()
    }
    unsafe fn store_separator(
        separator: RawBytes,
        at: usize,
        slots: &[AtomicU64],
        rests: &[SeparatorBytes],
        node_shares: &AtomicU8,
        begin: &SharedBytes,
    ) {
        rests[at].store(separator);
        // SAFETY: the caller's promise.
        unsafe { adapt(slots, rests, node_shares, begin, Some(at)) };
    }
    unsafe fn adapt_slots(
        slots: &[AtomicU64],
        rests: &[SeparatorBytes],
        node_shares: &AtomicU8,
        begin: &SharedBytes,
    ) {
        // SAFETY: the caller's promise.
        unsafe { adapt(slots, rests, node_shares, begin, None) };
    }
    #[inline(always)]
    unsafe fn image_of<'g>(separator: RawBytes) -> Self::Of<'g> {
        // SAFETY: the caller's promise.
        Encoded::new(unsafe { separator.as_slice() })
    }
    unsafe fn retire_separator(separator: RawBytes, guard: &Guard) {
        // SAFETY: the caller's promise. The bytes are freed once, after all who can read them have unpinned.
        unsafe { retire_with(guard, separator.length, move || separator.free()) };
    }
    unsafe fn free_separator(separator: RawBytes) {
        // SAFETY: the caller's promise.
        unsafe { separator.free() };
    }

    #[inline]
    fn keep(image: &Self::Of<'_>, copy: &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> KeptBytes {
        KeptBytes { bytes: copy(image.bytes()), is_behind: image.is_behind() }
    }
    #[inline]
    unsafe fn kept<'k>(kept: KeptBytes) -> Self::Of<'k> {
        // SAFETY: the caller's promise.
        Encoded::bound(unsafe { kept.bytes.as_ref() }, kept.is_behind)
    }
}
