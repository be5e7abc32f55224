//! A ticket shop on HTTP. All requests may be for one event, whose row is then the hottest of all.
//!
//! - A purchase inserts the ticket first, and takes a seat last, by `subtract_if_enough`: it depends on there being a seat, and not on
//!   how many. Two purchases for the same event do not abort each other until the seats run out.
//! - The seats are a column of their own group, so that nobody who reads an event's price meets those who buy.
//! - The report adds up all events on a snapshot: it never aborts, and no purchase waits for it.
//! - A purchase takes a few microseconds and does not wait for a device, so the handler calls it on the executor's thread, as it would
//!   lock a mutex. The report reads a thousand rows: it has a thread of its own.
//!
//! Over a mutex ([`OverMutex`](rivals::OverMutex)) purchases wait for the report. Over redb ([`OverRedb`](rivals::OverRedb)) they do not,
//! but for each other.
//!
//! ```sh
//! hotrow-examples ticket-shop --serve 127.0.0.1:8080 &
//! curl --data ada@example.com http://127.0.0.1:8080/events/7/tickets
//! curl http://127.0.0.1:8080/report
//! curl http://127.0.0.1:8080/conflicts
//! ```

mod client;

use crate::load::{self, Scenario};
use crate::rivals::ticket_shop as rivals;
use crate::{Store, web};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
pub(crate) use client::Client;
use hotrow::sync::random::Random;
use hotrow::{Database, Direction, Error, MissingRow, Sequence, Snapshot, Table, Value, column_of};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Events; all purchases of the load are for one.
pub(crate) const EVENTS: u32 = 1_000;
/// Seats of each.
pub(crate) const SEATS: u32 = 1_000_000_000;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
struct Event {
    price: u32,
    #[value(group = "seats")]
    free: u32,
}

/// A ticket that was sold.
#[derive(Debug, Clone, PartialEq, Eq, Value)]
struct Ticket {
    event: u32,
    price: u32,
    email: String,
}

/// An end of a purchase without a ticket.
#[derive(Debug)]
pub(crate) enum Refused {
    SoldOut,
    NoSuchEvent,
    Failed(String),
}

/// The body's own error.
#[derive(Debug, thiserror::Error)]
#[error("sold out")]
struct SoldOut;

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        if error.downcast_ref::<SoldOut>().is_some() {
            Self::SoldOut
        } else if error.downcast_ref::<MissingRow>().is_some() {
            Self::NoSuchEvent
        } else {
            Self::Failed(error.to_string())
        }
    }
}

/// What a report adds up.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) events: u64,
    pub(crate) free: u64,
    pub(crate) sold: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events, {} seats free, {} tickets sold", self.events, self.free, self.sold)
    }
}

/// The work behind the web server.
pub(crate) trait Shop: Send + Sync + 'static {
    /// Sells a ticket, and returns its number.
    fn buy(&self, event: u32, email: &str) -> Result<u64, Refused>;
    /// Adds up all events, as they were about a millisecond ago.
    fn report(&self) -> Report;
    /// Adds up all events as they are now, and counts the tickets. For the end, when nobody buys any more.
    fn close(&self) -> (Report, u64);
    /// The conflict report, if there is one.
    fn conflicts(&self) -> Option<String>;
}

/// The shop over Hotrow.
struct OverHotrow {
    db: Database,
    events: Table<u32, Event>,
    tickets: Table<u64, Ticket>,
    numbers: Sequence,
}

impl OverHotrow {
    fn open() -> Result<Self, Error> {
        let db = Database::open()?;
        let events = db.table("events").create()?;
        let tickets = db.table("tickets").hash(1_000_000).create()?;
        let numbers = Sequence::starting_at(&db, "ticket numbers", 1);
        events.bulk_insert((0..EVENTS).map(|event| (event, Event { price: 20, free: SEATS })))?;
        Ok(Self { db, events, tickets, numbers })
    }
}

impl Shop for OverHotrow {
    fn buy(&self, event: u32, email: &str) -> Result<u64, Refused> {
        let email = email.to_owned(); // Outside of the transaction, which may run more than once.
        Ok(self.db.transact(|tx| {
            let price = self.events.read_columns(tx, &event, column_of!(Event, price))?.unwrap_or(0);
            let number = self.numbers.next(tx);
            self.tickets.insert(tx, number, Ticket { event, price, email: email.clone() })?;
            let seat = self.events.subtract_if_enough(tx, &event, column_of!(Event, free), 1)?;
            tx.ensure(seat, SoldOut)?;
            Ok(number)
        })?)
    }

    fn report(&self) -> Report {
        self.report_on(self.db.snapshot().expect("there is a snapshot for everybody"))
    }

    fn close(&self) -> (Report, u64) {
        let report = self.report_on(self.db.snapshot_strict().expect("there is a snapshot for everybody"));
        let counted = self.db.with_worker(|worker| self.tickets.for_each(worker, |_, _| ()));
        (report, counted.expect("the table can be walked"))
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.db))
    }
}

impl OverHotrow {
    fn report_on(&self, snapshot: Snapshot) -> Report {
        let report = snapshot.transact(|tx| {
            let mut report = Report::default();
            self.events.scan(tx, .., Direction::Ascending, |_, event| {
                report.events += 1;
                report.free += u64::from(event.free);
                report.sold += u64::from(SEATS - event.free);
                ControlFlow::Continue(())
            })?;
            Ok(report)
        });
        report.expect("a transaction on a snapshot does not abort")
    }
}

async fn buy(
    State(shop): State<Arc<dyn Shop>>,
    Path(event): Path<u32>,
    email: String,
) -> (StatusCode, String) {
    match shop.buy(event, &email) {
        Ok(number) => (StatusCode::CREATED, number.to_string()),
        Err(Refused::SoldOut) => (StatusCode::CONFLICT, String::from("sold out")),
        Err(Refused::NoSuchEvent) => (StatusCode::NOT_FOUND, String::from("no such event")),
        Err(Refused::Failed(why)) => (StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

/// It reads a thousand rows, so it does not keep an executor's thread from its other tasks.
async fn report(State(shop): State<Arc<dyn Shop>>) -> (StatusCode, String) {
    match spawn_blocking(move || shop.report().to_string()).await {
        Ok(report) => (StatusCode::OK, report),
        Err(panic) => (StatusCode::INTERNAL_SERVER_ERROR, panic.to_string()),
    }
}

async fn conflicts(State(shop): State<Arc<dyn Shop>>) -> String {
    shop.conflicts().unwrap_or_else(|| String::from("none are counted"))
}

fn router(shop: Arc<dyn Shop>) -> axum::Router {
    axum::Router::new()
        .route("/events/{event}/tickets", post(buy))
        .route("/report", get(report))
        .route("/conflicts", get(conflicts))
        .with_state(shop)
}

/// Serves until the process is ended.
pub(crate) fn serve(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let service = web::Service::start(router(Arc::new(OverHotrow::open()?)), address)?;
    println!("serving {EVENTS} events at http://{}", service.address);
    loop {
        std::thread::park();
    }
}

/// The shop under load: each thread is a client with a connection of its own.
struct UnderLoad {
    shop: Arc<dyn Shop>,
    service: web::Service,
    clients: Vec<Mutex<Option<Client>>>,
    reporter: Mutex<Option<Client>>,
}

/// The highest number of clients.
const CLIENTS_MAX: usize = 1024;

impl UnderLoad {
    fn boxed(shop: Arc<dyn Shop>) -> Result<Box<dyn Scenario>, Box<dyn std::error::Error>> {
        let service = web::Service::start(router(shop.clone()), "127.0.0.1:0")?;
        let clients = (0..CLIENTS_MAX).map(|_| Mutex::default()).collect();
        Ok(Box::new(Self { shop, service, clients, reporter: Mutex::default() }))
    }

    /// Sends a request on a client's connection, which is opened at the first one.
    fn request(&self, client: &Mutex<Option<Client>>, head: &str, body: &str) -> (u16, String) {
        let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
        let connect = || Client::connect(self.service.address).expect("the service listens");
        client.get_or_insert_with(connect).request(head, body).expect("the service answers")
    }
}

impl Scenario for UnderLoad {
    fn one(&self, thread: usize, number: u64, _: &mut Random) -> bool {
        let email = format!("client-{thread}-{number}@example.com");
        let (status, _) = self.request(&self.clients[thread], "POST /events/7/tickets", &email);
        assert!(matches!(status, 201 | 409), "status {status}");
        status == 201
    }

    fn beside(&self) -> Option<Duration> {
        let (status, report) = self.request(&self.reporter, "GET /report", "");
        assert!(status == 200 && report.starts_with(&format!("{EVENTS} events")), "{report}");
        Some(Duration::from_millis(10))
    }

    fn check(&self) -> Result<String, String> {
        let (report, tickets) = self.shop.close();
        let seats = u64::from(EVENTS) * u64::from(SEATS);
        if report.sold == tickets && report.sold + report.free == seats {
            Ok(format!("{tickets} tickets for as many seats"))
        } else {
            Err(format!("{report}, but there are {tickets} tickets"))
        }
    }

    fn conflicts(&self) -> Option<String> {
        self.shop.conflicts()
    }
}

pub(crate) const STORES: &[Store] = &[
    Store { name: "hotrow", make: || UnderLoad::boxed(Arc::new(OverHotrow::open()?)) },
    Store { name: "mutex", make: || UnderLoad::boxed(Arc::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || UnderLoad::boxed(Arc::new(rivals::OverRedb::new()?)) },
];
