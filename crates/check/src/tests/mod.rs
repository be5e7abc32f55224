//! Tests of the whole checker. They are unit tests, because the checker's blocks are small only in its own test
//! build.

mod anomalies;
mod commuting;
mod execution;
mod files;
mod malformed;
mod opacity;
mod oracle;
mod order;
mod own_order;
mod random;
mod ranges;
mod valid;

use crate::{AnomalyKind, AttemptInProgress, HistoryBuilder, Level, Report, check};

/// A history with an object whose first keys are present from the beginning.
struct Bench {
    history: HistoryBuilder,
    object: u32,
    keys: Vec<u32>,
}

impl Bench {
    /// Makes `there` keys that are present, and after them `absent` keys that are not.
    fn new(there: u8, absent: u8) -> Self {
        let mut history = HistoryBuilder::new("test");
        let object = history.object("table");
        let mut keys: Vec<u32> = (0..there).map(|n| history.key(object, &[n], &n.to_string())).collect();
        keys.extend((there..there + absent).map(|n| history.absent_key(object, &[n], &n.to_string())));
        Bench { history, object, keys }
    }

    fn begin<const N: usize>(&mut self) -> [AttemptInProgress; N] {
        std::array::from_fn(|worker| self.history.begin(worker as u32 + 1))
    }

    fn commit(&mut self, attempts: &[AttemptInProgress]) {
        attempts.iter().for_each(|attempt| self.history.commit(*attempt));
    }

    fn scan_all(&mut self, attempt: AttemptInProgress) {
        self.history.scan(attempt, self.object, std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    }

    fn report(self) -> Report {
        check(&self.history.finish()).unwrap()
    }

    /// Asserts that this is the only anomaly.
    #[track_caller]
    fn finds(self, kind: AnomalyKind, violates: Level) -> Report {
        let report = self.report();
        let found: Vec<_> = report.anomalies.iter().map(|anomaly| anomaly.kind).collect();
        assert_eq!(found, [kind], "{report}");
        assert_eq!(report.anomalies[0].violates, violates, "{report}");
        assert_eq!(report.serializable, violates > Level::Serializable, "{report}");
        assert_eq!(report.strictly_serializable, violates > Level::Strict, "{report}");
        assert!(!report.opaque, "{report}");
        let text = report.to_string();
        assert!(!text.contains("comes before"), "every edge is explained:\n{text}");
        assert!(text.contains(kind.name()));
        report
    }

    #[track_caller]
    fn finds_nothing(self) -> Report {
        let report = self.report();
        assert!(report.anomalies.is_empty(), "{report}");
        assert!(report.serializable && report.strictly_serializable && report.opaque, "{report}");
        report
    }
}
