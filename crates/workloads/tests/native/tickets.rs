//! The hot-row service under every protocol.

use crate::native::clients::run_clients;
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::atomic::{AtomicUsize, Ordering};
use hotrow::{Database, Engine, Protocol, RetryPolicy};
use hotrow_workloads::tickets::TicketsOptions;
use hotrow_workloads::{Check, End, Unobserved, Workload, WorkloadDefinition as _};

/// Runs `transactions` on each of `threads` workers, and returns the checks and the number of rollbacks. With `lose`, one
/// ticket is forgotten before the checks.
#[derive(Clone, Copy)]
struct Run {
    options: TicketsOptions,
    threads: usize,
    transactions: usize,
    lose: bool,
}

impl Visitor for Run {
    type Output = (Vec<Check>, usize);

    fn visit<P: Protocol>(self, name: &str) -> Self::Output {
        let Self { options, threads, transactions, lose } = self;
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let workload =
            options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("few events can be loaded");
        let rollbacks = AtomicUsize::new(0);
        let mut clients = run_clients(&engine, &workload, threads, transactions, |_, ran| match ran.end {
            End::Committed => {}
            End::RolledBack => _ = rollbacks.fetch_add(1, Ordering::Relaxed),
            End::Failed(message) => panic!("{message}"),
        });
        if lose {
            clients.pop();
        }
        (workload.checks(&mut engine.worker().expect("all others are gone"), clients), rollbacks.into_inner())
    }
}

const OPTIONS: TicketsOptions = TicketsOptions { events: 1, held: 6, report_share: 0.05, capacity: None };

#[test]
fn every_report_adds_up_and_no_seat_is_given_twice_under_every_protocol() {
    for (options, threads) in [(OPTIONS, 4), (TicketsOptions { events: 3, ..OPTIONS }, 4), (OPTIONS, 1)] {
        let run = Run { options, threads, transactions: 150, lose: false };
        for (protocol, (checks, rollbacks)) in for_each_protocol(threads as u32, run) {
            assert_eq!((checks.len(), rollbacks), (3, 0));
            assert!(checks.iter().all(|check| check.passed), "{options:?} under {protocol}: {checks:?}");
        }
    }
}

#[test]
fn a_sold_out_event_sells_no_more_under_every_protocol() {
    let options = TicketsOptions { capacity: Some(3), ..OPTIONS };
    let run = Run { options, threads: 2, transactions: 100, lose: false };
    for (protocol, (checks, rollbacks)) in for_each_protocol(2, run) {
        assert!(rollbacks > 0, "six tickets for each of two clients are more than three ({protocol})");
        assert!(checks.iter().all(|check| check.passed), "{protocol}: {checks:?}");
    }
}

#[test]
fn the_checks_notice_a_ticket_that_nobody_holds() {
    let run = Run { options: OPTIONS, threads: 1, transactions: 21, lose: true };
    let (checks, _) = run.visit::<hotrow::Occ>("occ");
    let passed: Vec<_> = checks.iter().map(|check| check.passed).collect();
    assert_eq!(passed, [true, true, false]);
}
