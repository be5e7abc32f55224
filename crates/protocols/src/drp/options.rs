//! The variants of `drp` and their names.

use super::calm::CALM_AFTER;
use hotrow_core::Variant;

/// The options in which variants of [`Drp`](super::Drp) differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrpOptions {
    /// The number of transactions of a worker that must have met nobody, one after the other, before it runs the next
    /// one's operations at once. `None`: operations are always deferred, as in the paper.
    pub calm_after: Option<u32>,
    /// Takes locks one after the other, each at its turn, and holds them until the end: the paper's baseline without
    /// a pipeline (drp §7, "Deferred 2PL").
    pub two_phase: bool,
    /// Makes attempts that read before they commit see one consistent state, even if they are going to be aborted
    /// (drp §6.1, "Opacity").
    pub opaque: bool,
    /// Makes readers exclude each other, as in the paper's implementation, which has mutual exclusion only (drp
    /// §6.1).
    pub exclusive: bool,
    /// Lets a transaction that was aborted because it has read early line up for what it has touched, before its body runs
    /// again (`early.rs`). Its body then holds lines, for which others wait without a deadline.
    pub early: bool,
}

pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "drp",
        summary: "deferred operations run after the commit point, in a pipeline ordered by rank",
        source: "drp §4–6",
        for_comparison: false,
    },
    Variant {
        name: "drp+tame",
        summary: "drp that always defers, as in the paper; drp+calm=N: until N transactions have met nobody (drp: 16); drp+early: aborted ones that have read early line up before their next attempt",
        source: "drp §4–6",
        for_comparison: true,
    },
    Variant {
        name: "drp+opaque",
        summary: "drp, where attempts that read early see one consistent state",
        source: "drp §6.1",
        for_comparison: false,
    },
    Variant {
        name: "drp+exclusive",
        summary: "drp without shared locks, as the paper's implementation",
        source: "drp §6.1",
        for_comparison: true,
    },
    Variant {
        name: "deferred-2pl",
        summary: "deferred operations, all locks taken in the order of ranks and held until the end",
        source: "drp §7",
        for_comparison: true,
    },
    Variant {
        name: "deferred-2pl+exclusive",
        summary: "deferred-2pl without shared locks: the paper's baseline",
        source: "drp §7",
        for_comparison: true,
    },
];

impl DrpOptions {
    /// Parses `drp` or `deferred-2pl`, then any of `+opaque`, `+exclusive` and `+early`, and for `drp` one of `+tame` and `+calm=N`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut words = name.split('+');
        let two_phase = match words.next()? {
            "drp" => false,
            "deferred-2pl" => true,
            _ => return None,
        };
        let mut options = Self { two_phase, opaque: false, exclusive: false, early: false, calm_after: None };
        let mut calm = None;
        for word in words {
            let fresh = match word {
                "opaque" => !std::mem::replace(&mut options.opaque, true),
                "exclusive" => !std::mem::replace(&mut options.exclusive, true),
                "early" => !std::mem::replace(&mut options.early, true),
                _ if two_phase => return None,
                "tame" => calm.replace(None).is_none(),
                _ => calm.replace(Some(word.strip_prefix("calm=")?.parse().ok()?)).is_none(),
            };
            if !fresh {
                return None;
            }
        }
        options.calm_after = if two_phase { None } else { calm.unwrap_or(Some(CALM_AFTER)) };
        Some(options)
    }

    pub(super) fn name(&self) -> String {
        let mut name = String::from(if self.two_phase { "deferred-2pl" } else { "drp" });
        if self.opaque {
            name += "+opaque";
        }
        if self.exclusive {
            name += "+exclusive";
        }
        if self.early {
            name += "+early";
        }
        match self.calm_after {
            None if !self.two_phase => name += "+tame",
            Some(calm_after) if calm_after != CALM_AFTER => name += &format!("+calm={calm_after}"),
            _ => {}
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
            assert_eq!(DrpOptions::parse(variant.name).unwrap().name(), variant.name);
        }
        let both = DrpOptions::parse("deferred-2pl+exclusive+opaque").unwrap();
        assert_eq!(
            both,
            DrpOptions { two_phase: true, opaque: true, exclusive: true, early: false, calm_after: None }
        );
        assert_eq!(DrpOptions::parse(&both.name()), Some(both));
        assert_eq!(DrpOptions::parse("drp+tame+early").unwrap().name(), "drp+early+tame");
        assert_eq!(DrpOptions::parse("drp+calm=16").unwrap().name(), "drp");
        assert_eq!(DrpOptions::parse("drp+calm=0+opaque").unwrap().name(), "drp+opaque+calm=0");
    }

    #[test]
    fn other_names_are_not_known() {
        for name in [
            "",
            "dr",
            "drp+",
            "drp+opaque+opaque",
            "2pl",
            "deferred-2pl+",
            "drp+shared",
            "opaque",
            "drp+calm=",
            "drp+calm=-1",
            "drp+tame+calm=1",
            "deferred-2pl+tame",
        ] {
            assert_eq!(DrpOptions::parse(name), None, "{name}");
        }
    }
}
