//! `hotrow list`: the protocols, the workloads, and the machines that can be simulated.

use crate::arguments::Format;
use crate::text;
use crate::text::print as print_text;
use hotrow::protocols::PROTOCOLS;
#[cfg(feature = "sim")]
use hotrow_sim::{Machine, Topology};
use hotrow_workloads::WORKLOADS;
use serde_json::{Value, json};
use std::io;

pub(crate) fn print(format: Format) -> io::Result<()> {
    print_text(&match format {
        Format::Table => in_words(),
        Format::Json => format!("{}\n", in_json()),
    })
}

fn in_words() -> String {
    let protocols = PROTOCOLS.iter().map(|protocol| {
        let threads = if protocol.workers_max == u32::MAX {
            "any".to_owned()
        } else {
            protocol.workers_max.to_string()
        };
        let answer = |holds| if holds { "yes" } else { "no" };
        let (strict, opaque) = (answer(protocol.strict), answer(protocol.opaque));
        [protocol.name, protocol.summary, strict, opaque, &threads, protocol.source]
            .map(str::to_owned)
            .to_vec()
    });
    let workloads = WORKLOADS
        .iter()
        .map(|workload| [workload.name, workload.summary, workload.source].map(str::to_owned).to_vec());
    let mut words = format!(
        "Protocols\n{}\nWorkloads\n{}",
        text::table(6, &["name", "", "strict", "opaque", "threads", "source"], protocols),
        text::table(3, &["name", "", "source"], workloads),
    );
    #[cfg(feature = "sim")]
    {
        let machines = machines().map(|machine| {
            let Topology { sockets, cores_per_socket, threads_per_core, .. } = machine.topology;
            let topology = format!("{sockets} x {cores_per_socket} x {threads_per_core}");
            vec![machine.name, machine.description, topology]
        });
        let header = ["name", "", "sockets x cores x threads"];
        words += &format!("\nMachines to simulate\n{}", text::table(2, &header, machines));
    }
    let baselines = WORKLOADS.iter().flat_map(|workload| {
        workload
            .baselines
            .iter()
            .map(|baseline| [baseline.name, baseline.summary, workload.name].map(str::to_owned).to_vec())
    });
    words += &format!("\nBaselines\n{}", text::table(3, &["name", "", "workload"], baselines));
    for workload in WORKLOADS {
        let options = workload.options.iter().map(|option| {
            [&format!("--{} {}", option.name, option.value), option.summary, option.default]
                .map(str::to_owned)
                .to_vec()
        });
        words +=
            &format!("\nOptions of {}\n{}", workload.name, text::table(3, &["name", "", "default"], options));
    }
    words
}

fn in_json() -> Value {
    let protocols = PROTOCOLS.iter().map(|protocol| {
        json!({
            "name": protocol.name,
            "summary": protocol.summary,
            "source": protocol.source,
            "strict": protocol.strict,
            "opaque": protocol.opaque,
            "workers_max": protocol.workers_max,
        })
    });
    let workloads = WORKLOADS.iter().map(|workload| {
        let options = workload.options.iter().map(
            |option| json!({ "name": option.name, "summary": option.summary, "default": option.default }),
        );
        let baselines = workload.baselines.iter();
        let baselines =
            baselines.map(|baseline| json!({ "name": baseline.name, "summary": baseline.summary }));
        json!({
            "name": workload.name,
            "summary": workload.summary,
            "source": workload.source,
            "options": options.collect::<Vec<_>>(),
            "baselines": baselines.collect::<Vec<_>>(),
        })
    });
    #[cfg_attr(not(feature = "sim"), expect(unused_mut, reason = "machines come with the simulator"))]
    let mut list =
        json!({ "protocols": protocols.collect::<Vec<_>>(), "workloads": workloads.collect::<Vec<_>>() });
    #[cfg(feature = "sim")]
    {
        list["machines"] = machines_in_json();
    }
    list
}

/// The machines that come with the simulator.
#[cfg(feature = "sim")]
fn machines() -> impl Iterator<Item = Machine> {
    let named = |name| Machine::named(name).expect("the simulator tests its own profiles");
    Machine::names().into_iter().map(named)
}

#[cfg(feature = "sim")]
fn machines_in_json() -> Value {
    let machines = machines().map(|machine| {
        json!({
            "name": machine.name,
            "description": machine.description,
            "sockets": machine.topology.sockets,
            "cores_per_socket": machine.topology.cores_per_socket,
            "threads_per_core": machine.topology.threads_per_core,
        })
    });
    machines.collect()
}
