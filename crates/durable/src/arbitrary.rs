//! Recovery of logs with arbitrary rows, behind good checksums: rows or an error, and never a panic, a hang or unbounded memory.

use crate::error::OpenError;
use crate::storage::Faulty;
use crate::{DurableBuilder, DurableDatabase};
use hotrow_core::{Misuse, Value};
use hotrow_log::{Epochs, Log, Options, Stamp, entry};
use hotrow_protocols::Occ;
use hotrow_stored::{Stored, StoredForm};
use hotrow_sync::Arc;
use hotrow_sync::random::Random;
use hotrow_tables::{Database, TableMisuse};
use std::convert::Infallible;

#[derive(Debug, Clone, PartialEq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
struct Words {
    words: Vec<String>,
    number: Option<(u64, char)>,
}

impl Value for Words {
    type Cell = hotrow_core::cell::Boxed<Self>;

    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
}

/// A clock that begins behind everything that was recovered.
struct Clock(u64);

impl Epochs for Clock {
    fn advance(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

fn open(storage: &Arc<Faulty>) -> Result<Database<Occ>, OpenError> {
    Database::builder().open_in(storage.clone())
}

/// Makes the tables and the box, which have the numbers 0 to 2 in the log. Returns how many could be read.
fn make(db: &Database<Occ>) -> usize {
    let words = db.table::<String, Words>("words").create().map(|table| {
        db.transact(|tx| table.get(tx, "key")).expect("nobody is in the way");
    });
    let pairs = db.table::<(u32, bool), u64>("pairs").hash(1).create().map(drop);
    let boxed = db.durable_box("box", vec![1u8, 2]).map(drop);
    let is_read = |result: &Result<(), Misuse>| match result {
        Ok(()) => true,
        Err(misuse) if matches!(misuse.downcast_ref(), Some(TableMisuse::Malformed { .. })) => false,
        Err(other) => panic!("{other}"),
    };
    [words, pairs, boxed].iter().filter(|made| is_read(made)).count()
}

/// Bytes as such a row or key might have them, or any.
fn bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = match random.below(4) {
        0 => b"\x03key".to_vec(),
        1 => vec![1, 2, b'a', b'b', 1, 5, 1, b'x'],
        2 => vec![0; random.below(12) as usize],
        _ => (0..random.below(40)).map(|_| random.below(256) as u8).collect(),
    };
    if random.below(3) > 0 && !bytes.is_empty() {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8][random.below(6) as usize];
    }
    bytes
}

#[test]
fn arbitrary_rows_are_recovered_or_refused() {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let storage = Arc::new(Faulty::new(seed));
        assert_eq!(make(&open(&storage).unwrap()), 3);
        let mut opened = Log::open(storage.clone(), Options::default()).unwrap();
        let last = opened.replay(1, &|_| (), &|_| ()).unwrap();
        let (log, mut logger) = opened.start_without_thread(Box::new(Clock(last.epoch + 1))).unwrap();
        let mut buffer = log.buffer();
        for order in 0..1 + random.below(4) {
            let mut record = Vec::new();
            let structure = random.below(3) as u32;
            let part = (random.below(4) == 0).then(|| random.below(3) as u32);
            let put = |bytes: Vec<u8>| {
                move |to: &mut Vec<u8>| {
                    to.extend(bytes);
                    Ok::<_, Infallible>(())
                }
            };
            let (key, row) = (put(bytes(&mut random)), put(bytes(&mut random)));
            let Ok(()) = match part {
                None => entry::put(&mut record, structure, key, row),
                Some(part) => entry::put_parts(&mut record, structure, key, |parts| parts.put(part, row)),
            };
            buffer.append(Stamp { epoch: last.epoch + 1, order }, &record);
        }
        assert!(logger.step(), "the log is not closed");
        drop((buffer, logger, log));
        let made = match open(&storage) {
            Ok(db) => make(&db),
            // A part of a row, and no row.
            Err(OpenError::Log(_)) => 0,
            Err(other) => panic!("{other}"),
        };
        (read, refused) = (read + made, refused + 3 - made);
    }
    assert!(read > 100 && refused > 100, "{read} tables and objects were read, {refused} refused");
}
