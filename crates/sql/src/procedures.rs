//! Procedures that a program registers, for `CALL`.
//!
//! A procedure is a function of a transaction, run again until it commits if the call is a statement of its own. So a whole exchange of
//! statements takes one message, and nobody holds a hot row while a client thinks.

use crate::error::SqlError;
use crate::instance::Instance;
use crate::outcome::Outcome;
use crate::plan::{Plan, plan};
use crate::run::{Run, Stop};
use crate::values::{Datum, Type};
use hotrow::sync::{Mutex, lock};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The number of plans that an instance keeps for its procedures.
const PLANS_MAX: usize = 1_000;

type Body = dyn Fn(&mut Call<'_, '_, '_>, &[Datum]) -> Result<(), Stop> + Send + Sync;

/// A procedure with the types of its arguments.
#[derive(Clone)]
pub(crate) struct Procedure {
    pub(crate) parameters: Arc<[Type]>,
    body: Arc<Body>,
}

/// The procedures of an instance, and the plans of their statements.
#[derive(Default)]
pub(crate) struct Procedures {
    by_name: Mutex<HashMap<String, Procedure>>,
    /// By text and types of parameters, with the version of the catalog that they were made by.
    plans: Mutex<HashMap<(String, Vec<Type>), (u64, Arc<Plan>)>>,
}

impl Procedures {
    /// The procedure of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Procedure> {
        lock(&self.by_name).get(name).cloned()
    }
}

/// The transaction of a call.
pub struct Call<'r, 't, 'w>(&'r mut Run<'t, 'w>);

impl fmt::Debug for Call<'_, '_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

impl Instance {
    /// Registers a procedure, which clients run by `CALL name(arguments)`. One of the same name is replaced. Its body may run several times,
    /// and must do nothing but through [`Call`].
    ///
    /// ```
    /// use hotrow_sql::values::{Datum, Type};
    /// use hotrow_sql::{Instance, InstanceOptions, SqlError};
    ///
    /// let instance = Instance::open(InstanceOptions::default())?;
    /// instance.register("transfer", [Type::Int4, Type::Int4, Type::Int8], |call, arguments| {
    ///     let [from, to, amount] = arguments else { unreachable!("arguments are as declared") };
    ///     let taken = "UPDATE accounts SET balance = balance - $2 WHERE id = $1";
    ///     let given = "UPDATE accounts SET balance = balance + $2 WHERE id = $1";
    ///     call.execute(taken, &[from.clone(), amount.clone()])?;
    ///     call.execute(given, &[to.clone(), amount.clone()])?;
    ///     Ok(())
    /// });
    /// # Ok::<(), SqlError>(())
    /// ```
    pub fn register(
        &self,
        name: impl Into<String>,
        parameters: impl Into<Vec<Type>>,
        body: impl Fn(&mut Call<'_, '_, '_>, &[Datum]) -> Result<(), Stop> + Send + Sync + 'static,
    ) {
        let procedure = Procedure { parameters: parameters.into().into(), body: Arc::new(body) };
        lock(&self.shared.procedures.by_name).insert(name.into(), procedure);
    }
}

impl Procedure {
    /// Runs the body.
    pub(crate) fn run(&self, run: &mut Run<'_, '_>, arguments: &[Datum]) -> Result<(), Stop> {
        (self.body)(&mut Call(run), arguments)
    }
}

impl Call<'_, '_, '_> {
    /// Runs a statement, with values for `$1` and so on. Its plan is kept for the next call.
    ///
    /// # Errors
    ///
    /// Those of the statement, with which the call should end: what it has done is undone then.
    pub fn execute(&mut self, text: &str, parameters: &[Datum]) -> Result<Outcome, Stop> {
        let types = parameters.iter().map(Datum::ty).collect();
        let plan = self.plan(text, types)?;
        let run = &mut *self.0;
        let mut inner =
            Run::new(run.tx, run.shared, run.catalog.clone(), run.session, parameters, run.changes);
        let outcome = plan.run(&mut inner)?;
        run.catalog = inner.catalog;
        Ok(outcome)
    }

    fn plan(&self, text: &str, types: Vec<Type>) -> Result<Arc<Plan>, SqlError> {
        let (plans, version) = (&self.0.shared.procedures.plans, self.0.catalog.version);
        let key = (text.to_owned(), types);
        if let Some((known, plan)) = lock(plans).get(&key)
            && *known == version
        {
            return Ok(plan.clone());
        }
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, text)
            .map_err(|error| SqlError::new("42601", error.to_string()))?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Err(SqlError::new("42601", "a procedure runs one statement at a time"));
        };
        let declared: Vec<Option<Type>> =
            key.1.iter().map(|ty| Some(*ty).filter(|ty| *ty != Type::Unknown)).collect();
        let made = Arc::new(plan(&statement, &self.0.catalog, &declared, self.0.session)?);
        let mut plans = lock(plans);
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        plans.insert(key, (version, made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstanceOptions;
    use crate::virtual_tables::transcript::{ask, connect};

    #[test]
    fn a_call_is_one_transaction() {
        let instance = Instance::open(InstanceOptions::default()).unwrap();
        let connection = &mut connect(&instance);
        ask(connection, "create table accounts (id int primary key, balance bigint check (balance >= 0))");
        ask(connection, "insert into accounts values (1, 10), (2, 0)");
        instance.register("transfer", [Type::Int4, Type::Int4, Type::Int8], |call, arguments| {
            let change = "update accounts set balance = balance + $2 where id = $1";
            call.execute(change, &[arguments[1].clone(), arguments[2].clone()])?;
            let Datum::Int8(amount) = arguments[2] else { unreachable!("as declared") };
            call.execute(change, &[arguments[0].clone(), Datum::Int8(-amount)])?;
            Ok(())
        });
        assert_eq!(ask(connection, "call transfer(1, 2, 4)"), "CALL");
        let refused = ask(connection, "call transfer(1, 2, 7)");
        assert!(refused.starts_with("23514: "), "{refused}");
        let balances = ask(connection, "select balance from accounts order by id");
        assert!(balances.contains('6') && balances.contains('4'), "{balances}");
        assert!(ask(connection, "call nothing()").starts_with("42883: "));
        assert!(ask(connection, "call transfer(1)").starts_with("42883: "));
    }
}
