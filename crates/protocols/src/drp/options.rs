//! The variants of `drp` and their names.

use hotrow_core::Variant;

/// The options in which variants of [`Drp`](crate::Drp) differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrpOptions {
    /// Takes locks one after the other, each at its turn, and holds them until the end: the paper's baseline without
    /// a pipeline (drp §7, "Deferred 2PL").
    pub two_phase: bool,
    /// Makes attempts that read before they commit see one consistent state, even if they are going to be aborted
    /// (drp §6.1, "Opacity").
    pub opaque: bool,
    /// Makes readers exclude each other, as in the paper's implementation, which has mutual exclusion only (drp
    /// §6.1).
    pub exclusive: bool,
}

pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "drp",
        summary: "deferred operations run after the commit point, in a pipeline ordered by rank",
        source: "drp §4–6",
    },
    Variant {
        name: "drp+opaque",
        summary: "drp, where attempts that read early see one consistent state",
        source: "drp §6.1",
    },
    Variant {
        name: "drp+exclusive",
        summary: "drp without shared locks, as the paper's implementation",
        source: "drp §6.1",
    },
    Variant {
        name: "deferred-2pl",
        summary: "deferred operations, all locks taken in the order of ranks and held until the end",
        source: "drp §7",
    },
    Variant {
        name: "deferred-2pl+exclusive",
        summary: "deferred-2pl without shared locks: the paper's baseline",
        source: "drp §7",
    },
];

impl DrpOptions {
    /// Parses `drp` or `deferred-2pl`, then any of `+opaque` and `+exclusive`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut words = name.split('+');
        let two_phase = match words.next()? {
            "drp" => false,
            "deferred-2pl" => true,
            _ => return None,
        };
        let mut options = Self { two_phase, ..Self::default() };
        for word in words {
            let flag = match word {
                "opaque" => &mut options.opaque,
                "exclusive" => &mut options.exclusive,
                _ => return None,
            };
            if std::mem::replace(flag, true) {
                return None;
            }
        }
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
        assert_eq!(both, DrpOptions { two_phase: true, opaque: true, exclusive: true });
        assert_eq!(DrpOptions::parse(&both.name()), Some(both));
    }

    #[test]
    fn other_names_are_not_known() {
        for name in ["", "dr", "drp+", "drp+opaque+opaque", "2pl", "deferred-2pl+", "drp+shared", "opaque"] {
            assert_eq!(DrpOptions::parse(name), None, "{name}");
        }
    }
}
