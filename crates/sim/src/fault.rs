//! Faults: cores that stop for a long time, and cores that die.

use crate::random::Random;

/// The faults of a run. The run's seed decides at which steps they strike.
///
/// A fault strikes the core that is about to make a certain step, counted over all cores. The steps are drawn
/// uniformly from the first [`within_steps`](Self::within_steps), so a core that makes more steps is struck more
/// often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The number of times that a core stops, as if the operating system had preempted it.
    pub stops: u32,
    /// The longest stop, in virtual nanoseconds. Each stop is drawn uniformly between a tenth of it and all of
    /// it.
    pub stop_ns_max: u64,
    /// The number of cores that die. Core 0 can die like any other; the last core alive does not.
    ///
    /// A dead core never makes another step. Its stack is neither unwound nor freed, because a thread that dies
    /// (or a machine that fails) runs no destructor: its locks stay locked, and what it owned leaks. It no
    /// longer touches what it borrowed, so that may be dropped. If it dies while it unwinds from a panic,
    /// `panicking()` of the standard library stays true in this thread.
    pub kills: u32,
    /// The number of steps, from the first, among which the faults are drawn.
    pub within_steps: u64,
}

impl Faults {
    /// No faults.
    pub const NONE: Self = Self { stops: 0, stop_ns_max: 0, kills: 0, within_steps: 0 };

    /// Draws the faults of one run with their steps, the latest first.
    pub(crate) fn draw(&self, seed: u64) -> Vec<(u64, Fault)> {
        let mut random = Random::stream(seed, 3);
        let mut drawn = Vec::new();
        for _ in 0..self.stops {
            let step = random.below(self.within_steps);
            let shortest = self.stop_ns_max / 10;
            let stop_ns = shortest + random.below(self.stop_ns_max - shortest + 1);
            drawn.push((step, Fault::Stop(stop_ns.saturating_mul(1000))));
        }
        for _ in 0..self.kills {
            drawn.push((random.below(self.within_steps), Fault::Kill));
        }
        drawn.sort_by_key(|(step, _)| std::cmp::Reverse(*step));
        drawn
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::NONE
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The core stops for this many picoseconds.
    Stop(u64),
    Kill,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_drawn_in_order_within_their_steps() {
        let faults = Faults { stops: 5, stop_ns_max: 1000, kills: 2, within_steps: 100 };
        let drawn = faults.draw(1);
        assert_eq!(drawn.len(), 7);
        assert!(drawn.is_sorted_by(|left, right| left.0 >= right.0));
        assert!(drawn.iter().all(|(step, _)| *step < 100));
        for (_, fault) in &drawn {
            if let Fault::Stop(ps) = fault {
                assert!((100_000..=1_000_000).contains(ps));
            }
        }
        assert_eq!(drawn, faults.draw(1));
        assert_ne!(drawn, faults.draw(2));
    }
}
