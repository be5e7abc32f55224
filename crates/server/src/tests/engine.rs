//! A small engine whose statements show the server at work.

use crate::engine::{Engine, EngineConnection, MetricFamily, Signal, Start};
use hotrow_sql::values::{Datum, Type};
use hotrow_sql::{BlockState, Client, Field, Notice, Outcome, SqlError};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// More than a test takes.
const LONG: Duration = Duration::from_secs(20);

#[derive(Clone, Default)]
pub(super) struct SmallEngine {
    inboxes: Arc<Mutex<HashMap<i32, (Vec<(i32, String, String)>, Signal)>>>,
    pub(super) idle_limit: Option<Duration>,
}

impl SmallEngine {
    pub(super) fn connections(&self) -> usize {
        self.inboxes.lock().unwrap().len()
    }
}

#[derive(Default)]
struct Cancelled {
    flag: Mutex<bool>,
    changed: Condvar,
}

struct Portal {
    text: String,
    rows_given: i32,
}

pub(super) struct SmallConnection {
    engine: SmallEngine,
    start: Start,
    statements: HashMap<String, String>,
    portals: HashMap<String, Portal>,
    state: BlockState,
    has_failed: bool,
    cancelled: Arc<Cancelled>,
}

impl Engine for SmallEngine {
    type Connection = SmallConnection;

    fn connect(&self, start: Start) -> Result<SmallConnection, SqlError> {
        if start.database == "none" {
            return Err(SqlError::new("3D000", "database \"none\" does not exist"));
        }
        self.inboxes.lock().unwrap().insert(start.process, (Vec::new(), Arc::clone(&start.waker)));
        Ok(SmallConnection {
            engine: self.clone(),
            start,
            statements: HashMap::new(),
            portals: HashMap::new(),
            state: BlockState::Idle,
            has_failed: false,
            cancelled: Arc::default(),
        })
    }

    fn metric_families(&self) -> Vec<MetricFamily> {
        vec![("engine_connections", "Connections.", vec![(String::new(), self.connections() as f64)])]
    }
}

impl Drop for SmallConnection {
    fn drop(&mut self) {
        self.engine.inboxes.lock().unwrap().remove(&self.start.process);
    }
}

fn done(tag: &str) -> Outcome {
    Outcome::Done { tag: tag.to_owned() }
}

fn field(name: &str) -> Arc<[Field]> {
    let name = name.into();
    Arc::new([Field { name, ty: Type::Int4, modifier: -1, table: 0, column: 0 }])
}

/// `select 1 2 3` gives three rows; a `$` in a statement is a parameter.
fn fields_of(text: &str) -> Option<Arc<[Field]>> {
    text.starts_with("select").then(|| field("n"))
}

impl SmallConnection {
    fn run(&mut self, text: &str, client: &mut dyn Client) -> Result<Outcome, SqlError> {
        let mut words = text.split_whitespace();
        let command = words.next().unwrap_or_default();
        if self.state == BlockState::Failed && !matches!(command, "rollback" | "commit") {
            return Err(SqlError::new("25P02", "current transaction is aborted"));
        }
        match command {
            "" => Ok(Outcome::Empty),
            "begin" => {
                self.state = BlockState::Open;
                Ok(done("BEGIN"))
            }
            "rollback" | "commit" => {
                self.state = BlockState::Idle;
                self.portals.clear();
                Ok(done(&command.to_uppercase()))
            }
            "select" => {
                let rows: Vec<Box<[Datum]>> = words
                    .map(|word| -> Box<[Datum]> { Box::new([Datum::Int4(word.parse().unwrap_or(0))]) })
                    .collect();
                Ok(Outcome::Rows { fields: field("n"), tag: format!("SELECT {}", rows.len()), rows })
            }
            "many" => {
                let rows = (0..10_000).map(|row| -> Box<[Datum]> { Box::new([Datum::Int4(row)]) }).collect();
                Ok(Outcome::Rows { fields: field("n"), rows, tag: "SELECT 10000".to_owned() })
            }
            "copyout" => {
                let data = vec![b"1\n".to_vec(), b"2\n".to_vec()];
                Ok(Outcome::CopyOut { columns: 1, is_binary: false, data, tag: "COPY 2".to_owned() })
            }
            "copyin" => {
                client.begin_copy_in(2, false)?;
                let mut bytes = 0;
                while let Some(chunk) = client.copy_data()? {
                    if chunk.starts_with(b"bad") {
                        return Err(SqlError::new("22P04", "bad data"));
                    }
                    bytes += chunk.len();
                }
                Ok(done(&format!("COPY {bytes}")))
            }
            "notice" => {
                client.notice(Notice {
                    severity: "NOTICE",
                    content: SqlError::new("00000", "look").hint("there"),
                });
                client.parameter("TimeZone", "UTC");
                Ok(done("DO"))
            }
            "notify" => {
                for (inbox, waker) in self.engine.inboxes.lock().unwrap().values_mut() {
                    inbox.push((self.start.process, "news".to_owned(), "told".to_owned()));
                    waker();
                }
                Ok(done("NOTIFY"))
            }
            "sleep" => {
                let flag = self.cancelled.flag.lock().unwrap();
                let (mut flag, timeout) =
                    self.cancelled.changed.wait_timeout_while(flag, LONG, |flag| !*flag).unwrap();
                assert!(!timeout.timed_out(), "nobody has cancelled the statement");
                *flag = false;
                Err(SqlError::new("57014", "canceling statement due to user request"))
            }
            "panic" => panic!("as the test wants"),
            _ => Err(SqlError::new("42601", format!("syntax error at or near \"{command}\"")).at(1)),
        }
    }

    fn noted<R>(&mut self, result: Result<R, SqlError>) -> Result<R, SqlError> {
        if result.is_err() {
            self.fail();
        }
        result
    }
}

impl EngineConnection for SmallConnection {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = vec![("server_version", "15.0".to_owned()), ("user", self.start.user.clone())];
        parameters.push(("database", self.start.database.clone()));
        parameters
            .extend(self.start.parameters.iter().map(|(name, value)| ("setting", format!("{name}={value}"))));
        parameters
    }

    fn canceller(&self) -> Signal {
        let cancelled = Arc::clone(&self.cancelled);
        Arc::new(move || {
            *cancelled.flag.lock().unwrap() = true;
            cancelled.changed.notify_all();
        })
    }

    fn query(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError> {
        for statement in text.split(';') {
            let result = self.run(statement, client);
            let outcome = self.noted(result)?;
            client.outcome(outcome)?;
        }
        Ok(())
    }

    fn parse(&mut self, name: &str, text: &str, _: &[u32]) -> Result<(), SqlError> {
        let result = match text.starts_with("wrong") {
            true => Err(SqlError::new("42601", "syntax error").at(1)),
            false => Ok(()),
        };
        self.noted(result)?;
        self.statements.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    fn parameter_types(&self, statement: &str) -> Result<Arc<[Type]>, SqlError> {
        let text =
            self.statements.get(statement).ok_or_else(|| SqlError::new("26000", "no such statement"))?;
        Ok(text.matches('$').map(|_| Type::Int4).collect())
    }

    fn describe_statement(&mut self, name: &str) -> Result<Option<Arc<[Field]>>, SqlError> {
        let result = self.statements.get(name).ok_or_else(|| SqlError::new("26000", "no such statement"));
        result.map(|text| fields_of(text))
    }

    fn bind(&mut self, portal: &str, statement: &str, parameters: Vec<Datum>) -> Result<(), SqlError> {
        let mut text = self.statements[statement].clone();
        for parameter in parameters {
            let value = match parameter {
                Datum::Int4(value) => value.to_string(),
                _ => "null".to_owned(),
            };
            text = text.replacen('$', &value, 1);
        }
        self.portals.insert(portal.to_owned(), Portal { text, rows_given: 0 });
        Ok(())
    }

    fn describe_portal(&mut self, portal: &str) -> Result<Option<Arc<[Field]>>, SqlError> {
        let result = self.portals.get(portal).ok_or_else(|| SqlError::new("34000", "no such portal"));
        result.map(|portal| fields_of(&portal.text))
    }

    fn execute(
        &mut self,
        portal: &str,
        rows_max: usize,
        _: bool,
        client: &mut dyn Client,
    ) -> Result<(Outcome, bool), SqlError> {
        let Some(found) = self.portals.get_mut(portal) else {
            self.fail();
            return Err(SqlError::new("34000", "no such portal"));
        };
        let given = found.rows_given as usize;
        found.rows_given += rows_max as i32;
        let text = found.text.clone();
        let result = self.run(&text, client);
        let outcome = self.noted(result)?;
        Ok(match outcome {
            Outcome::Rows { fields, rows, .. } => {
                let left = rows.len().saturating_sub(given);
                let count = if rows_max == 0 { left } else { left.min(rows_max) };
                let rows: Vec<_> = rows.into_iter().skip(given).take(count).collect();
                (
                    Outcome::Rows { fields, tag: format!("SELECT {}", rows.len()), rows },
                    rows_max != 0 && left >= rows_max,
                )
            }
            other => (other, false),
        })
    }

    fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    fn sync(&mut self) -> Result<(), SqlError> {
        if std::mem::take(&mut self.has_failed) && self.state == BlockState::Open {
            self.state = BlockState::Failed;
        }
        if self.state == BlockState::Idle {
            self.portals.clear();
        }
        Ok(())
    }

    fn fail(&mut self) {
        if self.state == BlockState::Open {
            self.state = BlockState::Failed;
        }
    }

    fn state(&self) -> BlockState {
        self.state
    }

    fn idle_limit(&self) -> Option<Duration> {
        self.engine.idle_limit
    }

    fn take_notifications(&mut self) -> Vec<(i32, String, String)> {
        let mut inboxes = self.engine.inboxes.lock().unwrap();
        inboxes.get_mut(&self.start.process).map(|(inbox, _)| std::mem::take(inbox)).unwrap_or_default()
    }
}
