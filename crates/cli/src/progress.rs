//! The progress bar: on a terminal, none in a pipe. It is drawn on standard error, apart from the results.

use crate::text;
use hotrow_workloads::Observer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Shows how far one run is, until dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar that begins with what is run.
    pub(crate) fn new(what: String) -> Self {
        // Hidden unless standard error is a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} % {wide_msg}");
        bar.set_style(style.expect("the template is a constant that parses"));
        bar.set_prefix(what);
        Self { bar }
    }
}

impl Observer for Progress {
    fn loading(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message("loading");
    }

    fn running(&self, elapsed: Duration, total: Duration, commits: u64) {
        self.bar.set_length(total.as_millis() as u64);
        self.bar.set_position(elapsed.as_millis() as u64);
        let left = total.saturating_sub(elapsed).as_secs();
        self.bar.set_message(format!("{} commits, {left} s left", text::count(commits)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
