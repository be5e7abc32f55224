//! The slot of a pin, in which a datatype keeps a value of its own.

use super::Pin;
use std::any::TypeId;
use std::fmt;
use std::mem::MaybeUninit;

/// Room for a value. (Pointers, because a value's pointers stay valid in them.)
type Words = [*const (); 6];

/// A value of some type.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    of: TypeId,
    words: MaybeUninit<Words>,
}

impl Kept {
    #[inline(always)]
    fn new<T: Copy + 'static>(value: T) -> Self {
        const { assert!(size_of::<T>() <= size_of::<Words>() && align_of::<T>() <= align_of::<Words>()) };
        let mut words = MaybeUninit::<Words>::uninit();
        // SAFETY: the words are the function's own, and have room for a `T`, suitably aligned.
        unsafe { words.as_mut_ptr().cast::<T>().write(value) };
        Self { of: TypeId::of::<T>(), words }
    }

    #[inline(always)]
    fn get<T: Copy + 'static>(&self) -> Option<T> {
        // SAFETY: `new` has written a value of this type, which may be copied.
        (self.of == TypeId::of::<T>()).then(|| unsafe { self.words.as_ptr().cast::<T>().read() })
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Pin {
    /// Returns the value that was kept last under this pin, if it is of this type.
    #[inline(always)]
    pub fn kept<T: Copy + 'static>(&self) -> Option<T> {
        self.kept.get().and_then(|kept| kept.get())
    }

    /// Keeps a value of at most six words until the pin is dropped or another value is kept, whatever its type; with
    /// `None`, keeps none. It is a hint for the datatype's later operations in the same attempt: any other datatype may
    /// replace it.
    #[inline(always)]
    pub fn keep<T: Copy + 'static>(&self, value: Option<T>) {
        self.kept.set(value.map(Kept::new));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pin_keeps_the_last_value_and_returns_it_by_its_type() {
        #[derive(Debug, Clone, Copy, PartialEq)]
        struct Mine(u64, u8);
        let pin = Pin::new();
        assert_eq!(pin.kept::<Mine>(), None);
        pin.keep(Some(Mine(7, 1)));
        assert_eq!((pin.kept(), pin.kept::<(u64, u8)>()), (Some(Mine(7, 1)), None));
        pin.keep(Some(3u16));
        assert_eq!((pin.kept::<Mine>(), pin.kept::<u16>()), (None, Some(3)));
        pin.keep(None::<Mine>);
        assert_eq!(pin.kept::<u16>(), None);
    }
}
