//! The variants of queue locking.

use hotrow_core::Variant;

/// The workers that run a transaction's operations while others wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StealingMode {
    /// Only its own worker: plain two-phase locking.
    Never,
    /// All waiters, which take the next operation from one place: stealdb §2.2.
    Basic,
    /// Each waiter takes one operation from the transaction immediately ahead: stealdb §2.3.
    Chain,
}

/// A variant of [`McsLocking`](super::McsLocking).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McsLockingOptions {
    /// The workers that run operations.
    pub stealing: StealingMode,
    /// True if a waiter that finds nothing to steal runs operations of its own.
    pub ahead: bool,
    /// True if readers, too, take locks exclusively, as in the paper.
    pub exclusive: bool,
}

/// The listed variants. Each may have `+exclusive` behind its name; those that steal may have `+ahead` before that.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "steal",
        summary: "two-phase locking with queue locks; waiters run operations of the transaction ahead (+ahead: and their own)",
        source: "stealdb §3",
        for_comparison: false,
    },
    Variant {
        name: "steal-basic",
        summary: "steal, where all waiters take operations from one place: the paper's first solution",
        source: "stealdb §2.2",
        for_comparison: true,
    },
    Variant {
        name: "2pl-mcs",
        summary: "two-phase locking with fair queue locks; waiters queue, and a deadlock aborts the youngest",
        source: "stealdb §3.3, §4",
        for_comparison: false,
    },
];

const KINDS: [StealingMode; 3] = [StealingMode::Chain, StealingMode::Basic, StealingMode::Never];
const AHEAD: &str = "+ahead";
const EXCLUSIVE: &str = "+exclusive";

impl McsLockingOptions {
    /// Parses the name of a variant.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (base, exclusive) = without(name, EXCLUSIVE);
        let (base, ahead) = without(base, AHEAD);
        let at = VARIANTS.iter().position(|variant| variant.name == base)?;
        let stealing = KINDS[at];
        (!ahead || stealing != StealingMode::Never).then_some(Self { stealing, ahead, exclusive })
    }

    /// Returns the name of the variant.
    pub(super) fn name(&self) -> String {
        let at = KINDS.iter().position(|kind| *kind == self.stealing).expect("all kinds are listed");
        let ahead = if self.ahead { AHEAD } else { "" };
        format!("{}{ahead}{}", VARIANTS[at].name, if self.exclusive { EXCLUSIVE } else { "" })
    }
}

/// Returns a name without a suffix, and true if it had the suffix.
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
