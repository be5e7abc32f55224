//! The registry: the one place where a protocol's name becomes its type.
//!
//! Adding a protocol takes one new module and one line in the call of `registry!` below. The command, the tests and
//! the figures all go through this module.

use crate::{Drp, McsLocking, Mocc, Occ, Plor, Serial, TicToc, Tl2, TwoPhaseLocking};
use hotrow_core::{Capabilities as _, Protocol, Variant, Variants as _};
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
    ($first:ty, $($other:ty),* $(,)?) => {
        registry!(@all $first, $($other),*);

        registry! {
            /// Calls the visitor with the protocol of this name if it is the first of the registry or runs transactions
            /// at the same time.
            with_concurrent_protocol: [CONCURRENT] $first, $($other),*
        }
        registry! {
            /// Calls the visitor with the protocol of this name if it is the first of the registry or defers operations.
            with_deferring_protocol: [DEFERS] $first, $($other),*
        }
        registry! {
            /// As [`with_deferring_protocol`], and also for protocols that let waiting workers run operations.
            with_recording_protocol: [DEFERS ALLOWS_STEALING] $first, $($other),*
        }
    };
    // The visit is compiled for the first protocol and those with one of the abilities only: the conditions are constants.
    ($(#[$doc:meta])* $function:ident: $abilities:tt $first:ty, $($other:ty),*) => {
        $(#[$doc])*
        fn $function<V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            if <$first>::options(name).is_some() {
                return Some(visitor.visit::<$first>(name));
            }
            $(if const { registry!(@any $abilities of $other) } {
                if <$other>::options(name).is_some() {
                    return Some(visitor.visit::<$other>(name));
                }
            })*
            None
        }
    };
    (@any [$($ability:ident)*] of $protocol:ty) => { false $(|| <$protocol>::$ability)* };
    (@all $($protocol:ty),*) => {
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

registry![Occ, Plor, Drp, TicToc, Mocc, TwoPhaseLocking, McsLocking, Tl2, Serial];

fn information<P: Protocol>(variant: &Variant) -> ProtocolInfo {
    let Variant { name, summary, source } = *variant;
    let options = P::options(name).expect("a protocol knows the names of its variants");
    let (opaque, workers_max) = (P::is_opaque(&options), P::workers_max(&options));
    ProtocolInfo { name, summary, source, opaque, strict: P::STRICT, workers_max }
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
/// through this function and the next three, so a protocol is tested as soon as it is registered.
pub fn for_each_protocol<V: Visitor + Copy>(workers: u32, visitor: V) -> Vec<(&'static str, V::Output)> {
    for_each_found(workers, |name| {
        Some(with_protocol(name, visitor).expect("the list comes from the registry"))
    })
}

/// As [`for_each_protocol`], for the protocols that run transactions at the same time. For tests in which one transaction
/// does something, and is not to be held off, in the midst of another one with which it has no conflict.
pub fn for_each_concurrent_protocol<V: Visitor + Copy>(
    workers: u32,
    visitor: V,
) -> Vec<(&'static str, V::Output)> {
    for_each_found(workers, |name| with_concurrent_protocol(name, visitor))
}

/// As [`for_each_protocol`], for the protocols that defer operations and one that runs them at once, the first of the
/// registry, in its variants. For tests of deferred operations: under all other protocols these are the operations that are not deferred.
pub fn for_each_deferring_protocol<V: Visitor + Copy>(
    workers: u32,
    visitor: V,
) -> Vec<(&'static str, V::Output)> {
    for_each_found(workers, |name| with_deferring_protocol(name, visitor))
}

/// As [`for_each_deferring_protocol`], and for the protocols that let waiting workers run operations. For tests of
/// procedures in the context that the protocol has for them: under all other protocols that is the eager one.
pub fn for_each_recording_protocol<V: Visitor + Copy>(
    workers: u32,
    visitor: V,
) -> Vec<(&'static str, V::Output)> {
    for_each_found(workers, |name| with_recording_protocol(name, visitor))
}

fn for_each_found<R>(workers: u32, visit: impl Fn(&str) -> Option<R>) -> Vec<(&'static str, R)> {
    PROTOCOLS
        .iter()
        .filter(|protocol| protocol.workers_max >= workers)
        .filter_map(|protocol| Some((protocol.name, visit(protocol.name)?)))
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

    #[derive(Clone, Copy)]
    struct Capabilities;
    impl Visitor for Capabilities {
        type Output = (bool, bool);
        fn visit<P: Protocol>(self, _name: &str) -> (bool, bool) {
            (P::DEFERS, P::ALLOWS_STEALING)
        }
    }

    #[test]
    fn protocols_are_chosen_by_what_they_can_do() {
        let all = for_each_protocol(1, Capabilities);
        let chosen = |condition: fn((bool, bool)) -> bool| {
            let chosen = all.iter().filter(|(name, can)| Occ::options(name).is_some() || condition(*can));
            chosen.copied().collect::<Vec<_>>()
        };
        let deferring = for_each_deferring_protocol(1, Capabilities);
        assert_eq!(deferring, chosen(|(defers, _)| defers));
        let recording = for_each_recording_protocol(1, Capabilities);
        assert_eq!(recording, chosen(|(defers, steals)| defers || steals));
        assert!(1 < deferring.len() && deferring.len() < recording.len() && recording.len() < all.len());
        assert_eq!(deferring[0].1, (false, false), "the first one stands for those that can do neither");
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
            "unknown protocol \"ocm\"; there are: occ, chop, chop-htm, ic3, ic3+cascading, dbx, plor, plor+dwa, plor+optimistic, \
             plor+latched, plor+deadline, drp, drp+tame, drp+opaque, drp+exclusive, deferred-2pl, deferred-2pl+exclusive, tictoc, \
             mocc, wound-wait, wait-die, no-wait, steal, steal-basic, 2pl-mcs, tl2, serial, none, naive-htm"
        );
    }
}
