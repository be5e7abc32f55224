//! Sums of time, by label and cause.

/// The cause of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// Plain work.
    Work,
    /// Accesses that the core's own caches served; fences, and readings of the clock.
    PrivateCache,
    /// Accesses that the third level or memory served.
    Memory,
    /// Accesses that another core's cache served, or that invalidated its copies; the queue for busy lines included.
    Transfer,
    /// Waits: spinning, yielding, parking, sleeping.
    Wait,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 5] = [Self::Work, Self::PrivateCache, Self::Memory, Self::Transfer, Self::Wait];
}

/// The time of one label, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByLabel {
    /// The label.
    pub label: &'static str,
    /// The times of all causes, in the order of [`Cause::ALL`], in virtual nanoseconds.
    pub ns: [u64; 5],
}

impl ByLabel {
    /// The time of one cause, in virtual nanoseconds.
    pub fn of(&self, cause: Cause) -> u64 {
        self.ns[cause as usize]
    }
}

/// Times in picoseconds. There are few labels, so the list is searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<(&'static str, [u64; 5])>,
}

impl Ledger {
    fn entry(&mut self, label: &'static str) -> &mut [u64; 5] {
        let position = self.entries.iter().position(|(other, _)| *other == label);
        let position = position.unwrap_or_else(|| {
            self.entries.push((label, [0; 5]));
            self.entries.len() - 1
        });
        &mut self.entries[position].1
    }

    pub(super) fn add(&mut self, label: &'static str, cause: Cause, ps: u64) {
        self.entry(label)[cause as usize] += ps;
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Moves all times of `other` here.
    pub(super) fn take(&mut self, other: &mut Ledger) {
        for (label, times) in other.entries.drain(..) {
            let entry = self.entry(label);
            entry.iter_mut().zip(times).for_each(|(sum, ps)| *sum += ps);
        }
    }

    /// The times by label, the largest first.
    pub(super) fn by_label(&self) -> Vec<ByLabel> {
        let labels = self.entries.iter().map(|(label, ps)| ByLabel { label, ns: ps.map(|ps| ps / 1000) });
        let mut labels: Vec<ByLabel> = labels.collect();
        labels.sort_by_key(|label| (std::cmp::Reverse(label.ns.iter().sum::<u64>()), label.label));
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_by_label_and_cause_and_move_as_a_whole() {
        let (mut attempt, mut all) = (Ledger::default(), Ledger::default());
        attempt.add("body", Cause::Work, 3_000);
        attempt.add("commit", Cause::Wait, 9_000);
        attempt.add("body", Cause::Work, 4_000);
        all.add("body", Cause::Memory, 1_000);
        all.take(&mut attempt);
        let labels = all.by_label();
        assert_eq!(labels.iter().map(|label| label.label).collect::<Vec<_>>(), ["commit", "body"]);
        assert_eq!(labels[1].of(Cause::Work), 7);
        assert_eq!(labels[1].of(Cause::Memory), 1);
        assert!(attempt.by_label().is_empty());
    }
}
