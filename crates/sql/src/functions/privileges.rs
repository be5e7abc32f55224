//! Functions that ask for privileges: every user has all.

use super::function::{Function, function};
use crate::values::{Datum, Type};
use Type::{Bool, Int2, Name, Oid, Text};

/// A function that says yes.
const fn granted(name: &'static str, parameters: &'static [Type]) -> Function {
    function(name, parameters, Bool, |_, _| Ok(Datum::Bool(true))).stable()
}

pub(super) const FUNCTIONS: &[Function] = &[
    granted("has_any_column_privilege", &[Name, Oid, Text]),
    granted("has_any_column_privilege", &[Name, Text, Text]),
    granted("has_any_column_privilege", &[Oid, Oid, Text]),
    granted("has_any_column_privilege", &[Oid, Text]),
    granted("has_any_column_privilege", &[Oid, Text, Text]),
    granted("has_any_column_privilege", &[Text, Text]),
    granted("has_column_privilege", &[Name, Oid, Int2, Text]),
    granted("has_column_privilege", &[Name, Oid, Text, Text]),
    granted("has_column_privilege", &[Name, Text, Int2, Text]),
    granted("has_column_privilege", &[Name, Text, Text, Text]),
    granted("has_column_privilege", &[Oid, Int2, Text]),
    granted("has_column_privilege", &[Oid, Oid, Int2, Text]),
    granted("has_column_privilege", &[Oid, Oid, Text, Text]),
    granted("has_column_privilege", &[Oid, Text, Int2, Text]),
    granted("has_column_privilege", &[Oid, Text, Text]),
    granted("has_column_privilege", &[Oid, Text, Text, Text]),
    granted("has_column_privilege", &[Text, Int2, Text]),
    granted("has_column_privilege", &[Text, Text, Text]),
    granted("has_database_privilege", &[Name, Oid, Text]),
    granted("has_database_privilege", &[Name, Text, Text]),
    granted("has_database_privilege", &[Oid, Oid, Text]),
    granted("has_database_privilege", &[Oid, Text]),
    granted("has_database_privilege", &[Oid, Text, Text]),
    granted("has_database_privilege", &[Text, Text]),
    granted("has_function_privilege", &[Name, Oid, Text]),
    granted("has_function_privilege", &[Name, Text, Text]),
    granted("has_function_privilege", &[Oid, Oid, Text]),
    granted("has_function_privilege", &[Oid, Text]),
    granted("has_function_privilege", &[Oid, Text, Text]),
    granted("has_function_privilege", &[Text, Text]),
    granted("has_schema_privilege", &[Name, Oid, Text]),
    granted("has_schema_privilege", &[Name, Text, Text]),
    granted("has_schema_privilege", &[Oid, Oid, Text]),
    granted("has_schema_privilege", &[Oid, Text]),
    granted("has_schema_privilege", &[Oid, Text, Text]),
    granted("has_schema_privilege", &[Text, Text]),
    granted("has_sequence_privilege", &[Name, Oid, Text]),
    granted("has_sequence_privilege", &[Name, Text, Text]),
    granted("has_sequence_privilege", &[Oid, Oid, Text]),
    granted("has_sequence_privilege", &[Oid, Text]),
    granted("has_sequence_privilege", &[Oid, Text, Text]),
    granted("has_sequence_privilege", &[Text, Text]),
    granted("has_table_privilege", &[Name, Oid, Text]),
    granted("has_table_privilege", &[Name, Text, Text]),
    granted("has_table_privilege", &[Oid, Oid, Text]),
    granted("has_table_privilege", &[Oid, Text]),
    granted("has_table_privilege", &[Oid, Text, Text]),
    granted("has_table_privilege", &[Text, Text]),
    granted("pg_has_role", &[Name, Name, Text]),
    granted("pg_has_role", &[Name, Oid, Text]),
    granted("pg_has_role", &[Name, Text]),
    granted("pg_has_role", &[Oid, Name, Text]),
    granted("pg_has_role", &[Oid, Oid, Text]),
    granted("pg_has_role", &[Oid, Text]),
];
