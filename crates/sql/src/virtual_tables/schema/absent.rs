//! Tables about what there is not: they are empty.

tables! {
    pg_catalog pg_aggregate 2600 'r' super::none {
        aggfnoid Regproc, aggkind Letter, aggnumdirectargs Int2, aggtransfn Regproc, aggfinalfn Regproc,
        aggcombinefn Regproc, aggserialfn Regproc, aggdeserialfn Regproc, aggmtransfn Regproc,
        aggminvtransfn Regproc, aggmfinalfn Regproc, aggfinalextra Bool, aggmfinalextra Bool,
        aggfinalmodify Letter, aggmfinalmodify Letter, aggsortop Oid, aggtranstype Oid, aggtransspace Int4,
        aggmtranstype Oid, aggmtransspace Int4, agginitval Text, aggminitval Text,
    }
    pg_catalog pg_amop 2602 'r' super::none {
        oid Oid, amopfamily Oid, amoplefttype Oid, amoprighttype Oid, amopstrategy Int2, amoppurpose Letter,
        amopopr Oid, amopmethod Oid, amopsortfamily Oid,
    }
    pg_catalog pg_amproc 2603 'r' super::none {
        oid Oid, amprocfamily Oid, amproclefttype Oid, amprocrighttype Oid, amprocnum Int2, amproc Regproc,
    }
    pg_catalog pg_auth_members 1261 'r' super::none {
        roleid Oid, member Oid, grantor Oid, admin_option Bool,
    }
    pg_catalog pg_available_extensions 12081 'v' super::none {
        name Name, default_version Text, installed_version Text, comment Text,
    }
    pg_catalog pg_conversion 2607 'r' super::none {
        oid Oid, conname Name, connamespace Oid, conowner Oid, conforencoding Int4, contoencoding Int4,
        conproc Regproc, condefault Bool,
    }
    pg_catalog pg_cursors 12077 'v' super::none {
        name Text, statement Text, is_holdable Bool, is_binary Bool, is_scrollable Bool,
        creation_time TimestampTz,
    }
    pg_catalog pg_db_role_setting 2964 'r' super::none {
        setdatabase Oid, setrole Oid, setconfig TextArray,
    }
    pg_catalog pg_default_acl 826 'r' super::none {
        oid Oid, defaclrole Oid, defaclnamespace Oid, defaclobjtype Letter, defaclacl TextArray,
    }
    pg_catalog pg_enum 3501 'r' super::none {
        oid Oid, enumtypid Oid, enumsortorder Float4, enumlabel Name,
    }
    pg_catalog pg_event_trigger 3466 'r' super::none {
        oid Oid, evtname Name, evtevent Name, evtowner Oid, evtfoid Oid, evtenabled Letter,
        evttags TextArray,
    }
    pg_catalog pg_extension 3079 'r' super::none {
        oid Oid, extname Name, extowner Oid, extnamespace Oid, extrelocatable Bool, extversion Text,
        extconfig OidArray, extcondition TextArray,
    }
    pg_catalog pg_foreign_data_wrapper 2328 'r' super::none {
        oid Oid, fdwname Name, fdwowner Oid, fdwhandler Oid, fdwvalidator Oid, fdwacl TextArray,
        fdwoptions TextArray,
    }
    pg_catalog pg_foreign_server 1417 'r' super::none {
        oid Oid, srvname Name, srvowner Oid, srvfdw Oid, srvtype Text, srvversion Text, srvacl TextArray,
        srvoptions TextArray,
    }
    pg_catalog pg_foreign_table 3118 'r' super::none {
        ftrelid Oid, ftserver Oid, ftoptions TextArray,
    }
    pg_catalog pg_group 12010 'v' super::none {
        groname Name, grosysid Oid, grolist OidArray,
    }
    pg_catalog pg_inherits 2611 'r' super::none {
        inhrelid Oid, inhparent Oid, inhseqno Int4, inhdetachpending Bool,
    }
    pg_catalog pg_init_privs 3394 'r' super::none {
        objoid Oid, classoid Oid, objsubid Int4, privtype Letter, initprivs TextArray,
    }
    pg_catalog pg_locks 12073 'v' super::none {
        locktype Text, database Oid, relation Oid, page Int4, tuple Int2, virtualxid Text,
        transactionid Oid, classid Oid, objid Oid, objsubid Int2, virtualtransaction Text, pid Int4,
        mode Text, granted Bool, fastpath Bool, waitstart TimestampTz,
    }
    pg_catalog pg_matviews 12038 'v' super::none {
        schemaname Name, matviewname Name, matviewowner Name, tablespace Name, hasindexes Bool,
        ispopulated Bool, definition Text,
    }
    pg_catalog pg_partitioned_table 3350 'r' super::none {
        partrelid Oid, partstrat Letter, partnatts Int2, partdefid Oid, partattrs Int2Vector,
        partclass OidVector, partcollation OidVector, partexprs NodeTree,
    }
    pg_catalog pg_policy 3256 'r' super::none {
        oid Oid, polname Name, polrelid Oid, polcmd Letter, polpermissive Bool, polroles OidArray,
        polqual NodeTree, polwithcheck NodeTree,
    }
    pg_catalog pg_prepared_statements 12095 'v' super::none {
        name Text, statement Text, prepare_time TimestampTz, parameter_types RegtypeArray, from_sql Bool,
        generic_plans Int8, custom_plans Int8,
    }
    pg_catalog pg_prepared_xacts 12090 'v' super::none {
        transaction Oid, gid Text, prepared TimestampTz, owner Name, database Name,
    }
    pg_catalog pg_publication 6104 'r' super::none {
        oid Oid, pubname Name, pubowner Oid, puballtables Bool, pubinsert Bool, pubupdate Bool,
        pubdelete Bool, pubtruncate Bool, pubviaroot Bool,
    }
    pg_catalog pg_publication_namespace 6237 'r' super::none {
        oid Oid, pnpubid Oid, pnnspid Oid,
    }
    pg_catalog pg_publication_rel 6106 'r' super::none {
        oid Oid, prpubid Oid, prrelid Oid, prqual NodeTree, prattrs Int2Vector,
    }
    pg_catalog pg_range 3541 'r' super::none {
        rngtypid Oid, rngsubtype Oid, rngmultitypid Oid, rngcollation Oid, rngsubopc Oid,
        rngcanonical Regproc, rngsubdiff Regproc,
    }
    pg_catalog pg_rewrite 2618 'r' super::none {
        oid Oid, rulename Name, ev_class Oid, ev_type Letter, ev_enabled Letter, is_instead Bool,
        ev_qual NodeTree, ev_action NodeTree,
    }
    pg_catalog pg_seclabel 3596 'r' super::none {
        objoid Oid, classoid Oid, objsubid Int4, provider Text, label Text,
    }
    pg_catalog pg_shdepend 1214 'r' super::none {
        dbid Oid, classid Oid, objid Oid, objsubid Int4, refclassid Oid, refobjid Oid, deptype Letter,
    }
    pg_catalog pg_shdescription 2396 'r' super::none {
        objoid Oid, classoid Oid, description Text,
    }
    pg_catalog pg_shseclabel 3592 'r' super::none {
        objoid Oid, classoid Oid, provider Text, label Text,
    }
    pg_catalog pg_stat_database 12266 'v' super::none {
        datid Oid, datname Name, numbackends Int4, xact_commit Int8, xact_rollback Int8, blks_read Int8,
        blks_hit Int8, tup_returned Int8, tup_fetched Int8, tup_inserted Int8, tup_updated Int8,
        tup_deleted Int8, conflicts Int8, temp_files Int8, temp_bytes Int8, deadlocks Int8,
        checksum_failures Int8, checksum_last_failure TimestampTz, blk_read_time Float8,
        blk_write_time Float8, session_time Float8, active_time Float8, idle_in_transaction_time Float8,
        sessions Int8, sessions_abandoned Int8, sessions_fatal Int8, sessions_killed Int8,
        stats_reset TimestampTz,
    }
    pg_catalog pg_statistic_ext 3381 'r' super::none {
        oid Oid, stxrelid Oid, stxname Name, stxnamespace Oid, stxowner Oid, stxstattarget Int4,
        stxkeys Int2Vector, stxkind LetterArray, stxexprs NodeTree,
    }
    pg_catalog pg_statistic_ext_data 3429 'r' super::none {
        stxoid Oid, stxdinherit Bool, stxdndistinct Text, stxddependencies Text, stxdmcv Text,
        stxdexpr TextArray,
    }
    pg_catalog pg_subscription 6100 'r' super::none {
        oid Oid, subdbid Oid, subskiplsn Text, subname Name, subowner Oid, subenabled Bool, subbinary Bool,
        substream Bool, subtwophasestate Letter, subdisableonerr Bool, subconninfo Text, subslotname Name,
        subsynccommit Text, subpublications TextArray,
    }
    pg_catalog pg_trigger 2620 'r' super::none {
        oid Oid, tgrelid Oid, tgparentid Oid, tgname Name, tgfoid Oid, tgtype Int2, tgenabled Letter,
        tgisinternal Bool, tgconstrrelid Oid, tgconstrindid Oid, tgconstraint Oid, tgdeferrable Bool,
        tginitdeferred Bool, tgnargs Int2, tgattr Int2Vector, tgargs Bytea, tgqual NodeTree,
        tgoldtable Name, tgnewtable Name,
    }
    pg_catalog pg_ts_config 3602 'r' super::none {
        oid Oid, cfgname Name, cfgnamespace Oid, cfgowner Oid, cfgparser Oid,
    }
    pg_catalog pg_views 12028 'v' super::none {
        schemaname Name, viewname Name, viewowner Name, definition Text,
    }
}
