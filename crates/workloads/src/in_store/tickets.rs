//! The hot-row service in a store.

use super::{Elsewhere, InStore, Transactions, insert_all, load, load_failed};
use crate::tickets::procedures::{Event, TicketTables};
use crate::tickets::{self, TicketsClient, TicketsOptions};
use hotrow_driver::{BaselineRun, BenchError, Check, Ran, RunOutcome};

struct InStoreTickets {
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
    let tables = TicketTables { events: events.reference(), tickets: tickets.reference() };
    store.run(run, InStoreTickets { tables, options: *options })
}

impl Transactions for InStoreTickets {
    type Client = TicketsClient;

    const KINDS: &'static [&'static str] = tickets::KINDS;

    fn client(&self, worker: usize, seed: u64) -> TicketsClient {
        TicketsClient::new(worker, seed)
    }

    fn draw(&self, client: &mut TicketsClient) {
        client.draw(&self.options);
    }

    fn run(&self, site: &mut Elsewhere<'_>, client: &mut TicketsClient) -> Ran {
        tickets::run(site, self.tables, &self.options, client)
    }

    fn check(&self, site: &mut Elsewhere<'_>, clients: &[TicketsClient]) -> Vec<Check> {
        tickets::check(site, self.tables, &self.options, clients)
    }
}
