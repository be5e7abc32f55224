//! Copies of clusters.

use super::*;
use crate::moving::{MoveProgress, into_cluster, into_directory};
use hotrow::column_of;

#[test]
fn deleted_rows_and_groups_of_columns_are_copied_back_as_they_are() {
    let store = Arc::new(MemoryStore::new());
    let cluster = cluster_in(&store);
    #[derive(Debug, Clone, Copy, PartialEq, Value, Stored)]
    #[value(inline)]
    struct Stock {
        place: u32,
        #[value(group = "pieces")]
        pieces: i64,
        shelf: u64,
        #[value(group = "sold")]
        sold: u32,
        #[value(group = "sold")]
        returned: u64,
    }
    let mut stock = cluster.table::<u32, Stock>("stock");
    let by_shelf = stock.secondary("by_shelf", |_, stock| stock.shelf);
    let stock = stock.create_or_open().unwrap();
    let row = |at: u16| Stock {
        place: u32::from(at),
        pieces: 300,
        shelf: u64::from(at),
        sold: 7,
        returned: 1 << 40,
    };
    let insert = |at: u16| cluster.transact(|tx| tx.insert(&stock, u32::from(at), row(at)));
    (0..20).for_each(|at| insert(at).unwrap());
    cluster
        .transact(|tx| {
            tx.delete(&stock, &3)?;
            (5..10).try_for_each(|at| tx.add(&stock, &at, column_of!(Stock, pieces), -301))
        })
        .unwrap();
    let numbers = cluster.sequence("numbers", 50);
    let drawn = cluster.transact(|tx| numbers.next(tx)).unwrap();
    let back = Arc::new(Faulty::new(3));
    let moved = to_storage(&cluster, &back).unwrap().unwrap();
    assert_eq!((moved.tables, moved.rows), (2, 19), "the entries of the index follow from the rows");
    let database = open(&back);
    let stock = database.table::<u32, Stock>("stock").create().unwrap();
    let get = |key: u32| database.transact(|tx| stock.get(tx, &key)).unwrap();
    assert_eq!(get(3), None);
    assert_eq!(get(7), Some(Stock { pieces: -1, ..row(7) }));
    assert_eq!(get(12), Some(row(12)));
    let numbers = database.durable_sequence("numbers", 0).unwrap();
    assert!(database.transact(|tx| Ok(numbers.next(tx))).unwrap() > drawn);
    drop(by_shelf);
}

fn full_cluster(store: &Arc<FaultyStore<MemoryStore>>) -> Cluster {
    let cluster = cluster_in(store);
    to_cluster(&source(0), &cluster).unwrap();
    cluster
}

#[test]
fn a_copy_to_a_directory_goes_on_where_it_was_ended() {
    let mut went_on = 0;
    for calls in 0.. {
        let store = faulty();
        let cluster = full_cluster(&store);
        let back = Arc::new(Faulty::new(calls));
        store.end_after(Some(calls));
        let ended = to_storage(&cluster, &back);
        store.end_after(None);
        if ended.is_ok() {
            break;
        }
        // The states that are not held any more stay, because nobody compacts.
        let moved = to_storage(&cluster, &Arc::new(back.power_loss(calls))).unwrap().unwrap();
        assert_eq!(moved.rows, ROWS_IN_ALL);
        let moved = to_storage(&cluster, &back).unwrap().unwrap();
        went_on += u64::from(moved.rows_before > 0);
        check(&back, 0);
    }
    assert!(went_on > 4, "{went_on} copies went on behind rows");
}

/// Changes all rows of the cluster to those of the next round.
fn change(cluster: &Cluster) {
    let accounts = cluster.table::<Owner, Account>("accounts").create_or_open().unwrap();
    let pairs = cluster.table::<(String, i16), u64>("pairs").create_or_open().unwrap();
    let limit = cluster.table::<u64, i64>("limit").create_or_open().unwrap();
    for number in 0..ROWS {
        cluster
            .transact(|tx| {
                tx.update(&accounts, &owner(number), |account| account.balance += 1)?;
                let pair = (format!("{}", number % 4), number as i16 - 9);
                tx.update_if_present(&pairs, &pair, |row| *row += 1).map(drop)
            })
            .unwrap();
    }
    cluster.transact(|tx| tx.update(&limit, &0, |limit| *limit += 1)).unwrap();
}

/// A cluster, and a copy of it that was ended.
fn ended_half_way() -> (Arc<FaultyStore<MemoryStore>>, Cluster, Arc<Faulty>) {
    let store = faulty();
    let (cluster, back) = (full_cluster(&store), Arc::new(Faulty::new(1)));
    store.end_after(Some(9));
    to_storage(&cluster, &back).unwrap_err();
    store.end_after(None);
    (store, cluster, back)
}

#[test]
fn a_copy_that_goes_on_has_the_state_of_its_beginning() {
    let (_, cluster, back) = ended_half_way();
    change(&cluster);
    let moved = to_storage(&cluster, &back).unwrap().unwrap();
    assert!(moved.rows_before > 0);
    check(&back, 0);
}

#[test]
fn a_copy_whose_state_is_not_kept_or_whose_cluster_is_another_begins_anew() {
    let (store, cluster, back) = ended_half_way();
    let other = full_cluster(&faulty());
    assert_eq!(to_storage(&other, &back).unwrap(), None);
    change(&cluster);
    store.inner().compact(newest(&*store));
    assert_eq!(to_storage(&cluster, &back).unwrap(), None);
}

#[test]
fn a_full_disk_is_an_error_and_the_copy_goes_on_when_there_is_room() {
    let store = faulty();
    let cluster = full_cluster(&store);
    let back = Arc::new(Faulty::new(1));
    back.set_capacity(Some(7_000));
    let full = to_storage(&cluster, &back).unwrap_err();
    assert!(full.to_string().contains("no storage space"), "{full}");
    back.set_capacity(None);
    to_storage(&cluster, &back).unwrap().unwrap();
    check(&back, 0);
}

#[test]
fn directories_are_copied_by_name() {
    let there = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| there.path().join(name));
    let store = faulty();
    let cluster = cluster_in(&store);
    let missing = into_cluster(&from, &cluster, &mut |_| ()).unwrap_err().to_string();
    assert!(missing.contains("from"), "{missing}");
    let nothing = into_directory(&cluster, &to, &mut |_| ()).unwrap_err().to_string();
    assert_eq!(nothing, "the cluster has no tables");
    let database = Database::builder().open_at(&from).unwrap();
    let names = database.table::<u32, String>("names").create().unwrap();
    database
        .transact(|tx| (0..100).try_for_each(|number| names.insert(tx, number, number.to_string())))
        .unwrap();
    let used = into_cluster(&from, &cluster, &mut |_| ()).unwrap_err().to_string();
    assert!(used.contains("is in use"), "{used}");
    database.close().unwrap();
    drop((names, database));

    let mut told = Vec::new();
    into_cluster(&from, &cluster, &mut |progress| told.push(progress)).unwrap();
    assert_eq!(told.last(), Some(&MoveProgress { rows: 100, rows_total: Some(100) }));

    store.end_after(Some(8));
    into_directory(&cluster, &to, &mut |_| ()).unwrap_err();
    store.end_after(None);
    assert!(!to.exists() && there.path().join("to.copying").exists());
    let names = cluster.table::<u32, String>("names").create_or_open().unwrap();
    cluster.transact(|tx| tx.delete(&names, &7)).unwrap();
    // Nobody holds the state of the first attempt any more.
    store.inner().compact(newest(&*store));
    std::fs::create_dir(&to).unwrap();
    let moved = into_directory(&cluster, &to, &mut |_| ()).unwrap();
    assert_eq!((moved.rows, moved.rows_before), (99, 0));
    assert!(!there.path().join("to.copying").exists());
    let not_empty = into_directory(&cluster, &to, &mut |_| ()).unwrap_err().to_string();
    assert!(not_empty.contains("to is not empty: it has "), "{not_empty}");
    let database = Database::builder().open_at(&to).unwrap();
    let names = database.table::<u32, String>("names").create().unwrap();
    assert_eq!(database.transact(|tx| names.count(tx, ..)).unwrap(), 99);
    assert!(database.open_report().unwrap().closed);
}
