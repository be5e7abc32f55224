//! Functions that depend on the protocol alone, compiled here once, and not in each program: see [`hotrow_core::functions_of`].

use crate::opening::DurableBuilder;
use crate::state::Durable;
use crate::table::log_rows;
use hotrow_core::Protocol;
use hotrow_protocols::{Any, Occ};
use hotrow_tables::{Database, DatabaseBuilder};

/// Is not called: what it names is compiled.
#[inline(never)]
pub fn functions() -> impl Sized {
    (functions_of::<Occ>(), functions_of::<Any>())
}

fn functions_of<P: Protocol>() -> impl Sized {
    [
        <DatabaseBuilder<P> as DurableBuilder<P>>::open_in as *const (),
        drop::<Database<P>> as *const (),
        Durable::<P>::register as *const (),
        Durable::<P>::enter as *const (),
        Durable::<P>::claim as *const (),
        Durable::<P>::forget as *const (),
        log_rows::<P> as *const (),
    ]
}
