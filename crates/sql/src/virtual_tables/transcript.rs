//! Statements and their results as lines of text, for tests.

use crate::{Client, Connection, Instance, Notice, Outcome, SqlError, Start};
use std::sync::Arc;

/// A client that writes down what it gets.
#[derive(Default)]
struct Transcript(Vec<String>);

impl Client for Transcript {
    fn outcome(&mut self, outcome: Outcome) -> Result<(), SqlError> {
        match outcome {
            Outcome::Empty | Outcome::CopyOut { .. } => {}
            Outcome::Done { tag } => self.0.push(tag),
            Outcome::Rows { fields, rows, .. } => {
                for row in rows {
                    let shown = row.iter().zip(fields.iter()).map(|(value, field)| value.to_text(field.ty));
                    self.0.push(shown.collect::<Vec<_>>().join("|"));
                }
            }
        }
        Ok(())
    }

    fn begin_copy_in(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        Ok(())
    }

    fn copy_data(&mut self) -> Result<Option<Vec<u8>>, SqlError> {
        Ok(None)
    }

    fn notice(&mut self, notice: Notice) {
        self.0.push(format!("{}: {}", notice.severity, notice.content.message));
    }

    fn parameter(&mut self, _: &str, _: &str) {}
}

/// Connects a client to an instance.
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

/// A client's view of a text: values by columns, tags, notices, and the error with its code, all of one text in one line.
pub(crate) fn ask(connection: &mut Connection, text: &str) -> String {
    let mut transcript = Transcript::default();
    if let Err(error) = connection.query(text, &mut transcript) {
        transcript.0.push(format!("{}: {}", error.code, error.message));
        transcript.0.extend(error.detail.clone());
    }
    transcript.0.join("; ")
}

/// As [`ask`], of a client of its own on another thread: a thread has one open block at most.
pub(crate) fn ask_elsewhere(instance: &Instance, text: &str) -> String {
    hotrow::sync::thread::scope(|scope| scope.spawn(|| ask(&mut connect(instance), text)).join().unwrap())
}
