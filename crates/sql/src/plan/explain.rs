//! Plans as text.

use super::modify::{Modification, ModificationKind};
use super::select::{Access, Body, Join, Query, Source};
use super::{Plan, PlanKind};

/// The lines of `EXPLAIN`.
pub(super) fn lines(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    match &plan.kind {
        PlanKind::Query(query) => of_query(query, 0, &mut lines),
        PlanKind::Modify(modification) => of_modification(modification, 0, &mut lines),
        PlanKind::Call(..) | PlanKind::Define(_) => lines.push("Utility statement".to_owned()),
        PlanKind::Copy => lines.push("Copy".to_owned()),
        PlanKind::Explain(inner) => lines.clone_from(inner),
    }
    lines
}

fn put(depth: usize, text: impl AsRef<str>, lines: &mut Vec<String>) {
    let arrow = if depth == 0 { String::new() } else { format!("{}->  ", " ".repeat(depth * 4 - 2)) };
    lines.push(format!("{arrow}{}", text.as_ref()));
}

fn of_query(query: &Query, depth: usize, lines: &mut Vec<String>) {
    let mut depth = depth;
    if query.limit.is_some() || query.offset.is_some() {
        put(depth, "Limit", lines);
        depth += 1;
    }
    if !query.order.is_empty() {
        put(depth, "Sort", lines);
        depth += 1;
    }
    for (place, with) in &query.with {
        put(depth, format!("CTE {place}"), lines);
        of_query(with, depth + 1, lines);
    }
    match &query.body {
        Body::Values(rows) => put(depth, format!("Values ({} rows)", rows.len()), lines),
        Body::Nested(inner) => of_query(inner, depth, lines),
        Body::Recursive { first, next, .. } => {
            put(depth, "Recursive Union", lines);
            of_query(first, depth + 1, lines);
            of_query(next, depth + 1, lines);
        }
        Body::Set { operation, all, left, right } => {
            put(depth, format!("{operation:?}{}", if *all { " All" } else { "" }), lines);
            of_query(left, depth + 1, lines);
            of_query(right, depth + 1, lines);
        }
        Body::Modify(modification) => of_modification(modification, depth, lines),
        Body::Select(select) => {
            if !matches!(select.distinct, super::select::Distinct::No) {
                put(depth, "Unique", lines);
                depth += 1;
            }
            if let Some(grouping) = &select.grouping {
                let name = if grouping.keys.is_empty() { "Aggregate" } else { "HashAggregate" };
                put(depth, name, lines);
                depth += 1;
            }
            of_join(&select.from, &select.sources, depth, lines);
        }
    }
}

fn of_modification(modification: &Modification, depth: usize, lines: &mut Vec<String>) {
    let table = &modification.target.table.relation.name;
    match &modification.kind {
        ModificationKind::Insert(insert) => {
            put(depth, format!("Insert on {table}"), lines);
            of_query(&insert.rows, depth + 1, lines);
        }
        ModificationKind::Update { at_commit: Some(_), .. } => {
            put(depth, format!("Update on {table}"), lines);
            put(depth + 1, format!("Addition at commit by {table}'s primary key"), lines);
        }
        ModificationKind::Update { sources, from, .. } => {
            put(depth, format!("Update on {table}"), lines);
            of_join(from, sources, depth + 1, lines);
        }
        ModificationKind::Delete { sources, from, .. } => {
            put(depth, format!("Delete on {table}"), lines);
            of_join(from, sources, depth + 1, lines);
        }
    }
}

fn of_join(join: &Join, sources: &[Source], depth: usize, lines: &mut Vec<String>) {
    match join {
        Join::Nothing => put(depth, "Result", lines),
        Join::Scan { source, access, .. } => of_scan(&sources[*source], access, depth, lines),
        Join::Inner { left, right, .. } | Join::Left { left, right, .. } | Join::Full { left, right, .. } => {
            let kind = match join {
                Join::Left { .. } => "Nested Loop Left Join",
                Join::Full { .. } => "Full Join",
                _ => "Nested Loop",
            };
            put(depth, kind, lines);
            of_join(left, sources, depth + 1, lines);
            of_join(right, sources, depth + 1, lines);
        }
    }
}

fn of_scan(source: &Source, access: &Access, depth: usize, lines: &mut Vec<String>) {
    let name = match source {
        Source::Table(table) => table.relation.name.clone(),
        Source::Virtual(table) => table.name.to_owned(),
        Source::Query(_) => "subquery".to_owned(),
        Source::With(place, _) => format!("CTE {place}"),
        Source::Series(kind, _) => format!("{kind:?}"),
    };
    let index = |at: Option<usize>| match (source, at) {
        (Source::Table(table), Some(at)) => table.relation.indexes[at].name.clone(),
        (Source::Table(table), None) => {
            table.relation.primary_key.as_ref().map_or(String::new(), |key| key.name.clone())
        }
        _ => String::new(),
    };
    let text = match access {
        Access::All => format!("Seq Scan on {name}"),
        Access::Point(_) => format!("Index Lookup using {} on {name}", index(None)),
        Access::Points(values) => {
            format!("Index Lookup of {} keys using {} on {name}", values.len(), index(None))
        }
        Access::Range(range) => format!("Index Scan using {} on {name}", index(range.index)),
        Access::Hash { .. } => format!("Hash Lookup on {name}"),
    };
    put(depth, text, lines);
    if let Source::Query(query) = source {
        of_query(query, depth + 1, lines);
    }
}
