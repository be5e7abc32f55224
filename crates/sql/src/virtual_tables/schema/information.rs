//! Tables of the schema `information_schema`.

use crate::virtual_tables::information;

tables! {
    information_schema tables 13425 'v' information::tables {
        table_catalog Name, table_schema Name, table_name Name, table_type Varchar,
        self_referencing_column_name Name, reference_generation Varchar, user_defined_type_catalog Name,
        user_defined_type_schema Name, user_defined_type_name Name, is_insertable_into Varchar,
        is_typed Varchar, commit_action Varchar,
    }
    information_schema columns 13295 'v' information::columns {
        table_catalog Name, table_schema Name, table_name Name, column_name Name, ordinal_position Int4,
        column_default Varchar, is_nullable Varchar, data_type Varchar, character_maximum_length Int4,
        character_octet_length Int4, numeric_precision Int4, numeric_precision_radix Int4,
        numeric_scale Int4, datetime_precision Int4, interval_type Varchar, interval_precision Int4,
        character_set_catalog Name, character_set_schema Name, character_set_name Name,
        collation_catalog Name, collation_schema Name, collation_name Name, domain_catalog Name,
        domain_schema Name, domain_name Name, udt_catalog Name, udt_schema Name, udt_name Name,
        scope_catalog Name, scope_schema Name, scope_name Name, maximum_cardinality Int4,
        dtd_identifier Name, is_self_referencing Varchar, is_identity Varchar, identity_generation Varchar,
        identity_start Varchar, identity_increment Varchar, identity_maximum Varchar,
        identity_minimum Varchar, identity_cycle Varchar, is_generated Varchar,
        generation_expression Varchar, is_updatable Varchar,
    }
    information_schema schemata 13382 'v' information::schemata {
        catalog_name Name, schema_name Name, schema_owner Name, default_character_set_catalog Name,
        default_character_set_schema Name, default_character_set_name Name, sql_path Varchar,
    }
    information_schema table_constraints 13411 'v' information::table_constraints {
        constraint_catalog Name, constraint_schema Name, constraint_name Name, table_catalog Name,
        table_schema Name, table_name Name, constraint_type Varchar, is_deferrable Varchar,
        initially_deferred Varchar, enforced Varchar, nulls_distinct Varchar,
    }
    information_schema key_column_usage 13329 'v' information::key_columns {
        constraint_catalog Name, constraint_schema Name, constraint_name Name, table_catalog Name,
        table_schema Name, table_name Name, column_name Name, ordinal_position Int4,
        position_in_unique_constraint Int4,
    }
    information_schema constraint_column_usage 13300 'v' information::constraint_columns {
        table_catalog Name, table_schema Name, table_name Name, column_name Name, constraint_catalog Name,
        constraint_schema Name, constraint_name Name,
    }
    information_schema sequences 13386 'v' information::sequences {
        sequence_catalog Name, sequence_schema Name, sequence_name Name, data_type Varchar,
        numeric_precision Int4, numeric_precision_radix Int4, numeric_scale Int4, start_value Varchar,
        minimum_value Varchar, maximum_value Varchar, increment Varchar, cycle_option Varchar,
    }
    information_schema check_constraints 13260 'v' information::check_constraints {
        constraint_catalog Name, constraint_schema Name, constraint_name Name, check_clause Varchar,
    }
    information_schema domains 13320 'v' super::none {
        domain_catalog Name, domain_schema Name, domain_name Name, data_type Varchar,
        character_maximum_length Int4, character_octet_length Int4, character_set_catalog Name,
        character_set_schema Name, character_set_name Name, collation_catalog Name, collation_schema Name,
        collation_name Name, numeric_precision Int4, numeric_precision_radix Int4, numeric_scale Int4,
        datetime_precision Int4, interval_type Varchar, interval_precision Int4, domain_default Varchar,
        udt_catalog Name, udt_schema Name, udt_name Name, scope_catalog Name, scope_schema Name,
        scope_name Name, maximum_cardinality Int4, dtd_identifier Name,
    }
    information_schema referential_constraints 13339 'v' super::none {
        constraint_catalog Name, constraint_schema Name, constraint_name Name,
        unique_constraint_catalog Name, unique_constraint_schema Name, unique_constraint_name Name,
        match_option Varchar, update_rule Varchar, delete_rule Varchar,
    }
    information_schema routines 13377 'v' super::none {
        specific_catalog Name, specific_schema Name, specific_name Name, routine_catalog Name,
        routine_schema Name, routine_name Name, routine_type Varchar, module_catalog Name,
        module_schema Name, module_name Name, udt_catalog Name, udt_schema Name, udt_name Name,
        data_type Varchar, character_maximum_length Int4, character_octet_length Int4,
        character_set_catalog Name, character_set_schema Name, character_set_name Name,
        collation_catalog Name, collation_schema Name, collation_name Name, numeric_precision Int4,
        numeric_precision_radix Int4, numeric_scale Int4, datetime_precision Int4, interval_type Varchar,
        interval_precision Int4, type_udt_catalog Name, type_udt_schema Name, type_udt_name Name,
        scope_catalog Name, scope_schema Name, scope_name Name, maximum_cardinality Int4,
        dtd_identifier Name, routine_body Varchar, routine_definition Varchar, external_name Varchar,
        external_language Varchar, parameter_style Varchar, is_deterministic Varchar,
        sql_data_access Varchar, is_null_call Varchar, sql_path Varchar, schema_level_routine Varchar,
        max_dynamic_result_sets Int4, is_user_defined_cast Varchar, is_implicitly_invocable Varchar,
        security_type Varchar, to_sql_specific_catalog Name, to_sql_specific_schema Name,
        to_sql_specific_name Name, as_locator Varchar, created TimestampTz, last_altered TimestampTz,
        new_savepoint_level Varchar, is_udt_dependent Varchar, result_cast_from_data_type Varchar,
        result_cast_as_locator Varchar, result_cast_char_max_length Int4,
        result_cast_char_octet_length Int4, result_cast_char_set_catalog Name,
        result_cast_char_set_schema Name, result_cast_char_set_name Name,
        result_cast_collation_catalog Name, result_cast_collation_schema Name,
        result_cast_collation_name Name, result_cast_numeric_precision Int4,
        result_cast_numeric_precision_radix Int4, result_cast_numeric_scale Int4,
        result_cast_datetime_precision Int4, result_cast_interval_type Varchar,
        result_cast_interval_precision Int4, result_cast_type_udt_catalog Name,
        result_cast_type_udt_schema Name, result_cast_type_udt_name Name, result_cast_scope_catalog Name,
        result_cast_scope_schema Name, result_cast_scope_name Name, result_cast_maximum_cardinality Int4,
        result_cast_dtd_identifier Name,
    }
    information_schema triggers 13440 'v' super::none {
        trigger_catalog Name, trigger_schema Name, trigger_name Name, event_manipulation Varchar,
        event_object_catalog Name, event_object_schema Name, event_object_table Name, action_order Int4,
        action_condition Varchar, action_statement Varchar, action_orientation Varchar,
        action_timing Varchar, action_reference_old_table Name, action_reference_new_table Name,
        action_reference_old_row Name, action_reference_new_row Name, created TimestampTz,
    }
    information_schema views 13483 'v' super::none {
        table_catalog Name, table_schema Name, table_name Name, view_definition Varchar,
        check_option Varchar, is_updatable Varchar, is_insertable_into Varchar,
        is_trigger_updatable Varchar, is_trigger_deletable Varchar, is_trigger_insertable_into Varchar,
    }
}
