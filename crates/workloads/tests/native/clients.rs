//! Clients of a workload, on threads or on the test's own.

use hotrow::sync::thread;
use hotrow::{Engine, Protocol, Worker};
use hotrow_workloads::{Ran, Workload};

/// Runs transactions of one client, and calls `ended` after each.
pub(crate) fn run_client<P: Protocol, W: Workload<P>>(
    workload: &W,
    worker: &mut Worker<P>,
    mut client: W::Client,
    transactions: usize,
    ended: impl Fn(&W::Client, Ran),
) -> W::Client {
    for _ in 0..transactions {
        workload.prepare(&mut client);
        let ran = workload.run_one(worker, &mut client);
        ended(&client, ran);
    }
    client
}

/// Runs `transactions` on each of `threads` workers, and returns the clients.
pub(crate) fn run_clients<P: Protocol, W: Workload<P>>(
    engine: &Engine<P>,
    workload: &W,
    threads: usize,
    transactions: usize,
    ended: impl Fn(&W::Client, Ran) + Sync,
) -> Vec<W::Client> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let ended = &ended;
                scope.spawn(move || {
                    let mut worker = engine.worker().expect("few workers");
                    let client = workload.client(number, threads, 11);
                    run_client(workload, &mut worker, client, transactions, ended)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    })
}
