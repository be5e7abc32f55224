//! The surroundings of calls.

use super::Run;
use crate::connection::{SessionState, now};
use crate::error::SqlError;
use crate::functions::{Environment, SessionSettings};
use hotrow::sync::clock::{Duration, now as clock};
use hotrow::sync::thread;

/// The longest time for which a sleep does not look whether it was cancelled.
const NAP: Duration = Duration::from_millis(20);

impl Run<'_, '_> {
    /// The surroundings of a call.
    pub(crate) fn environment(&self) -> Environment<'_> {
        Environment {
            now: self.session.transaction_started.get(),
            statement_time: self.session.statement_started.get(),
            user: &self.session.user,
            database: &self.session.database,
            process: self.session.process,
            names: &*self.catalog,
            settings: self.session,
        }
    }
}

impl SessionSettings for SessionState {
    fn setting(&self, name: &str) -> Option<String> {
        Self::setting(self, name)
    }

    fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), SqlError> {
        Self::set(self, name, value, is_local)
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<(), SqlError> {
        Self::notify(self, channel, payload)
    }

    fn clock(&self) -> i64 {
        now()
    }

    fn sleep(&self, time: Duration) -> Result<(), SqlError> {
        let began = clock();
        loop {
            self.check_cancelled()?;
            let left = time.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(NAP));
        }
    }
}
