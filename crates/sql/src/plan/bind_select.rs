//! Binding of `SELECT`.

use super::bind_function::{AGGREGATES, GROUP, SERIES, direction};
use super::binder::{Binder, Coercion, Context, fold};
use super::column_names::{name_of, origin_of};
use super::expression::{Expression, Kind, Place};
use super::scope::{Named, Scope};
use super::select::{Distinct, Grouping, Join, Output, Select, Sort, Source};
use crate::error::SqlError;
use crate::values::Type;
use sqlparser::ast::{
    self, Expr, GroupByExpr, OrderBy, OrderByKind, SelectItem, SelectItemQualifiedWildcardKind, Value,
};
use std::cell::RefCell;

/// A value of a `SELECT` with its name.
struct Item {
    name: String,
    expression: Expression,
    origin: Option<(u32, i16)>,
    modifier: i32,
}

impl Item {
    fn of_column(named: &Named) -> Self {
        let Named { name, modifier, origin, .. } = named;
        Self { name: name.to_string(), expression: named.value(0), origin: *origin, modifier: *modifier }
    }

    fn output(&self) -> Output {
        let Self { name, expression, origin, modifier } = self;
        Output { name: name.as_str().into(), ty: expression.ty, modifier: *modifier, origin: *origin }
    }
}

impl Binder<'_> {
    /// Binds a `SELECT`: its plan, the columns of its result, and the order of its rows.
    pub(crate) fn select(
        &self,
        select: &ast::Select,
        order_by: Option<&OrderBy>,
        locks: bool,
        parent: Option<&Scope<'_>>,
    ) -> Result<(Select, Vec<Output>, Vec<Sort>), SqlError> {
        refuse_foreign(select)?;
        let mut scope = Scope::inside(parent);
        let mut sources = Vec::new();
        let mut from = self.from(&select.from, &mut sources, &mut scope)?;
        let calls = RefCell::new(Vec::new());
        let series = RefCell::new(Vec::new());
        let in_list =
            Context { aggregates: Some(&calls), series: Some(&series), scope: &scope, clause: "SELECT" };
        let mut items = self.items(&select.projection, &in_list)?;
        let in_where = Context::new(&scope, "WHERE");
        let filter = match &select.selection {
            Some(condition) => conjuncts(self.condition(self.expression(condition, &in_where)?, "WHERE")?),
            None => Vec::new(),
        };
        let keys = self.group_keys(&select.group_by, &items, &scope)?;
        let having = match &select.having {
            Some(condition) => {
                let context =
                    Context { aggregates: Some(&calls), series: None, scope: &scope, clause: "HAVING" };
                Some(self.condition(self.expression(condition, &context)?, "HAVING")?)
            }
            None => None,
        };
        let visible = items.len();
        let distinct_on = match &select.distinct {
            Some(ast::Distinct::On(by)) => Some(self.distinct_on(by, &mut items, &in_list)?),
            _ => None,
        };
        let is_distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
        let order = self.order(order_by, &mut items, visible, is_distinct, &in_list)?;
        let first_columns = order.iter().map(|sort| sort.column).take_while({
            let by = distinct_on.clone().unwrap_or_default();
            move |column| by.contains(column)
        });
        let first_columns: Vec<usize> = first_columns.collect();
        if let Some(by) = &distinct_on
            && first_columns.len() < order.len()
            && by.iter().any(|column| !first_columns.contains(column))
        {
            return Err(SqlError::new(
                "42P10",
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
            ));
        }
        let outputs = items[..visible].iter().map(Item::output).collect();
        let projection = items.into_iter().map(|item| item.expression).collect();
        if let Some((kind, arguments, _)) = series.into_inner().pop() {
            from = self.add_series(from, &mut sources, Source::Series(kind, arguments));
        }
        let distinct = match (is_distinct, distinct_on) {
            (_, Some(columns)) => Distinct::On(columns),
            (true, None) => Distinct::All(visible),
            (false, None) => Distinct::No,
        };
        let is_grouped =
            !keys.is_empty() || !calls.borrow().is_empty() || having.is_some() || has_group_by(select);
        let grouping = is_grouped.then(|| Grouping { keys, aggregates: calls.into_inner() });
        let mut bound = Select { sources, from, filter, grouping, having, projection, distinct, locks };
        self.place_series(&mut bound);
        self.place_groups(&mut bound, &scope)?;
        self.choose_access(&mut bound.sources, &mut bound.from, &mut bound.filter);
        Ok((bound, outputs, order))
    }

    /// The values of a list and their columns.
    pub(crate) fn list(
        &self,
        list: &[SelectItem],
        context: &Context<'_>,
    ) -> Result<(Vec<Expression>, Vec<Output>), SqlError> {
        let items = self.items(list, context)?;
        let outputs = items.iter().map(Item::output).collect();
        Ok((items.into_iter().map(|item| item.expression).collect(), outputs))
    }

    fn items(&self, projection: &[SelectItem], context: &Context<'_>) -> Result<Vec<Item>, SqlError> {
        let mut items = Vec::new();
        for item in projection {
            let table = match item {
                SelectItem::Wildcard(_) => Some(None),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    Some(Some(super::binder::split_name(name)?.1))
                }
                _ => None,
            };
            if let Some(table) = table {
                let all = context.scope.all(table.as_deref())?;
                items.extend(all.into_iter().map(Item::of_column));
            }
            let (expression, alias) = match item {
                SelectItem::UnnamedExpr(expression) => (expression, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(fold(alias))),
                SelectItem::Wildcard(_)
                | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => {
                    continue;
                }
                other => return Err(SqlError::not_supported(format!("the output {other}"))),
            };
            let bound = self.expression(expression, context)?;
            let bound = self.settled(bound)?;
            items.push(Item {
                name: alias.unwrap_or_else(|| name_of(expression)),
                origin: origin_of(&bound, context.scope),
                modifier: bound.modifier,
                expression: bound,
            });
        }
        Ok(items)
    }

    /// A value whose type is known at last: a literal in quotes is text.
    pub(crate) fn settled(&self, expression: Expression) -> Result<Expression, SqlError> {
        if expression.ty == Type::Unknown && !matches!(expression.kind, Kind::Parameter(_)) {
            return self.coerce(expression, Type::Text, -1, Coercion::Implicit);
        }
        if let Kind::Parameter(number) = expression.kind
            && expression.ty == Type::Unknown
        {
            // As PostgreSQL: a parameter that is only returned is text.
            self.parameters.borrow_mut()[number].get_or_insert(Type::Text);
            return self.parameter(number);
        }
        Ok(expression)
    }

    fn group_keys(
        &self,
        group_by: &GroupByExpr,
        items: &[Item],
        scope: &Scope<'_>,
    ) -> Result<Vec<Expression>, SqlError> {
        let GroupByExpr::Expressions(expressions, modifiers) = group_by else {
            return Err(SqlError::not_supported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::not_supported("GROUP BY with modifiers"));
        }
        let context = Context::new(scope, "GROUP BY");
        let mut keys = Vec::new();
        for expression in expressions {
            if let Some(item) = ordinal(expression) {
                let item = item
                    .and_then(|at| items.get(at))
                    .ok_or_else(|| position_error("GROUP BY", expression))?;
                keys.push(item.expression.clone());
                continue;
            }
            let bound = self.expression(expression, &context);
            let bound = match (bound, expression) {
                // A name that is no column may be one of the result.
                (Err(error), Expr::Identifier(name)) => {
                    let name = fold(name);
                    match items.iter().find(|item| item.name == name) {
                        Some(item) => item.expression.clone(),
                        None => return Err(error),
                    }
                }
                (bound, _) => bound?,
            };
            keys.push(bound);
        }
        if keys.iter().any(contains_aggregate) {
            return Err(SqlError::new("42803", "aggregate functions are not allowed in GROUP BY"));
        }
        Ok(keys)
    }

    fn distinct_on(
        &self,
        by: &[Expr],
        items: &mut Vec<Item>,
        context: &Context<'_>,
    ) -> Result<Vec<usize>, SqlError> {
        by.iter()
            .map(|expression| self.item_of(expression, items, items.len(), context, "DISTINCT ON"))
            .collect()
    }

    /// The place of an expression among the items, at which it is put if it is not there.
    fn item_of(
        &self,
        expression: &Expr,
        items: &mut Vec<Item>,
        visible: usize,
        context: &Context<'_>,
        clause: &str,
    ) -> Result<usize, SqlError> {
        if let Some(at) = ordinal(expression) {
            let at = at.filter(|at| *at < visible);
            return at.ok_or_else(|| position_error(clause, expression));
        }
        if let Expr::Identifier(name) = expression {
            let name = fold(name);
            let mut named = (0..visible).filter(|at| items[*at].name == name);
            if let Some(first) = named.next() {
                if named.any(|other| !items[other].expression.is_same(&items[first].expression)) {
                    return Err(SqlError::new("42702", format!("{clause} \"{name}\" is ambiguous")));
                }
                return Ok(first);
            }
        }
        let bound = self.settled(self.expression(expression, context)?)?;
        if let Some(at) = items.iter().position(|item| item.expression.is_same(&bound)) {
            return Ok(at);
        }
        items.push(Item { name: String::new(), origin: None, modifier: bound.modifier, expression: bound });
        Ok(items.len() - 1)
    }

    fn order(
        &self,
        order_by: Option<&OrderBy>,
        items: &mut Vec<Item>,
        visible: usize,
        is_distinct: bool,
        context: &Context<'_>,
    ) -> Result<Vec<Sort>, SqlError> {
        let mut order = Vec::new();
        for by in order_expressions(order_by)? {
            let column = self.item_of(&by.expr, items, visible, context, "ORDER BY")?;
            if is_distinct && column >= visible {
                return Err(SqlError::new(
                    "42P10",
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                ));
            }
            let (descending, nulls_first) = direction(by)?;
            order.push(Sort { column, descending, nulls_first });
        }
        Ok(order)
    }

    fn add_series(&self, from: Join, sources: &mut Vec<Source>, series: Source) -> Join {
        sources.push(series);
        let scan =
            Join::Scan { source: sources.len() - 1, access: super::select::Access::All, filter: Vec::new() };
        match from {
            Join::Nothing => scan,
            left => Join::Inner { left: Box::new(left), right: Box::new(scan), filter: Vec::new() },
        }
    }

    /// Gives the series among the values its source.
    fn place_series(&self, select: &mut Select) {
        let source = select.sources.len().wrapping_sub(1);
        for value in &mut select.projection {
            value.visit(0, &mut |part, depth| {
                if let Some(place) = part.place_at(depth)
                    && place.source == SERIES
                {
                    part.set_place(Place { source, column: 0 });
                }
            });
        }
    }

    /// Makes all that is computed of groups refer to the groups' rows.
    fn place_groups(&self, select: &mut Select, scope: &Scope<'_>) -> Result<(), SqlError> {
        let group = select.sources.len();
        let Some(mut grouping) = select.grouping.take() else { return Ok(()) };
        self.add_dependent_keys(&mut grouping, select);
        let keys = grouping.keys.clone();
        let mut wrong = None;
        let mut place = |value: &mut Expression| {
            replace_keys(value, &keys, group);
            value.visit(0, &mut |part, depth| {
                let Some(place) = part.place_at(depth) else { return };
                if place.source == GROUP {
                    part.set_place(Place { source: group, column: place.column - AGGREGATES + keys.len() });
                } else if place.source != group {
                    wrong.get_or_insert(place);
                }
            });
        };
        select.projection.iter_mut().for_each(&mut place);
        select.having.iter_mut().for_each(&mut place);
        if let Some(place) = wrong {
            let name = scope.tables.iter().find_map(|table| {
                let column = table.columns.iter().find(|column| column.place == place)?;
                Some(format!("{}.{}", table.name, column.name))
            });
            let name = name.unwrap_or_else(|| "?column?".to_owned());
            return Err(SqlError::new(
                "42803",
                format!(
                    "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
                ),
            ));
        }
        select.grouping = Some(grouping);
        Ok(())
    }

    /// Adds the columns that depend on the keys: all of a table whose primary key is among them.
    fn add_dependent_keys(&self, grouping: &mut Grouping, select: &Select) {
        for (source, table) in select.sources.iter().enumerate() {
            let Source::Table(table) = table else { continue };
            let Some(primary) = &table.relation.primary_key else { continue };
            let is_key = |column: usize| {
                let place = Place { source, column };
                grouping.keys.iter().any(|key| matches!(key.kind, Kind::Column(known) if known == place))
            };
            if !primary.columns.iter().all(|column| is_key(*column as usize)) {
                continue;
            }
            let missing: Vec<usize> =
                (0..table.relation.columns.len()).filter(|column| !is_key(*column)).collect();
            for column in missing {
                let defined = &table.relation.columns[column];
                let kind = Kind::Column(Place { source, column });
                grouping.keys.push(Expression { kind, ty: defined.ty, modifier: defined.modifier });
            }
        }
    }
}

/// Replaces what is a key of a group by its place in the group's row.
fn replace_keys(value: &mut Expression, keys: &[Expression], group: usize) {
    value.visit_before(0, &mut |part, depth| {
        // Inside of a query in an expression a key that is a column is named from there.
        let found = keys.iter().position(|key| match (depth, key.kind.clone()) {
            (0, _) => part.is_same(key),
            (_, Kind::Column(place)) => part.place_at(depth) == Some(place),
            _ => false,
        });
        let Some(column) = found else { return true };
        let place = Place { source: group, column };
        part.kind = if depth == 0 { Kind::Column(place) } else { Kind::Outer(depth, place) };
        false
    });
}

fn contains_aggregate(expression: &Expression) -> bool {
    expression.sources().contains(&GROUP)
}

fn has_group_by(select: &ast::Select) -> bool {
    matches!(&select.group_by, GroupByExpr::Expressions(expressions, _) if !expressions.is_empty())
}

/// The conditions that all have to hold.
pub(crate) fn conjuncts(condition: Expression) -> Vec<Expression> {
    match condition.kind {
        Kind::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        _ => vec![condition],
    }
}

/// The expressions of `ORDER BY`.
pub(crate) fn order_expressions(order_by: Option<&OrderBy>) -> Result<&[ast::OrderByExpr], SqlError> {
    match order_by.map(|by| &by.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(expressions)) => Ok(expressions),
        Some(OrderByKind::All(_)) => Err(SqlError::not_supported("ORDER BY ALL")),
    }
}

/// The place that a number names, if the expression is one; from 0 on.
pub(crate) fn ordinal(expression: &Expr) -> Option<Option<usize>> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.parse::<usize>().ok().and_then(|at| at.checked_sub(1))),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn position_error(clause: &str, expression: &Expr) -> SqlError {
    SqlError::new("42P10", format!("{clause} position {expression} is not in select list"))
}

/// Refuses what other databases have.
fn refuse_foreign(select: &ast::Select) -> Result<(), SqlError> {
    let refused = [
        (select.top.is_some(), "TOP"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (!select.named_window.is_empty(), "WINDOW"),
        (select.qualify.is_some(), "QUALIFY"),
    ];
    match refused.iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(SqlError::not_supported(name)),
        None => Ok(()),
    }
}
