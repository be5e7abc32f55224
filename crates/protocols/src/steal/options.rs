//! The variants of queue locking.

use hotrow_core::Variant;

/// Who runs a transaction's operations while others wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StealingMode {
    /// Its worker alone: plain two-phase locking.
    Never,
    /// All that wait take the next one from one place: stealdb §2.2.
    Basic,
    /// Each that waits takes one from the transaction immediately ahead: stealdb §2.3.
    Chain,
}

/// A variant of [`McsLocking`](super::McsLocking).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McsLockingOptions {
    /// Who runs operations.
    pub stealing: StealingMode,
    /// Whether who waits and finds nothing to steal runs operations of its own.
    pub ahead: bool,
    /// Whether readers, too, take locks alone, as the paper's.
    pub exclusive: bool,
}

/// The variants that are listed. Each may have `+exclusive` behind its name; those that steal, `+ahead` before that.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "steal",
        summary: "two-phase locking with queue locks; who waits runs operations of the transaction ahead (+ahead: and its own)",
        source: "stealdb §3",
    },
    Variant {
        name: "steal-basic",
        summary: "steal, where all that wait take operations from one place: the paper's first solution",
        source: "stealdb §2.2",
    },
    Variant {
        name: "2pl-mcs",
        summary: "two-phase locking with fair queue locks; who meets a lock queues, deadlocks cost the youngest",
        source: "stealdb §3.3, §4",
    },
];

const KINDS: [StealingMode; 3] = [StealingMode::Chain, StealingMode::Basic, StealingMode::Never];
const AHEAD: &str = "+ahead";
const EXCLUSIVE: &str = "+exclusive";

impl McsLockingOptions {
    /// What a name stands for.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (base, exclusive) = without(name, EXCLUSIVE);
        let (base, ahead) = without(base, AHEAD);
        let at = VARIANTS.iter().position(|variant| variant.name == base)?;
        let stealing = KINDS[at];
        (!ahead || stealing != StealingMode::Never).then_some(Self { stealing, ahead, exclusive })
    }

    /// The name that stands for it.
    pub(super) fn name(&self) -> String {
        let at = KINDS.iter().position(|kind| *kind == self.stealing).expect("all kinds are listed");
        let ahead = if self.ahead { AHEAD } else { "" };
        format!("{}{ahead}{}", VARIANTS[at].name, if self.exclusive { EXCLUSIVE } else { "" })
    }
}

/// A name without a suffix, and whether it had that.
fn without<'n>(name: &'n str, suffix: &str) -> (&'n str, bool) {
    match name.strip_suffix(suffix) {
        Some(base) => (base, true),
        None => (name, false),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_for_a_variant_of_its_own() {
        let names =
            ["steal", "steal-basic", "2pl-mcs", "steal+ahead", "steal+exclusive", "steal+ahead+exclusive"];
        for name in names {
            assert_eq!(McsLockingOptions::named(name).unwrap().name(), name);
        }
        for name in ["steal+shared", "2pl-mcs+ahead", "steal+exclusive+ahead"] {
            assert_eq!(McsLockingOptions::named(name), None, "{name}");
        }
    }
}
