//! Functions of the session and the server.

use super::function::{Function, float, function, text};
use crate::error::SqlError;
use crate::values::{Datum, Type};
use Type::{Bool, Float8, Int4, Int8, Name, NameArray, Oid, Text, TimestampTz, Uuid, Void};
use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// The longest sleep, in seconds.
const SLEEP_MAX: f64 = 86_400.0 * 7.0;

pub(super) const FUNCTIONS: &[Function] = &[
    function("version", &[], Text, |_, environment| Ok(Datum::text(environment.settings.version()))).stable(),
    function("current_database", &[], Name, |_, environment| Ok(Datum::text(environment.database))).stable(),
    function("current_catalog", &[], Name, |_, environment| Ok(Datum::text(environment.database))).stable(),
    function("current_schema", &[], Name, |_, _| Ok(Datum::text("public"))).stable(),
    function("current_schemas", &[Bool], NameArray, |arguments, _| {
        let mut schemas = vec![Datum::text("public")];
        if arguments[0] == Datum::Bool(true) {
            schemas.insert(0, Datum::text("pg_catalog"));
        }
        Ok(Datum::array(schemas))
    })
    .stable(),
    function("current_user", &[], Name, |_, environment| Ok(Datum::text(environment.user))).stable(),
    function("current_role", &[], Name, |_, environment| Ok(Datum::text(environment.user))).stable(),
    function("session_user", &[], Name, |_, environment| Ok(Datum::text(environment.user))).stable(),
    function("user", &[], Name, |_, environment| Ok(Datum::text(environment.user))).stable(),
    function("current_setting", &[Text], Text, |arguments, environment| {
        let name = text(arguments, 0)?;
        environment
            .settings
            .setting(name)
            .map(Datum::text)
            .ok_or_else(|| SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
    })
    .stable(),
    function("current_setting", &[Text, Bool], Text, |arguments, environment| {
        let name = text(arguments, 0)?;
        match environment.settings.setting(name) {
            Some(value) => Ok(Datum::text(value)),
            None if arguments[1] == Datum::Bool(true) => Ok(Datum::Null),
            None => Err(SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""))),
        }
    })
    .stable(),
    function("set_config", &[Text, Text, Bool], Text, |arguments, environment| {
        let name =
            given(arguments, 0)?.ok_or_else(|| SqlError::new("22004", "SET requires parameter name"))?;
        environment.settings.set(name, given(arguments, 1)?, arguments[2] == Datum::Bool(true))?;
        Ok(environment.settings.setting(name).map_or(Datum::Null, Datum::text))
    })
    .nullable()
    .volatile(),
    function("pg_notify", &[Text, Text], Void, |arguments, environment| {
        let (channel, payload) = (given(arguments, 0)?, given(arguments, 1)?);
        environment.settings.notify(channel.unwrap_or_default(), payload.unwrap_or_default())?;
        Ok(Datum::text(""))
    })
    .nullable()
    .volatile(),
    // No advisory locks can be taken, so none are held; asyncpg asks for this whenever a pool takes a connection back.
    function("pg_advisory_unlock_all", &[], Void, |_, _| Ok(Datum::text(""))).volatile(),
    function("pg_backend_pid", &[], Int4, |_, environment| Ok(Datum::Int4(environment.process))).stable(),
    function("pg_is_in_recovery", &[], Bool, |_, _| Ok(Datum::Bool(false))).volatile(),
    function("pg_is_wal_replay_paused", &[], Bool, |_, _| Ok(Datum::Bool(false))).volatile(),
    function("pg_jit_available", &[], Bool, |_, _| Ok(Datum::Bool(false))).volatile(),
    function("txid_current", &[], Int8, |_, environment| Ok(Datum::Int8(environment.settings.transaction())))
        .stable(),
    function("txid_current_if_assigned", &[], Int8, |_, environment| {
        Ok(Datum::Int8(environment.settings.transaction()))
    })
    .stable(),
    function("pg_my_temp_schema", &[], Oid, |_, _| Ok(Datum::Oid(0))).stable(),
    function("pg_is_other_temp_schema", &[Oid], Bool, |_, _| Ok(Datum::Bool(false))).stable(),
    function("pg_postmaster_start_time", &[], TimestampTz, |_, environment| {
        Ok(Datum::TimestampTz(environment.settings.server_started()))
    })
    .stable(),
    function("pg_conf_load_time", &[], TimestampTz, |_, environment| {
        Ok(Datum::TimestampTz(environment.settings.server_started()))
    })
    .stable(),
    // Addresses have a type of their own in PostgreSQL; here they are always null.
    function("inet_server_addr", &[], Text, |_, _| Ok(Datum::Null)).stable(),
    function("inet_client_addr", &[], Text, |_, _| Ok(Datum::Null)).stable(),
    function("inet_server_port", &[], Int4, |_, _| Ok(Datum::Null)).stable(),
    function("inet_client_port", &[], Int4, |_, _| Ok(Datum::Null)).stable(),
    function("pg_sleep", &[Float8], Void, |arguments, environment| {
        let seconds = float(arguments, 0)?;
        // Neither NaN nor what is too long is a duration.
        let seconds = if seconds > 0.0 { seconds.min(SLEEP_MAX) } else { 0.0 };
        environment.settings.sleep(Duration::from_secs_f64(seconds))?;
        Ok(Datum::text(""))
    })
    .volatile(),
    function("random", &[], Float8, |_, _| {
        // As many bits as a float has digits.
        Ok(Datum::Float8((random_bits() >> 11) as f64 / (1_u64 << 53) as f64))
    })
    .volatile(),
    function("gen_random_uuid", &[], Uuid, |_, _| {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&random_bits().to_be_bytes());
        uuid[8..].copy_from_slice(&random_bits().to_be_bytes());
        // Version 4, variant 1 (RFC 4122).
        uuid[6] = uuid[6] & 0x0F | 0x40;
        uuid[8] = uuid[8] & 0x3F | 0x80;
        Ok(Datum::Uuid(uuid))
    })
    .volatile(),
];

/// The text of an argument that may be null.
fn given(arguments: &[Datum], place: usize) -> Result<Option<&str>, SqlError> {
    if arguments[place].is_null() { Ok(None) } else { text(arguments, place).map(Some) }
}

/// Random bits: hashes of a count under keys that the operating system has drawn for the thread.
fn random_bits() -> u64 {
    thread_local! {
        static STATE: RandomState = RandomState::new();
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }
    let count = COUNT.replace(COUNT.get().wrapping_add(1));
    STATE.with(|state| state.hash_one(count))
}

#[cfg(test)]
mod tests {
    use super::random_bits;

    #[test]
    fn random_bits_do_not_repeat() {
        let drawn: std::collections::HashSet<u64> = (0..1_000).map(|_| random_bits()).collect();
        assert_eq!(drawn.len(), 1_000);
    }
}
