//! Keys that are large.

use super::{cluster_over, text};
use crate::{Limits, MemoryStore};
use hotrow_sync::Arc;

#[test]
fn keys_that_are_large_are_read_in_several_calls_and_one_that_is_too_large_is_refused() {
    let limits = Limits { conditions_max: 20, changes_max: 10, bytes_max: 1_000 };
    let cluster = cluster_over(&Arc::new(MemoryStore::with_limits(limits)));
    let names = cluster.table::<String, u32>("names").create_or_open().unwrap();
    let long = |length: usize| (0..10).map(move |number| format!("{number}").repeat(length));
    cluster.transact(|tx| tx.prefetch(&names, long(300))).unwrap();
    let asked = cluster.counts().asked;
    cluster.transact(|tx| tx.prefetch(&names, long(300))).unwrap();
    assert_eq!(cluster.counts().asked - asked, 4, "three keys at a time");
    let refused = text(cluster.transact(|tx| tx.prefetch(&names, long(1_001))));
    assert!(refused.starts_with("misuse: ") && refused.ends_with("the store takes 20 of 1000"), "{refused}");
}
