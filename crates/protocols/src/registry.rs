//! The registry: the one place where a protocol's name becomes its type.
//!
//! Adding a protocol takes one new module and a name in [`Any`]. The command, the tests and the figures all go through this module.

use crate::none::Uncontrolled;
use crate::{Any, Occ};
use hotrow_core::{Deferral, Protocol, RangeLocks, Stealing, Variant, Variants as _};
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
    /// True if it exists [to be compared with](Variant::for_comparison), and is not what a program chooses first.
    pub for_comparison: bool,
    /// True if unfinished and aborted attempts, too, see one consistent state (opacity).
    pub opaque: bool,
    /// True if the serial order agrees with real time (strict serializability).
    pub strict: bool,
    /// True if transactions run at the same time.
    pub concurrent: bool,
    /// True if operations can be deferred until the commit.
    pub defers: bool,
    /// True if waiting workers run operations of the transaction that they wait for.
    pub steals: bool,
    /// True if buckets and leaves are locked before they are observed or changed.
    pub locks_ranges: bool,
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

/// All protocols, the recommended one first, each in all its listed variants.
pub static PROTOCOLS: LazyLock<Vec<ProtocolInfo>> =
    LazyLock::new(|| Any::VARIANTS.iter().map(information).collect());

/// Calls the visitor with the protocol of this name: [`Occ`] for its own variants, as fast as it can be, and [`Any`] for all others.
///
/// # Errors
///
/// [`UnknownProtocol`], which lists the known names.
pub fn with_protocol<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownProtocol> {
    if Occ::options(name).is_some() {
        Ok(visitor.visit::<Occ>(name))
    } else if Any::options(name).is_some() {
        Ok(visitor.visit::<Any>(name))
    } else {
        Err(UnknownProtocol { name: name.to_owned() })
    }
}

/// As [`with_protocol`], for measurements: `none` is a type of its own as well, because what others are measured against must be as fast as
/// it can be.
///
/// # Errors
///
/// As [`with_protocol`].
pub fn with_measured_protocol<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownProtocol> {
    match Uncontrolled::options(name) {
        Some(()) => Ok(visitor.visit::<Uncontrolled>(name)),
        None => with_protocol(name, visitor),
    }
}

fn information(variant: &Variant) -> ProtocolInfo {
    let Variant { name, summary, source, for_comparison } = *variant;
    let options = Any::options(name).expect("a protocol knows the names of its variants");
    let protocol = Any::new(&options);
    ProtocolInfo {
        name,
        summary,
        source,
        for_comparison,
        opaque: Any::is_opaque(&options),
        strict: protocol.is_strict(),
        concurrent: protocol.is_concurrent(),
        defers: <<Any as Protocol>::Deferral as Deferral<Any>>::of(&protocol).is_some(),
        steals: <<Any as Protocol>::Stealing as Stealing<Any>>::of(&protocol).is_some(),
        locks_ranges: <<Any as Protocol>::RangeLocks as RangeLocks<Any>>::of(&protocol).is_some(),
        workers_max: Any::workers_max(&options),
    }
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
    match PROTOCOLS.iter().find(|protocol| protocol.name == name) {
        Some(protocol) => Ok(protocol),
        None if Any::options(name).is_none() => Err(UnknownProtocol { name: name.to_owned() }),
        None => {
            let listed = PROTOCOLS.iter().filter(|listed| name.starts_with(listed.name));
            let listed = listed.max_by_key(|listed| listed.name.len()).unwrap_or(&PROTOCOLS[0]);
            let ProtocolInfo { summary, source, for_comparison, .. } = *listed;
            Ok(Box::leak(Box::new(information(&Variant {
                name: String::leak(name.to_owned()),
                summary,
                source,
                for_comparison,
            }))))
        }
    }
}

/// Returns the names of all protocols.
pub fn names() -> Vec<&'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name).collect()
}

/// Calls a visitor once for every protocol that admits at least `workers` workers, as [`Any`], and once for [`Occ`] as a type of its own. Tests
/// run over all protocols only through this function and the next, so a protocol is tested as soon as it is registered.
pub fn for_each_protocol<V: Visitor + Copy>(workers: u32, visitor: V) -> Vec<(&'static str, V::Output)> {
    for_each_found(workers, visitor, |_| true)
}

/// As [`for_each_protocol`], for the protocols that run transactions at the same time. For tests in which one transaction
/// does something, and is not to be held off, in the midst of another one with which it has no conflict.
pub fn for_each_concurrent_protocol<V: Visitor + Copy>(
    workers: u32,
    visitor: V,
) -> Vec<(&'static str, V::Output)> {
    for_each_found(workers, visitor, |protocol| protocol.concurrent)
}

fn for_each_found<V: Visitor + Copy>(
    workers: u32,
    visitor: V,
    is_wanted: impl Fn(&ProtocolInfo) -> bool,
) -> Vec<(&'static str, V::Output)> {
    let first = (PROTOCOLS[0].name, visitor.visit::<Occ>(PROTOCOLS[0].name));
    let found = PROTOCOLS.iter().filter(|protocol| protocol.workers_max >= workers && is_wanted(protocol));
    [first]
        .into_iter()
        .chain(found.map(|protocol| (protocol.name, visitor.visit::<Any>(protocol.name))))
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
    fn protocols_say_what_they_can_do() {
        let found = |is_so: fn(&ProtocolInfo) -> bool| {
            PROTOCOLS
                .iter()
                .filter(|protocol| is_so(protocol))
                .map(|protocol| protocol.name)
                .collect::<Vec<_>>()
        };
        assert!(found(|protocol| protocol.defers).iter().all(|name| name.starts_with("d")));
        assert_eq!(found(|protocol| protocol.steals), ["steal", "steal-basic"]);
        assert_eq!(found(|protocol| !protocol.concurrent), ["serial", "none", "naive-htm"]);
        assert_eq!(found(|protocol| !protocol.strict), ["tictoc"]);
    }

    #[test]
    fn a_variant_that_is_not_listed_can_be_had_by_its_name() {
        let found = find("plor+deadline=7").unwrap();
        assert_eq!((found.name, found.workers_max), ("plor+deadline=7", find("plor").unwrap().workers_max));
        assert_eq!(find("occ").unwrap(), &PROTOCOLS[0]);
        assert!(find("plor+deadline=x").is_err());
        let for_comparison = ["plor+deadline=7", "drp+calm=7"].map(|name| find(name).unwrap().for_comparison);
        assert_eq!(for_comparison, [true, false], "as the listed one");
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
            "unknown protocol \"ocm\"; there are: occ, chop, chop-htm, dbx, ic3, plor, plor+dwa, plor+optimistic, \
             plor+latched, plor+deadline, drp, drp+tame, drp+opaque, drp+exclusive, deferred-2pl, deferred-2pl+exclusive, tictoc, \
             mocc, wound-wait, wait-die, no-wait, steal, steal-basic, 2pl-mcs, tl2, serial, none, naive-htm"
        );
    }
}
