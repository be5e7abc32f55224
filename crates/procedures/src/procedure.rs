//! Procedures: transactions written once, and the contexts that interpret them.

use crate::scan::Scan;
use hotrow_core::{Abort, Profile, Value};
use hotrow_tables::{Data, Key, KeyRange, Operation, TableRef};

/// A transaction written once, against an abstract [`Context`].
///
/// The eager context runs each operation at once. Its [`Context::Val<T>`] is `T` itself, so the compiler produces
/// plain code. Other contexts may record the operations. The source of the procedure is the same for all.
pub trait Procedure {
    /// The type of the procedure's result.
    type Output: Data;

    /// The facts known before it runs: it writes nothing, the isolation that it needs, the number of records that it
    /// touches. Callers of [`execute`](crate::Procedures::execute) need not repeat them.
    fn profile(&self) -> Profile {
        Profile::UNKNOWN
    }

    /// The name by which [chopping](crate::chopping) knows the procedure: that of its type, unless it gives another one.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Runs the procedure, or records its operations, as the context decides.
    ///
    /// # Errors
    ///
    /// The context's [`Stop`](Context::Stop); pass it up with `?`.
    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Self::Output>, C::Stop>;
}

/// An interpreter of procedures.
///
/// It applies [operations](hotrow_tables::operations) and knows none by name. Procedures call them as the methods of
/// [`Operations`](crate::Operations), which every context has.
///
/// Operations take and return values of the context, [`Val`](Self::Val). Only [`force`](Self::force) turns a value
/// into a plain one. It is free in the eager context; elsewhere it declares that what follows depends on the data
/// (and makes a DRP transaction wild). Closures must depend only on their arguments and on plain captured data, and
/// must have no side effects: a context may run them late, on another thread, or not at all.
pub trait Context: Sized {
    /// A value of type `T` that this context knows now or will know later.
    type Val<T: Data>: Clone + From<T>;
    /// The reason that a procedure cannot go on.
    type Stop: From<Abort>;

    /// Applies an operation to the rows of a key or range.
    ///
    /// # Errors
    ///
    /// [`Stop`](Self::Stop), here and below, when the procedure cannot go on.
    fn apply<K: Key, R: Value, I: Data, O>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        target: Self::Val<O::Target>,
        input: Self::Val<I>,
    ) -> Result<Self::Val<O::Output>, Self::Stop>
    where
        O: Operation<K, R, I, Output: Data> + Send;

    /// Applies the same operation to several keys, one after the other. Each passes a value on to the next, beginning with `initial`; the
    /// last one's is the result.
    fn each<K: Key, R: Value, I: Data, A: Data, O, Keys>(
        &mut self,
        table: TableRef<K, R>,
        operation: O,
        keys: Self::Val<Keys>,
        input: Self::Val<I>,
        initial: A,
    ) -> Result<Self::Val<A>, Self::Stop>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone + Send,
        Keys: Data + IntoIterator<Item = K>;

    /// Looks at a range.
    fn visit<A: Data, S: Scan<A> + Send>(
        &mut self,
        scan: S,
        range: Self::Val<KeyRange<S::Key>>,
    ) -> Result<Self::Val<A>, Self::Stop>;

    /// Announces rows that will be touched soon, up to this byte of each: a hint, which changes no result.
    #[inline(always)]
    fn fetch_ahead<K: Key, R: Value>(
        &mut self,
        _table: TableRef<K, R>,
        _keys: impl Iterator<Item = K> + Clone,
        _bytes: usize,
    ) {
    }

    /// Computes a value from another.
    fn map<A: Data, B: Data>(
        &mut self,
        value: Self::Val<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Self::Val<B>;

    /// Joins two values into one.
    fn zip<A: Data, B: Data>(&mut self, first: Self::Val<A>, second: Self::Val<B>) -> Self::Val<(A, B)>;

    /// Returns the plain value, now: for keys and branches that depend on data.
    fn force<T: Data>(&mut self, value: Self::Val<T>) -> Result<T, Self::Stop>;

    /// Rolls back unless `holds`.
    fn require(&mut self, holds: Self::Val<bool>) -> Result<(), Self::Stop>;
}
