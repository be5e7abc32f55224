//! Protocols without a place of their own: written once, over the type that hosts them.
//!
//! The kernel is compiled for a [`Protocol`], which says what it keeps beside each value, in each item and for each worker. A protocol of this crate
//! is an [`Algorithm`]: it has types for the same three places, and reaches them through its [`Host`]. So the same text runs as a type of its
//! own, as fast as the compiler can make it ([`hosts_itself!`]), and as one of all that [`Any`](crate::Any) can be at run time.

use hotrow_core::{Protocol, Variants};

/// A protocol, over the type that hosts it: it has [`Steps<H>`](hotrow_core::Steps) for every host `H`.
///
/// # Safety
///
/// As for [`Protocol`], under every host.
pub unsafe trait Algorithm: Variants + Send + Sync {
    /// See [`Protocol::READS_PASS_PREPARED`].
    const READS_PASS_PREPARED: bool = false;
    /// See [`Protocol::TRACKS_READS`]. Where it is false, a host may track reads all the same.
    const TRACKS_READS: bool = true;
    /// True if [`enter`](hotrow_core::Steps::enter) does something. Otherwise a host need not call it.
    const ENTERS: bool = false;

    /// See [`Protocol::Header`].
    type Header: Default + Send + Sync + 'static;
    /// See [`Protocol::Mark`].
    type Mark: Copy + Default + Send + 'static;
    /// See [`Protocol::Local`].
    type Local: Default + Send + 'static;
}

/// A type that can be a protocol, and keeps for it what it needs. Of what it keeps for others, the protocol never sees anything: an engine
/// is one protocol from its making to its end.
///
/// # Safety
///
/// Where the host is the protocol, each function returns the protocol's part of what it is given, the same one each time.
pub unsafe trait Host<A: Algorithm>: Protocol {
    /// The protocol; `None` if the host is another one.
    fn algorithm(&self) -> Option<&A>;

    /// The protocol's state beside a value.
    fn header(header: &Self::Header) -> &A::Header;

    /// The state beside a value that has this of the protocol's.
    fn new_header(header: A::Header) -> Self::Header;

    /// The protocol's trace of a read.
    fn mark(mark: Self::Mark) -> A::Mark;

    /// The trace of a read that has this of the protocol's.
    fn new_mark(mark: A::Mark) -> Self::Mark;

    /// The place of [`mark`](Self::mark), to be changed.
    fn mark_mut(mark: &mut Self::Mark) -> &mut A::Mark;

    /// The protocol's state for a worker.
    fn local(local: &Self::Local) -> &A::Local;

    /// As [`local`](Self::local), to be changed.
    fn local_mut(local: &mut Self::Local) -> &mut A::Local;

    /// The state for a worker that has this of the protocol's.
    fn new_local(local: A::Local) -> Self::Local;
}

/// Makes an algorithm a protocol that is nothing else.
macro_rules! hosts_itself {
    ($algorithm:ty { $($capability:ident = $type:ty),* $(,)? }) => {
        // SAFETY: what it keeps is the protocol's, whole.
        unsafe impl $crate::host::Host<$algorithm> for $algorithm {
            #[inline(always)]
            fn algorithm(&self) -> Option<&$algorithm> {
                Some(self)
            }

            #[inline(always)]
            fn header(header: &Self::Header) -> &<$algorithm as $crate::host::Algorithm>::Header {
                header
            }

            #[inline(always)]
            fn new_header(header: <$algorithm as $crate::host::Algorithm>::Header) -> Self::Header {
                header
            }

            #[inline(always)]
            fn mark(mark: Self::Mark) -> <$algorithm as $crate::host::Algorithm>::Mark {
                mark
            }

            #[inline(always)]
            fn new_mark(mark: <$algorithm as $crate::host::Algorithm>::Mark) -> Self::Mark {
                mark
            }

            #[inline(always)]
            fn mark_mut(mark: &mut Self::Mark) -> &mut <$algorithm as $crate::host::Algorithm>::Mark {
                mark
            }

            #[inline(always)]
            fn local(local: &Self::Local) -> &<$algorithm as $crate::host::Algorithm>::Local {
                local
            }

            #[inline(always)]
            fn local_mut(local: &mut Self::Local) -> &mut <$algorithm as $crate::host::Algorithm>::Local {
                local
            }

            #[inline(always)]
            fn new_local(local: <$algorithm as $crate::host::Algorithm>::Local) -> Self::Local {
                local
            }
        }

        // SAFETY: the algorithm promises the same of every host.
        unsafe impl hotrow_core::Protocol for $algorithm {
            const READS_PASS_PREPARED: bool = <$algorithm as $crate::host::Algorithm>::READS_PASS_PREPARED;
            const TRACKS_READS: bool = <$algorithm as $crate::host::Algorithm>::TRACKS_READS;
            type Header = <$algorithm as $crate::host::Algorithm>::Header;
            type Mark = <$algorithm as $crate::host::Algorithm>::Mark;
            type Local = <$algorithm as $crate::host::Algorithm>::Local;
            $(type $capability = $type;)*
        }
    };
}
pub(crate) use hosts_itself;
