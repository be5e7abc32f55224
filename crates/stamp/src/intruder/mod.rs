//! intruder: packets are put together to flows and searched for attacks (STAMP).
//!
//! A worker repeats three steps until no packet is left: it takes a packet (*capture*), adds it to the list of its flow's
//! fragments and queues the flow if it is complete (*reassembly*), and takes a complete flow and searches it for
//! signatures (*detection*). Capture, reassembly and the taking of a flow are a transaction each.

mod traffic;

use crate::application::{Application, Failure, Statistics, require};
use crate::encode::encode;
use crate::options::options;
use crate::runner::Runner;
use crate::store::{Element, Lists, Queue, Store};
use hotrow::Value;
use hotrow_sync::{Arc, Mutex, lock};
use traffic::{Detector, Traffic};

options! {
    /// Options of intruder. STAMP's letters are in brackets.
    pub struct IntruderOptions {
        /// Percentage of the flows that are attacks (-a).
        attack_percent: u32 = 10 in 0..=100,
        /// Largest number of packets, and of bytes, of a flow that is no attack (-l).
        packets_max: u32 = 128 in 1..=100_000,
        /// Flows (-n).
        flows: u32 = 32_768 in 1..=100_000_000,
        /// Seed of the random numbers (-s).
        seed: u64 = 1 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "simulator": "STAMP's parameters for simulators." {
            attack_percent = 10, packets_max = 4, flows = 2_038, seed = 1,
        }
        "native": "STAMP's large parameters." {
            attack_percent = 10, packets_max = 128, flows = 262_144, seed = 1,
        }
    }
    relations |_| Ok(());
}

/// A complete flow.
#[derive(Debug, Clone, Value)]
struct Flow {
    number: u32,
    text: Arc<[u8]>,
}

impl Element for Flow {}

encode!(Flow { number, text });

/// intruder over a store.
pub struct Intruder<S: Store> {
    store: S,
    traffic: Traffic,
    /// The packets that have not been captured: indexes.
    arriving: S::Queue<u32>,
    /// The fragments of each incomplete flow and their packets' indexes.
    incomplete: S::Lists<u32, u32, u32>,
    complete: S::Queue<Flow>,
    /// The flows that have been searched, and true if a signature was found.
    searched: Vec<(Flow, bool)>,
}

impl<S: Store> Intruder<S> {
    /// Adds a packet to its flow, and queues the flow if it is complete.
    fn reassemble(&self, tx: &mut S::Tx<'_>, index: u32) -> Result<(), S::Abort> {
        let packet = &self.traffic.packets[index as usize];
        if packet.fragments == 1 {
            return self.complete.push(tx, Flow { number: packet.flow, text: Arc::clone(&packet.data) });
        }
        self.incomplete.insert(tx, packet.flow, packet.fragment, index)?;
        if self.incomplete.len(tx, packet.flow)? != Some(packet.fragments as usize) {
            return Ok(());
        }
        let fragments = self.incomplete.take(tx, packet.flow)?.unwrap_or_default();
        let parts = fragments.iter().map(|(_, index)| &*self.traffic.packets[*index as usize].data);
        let text = parts.collect::<Vec<_>>().concat().into();
        self.complete.push(tx, Flow { number: packet.flow, text })
    }

    /// Captures packets until none is left. Returns the number of packets, and the flows that were searched.
    fn work(&self) -> (u64, Vec<(Flow, bool)>) {
        let mut worker = self.store.worker();
        let mut detector = Detector::new();
        let (mut packets, mut searched) = (0, Vec::new());
        while let Some(index) = S::transact(&mut worker, |tx| self.arriving.pop(tx)) {
            packets += 1;
            S::transact(&mut worker, |tx| self.reassemble(tx, index));
            if let Some(flow) = S::transact(&mut worker, |tx| self.complete.pop(tx)) {
                let is_attack = detector.detect(&flow.text);
                searched.push((flow, is_attack));
            }
        }
        (packets, searched)
    }
}

impl<S: Store> Application<S> for Intruder<S> {
    type Options = IntruderOptions;

    fn prepare(store: S, options: &IntruderOptions) -> Self {
        let traffic = Traffic::generate(options);
        Self {
            arriving: store.queue(0..traffic.packets.len() as u32),
            incomplete: store.lists(options.flows as usize, []),
            complete: store.queue([]),
            store,
            traffic,
            searched: Vec::new(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let total = Mutex::new((0, Vec::new()));
        runner.run(self, &|intruder, _| {
            let (packets, searched) = intruder.work();
            let mut total = lock(&total);
            total.0 += packets;
            total.1.extend(searched);
        });
        let (packets, searched) = std::mem::take(&mut *lock(&total));
        self.searched = searched;
        let attacks = self.searched.iter().filter(|(_, is_attack)| *is_attack).count();
        Statistics::new([
            ("packets", packets),
            ("flows", self.searched.len() as u64),
            ("attacks", attacks as u64),
        ])
    }

    /// Checks that each flow was searched once, with its original text, and that exactly the attacks were found.
    fn verify(&self) -> Result<(), Failure> {
        let mut times = vec![0_u32; self.traffic.texts.len()];
        for (flow, is_attack) in &self.searched {
            let number = flow.number as usize;
            times[number] += 1;
            require(flow.text[..] == self.traffic.texts[number][..], || {
                format!("flow {number} was put together wrongly")
            })?;
            require(*is_attack == self.traffic.is_attack[number], || match is_attack {
                true => format!("flow {number} was taken for an attack"),
                false => format!("flow {number} is an attack that was not found"),
            })?;
        }
        let wrong = times.iter().position(|times| *times != 1);
        require(wrong.is_none(), || {
            let number = wrong.unwrap_or_default();
            format!("flow {number} was searched {} times", times[number])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> IntruderOptions {
        IntruderOptions { attack_percent: 20, packets_max: 16, flows: 100, seed: 4 }
    }

    fn after_a_run() -> Intruder<Sequential> {
        let mut intruder = Intruder::prepare(Sequential::default(), &small());
        intruder.run(&OneThread);
        intruder.verify().unwrap();
        intruder
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Intruder<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert_eq!(outcome.statistics.count("flows"), 100);
        assert!((1..100).contains(&outcome.statistics.count("attacks")), "{outcome:?}");
        let outcome = execute::<Intruder<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn the_smallest_flows_work() {
        for attack_percent in [0, 100] {
            let options = IntruderOptions { attack_percent, packets_max: 1, flows: 1, seed: 0 };
            let outcome = execute::<Intruder<_>, _, _>(GlobalLock::default(), &options, &on_threads(2));
            assert_eq!(outcome.verification, Ok(()));
        }
    }

    #[test]
    fn a_missed_attack_and_a_false_alarm_are_found() {
        for is_attack in [true, false] {
            let mut intruder = after_a_run();
            let entry = intruder.searched.iter_mut().find(|(_, found)| *found == is_attack).unwrap();
            entry.1 = !is_attack;
            intruder.verify().unwrap_err();
        }
    }

    #[test]
    fn a_lost_flow_and_one_searched_twice_are_found() {
        let mut intruder = after_a_run();
        let flow = intruder.searched.pop().unwrap();
        assert!(intruder.verify().unwrap_err().to_string().ends_with("was searched 0 times"));
        intruder.searched.extend([flow.clone(), flow]);
        assert!(intruder.verify().unwrap_err().to_string().ends_with("was searched 2 times"));
    }

    #[test]
    fn a_flow_put_together_wrongly_is_found() {
        let mut intruder = after_a_run();
        let (flow, _) = intruder.searched.iter_mut().find(|(flow, _)| flow.text.len() > 1).unwrap();
        flow.text = flow.text[1..].into();
        assert!(intruder.verify().unwrap_err().to_string().ends_with("was put together wrongly"));
    }
}
