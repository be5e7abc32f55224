//! How often an opaque attempt checks again what it has seen: not for commits that cannot matter to it, so that a large
//! transaction takes time in proportion to its size beside others; and always for those that may. The checks are counted by
//! an object whose predicate each of them looks at.

use hotrow_core::{
    Abort, Engine, EpochBox, Item, Keeper, Object, ObjectMeta, Pin, Protocol, RetryPolicy, SavedWrite, Saver,
    Segment, Transaction,
};
use hotrow_protocols::{Any, PROTOCOLS};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_tables::{Database, Direction, Table};
use std::ops::ControlFlow;
use std::ptr::NonNull;

const ROWS: u64 = 1_000;

/// Counts the looks at its predicate.
struct Watch<P: Protocol>(EpochBox<Watched<P>>);

struct Watched<P: Protocol> {
    segment: Segment<u64, P>,
    meta: ObjectMeta,
    looks: AtomicU64,
}

impl<P: Protocol> Watch<P> {
    fn new(engine: &Engine<P>) -> Self {
        let (segment, meta) = (Segment::new(0), ObjectMeta::new(engine.id(), "watch"));
        Self(EpochBox::new(Watched { segment, meta, looks: AtomicU64::new(0) }))
    }

    /// From now on each check of the attempt is counted.
    fn watch(&self, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        let tx = tx.enter(&self.0.meta)?;
        // SAFETY: the segment is the watch's, which lives in an `EpochBox`; `enter` was called. The predicate needs no
        // payload.
        unsafe {
            let id = tx.item(&*self.0, self.0.segment.address());
            tx.set_predicate::<()>(id, None);
        }
        Ok(())
    }

    fn looks(&self) -> u64 {
        self.0.looks.load(Ordering::Relaxed)
    }
}

// SAFETY: all items are for the one segment, and none has a write; the shared state is in an `EpochBox`; `watch` calls
// `enter`.
unsafe impl<P: Protocol> Object<P> for Watched<P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, _: &mut Item<P>, _: &Pin) {
        unreachable!("nothing writes it");
    }

    unsafe fn keep(&self, _: &Item<P>, _: &mut Keeper<'_>) {
        unreachable!("nothing writes it");
    }

    unsafe fn save(&self, _: &Item<P>, _: &Saver<'_, P>) -> SavedWrite {
        unreachable!("nothing writes it");
    }

    unsafe fn restore(&self, _: &mut Item<P>, _: Option<SavedWrite>, _: &Pin) {
        unreachable!("nothing writes it");
    }

    unsafe fn predicate_holds(&self, _: &Item<P>) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// An engine with rows, other rows, and a watch.
struct Scene<P: Protocol> {
    engine: Engine<P>,
    rows: Table<u64, u64, P>,
    others: Table<u64, u64, P>,
    watch: Watch<P>,
}

impl<P: Protocol> Scene<P> {
    fn new(protocol: &str) -> Self {
        let engine = Engine::named(protocol, RetryPolicy::default()).unwrap();
        // Without commits, which an attempt that begins now would have to come after.
        let loaded = |name: &str| {
            let loading = Database::on(&engine).table(name).load().unwrap();
            (0..ROWS).for_each(|key| loading.insert(key, 0).unwrap());
            loading.finish().unwrap()
        };
        let (rows, others) = (loaded("rows"), loaded("others"));
        let watch = Watch::new(&engine);
        Self { engine, rows, others, watch }
    }

    /// How often an attempt checks what it has seen before it commits, if `step` is done many times and each time
    /// something else that cannot matter to it commits.
    fn checks(&self, mut step: impl FnMut(&mut Transaction<'_, P>, u64) -> Result<(), Abort>) -> u64 {
        let (mut worker, mut other) = (self.engine.worker().unwrap(), self.engine.worker().unwrap());
        let mut tx = worker.begin();
        self.watch.watch(&mut tx).unwrap();
        for number in 0..ROWS {
            step(&mut tx, number).unwrap();
            let commit = other.transact(|tx| {
                self.others.update_if_present(tx, &((number + 1) % ROWS), |row| *row += 1)?;
                self.others.insert_if_absent(tx, ROWS + number, 0)?;
                self.others.delete(tx, &number)
            });
            assert_eq!(commit, Ok(true));
        }
        let checks = self.watch.looks();
        tx.commit().unwrap();
        checks
    }

    /// An attempt that has read the first row, when another one has changed that row and deleted the second.
    fn after_a_deletion<R>(
        &self,
        look: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Option<R> {
        let (mut worker, mut other) = (self.engine.worker().unwrap(), self.engine.worker().unwrap());
        let mut tx = worker.begin();
        assert_eq!(self.rows.get(&mut tx, &0), Ok(Some(0)));
        let commit = other.transact(|tx| {
            self.rows.update_if_present(tx, &0, |row| *row += 1)?;
            self.rows.delete(tx, &1)
        });
        assert_eq!(commit, Ok(true));
        look(&mut tx).ok()
    }
}

/// Runs a test under each protocol whose attempts are opaque by checking again: under those that run one transaction at a time there is
/// nothing to check.
macro_rules! for_each_opaque_protocol {
    (|$name:ident, $protocol:ident| $body:block) => {{
        fn test<$protocol: Protocol>($name: &str) {
            assert!(Engine::<$protocol>::named($name, RetryPolicy::default()).unwrap().is_opaque());
            $body
        }
        let opaque = PROTOCOLS.iter().filter(|protocol| protocol.opaque && protocol.concurrent);
        assert!(opaque.map(|protocol| test::<Any>(protocol.name)).count() > 1);
    }};
}

#[test]
fn insertions_check_nothing_again_when_others_commit_elsewhere() {
    for_each_opaque_protocol!(|name, P| {
        let scene = Scene::<P>::new(name);
        let checks = scene.checks(|tx, number| scene.rows.insert_if_absent(tx, ROWS + number, 1).map(drop));
        assert_eq!(checks, 0, "{name}");
    });
}

#[test]
fn reads_and_updates_check_nothing_again_when_others_commit_elsewhere() {
    for_each_opaque_protocol!(|name, P| {
        let scene = Scene::<P>::new(name);
        let checks = scene.checks(|tx, number| {
            scene.rows.get(tx, &number)?;
            scene.rows.update_if_present(tx, &(ROWS - 1 - number), |row| *row += 1).map(drop)
        });
        assert_eq!(checks, 0, "{name}");
    });
}

#[test]
fn failed_lookups_and_scans_check_nothing_again_when_others_commit_elsewhere() {
    for_each_opaque_protocol!(|name, P| {
        let scene = Scene::<P>::new(name);
        let checks = scene.checks(|tx, number| {
            assert_eq!(scene.rows.get(tx, &(2 * ROWS + number))?, None);
            scene.rows.scan(tx, number..number + 3, Direction::Ascending, |_, _| ControlFlow::Continue(()))
        });
        assert_eq!(checks, 0, "{name}");
    });
}

#[test]
fn an_absence_that_a_later_commit_has_made_is_not_seen_beside_what_was_there_before_it() {
    for_each_opaque_protocol!(|name, P| {
        let scene = || Scene::<P>::new(name);
        let all = |scene: &Scene<P>, tx: &mut Transaction<'_, P>| {
            let mut keys = 0;
            scene.rows.scan(tx, 1..3, Direction::Ascending, |_, _| {
                keys += 1;
                ControlFlow::Continue(())
            })?;
            Ok(keys)
        };
        let one = scene();
        assert_eq!(one.after_a_deletion(|tx| one.rows.get(tx, &1)), None, "{name}: a lookup");
        let one = scene();
        assert_eq!(
            one.after_a_deletion(|tx| one.rows.insert_if_absent(tx, 1, 1)),
            None,
            "{name}: an insertion"
        );
        let one = scene();
        assert_eq!(one.after_a_deletion(|tx| all(&one, tx)), None, "{name}: a scan");
        let one = scene();
        assert_eq!(one.after_a_deletion(|tx| one.rows.get(tx, &0)), None, "{name}: the row itself");
        let one = scene();
        assert_eq!(
            one.after_a_deletion(|tx| one.others.get(tx, &1)),
            Some(Some(0)),
            "{name}: what is as it was"
        );
    });
}

#[test]
fn an_early_state_is_not_seen_beside_a_row_that_was_written_later() {
    for_each_opaque_protocol!(|name, P| {
        let scene = Scene::<P>::new(name);
        let (mut worker, mut other) = (scene.engine.worker().unwrap(), scene.engine.worker().unwrap());
        // Whatever the clock is at: more commits than its values have in a block.
        for round in 0..600 {
            let mut tx = worker.begin();
            assert_eq!(scene.rows.get(&mut tx, &5), Ok(Some(round)));
            let commit = other.transact(|tx| {
                scene.rows.update_if_present(tx, &5, |row| *row += 1)?;
                scene.rows.update_if_present(tx, &6, |row| *row += 1)
            });
            assert_eq!(commit, Ok(Some(())));
            assert!(scene.rows.get(&mut tx, &6).is_err(), "{name}, round {round}");
        }
    });
}
