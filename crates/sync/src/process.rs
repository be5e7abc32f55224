//! The process that something belongs to: a fork of it has the same memory, and neither its threads nor its locks of files.

/// A process.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    id: u32,
    /// The number of forks that led to it, if they are counted.
    forks: Option<u64>,
}

impl Process {
    /// The process that calls.
    pub fn current() -> Self {
        Self { id: std::process::id(), forks: forks::count() }
    }

    /// True if the caller runs in this process, and not in a fork of it. On Linux it asks the system for nothing, and so does not see forks that go
    /// around the C library.
    #[inline]
    pub fn is_current(self) -> bool {
        match self.forks {
            Some(forks) => forks == forks::counted(),
            None => self.id == std::process::id(),
        }
    }

    /// The same, for files: it asks the system, and so sees every fork.
    pub fn owns_files(self) -> bool {
        self.id == std::process::id()
    }
}

#[cfg(target_os = "linux")]
mod forks {
    use std::sync::OnceLock;
    // The standard library's: the handler of a fork may do nothing else, and models have no forks.
    use std::sync::atomic::{AtomicU64, Ordering};

    static FORKS: AtomicU64 = AtomicU64::new(0);

    extern "C" fn count_one() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts forks from the first call on. `None` if the system refuses that.
    pub(super) fn count() -> Option<u64> {
        static IS_COUNTED: OnceLock<bool> = OnceLock::new();
        // SAFETY: the handler only adds to a static word, which any thread may do at any time.
        let register = || unsafe { libc::pthread_atfork(None, None, Some(count_one)) } == 0;
        IS_COUNTED.get_or_init(register).then(counted)
    }

    #[inline]
    pub(super) fn counted() -> u64 {
        // Relaxed: only the child's one thread, from which all others come, has changed it.
        FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(not(target_os = "linux"))]
mod forks {
    pub(super) fn count() -> Option<u64> {
        None
    }

    pub(super) fn counted() -> u64 {
        0
    }
}
