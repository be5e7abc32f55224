//! Durable objects: boxes, arrays and counters, by name. Each is logged like a table, with a row for each value, under its number.

use crate::error::CheckpointError;
use crate::rows::{CHUNK_BYTES, PutRows, Sink};
use crate::shape::Shape;
use crate::state::{self, Durable, Earlier, Found, RecoveredRows, Way};
use crate::table::fits;
use hotrow_core::{
    Abort, Engine, LogSegment, Misuse, Protocol, Snapshot, SnapshotReader, Transaction, Value,
};
use hotrow_log::entry;
use hotrow_objects::{TArray, TBox, TCounter};
use hotrow_stored::{Stored, StoredForm};
use hotrow_sync::{Arc, lock};
use hotrow_tables::inside::{self, Codec};
use hotrow_tables::{Database, TableMisuse};

/// The bytes of an object's values, under their indexes.
fn codec<T: Value + Stored>() -> Codec<u64, T> {
    Codec::new(StoredForm::of(), StoredForm::of())
}

/// The number of values that one transaction of a checkpoint reads.
const BATCH: usize = 512;

/// An object of one or several values, which has a name in its database.
pub(crate) trait Named<P: Protocol>: Send + Sync + Sized + 'static {
    type Value: Value + Stored;

    /// The kind of the object, as the log's catalogue has it.
    const KIND: &'static str;

    fn make(engine: &Engine<P>, name: &str, values: Vec<Self::Value>, log: LogSegment<Self::Value>) -> Self;

    fn len(&self) -> usize {
        1
    }

    fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<Self::Value, Abort>;
}

impl<T: Value + Stored, P: Protocol> Named<P> for TBox<T, P> {
    type Value = T;
    const KIND: &'static str = "box";

    fn make(engine: &Engine<P>, name: &str, mut values: Vec<T>, log: LogSegment<T>) -> Self {
        Self::named(engine, name, values.pop().expect("a box has a value")).logged(log)
    }

    fn get(&self, tx: &mut Transaction<'_, P>, _: usize) -> Result<T, Abort> {
        self.get(tx)
    }
}

impl<P: Protocol> Named<P> for TCounter<P> {
    type Value = i64;
    const KIND: &'static str = "counter";

    fn make(engine: &Engine<P>, name: &str, values: Vec<i64>, log: LogSegment<i64>) -> Self {
        Self::named(engine, name, values[0]).logged(log)
    }

    fn get(&self, tx: &mut Transaction<'_, P>, _: usize) -> Result<i64, Abort> {
        self.get(tx)
    }
}

impl<T: Value + Stored, P: Protocol> Named<P> for TArray<T, P> {
    type Value = T;
    const KIND: &'static str = "array";

    fn make(engine: &Engine<P>, name: &str, values: Vec<T>, log: LogSegment<T>) -> Self {
        let mut values = values.into_iter();
        Self::named(engine, name, values.len(), |_| values.next().expect("one for each element")).logged(log)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<T, Abort> {
        self.get(tx, index)
    }
}

/// The object of a name.
pub(crate) fn find_or_make<P: Protocol, O: Named<P>>(
    database: &Database<P>,
    name: &str,
    values: Vec<O::Value>,
) -> Result<Arc<O>, Misuse> {
    let length = values.len();
    let durable = state::of(database).ok_or_else(|| TableMisuse::NoDirectory { name: name.to_owned() })?;
    // An object that two threads make at once is made once.
    let _one_at_a_time = lock(&durable.objects);
    let object: Arc<O> = inside::find_or_make(database, name, || with_log(durable, name, values))?;
    if object.len() == length { Ok(object) } else { Err(other_length(name, object.len(), length)) }
}

/// Makes an object from what was recovered of it, and logs what is new.
fn with_log<P: Protocol, O: Named<P>>(
    durable: &Durable<P>,
    name: &str,
    mut values: Vec<O::Value>,
) -> Result<Arc<O>, Misuse> {
    let codec = codec::<O::Value>();
    let registered = durable.register(name, Shape::of(O::KIND, codec.schemas()), &[])?;
    let (structure, is_rewritten) = (registered.structure, registered.is_rewritten());
    let malformed = |reason| TableMisuse::Malformed { table: name.to_owned(), reason };
    let recovered = registered.recovered.as_deref();
    let before = recovered.map_or(Ok(Vec::new()), |rows| values_of(rows, codec, &registered.found));
    let before = before.map_err(malformed)?;
    let known = before.len();
    if known > values.len() {
        return Err(other_length(name, known, values.len()));
    }
    values.splice(..known, before);
    let put = move |index: usize, value: &O::Value, entries: &mut Vec<u8>| {
        let key = |bytes: &mut Vec<u8>| codec.put_key(&(index as u64), bytes);
        entry::put(entries, structure, key, |bytes| codec.put_row(value, bytes))?;
        fits(entries)
    };
    let written = if is_rewritten { 0 } else { known };
    let mut new = Vec::new();
    put_in_parts(values.iter().enumerate().skip(written), &put, Misuse::Unsupported, &mut |part| {
        new.push(std::mem::take(part));
        Ok(())
    })?;
    let object = Arc::new(O::make(&durable.engine, name, values, Box::new(put)));
    let values = ValuesOf { name: name.to_owned(), object: object.clone(), put: Box::new(put) };
    let mut commits = durable.engine.outside_commits().expect("the engine has a log");
    durable.publish(name, &registered, Arc::new(values), is_rewritten, || {
        let logged = new.iter().try_for_each(|record| commits.commit(record));
        let logged = logged.and_then(|()| if is_rewritten { durable.flush() } else { Ok(()) });
        logged.map_err(|failure| Misuse::Unsupported(failure.to_string()))
    })?;
    Ok(object)
}

/// Writes values as entries, and hands these over in parts, each short enough for a record of the log. `hand_over` empties the part.
fn put_in_parts<'v, T: 'v, E>(
    values: impl Iterator<Item = (usize, &'v T)>,
    put: &dyn Fn(usize, &T, &mut Vec<u8>) -> Result<(), String>,
    error: impl Fn(String) -> E,
    hand_over: &mut dyn FnMut(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut part, mut one) = (Vec::new(), Vec::new());
    for (index, value) in values {
        put(index, value, &mut one).map_err(&error)?;
        if !part.is_empty() && part.len() + one.len() > CHUNK_BYTES {
            hand_over(&mut part)?;
        }
        part.append(&mut one);
    }
    if part.is_empty() { Ok(()) } else { hand_over(&mut part) }
}

/// The values that were recovered of an object, in order.
fn values_of<T: Value>(rows: &RecoveredRows, codec: Codec<u64, T>, found: &Found) -> Result<Vec<T>, String> {
    if let Some(fault) = rows.fault() {
        return Err(fault.clone());
    }
    let mut values = Vec::new();
    rows.for_each(|key, value| {
        let read = |key: &[u8], value: &[u8]| codec.get(key, value);
        values.push(match found {
            Found::Earlier(Earlier { way: Way::Conversion(conversion), .. }) => {
                conversion.convert(key, value, read)?
            }
            _ => read(key, value)?,
        });
        Ok::<_, String>(())
    })?;
    values.sort_unstable_by_key(|(index, _)| *index);
    let is_whole = values.iter().enumerate().all(|(at, (index, _))| at as u64 == *index);
    let values = values.into_iter().map(|(_, value)| value).collect();
    if is_whole { Ok(values) } else { Err(String::from("some of its values are missing")) }
}

fn other_length(name: &str, made: usize, wanted: usize) -> Misuse {
    let elements = |count| format!("{count} elements");
    TableMisuse::OtherTypes { name: name.to_owned(), made_as: elements(made), wanted: elements(wanted) }
        .into()
}

/// The values of an object, for checkpoints.
struct ValuesOf<P: Protocol, O: Named<P>> {
    name: String,
    object: Arc<O>,
    put: LogSegment<O::Value>,
}

impl<P: Protocol, O: Named<P>> PutRows<P> for ValuesOf<P, O> {
    fn put_rows(
        &self,
        reader: &mut SnapshotReader<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let length = self.object.len();
        (0..length).step_by(BATCH).try_for_each(|from| {
            let some = from..(from + BATCH).min(length);
            let values = reader.transact_on(snapshot, |tx| {
                some.clone().map(|index| self.object.get(tx, index)).collect::<Result<Vec<_>, Abort>>()
            })?;
            let error = |reason| CheckpointError::Row { table: self.name.clone(), reason };
            put_in_parts(some.zip(&values), &self.put, error, sink)
        })
    }
}
