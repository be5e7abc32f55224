//! Connections over sockets: threads, signals, ends.

use super::engine::SmallEngine;
use super::script::*;
use crate::listener::Listener;
use crate::options::{ServerOptions, TlsFiles};
use crate::passwords::{hash, password_verifier, sign};
use crate::service::Service;
use crate::socket::Bell;
use crate::{ServerError, base64};
use hotrow_sync::clock::{Duration, now};
use hotrow_sync::thread::{self, JoinHandle};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

/// A server on a thread, that stops when it is dropped.
struct Running {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    service: Arc<Service<SmallEngine>>,
    stop: Arc<Bell>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

fn options() -> ServerOptions {
    ServerOptions { address: "127.0.0.1:0".parse().unwrap(), ..ServerOptions::default() }
}

fn run_with(engine: SmallEngine, options: ServerOptions) -> Running {
    let listener = Listener::bind(engine, options).unwrap();
    let (address, metrics) = (listener.address(), listener.metrics_address());
    let (service, stop) = (Arc::clone(&listener.service), Arc::clone(&listener.stop));
    let thread = Some(thread::spawn(|| listener.serve()));
    Running { address, metrics, service, stop, thread }
}

fn run() -> Running {
    run_with(SmallEngine::default(), options())
}

impl Running {
    fn stop(&mut self) {
        self.stop.ring();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }

    fn connect(&self) -> Talk<TcpStream> {
        let mut talk = self.open();
        talk.send(&hello());
        talk.until_ready();
        talk
    }

    fn open(&self) -> Talk<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Talk(stream)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A client.
struct Talk<S>(S);

impl<S: Read + Write> Talk<S> {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// The next message; none at the end.
    fn message(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut message = head.to_vec();
        message.resize(1 + length, 0);
        self.0.read_exact(&mut message[5..]).ok()?;
        Some(message)
    }

    fn next(&mut self) -> String {
        self.message().map_or("end".to_owned(), |message| shown(&message).remove(0))
    }

    fn until_ready(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        loop {
            messages.push(self.next());
            if messages.last().is_some_and(|last| last.starts_with('Z') || last == "end") {
                return messages;
            }
        }
    }

    fn ask(&mut self, text: &str) -> Vec<String> {
        self.send(&query(text));
        self.until_ready()
    }
}

/// Waits for something that another thread does.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = now() + Duration::from_secs(20);
    while !condition() {
        assert!(now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn statements_run_and_their_connections_leave_nothing() {
    let server = run();
    for _ in 0..300 {
        let mut client = server.connect();
        assert_eq!(client.ask("select 1"), ["T", "D \"1\"", "C SELECT 1", "Z I"]);
    }
    eventually("connections are left", || {
        server.service.peers.count() + server.service.engine.connections() == 0
    });
    assert_eq!(server.service.counters.connections.get(), 300);
    assert_eq!(server.service.counters.connections_ended.get(), 300);
}

#[test]
fn an_error_of_a_pipeline_does_not_wait_for_its_sync() {
    let server = run();
    let mut client = server.connect();
    client.send(&[parse("", "wrong"), describe('S', ""), message(b'H', b"")].concat());
    assert_eq!(client.next(), "E ERROR 42601");
    client.send(&sync());
    assert_eq!(client.next(), "Z I");
}

#[test]
fn a_statement_is_cancelled_by_who_knows_the_key() {
    let server = run();
    let mut client = server.open();
    client.send(&hello());
    let key = loop {
        let message = client.message().unwrap();
        if message[0] == b'K' {
            break message[5..].to_vec();
        }
    };
    client.until_ready();
    client.send(&query("sleep"));
    let mut wrong = key.clone();
    wrong[4] ^= 1;
    for key in [wrong, key] {
        let mut other = server.open();
        other.send(&packet(80_877_102, &key));
        assert_eq!(other.next(), "end");
    }
    assert_eq!(client.until_ready(), ["E ERROR 57014", "Z I"]);
    assert_eq!(client.ask("select 1").len(), 4);
}

#[test]
fn a_client_that_vanishes_within_a_statement_ends_it() {
    let server = run();
    let mut client = server.connect();
    client.send(&query("sleep"));
    drop(client);
    eventually("the statement goes on", || server.service.engine.connections() == 0);
    eventually("the client is not counted", || server.service.counters.clients_lost.get() == 1);
}

#[test]
fn notifications_wake_a_client_that_waits() {
    let server = run();
    let mut listener = server.connect();
    server.connect().ask("notify");
    assert!(listener.next().starts_with('A'));
}

#[test]
fn a_block_that_waits_too_long_ends_with_its_connection() {
    let mut engine = SmallEngine::default();
    engine.idle_limit = Some(Duration::from_millis(20));
    let server = run_with(engine, options());
    let mut client = server.connect();
    assert_eq!(client.ask("begin"), ["C BEGIN", "Z T"]);
    // Bytes of a message do not prolong the time.
    client.send(b"Q");
    assert_eq!((client.next(), client.next()), ("E FATAL 25P03".to_owned(), "end".to_owned()));
    let mut patient = server.connect();
    thread::sleep(Duration::from_millis(60));
    assert_eq!(patient.ask("select 1").len(), 4);
}

#[test]
fn a_start_that_takes_too_long_is_given_up() {
    let server = run_with(
        SmallEngine::default(),
        ServerOptions { startup_limit: Duration::from_millis(20), ..options() },
    );
    let mut client = server.open();
    client.send(b"\0\0");
    assert_eq!(client.next(), "end");
}

#[test]
fn a_stop_tells_all_connections_and_waits_for_none_that_does_not_answer() {
    let mut server = run_with(
        SmallEngine::default(),
        ServerOptions { stop_limit: Duration::from_millis(300), ..options() },
    );
    let (mut idle, mut open, mut busy, mut copying) =
        (server.connect(), server.connect(), server.connect(), server.connect());
    open.ask("begin");
    busy.send(&query("sleep"));
    copying.send(&query("copyin"));
    assert_eq!(copying.next(), "G");
    let mut starting = server.open();
    starting.send(b"\0");
    // A client that does not read what it has asked for.
    let mut deaf = server.connect();
    deaf.send(&query(&["many"; 500].join(";")));
    eventually("the connections have not begun", || server.service.peers.count() == 6);
    server.stop();
    for client in [&mut idle, &mut open, &mut busy, &mut copying, &mut starting] {
        assert_eq!((client.next(), client.next()), ("E FATAL 57P01".to_owned(), "end".to_owned()));
    }
    assert!(TcpStream::connect(server.address).is_err());
    eventually("connections are left", || server.service.engine.connections() == 0);
}

#[test]
fn a_directory_has_a_socket_for_clients_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let within = || ServerOptions { directory: Some(directory.path().to_owned()), ..options() };
    let mut server = run_with(SmallEngine::default(), within());
    let path = directory.path().join(format!(".s.PGSQL.{}", server.address.port()));
    let mut client = Talk(UnixStream::connect(&path).unwrap());
    client.send(&hello());
    client.until_ready();
    assert_eq!(client.ask("select 1"), ["T", "D \"1\"", "C SELECT 1", "Z I"]);
    assert_eq!(server.connect().ask("select 1").len(), 4);
    // It is taken, by a server that lives.
    let taken =
        ServerOptions { address: SocketAddr::from(([127, 0, 0, 2], server.address.port())), ..within() };
    assert!(matches!(
        Listener::bind(SmallEngine::default(), taken.clone()),
        Err(ServerError::ListenWithin { path: other, .. }) if other == path
    ));
    server.stop();
    assert_eq!((client.next(), client.next()), ("E FATAL 57P01".to_owned(), "end".to_owned()));
    assert!(!path.exists());
    // One that was killed has left it.
    drop(UnixListener::bind(&path).unwrap());
    let again = run_with(SmallEngine::default(), taken);
    assert!(UnixStream::connect(&path).is_ok());
    drop(again);
    let nowhere = ServerOptions { directory: Some(directory.path().join("absent")), ..options() };
    assert!(matches!(Listener::bind(SmallEngine::default(), nowhere), Err(ServerError::ListenWithin { .. })));
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let server = run_with(SmallEngine::default(), ServerOptions { connections_max: 2, ..options() });
    let (first, _second) = (server.connect(), server.connect());
    let mut third = server.open();
    third.send(&hello());
    assert_eq!(third.next(), "E FATAL 53300");
    drop(first);
    eventually("there is no place", || {
        let mut client = server.open();
        client.send(&hello());
        client.next() == "R 0"
    });
}

#[test]
fn a_fault_of_the_engine_ends_one_connection_only() {
    let server = run();
    let mut other = server.connect();
    let mut client = server.connect();
    assert_eq!(client.ask("panic"), ["E FATAL XX000", "end"]);
    assert_eq!(other.ask("select 1").len(), 4);
    eventually("the connection is left", || server.service.engine.connections() == 1);
}

#[test]
fn metrics_are_served_as_text() {
    let metrics = Some("127.0.0.1:0".parse().unwrap());
    let server = run_with(SmallEngine::default(), ServerOptions { metrics, ..options() });
    server.connect().ask("select 1;wrong");
    let ask = |request: &[u8]| {
        let mut stream = TcpStream::connect(server.metrics.unwrap()).unwrap();
        stream.write_all(request).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text).unwrap_or_default()
    };
    let text = ask(b"GET /metrics HTTP/1.0\r\n\r\n");
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n"));
    for line in [
        "hotrow_server_statements_total{kind=\"SELECT\"} 1",
        "hotrow_server_errors_total{sqlstate=\"42601\"} 1",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(ask(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 404 "));
    assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.0 405 "));
    assert_eq!(ask(&[b'x'; 20_000]), "");
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests").join(name)
}

fn tls_options() -> ServerOptions {
    let files = TlsFiles { certificate: fixture("certificate.pem"), key: fixture("key.pem") };
    ServerOptions { tls: Some(files), ..options() }
}

fn over_tls(server: &Running) -> Talk<StreamOwned<ClientConnection, TcpStream>> {
    let mut talk = server.open();
    talk.send(&packet(80_877_103, b""));
    let mut answer = [0];
    talk.0.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"S");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(fixture("certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    Talk(StreamOwned::new(client, talk.0))
}

#[test]
fn connections_run_over_tls() {
    let server = run_with(SmallEngine::default(), tls_options());
    let mut client = over_tls(&server);
    client.send(&hello());
    client.until_ready();
    assert_eq!(client.ask("select 1").len(), 4);
    // More than a record, and more than a socket's buffer.
    assert_eq!(client.ask("many;many;many;many;many").len(), 5 * 10_002 + 1);
    let long = "x".repeat(1 << 20);
    assert_eq!(client.ask(&long), ["E ERROR 42601", "Z I"]);
    // Without TLS one may still come from this machine.
    assert_eq!(server.connect().ask("select 1").len(), 4);
}

#[test]
fn bytes_before_the_handshake_are_not_taken_for_encrypted_ones() {
    let server = run_with(SmallEngine::default(), tls_options());
    let mut client = server.open();
    client.send(&[packet(80_877_103, b""), hello()].concat());
    let mut answer = Vec::new();
    let _ = client.0.read_to_end(&mut answer);
    assert_eq!(answer.first(), Some(&b'S'));
    assert_eq!(shown(&answer[1..]), ["E FATAL 08P01"]);
}

#[test]
fn the_right_password_opens_and_a_wrong_one_does_not() {
    let path = std::env::temp_dir().join(format!("hotrow-passwords-{}", std::process::id()));
    std::fs::write(&path, format!("ann:{}\n", password_verifier("secret").unwrap())).unwrap();
    let server =
        run_with(SmallEngine::default(), ServerOptions { passwords: Some(path.clone()), ..tls_options() });
    std::fs::remove_file(path).unwrap();
    for (password, expected) in [("secret", "R 12"), ("wrong", "E FATAL 28P01")] {
        let mut client = over_tls(&server);
        client.send(&hello());
        assert_eq!(client.next(), "R 10");
        client.send(&message(b'p', b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc"));
        let first = client.message().unwrap();
        let first = std::str::from_utf8(&first[9..]).unwrap();
        client.send(&message(b'p', client_final(password, first).as_bytes()));
        assert_eq!(client.next(), expected);
    }
}

/// A client's last message of SCRAM, after the first `n=,r=abc` (RFC 5802, section 3).
fn client_final(password: &str, server_first: &str) -> String {
    let mut fields = server_first.splitn(3, ',').map(|field| &field[2..]);
    let (nonce, salt, iterations) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
    let mut salted = [0; 32];
    ring::pbkdf2::derive(
        ring::pbkdf2::PBKDF2_HMAC_SHA256,
        iterations.parse().unwrap(),
        &base64::decode(salt).unwrap(),
        password.as_bytes(),
        &mut salted,
    );
    let client_key = sign(&salted, b"Client Key");
    let without_proof = format!("c=biws,r={nonce}");
    let signature = sign(&hash(&client_key), format!("n=,r=abc,{server_first},{without_proof}").as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
    format!("{without_proof},p={}", base64::encode(&proof))
}
