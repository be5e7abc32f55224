//! The hot-row service: seats of an event are reserved and given back, and a report counts them.
//!
//! An event's row has the number of the next seat, the tickets sold and the money taken. A *reservation* changes that row,
//! which gives it a seat, and inserts a ticket for the seat; a *cancellation* changes the row and deletes the ticket; a
//! *report* compares the row with the event's tickets. With one event every transaction needs the same row, and does little
//! else: the case of a service with a hot row, where the time for which the row is held decides everything.
//!
//! Each client gives back what it has reserved, so that the tickets stay few.

mod audit;
mod mutex;
mod options;
pub mod procedures;

pub use options::TicketsOptions;

use crate::site::{Failure, Here, Site};
use audit::Audit;
use hotrow::sync::random::Random;
use hotrow::{Database, Protocol, Worker};
use hotrow_driver::{Check, End, Ran, Workload};
use procedures::{Cancel, Event, Report, Reserve, Ticket, TicketTables};

/// The number of an event, and that of a seat there.
pub type TicketKey = (u32, u64);

/// The loaded tables and their options.
pub struct Tickets<P: Protocol> {
    database: Database<P>,
    tables: TicketTables,
    options: TicketsOptions,
}

/// One worker's next transaction, and the tickets that it holds.
#[derive(Debug, Clone)]
pub struct TicketsClient {
    random: Random,
    buyer: u32,
    held: Vec<TicketKey>,
    next: Next,
}

/// A transaction that has been drawn.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// Reserves a seat of the event.
    Reserve(u32),
    /// Gives back the ticket at this place of those held.
    Cancel(usize),
    /// Compares the event with its tickets.
    Report(u32),
}

/// The names of the transactions' types.
pub(crate) const KINDS: &[&str] = &["reserve", "cancel", "report"];

impl Next {
    fn kind(self) -> usize {
        match self {
            Next::Reserve(_) => 0,
            Next::Cancel(_) => 1,
            Next::Report(_) => 2,
        }
    }
}

impl TicketsClient {
    pub(crate) fn new(worker: usize, seed: u64) -> Self {
        let random = Random::stream(seed, worker as u64);
        Self { random, buyer: worker as u32, held: Vec::new(), next: Next::Reserve(0) }
    }

    /// Draws the next transaction.
    #[inline]
    pub(crate) fn draw(&mut self, options: &TicketsOptions) {
        let TicketsOptions { events, held, report_share, .. } = *options;
        let Self { random, held: mine, next, .. } = self;
        let event = random.below(u64::from(events)) as u32;
        *next = if random.chance(report_share) {
            Next::Report(event)
        } else if mine.len() < held as usize && (mine.is_empty() || random.chance(0.5)) {
            Next::Reserve(event)
        } else {
            Next::Cancel(random.below(mine.len() as u64) as usize)
        };
    }
}

/// The bytes of so many events and tickets.
fn payload_bytes(events: u64, tickets: u64) -> u64 {
    let ticket = size_of::<TicketKey>() + size_of::<Ticket>();
    let event = size_of::<u32>() + size_of::<Event>();
    tickets * ticket as u64 + events * event as u64
}

/// The contradiction of a ticket that a client holds and that cannot be given back.
const NOT_THERE: &str = "a ticket that was reserved is not there";

/// The contradiction of a report.
const DOES_NOT_ADD_UP: &str = "a report does not add up";

/// The end of a reservation that has found its seat taken.
fn given_twice(event: u32) -> End {
    End::Failed(format!("event {event} has given a seat away twice"))
}

/// The end of a transaction whose result must be true.
fn end(result: Result<bool, Failure>, contradiction: &str) -> End {
    match result {
        Ok(true) => End::Committed,
        Ok(false) => End::Failed(contradiction.to_owned()),
        Err(failure) => End::Failed(failure.message),
    }
}

/// Runs the transaction that a client has drawn. Every run goes through this function.
#[inline]
pub(crate) fn run(
    site: &mut impl Site,
    tables: TicketTables,
    options: &TicketsOptions,
    client: &mut TicketsClient,
) -> Ran {
    let end = match client.next {
        Next::Reserve(event) => reserve(site, tables, options.capacity, client, event),
        Next::Cancel(place) => cancel(site, tables, client, place),
        Next::Report(event) => end(site.execute(&Report { tables, event }), DOES_NOT_ADD_UP),
    };
    Ran { kind: client.next.kind(), end }
}

#[inline]
fn reserve(
    site: &mut impl Site,
    tables: TicketTables,
    capacity: Option<u64>,
    client: &mut TicketsClient,
    event: u32,
) -> End {
    let buyer = client.buyer;
    let reserve = Reserve { tables, event, buyer, capacity: capacity.unwrap_or(u64::MAX) };
    match site.execute(&reserve) {
        Ok(Some(seat)) => {
            client.held.push((event, seat));
            End::Committed
        }
        Ok(None) => given_twice(event),
        Err(failure) if failure.is_rollback && capacity.is_some() => End::RolledBack,
        Err(failure) => End::Failed(failure.message),
    }
}

#[inline]
fn cancel(site: &mut impl Site, tables: TicketTables, client: &mut TicketsClient, place: usize) -> End {
    let result = site.execute(&Cancel { tables, ticket: client.held[place] });
    if matches!(result, Ok(true)) {
        client.held.swap_remove(place);
    }
    end(result, NOT_THERE)
}

/// Compares events, tickets and what the clients hold.
pub(crate) fn check(
    site: &mut impl Site,
    tables: TicketTables,
    options: &TicketsOptions,
    clients: &[TicketsClient],
) -> Vec<Check> {
    let mut audit = Audit::new(options.events);
    let mut read = || {
        site.for_each(tables.tickets, |key, ticket| audit.ticket(*key, ticket))?;
        site.for_each(tables.events, |number, event| audit.event(*number, event))
    };
    match read() {
        Ok(_) => audit.checks(clients),
        Err(failure) => vec![Check::new("reading all tickets", Err(failure.message))],
    }
}

impl<P: Protocol> Tickets<P> {
    /// The place where the transactions of a worker run.
    #[inline(always)]
    fn here<'a>(&'a self, worker: &'a mut Worker<P>) -> Here<'a, P> {
        Here { database: &self.database, worker }
    }
}

impl<P: Protocol> Workload<P> for Tickets<P> {
    type Client = TicketsClient;

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn database_of_procedures(&self) -> Option<&Database<P>> {
        Some(&self.database)
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> TicketsClient {
        TicketsClient::new(worker, seed)
    }

    #[inline]
    fn prepare(&self, client: &mut TicketsClient) {
        client.draw(&self.options);
    }

    #[inline]
    fn run_one(&self, worker: &mut Worker<P>, client: &mut TicketsClient) -> Ran {
        run(&mut self.here(worker), self.tables, &self.options, client)
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<TicketsClient>) -> Vec<Check> {
        check(&mut self.here(worker), self.tables, &self.options, &clients)
    }

    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64 {
        let tickets = self.database.table_of(self.tables.tickets).for_each(worker, |_, _| ()).unwrap_or(0);
        payload_bytes(self.options.events.into(), tickets)
    }
}
