//! What depends on the protocol alone, compiled here once, and not in each program.

use crate::none::Uncontrolled;
use crate::{Any, Occ};
use hotrow_core::functions_of;

/// Is not called: what it names is compiled.
#[inline(never)]
pub fn functions() -> [[*const (); 7]; 3] {
    [functions_of::<Occ>(), functions_of::<Any>(), functions_of::<Uncontrolled>()]
}
