//! The listener of metrics: plain HTTP, one short request after the other.

use crate::engine::Engine;
use crate::service::Service;
use crate::socket::{Bell, wait_for};
use hotrow_sync::clock::{Duration, now};
use rustix::event::{PollFd, PollFlags};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

/// The longest request in bytes.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// The time for a request to arrive, and for its answer to leave.
const REQUEST_LIMIT: Duration = Duration::from_secs(1);

/// Answers requests until the bell rings.
pub(crate) fn serve<E: Engine>(service: &Service<E>, socket: &TcpListener, stop: &Bell) {
    loop {
        let mut files = [PollFd::new(stop, PollFlags::IN), PollFd::new(socket, PollFlags::IN)];
        if matches!(wait_for(&mut files, None), Ok(Some(0))) {
            return;
        }
        // A client that goes, or dawdles, is not answered. Nobody need know.
        match socket.accept() {
            Ok((client, _)) => drop(answer(service, client)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => {
                let mut files = [PollFd::new(stop, PollFlags::IN)];
                let _ = wait_for(&mut files, Some(now() + REQUEST_LIMIT / 10));
            }
        }
    }
}

/// Answers one request.
fn answer<E: Engine>(service: &Service<E>, mut client: TcpStream) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(REQUEST_LIMIT))?;
    let request = request(&mut client)?;
    let mut words = request.split(|&byte| byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, text) = match (method, path) {
        (b"GET", b"/metrics") => ("200 OK", service.counters.text(&service.engine.metric_families())),
        (b"GET", _) => ("404 Not Found", "The metrics are at /metrics.\n".to_owned()),
        _ => ("405 Method Not Allowed", "Only GET is understood.\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(text.as_bytes())
}

/// Reads a request to the end of its head; its first line.
fn request(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let deadline = now() + REQUEST_LIMIT;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(left))?;
        let count = client.read(&mut piece)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&piece[..count]);
        if request.windows(4).any(|end| end == b"\r\n\r\n") || request.windows(2).any(|end| end == b"\n\n") {
            let line = request.split(|&byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
            return Ok(line.to_vec());
        }
    }
}
