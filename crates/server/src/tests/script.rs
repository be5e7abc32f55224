//! Scripts of bytes: what a client sends, and the messages that it gets.

use super::engine::SmallEngine;
use crate::options::ServerOptions;
use crate::peers::Peer;
use crate::service::Service;
use crate::session;
use crate::transport::{Transport, Wake};
use crate::wire::Wire;
use hotrow_sync::clock::Instant;
use std::io;
use std::sync::Arc;

/// The most bytes that a message of a script may have.
pub(super) const MESSAGE_BYTES_MAX: usize = 20_000;

/// A client that sends its script in pieces, and goes.
pub(super) struct Script<'a> {
    input: &'a [u8],
    piece_bytes: usize,
    pub(super) output: Vec<u8>,
    pub(super) writes: usize,
}

impl<'a> Script<'a> {
    pub(super) fn new(input: &'a [u8], piece_bytes: usize) -> Self {
        Self { input, piece_bytes, output: Vec::new(), writes: 0 }
    }
}

impl Transport for Script<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.len().min(self.piece_bytes).min(buffer.len());
        let (piece, rest) = self.input.split_at(count);
        buffer[..count].copy_from_slice(piece);
        self.input = rest;
        Ok(count)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.extend_from_slice(bytes);
        self.writes += 1;
        Ok(())
    }

    fn wait(&mut self, _: Option<Instant>) -> io::Result<Wake> {
        Ok(Wake::Readable)
    }

    fn offers_tls(&self) -> bool {
        false
    }

    fn start_tls(&mut self) -> io::Result<()> {
        unreachable!("it is not offered")
    }

    fn is_private(&self) -> bool {
        true
    }
}

pub(super) fn service() -> Service<SmallEngine> {
    let options = ServerOptions { message_bytes_max: MESSAGE_BYTES_MAX, ..ServerOptions::default() };
    Service::new(SmallEngine::default(), options).unwrap()
}

/// Runs a connection over a script; the memory that its buffers hold at the end.
pub(super) fn run(service: &Service<SmallEngine>, script: &mut Script<'_>) -> (usize, usize) {
    let peer = Peer::new(7, Arc::new(|| {}), None);
    let mut wire = Wire::new(script, service.options.message_bytes_max, &service.counters);
    session::serve(service, &peer, &mut wire);
    (wire.input.capacity(), wire.output_capacity())
}

/// A message of a client.
pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The packet that begins a connection.
pub(super) fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend(code.to_be_bytes());
    bytes.extend(body);
    bytes
}

pub(super) fn hello() -> Vec<u8> {
    packet(3 << 16, b"user\0ann\0\0")
}

pub(super) fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

pub(super) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// A Bind of text parameters and formats of the result.
pub(super) fn bind(portal: &str, statement: &str, parameters: &[&[u8]], formats: &[u16]) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0\0\0").into_bytes();
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        body.extend((parameter.len() as u32).to_be_bytes());
        body.extend(*parameter);
    }
    body.extend((formats.len() as u16).to_be_bytes());
    formats.iter().for_each(|format| body.extend(format.to_be_bytes()));
    message(b'B', &body)
}

pub(super) fn describe(kind: char, name: &str) -> Vec<u8> {
    message(b'D', format!("{kind}{name}\0").as_bytes())
}

pub(super) fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend(rows_max.to_be_bytes());
    message(b'E', &body)
}

pub(super) fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// The messages in a server's bytes: each its kind and a short text of it.
pub(super) fn shown(mut bytes: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let kind = char::from(bytes[0]);
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
        let body = &bytes[5..=length];
        messages.push(match kind {
            'E' | 'N' => {
                let field = |wanted: u8| {
                    let mut fields = body.split(|&byte| byte == 0).filter(|field| !field.is_empty());
                    let found = fields.find(|field| field[0] == wanted).map_or(&b""[..], |field| &field[1..]);
                    String::from_utf8_lossy(found).into_owned()
                };
                format!("{kind} {} {}", field(b'S'), field(b'C'))
            }
            'C' | 'Z' | 'S' | 'd' | 'A' => {
                format!("{kind} {}", String::from_utf8_lossy(body).trim_end_matches('\0').replace('\0', "="))
            }
            'D' => format!("D {:?}", String::from_utf8_lossy(&body[6..])),
            'R' => format!("R {}", body[3]),
            _ => kind.to_string(),
        });
        bytes = &bytes[1 + length..];
    }
    messages
}

/// The messages that a client gets for these of its own, after the start.
pub(super) fn replies(messages: &[Vec<u8>]) -> Vec<String> {
    let script = [hello(), messages.concat()].concat();
    let whole = replies_in_pieces(&script, usize::MAX);
    // The way that bytes are cut on the network changes nothing.
    assert_eq!(whole, replies_in_pieces(&script, 1));
    let start = whole.iter().position(|message| message.starts_with('Z')).expect("the connection has begun");
    whole[start + 1..].to_vec()
}

fn replies_in_pieces(script: &[u8], piece_bytes: usize) -> Vec<String> {
    let service = service();
    let mut script = Script::new(script, piece_bytes);
    run(&service, &mut script);
    assert_eq!(service.engine.connections(), 0);
    shown(&script.output)
}
