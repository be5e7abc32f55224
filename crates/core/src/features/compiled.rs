//! Functions of a transaction's path that depend on the protocol alone.
//!
//! A program compiles for its own types what depends on them: bodies, tables. These functions need not be compiled again: a generic function
//! that is never inlined (`#[inline(never)]`) is taken from the crate of the protocols, if that crate has compiled it for the same protocol, and
//! what it calls is not compiled either. [`functions_of`] names them, so that the crate of the protocols does.

use crate::features::snapshot::{Snapshot, SnapshotReader};
use crate::kernel::abort::{Abort, Error};
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::Engine;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;

/// Returns functions that call all others.
pub fn functions_of<P: Protocol>() -> impl Sized {
    [
        run::<P> as *const (),
        read::<P> as *const (),
        Attempt::<P>::load_again_by as *const (),
        Attempt::<P>::load_logged_again_by as *const (),
        ObjectAccess::<P>::read_noted_by as *const (),
        ObjectAccess::<P>::read_otherwise_by as *const (),
        ObjectAccess::<P>::lock_range as *const (),
        ObjectAccess::<P>::settle_now as *const (),
        ObjectAccess::<P>::watch_insertion as *const (),
    ]
}

type Body<'b, P> = &'b mut dyn FnMut(&mut Transaction<'_, P>) -> Result<(), Abort>;

/// From the worker's registration to the engine's end.
fn run<P: Protocol>(engine: Engine<P>, profile: Profile, body: Body<'_, P>) -> Result<(), Error> {
    engine.try_transact_as(profile, body)
}

/// On a snapshot.
fn read<P: Protocol>(
    mut reader: SnapshotReader<P>,
    on: &Snapshot<P>,
    body: Body<'_, P>,
) -> Result<(), Error> {
    reader.transact_on(on, body)
}
