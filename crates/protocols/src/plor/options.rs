//! The variants of `plor` and their names.

use hotrow_core::Variant;
use std::time::Duration;

/// The options in which variants of [`Plor`](super::Plor) differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlorOptions {
    /// Takes each step of a locker under a latch: the paper's baseline, which guards its lock state with a mutex
    /// (plor §6.4). It serves only to measure the benefit of the latch-free locker.
    pub latched: bool,
    /// Takes the right to write at commit (plor §4.1.4, "DWA").
    pub delayed_writes: bool,
    /// Makes the first attempts of every transaction read by versions and take the right to write at commit, as
    /// read-only ones do in the paper. Only a transaction whose first attempts were aborted enters as a reader. Ours,
    /// not the paper's.
    pub optimistic: bool,
    /// Gives precedence by deadline instead of by age: a transaction counts as begun this much later for each record
    /// that it declares it will touch ([`Profile::records`](hotrow_core::Profile::records); plor §6.4, "slack
    /// factor").
    pub slack: Option<Duration>,
}

/// The slack in the variant `plor+deadline`.
const SLACK_US: u64 = 10;

pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "plor",
        summary: "readers ignore write locks; conflicts are settled at commit, where the older goes first",
        source: "plor §4",
        for_comparison: false,
    },
    Variant {
        name: "plor+dwa",
        summary: "plor, with write locks taken at commit (delayed write-lock acquisition)",
        source: "plor §4.1.4",
        for_comparison: true,
    },
    Variant {
        name: "plor+optimistic",
        summary: "plor, whose first attempts read and write as occ does; three aborts give the right of way",
        source: "Hotrow's own",
        for_comparison: true,
    },
    Variant {
        name: "plor+latched",
        summary: "plor, with a latch around each step of a lock: the paper's baseline",
        source: "plor §6.4",
        for_comparison: true,
    },
    Variant {
        name: "plor+deadline",
        summary: "plor, where the nearer deadline goes first; =N: slack in µs for each record (10)",
        source: "plor §6.4",
        for_comparison: true,
    },
];

impl PlorOptions {
    /// Parses `plor`, then any of `+dwa`, `+optimistic`, `+latched`, `+deadline` and `+deadline=N`, with N up to a
    /// million microseconds.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut words = name.split('+');
        if words.next() != Some("plor") {
            return None;
        }
        let mut options = Self::default();
        for word in words {
            let fresh = match word {
                "latched" => !std::mem::replace(&mut options.latched, true),
                "dwa" => !std::mem::replace(&mut options.delayed_writes, true),
                "optimistic" => !std::mem::replace(&mut options.optimistic, true),
                _ => {
                    let slack_us = match word.strip_prefix("deadline")? {
                        "" => SLACK_US,
                        value => value.strip_prefix('=')?.parse().ok().filter(|us| *us <= 1_000_000)?,
                    };
                    options.slack.replace(Duration::from_micros(slack_us)).is_none()
                }
            };
            if !fresh {
                return None;
            }
        }
        Some(options)
    }

    pub(super) fn name(&self) -> String {
        let mut name = String::from("plor");
        if self.delayed_writes {
            name += "+dwa";
        }
        if self.optimistic {
            name += "+optimistic";
        }
        if self.latched {
            name += "+latched";
        }
        if let Some(slack) = self.slack {
            name += "+deadline";
            if slack != Duration::from_micros(SLACK_US) {
                name += &format!("={}", slack.as_micros());
            }
        }
        name
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_its_name() {
        for variant in VARIANTS {
            assert_eq!(PlorOptions::parse(variant.name).unwrap().name(), variant.name);
        }
        let options = PlorOptions::parse("plor+deadline=7+dwa").unwrap();
        assert_eq!((options.slack, options.delayed_writes), (Some(Duration::from_micros(7)), true));
        assert_eq!(options.name(), "plor+dwa+deadline=7");
        assert_eq!(PlorOptions::parse(&options.name()), Some(options));
    }

    #[test]
    fn other_names_are_not_known() {
        for name in [
            "plo",
            "plor+",
            "plor+DWA",
            "plor+dwa+dwa",
            "plor+deadline=",
            "plor+deadline=-1",
            "dwa",
            "plor+deadline=1e9",
            "plor+deadline=1000001",
            "plor +dwa",
        ] {
            assert_eq!(PlorOptions::parse(name), None, "{name}");
        }
    }
}
