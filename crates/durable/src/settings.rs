//! Settings of a log, which are chosen before its database is opened.

use crate::{LogOptions, Progress};
use std::fmt;
use std::num::NonZeroUsize;

/// A function that is told how far recovery is.
type OnProgress = dyn Fn(Progress) + Send + Sync;

/// The properties of a database's log.
#[derive(Default)]
pub struct LogSettings {
    pub(crate) options: LogOptions,
    pub(crate) checkpoint_after: Option<u64>,
    pub(crate) recovery_threads: Option<NonZeroUsize>,
    pub(crate) on_progress: Option<Box<OnProgress>>,
}

impl fmt::Debug for LogSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogSettings").field("options", &self.options).finish_non_exhaustive()
    }
}
