//! Tables of the schema `pg_catalog` that have rows.

use crate::virtual_tables::{classes, conflicts, constraints, definitions, reference, server};

tables! {
    pg_catalog pg_class 1259 'r' classes::classes {
        oid Oid, relname Name, relnamespace Oid, reltype Oid, reloftype Oid, relowner Oid, relam Oid,
        relfilenode Oid, reltablespace Oid, relpages Int4, reltuples Float4, relallvisible Int4,
        reltoastrelid Oid, relhasindex Bool, relisshared Bool, relpersistence Letter, relkind Letter,
        relnatts Int2, relchecks Int2, relhasrules Bool, relhastriggers Bool, relhassubclass Bool,
        relrowsecurity Bool, relforcerowsecurity Bool, relispopulated Bool, relreplident Letter,
        relispartition Bool, relrewrite Oid, relfrozenxid Oid, relminmxid Oid, relacl TextArray,
        reloptions TextArray, relpartbound NodeTree,
    }
    pg_catalog pg_attribute 1249 'r' classes::attributes {
        attrelid Oid, attname Name, atttypid Oid, attstattarget Int4, attlen Int2, attnum Int2,
        attndims Int4, attcacheoff Int4, atttypmod Int4, attbyval Bool, attalign Letter, attstorage Letter,
        attcompression Letter, attnotnull Bool, atthasdef Bool, atthasmissing Bool, attidentity Letter,
        attgenerated Letter, attisdropped Bool, attislocal Bool, attinhcount Int4, attcollation Oid,
        attacl TextArray, attoptions TextArray, attfdwoptions TextArray, attmissingval TextArray,
    }
    pg_catalog pg_attrdef 2604 'r' classes::defaults {
        oid Oid, adrelid Oid, adnum Int2, adbin NodeTree,
    }
    pg_catalog pg_namespace 2615 'r' reference::namespaces {
        oid Oid, nspname Name, nspowner Oid, nspacl TextArray,
    }
    pg_catalog pg_index 2610 'r' constraints::indexes {
        indexrelid Oid, indrelid Oid, indnatts Int2, indnkeyatts Int2, indisunique Bool,
        indnullsnotdistinct Bool, indisprimary Bool, indisexclusion Bool, indimmediate Bool,
        indisclustered Bool, indisvalid Bool, indcheckxmin Bool, indisready Bool, indislive Bool,
        indisreplident Bool, indkey Int2Vector, indcollation OidVector, indclass OidVector,
        indoption Int2Vector, indexprs NodeTree, indpred NodeTree,
    }
    pg_catalog pg_constraint 2606 'r' constraints::constraints {
        oid Oid, conname Name, connamespace Oid, contype Letter, condeferrable Bool, condeferred Bool,
        convalidated Bool, conrelid Oid, contypid Oid, conindid Oid, conparentid Oid, confrelid Oid,
        confupdtype Letter, confdeltype Letter, confmatchtype Letter, conislocal Bool, coninhcount Int4,
        connoinherit Bool, conkey Int2Array, confkey Int2Array, conpfeqop OidArray, conppeqop OidArray,
        conffeqop OidArray, confdelsetcols Int2Array, conexclop OidArray, conbin NodeTree,
    }
    pg_catalog pg_sequence 2224 'r' constraints::sequences {
        seqrelid Oid, seqtypid Oid, seqstart Int8, seqincrement Int8, seqmax Int8, seqmin Int8,
        seqcache Int8, seqcycle Bool,
    }
    pg_catalog pg_depend 2608 'r' constraints::dependencies {
        classid Oid, objid Oid, objsubid Int4, refclassid Oid, refobjid Oid, refobjsubid Int4,
        deptype Letter,
    }
    pg_catalog pg_description 2609 'r' reference::descriptions {
        objoid Oid, classoid Oid, objsubid Int4, description Text,
    }
    pg_catalog pg_tables 12033 'v' definitions::tables {
        schemaname Name, tablename Name, tableowner Name, tablespace Name, hasindexes Bool, hasrules Bool,
        hastriggers Bool, rowsecurity Bool,
    }
    pg_catalog pg_indexes 12043 'v' definitions::indexes {
        schemaname Name, tablename Name, indexname Name, tablespace Name, indexdef Text,
    }
    pg_catalog pg_sequences 12048 'v' definitions::sequences {
        schemaname Name, sequencename Name, sequenceowner Name, data_type Regtype, start_value Int8,
        min_value Int8, max_value Int8, increment_by Int8, cycle Bool, cache_size Int8, last_value Int8,
    }
    pg_catalog pg_stat_user_tables 12161 'v' definitions::statistics {
        relid Oid, schemaname Name, relname Name, seq_scan Int8, seq_tup_read Int8, idx_scan Int8,
        idx_tup_fetch Int8, n_tup_ins Int8, n_tup_upd Int8, n_tup_del Int8, n_tup_hot_upd Int8,
        n_live_tup Int8, n_dead_tup Int8, n_mod_since_analyze Int8, n_ins_since_vacuum Int8,
        last_vacuum TimestampTz, last_autovacuum TimestampTz, last_analyze TimestampTz,
        last_autoanalyze TimestampTz, vacuum_count Int8, autovacuum_count Int8, analyze_count Int8,
        autoanalyze_count Int8,
    }
    pg_catalog pg_type 1247 'r' reference::types {
        oid Oid, typname Name, typnamespace Oid, typowner Oid, typlen Int2, typbyval Bool, typtype Letter,
        typcategory Letter, typispreferred Bool, typisdefined Bool, typdelim Letter, typrelid Oid,
        typsubscript Regproc, typelem Oid, typarray Oid, typinput Regproc, typoutput Regproc,
        typreceive Regproc, typsend Regproc, typmodin Regproc, typmodout Regproc, typanalyze Regproc,
        typalign Letter, typstorage Letter, typnotnull Bool, typbasetype Oid, typtypmod Int4, typndims Int4,
        typcollation Oid, typdefaultbin NodeTree, typdefault Text, typacl TextArray,
    }
    pg_catalog pg_am 2601 'r' reference::methods {
        oid Oid, amname Name, amhandler Regproc, amtype Letter,
    }
    pg_catalog pg_cast 2605 'r' reference::casts {
        oid Oid, castsource Oid, casttarget Oid, castfunc Oid, castcontext Letter, castmethod Letter,
    }
    pg_catalog pg_collation 3456 'r' reference::collations {
        oid Oid, collname Name, collnamespace Oid, collowner Oid, collprovider Letter,
        collisdeterministic Bool, collencoding Int4, collcollate Text, collctype Text, colliculocale Text,
        collversion Text,
    }
    pg_catalog pg_language 2612 'r' reference::languages {
        oid Oid, lanname Name, lanowner Oid, lanispl Bool, lanpltrusted Bool, lanplcallfoid Oid,
        laninline Oid, lanvalidator Oid, lanacl TextArray,
    }
    pg_catalog pg_opclass 2616 'r' reference::operator_classes {
        oid Oid, opcmethod Oid, opcname Name, opcnamespace Oid, opcowner Oid, opcfamily Oid, opcintype Oid,
        opcdefault Bool, opckeytype Oid,
    }
    pg_catalog pg_opfamily 2753 'r' reference::operator_families {
        oid Oid, opfmethod Oid, opfname Name, opfnamespace Oid, opfowner Oid,
    }
    pg_catalog pg_operator 2617 'r' reference::operators {
        oid Oid, oprname Name, oprnamespace Oid, oprowner Oid, oprkind Letter, oprcanmerge Bool,
        oprcanhash Bool, oprleft Oid, oprright Oid, oprresult Oid, oprcom Oid, oprnegate Oid,
        oprcode Regproc, oprrest Regproc, oprjoin Regproc,
    }
    pg_catalog pg_proc 1255 'r' reference::procedures {
        oid Oid, proname Name, pronamespace Oid, proowner Oid, prolang Oid, procost Float4, prorows Float4,
        provariadic Oid, prosupport Regproc, prokind Letter, prosecdef Bool, proleakproof Bool,
        proisstrict Bool, proretset Bool, provolatile Letter, proparallel Letter, pronargs Int2,
        pronargdefaults Int2, prorettype Oid, proargtypes OidVector, proallargtypes OidArray,
        proargmodes LetterArray, proargnames TextArray, proargdefaults NodeTree, protrftypes OidArray,
        prosrc Text, probin Text, prosqlbody NodeTree, proconfig TextArray, proacl TextArray,
    }
    pg_catalog pg_database 1262 'r' server::databases {
        oid Oid, datname Name, datdba Oid, encoding Int4, datlocprovider Letter, datistemplate Bool,
        datallowconn Bool, datconnlimit Int4, datfrozenxid Oid, datminmxid Oid, dattablespace Oid,
        datcollate Text, datctype Text, daticulocale Text, datcollversion Text, datacl TextArray,
    }
    pg_catalog pg_roles 12000 'v' server::roles {
        rolname Name, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
        rolcanlogin Bool, rolreplication Bool, rolconnlimit Int4, rolpassword Text,
        rolvaliduntil TimestampTz, rolbypassrls Bool, rolconfig TextArray, oid Oid,
    }
    pg_catalog pg_authid 1260 'r' server::authorizations {
        oid Oid, rolname Name, rolsuper Bool, rolinherit Bool, rolcreaterole Bool, rolcreatedb Bool,
        rolcanlogin Bool, rolreplication Bool, rolbypassrls Bool, rolconnlimit Int4, rolpassword Text,
        rolvaliduntil TimestampTz,
    }
    pg_catalog pg_user 12014 'v' server::users {
        usename Name, usesysid Oid, usecreatedb Bool, usesuper Bool, userepl Bool, usebypassrls Bool,
        passwd Text, valuntil TimestampTz, useconfig TextArray,
    }
    pg_catalog pg_shadow 12005 'v' server::shadows {
        usename Name, usesysid Oid, usecreatedb Bool, usesuper Bool, userepl Bool, usebypassrls Bool,
        passwd Text, valuntil TimestampTz, useconfig TextArray,
    }
    pg_catalog pg_tablespace 1213 'r' server::tablespaces {
        oid Oid, spcname Name, spcowner Oid, spcacl TextArray, spcoptions TextArray,
    }
    pg_catalog pg_settings 12104 'v' server::settings {
        name Text, setting Text, unit Text, category Text, short_desc Text, extra_desc Text, context Text,
        vartype Text, source Text, min_val Text, max_val Text, enumvals TextArray, boot_val Text,
        reset_val Text, sourcefile Text, sourceline Int4, pending_restart Bool,
    }
    pg_catalog pg_timezone_names 12126 'v' server::time_zones {
        name Text, abbrev Text, utc_offset Interval, is_dst Bool,
    }
    pg_catalog pg_stat_activity 12222 'v' server::activity {
        datid Oid, datname Name, pid Int4, leader_pid Int4, usesysid Oid, usename Name,
        application_name Text, client_addr Text, client_hostname Text, client_port Int4,
        backend_start TimestampTz, xact_start TimestampTz, query_start TimestampTz,
        state_change TimestampTz, wait_event_type Text, wait_event Text, state Text, backend_xid Oid,
        backend_xmin Oid, query_id Int8, query Text, backend_type Text,
    }
    pg_catalog hotrow_hot_rows 15998 'v' conflicts::hot_rows {
        table_name Text, key Text, conflicts Int8,
    }
    pg_catalog hotrow_conflicts 15999 'v' conflicts::conflicts {
        table_name Text, key Text, loser Text, winner Text, conflicts Int8,
    }
}
