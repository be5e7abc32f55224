//! Atomic words and fences.

use hotrow_sim::{AccessKind, access, access_to_change};
use std::fmt;
pub use std::sync::atomic::Ordering;

/// The operations that all words have.
macro_rules! word {
    ($name:ident, $value:ty $(, $parameter:ident)?) => {
        impl$(<$parameter>)? $name$(<$parameter>)? {
            /// A new word.
            pub const fn new(value: $value) -> Self {
                Self(std::sync::atomic::$name::new(value))
            }

            #[inline]
            fn step(&self, kind: AccessKind) {
                if kind == AccessKind::Load {
                    return access(std::ptr::from_ref(self).addr(), size_of::<Self>(), kind);
                }
                // SAFETY: whoever changes a word inside a region keeps it in memory until the region ends (`crate::region`), and
                // the word's content may be changed through a shared reference.
                unsafe { access_to_change(self.0.as_ptr().cast(), size_of::<Self>(), kind) };
            }

            /// Loads the value.
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                self.step(AccessKind::Load);
                self.0.load(order)
            }

            /// Stores a value.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                self.step(AccessKind::Store);
                self.0.store(value, order);
            }

            /// Stores a value and returns the previous one.
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.step(AccessKind::ReadModifyWrite);
                self.0.swap(value, order)
            }

            /// Stores `new` if the value is `current`.
            ///
            /// # Errors
            ///
            /// The current value, if it is not `current`.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.step(AccessKind::ReadModifyWrite);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// As [`compare_exchange`](Self::compare_exchange); here it never fails spuriously.
            ///
            /// # Errors
            ///
            /// The current value, if it is not `current`.
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Consumes the word and returns its value.
            #[inline]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// The word at an address.
            ///
            /// # Safety
            ///
            /// As for the standard library's function of this name.
            #[inline]
            pub unsafe fn from_ptr<'a>(pointer: *mut $value) -> &'a Self {
                // SAFETY: this function's contract; the type is transparent over the standard library's, which has
                // the value's layout.
                unsafe { &*pointer.cast::<Self>() }
            }
        }

        impl$(<$parameter>)? fmt::Debug for $name$(<$parameter>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl$(<$parameter>)? Default for $name$(<$parameter>)? {
            fn default() -> Self {
                Self(std::sync::atomic::$name::default())
            }
        }
    };
}

/// The additional operations of words that hold numbers.
macro_rules! number {
    ($name:ident, $value:ty: $($operation:ident),*) => {
        /// A word of the simulation.
        #[repr(transparent)]
        pub struct $name(std::sync::atomic::$name);

        word!($name, $value);

        impl $name {
            $(
                /// Changes the value and returns the previous one.
                #[inline]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    self.step(AccessKind::ReadModifyWrite);
                    self.0.$operation(value, order)
                }
            )*
        }
    };
}

number!(AtomicU8, u8: fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max);
number!(AtomicU16, u16: fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max);
number!(AtomicU32, u32: fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max);
number!(AtomicU64, u64: fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max);
number!(AtomicUsize, usize: fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max);
number!(AtomicBool, bool: fetch_and, fetch_or);

/// A pointer of the simulation.
#[repr(transparent)]
pub struct AtomicPtr<T>(std::sync::atomic::AtomicPtr<T>);

word!(AtomicPtr, *mut T, T);

/// A fence. All simulated accesses are sequentially consistent anyway, so a full fence only has a cost.
#[inline]
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        hotrow_sim::fence();
    }
    std::sync::atomic::fence(order);
}
