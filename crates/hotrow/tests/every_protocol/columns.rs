//! Reads of some columns of a row.

use crate::support;
use crate::support::{for_each_protocol, impatient, overtake, whatever_time_it_takes};
use hotrow::{Database, Engine, Protocol, Table, Value, column_of};

/// An inline row: no field has the size of a word.
#[derive(Debug, Clone, Copy, PartialEq, Value)]
#[value(inline)]
struct Stock {
    quantity: u32,
    sold: [u8; 3],
    flag: bool,
    place: Place,
    tail: [u8; 8],
}

#[derive(Debug, Clone, Copy, PartialEq, Value)]
#[value(inline)]
struct Place {
    shelf: u16,
    row: [u8; 2],
}

impl Stock {
    fn new(seed: u8) -> Self {
        Self {
            quantity: u32::from_ne_bytes([seed; 4]),
            sold: [seed, 2, 3],
            flag: seed.is_multiple_of(2),
            place: Place { shelf: u16::from(seed) << 8, row: [seed, 9] },
            tail: [1, 2, 3, 4, 5, 6, 7, seed],
        }
    }
}

/// A boxed row.
#[derive(Debug, Clone, PartialEq, Value)]
struct Note {
    number: u64,
    text: String,
}

/// One table of each kind.
fn tables<R: Value, P: Protocol>(engine: &Engine<P>) -> [Table<u64, R, P>; 2] {
    [
        Database::on(engine).table("hash").hash(4).create().unwrap(),
        Database::on(engine).table("ordered").create().unwrap(),
    ]
}

#[test]
fn each_column_is_that_of_the_row_as_the_transaction_sees_it() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for table in tables::<Stock, P>(&engine) {
            let quantity = column_of!(Stock, quantity);
            let rest = (
                column_of!(Stock, sold),
                column_of!(Stock, flag),
                column_of!(Stock, place.shelf),
                column_of!(Stock, place.row),
                column_of!(Stock, tail),
            );
            let expected = |seed| {
                let row = Stock::new(seed);
                (row.quantity, (row.sold, row.flag, row.place.shelf, row.place.row, row.tail))
            };
            table.bulk_insert([(1, Stock::new(1))]).unwrap();
            engine
                .transact(|tx| {
                    let look = |tx: &mut _, key| table.read_columns(tx, &key, (quantity, rest));
                    assert_eq!(look(tx, 0)?, None, "there is no such row");
                    assert_eq!(look(tx, 1)?, Some(expected(1)));
                    table.update_if_present(tx, &1, |row| *row = Stock::new(2))?;
                    assert_eq!(look(tx, 1)?, Some(expected(2)), "an own change");
                    table.insert_if_absent(tx, 2, Stock::new(3))?;
                    assert_eq!(look(tx, 2)?, Some(expected(3)), "an own insertion");
                    table.delete(tx, &1)?;
                    assert_eq!(look(tx, 1)?, None, "an own deletion");
                    Ok(())
                })
                .unwrap();
            assert_eq!(engine.transact(|tx| table.read_columns(tx, &1, quantity)), Ok(None), "deleted");
            assert_eq!(
                engine.transact(|tx| table.read_columns(tx, &2, (quantity, rest))),
                Ok(Some(expected(3)))
            );
        }
    });
}

#[test]
fn columns_of_boxed_rows_and_of_immutable_tables_are_read_in_place() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for table in tables::<Note, P>(&engine) {
            table.bulk_insert([(1, Note { number: 7, text: "seven".to_owned() })]).unwrap();
            assert_eq!(
                engine.transact(|tx| table.read_columns(tx, &1, column_of!(Note, number))),
                Ok(Some(7))
            );
        }
        let builder = Database::on(&engine).table("immutable").hash(1).immutable();
        let table: Table<u64, Stock, P> = support::loaded(builder, [(1, Stock::new(5))]);
        let tail = engine.transact(|tx| table.read_columns(tx, &1, column_of!(Stock, tail)));
        assert_eq!(tail, Ok(Some(Stock::new(5).tail)));
    });
}

#[test]
fn a_column_that_was_read_is_a_read_of_its_row() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let table: Table<u64, Stock, P> = Database::on(&engine).table("stock").hash(4).create().unwrap();
        table.bulk_insert([(1, Stock::new(0))]).unwrap();
        let quantity = column_of!(Stock, quantity);
        let mut others = 0;
        let taken = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let seen = table.read_columns(tx, &1, quantity)?.expect("the row exists");
                if tx.attempt_number() == 0
                    && overtake(&engine, |tx| {
                        table.update_if_present(tx, &1, |row| row.quantity += 1).map(drop)
                    })
                {
                    others += 1;
                }
                // Not by `update`, which reads the row again.
                table.replace_if_present(tx, &1, Stock { quantity: seen + 1, ..Stock::new(0) })
            })
        });
        assert_eq!(taken, Ok(true));
        let left = engine.transact(|tx| table.read_columns(tx, &1, quantity)).unwrap();
        assert_eq!(left, Some(others + 1), "no change is lost");
    });
}

mod by_glob {
    use hotrow::*;

    #[derive(Clone, Copy, Value)]
    #[value(inline)]
    struct Row {
        number: u64,
    }

    /// A name that the standard library's prelude has as well would be ambiguous here.
    #[test]
    fn the_macro_of_columns_has_a_name_of_its_own() {
        let db = Database::open().unwrap();
        let rows = db.table::<u64, Row>("rows").create().unwrap();
        let number = db.transact(|tx| {
            rows.insert(tx, 1, Row { number: 2 })?;
            rows.add(tx, &1, column_of!(Row, number), 3)?;
            rows.read_columns(tx, &1, column_of!(Row, number))
        });
        assert_eq!(number, Ok(Some(5)));
    }
}
