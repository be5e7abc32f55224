//! Databases: an engine, and tables that are found by name.

use crate::catalog::Catalog;
use crate::database_log::DatabaseLog;
use crate::misuse::TableMisuse;
use hotrow_core::{Engine, Error, Misuse, Protocol, RetryPolicy};
use hotrow_protocols::{Any, Occ};
use hotrow_sync::{Arc, OnceLock};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// What a crate above keeps with a database, or with its builder.
pub(crate) type Extension = Box<dyn std::any::Any + Send + Sync>;

/// The log of a database.
pub(crate) type Log<P> = std::sync::Arc<dyn DatabaseLog<P>>;

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
    /// The state that a crate above keeps with the database: that of procedures.
    extension: OnceLock<Extension>,
    /// The log, if its tables are durable.
    log: Option<Log<P>>,
}

/// The properties of a database to be opened. See [`Database::builder`].
pub struct DatabaseBuilder<P: Protocol = Occ> {
    variant: Option<String>,
    policy: RetryPolicy,
    /// The properties of which a crate above knows: those of a log.
    extension: Option<Extension>,
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
            extension: self.extension,
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
    /// [`Misuse::NoSuchVariant`]; [`TableMisuse::NoPlaceForLog`](crate::TableMisuse::NoPlaceForLog) if a log was given settings.
    pub fn open(self) -> Result<Database<P>, Error> {
        let (options, policy) = engine_options(&self)?;
        if self.extension.is_some() {
            return Err(TableMisuse::NoPlaceForLog.into());
        }
        Ok(Database::on(&Engine::with_options(&options, policy)))
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
            extension: None,
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
        with_log(engine, None)
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

/// The options of the protocol's variant that a builder has chosen, and the retry policy.
pub fn engine_options<P: Protocol>(
    builder: &DatabaseBuilder<P>,
) -> Result<(P::Options, RetryPolicy), Misuse> {
    let known = || P::VARIANTS.iter().map(|variant| variant.name);
    let name = builder.variant.as_deref().or_else(|| known().next()).unwrap_or_default();
    let options = P::options(name)
        .ok_or_else(|| Misuse::NoSuchVariant { name: name.to_owned(), known: known().collect() })?;
    Ok((options, builder.policy))
}

/// The place for what a crate above keeps with a builder.
pub fn builder_extension<P: Protocol>(builder: &mut DatabaseBuilder<P>) -> &mut Option<Extension> {
    &mut builder.extension
}

/// An empty database on an engine, with the log that keeps its commits.
pub fn with_log<P: Protocol>(engine: &Engine<P>, log: Option<Log<P>>) -> Database<P> {
    let (engine, catalog, extension) = (engine.clone(), Catalog::new(), OnceLock::new());
    Database { shared: Arc::new(Shared { engine, catalog, extension, log }) }
}

/// The log of a database, if it has one.
pub fn log<P: Protocol>(database: &Database<P>) -> Option<&Log<P>> {
    database.shared.log.as_ref()
}

/// The place for what a crate above keeps with a database.
#[inline(always)]
pub fn extension<P: Protocol>(database: &Database<P>) -> &OnceLock<Extension> {
    &database.shared.extension
}
