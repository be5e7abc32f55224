//! The progress bar. It is drawn on standard error, apart from the results, and only if that is a terminal.

use crate::host::ThisHost;
use crate::live::LiveScreen;
use crate::text;
use hotrow::sync::{Mutex, lock};
use hotrow_workloads::{LiveView, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Shows the progress of one run until dropped, and ends the run before it uses up the machine's memory.
pub(crate) struct Progress {
    bar: ProgressBar,
    host: Mutex<ThisHost>,
    /// The view of a run that is shown while it goes on.
    live: Option<Mutex<LiveScreen>>,
}

/// The memory that a run must leave free, in bytes. A run that leaves less is ended; otherwise the system would
/// kill the process without a message.
const MEMORY_LEFT_MIN: u64 = 256_000_000;

impl Progress {
    /// A bar with a label of the run.
    pub(crate) fn new(label: String) -> Self {
        // Hidden unless standard error is a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} % {wide_msg}");
        bar.set_style(style.expect("the template is a constant that parses"));
        bar.set_prefix(label);
        Self { bar, host: Mutex::new(ThisHost::new()), live: None }
    }

    /// Shows the run while it goes on, below the bar; in a line a second where there is no terminal.
    pub(crate) fn live(mut self) -> Self {
        let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} %\n{msg}");
        self.bar.set_style(style.expect("the template is a constant that parses"));
        self.live = Some(Mutex::default());
        self
    }

    /// True if nobody sees the bar. Then it is not touched: each drawing allocates, and the number of drawings depends on
    /// the real clock, while a simulation's result may depend on the allocator's placement.
    fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows that `done` of `total` parts are done.
    #[cfg(any(feature = "sim", feature = "stamp"))]
    pub(crate) fn part(&self, done: u64, total: u64) {
        if self.is_hidden() {
            return;
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

impl Observer for Progress {
    fn loading(&self, done: u64, total: u64) {
        if self.is_hidden() {
            return;
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message("loading");
    }

    fn running(&self, elapsed: Duration, total: Duration, commits: u64) {
        if self.is_hidden() {
            return;
        }
        self.bar.set_length(total.as_millis() as u64);
        self.bar.set_position(elapsed.as_millis() as u64);
        if self.live.is_some() {
            return;
        }
        let left = total.saturating_sub(elapsed).as_secs();
        self.bar.set_message(format!("{} commits, {left} s left", text::count(commits)));
    }

    fn is_live(&self) -> bool {
        self.live.is_some()
    }

    fn live(&self, now: LiveView) {
        let Some(screen) = &self.live else { return };
        let mut screen = lock(screen);
        if !self.is_hidden() {
            self.bar.set_message(screen.lines(now).join("\n"));
        } else if let Some(line) = screen.line(now) {
            eprintln!("{line}");
        }
    }

    fn must_end(&self) -> Option<String> {
        let left = lock(&self.host).available_bytes().filter(|left| *left < MEMORY_LEFT_MIN)?;
        Some(format!("the machine has {} of memory left; run for fewer seconds", text::memory(left)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
