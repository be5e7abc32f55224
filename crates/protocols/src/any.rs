//! The protocol that is any of the others, chosen when an engine is made.
//!
//! Whatever is compiled for this type runs under every protocol of the registry: a name from a configuration file chooses one. It keeps beside each
//! value, in each item and for each worker the state of whichever it is, in the same place: [`AnyHeader`], [`AnyMark`] and [`AnyLocal`]. Each
//! function calls that of the protocol; a function that loads a value is passed on by a pointer, so that protocols are
//! compiled here once, and not in the program that reads a value of another type.
//!
//! A header is that of a segment nobody has written if all its bytes are zero, under every protocol. So a segment can be made without
//! the knowledge of its engine.

use crate::chop::Chop;
use crate::drp::Drp;
use crate::host::{Algorithm, Host};
use crate::ic3::Ic3;
use crate::locking::TwoPhaseLocking;
use crate::mocc::Mocc;
use crate::naive_htm::NaiveHtm;
use crate::none::Uncontrolled;
use crate::occ::Occ;
use crate::plor::Plor;
use crate::serial::Serial;
use crate::steal::McsLocking;
use crate::tictoc::TicToc;
use crate::tl2::Tl2;
use hotrow_core::{
    Attempt, ConflictCause, EnterError, ItemId, LoggedReads, ObjectMeta, PieceOrder, Prepared, Protocol,
    Reports, Rival, TouchedSegment, Variant, Variants,
};
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};

/// The words of the largest header.
const HEADER_WORDS: usize = 4;

/// The number of elements in lists.
const fn count_all<T>(lists: &[&[T]]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < lists.len() {
        sum += lists[at].len();
        at += 1;
    }
    sum
}

/// The lists one after the other. There are `N` elements, and one at least.
const fn join<T: Copy, const N: usize>(lists: &[&[T]], first: T) -> [T; N] {
    let mut joined = [first; N];
    let (mut list, mut to) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            joined[to] = lists[list][at];
            (at, to) = (at + 1, to + 1);
        }
        list += 1;
    }
    joined
}

/// Makes everything that names each protocol. `$d` is a dollar sign, for the macro in it.
macro_rules! hosts {
    ($d:tt $($name:ident),*) => {
        /// Calls a function of the protocol that it is.
        macro_rules! each {
            ($d any:expr, $d algorithm:ident => $d call:expr) => {
                match &$d any.0 {
                    $(Chosen::$name($d algorithm) => $d call),*
                }
            };
        }

        /// One of the protocols.
        #[derive(Debug)]
        enum Chosen {
            $($name($name)),*
        }

        /// The options of one of the protocols.
        #[derive(Debug, Clone)]
        enum ChosenOptions {
            $($name(<$name as Variants>::Options)),*
        }

        /// The state beside a value, of whichever protocol the engine has.
        #[repr(C)]
        #[allow(non_snake_case, reason = "a field for each protocol, by its name")]
        pub union AnyHeader {
            words: [u64; HEADER_WORDS],
            $($name: ManuallyDrop<<$name as Algorithm>::Header>),*
        }

        /// The trace of a read, of whichever protocol the engine has.
        #[repr(C)]
        #[derive(Clone, Copy)]
        #[allow(non_snake_case, reason = "as above")]
        pub union AnyMark {
            words: [u64; 2],
            $($name: <$name as Algorithm>::Mark),*
        }

        /// The state of a worker, of whichever protocol the engine has.
        #[derive(Default)]
        enum Local {
            /// No attempt has begun.
            #[default]
            Unused,
            $($name(<$name as Algorithm>::Local)),*
        }

        const _: () = {
            assert!(size_of::<AnyHeader>() == 8 * HEADER_WORDS && size_of::<AnyMark>() == 16);
            $(assert!(!needs_drop::<<$name as Algorithm>::Header>(), "a header would not be dropped");)*
        };

        const LISTS: &[&[Variant]] = &[$(<$name as Variants>::VARIANTS),*];
        const ALL: [Variant; count_all(LISTS)] = join(LISTS, LISTS[0][0]);
        // No protocol has counters of its own: all are those of capabilities.
        const _: () = assert!(true $(&& <$name as Variants>::COUNTERS.is_empty())*);

        impl Variants for Any {
            const VARIANTS: &'static [Variant] = &ALL;
            const OPAQUE: bool = false;
            const WORKERS_MAX: u32 = u32::MAX;
            const ALLOWS_CHOPPING: bool = true;
            const ALLOWS_REGIONS: bool = true;

            type Options = AnyOptions;

            fn options(name: &str) -> Option<AnyOptions> {
                $(if let Some(options) = $name::options(name) {
                    return Some(AnyOptions(ChosenOptions::$name(options)));
                })*
                None
            }

            fn name(options: &AnyOptions) -> String {
                match &options.0 {
                    $(ChosenOptions::$name(options) => $name::name(options)),*
                }
            }

            fn is_opaque(options: &AnyOptions) -> bool {
                match &options.0 {
                    $(ChosenOptions::$name(options) => $name::is_opaque(options)),*
                }
            }

            fn workers_max(options: &AnyOptions) -> u32 {
                match &options.0 {
                    $(ChosenOptions::$name(options) => <$name as Variants>::workers_max(options)),*
                }
            }

            fn is_strict(&self) -> bool {
                each!(self, it => Variants::is_strict(it))
            }

            fn is_concurrent(&self) -> bool {
                each!(self, it => Variants::is_concurrent(it))
            }

            fn chops(&self) -> bool {
                each!(self, it => Variants::chops(it))
            }

            fn uses_regions(&self) -> bool {
                each!(self, it => Variants::uses_regions(it))
            }

            fn new(options: &AnyOptions) -> Self {
                match &options.0 {
                    $(ChosenOptions::$name(options) => Self(Chosen::$name($name::new(options)))),*
                }
            }
        }

        #[cfg(all(test, not(loom)))]
        fn are_zero_bytes_the_defaults_of_all() -> bool {
            true $(&& tests::is_zero::<$name>())*
        }

        impl Any {
            /// Makes the worker's state that of the protocol, if no attempt has begun.
            #[inline]
            fn prepare_local(&self, local: &mut AnyLocal) {
                if let Local::Unused = local.0 {
                    local.0 = match &self.0 {
                        $(Chosen::$name(_) => Local::$name(Default::default())),*
                    };
                }
            }
        }

        $(
            // SAFETY: while the host is this protocol, headers, marks and workers' states are made by the functions below, or are zero bytes,
            // which stand for the default.
            unsafe impl Host<$name> for Any {
                #[inline(always)]
                fn algorithm(&self) -> Option<&$name> {
                    match &self.0 {
                        Chosen::$name(algorithm) => Some(algorithm),
                        _ => None,
                    }
                }

                #[inline(always)]
                fn header(header: &AnyHeader) -> &<$name as Algorithm>::Header {
                    // SAFETY: as above.
                    unsafe { &header.$name }
                }

                #[inline(always)]
                fn new_header(header: <$name as Algorithm>::Header) -> AnyHeader {
                    let mut all = AnyHeader::default();
                    all.$name = ManuallyDrop::new(header);
                    all
                }

                #[inline(always)]
                fn mark(mark: AnyMark) -> <$name as Algorithm>::Mark {
                    // SAFETY: as above.
                    unsafe { mark.$name }
                }

                #[inline(always)]
                fn new_mark(mark: <$name as Algorithm>::Mark) -> AnyMark {
                    let mut all = AnyMark::default();
                    all.$name = mark;
                    all
                }

                #[inline(always)]
                fn mark_mut(mark: &mut AnyMark) -> &mut <$name as Algorithm>::Mark {
                    // SAFETY: as above.
                    unsafe { &mut mark.$name }
                }

                #[inline(always)]
                fn local(local: &AnyLocal) -> &<$name as Algorithm>::Local {
                    match &local.0 {
                        Local::$name(local) => local,
                        _ => no_local(),
                    }
                }

                #[inline(always)]
                fn local_mut(local: &mut AnyLocal) -> &mut <$name as Algorithm>::Local {
                    match &mut local.0 {
                        Local::$name(local) => local,
                        _ => no_local(),
                    }
                }

                #[inline(always)]
                fn new_local(local: <$name as Algorithm>::Local) -> AnyLocal {
                    AnyLocal(Local::$name(local))
                }
            }
        )*
    };
}

hosts![
    $ Occ, Chop, Ic3, Plor, Drp, TicToc, Mocc, TwoPhaseLocking, McsLocking, Tl2, Serial, Uncontrolled, NaiveHtm
];

#[cold]
fn no_local() -> ! {
    unreachable!("an attempt begins before it is used, and an engine is one protocol")
}

/// Any protocol of the registry: see [`PROTOCOLS`](crate::PROTOCOLS).
#[derive(Debug)]
pub struct Any(Chosen);

/// The options of any protocol, by the name of a variant: `AnyOptions` of `plor+dwa`.
#[derive(Debug, Clone)]
pub struct AnyOptions(ChosenOptions);

/// The state of a worker, of whichever protocol the engine has.
#[derive(Default)]
pub struct AnyLocal(Local);

// SAFETY: each part is `Send` and `Sync`, and one of them is there.
unsafe impl Send for AnyHeader {}
// SAFETY: as above.
unsafe impl Sync for AnyHeader {}

impl fmt::Debug for AnyHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyHeader").finish_non_exhaustive()
    }
}

impl fmt::Debug for AnyMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyMark").finish_non_exhaustive()
    }
}

impl fmt::Debug for AnyLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyLocal").finish_non_exhaustive()
    }
}

impl Default for AnyHeader {
    #[inline(always)]
    fn default() -> Self {
        // SAFETY: zero bytes are words.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

impl Default for AnyMark {
    #[inline(always)]
    fn default() -> Self {
        Self { words: [0; 2] }
    }
}

impl Any {
    #[inline(never)]
    fn read_any(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: &mut dyn FnMut(),
    ) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::read(it, attempt, item, load))
    }

    #[inline(never)]
    fn read_any_for_update(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: &mut dyn FnMut(),
    ) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::read_for_update(it, attempt, item, load))
    }

    #[inline(never)]
    fn peek_any(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: &mut dyn FnMut(),
    ) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::peek(it, attempt, item, load))
    }
}

/// Calls a function that takes what loads a value by a pointer, and returns the value of the last load.
#[inline(always)]
fn keep_last<V>(
    mut load: impl FnMut() -> V,
    read: impl FnOnce(&mut dyn FnMut()) -> Result<(), ConflictCause>,
) -> Result<V, ConflictCause> {
    let mut last = None;
    read(&mut || last = Some(load()))?;
    Ok(last.expect("a read loads its value"))
}

// SAFETY: the protocol that it is promises the same under every host. The value of a read is that of the last call of `load`.
unsafe impl Protocol for Any {
    const READS_PASS_PREPARED: bool = true;

    type Header = AnyHeader;
    type Mark = AnyMark;
    type Local = AnyLocal;
    type Deferral = Drp;
    type Stealing = McsLocking;
    type RangeLocks = McsLocking;
    type LoggedReads = Self;
    type PieceOrder = Self;
    type Elision = NaiveHtm;
    type Reports = Self;

    fn begin(&self, attempt: &mut Attempt<Self>) {
        self.prepare_local(&mut attempt.local);
        each!(self, it => Algorithm::begin(it, attempt));
    }

    /// Few protocols do anything here, which the compiler sees.
    #[inline(always)]
    fn enter(&self, attempt: &mut Attempt<Self>) -> Result<(), EnterError> {
        each!(self, it => Algorithm::enter(it, attempt))
    }

    #[inline(always)]
    fn read<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        keep_last(load, |load| self.read_any(attempt, item, load))
    }

    #[inline(always)]
    fn read_for_update<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        keep_last(load, |load| self.read_any_for_update(attempt, item, load))
    }

    fn write(&self, attempt: &mut Attempt<Self>, item: ItemId) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::write(it, attempt, item))
    }

    #[inline(always)]
    fn peek<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        keep_last(load, |load| self.peek_any(attempt, item, load))
    }

    fn new_locked_header(&self, attempt: &Attempt<Self>) -> AnyHeader {
        each!(self, it => new_locked_header_of(it, attempt))
    }

    fn observed(
        &self,
        attempt: &mut Attempt<Self>,
        object: Option<&ObjectMeta>,
    ) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::observed(it, attempt, object))
    }

    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::prepare(it, attempt))
    }

    fn finish(&self, prepared: Prepared<'_, Self>) {
        each!(self, it => Algorithm::finish(it, prepared));
    }

    #[cold]
    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        each!(self, it => Algorithm::validate_before_rollback(it, attempt))
    }

    fn abort(&self, attempt: &mut Attempt<Self>) {
        each!(self, it => Algorithm::abort(it, attempt));
    }

    fn after_cleanup(&self, attempt: &mut Attempt<Self>) {
        each!(self, it => Algorithm::after_cleanup(it, attempt));
    }
}

fn new_locked_header_of<A: Algorithm>(algorithm: &A, attempt: &Attempt<Any>) -> AnyHeader
where
    Any: Host<A>,
{
    <Any as Host<A>>::new_header(algorithm.new_locked_header(attempt))
}

impl PieceOrder<Any> for Any {
    fn of(protocol: &Any) -> Option<&Self> {
        <Ic3 as PieceOrder<Any>>::of(protocol).map(|_| protocol)
    }

    fn before_piece(&self, attempt: &mut Attempt<Any>) {
        if let Some(order) = <Ic3 as PieceOrder<Any>>::of(self) {
            // No attempt may have begun.
            self.prepare_local(&mut attempt.local);
            order.before_piece(attempt);
        }
    }

    fn end_pieces(&self, attempt: &mut Attempt<Any>) {
        if let Some(order) = <Ic3 as PieceOrder<Any>>::of(self) {
            self.prepare_local(&mut attempt.local);
            order.end_pieces(attempt);
        }
    }
}

/// Names the protocols whose headers name the winner of a conflict.
macro_rules! reports {
    ($($name:ident),*) => {
        impl Reports<Any> for Any {
            fn of(protocol: &Any) -> Option<&Self> {
                matches!(&protocol.0, $(Chosen::$name(_))|*).then_some(protocol)
            }

            fn rival(&self, attempt: &Attempt<Any>, header: &AnyHeader) -> Option<Rival> {
                match &self.0 {
                    $(Chosen::$name(it) => Reports::<Any>::rival(it, attempt, header),)*
                    _ => None,
                }
            }

            fn commit_number(&self, attempt: &Attempt<Any>) -> u64 {
                match &self.0 {
                    $(Chosen::$name(it) => Reports::<Any>::commit_number(it, attempt),)*
                    _ => 0,
                }
            }
        }
    };
}

reports![Occ, Chop, Ic3, Plor, Drp, TwoPhaseLocking, McsLocking, Tl2];

/// Names the protocols that log reads.
macro_rules! logs_reads {
    ($($name:ident),*) => {
        impl LoggedReads<Any> for Any {
            #[inline(always)]
            fn of(protocol: &Any) -> Option<&Self> {
                matches!(&protocol.0, $(Chosen::$name(_))|*).then_some(protocol)
            }

            #[inline(always)]
            fn read<V>(
                &self,
                attempt: &mut Attempt<Any>,
                segment: TouchedSegment<Any>,
                load: impl FnMut() -> V,
            ) -> Result<V, ConflictCause> {
                keep_last(load, |load| self.read_any_logged(attempt, segment, load))
            }
        }

        impl Any {
            #[inline(never)]
            fn read_any_logged(
                &self,
                attempt: &mut Attempt<Self>,
                segment: TouchedSegment<Self>,
                load: &mut dyn FnMut(),
            ) -> Result<(), ConflictCause> {
                match &self.0 {
                    $(Chosen::$name(it) => LoggedReads::read(it, attempt, segment, load),)*
                    _ => unreachable!("it logs no reads"),
                }
            }
        }
    };
}

logs_reads![Occ, Chop, Ic3, Drp, TicToc, Tl2];

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::fmt::Debug;
    use std::mem::zeroed;

    /// Compares values and not bytes, because some have padding.
    pub(super) fn is_zero<A: Algorithm<Header: Debug, Mark: Debug>>() -> bool {
        // SAFETY: headers and marks are atomic words, integers and flags, all of which may be zero.
        let (header, mark): (A::Header, A::Mark) = unsafe { (zeroed(), zeroed()) };
        let default = (A::Header::default(), A::Mark::default());
        format!("{:?}", (header, mark)) == format!("{default:?}")
    }

    #[test]
    fn headers_and_marks_of_zero_bytes_are_the_defaults_of_all_protocols() {
        assert!(are_zero_bytes_the_defaults_of_all());
    }
}
