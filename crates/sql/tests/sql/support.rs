//! A client that keeps what it is told, and its connections.

use hotrow_sql::values::Datum;
use hotrow_sql::{Client, Connection, Instance, InstanceOptions, Notice, Outcome, SqlError, Start};
use std::sync::Arc;

/// A client without data for `COPY`.
#[derive(Default)]
struct Recorder {
    outcomes: Vec<Outcome>,
}

impl Client for Recorder {
    fn outcome(&mut self, outcome: Outcome) -> Result<(), SqlError> {
        self.outcomes.push(outcome);
        Ok(())
    }

    fn begin_copy_in(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        Ok(())
    }

    fn copy_data(&mut self) -> Result<Option<Vec<u8>>, SqlError> {
        Ok(None)
    }

    fn notice(&mut self, _: Notice) {}

    fn parameter(&mut self, _: &str, _: &str) {}
}

/// An empty database in memory.
pub(crate) fn instance(protocol: &str) -> Instance {
    Instance::open(InstanceOptions { protocol: protocol.to_owned(), ..InstanceOptions::default() }).unwrap()
}

/// A connection, which stays on this thread.
pub(crate) fn connect(instance: &Instance) -> Connection {
    let start = Start {
        user: "postgres".to_owned(),
        database: "postgres".to_owned(),
        parameters: Vec::new(),
        process: 1,
        waker: Arc::new(|| {}),
    };
    instance.connect(start).unwrap()
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Empty => "empty".to_owned(),
        Outcome::Done { tag } => tag.clone(),
        Outcome::Rows { rows, fields, .. } => {
            let value = |(at, value): (usize, &Datum)| match value {
                Datum::Null => "null".to_owned(),
                value => {
                    let mut text = Vec::new();
                    value.write_text(fields[at].ty, &mut text);
                    String::from_utf8(text).unwrap()
                }
            };
            let row = |row: &[Datum]| row.iter().enumerate().map(value).collect::<Vec<_>>().join(",");
            rows.iter().map(|one| row(one)).collect::<Vec<_>>().join(";")
        }
        Outcome::CopyOut { data, .. } => String::from_utf8(data.concat()).unwrap(),
    }
}

/// The results of a text's statements: tags, or rows with `;` between them; and then the code of its error.
pub(crate) fn run(connection: &mut Connection, text: &str) -> Vec<String> {
    let mut client = Recorder::default();
    let result = connection.query(text, &mut client);
    let mut all: Vec<String> = client.outcomes.iter().map(shown).collect();
    if let Err(error) = result {
        all.push(error.code.to_owned());
    }
    all
}
