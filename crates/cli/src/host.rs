//! The machine and this process, as reports name them.

use hotrow_workloads::{Host, Machine};
use std::cell::RefCell;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// What the operating system says.
pub(crate) struct ThisHost {
    system: RefCell<System>,
    process: Option<Pid>,
    machine: Machine,
}

impl ThisHost {
    pub(crate) fn new() -> Self {
        let mut system = System::new();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        system.refresh_cpu_specifics(CpuRefreshKind::nothing());
        let unknown = || "unknown".to_owned();
        let cpu = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned());
        let machine = Machine {
            cores: hotrow::sync::thread::parallelism(),
            memory_bytes: system.total_memory(),
            cpu: cpu.filter(|name| !name.is_empty()).unwrap_or_else(unknown),
            os: System::long_os_version().unwrap_or_else(unknown),
        };
        Self { system: RefCell::new(system), process: sysinfo::get_current_pid().ok(), machine }
    }

    /// The memory that this process could still get, in bytes.
    pub(crate) fn available_bytes(&self) -> u64 {
        let mut system = self.system.borrow_mut();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let available = system.available_memory();
        // In a container the limit is the container's.
        system.cgroup_limits().map_or(available, |limits| available.min(limits.free_memory))
    }
}

impl Host for ThisHost {
    fn resident_bytes(&self) -> u64 {
        let Some(process) = self.process else { return 0 };
        let mut system = self.system.borrow_mut();
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[process]),
            false,
            ProcessRefreshKind::nothing().with_memory(),
        );
        system.process(process).map_or(0, sysinfo::Process::memory)
    }

    fn machine(&self) -> Machine {
        self.machine.clone()
    }

    fn revision(&self) -> &str {
        REVISION
    }
}

/// The source revision of this build.
pub(crate) const REVISION: &str = env!("HOTROW_REVISION");
