//! Durable sequences. The log has one row of each: the number below which all are reserved.

use super::checkpoint::{PutRows, Sink, put_raw};
use super::error::CheckpointError;
use super::state::{Durable, RecoveredRows};
use crate::catalog::Part;
use crate::database::Database;
use hotrow_core::{Misuse, Protocol, Snapshot, Worker};
use hotrow_objects::Sequence;
use hotrow_sync::{Arc, lock};

/// The kind of the object, as the log's catalogue has it.
const KIND: &str = "sequence";

impl<P: Protocol> Database<P> {
    /// Returns the sequence of this name, as [`durable_box`](Self::durable_box) does: the first number of a new one is `first`. One that was
    /// recovered goes on behind all numbers that a transaction which survives has drawn. Numbers are reserved in blocks, without waiting
    /// for the device: each opening leaves a gap of 1,536 numbers at most.
    ///
    /// # Errors
    ///
    /// As [`durable_box`](Self::durable_box).
    pub fn durable_sequence(&self, name: &str, first: u64) -> Result<Arc<Sequence>, Misuse> {
        let durable = self.durable();
        let _one_at_a_time = durable.map(|durable| lock(&durable.objects));
        match self.catalog().find::<Arc<Sequence>>(name) {
            Err(Misuse::NoSuchName { .. }) => {}
            found => return found.cloned(),
        }
        let sequence = match durable {
            None => Arc::new(Sequence::starting_at(self, name, first)),
            Some(durable) => self.sequence_with_log(durable, name, first)?,
        };
        match self.catalog().add(vec![Part::new(name, sequence.clone())]) {
            Ok(_) => Ok(sequence),
            // Without a log, another thread was faster.
            Err(Misuse::NameTaken { .. }) => self.catalog().find::<Arc<Sequence>>(name).cloned(),
            Err(other) => Err(other),
        }
    }

    fn sequence_with_log(
        &self,
        durable: &Durable<P>,
        name: &str,
        first: u64,
    ) -> Result<Arc<Sequence>, Misuse> {
        let (structure, recovered) = durable.register(name, String::from(KIND))?;
        let reserved = recovered.as_deref().map_or(Ok(None), reserved_in);
        let reserved = reserved.map_err(|reason| Misuse::Malformed { table: name.to_owned(), reason })?;
        let mut commits = self.outside_commits().expect("the engine has a log");
        let reserve = move |limit: u64| {
            let mut entries = Vec::new();
            put_raw(&mut entries, structure, &[], &limit.to_le_bytes());
            commits.append(&entries);
        };
        let first = reserved.unwrap_or(first);
        let sequence = Arc::new(Sequence::reserving(self, name, first, Box::new(reserve)));
        durable.claim(structure, Arc::new(Reserved { structure, sequence: sequence.clone() }));
        Ok(sequence)
    }
}

/// The number below which all are reserved, as it was recovered.
fn reserved_in(rows: &RecoveredRows) -> Result<Option<u64>, String> {
    let mut reserved = None;
    rows.for_each(|_, row| {
        let limit = row.try_into().map_err(|_| format!("a number has {} bytes", row.len()))?;
        reserved = Some(u64::from_le_bytes(limit));
        Ok::<_, String>(())
    })?;
    Ok(reserved)
}

/// The row of a sequence, for checkpoints.
struct Reserved {
    structure: u32,
    sequence: Arc<Sequence>,
}

impl<P: Protocol> PutRows<P> for Reserved {
    /// Writes the present number, which may be larger than that at the snapshot: what was reserved since is in the log besides.
    fn put_rows(&self, _: &mut Worker<P>, _: &Snapshot<P>, sink: Sink<'_>) -> Result<(), CheckpointError> {
        let mut entries = Vec::new();
        put_raw(&mut entries, self.structure, &[], &self.sequence.reserved().to_le_bytes());
        sink(&mut entries)
    }
}
