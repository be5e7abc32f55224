//! Schedules: the choice of the next core without regard to the clocks.
//!
//! By default the engine resumes the core with the least clock. The schedules here search for bad
//! interleavings. At each step of any core the schedule chooses the core that makes the next step, as if all
//! cores took turns on one processor. All cores then share one virtual time.

use crate::random::Random;

/// The cores that a schedule chooses from.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The number of the next step, counted over all cores.
    pub step: u64,
    /// The core that is at a step, if it can go on.
    pub current: Option<usize>,
    /// True if the current core gave way (a spin hint or a yield), most likely because it waits for another.
    pub gave_way: bool,
    /// The cores that can go on, the current one included; never empty. The order is arbitrary but the same in
    /// each run.
    pub runnable: &'a [u32],
}

/// Chooses the core that makes the next step.
pub trait Schedule {
    /// Returns a core of `choice.runnable`. Any other result counts as the first of them.
    fn choose(&mut self, choice: &Choice<'_>) -> usize;
}

/// Switches with a fixed probability at each step, to a core chosen uniformly.
#[derive(Debug)]
pub struct RandomSwitches {
    random: Random,
    probability: f64,
}

impl RandomSwitches {
    /// Switches with this probability (between 0 and 1) at each step.
    pub fn new(seed: u64, probability: f64) -> Self {
        Self { random: Random::stream(seed, 1), probability }
    }
}

impl Schedule for RandomSwitches {
    fn choose(&mut self, choice: &Choice<'_>) -> usize {
        if let Some(current) = choice.current
            && !choice.gave_way
            && !self.random.chance(self.probability)
        {
            return current;
        }
        let count = choice.runnable.len();
        let chosen = choice.runnable[self.random.below(count as u64) as usize] as usize;
        if choice.gave_way && choice.current == Some(chosen) && count > 1 {
            return choice.runnable[self.random.below(count as u64) as usize] as usize;
        }
        chosen
    }
}

/// Probabilistic concurrency testing: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with
/// Probabilistic Guarantees of Finding Bugs", ASPLOS 2010, section 2.
///
/// Each core has a random priority; of the runnable cores, that of the highest priority makes the next step. At
/// `depth` - 1 random steps the current core drops to the lowest priority. With n cores and k steps, a run
/// finds a bug that needs d ordered events with probability at least 1 / (n k^(d-1)).
///
/// Deviation: a core that gives way drops to the lowest priority, too. Otherwise a spinning core of high
/// priority would keep the core that it waits for from ever running. The bound holds for programs that do not
/// spin.
#[derive(Debug)]
pub struct Priorities {
    /// The core of the highest priority goes first.
    priorities: Vec<i64>,
    /// The steps at which the current core drops to the lowest priority, the latest first.
    changes: Vec<u64>,
    lowest: i64,
}

impl Priorities {
    /// Priorities for bugs of this depth (at least 1) in runs of about `steps_expected` steps.
    pub fn new(seed: u64, cores: usize, depth: u32, steps_expected: u64) -> Self {
        let mut random = Random::stream(seed, 2);
        let mut priorities: Vec<i64> = (0..cores as i64).collect();
        random.shuffle(&mut priorities);
        let mut changes: Vec<u64> = (1..depth).map(|_| random.below(steps_expected.max(1))).collect();
        changes.sort_unstable_by(|left, right| right.cmp(left));
        Self { priorities, changes, lowest: -1 }
    }

    fn demote(&mut self, core: usize) {
        self.priorities[core] = self.lowest;
        self.lowest -= 1;
    }
}

impl Schedule for Priorities {
    fn choose(&mut self, choice: &Choice<'_>) -> usize {
        while self.changes.last().is_some_and(|change| *change <= choice.step) {
            self.changes.pop();
            if let Some(current) = choice.current {
                self.demote(current);
            }
        }
        if let Some(current) = choice.current
            && choice.gave_way
        {
            self.demote(current);
        }
        let highest = choice.runnable.iter().max_by_key(|core| self.priorities[**core as usize]);
        highest.map_or(0, |core| *core as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(step: u64, current: usize, gave_way: bool) -> Choice<'static> {
        Choice { step, current: Some(current), gave_way, runnable: &[0, 1, 2] }
    }

    #[test]
    fn random_switches_have_the_given_probability() {
        let mut schedule = RandomSwitches::new(1, 0.3);
        let stays = (0..10_000).filter(|step| schedule.choose(&choice(*step, 1, false)) == 1).count();
        assert!((7500..8500).contains(&stays), "{stays}: 0.7 and a third of 0.3 of 10000");
    }

    #[test]
    fn the_highest_priority_goes_on_until_it_gives_way() {
        let mut schedule = Priorities::new(3, 3, 1, 100);
        let first = schedule.choose(&choice(0, 0, false));
        assert_eq!(schedule.choose(&choice(1, first, false)), first);
        let second = schedule.choose(&choice(2, first, true));
        assert_ne!(second, first);
        assert_eq!(schedule.choose(&choice(3, second, false)), second);
    }

    #[test]
    fn a_change_point_demotes_the_current_core_once() {
        let mut schedule = Priorities::new(3, 3, 2, 100);
        let first = schedule.choose(&choice(0, 0, false));
        let chosen: Vec<usize> = (1..100).map(|step| schedule.choose(&choice(step, first, false))).collect();
        let changes = chosen.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 1 && chosen[98] != first, "{chosen:?}");
    }
}
