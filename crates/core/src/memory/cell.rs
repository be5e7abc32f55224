//! Cells: the storage of a segment's value.
//!
//! A reader may look at a value while another transaction installs the next one; the protocol finds out afterwards if
//! the read was stable. So a cell returns *snapshots*: raw copies that are not looked into until the protocol has found
//! them stable. No reader, aborted attempts included, ever sees half a write.
//!
//! - [`Inline`] keeps small plain data in the segment itself, as atomic words. A snapshot copies the words.
//! - [`Boxed`] keeps a pointer to an immutable value. A snapshot copies the pointer; the old value is freed
//!   through the epoch, so a reader never copies a large row and never sees a freed one.
//!
//! The value's type chooses its cell, through [`Value`] and its derive macro.

mod values;

pub use crate::memory::column_groups;
use crate::memory::column_groups::ColumnGroups;
use crate::memory::held_back::hold_back;
use crate::memory::pin::Pin;
use crate::memory::users_code::contained;
use hotrow_stored::StoredForm;
use hotrow_sync::atomic::unfollowed::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use hotrow_sync::memory;
use hotrow_sync::work::charge_block;
use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Data that may be copied word by word: no padding, no pointers, no uninitialised bytes.
///
/// # Safety
///
/// Every byte of every value of the type must be initialised (the type has no padding), and the type must hold no
/// pointers or references. Invalid bit patterns may exist (`bool`, enums): a snapshot is looked into only once it is
/// known to be one that was written whole.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, so it cannot be a part of an inline value",
    label = "not plain data",
    note = "plain data are numbers, `bool`, `char`, arrays of these, `Text<N>`, and types with `#[derive(Clone, Copy, hotrow::Value)]` and `#[value(inline)]`",
    note = "a value that holds anything else is boxed: remove `#[value(inline)]`"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// A type whose values transactional objects and tables can hold, and the cell that holds them.
///
/// Derive it: `#[derive(Clone, Value)]` keeps values boxed, `#[derive(Clone, Copy, Value)]` with
/// `#[value(inline)]` keeps them inline and requires every field to be [`Plain`] and the type to have no
/// padding (checked when compiling). Inline suits rows up to a few hundred bytes that change often; boxed
/// suits large rows that are mostly read, and everything that is not plain data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a row, or a value of an object",
    label = "not a `Value`",
    note = "for a type of your own, add `#[derive(Clone, hotrow::Value)]`"
)]
pub trait Value: Clone + Send + Sync + 'static {
    /// The cell that holds a value of this type.
    type Cell: Cell<Self>;

    /// The fields of an inline struct, in the order of declaration, as the derive macro knows them. None for other types.
    const FIELDS: &'static [ValueField] = &[];

    /// True if a value may say that there is none: that of a [part](crate::column_groups::Part) whose row is not there.
    #[doc(hidden)]
    const MAY_BE_ABSENT: bool = false;

    /// False if the value says that there is none.
    #[doc(hidden)]
    #[inline(always)]
    fn says_present(&self) -> bool {
        true
    }

    /// The form in which a durable database stores values of the type; `None` if it cannot. The derive macro finds out if the type is
    /// [`Stored`](hotrow_stored::Stored), too; by hand it is `Some(StoredForm::of())`.
    #[inline]
    fn stored() -> Option<StoredForm<Self>> {
        None
    }

    /// The approximate number of bytes on the heap that the value owns beside its own, and that are freed with it. The
    /// limit and the reports of retained memory count them ([`RetainedMemory`](crate::RetainedMemory)).
    ///
    /// The derive macro adds up the fields that are values themselves, and texts and bytes. Vectors, boxes, options and tuples count
    /// their own bytes and those of their parts. Shared values ([`Arc`](std::sync::Arc)) do not count.
    ///
    /// It is called when the value is replaced, while a segment is locked, so it must be quick. If it panics, the value
    /// counts as if it owned nothing.
    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// A field of an inline struct: see [`Value::FIELDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueField {
    /// The field's name.
    pub name: &'static str,
    /// The place of its first byte in the struct.
    pub offset: usize,
    /// The number of its bytes.
    pub bytes: usize,
}

/// As [`Value::heap_bytes`], for the content of a container, of which only the type is known.
#[inline]
fn heap_bytes_inside<T: 'static>(value: &T) -> usize {
    let value: &dyn Any = value;
    // The type is known at compile time, so the compiler chooses the branch.
    if let Some(text) = value.downcast_ref::<String>() {
        text.capacity()
    } else if let Some(bytes) = value.downcast_ref::<Vec<u8>>() {
        bytes.capacity()
    } else if let Some(text) = value.downcast_ref::<Box<str>>() {
        text.len()
    } else if let Some(bytes) = value.downcast_ref::<Box<[u8]>>() {
        bytes.len()
    } else {
        0
    }
}

/// Calls [`Value::heap_bytes`], which is users' code. A commit calls it while it installs, so a panic must be
/// contained: otherwise installed writes would be rolled back as well.
#[inline]
fn heap_bytes_of<T: Value>(value: &T) -> usize {
    contained(|| value.heap_bytes()).unwrap_or_default()
}

/// Retires a boxed value with what it owns. In a region, what that is, is asked afterwards.
///
/// # Safety
///
/// As for [`Pin::retire`].
#[inline]
unsafe fn retire_value<T: Value>(value: *mut T, pin: &Pin) {
    unsafe fn retire<T: Value>(pin: &Pin, value: *mut (), _: usize) {
        let value = value.cast::<T>();
        // SAFETY: the value is in memory until it has been retired, which only this statement does, by the caller's promise.
        unsafe { pin.retire_owning(value, heap_bytes_of(&*value)) };
    }

    // SAFETY: the caller's promise.
    unsafe {
        if !hold_back(value.cast(), 0, retire::<T>) {
            retire::<T>(pin, value.cast(), 0);
        }
    }
}

/// A field of a type that derives [`Value`]: `(&Field(&field)).heap_bytes()` is the field's own result if it is a
/// value. Otherwise its type alone tells the number, which is 0 for most. The method of the type comes before that of
/// the reference.
#[doc(hidden)]
#[derive(Debug)]
pub struct Field<'a, T>(pub &'a T);

#[doc(hidden)]
pub trait FieldIsValue {
    fn heap_bytes(&self) -> usize;
}

impl<T: Value> FieldIsValue for Field<'_, T> {
    #[inline]
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

#[doc(hidden)]
pub trait FieldIsUnknown {
    fn heap_bytes(&self) -> usize;
}

impl<T: 'static> FieldIsUnknown for &Field<'_, T> {
    #[inline]
    fn heap_bytes(&self) -> usize {
        heap_bytes_inside(self.0)
    }
}

/// A place for one value that may be read while it is being replaced.
///
/// # Safety
///
/// An implementation must be free of data races when [`load`](Cell::load) runs at the same time as
/// [`install`](Cell::install), and a snapshot taken while no install was running must be a valid value.
pub unsafe trait Cell<T>: Send + Sync + Sized + 'static {
    /// True if a copy of the present value's bytes is a pending value: see [`load_pending`](Self::load_pending).
    const COPIES: bool;

    /// True if a snapshot is a whole value even if an install ran while it was loaded: the one before or the one after.
    const NEVER_TORN: bool;

    /// The groups into which the columns of values are split in tables; `()` for none.
    type Groups: ColumnGroups<T>;
    /// A raw copy, possibly torn.
    type Snapshot;
    /// A value waiting to be installed.
    type Pending;

    /// Makes a cell that holds `value`.
    fn new(value: T) -> Self;

    /// Copies the present value.
    fn load(&self) -> Self::Snapshot;

    /// Looks into a snapshot.
    ///
    /// # Safety
    ///
    /// No install ran while the snapshot was loaded, and `pin` was pinned before.
    unsafe fn view<'a>(snapshot: &'a Self::Snapshot, pin: &'a Pin) -> &'a T;

    /// Returns the value in place.
    ///
    /// # Safety
    ///
    /// No install may run while the reference lives.
    unsafe fn in_place(&self) -> &T;

    /// The approximate number of bytes that the value takes outside of the cell.
    ///
    /// # Safety
    ///
    /// As for [`in_place`](Cell::in_place).
    #[inline]
    unsafe fn heap_bytes(&self) -> usize {
        0
    }

    /// Copies the words of the present value in which some of its bytes lie, to their places in `snapshot`.
    ///
    /// # Safety
    ///
    /// `snapshot` has room for a snapshot. The bytes lie within a `T`.
    unsafe fn load_bytes(&self, bytes: Range<usize>, snapshot: *mut Self::Snapshot);

    /// Returns the address of the value in a snapshot. What [`load_bytes`](Self::load_bytes) has not copied is not
    /// initialised there.
    ///
    /// # Safety
    ///
    /// Some bytes of the snapshot were loaded.
    unsafe fn value_in(snapshot: *const Self::Snapshot) -> *const T;

    /// Makes a value ready to be installed.
    fn pend(value: T) -> Self::Pending;

    /// Copies the present value to where a pending one will be, possibly torn. If no install ran meanwhile, it is a
    /// pending value.
    ///
    /// # Safety
    ///
    /// `pending` has room for a pending value, and [`COPIES`](Self::COPIES) is true.
    unsafe fn load_pending(&self, pending: *mut Self::Pending);

    /// Returns the pending value.
    fn pending(pending: &Self::Pending) -> &T;

    /// Returns the pending value, to be changed.
    fn pending_mut(pending: &mut Self::Pending) -> &mut T;

    /// Replaces the value. The old one is retired.
    ///
    /// # Safety
    ///
    /// No other install runs at the same time: the caller holds the segment's lock.
    unsafe fn install(&self, pending: Self::Pending, pin: &Pin);

    /// As [`install`](Self::install), where the old value belongs to a [copy](Self::share) of the cell.
    ///
    /// # Safety
    ///
    /// As for [`install`](Self::install). There is such a copy.
    #[inline]
    unsafe fn replace(&self, pending: Self::Pending, pin: &Pin) {
        // SAFETY: the caller's promise.
        unsafe { self.install(pending, pin) };
    }

    /// Returns another cell with the same value, which it shares if the cell does not [copy](Self::COPIES).
    ///
    /// # Safety
    ///
    /// Nothing is installed meanwhile. If the value is shared, only one of the two cells may drop it.
    unsafe fn share(&self) -> Self;

    /// Drops a pending value that will not be installed. Users' code (a `Drop`) does not run here but when the epoch
    /// ends, so that a panic in it cannot stop an abort half-way.
    fn discard(pending: Self::Pending, pin: &Pin);
}

/// A cell of plain data, kept as atomic words in the segment. `G`: the value's [column groups](crate::column_groups).
#[repr(C, align(8))]
pub struct Inline<T: Plain, G = ()>(UnsafeCell<MaybeUninit<T>>, PhantomData<G>);

// SAFETY: all access to the content while it is shared goes through atomic words (`load`, `install`);
// `in_place` promises that nothing is installed meanwhile. `T: Plain` is `Send + Sync`.
unsafe impl<T: Plain, G> Sync for Inline<T, G> {}
// SAFETY: it owns its content, and `T` is `Send`.
unsafe impl<T: Plain, G> Send for Inline<T, G> {}

/// A raw copy of an inline value.
#[repr(C, align(8))]
pub struct InlineSnapshot<T>(MaybeUninit<T>);

/// An inline value waiting to be installed.
#[repr(C, align(8))]
pub struct InlinePending<T>(T);

/// Copies `size` bytes from shared words to private memory: relaxed atomic loads, widest first.
///
/// # Safety
///
/// Both pointers must be aligned to 8 and valid for `size` bytes; the shared bytes must be initialised and
/// accessed by other threads only through [`copy_in`] and [`copy_out`] of the same size.
#[inline]
unsafe fn copy_out(shared: *mut u8, private: *mut u8, size: usize) {
    // Relaxed throughout: the header's version, read before (acquire) and after (acquire fence), or the lock held,
    // orders the words; see docs/memory-model.md.
    let mut at = 0;
    // SAFETY: for all four, `at` stays below `size`, and each access is aligned because the base is aligned
    // to 8 and narrower accesses follow wider ones.
    unsafe {
        while at + 8 <= size {
            let word = AtomicU64::from_ptr(shared.add(at).cast()).load(Ordering::Relaxed);
            private.add(at).cast::<u64>().write(word);
            at += 8;
        }
        if at + 4 <= size {
            let word = AtomicU32::from_ptr(shared.add(at).cast()).load(Ordering::Relaxed);
            private.add(at).cast::<u32>().write(word);
            at += 4;
        }
        if at + 2 <= size {
            let word = AtomicU16::from_ptr(shared.add(at).cast()).load(Ordering::Relaxed);
            private.add(at).cast::<u16>().write(word);
            at += 2;
        }
        if at < size {
            private.add(at).write(AtomicU8::from_ptr(shared.add(at)).load(Ordering::Relaxed));
        }
    }
}

/// Copies `size` bytes from private memory to shared words: relaxed atomic stores, widest first.
///
/// # Safety
///
/// As for [`copy_out`]; the private bytes must be initialised.
#[inline]
unsafe fn copy_in(private: *const u8, shared: *mut u8, size: usize) {
    let mut at = 0;
    // SAFETY: for all four as in `copy_out`.
    unsafe {
        while at + 8 <= size {
            AtomicU64::from_ptr(shared.add(at).cast())
                .store(private.add(at).cast::<u64>().read(), Ordering::Relaxed);
            at += 8;
        }
        if at + 4 <= size {
            AtomicU32::from_ptr(shared.add(at).cast())
                .store(private.add(at).cast::<u32>().read(), Ordering::Relaxed);
            at += 4;
        }
        if at + 2 <= size {
            AtomicU16::from_ptr(shared.add(at).cast())
                .store(private.add(at).cast::<u16>().read(), Ordering::Relaxed);
            at += 2;
        }
        if at < size {
            AtomicU8::from_ptr(shared.add(at)).store(private.add(at).read(), Ordering::Relaxed);
        }
    }
}

// SAFETY: `load` and `install` touch the shared bytes only through atomic words of the same widths, so they
// do not race; a snapshot taken without a concurrent install has exactly the bytes of the last value.
unsafe impl<T: Plain, G: ColumnGroups<T>> Cell<T> for Inline<T, G> {
    const COPIES: bool = true;
    /// A word is copied by one access.
    const NEVER_TORN: bool = matches!(size_of::<T>(), 0 | 1 | 2 | 4 | 8);

    type Groups = G;
    type Snapshot = InlineSnapshot<T>;
    type Pending = InlinePending<T>;

    #[inline]
    fn new(value: T) -> Self {
        const { assert!(align_of::<T>() <= 8, "an inline value's alignment is at most 8") };
        Self(UnsafeCell::new(MaybeUninit::new(value)), PhantomData)
    }

    #[inline]
    fn load(&self) -> InlineSnapshot<T> {
        let mut snapshot = InlineSnapshot(MaybeUninit::<T>::uninit());
        // SAFETY: both are `repr(C, align(8))` around one `T`; a `Plain` value has no uninitialised bytes;
        // shared access is by `copy_out` and `copy_in` only.
        unsafe { copy_out(self.0.get().cast(), snapshot.0.as_mut_ptr().cast(), size_of::<T>()) };
        snapshot
    }

    #[inline]
    unsafe fn view<'a>(snapshot: &'a InlineSnapshot<T>, _pin: &'a Pin) -> &'a T {
        // INVARIANT 21: Nobody looks into a value that may be torn.
        // SAFETY: the caller promises that the snapshot is not torn, so these are the bytes of a value.
        unsafe { snapshot.0.assume_init_ref() }
    }

    #[inline]
    unsafe fn in_place(&self) -> &T {
        // SAFETY: initialised by `new`; the caller promises that nothing is installed meanwhile.
        unsafe { (*self.0.get()).assume_init_ref() }
    }

    #[inline]
    unsafe fn load_bytes(&self, bytes: Range<usize>, snapshot: *mut InlineSnapshot<T>) {
        // Whole words, as they are installed: an atomic access must not meet one of another size.
        let first = bytes.start & !7;
        let past = (bytes.end.next_multiple_of(8)).min(size_of::<T>());
        // SAFETY: as in `load`; the words are aligned to 8 and end with the value or before.
        unsafe {
            copy_out(self.0.get().byte_add(first).cast(), snapshot.byte_add(first).cast(), past - first)
        };
    }

    #[inline(always)]
    unsafe fn value_in(snapshot: *const InlineSnapshot<T>) -> *const T {
        snapshot.cast()
    }

    #[inline]
    fn pend(value: T) -> InlinePending<T> {
        InlinePending(value)
    }

    #[inline]
    unsafe fn load_pending(&self, pending: *mut InlinePending<T>) {
        // SAFETY: as in `load`; the room is aligned to 8.
        unsafe { copy_out(self.0.get().cast(), pending.cast(), size_of::<T>()) };
    }

    #[inline]
    fn pending(pending: &InlinePending<T>) -> &T {
        &pending.0
    }

    #[inline]
    fn pending_mut(pending: &mut InlinePending<T>) -> &mut T {
        &mut pending.0
    }

    #[inline]
    unsafe fn install(&self, pending: InlinePending<T>, _pin: &Pin) {
        let private = std::ptr::from_ref(&pending.0);
        // SAFETY: as in `load`; the value starts at an address aligned to 8, is initialised, and has no
        // padding.
        unsafe { copy_in(private.cast(), self.0.get().cast(), size_of::<T>()) };
    }

    #[inline]
    unsafe fn share(&self) -> Self {
        Self(UnsafeCell::new(self.load().0), PhantomData)
    }

    #[inline]
    fn discard(_pending: InlinePending<T>, _pin: &Pin) {}
}

/// A cell that points to an immutable value on the heap.
pub struct Boxed<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
}

// SAFETY: `load` and `install` are one atomic access each; the pointer always points to a whole value,
// which is freed only through the epoch after it was replaced.
unsafe impl<T: Value> Cell<T> for Boxed<T> {
    const COPIES: bool = false;
    const NEVER_TORN: bool = true;

    type Groups = ();
    type Snapshot = *const T;
    type Pending = Box<T>;

    fn new(value: T) -> Self {
        Self { pointer: AtomicPtr::new(Box::into_raw(Self::pend(value))) }
    }

    #[inline]
    fn load(&self) -> *const T {
        // Acquire: pairs with the release in `install`, which publishes the value behind the pointer.
        self.pointer.load(Ordering::Acquire)
    }

    #[inline]
    unsafe fn view<'a>(snapshot: &'a *const T, _pin: &'a Pin) -> &'a T {
        // SAFETY: the pointer was current at a moment when the caller's epoch was pinned, and the value is
        // retired through the epoch.
        let value = unsafe { &**snapshot };
        memory::read(std::ptr::from_ref(value));
        value
    }

    #[inline]
    unsafe fn in_place(&self) -> &T {
        // SAFETY: the caller promises that nothing is installed, hence nothing retired, meanwhile.
        unsafe { &*self.pointer.load(Ordering::Acquire) }
    }

    unsafe fn heap_bytes(&self) -> usize {
        // SAFETY: the caller's promise.
        size_of::<T>() + heap_bytes_of(unsafe { self.in_place() })
    }

    #[inline]
    unsafe fn load_bytes(&self, _: Range<usize>, snapshot: *mut *const T) {
        // SAFETY: the caller's promise.
        unsafe { snapshot.write(Cell::<T>::load(self)) };
    }

    #[inline(always)]
    unsafe fn value_in(snapshot: *const *const T) -> *const T {
        // SAFETY: loaded, says the caller, and whatever the bytes, that was the whole pointer.
        unsafe { *snapshot }
    }

    #[inline]
    fn pend(value: T) -> Box<T> {
        charge_block(|| size_of::<T>() + heap_bytes_of(&value));
        Box::new(value)
    }

    unsafe fn load_pending(&self, _: *mut Box<T>) {
        unreachable!("a pointer's copy is not another value");
    }

    #[inline]
    fn pending(pending: &Box<T>) -> &T {
        pending
    }

    #[inline]
    fn pending_mut(pending: &mut Box<T>) -> &mut T {
        pending
    }

    unsafe fn install(&self, pending: Box<T>, pin: &Pin) {
        // Release: pairs with the acquire in `load`. The load part need not acquire: this thread only frees the old
        // value, and the holder of the segment's lock is ordered after the one that installed it.
        let old = self.pointer.swap(Box::into_raw(pending), Ordering::AcqRel);
        // SAFETY: `old` came from `Box::into_raw` and can no longer be reached by threads that pin from now on.
        unsafe { retire_value(old, pin) };
    }

    unsafe fn replace(&self, pending: Box<T>, _: &Pin) {
        // As in `install`. The old value is the copy's.
        self.pointer.store(Box::into_raw(pending), Ordering::Release);
    }

    #[inline]
    unsafe fn share(&self) -> Self {
        Self { pointer: AtomicPtr::new(self.pointer.load(Ordering::Acquire)) }
    }

    fn discard(pending: Box<T>, pin: &Pin) {
        // SAFETY: from a box, and never shared.
        unsafe { retire_value(Box::into_raw(pending), pin) };
    }
}

impl<T: Send + Sync + 'static> Drop for Boxed<T> {
    fn drop(&mut self) {
        let pointer = self.pointer.load(Ordering::Relaxed);
        if !pointer.is_null() {
            // SAFETY: the cell owns the value; `&mut self` makes sure that nothing else looks at the cell. Values
            // replaced earlier were retired by `install`.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(C)]
    struct Odd {
        wide: u32,
        half: u16,
        byte: u8,
        flag: bool,
        tail: [u8; 7],
        last: u8,
    }
    // SAFETY: 4 + 2 + 1 + 1 + 7 + 1 = 16 bytes, no padding.
    unsafe impl Plain for Odd {}

    fn round_trip<T: Plain + PartialEq + std::fmt::Debug>(first: T, second: T) {
        let pin = Pin::new();
        let cell = Inline::<T>::new(first);
        let before = cell.load();
        // SAFETY: one thread, nothing is installed meanwhile.
        unsafe {
            cell.install(Inline::<T>::pend(second), &pin);
            assert_eq!(*Inline::<T>::view(&before, &pin), first);
            assert_eq!(*Inline::<T>::view(&cell.load(), &pin), second);
            assert_eq!(*cell.in_place(), second);
        }
    }

    #[test]
    fn inline_values_of_all_widths_are_copied_whole() {
        round_trip(1u8, 255);
        round_trip([1u8; 3], [9, 8, 7]);
        round_trip([1u8; 15], [2; 15]);
        round_trip([1u16; 5], [2; 5]);
        round_trip([1u64; 40], [2; 40]);
        round_trip((), ());
        let odd = Odd { wide: 1, half: 2, byte: 3, flag: true, tail: [4; 7], last: 5 };
        round_trip(odd, Odd { flag: false, last: 9, ..odd });
    }

    #[test]
    fn values_count_the_bytes_that_they_own_on_the_heap() {
        assert_eq!(7u64.heap_bytes() + [1u8; 40].heap_bytes(), 0);
        assert_eq!(String::with_capacity(100).heap_bytes(), 100);
        assert_eq!(Vec::<u32>::with_capacity(100).heap_bytes(), 400);
        let texts = vec![String::with_capacity(100), String::with_capacity(50)];
        assert_eq!(texts.heap_bytes(), 2 * size_of::<String>() + 150);
        assert_eq!(Some(Vec::<u8>::with_capacity(9)).heap_bytes(), 9);
        assert_eq!(None::<String>.heap_bytes(), 0);
        assert_eq!((1u8, String::with_capacity(9)).heap_bytes(), 9);
        assert_eq!((1u8, vec![1u8], Box::<str>::from("abc")).heap_bytes(), 4);
        assert_eq!(Box::new([0u64; 4]).heap_bytes(), 32);
        assert_eq!(std::sync::Arc::new([0u64; 4]).heap_bytes(), 0);
    }

    #[test]
    fn a_boxed_snapshot_outlives_the_install_that_replaces_it() {
        let pin = Pin::new();
        let cell = Boxed::new(String::from("first"));
        let before = cell.load();
        // SAFETY: the epoch is pinned since before the load, and nobody else installs.
        unsafe {
            cell.install(Boxed::pend(String::from("second")), &pin);
            assert_eq!(Boxed::view(&before, &pin), "first");
            assert_eq!(Boxed::view(&cell.load(), &pin), "second");
        }
    }
}
