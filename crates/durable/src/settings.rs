//! Settings of a log, which are chosen before its database is opened.

use crate::{LogOptions, Progress};
use hotrow_core::Protocol;
use hotrow_tables::{DatabaseBuilder, inside};
use std::num::NonZeroUsize;

/// A function that is told how far recovery is.
type OnProgress = dyn Fn(Progress) + Send + Sync;

/// The properties of a database's log.
#[derive(Default)]
pub(crate) struct LogSettings {
    pub(crate) options: LogOptions,
    pub(crate) checkpoint_after: Option<u64>,
    pub(crate) recovery_threads: Option<NonZeroUsize>,
    pub(crate) on_progress: Option<Box<OnProgress>>,
}

/// The settings of a builder.
pub(crate) fn settings_of<P: Protocol>(builder: &mut DatabaseBuilder<P>) -> &mut LogSettings {
    let settings = inside::builder_extension(builder).get_or_insert_with(|| Box::<LogSettings>::default());
    settings.downcast_mut().expect("durability alone extends builders")
}
