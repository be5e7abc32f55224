//! The protocol that is any of the others, chosen when an engine is made.
//!
//! Whatever is compiled for this type runs under every protocol of the registry: a name from a configuration file chooses one. It keeps beside each
//! value, in each item and for each worker the state of whichever it is, in the same place: [`AnyHeader`], [`AnyMark`] and [`AnyLocal`]. Its
//! functions call those of the protocol through a table. So protocols are compiled here once, and not in the program that reads a value of
//! another type.
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
    Attempt, Before, ConflictCause, EnterError, ItemId, LoggedReads, Look, ObjectMeta, PieceOrder, Prepared,
    Protocol, Reports, Rival, Steps, TouchedSegment, Variant, Variants,
};
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::{MaybeUninit, needs_drop};
use std::panic::RefUnwindSafe;
use std::ptr;

/// The words of the largest header, which is that of [`Plor`]; the others have two at most.
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

/// Makes everything that names each protocol.
macro_rules! hosts {
    ($($name:ident),*) => {
        /// Names the protocols.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Kind {
            $($name),*
        }

        /// The options of one of the protocols.
        #[derive(Debug, Clone)]
        enum ChosenOptions {
            $($name(<$name as Variants>::Options)),*
        }

        /// The trace of a read, of whichever protocol the engine has.
        #[repr(C)]
        #[derive(Clone, Copy)]
        #[allow(non_snake_case, reason = "a field for each protocol, by its name")]
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
            assert!(size_of::<AnyMark>() == 16);
            // INVARIANT 23: A header needs no drop, and has room in the header of `Any`.
            $(assert!(!needs_drop::<<$name as Algorithm>::Header>(), "a header would not be dropped");)*
            $(assert!(match Kind::$name {
                // It takes its address for that of the segment.
                Kind::Plor => size_of::<<$name as Algorithm>::Header>() == size_of::<AnyHeader>(),
                _ => size_of::<<$name as Algorithm>::Header>() <= 16,
            });)*
            $(assert!(align_of::<<$name as Algorithm>::Header>() <= align_of::<AnyHeader>());)*
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
                self.it.is_strict()
            }

            fn is_concurrent(&self) -> bool {
                self.it.is_concurrent()
            }

            fn chops(&self) -> bool {
                self.it.chops()
            }

            fn uses_regions(&self) -> bool {
                self.it.uses_regions()
            }

            fn new(options: &AnyOptions) -> Self {
                match &options.0 {
                    // SAFETY: of the same name.
                    $(ChosenOptions::$name(options) => unsafe { Self::hosting(Kind::$name, $name::new(options)) }),*
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
                    local.0 = match self.kind {
                        $(Kind::$name => Local::$name(Default::default())),*
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
                    // SAFETY: the kind tells the type of what is hosted.
                    (self.kind == Kind::$name).then(|| unsafe { &*ptr::from_ref(&*self.it).cast::<$name>() })
                }

                #[inline(always)]
                fn header(header: &AnyHeader) -> &<$name as Algorithm>::Header {
                    // SAFETY: as above.
                    unsafe { &*header.place() }
                }

                #[inline(always)]
                fn new_header(header: <$name as Algorithm>::Header) -> AnyHeader {
                    let all = AnyHeader::default();
                    // SAFETY: the place is the header's own.
                    unsafe { all.place::<<$name as Algorithm>::Header>().write(header) };
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
    Occ,
    Chop,
    Ic3,
    Plor,
    Drp,
    TicToc,
    Mocc,
    TwoPhaseLocking,
    McsLocking,
    Tl2,
    Serial,
    Uncontrolled,
    NaiveHtm
];

#[cold]
fn no_local() -> ! {
    unreachable!("an attempt begins before it is used, and an engine is one protocol")
}

/// Any protocol of the registry: see [`PROTOCOLS`](crate::PROTOCOLS).
#[derive(Debug)]
pub struct Any {
    it: Box<dyn Hosted>,
    kind: Kind,
    /// See [`Algorithm::ENTERS`].
    enters: bool,
    logs_reads: bool,
    loads_to_write: bool,
}

/// The state beside a value, of whichever protocol the engine has. It lies at the end of these bytes, next to the value. Some have bytes that are
/// padding.
#[repr(transparent)]
pub struct AnyHeader(UnsafeCell<[MaybeUninit<u64>; HEADER_WORDS]>);

/// The options of any protocol, by the name of a variant: `AnyOptions` of `plor+dwa`.
#[derive(Debug, Clone)]
pub struct AnyOptions(ChosenOptions);

/// The state of a worker, of whichever protocol the engine has.
#[derive(Default)]
pub struct AnyLocal(Local);

// SAFETY: the header of each protocol is `Send` and `Sync`, and one of them is there; nothing else reaches the bytes.
unsafe impl Sync for AnyHeader {}
// As the headers of all protocols, which are atomic words.
impl RefUnwindSafe for AnyHeader {}

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
        Self(UnsafeCell::new([const { MaybeUninit::new(0) }; HEADER_WORDS]))
    }
}

impl AnyHeader {
    /// The place of a protocol's header.
    #[inline(always)]
    fn place<H>(&self) -> *mut H {
        let last = size_of::<Self>() - size_of::<H>();
        self.0.get().wrapping_byte_add(last).cast()
    }
}

impl Default for AnyMark {
    #[inline(always)]
    fn default() -> Self {
        Self { words: [0; 2] }
    }
}

/// A protocol that [`Any`] hosts: its steps, which `Any` calls through a table, and what else depends on which one it is.
trait Hosted: Steps<Any> + MayLogReads + fmt::Debug {
    fn is_strict(&self) -> bool;
    fn is_concurrent(&self) -> bool;
    fn chops(&self) -> bool;
    fn uses_regions(&self) -> bool;
}

impl<A: Algorithm + Steps<Any> + MayLogReads + fmt::Debug> Hosted for A {
    fn is_strict(&self) -> bool {
        Variants::is_strict(self)
    }

    fn is_concurrent(&self) -> bool {
        Variants::is_concurrent(self)
    }

    fn chops(&self) -> bool {
        Variants::chops(self)
    }

    fn uses_regions(&self) -> bool {
        Variants::uses_regions(self)
    }
}

impl Any {
    /// # Safety
    ///
    /// The algorithm is of this kind.
    unsafe fn hosting<A: Hosted + Algorithm>(kind: Kind, algorithm: A) -> Self {
        let (logs_reads, loads_to_write) = (algorithm.logs_reads(), MayLogReads::loads_to_write(&algorithm));
        Self { enters: A::ENTERS, logs_reads, loads_to_write, kind, it: Box::new(algorithm) }
    }
}

// SAFETY: the protocol that it is promises the same under every host.
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
}

impl Steps<Any> for Any {
    fn begin(&self, attempt: &mut Attempt<Self>) {
        self.prepare_local(&mut attempt.local);
        self.it.begin(attempt);
    }

    #[inline(always)]
    fn enter(&self, attempt: &mut Attempt<Self>) -> Result<(), EnterError> {
        if self.enters { self.it.enter(attempt) } else { Ok(()) }
    }

    #[inline(always)]
    fn before_load(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        look: Look,
    ) -> Result<Before, ConflictCause> {
        self.it.before_load(attempt, item, look)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        self.it.after_load(attempt, item, look, before)
    }

    #[inline(always)]
    fn write(&self, attempt: &mut Attempt<Self>, item: ItemId) -> Result<(), ConflictCause> {
        self.it.write(attempt, item)
    }

    #[inline(always)]
    fn new_locked_header(&self, attempt: &Attempt<Self>) -> AnyHeader {
        self.it.new_locked_header(attempt)
    }

    #[inline(always)]
    fn observed(
        &self,
        attempt: &mut Attempt<Self>,
        object: Option<&ObjectMeta>,
    ) -> Result<(), ConflictCause> {
        self.it.observed(attempt, object)
    }

    #[inline(always)]
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        self.it.prepare(attempt)
    }

    #[inline(always)]
    fn finish(&self, prepared: Prepared<'_, Self>) {
        self.it.finish(prepared);
    }

    #[inline(always)]
    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        self.it.validate_before_rollback(attempt)
    }

    #[inline(always)]
    fn abort(&self, attempt: &mut Attempt<Self>) {
        self.it.abort(attempt);
    }

    #[inline(always)]
    fn after_cleanup(&self, attempt: &mut Attempt<Self>) {
        self.it.after_cleanup(attempt);
    }
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
                matches!(protocol.kind, $(Kind::$name)|*).then_some(protocol)
            }

            fn rival(&self, attempt: &Attempt<Any>, header: &AnyHeader) -> Option<Rival> {
                $(if let Some(it) = Host::<$name>::algorithm(self) {
                    return Reports::<Any>::rival(it, attempt, header);
                })*
                None
            }

            fn commit_number(&self, attempt: &Attempt<Any>) -> u64 {
                $(if let Some(it) = Host::<$name>::algorithm(self) {
                    return Reports::<Any>::commit_number(it, attempt);
                })*
                0
            }
        }
    };
}

reports![Occ, Chop, Ic3, Plor, Drp, TwoPhaseLocking, McsLocking, Tl2];

/// The reads of a protocol, if it logs them.
trait MayLogReads {
    fn logs_reads(&self) -> bool {
        false
    }

    fn before_logged(&self, _segment: &TouchedSegment<Any>) -> Result<Before, ConflictCause> {
        logs_no_reads()
    }

    fn after_logged(
        &self,
        _attempt: &mut Attempt<Any>,
        _segment: &TouchedSegment<Any>,
        _before: Before,
    ) -> Result<(), ConflictCause> {
        logs_no_reads()
    }

    fn loads_to_write(&self) -> bool {
        false
    }

    fn mark_to_write(
        &self,
        _attempt: &mut Attempt<Any>,
        _segment: &TouchedSegment<Any>,
        _before: Before,
    ) -> Option<AnyMark> {
        None
    }
}

#[cold]
fn logs_no_reads() -> ! {
    unreachable!("only a protocol that logs reads is asked to")
}

/// Tells which protocols log reads, and which do not.
macro_rules! logs_reads {
    ($($name:ident),*; $($other:ident),*) => {
        $(impl MayLogReads for $name {
            fn logs_reads(&self) -> bool {
                true
            }

            #[inline(always)]
            fn before_logged(&self, segment: &TouchedSegment<Any>) -> Result<Before, ConflictCause> {
                LoggedReads::<Any>::before_load(self, segment)
            }

            #[inline(always)]
            fn after_logged(
                &self,
                attempt: &mut Attempt<Any>,
                segment: &TouchedSegment<Any>,
                before: Before,
            ) -> Result<(), ConflictCause> {
                LoggedReads::<Any>::after_load(self, attempt, segment, before)
            }

            fn loads_to_write(&self) -> bool {
                LoggedReads::<Any>::loads_to_write(self)
            }

            #[inline(always)]
            fn mark_to_write(
                &self,
                attempt: &mut Attempt<Any>,
                segment: &TouchedSegment<Any>,
                before: Before,
            ) -> Option<AnyMark> {
                LoggedReads::<Any>::mark_to_write(self, attempt, segment, before)
            }
        })*

        $(impl MayLogReads for $other {})*
    };
}

logs_reads![
    Occ, Chop, Ic3, Drp, TicToc, Tl2;
    Plor, Mocc, TwoPhaseLocking, McsLocking, Serial, Uncontrolled, NaiveHtm
];

impl LoggedReads<Any> for Any {
    #[inline(always)]
    fn of(protocol: &Any) -> Option<&Self> {
        protocol.logs_reads.then_some(protocol)
    }

    #[inline(always)]
    fn before_load(&self, segment: &TouchedSegment<Any>) -> Result<Before, ConflictCause> {
        self.it.before_logged(segment)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<Any>,
        segment: &TouchedSegment<Any>,
        before: Before,
    ) -> Result<(), ConflictCause> {
        self.it.after_logged(attempt, segment, before)
    }

    #[inline(always)]
    fn loads_to_write(&self) -> bool {
        self.loads_to_write
    }

    #[inline(always)]
    fn mark_to_write(
        &self,
        attempt: &mut Attempt<Any>,
        segment: &TouchedSegment<Any>,
        before: Before,
    ) -> Option<AnyMark> {
        self.it.mark_to_write(attempt, segment, before)
    }
}

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
