//! Options of the hot-row service.

use super::Tickets;
use super::mutex::{ONE_MUTEX, OneMutex};
use super::procedures::{Cancel, Event, Report, Reserve, TicketTables};
use crate::traces;
use hotrow::chopping::Chopping;
use hotrow::{Database, Procedures, Protocol};
use hotrow_driver::{
    BaselineRun, BenchError, Observer, OptionError, OptionInfo, OptionValues, Refinement, RunOutcome,
    WorkloadDefinition, WorkloadInfo, finish,
};
use serde::Serialize;

/// The events and the shape of the load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TicketsOptions {
    /// Number of events, at least 1. With 1 all transactions need the same row.
    pub events: u32,
    /// Tickets that each client holds at most, at least 1.
    pub held: u32,
    /// Share of reports, from 0 to 1; the others reserve or cancel.
    pub report_share: f64,
    /// Tickets of an event that may be sold at a time; `None` if there is no limit. A reservation beyond it rolls back.
    pub capacity: Option<u64>,
}

/// Value of `capacity` that sets no limit.
const UNLIMITED: &str = "unlimited";

/// Memory in use per event, in bytes: the record and its entry in the index.
const EVENT_BYTES: u64 = 96;

impl WorkloadDefinition for TicketsOptions {
    type Loaded<P: Protocol> = Tickets<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "tickets",
        summary: "reservations and cancellations of an event's seats: one hot row and an insertion; reports that must add up",
        source: "Hotrow's own",
        runs_procedures: true,
        is_durable: true,
        options: &[
            OptionInfo {
                name: "events",
                value: "N",
                default: "1",
                summary: "Events, from 1 to 10^7; all transactions need the row of the only one",
            },
            OptionInfo {
                name: "held",
                value: "N",
                default: "32",
                summary: "Tickets that each client holds at most, from 1 to 10^6",
            },
            OptionInfo {
                name: "report-share",
                value: "S",
                default: "0.01",
                summary: "The share of reports, from 0 to 1; the others reserve or cancel",
            },
            OptionInfo {
                name: "capacity",
                value: "N",
                default: UNLIMITED,
                summary: "Tickets of an event at a time, from 1 to 10^12; a reservation beyond it rolls back",
            },
        ],
        baselines: &[ONE_MUTEX],
        example: "--report-share 0",
    };
    const MEASURES_LIMIT: bool = true;

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            events: values.number("events", 1..=10_000_000)?,
            held: values.number("held", 1..=1_000_000)?,
            report_share: values.number("report-share", 0.0..=1.0)?,
            capacity: values.number_or("capacity", UNLIMITED, 1..=1_000_000_000_000)?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        u64::from(self.events) * EVENT_BYTES
    }

    fn chopping(&self, refinement: Refinement) -> Option<Result<Chopping, BenchError>> {
        Some(self.chopped(refinement))
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Tickets<P>, BenchError> {
        observer.loading(0, 1);
        let events = database.table("events").load().expect("a new name");
        if events.is_new() {
            (0..self.events)
                .try_for_each(|number| events.insert(number, Event::default()))
                .map_err(|error| BenchError::Load(error.to_string()))?;
        }
        let events = finish(events)?;
        let tickets = database.table("tickets").create().expect("a new name");
        let tables = TicketTables { events: events.reference(), tickets: tickets.reference() };
        observer.loading(1, 1);
        Ok(Tickets { database: database.clone(), tables, options: *self })
    }

    fn run_baseline(&self, name: &str, run: BaselineRun<'_>) -> Option<Result<RunOutcome, BenchError>> {
        (name == ONE_MUTEX.name).then(|| run.run(|| OneMutex::new(*self)))
    }

    #[cfg(feature = "remote")]
    fn run_in_store(&self, address: &str, run: BaselineRun<'_>) -> Option<Result<RunOutcome, BenchError>> {
        Some(crate::in_store::run_tickets(self, address, run))
    }
}

impl TicketsOptions {
    fn chopped(&self, refinement: Refinement) -> Result<Chopping, BenchError> {
        let loaded = traces::load_small(&Self { events: 1, ..*self })?;
        let (database, tables) = (&loaded.database, loaded.tables);
        let reserve = Reserve { tables, event: 0, buyer: 0, capacity: 1 };
        let cancel = Cancel { tables, ticket: (0, 0) };
        // A ticket that can be given back.
        let reserved = database.execute(&reserve);
        reserved.map_err(|error| BenchError::Load(error.to_string()))?;
        let chopping = Chopping::new()
            .procedure("cancel", [traces::trace(database, &cancel)?])
            .procedure("reserve", [traces::trace(database, &Reserve { capacity: 2, ..reserve })?])
            .procedure("report", [traces::trace(database, &Report { tables, event: 0 })?]);
        let on_snapshots = refinement >= Refinement::Snapshots;
        Ok(if on_snapshots { chopping.readers_on_snapshots() } else { chopping })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_read_and_reported() {
        let given = |options: &[(&str, &str)]| json!(TicketsOptions::from_given(options).unwrap());
        let hot = json!({ "events": 1, "held": 32, "report_share": 0.01, "capacity": null });
        assert_eq!(given(&[]), hot);
        let many = json!({ "events": 7, "held": 2, "report_share": 0.5, "capacity": 3 });
        let options = [("events", "7"), ("held", "2"), ("report-share", "0.5"), ("capacity", "3")];
        assert_eq!(given(&options), many);
    }
}
