//! Counts of what the server does, and their text for Prometheus.

use crate::engine::MetricFamily;
use hotrow_sync::atomic::instrument::{AtomicU64, Ordering::Relaxed};
use hotrow_sync::instrument::{Mutex, lock};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The first words of tags that are counted by themselves; all others are the last.
const KINDS: [&str; 16] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "COPY",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "CREATE",
    "DROP",
    "ALTER",
    "TRUNCATE",
    "SET",
    "other",
];
/// More codes of errors than the engine has.
const CODES_MAX: usize = 512;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub(crate) fn add(&self, number: u64) {
        // Read by nobody but the listener of metrics, which asks for no order.
        self.0.fetch_add(number, Relaxed);
    }

    /// Its value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counts of a server.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: Counter,
    pub(crate) connections_ended: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) accept_errors: Counter,
    pub(crate) cancel_requests: Counter,
    pub(crate) clients_lost: Counter,
    pub(crate) messages_received: Counter,
    pub(crate) bytes_received: Counter,
    pub(crate) bytes_sent: Counter,
    pub(crate) rows_sent: Counter,
    statements: [Counter; KINDS.len()],
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counters {
    /// Counts a statement by its tag.
    pub(crate) fn statement(&self, tag: &str) {
        let word = tag.split(' ').next().unwrap_or_default();
        let kind = KINDS.iter().position(|&kind| kind == word).unwrap_or(KINDS.len() - 1);
        self.statements[kind].add(1);
    }

    /// Counts an error by its code.
    pub(crate) fn error(&self, code: &'static str) {
        let mut errors = lock(&self.errors);
        if errors.len() < CODES_MAX || errors.contains_key(code) {
            *errors.entry(code).or_default() += 1;
        }
    }

    /// The number of errors with this code.
    #[cfg(test)]
    pub(crate) fn errors_of(&self, code: &str) -> u64 {
        lock(&self.errors).get(code).copied().unwrap_or(0)
    }

    /// All counts, and the engine's, in Prometheus' text format.
    pub(crate) fn text(&self, engine: &[MetricFamily]) -> String {
        let mut text = String::new();
        let ended = self.connections_ended.get();
        let open = self.connections.get().saturating_sub(ended);
        let single: [(&str, &str, u64); 11] = [
            ("hotrow_server_connections", "Connections that are open.", open),
            ("hotrow_server_connections_total", "Connections accepted.", self.connections.get()),
            (
                "hotrow_server_connections_refused_total",
                "Connections refused.",
                self.connections_refused.get(),
            ),
            ("hotrow_server_accept_errors_total", "Errors of accept.", self.accept_errors.get()),
            (
                "hotrow_server_cancel_requests_total",
                "Requests to cancel a statement.",
                self.cancel_requests.get(),
            ),
            (
                "hotrow_server_clients_lost_total",
                "Clients that vanished within a statement.",
                self.clients_lost.get(),
            ),
            ("hotrow_server_messages_received_total", "Messages received.", self.messages_received.get()),
            ("hotrow_server_bytes_received_total", "Bytes received.", self.bytes_received.get()),
            ("hotrow_server_bytes_sent_total", "Bytes sent.", self.bytes_sent.get()),
            ("hotrow_server_rows_sent_total", "Rows sent.", self.rows_sent.get()),
            ("hotrow_server_up", "1 while the server runs.", 1),
        ];
        for (name, help, value) in single {
            family(&mut text, name, help, [(String::new(), value as f64)]);
        }
        let statements = KINDS.iter().zip(&self.statements);
        let statements = statements.map(|(kind, count)| (format!("kind=\"{kind}\""), count.get() as f64));
        family(
            &mut text,
            "hotrow_server_statements_total",
            "Statements run, by the tag's first word.",
            statements,
        );
        let errors = lock(&self.errors).clone();
        let errors = errors.into_iter().map(|(code, count)| (format!("sqlstate=\"{code}\""), count as f64));
        family(&mut text, "hotrow_server_errors_total", "Errors sent, by SQLSTATE.", errors);
        for (name, help, values) in engine {
            family(&mut text, name, help, values.iter().cloned());
        }
        text
    }
}

/// Adds a family of metrics.
fn family(text: &mut String, name: &str, help: &str, values: impl IntoIterator<Item = (String, f64)>) {
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in values {
        let _ = match labels.is_empty() {
            true => writeln!(text, "{name} {value}"),
            false => writeln!(text, "{name}{{{labels}}} {value}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_errors_are_counted_by_what_they_are() {
        let counters = Counters::default();
        counters.statement("INSERT 0 1");
        counters.statement("INSERT 0 1");
        counters.statement("VACUUM");
        counters.error("40001");
        let text = counters.text(&[("engine_rows", "Rows.", vec![("table=\"t\"".to_owned(), 2.5)])]);
        for line in [
            "hotrow_server_statements_total{kind=\"INSERT\"} 2",
            "hotrow_server_statements_total{kind=\"other\"} 1",
            "hotrow_server_errors_total{sqlstate=\"40001\"} 1",
            "# TYPE hotrow_server_connections gauge",
            "engine_rows{table=\"t\"} 2.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
