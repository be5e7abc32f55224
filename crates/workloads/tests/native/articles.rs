//! Articles under every protocol.

use crate::native::clients::run_clients;
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::{Database, Engine, Isolation, Protocol, RetryPolicy};
use hotrow_workloads::articles::ArticlesOptions;
use hotrow_workloads::{Check, End, Unobserved, Workload, WorkloadDefinition as _};

/// Runs `transactions` on each of `threads` workers, and returns the checks. With `lose`, the count of one client is lost.
#[derive(Clone, Copy)]
struct Run {
    options: ArticlesOptions,
    threads: usize,
    transactions: usize,
    lose: bool,
}

impl Visitor for Run {
    type Output = Vec<Check>;

    fn visit<P: Protocol>(self, name: &str) -> Vec<Check> {
        let Self { options, threads, transactions, lose } = self;
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let workload =
            options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("few articles can be loaded");
        let mut clients = run_clients(&engine, &workload, threads, transactions, |_, ran| match ran.end {
            End::Committed => {}
            other => panic!("{}: {other:?} under {name}", workload.kinds()[ran.kind]),
        });
        if lose {
            clients.pop();
        }
        workload.checks(&mut engine.worker().expect("all others are gone"), clients)
    }
}

const OPTIONS: ArticlesOptions = ArticlesOptions {
    articles: 3,
    users: 2,
    comments: 1,
    comments_max: 4,
    theta: 1.0001,
    readers: Isolation::StrictSnapshot,
};

#[test]
fn comments_are_those_that_articles_state_under_every_protocol() {
    let serializable = ArticlesOptions { readers: Isolation::Serializable, ..OPTIONS };
    for (options, threads) in [(OPTIONS, 4), (serializable, 4), (OPTIONS, 1)] {
        let run = Run { options, threads, transactions: 150, lose: false };
        for (protocol, checks) in for_each_protocol(threads as u32, run) {
            assert_eq!(checks.len(), 5);
            assert!(checks.iter().all(|check| check.passed), "{options:?} under {protocol}: {checks:?}");
        }
    }
}

#[test]
fn the_checks_notice_comments_that_nobody_has_added() {
    let run = Run { options: OPTIONS, threads: 1, transactions: 50, lose: true };
    let passed: Vec<_> = run.visit::<hotrow::Occ>("occ").iter().map(|check| check.passed).collect();
    assert_eq!(passed, [true, true, true, true, false]);
}
