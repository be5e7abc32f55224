//! The execution of statements within transactions, and transactions that are one closure.

use super::errors::{internal, of_error};
use super::hub::{Hub, Mailbox};
use super::prepared::Prepared;
use super::settings::Settings;
use super::state::SessionState;
use crate::catalog::{Catalog, CatalogChanges};
use crate::error::SqlError;
use crate::instance::Shared;
use crate::outcome::{Field, Outcome};
use crate::run::{Run, Stop};
use crate::values::{Datum, Type, cast};
use hotrow::sync::Arc;
use hotrow::{Any, Durability, Error, Isolation, Profile, Transaction};
use std::any::Any as AnyPayload;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A statement that runs within a transaction and can run again.
pub(super) enum Work {
    Plan {
        prepared: Rc<Prepared>,
        parameters: Rc<[Datum]>,
    },
    /// `EXECUTE`. The arguments are the values of a query.
    Execute {
        name: String,
        prepared: Rc<Prepared>,
        arguments: Option<Rc<Prepared>>,
    },
    /// `SHOW` one setting, or all.
    Show(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
}

/// All that a statement needs but for its transaction.
pub(super) struct Executor {
    pub(super) shared: Arc<Shared>,
    pub(super) state: SessionState,
    pub(super) changes: RefCell<CatalogChanges>,
    pub(super) hub: Arc<Hub>,
    pub(super) mailbox: Arc<Mailbox>,
    /// True if the transaction has said that it only reads.
    pub(super) reads_only: Cell<bool>,
    /// True if the transaction is on a snapshot because all its statements seem to read only.
    on_snapshot: Cell<bool>,
    /// Set when one of them does not.
    has_missed: Cell<bool>,
}

impl Executor {
    pub(super) fn new(shared: Arc<Shared>, state: SessionState, waker: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            hub: Hub::of(&shared),
            mailbox: Mailbox::new(waker),
            shared,
            state,
            changes: RefCell::default(),
            reads_only: Cell::new(false),
            on_snapshot: Cell::new(false),
            has_missed: Cell::new(false),
        }
    }

    /// The profile of a transaction: on a snapshot, if it only reads.
    pub(super) fn profile(&self, only_reads: bool) -> Profile {
        let durability =
            if self.state.settings().is_buffered { Durability::Buffered } else { Durability::OfDatabase };
        let isolation = if only_reads { Isolation::StrictSnapshot } else { Isolation::Serializable };
        Profile { read_only: only_reads, isolation, durability, ..Profile::UNKNOWN }
    }

    /// Runs a statement.
    pub(super) fn run(&self, tx: &mut Transaction<'_, Any>, work: &Work) -> Result<Outcome, Stop> {
        match work {
            Work::Plan { prepared, parameters } => self.run_plan(tx, prepared, parameters),
            Work::Execute { name, prepared, arguments } => {
                let parameters = self.arguments(tx, name, prepared, arguments.as_deref())?;
                self.run_plan(tx, prepared, &parameters)
            }
            Work::Show(_) | Work::Notify { .. } => Ok(self.run_outside(work)?),
        }
    }

    /// Runs a statement that needs no transaction.
    pub(super) fn run_outside(&self, work: &Work) -> Result<Outcome, SqlError> {
        match work {
            Work::Show(name) => self.show(name.as_deref()),
            Work::Notify { channel, payload } => {
                self.state.notify(channel, payload)?;
                Ok(Outcome::Done { tag: "NOTIFY".to_owned() })
            }
            Work::Plan { .. } | Work::Execute { .. } => Err(internal("a statement needs a transaction")),
        }
    }

    fn run_plan(
        &self,
        tx: &mut Transaction<'_, Any>,
        prepared: &Prepared,
        parameters: &[Datum],
    ) -> Result<Outcome, Stop> {
        self.state.check_cancelled()?;
        let catalog = self.shared.catalog.get(tx)?;
        let plan = prepared.plan(&catalog, &self.state)?;
        if !plan.only_reads {
            self.check_may_write(prepared)?;
        }
        if parameters.len() != plan.parameters.len() {
            let position = parameters.len() + 1;
            return Err(SqlError::new("42P02", format!("there is no parameter ${position}")).into());
        }
        let mut run = Run::new(tx, &self.shared, catalog, &self.state, parameters, &self.changes);
        plan.run(&mut run)
    }

    /// Fails if the transaction must not write.
    pub(super) fn check_may_write(&self, prepared: &Prepared) -> Result<(), SqlError> {
        if self.reads_only.get() {
            let verb = match prepared.source().map(|source| source.verb.as_str()) {
                Some("" | "SELECT" | "WITH" | "VALUES") | None => "this",
                Some(verb) => verb,
            };
            let message = format!("cannot execute {verb} in a read-only transaction");
            return Err(SqlError::new("25006", message));
        }
        if self.on_snapshot.get() {
            self.has_missed.set(true);
            return Err(internal("a statement was to read only"));
        }
        Ok(())
    }

    /// The values of `EXECUTE`, of the types that the statement wants.
    fn arguments(
        &self,
        tx: &mut Transaction<'_, Any>,
        name: &str,
        prepared: &Prepared,
        arguments: Option<&Prepared>,
    ) -> Result<Vec<Datum>, Stop> {
        let catalog = self.shared.catalog.get(tx)?;
        let wanted = prepared.plan(&catalog, &self.state)?.parameters.clone();
        let (fields, values) = match arguments {
            None => (None, Box::default()),
            Some(arguments) => match self.run_plan(tx, arguments, &[])? {
                Outcome::Rows { fields, mut rows, .. } if rows.len() == 1 => {
                    (Some(fields), rows.pop().unwrap_or_default())
                }
                _ => return Err(SqlError::new("42601", "the arguments of EXECUTE give no single row").into()),
            },
        };
        if values.len() != wanted.len() {
            let (has, wants) = (values.len(), wanted.len());
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(SqlError::new("42601", message)
                .detail(format!("Expected {wants} parameters but got {has}."))
                .into());
        }
        let given = fields.iter().flat_map(|fields| fields.iter());
        let values = values.into_vec().into_iter().zip(given).zip(wanted.iter());
        Ok(values
            .map(|((value, field), wanted)| cast(value, field.ty, *wanted, -1))
            .collect::<Result<_, _>>()?)
    }

    /// `SHOW`.
    fn show(&self, name: Option<&str>) -> Result<Outcome, SqlError> {
        let settings = self.state.settings();
        let text = |text: String| Datum::Text(text.into());
        let rows = match name {
            Some(name) if name.eq_ignore_ascii_case("transaction_read_only") => {
                let value = if self.reads_only.get() { "on" } else { "off" };
                vec![vec![text(value.to_owned())].into()]
            }
            Some(name) => vec![vec![text(settings.show(name)?)].into()],
            None => {
                let all = settings.all();
                all.map(|(name, value)| vec![text(name.to_owned()), text(value), text(String::new())].into())
                    .collect()
            }
        };
        Ok(Outcome::Rows { fields: show_fields(name), rows, tag: "SHOW".to_owned() })
    }

    /// True if a statement is known to read only.
    pub(super) fn only_reads(&self, work: &Work) -> bool {
        let reads = |prepared: &Prepared| prepared.last_plan().is_some_and(|plan| plan.only_reads);
        match work {
            Work::Plan { prepared, .. } => reads(prepared),
            Work::Execute { prepared, arguments, .. } => {
                reads(prepared) && arguments.as_deref().is_none_or(reads)
            }
            Work::Show(_) => true,
            Work::Notify { .. } => false,
        }
    }

    /// Runs a transaction until it commits, and then does what was put off until then. `on_snapshot` says that all that it does seems
    /// to be reading.
    pub(super) fn retried<R>(
        &self,
        on_snapshot: bool,
        mut body: impl FnMut(&mut Transaction<'_, Any>) -> Result<R, Stop>,
    ) -> Result<R, SqlError> {
        self.state.has_guessed.set(false);
        self.state.may_guess.set(true);
        let result = self.retried_once(on_snapshot, &mut body);
        self.state.may_guess.set(false);
        match result {
            // A condition that was to be judged at the commit did not hold, or a sum was too large: without guesses it is known.
            Err(error) if error.code == "22003" && self.state.has_guessed.get() => {
                self.retried_once(on_snapshot, &mut body)
            }
            result => result,
        }
    }

    fn retried_once<R>(
        &self,
        on_snapshot: bool,
        body: &mut dyn FnMut(&mut Transaction<'_, Any>) -> Result<R, Stop>,
    ) -> Result<R, SqlError> {
        self.state.transaction_started.set(self.state.statement_started.get());
        self.on_snapshot.set(on_snapshot && !self.reads_only.get());
        let profile = self.profile(on_snapshot || self.reads_only.get());
        let ran = catch_unwind(AssertUnwindSafe(|| {
            self.shared.database.try_transact_as(profile, |tx| {
                self.state.bind(tx)?;
                self.state.roll_back();
                self.state.take_notices();
                self.changes.borrow_mut().begin_attempt();
                let result = body(tx)?;
                self.check_pending()?;
                Ok(result)
            })
        }));
        self.on_snapshot.set(false);
        let result = self.finished(ran);
        if self.has_missed.take() && on_snapshot {
            self.rolled_back();
            return self.retried_once(false, body);
        }
        match &result {
            Ok(_) => self.committed(),
            Err(_) => self.rolled_back(),
        }
        result
    }

    /// The result of something that may have panicked, as an error of a statement.
    pub(super) fn finished<R>(
        &self,
        ran: Result<Result<R, Error<Stop>>, Box<dyn AnyPayload + Send>>,
    ) -> Result<R, SqlError> {
        match ran {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(of_error(error, &self.state)),
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Err(internal(&text.unwrap_or_else(|| "a statement panicked".to_owned())))
            }
        }
    }

    /// Checks that what is put off until the commit can be done then.
    pub(super) fn check_pending(&self) -> Result<(), SqlError> {
        if self.state.has_pending() { self.state.check_pending(&self.hub, &self.mailbox) } else { Ok(()) }
    }

    /// The transaction has committed.
    pub(super) fn committed(&self) {
        let pending = self.state.commit();
        self.reads_only.set(self.state.settings().reads_only);
        self.shared.clean_up(&self.changes);
        if !pending.is_empty() {
            self.hub.commit(pending, self.state.process, &self.mailbox);
        }
    }

    /// The transaction has had no effect.
    pub(super) fn rolled_back(&self) {
        self.state.roll_back();
        self.reads_only.set(self.state.settings().reads_only);
        self.shared.clean_up(&self.changes);
    }

    /// The catalog, where no session is open.
    pub(super) fn catalog(&self) -> Result<Arc<Catalog>, SqlError> {
        self.shared.committed_catalog().map_err(|error| super::errors::of_session(error, &self.state))
    }
}

/// The columns of `SHOW`.
pub(super) fn show_fields(name: Option<&str>) -> Arc<[Field]> {
    let field = |name: &str| Field { name: name.into(), ty: Type::Text, modifier: -1, table: 0, column: 0 };
    match name {
        Some(name) => Arc::new([field(&Settings::name_of(name))]),
        None => Arc::new([field("name"), field("setting"), field("description")]),
    }
}
