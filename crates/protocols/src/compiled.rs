//! Functions that depend on the protocol alone, compiled here once, and not in each program: see [`functions_of`].

use crate::none::Uncontrolled;
use crate::{Any, Occ};
use hotrow_core::functions_of;

/// Is not called: what it names is compiled.
#[inline(never)]
pub fn functions() -> impl Sized {
    (functions_of::<Occ>(), functions_of::<Any>(), functions_of::<Uncontrolled>())
}
