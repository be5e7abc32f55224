//! Tests of counts and holders. Other tests of the process retire, too, so nothing here relies on exact sums.

use super::*;
use crate::testing::Unprotected;
use crate::{Engine, Pin, Walk};
use hotrow_sync::thread;

fn retire(bytes: usize) {
    let pin = Pin::new();
    // SAFETY: from a box, retired once, shown to nobody.
    unsafe { pin.retire_owning(Box::into_raw(Box::new(0u64)), bytes) };
}

#[test]
fn bytes_that_a_thread_has_retired_count_when_the_thread_is_gone() {
    let before = tally::totals().retired;
    thread::spawn(|| retire(1 << 30)).join().unwrap();
    assert!(tally::totals().retired - before >= 1 << 30);
}

#[test]
fn freed_bytes_were_retired_before() {
    let before = tally::totals();
    retire(1 << 20);
    while tally::totals().freed - before.freed < 1 << 20 {
        crate::memory::pin::collect_all();
    }
    let after = tally::totals();
    assert!(after.retired - before.retired >= 1 << 20);
    assert!(after.retired >= after.freed);
}

#[test]
fn a_walk_is_reported_while_it_lasts_with_what_was_retired_since() {
    let engine = Engine::<Unprotected>::new();
    let name = "walked in a test of reports";
    let meta = crate::ObjectMeta::new(engine.id(), name);
    let find = || {
        let is_it =
            |holder: &MemoryHolder| matches!(&holder.kind, HolderKind::Walk { object } if object == name);
        engine.retained_memory().holders.into_iter().find(is_it)
    };
    let walk = Walk::new(&meta);
    let first = find().expect("it is open");
    assert_eq!(first.engine, engine.id());
    thread::spawn(|| retire(1 << 20)).join().unwrap();
    let then = find().expect("it is open");
    assert!(then.kept_bytes >= first.kept_bytes + (1 << 20), "{first} {then}");
    assert!(then.open_for >= first.open_for);
    assert!(engine.retained_memory().bytes >= then.kept_bytes);
    drop(walk);
    assert_eq!(find(), None);
}
