//! The transactions as procedures: every protocol can run them, also those that defer operations or let others steal
//! them.

use super::TicketKey;
use hotrow::{Context, Direction, KeyRange, Operations, Procedure, Profile, Stored, TableRef, Value};
use std::ops::ControlFlow;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Value, Stored)]
#[value(inline)]
#[repr(C)]
pub struct Event {
    /// The number of the seat to be given next.
    pub next_seat: u64,
    /// Tickets sold and not given back.
    pub sold: u64,
    /// Money taken for them.
    pub taken: u64,
}

/// A ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
#[repr(C)]
pub struct Ticket {
    /// The client that holds it.
    pub buyer: u32,
    /// Its price.
    pub price: u32,
}

/// The price of a seat, from 10 to 99.
pub fn price(seat: u64) -> u32 {
    10 + (seat % 90) as u32
}

/// The tables.
#[derive(Debug, Clone, Copy)]
pub struct TicketTables {
    /// Events by number.
    pub events: TableRef<u32, Event>,
    /// Tickets by event and seat.
    pub tickets: TableRef<TicketKey, Ticket>,
}

/// Reserves a seat: its output is the seat's number; `None` if the seat has a ticket already, which must not be. Rolls back
/// if the event is sold out.
#[derive(Debug, Clone, Copy)]
pub struct Reserve {
    /// The tables.
    pub tables: TicketTables,
    /// The event.
    pub event: u32,
    /// The client.
    pub buyer: u32,
    /// Tickets that may be sold at a time.
    pub capacity: u64,
}

impl Procedure for Reserve {
    type Output = Option<u64>;

    fn profile(&self) -> Profile {
        Profile { records: 2, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Option<u64>>, C::Stop> {
        let Self { tables, event, buyer, capacity } = *self;
        let (number, capacity) = (cx.value(event), cx.value(capacity));
        let given = cx.update(tables.events, number, capacity, |event: &mut Event, capacity| {
            (event.sold < capacity).then(|| {
                let seat = event.next_seat;
                event.next_seat += 1;
                event.sold += 1;
                event.taken += u64::from(price(seat));
                seat
            })
        })?;
        let seat = cx.map(given, Option::flatten);
        let is_free = cx.map(seat.clone(), |seat| seat.is_some());
        cx.require(is_free)?;
        // A ticket for no seat is never stored: the transaction rolls back.
        let key = cx.map(seat.clone(), move |seat| (event, seat.unwrap_or_default()));
        let ticket =
            cx.map(seat.clone(), move |seat| Ticket { buyer, price: price(seat.unwrap_or_default()) });
        let inserted = cx.insert_grouped(tables.tickets, u64::from(event), key, ticket)?;
        let both = cx.zip(seat, inserted);
        Ok(cx.map(both, |(seat, inserted)| seat.filter(|_| inserted)))
    }
}

/// Gives a ticket back. Its output is false if the ticket or the event was not there, which must not be.
#[derive(Debug, Clone, Copy)]
pub struct Cancel {
    /// The tables.
    pub tables: TicketTables,
    /// The ticket.
    pub ticket: TicketKey,
}

impl Procedure for Cancel {
    type Output = bool;

    fn profile(&self) -> Profile {
        Profile { records: 2, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let (event, seat) = self.ticket;
        let (number, refund) = (cx.value(event), cx.value(u64::from(price(seat))));
        let changed = cx.update(self.tables.events, number, refund, |event: &mut Event, refund| {
            event.sold -= 1;
            event.taken -= refund;
        })?;
        let key = cx.value(self.ticket);
        let deleted = cx.delete(self.tables.tickets, key)?;
        let both = cx.zip(changed, deleted);
        Ok(cx.map(both, |(changed, deleted)| changed.is_some() && deleted))
    }
}

/// Compares an event with its tickets. Its output is true if they agree.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// The tables.
    pub tables: TicketTables,
    /// The event.
    pub event: u32,
}

impl Procedure for Report {
    type Output = bool;

    fn profile(&self) -> Profile {
        Profile::READ_ONLY
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let Self { tables, event } = *self;
        let number = cx.value(event);
        let stated = cx.read(tables.events, number, |event: &Event| (event.sold, event.taken))?;
        let range = cx.value(KeyRange::from((event, 0)..=(event, u64::MAX)));
        let fold = |(sold, taken): &mut (u64, u64), _: &TicketKey, ticket: &Ticket| {
            *sold += 1;
            *taken += u64::from(ticket.price);
            ControlFlow::Continue(())
        };
        let counted = cx.scan(tables.tickets, range, Direction::Ascending, (0, 0), fold)?;
        let both = cx.zip(stated, counted);
        Ok(cx.map(both, |(stated, counted)| stated == Some(counted)))
    }
}
