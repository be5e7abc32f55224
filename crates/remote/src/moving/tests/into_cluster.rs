//! Copies of directories.

use super::*;

#[test]
fn a_copy_into_a_cluster_goes_on_where_it_was_ended() {
    let (storage, mut went_on) = (source(0), 0);
    for calls in 0.. {
        let store = faulty();
        store.end_after(Some(calls));
        let ended = to_cluster(&storage, &cluster_in(&store));
        store.end_after(None);
        if ended.is_ok() {
            break;
        }
        let moved = to_cluster(&storage, &cluster_in(&store)).unwrap();
        assert_eq!(moved.rows, ROWS_IN_ALL);
        went_on += u64::from(moved.rows_before > 0);
        check_cluster(&cluster_in(&store), &*store, 0);
    }
    assert!(went_on > 4, "{went_on} copies went on behind rows");
}

#[test]
fn a_copy_that_was_made_is_not_made_again() {
    let store = faulty();
    let (storage, cluster) = (source(0), cluster_in(&store));
    to_cluster(&storage, &cluster).unwrap();
    let version = newest(&*store);
    let again = to_cluster(&storage, &cluster_in(&store)).unwrap();
    assert_eq!(again.rows_before, again.rows);
    assert_eq!(newest(&*store), version);
    write(&storage, 1);
    let other = to_cluster(&storage, &cluster_in(&store)).unwrap_err().to_string();
    assert!(other.contains("the cluster is not empty: it has a copy of another database"), "{other}");
}

#[test]
fn a_copy_begins_anew_if_the_directory_has_changed() {
    for calls in 0.. {
        let (storage, store) = (source(0), faulty());
        store.end_after(Some(calls));
        let ended = to_cluster(&storage, &cluster_in(&store));
        store.end_after(None);
        if ended.is_ok() {
            break;
        }
        write(&storage, 1);
        store.end_after(Some(calls / 2 + 3));
        let ended_again = to_cluster(&storage, &cluster_in(&store)).is_err();
        store.end_after(None);
        let moved = to_cluster(&storage, &cluster_in(&store)).unwrap();
        assert!(ended_again || moved.rows_before == moved.rows);
        check_cluster(&cluster_in(&store), &*store, 1);
    }
}

#[test]
fn tables_are_not_there_before_the_copy_is_complete() {
    let (storage, store) = (source(0), faulty());
    store.end_after(Some(12));
    to_cluster(&storage, &cluster_in(&store)).unwrap_err();
    store.end_after(None);
    let cluster = cluster_in(&store);
    let accounts = cluster.table::<u8, u8>("accounts").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&accounts, 1, 1)).unwrap();
    let disturbed = to_cluster(&storage, &cluster).unwrap_err().to_string();
    assert_eq!(disturbed, "the copy was disturbed: others have made a table or a sequence: hotrow/caccounts");
    assert_eq!(cluster.transact(|tx| tx.get(&accounts, &1)).unwrap(), Some(1));
}

#[test]
fn a_cluster_with_tables_is_no_target() {
    let store = faulty();
    let cluster = cluster_in(&store);
    cluster.table::<u8, u8>("mine").create_or_open().unwrap();
    let version = newest(&*store);
    let refused = to_cluster(&source(0), &cluster).unwrap_err().to_string();
    assert_eq!(refused, "the cluster is not empty: it has the key hotrow/cmine");
    assert_eq!(newest(&*store), version);
}

#[test]
fn what_the_store_does_not_take_is_refused_before_anything_is_written() {
    let storage = Arc::new(Faulty::new(1));
    let database = open(&storage);
    let long = database.table::<String, String>("long").create().unwrap();
    database.transact(|tx| long.insert(tx, "k".into(), "x".repeat(5_000))).unwrap();
    database.close().unwrap();
    drop((long, database));
    let store = faulty();
    let refused = to_cluster(&storage, &cluster_in(&store)).unwrap_err().to_string();
    assert!(refused.starts_with("long cannot be copied: a row takes 5"), "{refused}");
    assert_eq!(newest(&*store), 0);

    let storage = Arc::new(Faulty::new(1));
    let database = open(&storage);
    for number in 0..20 {
        database.table::<u8, u8>(format!("table {number}")).create().unwrap();
    }
    database.close().unwrap();
    drop(database);
    let refused = to_cluster(&storage, &cluster_in(&store)).unwrap_err().to_string();
    assert!(refused.contains("too many tables: the transaction has 21 changes"), "{refused}");
    assert_eq!(newest(&*store), 0);
}
