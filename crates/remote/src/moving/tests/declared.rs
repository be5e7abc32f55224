//! Tables that programs open with groups and indexes after they were copied.

use super::*;
use crate::{ClusterError, RemoteIndex, RemoteTable, RemoteUniqueIndex};
use hotrow::{Direction, DuplicateKey, Table, Text, column_of};
use hotrow_core::Misuse;
use hotrow_sync::thread;
use hotrow_tables::TableMisuse;
use std::ops::ControlFlow;

#[derive(Debug, Clone, Copy, PartialEq, Value, Stored)]
#[value(inline)]
pub(super) struct Ware {
    name: Text<16>,
    #[value(group = "sold")]
    sold: u32,
    price: u64,
    #[value(group = "stock")]
    here: i64,
    #[value(group = "stock")]
    ordered: u32,
}

const WARES: u32 = 30;

fn ware(number: u32) -> Ware {
    let (price, here) = (u64::from(number % 7), i64::from(number) - 10);
    Ware { name: text(&format!("ware {number}")), sold: 3 * number, price, here, ordered: number }
}

fn text(of: &str) -> Text<16> {
    of.try_into().unwrap()
}

/// The wares after the changes that [`change_wares`] makes.
pub(super) fn changed() -> Vec<(u32, Ware)> {
    let mut wares: Vec<_> = (0..WARES).map(|number| (number, ware(number))).collect();
    wares[4].1 = Ware { name: text("tea"), price: 100, ..ware(4) };
    wares[5].1.sold += 1_000;
    wares[6].1.here -= 1;
    wares.remove(9);
    wares
}

fn local(database: &Database) -> (Table<u32, Ware>, Vec<u32>) {
    let mut builder = database.table::<u32, Ware>("wares");
    let by_name = builder.unique("by_name", |_, ware| ware.name);
    let by_price = builder.secondary_on("by_price", column_of!(Ware, price), |_, price| price);
    let table = builder.create().unwrap();
    let keys = database.transact(|tx| {
        if let Some((key, ware)) = by_name.get(tx, &text("tea"))? {
            assert_eq!((key, ware.price), (4, 100));
        }
        let found = by_price.collect(tx, .., Direction::Ascending, usize::MAX)?;
        Ok(found.into_iter().map(|(key, _)| key).collect())
    });
    (table, keys.unwrap())
}

/// A directory with the wares.
fn with_wares(wares: impl IntoIterator<Item = (u32, Ware)>) -> Arc<Faulty> {
    let storage = Arc::new(Faulty::new(1));
    let database = open(&storage);
    let table = database.table::<u32, Ware>("wares").create().unwrap();
    for (number, ware) in wares {
        database.transact(|tx| table.insert(tx, number, ware)).unwrap();
    }
    database.close().unwrap();
    drop((table, database));
    storage
}

pub(super) fn wares() -> Arc<Faulty> {
    with_wares((0..WARES).map(|number| (number, ware(number))))
}

pub(super) struct Wares {
    pub(super) cluster: Cluster,
    table: RemoteTable<u32, Ware>,
    by_name: RemoteUniqueIndex<Text<16>, u32, Ware>,
    by_price: RemoteIndex<u64, u32, Ware>,
}

impl Wares {
    pub(super) fn open(cluster: Cluster) -> Result<Self, ClusterError> {
        let mut builder = cluster.table::<u32, Ware>("wares");
        let by_price = builder.secondary_on("by_price", column_of!(Ware, price), |_, price| price);
        let by_name = builder.unique("by_name", |_, ware| ware.name);
        let table = builder.create_or_open()?;
        Ok(Self { cluster, table, by_name, by_price })
    }

    /// Checks that rows and entries are these.
    pub(super) fn check(&self, wares: &[(u32, Ware)]) {
        let check = |tx: &mut crate::Transaction<'_>| {
            assert_eq!(tx.rows(&self.table, ..)?, wares);
            for (number, ware) in wares {
                assert_eq!(self.by_name.get(tx, &ware.name)?, Some((*number, *ware)));
            }
            assert_eq!(self.by_name.count(tx, ..)?, wares.len());
            let mut prices = Vec::new();
            self.by_price.scan(tx, .., Direction::Ascending, |price, key, ware| {
                assert_eq!(*price, ware.price);
                prices.push((*price, *key));
                ControlFlow::Continue(())
            })?;
            let mut expected: Vec<_> = wares.iter().map(|(key, ware)| (ware.price, *key)).collect();
            expected.sort_unstable();
            assert_eq!(prices, expected);
            Ok(())
        };
        self.cluster.transact(check).unwrap();
    }

    pub(super) fn change(&self) {
        let change = |tx: &mut crate::Transaction<'_>| {
            tx.update(&self.table, &4, |ware| (ware.name, ware.price) = (text("tea"), 100))?;
            tx.add(&self.table, &5, column_of!(Ware, sold), 1_000)?;
            tx.update_columns(&self.table, &6, column_of!(Ware, here), |here| *here -= 1)?;
            tx.delete(&self.table, &9).map(drop)
        };
        self.cluster.transact(change).unwrap();
    }
}

pub(super) fn all() -> Vec<(u32, Ware)> {
    (0..WARES).map(|number| (number, ware(number))).collect()
}

/// The number of keys of all tables' rows, and of marks of conversions.
fn keys(store: &dyn Store) -> (usize, usize) {
    let count = |prefix: &str| {
        let span = Span::of_prefix(prefix.as_bytes());
        store.range(&span, At::Newest, 1_000, now() + Duration::from_secs(5)).unwrap().rows.len()
    };
    (count("hotrow/t"), count("hotrow/o"))
}

/// Three parts and two entries for each ware.
const KEYS: (usize, usize) = (5 * WARES as usize, 0);

#[test]
fn a_program_with_groups_and_indexes_finds_its_rows_in_the_cluster_and_in_the_directory_again() {
    let store = Arc::new(store());
    to_cluster(&wares(), &cluster_in(&store)).unwrap();
    assert_eq!(cluster_in(&store).table_names().unwrap(), ["wares"]);
    let wares = Wares::open(cluster_in(&store)).unwrap();
    assert_eq!(keys(&*store), KEYS, "neither the copied rows nor the mark is left");
    wares.check(&all());
    wares.change();
    wares.check(&changed());
    assert_eq!(cluster_in(&store).table_names().unwrap(), ["wares"], "indexes are no tables");
    let back = Arc::new(Faulty::new(3));
    assert_eq!(to_storage(&wares.cluster, &back).unwrap().unwrap().tables, 1);
    let database = open(&back);
    let (table, by_price) = local(&database);
    let rows = database.transact(|tx| table.collect(tx, .., Direction::Ascending, usize::MAX));
    assert_eq!(rows.unwrap(), changed());
    let mut expected = changed();
    expected.sort_by_key(|(key, ware)| (ware.price, *key));
    assert_eq!(by_price, expected.iter().map(|(key, _)| *key).collect::<Vec<_>>());
}

#[test]
fn an_opening_that_was_ended_goes_on_and_shows_nothing_half_done() {
    let (storage, mut ended) = (wares(), 0);
    for calls in 0.. {
        let store = faulty();
        to_cluster(&storage, &cluster_in(&store)).unwrap();
        store.end_after(Some(calls));
        let opened = Wares::open(cluster_in(&store)).is_ok();
        store.end_after(None);
        // Whatever there is of it, a copy has the rows.
        let copy = Arc::new(Faulty::new(2));
        assert_eq!(to_storage(&cluster_in(&store), &copy).unwrap().unwrap().rows, u64::from(WARES));
        let wares = Wares::open(cluster_in(&store)).unwrap();
        wares.check(&all());
        assert_eq!(keys(&*store), KEYS);
        if opened {
            break;
        }
        ended += 1;
    }
    assert!(ended > 20, "{ended} openings were ended");
}

#[test]
fn an_opening_over_a_store_with_faults_is_whole() {
    for seed in 0..12 {
        let store = Arc::new(FaultyStore::new(store(), seed, Faults::wild()));
        let settings = Settings { deadline: Duration::from_secs(10), ..settings() };
        let cluster = Cluster::with_settings(store.clone(), settings);
        to_cluster(&wares(), &cluster).unwrap();
        let wares = Wares::open(cluster).unwrap();
        store.deliver();
        wares.check(&all());
    }
}

#[test]
fn processes_that_open_a_copied_table_at_once_make_it_together() {
    for _ in 0..60 {
        let store = Arc::new(store());
        to_cluster(&wares(), &cluster_in(&store)).unwrap();
        thread::scope(|scope| {
            let open = |_| {
                let cluster = cluster_in(&store);
                scope.spawn(move || Wares::open(cluster).unwrap().check(&all()))
            };
            let openings: Vec<_> = (0..3).map(open).collect();
            openings.into_iter().for_each(|opening| opening.join().unwrap());
        });
        assert_eq!(keys(&*store), KEYS);
    }
}

#[test]
fn another_declaration_supersedes_an_unfinished_opening() {
    let storage = wares();
    for calls in 0..60 {
        let store = faulty();
        to_cluster(&storage, &cluster_in(&store)).unwrap();
        let with_one_index = || {
            let cluster = cluster_in(&store);
            let mut builder = cluster.table::<u32, Ware>("wares");
            let by_sold = builder.unique("by_sold", |_, ware| ware.sold);
            builder.create_or_open().map(|table| (cluster, table, by_sold))
        };
        store.end_after(Some(calls));
        let first = with_one_index().is_ok();
        store.end_after(None);
        match Wares::open(cluster_in(&store)) {
            Ok(wares) => {
                assert!(!first);
                wares.check(&all());
                assert_eq!(keys(&*store), KEYS);
                assert!(with_one_index().is_err());
            }
            Err(error) => {
                assert!(
                    error.to_string().contains("with indexes wares.by_sold, and is wanted as"),
                    "{error}"
                );
                let (cluster, table, by_sold) = with_one_index().unwrap();
                assert_eq!(cluster.transact(|tx| tx.rows(&table, ..)).unwrap(), all());
                assert_eq!(cluster.transact(|tx| by_sold.get_key(tx, &6)).unwrap(), Some(2));
                assert_eq!(keys(&*store), (4 * WARES as usize, 0));
            }
        }
    }
}

#[test]
fn two_rows_with_the_same_unique_key_are_an_error_that_names_it() {
    // In one step, and in two that are far from one another.
    for (one, other) in [(3, 4), (1, WARES - 1)] {
        let twice = |(number, ware): (u32, Ware)| match number == other {
            true => (number, Ware { name: text(&format!("ware {one}")), ..ware }),
            false => (number, ware),
        };
        let store = Arc::new(store());
        to_cluster(&with_wares(all().into_iter().map(twice)), &cluster_in(&store)).unwrap();
        for _ in 0..2 {
            let error = Wares::open(cluster_in(&store)).map(drop).unwrap_err();
            let shown = format!("wares.by_name has another row with key \"ware {one}\" already");
            assert_eq!(error.downcast_ref::<DuplicateKey>().unwrap().to_string(), shown);
        }
        // Without the index it can be opened.
        let cluster = cluster_in(&store);
        let table = cluster.table::<u32, Ware>("wares").create_or_open().unwrap();
        assert_eq!(cluster.transact(|tx| tx.rows(&table, ..)).unwrap().len(), WARES as usize);
        assert_eq!(keys(&*store), (3 * WARES as usize, 0));
    }
}

#[test]
fn other_types_and_names_of_indexes_that_are_taken_are_refused_before_anything_is_written() {
    let storage = wares();
    let database = open(&storage);
    database.table::<u8, u8>("wares.by_name").create().unwrap();
    database.close().unwrap();
    drop(database);
    let store = Arc::new(store());
    to_cluster(&storage, &cluster_in(&store)).unwrap();
    let version = newest(&*store);
    let misuse = |error: ClusterError| match error.misuse().unwrap().downcast_ref::<TableMisuse>() {
        Some(misuse) => misuse.clone(),
        None => panic!("{error}"),
    };
    let taken = misuse(Wares::open(cluster_in(&store)).map(drop).unwrap_err());
    assert!(matches!(taken, TableMisuse::NameTaken { name } if name == "wares.by_name"));
    let other = cluster_in(&store).table::<u32, u32>("wares").create_or_open().unwrap_err();
    assert!(matches!(misuse(other), TableMisuse::OtherTypes { .. }));
    assert_eq!(newest(&*store), version);
}

#[test]
fn a_row_of_which_the_writes_do_not_go_into_one_commit_is_refused() {
    let limits = Limits { conditions_max: 64, changes_max: 5, bytes_max: 4_000 };
    let store = Arc::new(MemoryStore::with_limits(limits));
    to_cluster(&wares(), &cluster_in(&store)).unwrap();
    let error = Wares::open(cluster_in(&store)).map(drop).unwrap_err();
    assert!(matches!(error.misuse(), Some(Misuse::Unsupported(_))), "{error}");
    assert!(error.to_string().contains("6 changes, and the store takes 5"), "{error}");
}
