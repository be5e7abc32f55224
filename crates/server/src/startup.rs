//! The start of a connection: encryption, requests to cancel, the client's parameters, its password.

use crate::decode::{Cursor, text};
use crate::engine::{Engine, EngineConnection, Start};
use crate::error::End;
use crate::passwords::{Passwords, random};
use crate::peers::{Identity, Peer};
use crate::scram::{Exchange, MECHANISM};
use crate::service::{Admission, Service};
use crate::transport::{Transport, Wake};
use crate::wire::{News, Wire};
use bytes::{Bytes, BytesMut};
use hotrow_sql::SqlError;
use hotrow_sync::clock::{Instant, now};
use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, GssEncRequest, NegotiateProtocolVersion, ParameterStatus, SecretKey,
    SslRequest, Startup,
};
use pgwire::messages::{PgWireFrontendMessage, ProtocolVersion};
use std::sync::Arc;

/// The newest minor version of the protocol that is spoken: 3.2.
const MINOR_MAX: u16 = 2;
/// The length of a key for requests to cancel: of old clients, and of those that speak 3.2.
const OLD_SECRET_BYTES: usize = 4;
const SECRET_BYTES: usize = 32;

/// A connection that has begun: the engine's side, and its place among the admitted.
pub(crate) struct Started<'a, E: Engine> {
    /// The engine's side.
    pub(crate) connection: E::Connection,
    /// Gives its place back when it is dropped.
    pub(crate) _admission: Admission<'a>,
}

/// Runs the start of a connection. All that the client is told waits to be sent.
pub(crate) fn start<'a, E: Engine, T: Transport>(
    service: &'a Service<E>,
    wire: &mut Wire<'_, T>,
    peer: &Peer,
) -> Result<Started<'a, E>, End> {
    let deadline = now() + service.options.startup_limit;
    let mut startup = first_packet(service, wire, deadline)?;
    if !wire.transport.is_private() {
        let message = "connections from other machines must be encrypted";
        return Err(End::Fatal(SqlError::new("28000", message)));
    }
    let admission = service.admit()?;
    let minor = negotiate(wire, &mut startup)?;
    let user = startup.parameters.remove("user").filter(|user| !user.is_empty()).ok_or_else(|| {
        End::Fatal(SqlError::new("28000", "no PostgreSQL user name specified in startup packet"))
    })?;
    let database = startup.parameters.remove("database").filter(|name| !name.is_empty());
    match startup.parameters.remove("replication").as_deref() {
        None | Some("false" | "off" | "no" | "0") => {}
        Some(_) => return Err(End::Fatal(SqlError::not_supported("replication"))),
    }
    let mut parameters = match startup.parameters.remove("options") {
        Some(options) => command_line(&options).map_err(End::Fatal)?,
        None => Vec::new(),
    };
    parameters.extend(startup.parameters);
    if let Some(passwords) = &service.passwords {
        authenticate(service, wire, passwords, &user, deadline)?;
    }
    let start = Start {
        database: database.unwrap_or_else(|| user.clone()),
        user,
        parameters,
        process: peer.process,
        waker: Arc::clone(&peer.wake),
    };
    let connection = service.engine.connect(start).map_err(End::Fatal)?;
    let secret =
        random::<SECRET_BYTES>().map_err(|error| End::Fatal(SqlError::new("XX000", error.to_string())))?;
    let secret_bytes = if minor >= MINOR_MAX { SECRET_BYTES } else { OLD_SECRET_BYTES };
    let secret = &secret[..secret_bytes];
    // Set once: a connection has one start.
    let _ = peer.identity.set(Identity { secret: secret.into(), cancel: connection.canceller() });
    wire.send(&Authentication::Ok)?;
    for (name, value) in connection.parameters() {
        wire.send(&ParameterStatus::new(name.to_owned(), value))?;
    }
    wire.send(&BackendKeyData::new(peer.process, SecretKey::Bytes(Bytes::copy_from_slice(secret))))?;
    Ok(Started { connection, _admission: admission })
}

/// Waits for the packet that begins a connection, and serves those that come before it.
fn first_packet<E: Engine, T: Transport>(
    service: &Service<E>,
    wire: &mut Wire<'_, T>,
    deadline: Instant,
) -> Result<Startup, End> {
    let (mut may_ask_tls, mut may_ask_gss) = (true, true);
    loop {
        let packet = loop {
            if let Some(packet) = wire.input.packet()? {
                break packet;
            }
            match wire.fill(Some(deadline))? {
                Wake::Readable => {}
                Wake::Signal if service.is_stopping() => return Err(End::shutdown()),
                Wake::Signal => {}
                // Nobody has introduced itself yet, so nobody is told.
                Wake::Deadline => return Err(End::Gone),
            }
        };
        let has_no_body = packet.len() == SslRequest::BODY_SIZE;
        if has_no_body && SslRequest::is_ssl_request_packet(&packet) && may_ask_tls {
            may_ask_tls = false;
            let is_offered = wire.transport.offers_tls();
            wire.send_byte(if is_offered { b'S' } else { b'N' });
            wire.flush()?;
            if is_offered {
                // Bytes that were not encrypted must not be taken for such that are.
                if !wire.input.is_empty() {
                    return Err(End::violation("received unencrypted data after SSL request"));
                }
                wire.transport.start_tls()?;
                may_ask_gss = false;
            }
        } else if has_no_body && GssEncRequest::is_gss_enc_request_packet(&packet) && may_ask_gss {
            may_ask_gss = false;
            wire.send_byte(b'N');
            wire.flush()?;
        } else if CancelRequest::is_cancel_request_packet(&packet) {
            service.counters.cancel_requests.add(1);
            if let Ok(Some(PgWireFrontendMessage::CancelRequest(request))) = decode(packet) {
                service.peers.cancel(request.pid, &request.secret_key.to_bytes());
            }
            return Err(End::Gone);
        } else {
            check_startup(&packet)?;
            return match decode(packet) {
                Ok(Some(PgWireFrontendMessage::Startup(startup))) => Ok(startup),
                _ => Err(End::violation("invalid startup packet layout")),
            };
        }
    }
}

/// The request or the beginning in a whole packet.
fn decode(mut packet: BytesMut) -> pgwire::error::PgWireResult<Option<PgWireFrontendMessage>> {
    let mut context = crate::decode::message_context();
    context.awaiting_frontend_startup = true;
    PgWireFrontendMessage::decode(&mut packet, &context)
}

/// Checks the layout of the packet that begins a connection.
fn check_startup(packet: &[u8]) -> Result<(), End> {
    let (major, minor) =
        (u16::from_be_bytes([packet[4], packet[5]]), u16::from_be_bytes([packet[6], packet[7]]));
    if major != Startup::PG_PROTOCOL_LATEST {
        let message =
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_MAX}");
        return Err(End::Fatal(SqlError::new("0A000", message)));
    }
    let mut cursor = Cursor(&packet[8..]);
    loop {
        let name = cursor.string()?;
        if name.is_empty() {
            break;
        }
        let value = cursor.string()?;
        text(name).and(text(value)).map_err(End::Fatal)?;
    }
    match cursor.0.is_empty() {
        true => Ok(()),
        false => Err(End::violation("invalid startup packet layout: expected terminator as last byte")),
    }
}

/// Agrees on the protocol's version and its options; the minor version.
fn negotiate<T: Transport>(wire: &mut Wire<'_, T>, startup: &mut Startup) -> Result<u16, End> {
    let minor = startup.protocol_number_minor.min(MINOR_MAX);
    let unknown: Vec<String> =
        startup.parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if startup.protocol_number_minor > MINOR_MAX || !unknown.is_empty() {
        startup.parameters.retain(|name, _| !name.starts_with("_pq_."));
        let version = i32::from(ProtocolVersion::PROTOCOL3_0) | i32::from(minor);
        wire.send(&NegotiateProtocolVersion::new(version, unknown))?;
    }
    Ok(minor)
}

/// The settings in the parameter `options`, which is like a command line: `-c name=value --name=value`.
fn command_line(options: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = vec![String::new()];
    let mut letters = options.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => words.last_mut().expect("is never empty").extend(letters.next()),
            _ if letter.is_ascii_whitespace() => words.push(String::new()),
            _ => words.last_mut().expect("is never empty").push(letter),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next().unwrap_or_default(),
            Some(setting) => setting.to_owned(),
            None => {
                return Err(SqlError::new(
                    "42601",
                    format!("invalid command-line argument for server process: {word}"),
                ));
            }
        };
        let Some((name, value)) = setting.split_once('=') else {
            return Err(SqlError::new("42601", format!("-c {setting} requires a value")));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

/// Asks the client for its password, by SCRAM.
fn authenticate<E: Engine, T: Transport>(
    service: &Service<E>,
    wire: &mut Wire<'_, T>,
    passwords: &Passwords,
    user: &str,
    deadline: Instant,
) -> Result<(), End> {
    wire.send(&Authentication::SASL(vec![MECHANISM.to_owned()]))?;
    wire.flush()?;
    let message = password_message(service, wire, deadline)?;
    let mut cursor = Cursor(&message);
    let mechanism = cursor.string()?;
    if mechanism != MECHANISM.as_bytes() {
        return Err(End::violation("client selected an invalid SASL authentication mechanism"));
    }
    let length = cursor.number()?;
    if usize::try_from(length).ok() != Some(cursor.0.len()) {
        return Err(End::violation("invalid message format"));
    }
    let exchange = Exchange::begin(passwords, user, cursor.0).map_err(End::Fatal)?;
    wire.send(&Authentication::SASLContinue(Bytes::copy_from_slice(exchange.server_first().as_bytes())))?;
    wire.flush()?;
    let message = password_message(service, wire, deadline)?;
    let server_final = exchange.finish(&message).map_err(End::Fatal)?;
    wire.send(&Authentication::SASLFinal(Bytes::from(server_final)))
}

/// Waits for a message about a password; its body.
fn password_message<E: Engine, T: Transport>(
    service: &Service<E>,
    wire: &mut Wire<'_, T>,
    deadline: Instant,
) -> Result<BytesMut, End> {
    loop {
        match wire.receive(true, Some(deadline))? {
            News::Frame(mut frame) => return Ok(frame.bytes.split_off(5)),
            News::Signal if service.is_stopping() => return Err(End::shutdown()),
            News::Signal => {}
            News::Deadline => {
                return Err(End::Fatal(SqlError::new("57014", "canceling authentication due to timeout")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &str) -> Vec<(String, String)> {
        command_line(options).unwrap()
    }

    #[test]
    fn settings_are_read_from_a_command_line() {
        let one = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for options in ["-c a_b=1", "-ca_b=1", "--a-b=1", "  --a_b=1 "] {
            assert_eq!(settings(options), one("a_b", "1"), "{options}");
        }
        assert_eq!(settings(r"-c a=b\ c\\d"), one("a", r"b c\d"));
        assert_eq!(settings(""), []);
        for options in ["-x", "-c", "-c a", "a=b"] {
            assert_eq!(command_line(options).unwrap_err().code, "42601", "{options}");
        }
    }
}
