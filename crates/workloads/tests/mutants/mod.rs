//! All mutants: small protocols, each broken in one way. A checker that finds nothing wrong with one of them is no
//! checker, or what it looks at shows nothing. Two tests run over the list, [`for_each_mutant`]: each mutant is caught in
//! recorded stress (`histories`), and found by exploring schedules (`schedules`).
//!
//! A fault is an option of a protocol, not a type, so that a new one costs no compile time.

/// Declares the faults of a mutant, each with the name of its variant, and makes these the mutant's options. The variant
/// `mutant` has no fault, which shows that the others are caught for theirs.
macro_rules! mutants {
    ($mutant:ident, STRICT = $strict:literal: $($(#[$doc:meta])* $fault:ident = $name:literal,)*) => {
        /// The fault of a mutant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fault {
            None,
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            const VARIANTS: &'static [hotrow::Variant] = &[
                crate::mutants::listed(crate::mutants::FAULTLESS, "not broken"),
                $(crate::mutants::listed($name, "broken"),)*
            ];

            fn named(name: &str) -> Option<Self> {
                match name {
                    crate::mutants::FAULTLESS => Some(Self::None),
                    $($name => Some(Self::$fault),)*
                    _ => None,
                }
            }
        }

        impl hotrow::Variants for $mutant {
            const VARIANTS: &'static [hotrow::Variant] = Fault::VARIANTS;
            const OPAQUE: bool = false;
            const STRICT: bool = $strict;
            const WORKERS_MAX: u32 = 64;

            type Options = Fault;

            fn options(name: &str) -> Option<Fault> {
                Fault::named(name)
            }

            fn new(fault: &Fault) -> Self {
                Self::with(*fault)
            }
        }
    };
}

mod lines;
mod timestamps;
mod versions;

use hotrow::Protocol;
use hotrow::protocols::Visitor;
use std::any::TypeId;

/// The name of each mutant's variant without a fault.
pub(crate) const FAULTLESS: &str = "mutant";

const fn listed(name: &'static str, summary: &'static str) -> hotrow::Variant {
    hotrow::Variant { name, summary, source: "-", for_comparison: true }
}

/// True if a protocol's commits have stamps that snapshots can go by. The mutants with lines and with timestamps draw none. One has
/// locked nothing when it draws its stamp, so that a replaced box would be freed twice.
pub(crate) fn has_snapshots<P: Protocol>(name: &str) -> bool {
    let without = [TypeId::of::<timestamps::TimestampMutant>(), TypeId::of::<lines::DeferredMutant>()];
    !without.contains(&TypeId::of::<P>()) && name != "locks-taken-one-by-one"
}

/// The mutants whose stamps are wrong. A history shows that only where a snapshot begins between two stamps, so that the stamps themselves
/// are judged. (The first breaks what the core's memory rests on, too: threads that run at once free a kept version twice.)
pub(crate) const STAMPED_WRONG: [&str; 3] =
    ["stamps-before-locks", "stamps-before-predicates", "stamps-after-checks"];

/// Calls a visitor with each mutant that has a fault.
pub(crate) fn for_each_mutant<V: Visitor + Copy>(visitor: V) -> Vec<(&'static str, V::Output)> {
    fn each<P: Protocol, V: Visitor + Copy>(visitor: V) -> impl Iterator<Item = (&'static str, V::Output)> {
        let broken = P::VARIANTS.iter().map(|variant| variant.name).filter(|name| *name != FAULTLESS);
        broken.map(move |name| (name, visitor.visit::<P>(name)))
    }
    let visited = each::<versions::Mutant, V>(visitor).chain(each::<timestamps::TimestampMutant, V>(visitor));
    visited.chain(each::<lines::DeferredMutant, V>(visitor)).collect()
}

/// Calls a visitor with each kind of mutant, without a fault.
pub(crate) fn for_each_faultless_mutant<V: Visitor + Copy>(visitor: V) {
    visitor.visit::<versions::Mutant>(FAULTLESS);
    visitor.visit::<timestamps::TimestampMutant>(FAULTLESS);
    visitor.visit::<lines::DeferredMutant>(FAULTLESS);
}
