//! Prepared statements: parsed once, planned once for each state of the catalog, and kept by their text.

use super::command::{Command, Planned, commands};
use super::state::SessionState;
use crate::catalog::Catalog;
use crate::error::SqlError;
use crate::hashing::Map;
use crate::outcome::Field;
use crate::plan::{Plan, plan};
use crate::values::Type;
use hotrow::sync::Arc;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// The number of texts whose statements a connection keeps.
const CACHED_MAX: usize = 128;

/// The longest text whose statements are kept.
const CACHED_LENGTH_MAX: usize = 4_096;

/// A statement that was parsed.
pub(super) struct Prepared {
    pub(super) command: Command,
    /// Its text, if a client has prepared it.
    pub(super) text: Option<Rc<str>>,
    /// The types of its parameters, as far as the client has said.
    declared: Vec<Option<Type>>,
    /// The shape of a statement that its client knows: its parameters and its result must stay what they were.
    shape: Option<OnceCell<Shape>>,
    /// The last plan, with the version of its catalog.
    planned: RefCell<Option<(u64, Rc<Plan>)>>,
}

struct Shape {
    parameters: Arc<[Type]>,
    fields: Option<Arc<[Field]>>,
}

impl Prepared {
    fn new(command: Command, declared: Vec<Option<Type>>, keeps_shape: bool) -> Self {
        let shape = keeps_shape.then(OnceCell::new);
        Self { command, text: None, declared, shape, planned: RefCell::default() }
    }

    /// A statement of a simple query.
    pub(super) fn simple(command: Command) -> Rc<Self> {
        Rc::new(Self::new(command, Vec::new(), false))
    }

    /// A statement that a client prepares.
    pub(super) fn kept(command: Command, declared: Vec<Option<Type>>, text: Option<&str>) -> Rc<Self> {
        Rc::new(Self { text: text.map(Rc::from), ..Self::new(command, declared, true) })
    }

    /// The part that has a plan.
    pub(super) fn source(&self) -> Option<&Planned> {
        match &self.command {
            Command::Planned(planned)
            | Command::Copy(planned, _)
            | Command::Declare { query: planned, .. } => Some(planned),
            _ => None,
        }
    }

    /// True if it is a query.
    pub(super) fn is_query(&self) -> bool {
        let verb = self.source().map(|source| source.verb.as_str());
        matches!(verb, Some("" | "SELECT" | "WITH" | "VALUES" | "TABLE"))
    }

    /// The last plan, if there is one.
    pub(super) fn last_plan(&self) -> Option<Rc<Plan>> {
        self.planned.borrow().as_ref().map(|(_, plan)| plan.clone())
    }

    /// True if the last plan was made by this catalog.
    pub(super) fn is_planned_by(&self, catalog: &Catalog) -> bool {
        self.planned.borrow().as_ref().is_some_and(|(version, _)| *version == catalog.version)
    }

    /// The plan by a catalog.
    pub(super) fn plan(&self, catalog: &Arc<Catalog>, state: &SessionState) -> Result<Rc<Plan>, SqlError> {
        if let Some((version, plan)) = &*self.planned.borrow()
            && *version == catalog.version
        {
            return Ok(plan.clone());
        }
        let source = self.source().ok_or_else(|| SqlError::new("XX000", "the statement has no plan"))?;
        let known = self.shape.as_ref().and_then(OnceCell::get);
        let made = match known {
            None => plan(&source.statement, catalog, &self.declared, state)?,
            Some(shape) => {
                let declared: Vec<_> = shape.parameters.iter().copied().map(Some).collect();
                let made = plan(&source.statement, catalog, &declared, state)?;
                if !same_columns(&made.fields, &shape.fields) || made.parameters != shape.parameters {
                    return Err(SqlError::new("0A000", "cached plan must not change result type"));
                }
                made
            }
        };
        let made = Rc::new(made);
        if let Some(shape) = &self.shape {
            let _ = shape.set(Shape { parameters: made.parameters.clone(), fields: made.fields.clone() });
        }
        *self.planned.borrow_mut() = Some((catalog.version, made.clone()));
        Ok(made)
    }

    /// The types of the parameters, once it was planned.
    pub(super) fn parameters(&self) -> Arc<[Type]> {
        let known = self.shape.as_ref().and_then(OnceCell::get).map(|shape| shape.parameters.clone());
        known.or_else(|| self.last_plan().map(|plan| plan.parameters.clone())).unwrap_or_default()
    }
}

/// True if two results have the same columns, of whatever table.
fn same_columns(now: &Option<Arc<[Field]>>, then: &Option<Arc<[Field]>>) -> bool {
    let shape = |fields: &Option<Arc<[Field]>>| -> Option<Vec<_>> {
        let fields = fields.as_ref()?.iter();
        Some(fields.map(|field| (field.name.clone(), field.ty, field.modifier)).collect())
    };
    shape(now) == shape(then)
}

/// The key of a text's statements: a simple query's, or the types that a client has declared.
type Key = (Box<str>, Option<Box<[u32]>>);

/// Statements by their texts. The one that was used least recently goes first.
#[derive(Default)]
pub(super) struct Cache {
    kept: Map<Key, (Rc<[Rc<Prepared>]>, u64)>,
    uses: u64,
}

impl Cache {
    /// The statements of a simple query.
    pub(super) fn simple(&mut self, text: &str) -> Result<Rc<[Rc<Prepared>]>, SqlError> {
        let key = (text.into(), None);
        if let Some(found) = self.find(&key) {
            return Ok(found);
        }
        let made: Rc<[_]> = commands(text)?.into_iter().map(Prepared::simple).collect();
        self.keep(key, made.clone());
        Ok(made)
    }

    /// The statement that a client prepares with these types. It is made anew if it was planned by another catalog.
    pub(super) fn prepared(
        &mut self,
        text: &str,
        types: &[u32],
        catalog: &Catalog,
    ) -> Result<Rc<Prepared>, SqlError> {
        let key = (text.into(), Some(types.into()));
        if let Some(found) = self.find(&key)
            && (found[0].source().is_none() || found[0].is_planned_by(catalog))
        {
            return Ok(found[0].clone());
        }
        let mut commands = commands(text)?;
        if commands.len() > 1 {
            return Err(SqlError::new("42601", "cannot insert multiple commands into a prepared statement"));
        }
        let declared: Result<Vec<_>, _> = types.iter().map(|oid| declared(*oid)).collect();
        let made = Prepared::kept(commands.pop().unwrap_or(Command::Empty), declared?, Some(text));
        self.keep(key, Rc::new([made.clone()]));
        Ok(made)
    }

    fn find(&mut self, key: &Key) -> Option<Rc<[Rc<Prepared>]>> {
        self.uses += 1;
        let (found, used) = self.kept.get_mut(key)?;
        *used = self.uses;
        Some(found.clone())
    }

    fn keep(&mut self, key: Key, statements: Rc<[Rc<Prepared>]>) {
        if key.0.len() > CACHED_LENGTH_MAX || statements.is_empty() {
            return;
        }
        if self.kept.len() >= CACHED_MAX {
            let oldest = self.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.map(|oldest| self.kept.remove(&oldest));
        }
        self.kept.insert(key, (statements, self.uses));
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}

/// The type that a client has declared; none if it leaves it open.
fn declared(oid: u32) -> Result<Option<Type>, SqlError> {
    match oid {
        0 | 705 => Ok(None),
        oid => match Type::of_oid(oid) {
            Some(ty) => Ok(Some(ty)),
            None => Err(SqlError::new("42704", format!("type with OID {oid} does not exist"))),
        },
    }
}
