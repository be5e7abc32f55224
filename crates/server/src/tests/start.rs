//! The start of a connection, by bytes.

use super::script::*;
use crate::passwords::{Passwords, password_verifier};
use crate::service::Service;

fn replies_to(service: &Service<super::engine::SmallEngine>, bytes: &[u8]) -> Vec<u8> {
    let mut script = Script::new(bytes, 1);
    run(service, &mut script);
    script.output
}

fn starts(body: &[u8]) -> Vec<String> {
    shown(&replies_to(&service(), &packet(3 << 16, body)))
}

#[test]
fn a_start_gives_parameters_a_key_and_ready() {
    assert_eq!(
        starts(b"user\0ann\0application_name\0x\0options\0-c a=b\0\0"),
        [
            "R 0",
            "S server_version=15.0",
            "S user=ann",
            "S database=ann",
            "S setting=a=b",
            "S setting=application_name=x",
            "K",
            "Z I"
        ]
    );
    assert!(starts(b"user\0ann\0database\0d\0\0").contains(&"S database=d".to_owned()));
}

#[test]
fn starts_that_cannot_be_served_are_refused() {
    for (body, code) in [
        (&b"\0"[..], "28000"),
        (b"user\0\0\0", "28000"),
        (b"database\0d\0\0", "28000"),
        (b"user\0ann\0replication\0true\0\0", "0A000"),
        (b"user\0ann\0options\0-x\0\0", "42601"),
        (b"user\0ann\0database\0none\0\0", "3D000"),
        (b"user\0\xff\0\0", "22021"),
        (b"", "08P01"),
        (b"user\0ann", "08P01"),
        (b"user\0ann\0", "08P01"),
        (b"user\0ann\0\0x", "08P01"),
    ] {
        assert_eq!(starts(body), [format!("E FATAL {code}")], "{body:?}");
    }
    for code in [2 << 16, 4 << 16, 0, u32::MAX] {
        assert_eq!(shown(&replies_to(&service(), &packet(code, b"user\0ann\0\0"))), ["E FATAL 0A000"]);
    }
    for length in [0, 7, 10_001, u32::MAX] {
        assert_eq!(shown(&replies_to(&service(), &u32::to_be_bytes(length))), ["E FATAL 08P01"]);
    }
}

#[test]
fn newer_versions_and_unknown_options_are_negotiated() {
    let body = b"user\0ann\0_pq_.x\0y\0\0";
    let start = |minor: u32| replies_to(&service(), &packet(3 << 16 | minor, body));
    for (asked, given) in [(0, 0_u8), (2, 2), (9999, 2)] {
        let bytes = start(asked);
        let expected = [&b"v\0\0\0\x13\0\x03\0"[..], &[given], b"\0\0\0\x01_pq_.x\0"].concat();
        assert_eq!(&bytes[..expected.len()], expected);
        // Clients that speak 3.2 get longer keys.
        let key_length = if given >= 2 { 40 } else { 12 };
        assert!(bytes.windows(5).any(|head| head == [b'K', 0, 0, 0, key_length]));
    }
    assert!(!start(2).is_empty() && starts(b"user\0ann\0\0")[0] == "R 0");
}

#[test]
fn encryption_is_declined_once_each() {
    let (tls, gss) = (packet(80_877_103, b""), packet(80_877_104, b""));
    let bytes = replies_to(&service(), &[gss.clone(), tls.clone(), hello()].concat());
    assert_eq!((&bytes[..2], shown(&bytes[2..])[0].as_str()), (&b"NN"[..], "R 0"));
    let bytes = replies_to(&service(), &[tls.clone(), tls.clone(), hello()].concat());
    assert_eq!((bytes[0], shown(&bytes[1..])), (b'N', vec!["E FATAL 0A000".to_owned()]));
}

#[test]
fn requests_to_cancel_are_not_answered() {
    for body in [&b"\0\0\0\x01abcd"[..], b"", b"\0\0\0\x01", &[0; 300]] {
        assert_eq!(replies_to(&service(), &packet(80_877_102, body)), b"");
    }
}

#[test]
fn a_place_is_given_back_when_a_connection_ends() {
    let mut service = service();
    service.options.connections_max = 1;
    for _ in 0..3 {
        assert_eq!(shown(&replies_to(&service, &hello()))[0], "R 0");
    }
    let place = service.admit();
    assert_eq!(shown(&replies_to(&service, &hello())), ["E FATAL 53300"]);
    drop(place);
    assert_eq!(shown(&replies_to(&service, &hello()))[0], "R 0");
    assert_eq!(service.counters.errors_of("53300"), 1);
}

#[test]
fn with_passwords_nobody_gets_in_without_one() {
    let mut service = service();
    service.passwords =
        Some(Passwords::parse(&format!("ann:{}", password_verifier("secret").unwrap())).unwrap());
    let initial = |body: &[u8]| {
        let length = body.len() as u32;
        message(b'p', &[&b"SCRAM-SHA-256\0"[..], &length.to_be_bytes(), body].concat())
    };
    let first = initial(b"n,,n=,r=abc");
    for (messages, expected) in [
        (query("select 1"), &["R 10", "E FATAL 08P01"][..]),
        (message(b'p', b"secret\0"), &["R 10", "E FATAL 08P01"]),
        (message(b'p', &[0; 10_001]), &["R 10", "E FATAL 08P01"]),
        (message(b'p', b"SCRAM-SHA-256-PLUS\0\0\0\0\0"), &["R 10", "E FATAL 08P01"]),
        (message(b'p', b"SCRAM-SHA-256\0\xff\xff\xff\xff"), &["R 10", "E FATAL 08P01"]),
        (initial(b"n,,n=,r="), &["R 10", "E FATAL 08P01"]),
        ([first.clone(), message(b'p', b"c=biws,r=abc,p=")].concat(), &["R 10", "R 11", "E FATAL 08P01"]),
        (first, &["R 10", "R 11"]),
    ] {
        assert_eq!(
            shown(&replies_to(&service, &[hello(), messages, query("select 1")].concat()))[..expected.len()],
            *expected
        );
    }
    assert_eq!(service.engine.connections(), 0);
}
