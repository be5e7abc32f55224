//! The hot-row service in a store.

use super::{InStore, insert_all, load, load_failed};
use crate::tickets::procedures::{Event, TicketTables};
use crate::tickets::{self, TicketsClient, TicketsOptions};
use hotrow::history::History;
use hotrow::{Protocol, Worker};
use hotrow_driver::{BaselineRun, BenchError, Check, Ran, RunOutcome, Workload};

struct InStoreTickets {
    store: InStore,
    tables: TicketTables,
    options: TicketsOptions,
}

/// Runs the workload in the store at an address.
pub(crate) fn run(
    options: &TicketsOptions,
    address: &str,
    run: BaselineRun<'_>,
) -> Result<RunOutcome, BenchError> {
    let store = InStore::open(address, &["events", "tickets"])?;
    let events = store.cluster.table("events").create_or_open().map_err(load_failed)?;
    let tickets = store.cluster.table("tickets").create_or_open().map_err(load_failed)?;
    let rows = || (0..options.events).map(|number| (number, Event::default()));
    load(1, run.observer(), &[Box::new(|| insert_all(&store.cluster, &events, 256, rows()))])?;
    store.record(&run)?;
    let tables = TicketTables { events: events.reference(), tickets: tickets.reference() };
    run.run_in_store(InStoreTickets { store, tables, options: *options })
}

impl<P: Protocol> Workload<P> for InStoreTickets {
    type Client = (TicketsClient, u64);

    fn kinds(&self) -> &'static [&'static str] {
        tickets::KINDS
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Self::Client {
        (TicketsClient::new(worker, seed), 0)
    }

    fn prepare(&self, (client, _): &mut Self::Client) {
        client.draw(&self.options);
    }

    fn run_one(&self, _worker: &mut Worker<P>, (client, aborts): &mut Self::Client) -> Ran {
        tickets::run(&mut self.store.site(aborts), self.tables, &self.options, client)
    }

    fn aborts(&self, _worker: &Worker<P>, (_, aborts): &Self::Client) -> u64 {
        *aborts
    }

    fn history(&self) -> Option<History> {
        self.store.history()
    }

    fn checks(&self, _worker: &mut Worker<P>, clients: Vec<Self::Client>) -> Vec<Check> {
        let clients: Vec<_> = clients.into_iter().map(|(client, _)| client).collect();
        tickets::check(&mut self.store.site(&mut 0), self.tables, &self.options, &clients)
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        0
    }
}
