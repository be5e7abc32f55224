//! The ticket shop over a mutex, and over redb.

use crate::rivals::store::Store;
use crate::ticket_shop::{EVENTS, Refused, Report, SEATS, Shop};
use redb::{ReadableTable, ReadableTableMetadata, TableDefinition};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Everything behind one mutex.
pub(crate) struct OverMutex(Mutex<Counter>);

struct Counter {
    /// Price and free seats by event.
    events: Vec<(u32, u32)>,
    /// Event, price and email by number.
    tickets: HashMap<u64, (u32, u32, String)>,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        let events = vec![(20, SEATS); EVENTS as usize];
        Self(Mutex::new(Counter { events, tickets: HashMap::with_capacity(1_000_000) }))
    }

    fn lock(&self) -> MutexGuard<'_, Counter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shop for OverMutex {
    fn buy(&self, event: u32, email: &str) -> Result<u64, Refused> {
        let email = email.to_owned();
        let counter = &mut *self.lock();
        let (price, free) = counter.events.get_mut(event as usize).ok_or(Refused::NoSuchEvent)?;
        *free = free.checked_sub(1).ok_or(Refused::SoldOut)?;
        let number = counter.tickets.len() as u64 + 1;
        counter.tickets.insert(number, (event, *price, email));
        Ok(number)
    }

    fn report(&self) -> Report {
        let counter = self.lock();
        let free = counter.events.iter().map(|(_, free)| u64::from(*free)).sum();
        let seats = u64::from(EVENTS) * u64::from(SEATS);
        Report { events: counter.events.len() as u64, free, sold: seats - free }
    }

    fn close(&self) -> (Report, u64) {
        (self.report(), self.lock().tickets.len() as u64)
    }

    fn conflicts(&self) -> Option<String> {
        None
    }
}

/// Price and free seats.
const EVENT_ROWS: TableDefinition<'_, u32, (u32, u32)> = TableDefinition::new("events");
/// Event, price and email.
const TICKETS: TableDefinition<'_, u64, (u32, u32, &str)> = TableDefinition::new("tickets");

/// A store whose commits do not wait for the device.
pub(crate) struct OverRedb {
    store: Store,
    next_number: AtomicU64,
}

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::unsynced()?;
        store.fill(EVENT_ROWS, (0..EVENTS).map(|event| (event, (20, SEATS))))?;
        store.fill(TICKETS, [])?;
        Ok(Self { store, next_number: AtomicU64::new(1) })
    }

    fn add_up(&self) -> Result<(Report, u64), redb::Error> {
        let tx = self.store.read()?;
        let mut report = Report::default();
        for entry in tx.open_table(EVENT_ROWS)?.iter()? {
            let (_, free) = entry?.1.value();
            report.events += 1;
            report.free += u64::from(free);
            report.sold += u64::from(SEATS - free);
        }
        Ok((report, tx.open_table(TICKETS)?.len()?))
    }
}

impl Shop for OverRedb {
    fn buy(&self, event: u32, email: &str) -> Result<u64, Refused> {
        let mut why = Refused::SoldOut;
        let sold = self.store.write(|tx| {
            let mut events = tx.open_table(EVENT_ROWS)?;
            let Some((price, free)) = events.get(event)?.map(|row| row.value()) else {
                why = Refused::NoSuchEvent;
                return Ok(None);
            };
            let Some(free) = free.checked_sub(1) else { return Ok(None) };
            events.insert(event, (price, free))?;
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            tx.open_table(TICKETS)?.insert(number, (event, price, email))?;
            Ok(Some(number))
        });
        sold.map_err(|error| Refused::Failed(error.to_string()))?.ok_or(why)
    }

    fn report(&self) -> Report {
        self.close().0
    }

    fn close(&self) -> (Report, u64) {
        self.add_up().expect("the store can be read")
    }

    fn conflicts(&self) -> Option<String> {
        None
    }
}
