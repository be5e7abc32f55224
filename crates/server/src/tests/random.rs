//! Random bytes: whatever a client sends, the server neither panics nor takes more memory than it may.

use super::script::*;
use crate::passwords::{Passwords, password_verifier};
use fastrand::Rng;

const SCRIPTS: usize = 200_000;

/// Texts of statements, names and data, the wrong ones among them.
const TEXTS: [&str; 14] = [
    "",
    "a",
    "select 1 2",
    "select $",
    "begin",
    "commit",
    "rollback",
    "copyin",
    "copyout",
    "wrong",
    "notice",
    "begin;copyin;commit",
    "notify",
    "select 1;wrong",
];

fn text(random: &mut Rng) -> &'static str {
    TEXTS[random.usize(..TEXTS.len())]
}

fn any_message(random: &mut Rng) -> Vec<u8> {
    let name = ["", "a"][random.usize(..2)];
    match random.u32(..16) {
        0 | 1 => query(text(random)),
        2 => parse(name, text(random)),
        3 => bind(name, "", &[], &[0, 1][..random.usize(..3)]),
        4 => bind("", name, &[b"1"], &[]),
        5 => execute(name, random.i32(-1..3)),
        6 => describe(if random.bool() { 'S' } else { 'P' }, name),
        7 => sync(),
        8 => message(b'd', text(random).as_bytes()),
        9 => message(b'c', b""),
        10 => message(b'f', b"why\0"),
        11 => message(b'H', b""),
        12 => message(b'C', format!("{}{name}\0", if random.bool() { 'S' } else { 'P' }).as_bytes()),
        13 => message(b'F', b""),
        14 => {
            let kind = b"QPBDECSHXdcfFpz"[random.usize(..15)];
            let body: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
            message(kind, &body)
        }
        _ => message(b'p', b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc"),
    }
}

fn script(random: &mut Rng) -> Vec<u8> {
    let mut bytes = match random.u32(..20) {
        0 => packet(80_877_103, b""),
        1 => packet(80_877_102, b"\0\0\0\x07abcd"),
        2 => packet(random.u32(..), b"user\0ann\0\0"),
        3 => packet(3 << 16 | 2, b"user\0ann\0_pq_.a\0b\0options\0-c a=b\0\0"),
        _ => hello(),
    };
    for _ in 0..random.usize(..8) {
        bytes.extend(any_message(random));
    }
    // Half of them are left as they are, so that the states behind whole messages are reached.
    for _ in 0..random.usize(..4).saturating_sub(1) {
        let place = random.usize(..bytes.len());
        match random.u32(..4) {
            0 => bytes.truncate(place + 1),
            1 => bytes.insert(place, random.u8(..)),
            2 => drop(bytes.remove(place)),
            _ => bytes[place] = random.u8(..),
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn random_bytes_do_no_harm() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let open = service();
    let mut closed = service();
    closed.passwords =
        Some(Passwords::parse(&format!("ann:{}", password_verifier("secret").unwrap())).unwrap());
    let mut has_answered = 0;
    for number in 0..SCRIPTS {
        let bytes = script(&mut random);
        let service = if number % 8 == 0 { &closed } else { &open };
        let mut script = Script::new(&bytes, random.usize(1..64));
        let (input, output) = run(service, &mut script);
        assert!(input <= 3 * MESSAGE_BYTES_MAX, "{input} bytes of input are kept for {bytes:?}");
        assert!(output <= 256 * 1024, "{output} bytes of output are kept for {bytes:?}");
        has_answered += usize::from(script.output.windows(6).any(|message| message == b"Z\0\0\0\x05I"));
    }
    assert!(has_answered > SCRIPTS / 4, "only {has_answered} scripts went beyond the start");
    assert_eq!(open.engine.connections() + closed.engine.connections(), 0);
}
