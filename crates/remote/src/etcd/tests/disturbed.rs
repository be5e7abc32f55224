//! Clients that go on while servers are killed and paused.

use super::super::messages::TxnRequest;
use super::{ALONE, settings, soon, store};
use crate::tests::bank::{self, Load, Mix, SharedBank};
use crate::tests::tickets::Tickets;
use crate::{Cluster, EtcdStore, Settings};
use hotrow_sync::atomic::{AtomicBool, Ordering};
use hotrow_sync::clock::{Duration, now};
use hotrow_sync::{Arc, lock, thread};
use std::process::Command;

/// The time for which servers are disturbed, unless the environment has another one in `HOTROW_ETCD_SECONDS`.
const SECONDS: u64 = 16;

#[derive(Clone, PartialEq, prost::Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<Member>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Member {
    #[prost(uint64, tag = "2")]
    member_id: u64,
}

/// The servers, counted from 1.
struct Servers {
    addresses: Vec<String>,
}

impl Servers {
    /// The servers, if the environment says how they are started again.
    fn find() -> Option<Self> {
        if std::env::var("HOTROW_ETCD_START").is_err() {
            eprintln!("skipped: HOTROW_ETCD_START does not say how a server is started again");
            return None;
        }
        let addresses = std::env::var("HOTROW_ETCD").unwrap();
        Some(Self { addresses: addresses.split(',').map(str::to_owned).collect() })
    }

    /// The number of the server that leads the others; 1 if there is none at the moment.
    fn leader(&self) -> usize {
        let leads = |address: &String| {
            let server = EtcdStore::new([address.as_str()]).unwrap();
            let status: Result<StatusResponse, _> = server.inner.client.call(
                "/etcdserverpb.Maintenance/Status",
                StatusRequest {},
                now() + Duration::from_millis(500),
            );
            status.is_ok_and(|status| status.header.is_some_and(|member| member.member_id == status.leader))
        };
        1 + self.addresses.iter().position(leads).unwrap_or(0)
    }

    fn signal(&self, server: usize, name: &str) {
        let place = std::env::var("HOTROW_ETCD_PIDS").unwrap();
        let process = std::fs::read_to_string(format!("{place}/{server}.pid")).unwrap();
        Command::new("kill").args([format!("-{name}"), process.trim().to_owned()]).status().unwrap();
    }

    fn start(&self, server: usize) {
        let start = std::env::var("HOTROW_ETCD_START").unwrap();
        assert!(Command::new(start).arg(server.to_string()).status().unwrap().success());
    }

    /// Kills the leader every five seconds and starts it again, and pauses another server in between. Returns the number of rounds.
    fn disturb(&self, is_over: &AtomicBool) -> usize {
        let mut rounds = 0;
        while !is_over.load(Ordering::Acquire) {
            let leader = self.leader();
            self.signal(leader, "KILL");
            thread::sleep(Duration::from_millis(1_500));
            self.start(leader);
            thread::sleep(Duration::from_millis(1_000));
            let other = 1 + (leader + rounds % 2) % 3;
            self.signal(other, "STOP");
            thread::sleep(Duration::from_millis(2_000));
            self.signal(other, "CONT");
            thread::sleep(Duration::from_millis(500));
            rounds += 1;
        }
        rounds
    }
}

#[test]
fn a_bank_and_tickets_are_strictly_serializable_while_the_leader_is_killed_and_servers_are_paused() {
    let Some(one) = store() else { return };
    let Some(servers) = Servers::find() else { return };
    let _alone = lock(&ALONE);
    let seconds = std::env::var("HOTROW_ETCD_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let settings = Settings { deadline: Duration::from_secs(120), ..settings(&one, "disturbed") };
    // Each client has connections of its own.
    let client = |store| Cluster::with_settings(Arc::new(store), settings.clone());
    let clients = [client(one), client(store().unwrap())];
    let recording = clients[0].record().unwrap();
    clients[1].record_with(&recording).unwrap();
    let end = now() + Duration::from_secs(seconds);
    let load = Load { end: Some(end), ..Load::of(4, u64::MAX, 2, Mix::All) };
    let bank = SharedBank::open(&clients, load).unwrap();
    let tickets = Tickets::open(&clients, u64::MAX).unwrap();
    let is_over = AtomicBool::new(false);
    let (rounds, done, purchases) = thread::scope(|scope| {
        let disturbing = scope.spawn(|| servers.disturb(&is_over));
        let (bank, tickets) = (&bank, &tickets);
        let workers: Vec<_> =
            (0..load.threads).map(|worker| scope.spawn(move || bank.work(worker))).collect();
        let buyers: Vec<_> = (0..4).map(|buyer| scope.spawn(move || tickets.buy(buyer, Some(end)))).collect();
        let done: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        let purchases: Vec<_> = buyers.into_iter().map(|buyer| buyer.join().unwrap()).collect();
        is_over.store(true, Ordering::Release);
        (disturbing.join().unwrap(), done, purchases)
    });
    let done: Vec<i64> = done.into_iter().collect::<Result<_, _>>().unwrap();
    let purchases: Vec<u64> = purchases.into_iter().collect::<Result<_, _>>().unwrap();
    println!(
        "{rounds} rounds, {done:?} counted, {purchases:?} tickets, {:?}",
        clients.each_ref().map(Cluster::counts)
    );
    assert!(rounds as u64 >= seconds / 6, "the leader was killed every five seconds");
    assert!(
        done.iter().all(|done| *done > 0) && purchases.iter().all(|count| *count > 0),
        "all have gone on"
    );
    bank.judge(&done).unwrap();
    tickets.judge(&purchases).unwrap();
    bank::judge(recording).unwrap();
    // Others need all servers.
    for address in &servers.addresses {
        let server = EtcdStore::new([address.as_str()]).unwrap();
        let answers = || server.inner.txn(TxnRequest::default(), soon()).is_ok();
        while !answers() {
            thread::sleep(Duration::from_millis(50));
        }
    }
}
