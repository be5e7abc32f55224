//! Tables about the server: its database, its user, its settings and its connections.
//!
//! There is one database, which is called as the connection's. Everything belongs to the user `postgres`; the connection's own user may
//! do everything as well.

use super::{DATABASE_OWNER, OWNER, letter, oid, text, truth};
use crate::connection::{Activity, Moment};
use crate::row::Row;
use crate::run::Run;
use crate::values::{Datum, Interval};
use std::sync::Arc;

/// The number of the database.
const DATABASE: u32 = 5;

/// The name of the user who owns everything.
pub(super) const OWNER_NAME: &str = "postgres";

/// The number of the connection's user, if it is not the owner.
const SESSION_USER: u32 = 16_383;

/// `pg_database`.
pub(super) fn databases(run: &Run<'_, '_>) -> Vec<Row> {
    let locale = |name: &str| run.session.setting(name).map_or(Datum::Null, text);
    vec![Row::new(vec![
        oid(DATABASE),
        text(run.session.database.as_str()),
        oid(OWNER),
        Datum::Int4(6),
        letter('c'),
        truth(false),
        truth(true),
        Datum::Int4(-1),
        oid(0),
        oid(0),
        oid(TABLESPACE.0),
        locale("lc_collate"),
        locale("lc_ctype"),
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ])]
}

/// A role: number, name, and whether it is the user, who may do everything.
type Role = (u32, String, bool);

/// The users: number and name.
fn all_users(run: &Run<'_, '_>) -> impl Iterator<Item = (u32, String)> {
    let user = &run.session.user;
    let other = (user != OWNER_NAME).then(|| (SESSION_USER, user.clone()));
    std::iter::once((OWNER, OWNER_NAME.to_owned())).chain(other)
}

fn all_roles(run: &Run<'_, '_>) -> impl Iterator<Item = Role> {
    let users = all_users(run).map(|(number, name)| (number, name, true));
    users.chain([(DATABASE_OWNER, "pg_database_owner".to_owned(), false)])
}

/// `pg_roles`.
pub(super) fn roles(run: &Run<'_, '_>) -> Vec<Row> {
    let row = |(number, name, may): Role| {
        Row::new(vec![
            text(name),
            truth(may),
            truth(true),
            truth(may),
            truth(may),
            truth(may),
            truth(may),
            Datum::Int4(-1),
            text("********"),
            Datum::Null,
            truth(may),
            Datum::Null,
            oid(number),
        ])
    };
    all_roles(run).map(row).collect()
}

/// `pg_authid`.
pub(super) fn authorizations(run: &Run<'_, '_>) -> Vec<Row> {
    let row = |(number, name, may): Role| {
        Row::new(vec![
            oid(number),
            text(name),
            truth(may),
            truth(true),
            truth(may),
            truth(may),
            truth(may),
            truth(may),
            truth(may),
            Datum::Int4(-1),
            Datum::Null,
            Datum::Null,
        ])
    };
    all_roles(run).map(row).collect()
}

fn user_rows(run: &Run<'_, '_>, password: &Datum) -> Vec<Row> {
    let row = |(number, name)| {
        let may = || truth(true);
        let password = password.clone();
        Row::new(vec![
            text(name),
            oid(number),
            may(),
            may(),
            may(),
            may(),
            password,
            Datum::Null,
            Datum::Null,
        ])
    };
    all_users(run).map(row).collect()
}

/// `pg_user`.
pub(super) fn users(run: &Run<'_, '_>) -> Vec<Row> {
    user_rows(run, &text("********"))
}

/// `pg_shadow`. Passwords are not shown.
pub(super) fn shadows(run: &Run<'_, '_>) -> Vec<Row> {
    user_rows(run, &Datum::Null)
}

const TABLESPACE: (u32, &str) = (1663, "pg_default");

/// `pg_tablespace`.
pub(super) fn tablespaces(_: &Run<'_, '_>) -> Vec<Row> {
    let row = |(number, name): (u32, &'static str)| {
        Row::new(vec![oid(number), text(name), oid(OWNER), Datum::Null, Datum::Null])
    };
    [TABLESPACE, (1664, "pg_global")].map(row).to_vec()
}

/// The settings that `pg_settings` has.
const SETTINGS: &[&str] = &[
    "application_name",
    "block_size",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "DateStyle",
    "default_table_access_method",
    "default_tablespace",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "extra_float_digits",
    "idle_in_transaction_session_timeout",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "lc_collate",
    "lc_ctype",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "lock_timeout",
    "max_identifier_length",
    "max_index_keys",
    "row_security",
    "search_path",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
    "standard_conforming_strings",
    "statement_timeout",
    "synchronous_commit",
    "TimeZone",
    "transaction_isolation",
    "transaction_read_only",
    "work_mem",
];

/// `pg_settings`.
pub(super) fn settings(run: &Run<'_, '_>) -> Vec<Row> {
    let known = SETTINGS.iter().filter_map(|name| Some((*name, run.session.setting(name)?)));
    let rows = known.map(|(name, value)| {
        let (text_of, nothing) = (|value: &str| text(value), || Datum::Null);
        Row::new(vec![
            text(name),
            text(value.as_str()),
            nothing(),
            text_of("Hotrow"),
            text_of(""),
            nothing(),
            text_of("user"),
            text_of("string"),
            text_of("default"),
            nothing(),
            nothing(),
            nothing(),
            nothing(),
            text(value),
            nothing(),
            nothing(),
            truth(false),
        ])
    });
    rows.collect()
}

/// `pg_timezone_names`: times are shown in UTC only.
pub(super) fn time_zones(_: &Run<'_, '_>) -> Vec<Row> {
    let none = Datum::Interval(Interval { months: 0, days: 0, microseconds: 0 });
    vec![Row::new(vec![text("UTC"), text("UTC"), none, truth(false)])]
}

/// `pg_stat_activity`: all connections.
pub(super) fn activity(run: &Run<'_, '_>) -> Vec<Row> {
    let time = Datum::TimestampTz;
    let nothing = || Datum::Null;
    let row = |(activity, moment): (Arc<Activity>, Moment)| {
        Row::new(vec![
            oid(DATABASE),
            text(activity.database.as_str()),
            Datum::Int4(activity.process),
            nothing(),
            oid(if activity.user == OWNER_NAME { OWNER } else { SESSION_USER }),
            text(activity.user.as_str()),
            text(moment.application),
            nothing(),
            nothing(),
            nothing(),
            time(activity.started),
            moment.transaction_started.map_or(Datum::Null, time),
            time(moment.statement_started),
            time(moment.changed),
            nothing(),
            nothing(),
            text(moment.state),
            nothing(),
            nothing(),
            nothing(),
            text(moment.text),
            text("client backend"),
        ])
    };
    run.shared.activities.all().into_iter().map(row).collect()
}
