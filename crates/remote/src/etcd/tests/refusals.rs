//! Servers that are not there, are none of etcd, or do not take what is sent.

use super::servers::Server;
use super::{ALONE, fresh, soon};
use crate::tests::tickets::Tickets;
use crate::{
    At, Cluster, ClusterError, Commit, EtcdOptions, EtcdStore, Mutation, Settings, Store, StoreError,
};
use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::clock::{Duration, now};
use hotrow_sync::{Arc, lock, thread};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// A cluster over one server, and the deadline of its transactions.
fn cluster(address: &str, deadline: Duration) -> Cluster {
    let options = EtcdOptions { call_max: Duration::from_millis(300), ..EtcdOptions::default() };
    let store = EtcdStore::with_options([address], options).unwrap();
    let settings = Settings { deadline, lookup: deadline, ..Settings::default() };
    Cluster::with_settings(Arc::new(store), settings)
}

/// The error of a server that does not answer as etcd does, which comes at the deadline.
fn unreachable(address: &str) -> String {
    let (began, deadline) = (now(), Duration::from_millis(800));
    let error = cluster(address, deadline).table::<u8, u8>("t").create_or_open().unwrap_err();
    let elapsed = began.elapsed();
    assert!(elapsed < Duration::from_secs(3), "{error} after {elapsed:?}");
    match error {
        ClusterError::Store(StoreError::Unreachable { reason }) => {
            assert!(reason.contains(address), "{reason}");
            reason
        }
        other => panic!("{other}"),
    }
}

/// A server that answers every connection with these bytes, while `body` runs with its address.
fn answering(bytes: &'static [u8], body: impl FnOnce(String)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut connections = Vec::new();
            while !is_over.load(Ordering::Acquire) {
                let Ok((mut connection, _)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                connection.set_nonblocking(false).unwrap();
                connection.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                let _ = connection.read(&mut [0; 1024]);
                let _ = connection.write_all(bytes);
                // An empty answer leaves the client waiting.
                connections.extend(bytes.is_empty().then_some(connection));
            }
        });
        body(address);
        is_over.store(true, Ordering::Release);
    });
}

#[test]
fn servers_that_are_not_there_or_not_etcd_are_named_in_an_error_at_the_deadline() {
    assert!(EtcdStore::new([] as [&str; 0]).is_err());
    assert!(EtcdStore::new(["no address at all"]).is_err());
    let reason = unreachable("http://127.0.0.1:1");
    assert!(reason.contains("refused"), "{reason}");
    // A name that no resolver needs to ask for: a part of it is too long.
    let reason = unreachable(&format!("http://{}.invalid:2379", "x".repeat(64)));
    assert!(reason.contains("dns error"), "{reason}");
    answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", |address| {
        println!("{}", unreachable(&address));
    });
    answering(b"", |address| {
        let reason = unreachable(&address);
        assert!(reason.contains("no answer came in time"), "{reason}");
    });
}

#[test]
fn a_commit_that_was_not_sent_has_no_effect_for_certain() {
    let store = EtcdStore::new(["http://127.0.0.1:1"]).unwrap();
    let commit = store.commit(&Commit::default(), now() + Duration::from_millis(300));
    assert!(matches!(commit, Err(StoreError::Unreachable { .. })), "{commit:?}");
    let deadline = now() + Duration::from_millis(300);
    assert!(matches!(store.hold(1, deadline), Err(StoreError::Unreachable { .. })));

    let Some(store) = super::store() else { return };
    let _alone = lock(&ALONE);
    let key = fresh(&store, "late").into_bytes();
    let put = Mutation::Put { key: key.clone(), value: vec![1] };
    let late = store.commit(&Commit { mutations: vec![put], ..Commit::default() }, now());
    assert_eq!(late, Err(StoreError::Unreachable { reason: "the deadline has passed".to_owned() }));
    assert_eq!(store.get_many(&[key], At::Newest, soon()).unwrap().values, [None]);
}

#[test]
fn a_server_that_goes_in_the_middle_ends_transactions_at_their_deadlines_and_loses_no_sale() {
    let Some(mut server) = Server::start("http", &[]) else { return };
    let address = format!("http://127.0.0.1:{}", server.port());
    let patient = cluster(&address, Duration::from_secs(30));
    let tickets = Tickets::open(std::slice::from_ref(&patient), u64::MAX).unwrap();
    let hasty = cluster(&address, Duration::from_millis(700));
    let table = hasty.table::<u8, u64>("t").create_or_open().unwrap();
    hasty.transact(|tx| tx.insert(&table, 1, 0)).unwrap();
    let end = now() + Duration::from_millis(2_500);
    let (purchases, (done, lost)) = thread::scope(|scope| {
        let buyers: Vec<_> = (0..3)
            .map(|buyer| {
                scope.spawn({
                    let tickets = &tickets;
                    move || tickets.buy(buyer, Some(end))
                })
            })
            .collect();
        let counting = scope.spawn(|| {
            let (mut done, mut lost) = (0, 0);
            while now() < end {
                let began = now();
                match hasty.transact(|tx| tx.update(&table, &1, |count| *count += 1)) {
                    Ok(()) => done += 1,
                    Err(ClusterError::Store(StoreError::Unreachable { .. })) => {}
                    Err(ClusterError::Unknown(_)) => lost += 1,
                    Err(other) => panic!("{other}"),
                }
                let elapsed = began.elapsed();
                assert!(elapsed < Duration::from_secs(4), "a deadline is kept: {elapsed:?}");
            }
            (done, lost)
        });
        thread::sleep(Duration::from_millis(300));
        server.kill();
        thread::sleep(Duration::from_millis(1_500));
        server.start_again();
        let purchases: Vec<_> = buyers.into_iter().map(|buyer| buyer.join().unwrap()).collect();
        (purchases, counting.join().unwrap())
    });
    let purchases: Vec<u64> = purchases.into_iter().collect::<Result<_, _>>().unwrap();
    tickets.judge(&purchases).unwrap();
    let count = patient
        .table::<u8, u64>("t")
        .create_or_open()
        .and_then(|table| patient.transact(|tx| tx.get(&table, &1)));
    let count = count.unwrap().unwrap();
    assert!(done <= count && count <= done + lost, "{done} and perhaps {lost} give {count}");
}

#[test]
fn a_watch_notices_that_its_server_does_not_answer_any_more() {
    let Some(server) = Server::start("http", &[]) else { return };
    let options = EtcdOptions { call_max: Duration::from_millis(500), ..EtcdOptions::default() };
    let store = EtcdStore::with_options([format!("http://127.0.0.1:{}", server.port())], options).unwrap();
    fresh(&store, "watched");
    let key = [b"watched".to_vec()];
    assert_eq!(store.watch(&key, &[], 1, now() + Duration::from_millis(300)), Ok(None));
    server.pause();
    let began = now();
    let gone = store.watch(&key, &[], 1, soon());
    assert!(matches!(gone, Err(StoreError::Unreachable { .. })), "{gone:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "after {:?}", began.elapsed());
}

#[test]
fn a_server_without_space_says_so_and_the_commit_that_notices_it_is_told_its_outcome() {
    let quota = (2 * 1024 * 1024).to_string();
    let Some(server) = Server::start("http", &["--quota-backend-bytes", &quota]) else { return };
    let address = format!("http://127.0.0.1:{}", server.port());
    let store = EtcdStore::new([&*address]).unwrap();
    super::fresh(&store, "full");
    let cluster = Cluster::over(Arc::new(store));
    let table = cluster.table::<u32, String>("texts").create_or_open().unwrap();
    let counts = cluster.table::<u8, u32>("counts").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&counts, 1, 0)).unwrap();
    let mut inserted = 0;
    let began = now();
    let error = loop {
        let text = "x".repeat(100_000);
        let done = cluster.transact(|tx| {
            tx.insert(&table, inserted, text.clone())?;
            tx.update(&counts, &1, |count| *count += 1)
        });
        match done {
            Ok(()) => inserted += 1,
            Err(error) => break error,
        }
    };
    assert!(inserted > 3 && began.elapsed() < Duration::from_secs(20), "{inserted}: {error}");
    assert!(!error.is_retryable());
    let text = error.to_string();
    assert!(matches!(error, ClusterError::Store(StoreError::Denied { .. })), "{text}");
    assert!(text.contains("database space exceeded"), "{text}");
    let (count, rows) =
        cluster.transact(|tx| Ok((tx.get(&counts, &1)?, tx.rows(&table, ..)?.len()))).unwrap();
    assert_eq!(
        (count, rows),
        (Some(inserted), inserted as usize),
        "an error has no effect, and a success has one"
    );
    // A client that has never written has no marker.
    let other = Cluster::over(Arc::new(EtcdStore::new([&*address]).unwrap()));
    let table = other.table::<u32, String>("texts").create_or_open().unwrap();
    let began = now();
    let error = other.transact(|tx| tx.insert(&table, 1_000, String::new())).unwrap_err();
    assert!(error.to_string().contains("database space exceeded"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "it comes at once");
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

#[test]
fn a_server_that_has_no_such_call_denies_it() {
    let Some(store) = super::store() else { return };
    let _alone = lock(&ALONE);
    fresh(&store, "none");
    let answer: Result<Nothing, _> = store.inner.client.call("/another.Service/Call", Nothing {}, soon());
    let error = answer.unwrap_err().of_read(1);
    assert!(matches!(error, StoreError::Denied { .. }), "{error}");
}

#[test]
fn more_than_etcd_takes_is_refused_before_it_is_sent() {
    let Some(store) = super::store() else { return };
    let _alone = lock(&ALONE);
    let limits = store.limits();
    let settings = super::settings(&store, "large");
    let cluster = Cluster::with_settings(Arc::new(store), settings);
    let table = cluster.table::<u32, String>("texts").create_or_open().unwrap();
    let put = |count: u32, length: usize| {
        cluster.transact(|tx| {
            tx.prefetch(&table, 0..count)?;
            (0..count).try_for_each(|key| tx.upsert(&table, key, "x".repeat(length)).map(drop))
        })
    };
    // One change is the marker's.
    let most = limits.changes_max as u32 - 1;
    put(most, 1_000).unwrap();
    // Long keys and values as large as they may be.
    put(1, limits.bytes_max - 1_000).unwrap();
    let sent = cluster.counts().sent;
    let misuse = |count, length| put(count, length).unwrap_err().misuse().unwrap().to_string();
    assert!(misuse(most + 1, 1).contains("1025"), "{}", misuse(most + 1, 1));
    assert!(misuse(1, limits.bytes_max).contains("bytes"));
    assert_eq!(cluster.counts().sent, sent);
}
