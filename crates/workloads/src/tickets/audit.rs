//! The check of events, tickets and what the clients hold.

use super::procedures::{Event, Ticket};
use super::{TicketKey, TicketsClient};
use hotrow_driver::Check;
use std::collections::BTreeSet;

/// The findings after a run: first all tickets, then all events.
pub(super) struct Audit {
    /// For each event the number of its tickets, and their prices together.
    found: Vec<(u64, u64)>,
    tickets: BTreeSet<TicketKey>,
    /// Number of events.
    events: u64,
    /// The contradiction between an event and its tickets.
    differing: Option<String>,
}

impl Audit {
    pub(super) fn new(events: u32) -> Self {
        let found = vec![(0, 0); events as usize];
        Self { found, tickets: BTreeSet::new(), events: 0, differing: None }
    }

    pub(super) fn ticket(&mut self, key: TicketKey, ticket: &Ticket) {
        let (sold, taken) = &mut self.found[key.0 as usize];
        *sold += 1;
        *taken += u64::from(ticket.price);
        self.tickets.insert(key);
    }

    pub(super) fn event(&mut self, number: u32, event: &Event) {
        self.events += 1;
        let (sold, taken) = self.found[number as usize];
        if (event.sold, event.taken) != (sold, taken) {
            let Event { sold: stated, taken: money, .. } = event;
            self.differing = Some(format!(
                "event {number} states {stated} tickets for {money}; there are {sold} for {taken}"
            ));
        }
    }

    pub(super) fn checks(self, clients: &[TicketsClient]) -> Vec<Check> {
        let Self { found, tickets, events, differing } = self;
        let all_there = match found.len() as u64 {
            expected if expected == events => Ok(()),
            expected => Err(format!("{events} events of {expected} are there")),
        };
        let held: BTreeSet<_> = clients.iter().flat_map(|client| &client.held).copied().collect();
        let kept = match held.symmetric_difference(&tickets).next() {
            None => Ok(()),
            Some((event, seat)) if tickets.contains(&(*event, *seat)) => {
                Err(format!("nobody holds the ticket for seat {seat} of event {event}"))
            }
            Some((event, seat)) => Err(format!("the ticket for seat {seat} of event {event} is lost")),
        };
        vec![
            Check::new("all events are there", all_there),
            Check::new("each event's counts = its tickets", differing.map_or(Ok(()), Err)),
            Check::new("tickets = reservations that were not cancelled", kept),
        ]
    }
}
