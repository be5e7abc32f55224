//! Databases: an engine, and tables that are found by name.

use crate::catalog::Catalog;
use crate::chopping::publishing::Marks;
use crate::chopping::{Chopping, ChoppingError, ChoppingPlan};
#[cfg(all(feature = "durable", not(loom)))]
use crate::durable::{Durable, LogSettings};
use hotrow_core::{Engine, Error, Isolation, Misuse, Protocol, RetryPolicy};
use hotrow_protocols::{Any, Occ};
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU8};
use hotrow_sync::{Arc, OnceLock};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A function called before operations.
pub(crate) type OperationHook = dyn Fn() + Send + Sync;

/// A database: an [engine](Engine), and the tables that were made in it, by name.
///
/// It is a handle: a clone refers to the same database. Tables are made at any time, before and while transactions run.
/// Everything that an engine offers, the database offers, too.
///
/// ```
/// use hotrow_tables::Database;
///
/// let db = Database::open()?;
/// let accounts = db.table::<String, i64>("accounts").hash(4).create()?;
/// accounts.bulk_insert([("ada".into(), 1_000)])?;
/// let left = db.transact(|tx| accounts.update(tx, "ada", |balance| { *balance -= 1; *balance }))?;
/// assert_eq!(left, 999);
/// assert!(db.table::<String, u8>("accounts").open().is_err(), "its rows are of type i64");
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct Database<P: Protocol = Occ> {
    shared: Arc<Shared<P>>,
}

struct Shared<P: Protocol> {
    engine: Engine<P>,
    catalog: Catalog,
    hook: OnceLock<Box<OperationHook>>,
    /// The isolation of procedures that only read.
    readers: AtomicU8,
    /// The procedures that are executed in pieces.
    chopping: OnceLock<ChoppingPlan>,
    /// The marks of changes that they publish.
    marks: OnceLock<Marks>,
    /// The log, and what was recovered.
    #[cfg(all(feature = "durable", not(loom)))]
    durable: OnceLock<Arc<Durable<P>>>,
}

/// A database that does not stay open because of this handle.
#[cfg(all(feature = "durable", not(loom)))]
pub(crate) struct WeakDatabase<P: Protocol>(hotrow_sync::Weak<Shared<P>>);

#[cfg(all(feature = "durable", not(loom)))]
impl<P: Protocol> WeakDatabase<P> {
    pub(crate) fn upgrade(&self) -> Option<Database<P>> {
        self.0.upgrade().map(|shared| Database { shared })
    }
}

/// The properties of a database to be opened. See [`Database::builder`].
pub struct DatabaseBuilder<P: Protocol = Occ> {
    variant: Option<String>,
    pub(crate) policy: RetryPolicy,
    #[cfg(all(feature = "durable", not(loom)))]
    pub(crate) log: LogSettings,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> fmt::Debug for DatabaseBuilder<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseBuilder")
            .field("variant", &self.variant)
            .field("policy", &self.policy)
            .finish()
    }
}

impl<P: Protocol> DatabaseBuilder<P> {
    /// Chooses the protocol by the name of a variant, such as `plor` or `plor+dwa`, when the program runs. The database is then one of
    /// [`Any`] protocol: `Database<Any>`. [`PROTOCOLS`](hotrow_protocols::PROTOCOLS) lists the names.
    ///
    /// ```
    /// use hotrow_protocols::Any;
    /// use hotrow_tables::Database;
    ///
    /// let name = std::env::var("PROTOCOL").unwrap_or("plor+dwa".into());
    /// let db: Database<Any> = Database::builder().protocol(name).open()?;
    /// assert_eq!(db.protocol(), "plor+dwa");
    /// # Ok::<(), hotrow_core::Error>(())
    /// ```
    #[must_use]
    pub fn protocol(self, name: impl Into<String>) -> DatabaseBuilder<Any> {
        self.typed().variant(name)
    }

    /// Chooses the protocol as a type: in its first variant, unless [`variant`](Self::variant) names another one.
    #[must_use]
    pub fn typed<Q: Protocol>(self) -> DatabaseBuilder<Q> {
        DatabaseBuilder {
            variant: None,
            policy: self.policy,
            #[cfg(all(feature = "durable", not(loom)))]
            log: self.log,
            protocol: PhantomData,
        }
    }

    /// Chooses the variant of the protocol that has this name, such as `plor+dwa` or `wound-wait`.
    #[must_use]
    pub fn variant(mut self, name: impl Into<String>) -> Self {
        self.variant = Some(name.into());
        self
    }

    /// Sets the retry policy: attempts, deadline, pauses.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Opens the database, which is empty.
    ///
    /// # Errors
    ///
    /// [`Misuse::NoSuchVariant`].
    pub fn open(self) -> Result<Database<P>, Error> {
        let options = self.protocol_options()?;
        Ok(Database::on(&Engine::with_options(&options, self.policy)))
    }

    /// The options of the protocol's variant.
    pub(crate) fn protocol_options(&self) -> Result<P::Options, Misuse> {
        let known = || P::VARIANTS.iter().map(|variant| variant.name);
        let name = self.variant.as_deref().or_else(|| known().next()).unwrap_or_default();
        P::options(name)
            .ok_or_else(|| Misuse::NoSuchVariant { name: name.to_owned(), known: known().collect() })
    }
}

impl Database {
    /// Opens an empty database with the default protocol, [`Occ`], and the default retry policy.
    ///
    /// # Errors
    ///
    /// As [`DatabaseBuilder::open`]: with the defaults, none.
    pub fn open() -> Result<Self, Error> {
        Self::builder().open()
    }

    /// Starts a builder, to choose protocol, retry policy and place.
    pub fn builder() -> DatabaseBuilder {
        DatabaseBuilder {
            variant: None,
            policy: RetryPolicy::default(),
            #[cfg(all(feature = "durable", not(loom)))]
            log: LogSettings::default(),
            protocol: PhantomData,
        }
    }
}

impl<P: Protocol> Clone for Database<P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<P: Protocol> fmt::Debug for Database<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.shared.catalog.names();
        f.debug_struct("Database").field("protocol", &self.protocol()).field("tables", &names).finish()
    }
}

impl<P: Protocol> Deref for Database<P> {
    type Target = Engine<P>;
    fn deref(&self) -> &Engine<P> {
        &self.shared.engine
    }
}

impl<P: Protocol> Database<P> {
    /// An empty database on an engine that exists.
    pub fn on(engine: &Engine<P>) -> Self {
        let (engine, catalog, hook) = (engine.clone(), Catalog::new(), OnceLock::new());
        let readers = AtomicU8::new(Isolation::StrictSnapshot as u8);
        let shared = Shared {
            engine,
            catalog,
            hook,
            readers,
            chopping: OnceLock::new(),
            marks: OnceLock::new(),
            #[cfg(all(feature = "durable", not(loom)))]
            durable: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// An empty database on an engine with a log.
    #[cfg(all(feature = "durable", not(loom)))]
    pub(crate) fn with_log(engine: &Engine<P>, durable: Durable<P>) -> Self {
        let database = Self::on(engine);
        assert!(database.shared.durable.set(Arc::new(durable)).is_ok(), "the database is new");
        database
    }

    /// The log, if there is one.
    #[cfg(all(feature = "durable", not(loom)))]
    pub(crate) fn durable(&self) -> Option<&Arc<Durable<P>>> {
        self.shared.durable.get()
    }

    /// A handle that does not keep the database open.
    #[cfg(all(feature = "durable", not(loom)))]
    pub(crate) fn downgrade(&self) -> WeakDatabase<P> {
        WeakDatabase(Arc::downgrade(&self.shared))
    }

    /// Calls `hook` before each operation of a procedure (a read, change, insertion, deletion or scan), on the thread
    /// that runs it: to delay the operations, or to count or stop them in tests. It is not called before operations of
    /// closures on the tables, or before commits. Without a hook an operation pays for one comparison.
    ///
    /// The hook runs within the transaction, so it must not begin another one. A panic in it is a panic of the
    /// procedure.
    ///
    /// # Panics
    ///
    /// If the database has a hook.
    pub fn before_operations(&self, hook: impl Fn() + Send + Sync + 'static) {
        assert!(self.shared.hook.set(Box::new(hook)).is_ok(), "a database has one hook");
    }

    /// Sets the isolation of procedures that only read, and whose [profile](crate::Procedure::profile) names no other: a
    /// [strict snapshot](Isolation::StrictSnapshot) unless it is set. [`Isolation::Serializable`] lets them read the present
    /// state, by the protocol.
    pub fn set_readers_isolation(&self, isolation: Isolation) {
        // Relaxed: no other memory depends on it.
        self.shared.readers.store(isolation as u8, Ordering::Relaxed);
    }

    /// Chops procedures: from now on they are executed in pieces, under a protocol that [allows](Engine::allows_chopping) it
    /// (`chop`); under others the call only checks the declarations. Call it before transactions run.
    ///
    /// Procedures that are not among them, closures, and procedures that do what no trace of theirs shows run whole: while one is in
    /// progress, the others run as one piece each. Closures of the operations after the first piece must not panic: what has committed
    /// stays. An insertion whose result the procedure does not use must have a key of its own.
    /// Changes that are [published later](Chopping::publish) are made in the last piece; procedures that read them in between are
    /// aborted and made again.
    ///
    /// # Errors
    ///
    /// As [`Chopping::analyse`]; [`ChoppingError::Chopped`] if the database has chopped procedures.
    pub fn chop(&self, chopping: &Chopping) -> Result<(), ChoppingError> {
        let plan = if self.orders_pieces() { chopping.ranked_plan()? } else { chopping.plan()? };
        if plan.publishes() {
            let _ = self.shared.marks.set(Marks::new(self.id()));
        }
        self.shared.chopping.set(plan).map_err(|_| ChoppingError::Chopped)?;
        if self.allows_chopping() {
            self.begin_chopping();
        }
        Ok(())
    }

    /// The procedures that are executed in pieces.
    #[inline]
    pub(crate) fn chopped(&self) -> Option<&ChoppingPlan> {
        self.shared.chopping.get()
    }

    /// The marks of changes that procedures publish, if they do.
    #[inline]
    pub(crate) fn marks(&self) -> Option<&Marks> {
        self.shared.marks.get()
    }

    /// The isolation of procedures that only read.
    pub(crate) fn readers_isolation(&self) -> Isolation {
        let isolations = [Isolation::Serializable, Isolation::ReadCommitted, Isolation::Snapshot];
        let number = self.shared.readers.load(Ordering::Relaxed);
        isolations
            .into_iter()
            .find(|isolation| *isolation as u8 == number)
            .unwrap_or(Isolation::StrictSnapshot)
    }

    /// The function to call before each operation of a procedure.
    #[inline(always)]
    pub(crate) fn hook(&self) -> Option<&OperationHook> {
        self.shared.hook.get().map(|hook| &**hook)
    }

    #[inline(always)]
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// The names of all tables and secondary indexes.
    pub fn names(&self) -> Vec<String> {
        self.catalog().names()
    }
}
