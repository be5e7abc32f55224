//! Functions of the catalog, which psql and drivers call.

use super::function::{Function, function, integer, text};
use crate::error::SqlError;
use crate::values::{Datum, Numeric, Type, type_text};
use Type::{Bool, Int4, Int8, Name, NodeTree, Oid, Regclass, Regtype, Text};

/// A function that says true of an object that there is, and null of others.
const fn visible(name: &'static str) -> Function {
    function(name, &[Oid], Bool, |_, _| Ok(Datum::Bool(true))).stable()
}

/// A function that has nothing to say of any object.
const fn silent(name: &'static str, parameters: &'static [Type]) -> Function {
    function(name, parameters, Text, |_, _| Ok(Datum::Null)).stable()
}

pub(super) const FUNCTIONS: &[Function] = &[
    function("format_type", &[Oid, Int4], Text, |arguments, _| match &arguments[0] {
        Datum::Oid(oid) => Ok(format_type(*oid, arguments[1].as_integer().map(|modifier| modifier as i32))),
        _ => Ok(Datum::Null),
    })
    .stable()
    .nullable(),
    function("pg_get_userbyid", &[Oid], Name, |arguments, environment| {
        let oid = integer(arguments, 0)? as u32;
        let name = environment.names.user_name(oid);
        Ok(Datum::text(name.unwrap_or_else(|| format!("unknown (OID={oid})"))))
    })
    .stable(),
    function("pg_table_is_visible", &[Oid], Bool, |arguments, environment| {
        let oid = integer(arguments, 0)? as u32;
        Ok(environment.names.relation_name(oid).map_or(Datum::Null, |_| Datum::Bool(true)))
    })
    .stable(),
    visible("pg_type_is_visible"),
    visible("pg_function_is_visible"),
    visible("pg_operator_is_visible"),
    visible("pg_opclass_is_visible"),
    visible("pg_collation_is_visible"),
    visible("pg_statistics_obj_is_visible"),
    silent("obj_description", &[Oid]),
    silent("obj_description", &[Oid, Name]),
    silent("col_description", &[Oid, Int4]),
    silent("shobj_description", &[Oid, Name]),
    function("pg_encoding_to_char", &[Int4], Name, |arguments, _| {
        Ok(Datum::text(if integer(arguments, 0)? == 6 { "UTF8" } else { "" }))
    })
    .stable(),
    function("pg_char_to_encoding", &[Name], Int4, |arguments, _| {
        let is_known =
            matches!(text(arguments, 0)?.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode");
        Ok(Datum::Int4(if is_known { 6 } else { -1 }))
    })
    .stable(),
    function("pg_client_encoding", &[], Name, |_, _| Ok(Datum::text("UTF8"))).stable(),
    function("getdatabaseencoding", &[], Name, |_, _| Ok(Datum::text("UTF8"))).stable(),
    function("pg_get_expr", &[NodeTree, Oid], Text, |arguments, environment| {
        expression(arguments, environment)
    })
    .stable(),
    function("pg_get_expr", &[NodeTree, Oid, Bool], Text, |arguments, environment| {
        expression(arguments, environment)
    })
    .stable(),
    function("pg_get_indexdef", &[Oid], Text, |arguments, environment| {
        let definition = environment.names.index_definition(integer(arguments, 0)? as u32, None);
        Ok(definition.map_or(Datum::Null, Datum::text))
    })
    .stable(),
    function("pg_get_indexdef", &[Oid, Int4, Bool], Text, |arguments, environment| {
        // The column 0 stands for the whole index.
        let column = Some(integer(arguments, 1)? as i32).filter(|column| *column != 0);
        let definition = environment.names.index_definition(integer(arguments, 0)? as u32, column);
        Ok(definition.map_or(Datum::Null, Datum::text))
    })
    .stable(),
    function("pg_get_constraintdef", &[Oid], Text, |arguments, environment| {
        constraint(arguments, environment)
    })
    .stable(),
    function("pg_get_constraintdef", &[Oid, Bool], Text, |arguments, environment| {
        constraint(arguments, environment)
    })
    .stable(),
    silent("pg_get_viewdef", &[Oid]),
    silent("pg_get_viewdef", &[Oid, Bool]),
    silent("pg_get_viewdef", &[Oid, Int4]),
    silent("pg_get_viewdef", &[Text]),
    silent("pg_get_viewdef", &[Text, Bool]),
    silent("pg_get_partkeydef", &[Oid]),
    silent("pg_get_partition_constraintdef", &[Oid]),
    silent("pg_get_ruledef", &[Oid]),
    silent("pg_get_ruledef", &[Oid, Bool]),
    silent("pg_get_triggerdef", &[Oid]),
    silent("pg_get_triggerdef", &[Oid, Bool]),
    silent("pg_get_statisticsobjdef", &[Oid]),
    silent("pg_get_statisticsobjdef_columns", &[Oid]),
    silent("pg_get_function_result", &[Oid]),
    silent("pg_get_function_arguments", &[Oid]),
    silent("pg_get_function_identity_arguments", &[Oid]),
    silent("pg_get_function_sqlbody", &[Oid]),
    silent("pg_get_functiondef", &[Oid]),
    silent("pg_tablespace_location", &[Oid]),
    function("pg_get_serial_sequence", &[Text, Text], Text, |arguments, environment| {
        let sequence = environment.names.sequence_of_column(text(arguments, 0)?, text(arguments, 1)?);
        Ok(sequence.map_or(Datum::Null, Datum::text))
    })
    .stable(),
    function("pg_relation_is_publishable", &[Regclass], Bool, |_, _| Ok(Datum::Bool(true))).stable(),
    function("pg_relation_filenode", &[Regclass], Oid, |arguments, environment| {
        let oid = integer(arguments, 0)? as u32;
        Ok(environment.names.relation_name(oid).map_or(Datum::Null, |_| Datum::Oid(oid)))
    })
    .stable(),
    function("pg_relation_size", &[Regclass], Int8, size).volatile(),
    function("pg_relation_size", &[Regclass, Text], Int8, |arguments, environment| {
        size(arguments, environment)
    })
    .volatile(),
    function("pg_table_size", &[Regclass], Int8, size).volatile(),
    function("pg_total_relation_size", &[Regclass], Int8, |arguments, environment| {
        size(arguments, environment)
    })
    .volatile(),
    function("pg_indexes_size", &[Regclass], Int8, |_, _| Ok(Datum::Int8(0))).volatile(),
    function("pg_database_size", &[Name], Int8, |_, _| Ok(Datum::Int8(0))).volatile(),
    function("pg_database_size", &[Oid], Int8, |_, _| Ok(Datum::Int8(0))).volatile(),
    function("pg_tablespace_size", &[Name], Int8, |_, _| Ok(Datum::Int8(0))).volatile(),
    function("pg_tablespace_size", &[Oid], Int8, |_, _| Ok(Datum::Int8(0))).volatile(),
    function("pg_size_pretty", &[Int8], Text, |arguments, _| Ok(Datum::text(pretty(integer(arguments, 0)?)))),
    function("pg_size_pretty", &[Type::Numeric], Text, |arguments, _| match &arguments[0] {
        Datum::Numeric(number) => pretty_numeric(number).map(Datum::text),
        _ => Ok(Datum::Null),
    }),
    function("to_regclass", &[Text], Regclass, |arguments, environment| {
        let name = text(arguments, 0)?;
        let name = name.strip_prefix("public.").or_else(|| name.strip_prefix("pg_catalog.")).unwrap_or(name);
        // A name in quotes is as it is written, any other in lower case.
        let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => name.to_lowercase(),
        };
        Ok(environment.names.relation_oid(&name).map_or(Datum::Null, Datum::Oid))
    })
    .stable(),
    function("to_regtype", &[Text], Regtype, |arguments, _| {
        let name = text(arguments, 0)?.trim().to_ascii_lowercase();
        let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
        Ok(Type::of_name(name).map_or(Datum::Null, |ty| Datum::Oid(ty.oid())))
    })
    .stable(),
];

/// The name of a type by its number; without a modifier, a `char` is `character`.
fn format_type(oid: u32, modifier: Option<i32>) -> Datum {
    if oid == 0 {
        return Datum::text("-");
    }
    let Some(ty) = Type::of_oid(oid) else { return Datum::text("???") };
    Datum::text(match (ty, modifier) {
        (Type::Char, None) => "character".to_owned(),
        (Type::CharArray, None) => "character[]".to_owned(),
        (ty, modifier) => type_text(ty, modifier.unwrap_or(-1)),
    })
}

fn expression(arguments: &[Datum], environment: &super::Environment<'_>) -> Result<Datum, SqlError> {
    let shown = environment.names.expression_text(text(arguments, 0)?);
    Ok(shown.map_or(Datum::Null, Datum::text))
}

fn constraint(arguments: &[Datum], environment: &super::Environment<'_>) -> Result<Datum, SqlError> {
    let definition = environment.names.constraint_definition(integer(arguments, 0)? as u32);
    Ok(definition.map_or(Datum::Null, Datum::text))
}

fn size(arguments: &[Datum], environment: &super::Environment<'_>) -> Result<Datum, SqlError> {
    let oid = integer(arguments, 0)? as u32;
    let is_known = environment.names.relation_name(oid).is_some();
    Ok(if is_known { Datum::Int8(environment.names.size(oid)) } else { Datum::Null })
}

/// The units of sizes.
const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/// A number of bytes with a unit. Bytes keep their fraction.
fn pretty_numeric(bytes: &Numeric) -> Result<String, SqlError> {
    if bytes.absolute() < Numeric::from(10 * 1024) {
        return Ok(format!("{bytes} bytes"));
    }
    let mut size = bytes.clone();
    for unit in &UNITS[1..] {
        size = size.divide(&Numeric::from(1024))?;
        let rounded = size.round(0)?;
        if rounded.absolute() < Numeric::from(10 * 1024) || *unit == "PB" {
            return Ok(format!("{rounded} {unit}"));
        }
    }
    Ok(format!("{size} bytes"))
}

/// Bytes with a unit, as people read them.
fn pretty(bytes: i64) -> String {
    let mut unit = 0;
    // Up to ten thousand of a unit are shown in it; a half counts as a whole.
    let (mut size, mut limit) = (i128::from(bytes), 10 * 1024_i128);
    while size.abs() >= limit && unit + 1 < UNITS.len() {
        // One bit more than is shown is kept for rounding.
        size = if unit == 0 { size >> 9 } else { size / 1024 };
        unit += 1;
        limit = 20 * 1024 - 1;
    }
    if unit > 0 {
        size = (size + if size < 0 { -1 } else { 1 }) / 2;
    }
    format!("{size} {}", UNITS[unit])
}
