//! Durable sequences. The log has one row of each: the number below which all are reserved.

use crate::error::CheckpointError;
use crate::rows::{PutRows, Sink};
use crate::shape::Shape;
use crate::state::{self, Durable, RecoveredRows};
use hotrow_core::{Misuse, Protocol, Snapshot, SnapshotReader};
use hotrow_log::entry;
use hotrow_objects::Sequence;
use hotrow_stored::StoredForm;
use hotrow_sync::{Arc, lock};
use hotrow_tables::inside::{self, Codec};
use hotrow_tables::{Database, TableMisuse};

/// The kind of the object, as the log's catalogue has it.
pub(crate) const KIND: &str = "sequence";

/// The key of the only row.
pub(crate) const KEY: u64 = 0;

/// The sequence of a name.
pub(crate) fn find_or_make<P: Protocol>(
    database: &Database<P>,
    name: &str,
    first: u64,
) -> Result<Arc<Sequence>, Misuse> {
    let durable = state::of(database).ok_or_else(|| TableMisuse::NoDirectory { name: name.to_owned() })?;
    let _one_at_a_time = lock(&durable.objects);
    inside::find_or_make(database, name, || with_log(durable, name, first))
}

fn with_log<P: Protocol>(durable: &Durable<P>, name: &str, first: u64) -> Result<Arc<Sequence>, Misuse> {
    let codec: Codec<u64, u64> = Codec::new(StoredForm::of(), StoredForm::of());
    let registered = durable.register(name, Shape::of(KIND, codec.schemas()), &[])?;
    let structure = registered.structure;
    let reserved = registered.recovered.as_deref().map_or(Ok(None), |rows| reserved_in(rows, codec));
    let reserved = reserved.map_err(|reason| TableMisuse::Malformed { table: name.to_owned(), reason })?;
    let mut commits = durable.engine.outside_commits().expect("the engine has a log");
    let reserve = move |limit: u64| {
        let mut entries = Vec::new();
        put(&mut entries, structure, codec, limit);
        commits.append(&entries);
    };
    let first = reserved.unwrap_or(first);
    let sequence = Arc::new(Sequence::reserving(&durable.engine, name, first, Box::new(reserve)));
    let row = Arc::new(Reserved { structure, codec, sequence: sequence.clone() });
    durable.publish(name, &registered, row, false, || Ok::<_, Misuse>(()))?;
    Ok(sequence)
}

/// Appends the row of a sequence.
fn put(entries: &mut Vec<u8>, structure: u32, codec: Codec<u64, u64>, limit: u64) {
    let row = |bytes: &mut Vec<u8>| codec.put_row(&limit, bytes);
    entry::put(entries, structure, |bytes| codec.put_key(&KEY, bytes), row).expect("numbers can be written");
}

/// The number below which all are reserved, as it was recovered.
fn reserved_in(rows: &RecoveredRows, codec: Codec<u64, u64>) -> Result<Option<u64>, String> {
    let mut reserved = None;
    rows.for_each(|_, row| {
        reserved = Some(codec.get_row(row)?);
        Ok::<_, String>(())
    })?;
    Ok(reserved)
}

/// The row of a sequence, for checkpoints.
struct Reserved {
    structure: u32,
    codec: Codec<u64, u64>,
    sequence: Arc<Sequence>,
}

impl<P: Protocol> PutRows<P> for Reserved {
    /// Writes the present number, which may be larger than that at the snapshot: what was reserved since is in the log besides.
    fn put_rows(
        &self,
        _: &mut SnapshotReader<P>,
        _: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let mut entries = Vec::new();
        put(&mut entries, self.structure, self.codec, self.sequence.reserved());
        sink(&mut entries)
    }
}
