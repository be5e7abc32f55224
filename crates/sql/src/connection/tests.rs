//! Connections against an instance in memory.

mod blocks;
mod copying;
mod extended;
mod notifications;
mod retries;

use super::{Canceller, Connection};
use crate::error::SqlError;
use crate::instance::{Instance, InstanceOptions};
use crate::outcome::{Client, Notice, Outcome};
use crate::values::Datum;
use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use hotrow::sync::{clock, thread};
use std::collections::VecDeque;
use std::time::Duration;

/// A query that takes minutes.
const LONG: &str = "SELECT a FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE a + b < 0";

/// A client that keeps what it is told.
#[derive(Default)]
struct Recorder {
    outcomes: Vec<Outcome>,
    notices: Vec<Notice>,
    parameters: Vec<(String, String)>,
    copy: VecDeque<Vec<u8>>,
    /// Cancels while the client is sent a result, for longer than a statement has to notice it.
    cancels: Option<Canceller>,
}

impl Client for Recorder {
    fn outcome(&mut self, outcome: Outcome) -> Result<(), SqlError> {
        self.outcomes.push(outcome);
        if let Some(canceller) = &self.cancels {
            canceller.cancel();
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn begin_copy_in(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        Ok(())
    }

    fn copy_data(&mut self) -> Result<Option<Vec<u8>>, SqlError> {
        Ok(self.copy.pop_front())
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn parameter(&mut self, name: &str, value: &str) {
        self.parameters.push((name.to_owned(), value.to_owned()));
    }
}

fn instance() -> Instance {
    Instance::open(InstanceOptions::default()).unwrap()
}

/// A connection, and the number of times that its waker was called.
fn connect_counting(instance: &Instance) -> (Connection, Arc<AtomicUsize>) {
    let wakes = Arc::new(AtomicUsize::new(0));
    let counter = wakes.clone();
    let start = super::Start {
        user: "ada".to_owned(),
        database: "test".to_owned(),
        parameters: Vec::new(),
        process: 7,
        waker: Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }),
    };
    (instance.connect(start).unwrap(), wakes)
}

fn connect(instance: &Instance) -> Connection {
    connect_counting(instance).0
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Empty => "empty".to_owned(),
        Outcome::Done { tag } => tag.clone(),
        Outcome::Rows { rows, fields, .. } => {
            let value = |(value, at): (&Datum, usize)| {
                let mut text = Vec::new();
                match value {
                    Datum::Null => text.extend_from_slice(b"null"),
                    value => value.write_text(fields[at].ty, &mut text),
                }
                String::from_utf8(text).unwrap()
            };
            let row = |row: &[Datum]| {
                let values: Vec<_> = row.iter().zip(0..).map(value).collect();
                values.join(",")
            };
            rows.iter().map(|one| row(one)).collect::<Vec<_>>().join(";")
        }
        Outcome::CopyOut { data, .. } => String::from_utf8(data.concat()).unwrap(),
    }
}

/// The results of a text, and then its error's code.
fn run(connection: &mut Connection, text: &str) -> Vec<String> {
    run_with(connection, text, &mut Recorder::default())
}

fn run_with(connection: &mut Connection, text: &str, client: &mut Recorder) -> Vec<String> {
    client.outcomes.clear();
    let result = connection.query(text, client);
    let mut all: Vec<_> = client.outcomes.iter().map(shown).collect();
    if let Err(error) = result {
        all.push(error.code.to_owned());
    }
    all
}

/// The results of a text of another connection. A thread has one session at a time, so it is on another thread.
fn elsewhere(instance: &Instance, text: &str) -> Vec<String> {
    thread::scope(|scope| scope.spawn(|| run(&mut connect(instance), text)).join().unwrap())
}

/// Runs a text that is cancelled again and again until it ends.
fn run_cancelled(connection: &mut Connection, text: &str) -> Vec<String> {
    let (canceller, is_over) = (connection.canceller(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                canceller.cancel();
                thread::yield_now();
            }
        });
        let ended = run(connection, text);
        is_over.store(true, Ordering::SeqCst);
        ended
    })
}

/// A table `t` with the keys 1 and 2.
fn with_table(instance: &Instance) -> Connection {
    let mut connection = connect(instance);
    let made = run(&mut connection, "CREATE TABLE t (k int PRIMARY KEY, v int)");
    assert_eq!(made, ["CREATE TABLE"]);
    assert_eq!(run(&mut connection, "INSERT INTO t VALUES (1, 10), (2, 20)"), ["INSERT 0 2"]);
    connection
}

#[test]
fn texts_give_the_result_of_each_statement() {
    let mut connection = with_table(&instance());
    assert_eq!(run(&mut connection, ""), ["empty"]);
    assert_eq!(run(&mut connection, " ; -- nothing\n"), ["empty"]);
    assert_eq!(run(&mut connection, "SELECT 1; SELECT k FROM t ORDER BY k;"), ["1", "1;2"]);
    // Nothing runs if a part cannot be parsed.
    assert_eq!(run(&mut connection, "INSERT INTO t VALUES (3, 30); SELEC 1"), ["42601"]);
    // One transaction: the first insertion is undone.
    let both = run(&mut connection, "INSERT INTO t VALUES (3, 30); INSERT INTO t VALUES (1, 10)");
    assert_eq!(both, ["INSERT 0 1", "23505"]);
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2"]);
}

#[test]
fn syntax_errors_name_their_place() {
    let mut connection = connect(&instance());
    let error = connection.query("SELECT 1 +;\nSELECT", &mut Recorder::default()).unwrap_err();
    assert_eq!((error.code, error.position), ("42601", Some(11)));
    assert_eq!(error.message, "syntax error at or near \";\"");
    let error = connection.query("BEGIN ISOLATION", &mut Recorder::default()).unwrap_err();
    assert_eq!(error.message, "syntax error at or near \"ISOLATION\"");
    let error = connection.query("SELECT 'a", &mut Recorder::default()).unwrap_err();
    assert_eq!(error.message, "unterminated quoted string at or near \"'a\"");
}

#[test]
fn settings_are_shown_and_told() {
    let mut connection = connect(&instance());
    let client = &mut Recorder::default();
    assert_eq!(
        run_with(&mut connection, "SET application_name TO 'x'; SHOW application_name", client),
        ["SET", "x"]
    );
    assert_eq!(client.parameters, [("application_name".to_owned(), "x".to_owned())]);
    assert_eq!(run(&mut connection, "SHOW TRANSACTION ISOLATION LEVEL"), ["serializable"]);
    assert_eq!(run(&mut connection, "SET nothing = 1"), ["42704"]);
    assert_eq!(run(&mut connection, "RESET application_name"), ["RESET"]);
    assert_eq!(run(&mut connection, "SHOW application_name"), [""]);
    // Another zone is not supported, which the client hears.
    assert_eq!(run_with(&mut connection, "SET TIME ZONE 'Europe/Berlin'", client), ["SET"]);
    assert_eq!(client.notices.len(), 1);
    assert_eq!(run(&mut connection, "SHOW timezone"), ["UTC"]);
    assert!(
        connection
            .parameters()
            .iter()
            .any(|(name, value)| (*name, value.as_str()) == ("server_encoding", "UTF8"))
    );
}

#[test]
fn a_rollback_undoes_settings() {
    let mut connection = connect(&instance());
    run(&mut connection, "SET application_name = 'before'");
    run(&mut connection, "BEGIN");
    run(&mut connection, "SET application_name = 'within'");
    assert_eq!(run(&mut connection, "SHOW application_name"), ["within"]);
    run(&mut connection, "ROLLBACK");
    assert_eq!(run(&mut connection, "SHOW application_name"), ["before"]);
    run(&mut connection, "BEGIN");
    run(&mut connection, "SET LOCAL application_name = 'local'");
    assert_eq!(run(&mut connection, "SHOW application_name"), ["local"]);
    run(&mut connection, "COMMIT");
    assert_eq!(run(&mut connection, "SHOW application_name"), ["before"]);
}

#[test]
fn statements_end_at_their_timeout() {
    let mut connection = connect(&instance());
    run(&mut connection, "SET statement_timeout = '20ms'");
    let started = clock::now();
    assert_eq!(run(&mut connection, LONG), ["57014"]);
    assert!(started.elapsed().as_secs() < 5);
    assert_eq!(run(&mut connection, "SELECT 1"), ["1"]);
}
