//! Recordings that begin when there are rows already.

use super::{Counter, cluster};
use hotrow::column_of;
use hotrow_check::check;

#[test]
fn a_recording_may_begin_when_there_are_rows() {
    let cluster = cluster();
    let table = cluster.table::<u32, Counter>("counters").create_or_open().unwrap();
    cluster.transact(|tx| (0..4).try_for_each(|key| tx.insert(&table, key, Counter { count: 0 }))).unwrap();
    cluster.transact(|tx| tx.delete(&table, &3)).unwrap();
    let recording = cluster.record().unwrap();
    for _ in 0..2 {
        cluster.transact(|tx| tx.update(&table, &0, |row| row.count += 1)).unwrap();
        cluster.transact(|tx| tx.add(&table, &1, column_of!(Counter, count), 1)).unwrap();
        let rows = cluster.transact(|tx| tx.rows(&table, ..)).unwrap();
        cluster.transact(|tx| tx.upsert(&table, 3, Counter { count: rows.len() as i64 })).unwrap();
        cluster.transact(|tx| tx.delete(&table, &2)).unwrap();
    }
    let report = check(&recording.finish()).unwrap();
    assert!(report.strictly_serializable, "{report}");
}
