//! The hot-row service without Hotrow: one mutex around everything.

use super::audit::Audit;
use super::procedures::{Event, Ticket, price};
use super::{
    DOES_NOT_ADD_UP, NOT_THERE, Next, TicketKey, TicketsClient, TicketsOptions, given_twice, payload_bytes,
};
use hotrow::sync::{Mutex, lock};
use hotrow::{Protocol, Worker};
use hotrow_driver::{BaselineInfo, Check, End, Ran, Workload};
use std::collections::BTreeMap;

pub(super) const ONE_MUTEX: BaselineInfo =
    BaselineInfo { name: "one-mutex", summary: "one mutex around two ordered maps" };

/// The events and tickets behind one mutex.
pub(super) struct OneMutex {
    maps: Mutex<Maps>,
    options: TicketsOptions,
}

struct Maps {
    events: BTreeMap<u32, Event>,
    tickets: BTreeMap<TicketKey, Ticket>,
}

impl Maps {
    fn event(&mut self, number: u32) -> Result<&mut Event, End> {
        self.events.get_mut(&number).ok_or_else(|| End::Failed(format!("event {number} is not there")))
    }

    /// Returns the seat.
    fn reserve(&mut self, number: u32, buyer: u32, capacity: Option<u64>) -> Result<u64, End> {
        let event = self.event(number)?;
        if capacity.is_some_and(|capacity| event.sold >= capacity) {
            return Err(End::RolledBack);
        }
        let seat = event.next_seat;
        event.next_seat += 1;
        event.sold += 1;
        event.taken += u64::from(price(seat));
        match self.tickets.insert((number, seat), Ticket { buyer, price: price(seat) }) {
            None => Ok(seat),
            Some(_) => Err(given_twice(number)),
        }
    }

    fn cancel(&mut self, ticket: TicketKey) -> Result<(), End> {
        let event = self.event(ticket.0)?;
        event.sold -= 1;
        event.taken -= u64::from(price(ticket.1));
        match self.tickets.remove(&ticket) {
            Some(_) => Ok(()),
            None => Err(End::Failed(String::from(NOT_THERE))),
        }
    }

    fn report(&mut self, number: u32) -> Result<(), End> {
        let Event { sold, taken, .. } = *self.event(number)?;
        let tickets = self.tickets.range((number, 0)..=(number, u64::MAX));
        let counted =
            tickets.fold((0, 0), |(sold, taken), (_, ticket)| (sold + 1, taken + u64::from(ticket.price)));
        if counted == (sold, taken) { Ok(()) } else { Err(End::Failed(String::from(DOES_NOT_ADD_UP))) }
    }
}

impl OneMutex {
    pub(super) fn new(options: TicketsOptions) -> Self {
        let events = (0..options.events).map(|number| (number, Event::default())).collect();
        Self { maps: Mutex::new(Maps { events, tickets: BTreeMap::new() }), options }
    }

    fn run(&self, client: &mut TicketsClient) -> Result<(), End> {
        match client.next {
            Next::Reserve(event) => {
                let seat = lock(&self.maps).reserve(event, client.buyer, self.options.capacity)?;
                client.held.push((event, seat));
            }
            Next::Cancel(place) => {
                lock(&self.maps).cancel(client.held[place])?;
                client.held.swap_remove(place);
            }
            Next::Report(event) => lock(&self.maps).report(event)?,
        }
        Ok(())
    }
}

impl<P: Protocol> Workload<P> for OneMutex {
    type Client = TicketsClient;

    fn kinds(&self) -> &'static [&'static str] {
        super::KINDS
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> TicketsClient {
        TicketsClient::new(worker, seed)
    }

    #[inline]
    fn prepare(&self, client: &mut TicketsClient) {
        client.draw(&self.options);
    }

    #[inline]
    fn run_one(&self, _worker: &mut Worker<P>, client: &mut TicketsClient) -> Ran {
        let end = self.run(client).map_or_else(|end| end, |()| End::Committed);
        Ran { kind: client.next.kind(), end }
    }

    fn checks(&self, _worker: &mut Worker<P>, clients: Vec<TicketsClient>) -> Vec<Check> {
        let Maps { events, tickets } = &*lock(&self.maps);
        let mut audit = Audit::new(self.options.events);
        tickets.iter().for_each(|(key, ticket)| audit.ticket(*key, ticket));
        events.iter().for_each(|(number, event)| audit.event(*number, event));
        audit.checks(&clients)
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        payload_bytes(self.options.events.into(), lock(&self.maps).tickets.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow::{Engine, Occ};

    const OPTIONS: TicketsOptions =
        TicketsOptions { events: 2, held: 4, report_share: 0.1, capacity: Some(3) };

    #[test]
    fn the_checks_notice_a_ticket_that_is_lost_and_a_wrong_count() {
        let engine = Engine::<Occ>::new();
        let mut worker = engine.worker().unwrap();
        let harms: [(fn(&mut Maps), _); 3] = [
            (|_| (), [true; 3]),
            (|maps| _ = maps.tickets.pop_first().expect("some are held"), [true, false, false]),
            (|maps| maps.events.get_mut(&1).expect("it is there").sold += 1, [true, false, true]),
        ];
        for (harm, expected) in harms {
            let service = OneMutex::new(OPTIONS);
            let mut client = TicketsClient::new(0, 7);
            let mut ends = Vec::new();
            while ends.len() < 200 || client.held.is_empty() {
                Workload::<Occ>::prepare(&service, &mut client);
                ends.push(service.run_one(&mut worker, &mut client).end);
            }
            assert!(ends.iter().all(|end| matches!(end, End::Committed | End::RolledBack)), "{ends:?}");
            assert!(ends.contains(&End::RolledBack), "four tickets are more than three");
            harm(&mut lock(&service.maps));
            let checks = service.checks(&mut worker, vec![client]);
            assert_eq!(checks.iter().map(|check| check.passed).collect::<Vec<_>>(), expected, "{checks:?}");
        }
    }
}
