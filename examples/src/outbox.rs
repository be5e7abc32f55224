//! An outbox: messages that are sent exactly once for each order that has committed, and never for one that has not, although the mail
//! server knows nothing of transactions and the process may be killed at any time.
//!
//! - The order's transaction inserts the message into a table, so that both are there or neither. It does nothing outside of the
//!   database: its body may run several times.
//! - [`on_durable`](hotrow::Transaction) counts the orders that nothing can undo any more. A hook does not take part in the transaction:
//!   it is lost if the process dies first, so a hook alone cannot send. The message is still in the table when it is opened again.
//! - The sender sends a message, and then deletes it. If the process dies between the two, the message is sent again with the same
//!   number, by which the mail server knows it. So it takes effect once.

use crate::Store;
use crate::load::{self, Scenario};
use hotrow::durable::{DurableBuilder, OpenError};
use hotrow::sync::random::Random;
use hotrow::{Database, Direction, Error, Stored, Table, Value};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Value, Stored)]
struct Order {
    customer: u64,
}

/// A message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Value, Stored)]
struct Message {
    to: u64,
    text: String,
}

/// The customer is not known.
#[derive(Debug, thiserror::Error)]
#[error("no such customer")]
struct NoSuchCustomer;

/// A mail server, which takes a message that it knows already for the same.
#[derive(Default)]
struct MailServer {
    delivered: Mutex<BTreeMap<u64, String>>,
    /// Messages that came once more.
    again: AtomicU64,
}

impl MailServer {
    fn send(&self, number: u64, text: String) {
        let mut delivered = self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        if delivered.insert(number, text).is_some() {
            self.again.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Orders, and the messages about them that are not sent yet.
struct Shop {
    db: Database,
    orders: Table<u64, Order>,
    outbox: Table<u64, Message>,
    /// Orders that are durable, as the hook counts them.
    durable: Arc<AtomicU64>,
}

impl Shop {
    fn open(directory: &Path) -> Result<Self, OpenError> {
        let db = Database::builder().open_at(directory)?;
        let orders = db.table("orders").create().expect("the program's only tables");
        let outbox = db.table("outbox").create().expect("the program's only tables");
        Ok(Self { db, orders, outbox, durable: Arc::default() })
    }

    /// Takes an order, with the message about it.
    fn order(&self, number: u64, customer: u64) -> Result<(), Error> {
        let durable = self.durable.clone();
        self.db.transact(move |tx| {
            self.orders.insert(tx, number, Order { customer })?;
            self.outbox.insert(tx, number, Message { to: customer, text: format!("order {number}") })?;
            // After the writes: the message goes with them.
            tx.ensure(customer != 0, NoSuchCustomer)?;
            let durable = durable.clone();
            tx.on_durable(move || _ = durable.fetch_add(1, Ordering::Relaxed));
            Ok(())
        })
    }

    /// Sends some of the messages. True if there may be more.
    fn send(&self, server: &MailServer) -> Result<bool, Error> {
        const AT_ONCE: usize = 100;
        let mut batch = Vec::new();
        self.db.snapshot_strict()?.transact(|tx| {
            batch.clear();
            self.outbox.scan(tx, .., Direction::Ascending, |number, message| {
                batch.push((*number, message.clone()));
                if batch.len() < AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        })?;
        for (number, message) in &batch {
            server.send(*number, format!("to {}: {}", message.to, message.text));
        }
        self.db.transact(|tx| {
            batch.iter().try_for_each(|(number, _)| self.outbox.delete(tx, number).map(|_| ()))
        })?;
        Ok(batch.len() == AT_ONCE)
    }
}

/// The shop under load, in a directory of its own.
struct UnderLoad {
    shop: Shop,
    server: MailServer,
    _directory: TempDir,
}

impl Scenario for UnderLoad {
    fn one(&self, thread: usize, number: u64, random: &mut Random) -> bool {
        // One in ten has no customer, and is rolled back when order and message are written.
        let customer = random.below(10);
        match self.shop.order((thread as u64) << 32 | number, customer) {
            Ok(()) => true,
            Err(Error::Rollback(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn beside(&self) -> Option<Duration> {
        let more = self.shop.send(&self.server).expect("it may try as often as it must");
        Some(if more { Duration::ZERO } else { Duration::from_millis(1) })
    }

    fn check(&self) -> Result<String, String> {
        let shop = &self.shop;
        while shop.send(&self.server).map_err(|error| error.to_string())? {}
        let orders = shop.db.with_worker(|worker| {
            let mut orders = Vec::new();
            shop.orders.for_each(worker, |number, order| orders.push((*number, order.customer)))?;
            Ok::<_, Error>(orders)
        });
        let mut orders = orders.map_err(|error| error.to_string())?;
        orders.sort_unstable();
        let expected: BTreeMap<_, _> = orders
            .iter()
            .map(|(number, customer)| (*number, format!("to {customer}: order {number}")))
            .collect();
        let delivered = self.server.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let (durable, again) =
            (shop.durable.load(Ordering::Relaxed), self.server.again.load(Ordering::Relaxed));
        if *delivered == expected && durable == orders.len() as u64 {
            Ok(format!("{durable} orders, each with one message ({again} were sent again)"))
        } else {
            Err(format!("{} orders, {durable} told durable, {} messages", orders.len(), delivered.len()))
        }
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.shop.db))
    }
}

pub(crate) const STORES: &[Store] = &[Store {
    name: "hotrow",
    make: || {
        let directory = tempfile::tempdir()?;
        let shop = Shop::open(&directory.path().join("shop"))?;
        Ok(Box::new(UnderLoad { shop, server: MailServer::default(), _directory: directory }))
    },
}];
