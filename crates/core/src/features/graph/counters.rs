//! The counters of stealable operations.

use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::Counter;

/// Counters of operations on rows that were enqueued for others to steal (stealdb §4), in attempts that committed or not.
/// One operation of several is timed, waits for locks included.
impl Counter {
    /// Operations that their own worker ran.
    pub const OWN_OPERATIONS: Counter =
        Counter::count("own_operations", "stealable operations that their own worker ran");
    /// Operations that workers waiting for it ran.
    pub const STOLEN_OPERATIONS: Counter =
        Counter::count("stolen_operations", "stealable operations that other workers ran");
    /// The share of stolen operations.
    pub const STOLEN_SHARE: Counter = Counter::share(
        "stolen_share",
        "share of stealable operations that other workers ran",
        &Counter::STOLEN_OPERATIONS,
        &Counter::OWN_OPERATIONS,
    );
    /// The mean duration of operations that their own worker ran.
    pub const OWN_MEAN_US: Counter =
        Counter::mean_us("own_mean_us", "mean time of an operation that its own worker ran");
    /// The mean duration of stolen operations.
    pub const STOLEN_MEAN_US: Counter =
        Counter::mean_us("stolen_mean_us", "mean time of an operation that another worker ran");
}

/// The counters of stealable operations.
pub(crate) const COUNTERS: &[Counter] = &[
    Counter::OWN_OPERATIONS,
    Counter::STOLEN_OPERATIONS,
    Counter::STOLEN_SHARE,
    Counter::OWN_MEAN_US,
    Counter::STOLEN_MEAN_US,
];

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Counts an enqueued operation that has run, and its duration, if it was timed.
    pub(crate) fn count_operation(&self, stolen: bool, took_ns: Option<u64>) {
        let (operations, mean) = if stolen {
            const { (Counter::STOLEN_OPERATIONS.place::<P>(), Counter::STOLEN_MEAN_US.place::<P>()) }
        } else {
            const { (Counter::OWN_OPERATIONS.place::<P>(), Counter::OWN_MEAN_US.place::<P>()) }
        };
        self.counters().count(operations);
        if let Some(took_ns) = took_ns {
            self.counters().measure(mean, took_ns);
        }
    }
}
