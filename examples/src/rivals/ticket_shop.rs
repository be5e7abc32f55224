//! The ticket shop over a mutex.

use crate::ticket_shop::{EVENTS, Refused, Report, SEATS, Shop};
use std::collections::HashMap;
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
