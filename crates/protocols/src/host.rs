//! Protocols without a place of their own: written once, over the type that hosts them.
//!
//! The kernel is compiled for a [`Protocol`], which says what it keeps beside each value, in each item and for each worker. A protocol of this crate
//! is an [`Algorithm`]: it has types for the same three places, and reaches them through its [`Host`]. So the same text runs as a type of its
//! own, as fast as the compiler can make it ([`hosts_itself!`]), and as one of all that [`Any`](crate::Any) can be at run time.

use hotrow_core::{
    Attempt, Before, ConflictCause, EnterError, ItemId, Look, ObjectMeta, Prepared, Protocol, Variants,
};

/// A protocol, over the type that hosts it. Its functions are those of [`Protocol`], and mean the same.
///
/// # Safety
///
/// As for [`Protocol`], under every host.
pub unsafe trait Algorithm: Variants + Send + Sync {
    /// See [`Protocol::READS_PASS_PREPARED`].
    const READS_PASS_PREPARED: bool = false;
    /// See [`Protocol::TRACKS_READS`]. Where it is false, a host may track reads all the same.
    const TRACKS_READS: bool = true;
    /// True if [`enter`](Self::enter) does something.
    const ENTERS: bool = false;

    /// See [`Protocol::Header`].
    type Header: Default + Send + Sync + 'static;
    /// See [`Protocol::Mark`].
    type Mark: Copy + Default + Send + 'static;
    /// See [`Protocol::Local`].
    type Local: Default + Send + 'static;

    /// See [`Protocol::begin`].
    #[inline(always)]
    fn begin<H: Host<Self>>(&self, _attempt: &mut Attempt<H>) {}

    /// See [`Protocol::enter`]. Not called unless it [does something](Self::ENTERS).
    #[inline(always)]
    fn enter<H: Host<Self>>(&self, _attempt: &mut Attempt<H>) -> Result<(), EnterError> {
        Ok(())
    }

    /// See [`Protocol::before_load`].
    fn before_load<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        item: ItemId,
        look: Look,
    ) -> Result<Before, ConflictCause>;

    /// See [`Protocol::after_load`].
    fn after_load<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        item: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause>;

    /// See [`Protocol::write`].
    #[inline(always)]
    fn write<H: Host<Self>>(&self, _attempt: &mut Attempt<H>, _item: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    /// See [`Protocol::new_locked_header`].
    fn new_locked_header<H: Host<Self>>(&self, attempt: &Attempt<H>) -> Self::Header;

    /// See [`Protocol::observed`].
    #[inline(always)]
    fn observed<H: Host<Self>>(
        &self,
        _attempt: &mut Attempt<H>,
        _object: Option<&ObjectMeta>,
    ) -> Result<(), ConflictCause> {
        Ok(())
    }

    /// See [`Protocol::prepare`].
    fn prepare<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause>;

    /// See [`Protocol::finish`].
    fn finish<H: Host<Self>>(&self, prepared: Prepared<'_, H>);

    /// See [`Protocol::validate_before_rollback`].
    #[cold]
    fn validate_before_rollback<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        self.prepare(attempt)
    }

    /// See [`Protocol::abort`].
    fn abort<H: Host<Self>>(&self, attempt: &mut Attempt<H>);

    /// See [`Protocol::after_cleanup`].
    #[inline(always)]
    fn after_cleanup<H: Host<Self>>(&self, _attempt: &mut Attempt<H>) {}
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

            #[inline(always)]
            fn begin(&self, attempt: &mut hotrow_core::Attempt<Self>) {
                $crate::host::Algorithm::begin(self, attempt);
            }

            #[inline(always)]
            fn enter(&self, attempt: &mut hotrow_core::Attempt<Self>) -> Result<(), hotrow_core::EnterError> {
                $crate::host::Algorithm::enter(self, attempt)
            }

            #[inline(always)]
            fn before_load(
                &self,
                attempt: &mut hotrow_core::Attempt<Self>,
                item: hotrow_core::ItemId,
                look: hotrow_core::Look,
            ) -> Result<hotrow_core::Before, hotrow_core::ConflictCause> {
                $crate::host::Algorithm::before_load(self, attempt, item, look)
            }

            #[inline(always)]
            fn after_load(
                &self,
                attempt: &mut hotrow_core::Attempt<Self>,
                item: hotrow_core::ItemId,
                look: hotrow_core::Look,
                before: hotrow_core::Before,
            ) -> Result<(), hotrow_core::ConflictCause> {
                $crate::host::Algorithm::after_load(self, attempt, item, look, before)
            }

            #[inline(always)]
            fn write(
                &self,
                attempt: &mut hotrow_core::Attempt<Self>,
                item: hotrow_core::ItemId,
            ) -> Result<(), hotrow_core::ConflictCause> {
                $crate::host::Algorithm::write(self, attempt, item)
            }

            #[inline(always)]
            fn new_locked_header(&self, attempt: &hotrow_core::Attempt<Self>) -> Self::Header {
                $crate::host::Algorithm::new_locked_header(self, attempt)
            }

            #[inline(always)]
            fn observed(
                &self,
                attempt: &mut hotrow_core::Attempt<Self>,
                object: Option<&hotrow_core::ObjectMeta>,
            ) -> Result<(), hotrow_core::ConflictCause> {
                $crate::host::Algorithm::observed(self, attempt, object)
            }

            #[inline(always)]
            fn prepare(
                &self,
                attempt: &mut hotrow_core::Attempt<Self>,
            ) -> Result<(), hotrow_core::ConflictCause> {
                $crate::host::Algorithm::prepare(self, attempt)
            }

            #[inline(always)]
            fn finish(&self, prepared: hotrow_core::Prepared<'_, Self>) {
                $crate::host::Algorithm::finish(self, prepared);
            }

            #[cold]
            fn validate_before_rollback(
                &self,
                attempt: &mut hotrow_core::Attempt<Self>,
            ) -> Result<(), hotrow_core::ConflictCause> {
                $crate::host::Algorithm::validate_before_rollback(self, attempt)
            }

            #[inline(always)]
            fn abort(&self, attempt: &mut hotrow_core::Attempt<Self>) {
                $crate::host::Algorithm::abort(self, attempt);
            }

            #[inline(always)]
            fn after_cleanup(&self, attempt: &mut hotrow_core::Attempt<Self>) {
                $crate::host::Algorithm::after_cleanup(self, attempt);
            }
        }
    };
}
pub(crate) use hosts_itself;
