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

use audit::Audit;
use hotrow::sync::random::Random;
use hotrow::{Database, Error, Procedures, Protocol, Worker};
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

impl Next {
    const KINDS: &'static [&'static str] = &["reserve", "cancel", "report"];

    fn kind(self) -> usize {
        match self {
            Next::Reserve(_) => 0,
            Next::Cancel(_) => 1,
            Next::Report(_) => 2,
        }
    }
}

impl TicketsClient {
    fn new(worker: usize, seed: u64) -> Self {
        let random = Random::stream(seed, worker as u64);
        Self { random, buyer: worker as u32, held: Vec::new(), next: Next::Reserve(0) }
    }

    /// Draws the next transaction.
    #[inline]
    fn draw(&mut self, options: &TicketsOptions) {
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
fn end(result: Result<bool, Error>, contradiction: &str) -> End {
    match result {
        Ok(true) => End::Committed,
        Ok(false) => End::Failed(contradiction.to_owned()),
        Err(error) => End::Failed(error.to_string()),
    }
}

impl<P: Protocol> Tickets<P> {
    fn reserve(&self, worker: &mut Worker<P>, client: &mut TicketsClient, event: u32) -> End {
        let capacity = self.options.capacity.unwrap_or(u64::MAX);
        let reserve = Reserve { tables: self.tables, event, buyer: client.buyer, capacity };
        match self.database.execute_on(worker, &reserve) {
            Ok(Some(seat)) => {
                client.held.push((event, seat));
                End::Committed
            }
            Ok(None) => given_twice(event),
            Err(Error::Rollback(_)) if self.options.capacity.is_some() => End::RolledBack,
            Err(error) => End::Failed(error.to_string()),
        }
    }

    fn cancel(&self, worker: &mut Worker<P>, client: &mut TicketsClient, place: usize) -> End {
        let ticket = client.held[place];
        let result = self.database.execute_on(worker, &Cancel { tables: self.tables, ticket });
        if matches!(result, Ok(true)) {
            client.held.swap_remove(place);
        }
        end(result, NOT_THERE)
    }

    fn report(&self, worker: &mut Worker<P>, event: u32) -> End {
        let report = Report { tables: self.tables, event };
        end(self.database.execute_on(worker, &report), DOES_NOT_ADD_UP)
    }

    /// Compares events, tickets and what the clients hold.
    fn compare(&self, worker: &mut Worker<P>, clients: &[TicketsClient]) -> Result<Vec<Check>, Error> {
        let mut audit = Audit::new(self.options.events);
        let tickets = self.database.table_of(self.tables.tickets);
        tickets.for_each(worker, |key, ticket| audit.ticket(*key, ticket))?;
        let events = self.database.table_of(self.tables.events);
        events.for_each(worker, |number, event| audit.event(*number, event))?;
        Ok(audit.checks(clients))
    }
}

impl<P: Protocol> Workload<P> for Tickets<P> {
    type Client = TicketsClient;

    fn kinds(&self) -> &'static [&'static str] {
        Next::KINDS
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
        let end = match client.next {
            Next::Reserve(event) => self.reserve(worker, client, event),
            Next::Cancel(place) => self.cancel(worker, client, place),
            Next::Report(event) => self.report(worker, event),
        };
        Ran { kind: client.next.kind(), end }
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<TicketsClient>) -> Vec<Check> {
        self.compare(worker, &clients)
            .unwrap_or_else(|error| vec![Check::new("reading all tickets", Err(error.to_string()))])
    }

    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64 {
        let tickets = self.database.table_of(self.tables.tickets).for_each(worker, |_, _| ()).unwrap_or(0);
        payload_bytes(self.options.events.into(), tickets)
    }
}
