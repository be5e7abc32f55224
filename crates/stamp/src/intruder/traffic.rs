//! The traffic: flows, the packets into which they are split, and the signatures of attacks.

use super::IntruderOptions;
use hotrow_sync::Arc;
use hotrow_sync::random::Random;
use hotrow_sync::work::charge_cycles;

/// The texts that make a flow an attack, in lower case.
pub(crate) const SIGNATURES: [&str; 32] = [
    "overflow",
    "shellcode",
    "rootkit",
    "payload",
    "exploit",
    "backdoor",
    "trojan",
    "worm",
    "virus",
    "inject",
    "drop",
    "union",
    "select",
    "passwd",
    "shadow",
    "chmod",
    "sudo",
    "wget",
    "curl",
    "nop",
    "jmp",
    "heap",
    "spray",
    "script",
    "alert",
    "cookie",
    "token",
    "admin",
    "root",
    "guest",
    "bind",
    "flood",
];

/// A packet: one fragment of a flow.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) flow: u32,
    /// Number of the fragment within its flow.
    pub(crate) fragment: u32,
    /// Fragments of the flow.
    pub(crate) fragments: u32,
    pub(crate) data: Arc<[u8]>,
}

/// The input.
pub(crate) struct Traffic {
    /// The packets, in the order of their arrival.
    pub(crate) packets: Vec<Packet>,
    /// The texts of the flows, for the verification.
    pub(crate) texts: Vec<Vec<u8>>,
    /// True for each flow that is an attack.
    pub(crate) is_attack: Vec<bool>,
}

impl Traffic {
    /// Draws flows, splits them into packets, and mixes the packets. An attack is a flow with a signature; a flow of
    /// random characters may be one by chance.
    pub(crate) fn generate(options: &IntruderOptions) -> Self {
        let mut random = Random::seeded(options.seed);
        let mut traffic = Self { packets: Vec::new(), texts: Vec::new(), is_attack: Vec::new() };
        for flow in 0..options.flows {
            let text = if random.below(100) < u64::from(options.attack_percent) {
                SIGNATURES[random.below(SIGNATURES.len() as u64) as usize].as_bytes().to_vec()
            } else {
                let length = random.between(1, u64::from(options.packets_max));
                (0..length).map(|_| random.between(b' '.into(), b'~'.into()) as u8).collect()
            };
            let lower = String::from_utf8_lossy(&text).to_lowercase();
            traffic.is_attack.push(SIGNATURES.iter().any(|signature| lower.contains(signature)));
            traffic.split(flow, &text, &mut random);
            traffic.texts.push(text);
        }
        random.shuffle(&mut traffic.packets);
        traffic
    }

    /// Splits a flow into packets of equal lengths; the last one gets the rest.
    fn split(&mut self, flow: u32, text: &[u8], random: &mut Random) {
        let fragments = random.between(1, text.len() as u64) as usize;
        let length = text.len() / fragments;
        for fragment in 0..fragments {
            let end = if fragment + 1 == fragments { text.len() } else { (fragment + 1) * length };
            self.packets.push(Packet {
                flow,
                fragment: fragment as u32,
                fragments: fragments as u32,
                data: text[fragment * length..end].into(),
            });
        }
    }
}

/// The cycles for a byte of a text; estimated.
const CYCLES: u32 = 10;

/// A detector of signatures.
pub(crate) struct Detector {
    /// The signatures that begin with each byte.
    by_first: Vec<Vec<&'static [u8]>>,
    lower: Vec<u8>,
}

impl Detector {
    pub(crate) fn new() -> Self {
        let mut by_first = vec![Vec::new(); 256];
        for signature in SIGNATURES {
            by_first[usize::from(signature.as_bytes()[0])].push(signature.as_bytes());
        }
        Self { by_first, lower: Vec::new() }
    }

    /// Returns true if a text contains a signature, in lower or upper case.
    pub(crate) fn detect(&mut self, text: &[u8]) -> bool {
        charge_cycles(text.len() as u32 * CYCLES);
        self.lower.clear();
        self.lower.extend(text.iter().map(u8::to_ascii_lowercase));
        let rest = |start: usize| &self.lower[start..];
        self.lower.iter().enumerate().any(|(start, first)| {
            self.by_first[usize::from(*first)].iter().any(|signature| rest(start).starts_with(signature))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_found_anywhere_and_in_upper_case() {
        let mut detector = Detector::new();
        for text in ["worm", "a wOrM", "wowormo", "roroot"] {
            assert!(detector.detect(text.as_bytes()), "{text}");
        }
        for text in ["", "wor", "w orm", "worn"] {
            assert!(!detector.detect(text.as_bytes()), "{text}");
        }
    }
}
