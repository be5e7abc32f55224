//! No concurrency control: the limit that protocols are measured against, not a protocol.
//!
//! There is one worker at a time, so there is nothing to control. A transaction still does what it must do under any protocol: it finds
//! its own pending writes, keeps them until it commits, and drops them if it rolls back.

use crate::host::{Algorithm, Host, hosts_itself};
use crate::registry::only;
use crate::serial::runs_alone;
use hotrow_core::{Absent, Attempt, Steps, Variant, Variants};

/// No concurrency control, for one worker.
#[derive(Debug)]
pub struct Uncontrolled;

impl Variants for Uncontrolled {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "none",
        summary: "no concurrency control, one worker only: the limit for all others",
        source: "-",
        for_comparison: false,
    }];
    const OPAQUE: bool = true;
    const CONCURRENT: bool = false;
    const WORKERS_MAX: u32 = 1;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self
    }
}

impl Uncontrolled {
    #[inline(always)]
    fn draw_stamp<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        attempt.draw_stamp();
    }
}

// SAFETY: there is one worker, and so one attempt: nobody else installs anything, or reaches a segment that the attempt makes. Each write is
// installed once, in a commit that cannot fail.
unsafe impl Algorithm for Uncontrolled {
    const TRACKS_READS: bool = false;
    type Header = ();
    type Mark = ();
    type Local = ();
}

impl<H: Host<Uncontrolled>> Steps<H> for Uncontrolled {
    runs_alone!();
}

hosts_itself!(Uncontrolled {
    Deferral = Absent,
    Stealing = Absent,
    RangeLocks = Absent,
    LoggedReads = Absent,
    PieceOrder = Absent,
    Elision = Absent,
    Reports = Absent,
});
