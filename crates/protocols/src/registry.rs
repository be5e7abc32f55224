//! The registry: the one place where a protocol's name becomes its type.
//!
//! Adding a protocol takes one new module and one line in the call of `registry!` below. The command, the tests and
//! the figures all go through this module.

use crate::{Drp, McsLocking, Mocc, NoProtocol, Occ, Plor, TicToc, Tl2, TwoPhaseLocking};
use hotrow_core::{Protocol, Variant, Variants as _};
use hotrow_sync::LazyLock;

/// Description of one variant of a protocol, available without choosing the protocol's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolInfo {
    /// Name of the variant, as given to the command.
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// Source: paper and section.
    pub source: &'static str,
    /// True if unfinished and aborted attempts, too, see one consistent state (opacity).
    pub opaque: bool,
    /// True if the serial order agrees with real time (strict serializability).
    pub strict: bool,
    /// Maximum number of workers at a time.
    pub workers_max: u32,
}

/// An operation on a protocol that is known only by name.
pub trait Visitor {
    /// Result of the visit.
    type Output;
    /// Visits the protocol, in the variant of this name.
    fn visit<P: Protocol>(self, name: &str) -> Self::Output;
}

/// The error that no protocol has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol {name:?}; there are: {}", names().join(", "))]
pub struct UnknownProtocol {
    /// The name that was looked up.
    pub name: String,
}

macro_rules! registry {
    ($($protocol:ty),* $(,)?) => {
        /// All protocols, the recommended one first, each in all its listed variants.
        pub static PROTOCOLS: LazyLock<Vec<ProtocolInfo>> = LazyLock::new(|| {
            let mut protocols = Vec::new();
            $(protocols.extend(<$protocol>::VARIANTS.iter().map(information::<$protocol>));)*
            protocols
        });

        /// Calls the visitor with the protocol of this name.
        ///
        /// # Errors
        ///
        /// [`UnknownProtocol`], which lists the known names.
        pub fn with_protocol<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownProtocol> {
            $(if <$protocol>::options(name).is_some() {
                return Ok(visitor.visit::<$protocol>(name));
            })*
            Err(UnknownProtocol { name: name.to_owned() })
        }
    };
}

registry![Occ, Plor, Drp, TicToc, Mocc, TwoPhaseLocking, McsLocking, Tl2, NoProtocol];

fn information<P: Protocol>(variant: &Variant) -> ProtocolInfo {
    let Variant { name, summary, source } = *variant;
    let opaque = P::options(name).map_or(P::OPAQUE, |options| P::is_opaque(&options));
    let (strict, workers_max) = (P::STRICT, P::WORKERS_MAX);
    ProtocolInfo { name, summary, source, opaque, strict, workers_max }
}

/// Returns the options of a protocol that has only one variant.
pub(crate) fn only(variants: &[Variant], name: &str) -> Option<()> {
    variants.iter().any(|variant| variant.name == name).then_some(())
}

/// Finds the description of the protocol that a name stands for, also of a variant that is not listed
/// (`plor+deadline=7`).
///
/// The description of a variant that is not listed is leaked: it stays in memory until the process ends. So ask for
/// few of them.
///
/// # Errors
///
/// [`UnknownProtocol`], which lists the known names.
pub fn find(name: &str) -> Result<&'static ProtocolInfo, UnknownProtocol> {
    struct Describe;
    impl Visitor for Describe {
        type Output = ProtocolInfo;
        fn visit<P: Protocol>(self, name: &str) -> ProtocolInfo {
            let first = *P::VARIANTS.first().expect("a protocol has a variant");
            information::<P>(&Variant { name: String::leak(name.to_owned()), ..first })
        }
    }
    match PROTOCOLS.iter().find(|protocol| protocol.name == name) {
        Some(protocol) => Ok(protocol),
        None => with_protocol(name, Describe).map(|protocol| &*Box::leak(Box::new(protocol))),
    }
}

/// Returns the names of all protocols.
pub fn names() -> Vec<&'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name).collect()
}

/// Calls a visitor once for every protocol that admits at least `workers` workers. Tests run over all protocols only
/// through this function, so a protocol is tested as soon as it is registered.
pub fn for_each_protocol<V: Visitor + Copy>(workers: u32, visitor: V) -> Vec<(&'static str, V::Output)> {
    PROTOCOLS
        .iter()
        .filter(|protocol| protocol.workers_max >= workers)
        .map(|protocol| {
            let output = with_protocol(protocol.name, visitor).expect("the list comes from the registry");
            (protocol.name, output)
        })
        .collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Name;
    impl Visitor for Name {
        type Output = String;
        fn visit<P: Protocol>(self, name: &str) -> String {
            P::name(&P::options(name).expect("the registry has chosen by name"))
        }
    }

    #[test]
    fn every_name_leads_to_its_protocol() {
        for (name, found) in for_each_protocol(1, Name) {
            assert_eq!(name, found);
        }
        let mut unique = names();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), PROTOCOLS.len());
    }

    #[test]
    fn a_variant_that_is_not_listed_can_be_had_by_its_name() {
        let found = find("plor+deadline=7").unwrap();
        assert_eq!((found.name, found.workers_max), ("plor+deadline=7", Plor::WORKERS_MAX));
        assert_eq!(find("occ").unwrap(), &PROTOCOLS[0]);
        assert!(find("plor+deadline=x").is_err());
    }

    #[test]
    fn opacity_is_a_question_of_the_variant() {
        for (name, opaque) in [
            ("drp", false),
            ("drp+opaque", true),
            ("deferred-2pl+opaque", true),
            ("occ", false),
            ("tl2", true),
        ] {
            assert_eq!(find(name).unwrap().opaque, opaque, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = with_protocol("ocm", Name).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown protocol \"ocm\"; there are: occ, plor, plor+dwa, plor+optimistic, plor+latched, \
             plor+deadline, drp, drp+opaque, drp+exclusive, deferred-2pl, deferred-2pl+exclusive, tictoc, mocc, \
             wound-wait, wait-die, no-wait, steal, steal-basic, 2pl-mcs, tl2, none"
        );
    }
}
