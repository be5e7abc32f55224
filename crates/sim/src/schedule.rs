//! Who goes on: schedules that ignore the clocks.
//!
//! The default, the core with the least clock, is the engine's own. The schedules here are for looking for bad
//! interleavings: at each step of any core the schedule says who makes the next step, on a machine where, as it
//! were, all cores take turns on one processor. Virtual time is then one for all cores.

use crate::random::Random;

/// What a schedule chooses from.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The step about to be made, counted over all cores.
    pub step: u64,
    /// The core that is at a step, if it can go on.
    pub current: Option<usize>,
    /// Whether the current core gave way by itself (a spin hint or a yield): it waits for another, most likely.
    pub gave_way: bool,
    /// The cores that can go on, the current one among them; never empty. The order is arbitrary but the same
    /// in each run.
    pub runnable: &'a [u32],
}

/// Decides who makes the next step.
pub trait Schedule {
    /// One of `choice.runnable`. Anything else is taken as the first of them.
    fn choose(&mut self, choice: &Choice<'_>) -> usize;
}

/// At each step another core goes on with a certain probability, each with the same.
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
/// Each core has a random priority and the highest that can go on does. At `depth` - 1 random steps the core at
/// that step falls below all others. With n cores and k steps, a bug that needs d ordered events is found with
/// probability at least 1 / (n k^(d-1)) in each run.
///
/// Deviation: a core that gives way falls below all others, too. Otherwise one of high priority that spins
/// would keep the one it waits for from running for ever. The bound holds for programs that do not spin.
#[derive(Debug)]
pub struct Priorities {
    /// Higher goes first.
    priorities: Vec<i64>,
    /// The steps at which the current core falls, last first.
    changes: Vec<u64>,
    lowest: i64,
}

impl Priorities {
    /// Priorities for bugs of this depth (at least 1) in runs of about so many steps.
    pub fn new(seed: u64, cores: usize, depth: u32, steps_expected: u64) -> Self {
        let mut random = Random::stream(seed, 2);
        let mut priorities: Vec<i64> = (0..cores as i64).collect();
        random.shuffle(&mut priorities);
        let mut changes: Vec<u64> = (1..depth).map(|_| random.below(steps_expected.max(1))).collect();
        changes.sort_unstable_by(|left, right| right.cmp(left));
        Self { priorities, changes, lowest: -1 }
    }

    fn fall(&mut self, core: usize) {
        self.priorities[core] = self.lowest;
        self.lowest -= 1;
    }
}

impl Schedule for Priorities {
    fn choose(&mut self, choice: &Choice<'_>) -> usize {
        while self.changes.last().is_some_and(|change| *change <= choice.step) {
            self.changes.pop();
            if let Some(current) = choice.current {
                self.fall(current);
            }
        }
        if let Some(current) = choice.current
            && choice.gave_way
        {
            self.fall(current);
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
    fn random_switches_keep_to_their_probability() {
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
    fn a_change_point_lets_the_current_core_fall_once() {
        let mut schedule = Priorities::new(3, 3, 2, 100);
        let first = schedule.choose(&choice(0, 0, false));
        let chosen: Vec<usize> = (1..100).map(|step| schedule.choose(&choice(step, first, false))).collect();
        let changes = chosen.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 1 && chosen[98] != first, "{chosen:?}");
    }
}
