//! Asymmetric barriers: a full barrier of which the frequent side pays nothing.
//!
//! Two threads each write one word and then read the other's. At least one of them must see the other's write, which takes a
//! full barrier between write and read on both sides. If one side is rare, it can issue the barrier for all threads of the
//! process ([`heavy`]), and the frequent side only keeps the compiler from moving the accesses ([`light`]). Linux has a system
//! call for that, `membarrier`.
//!
//! `light` pairs with `heavy` only, and only if [`is_asymmetric`]. Otherwise both sides use `fence(SeqCst)`.

/// True if [`heavy`] and [`light`] make a full barrier between two threads. The first call asks the system.
///
/// In a simulation every access is sequentially consistent, so that it is true; in a model it is not.
pub fn is_asymmetric() -> bool {
    #[cfg(loom)]
    return false;
    #[cfg(not(loom))]
    {
        static IS_REGISTERED: crate::OnceLock<bool> = crate::OnceLock::new();
        *IS_REGISTERED.get_or_init(system::register)
    }
}

/// The frequent side: the compiler moves no access across it.
#[inline(always)]
pub fn light() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

/// The rare side: a full barrier on every thread of the process that runs. A few microseconds.
pub fn heavy() {
    crate::atomic::fence(crate::atomic::Ordering::SeqCst);
    #[cfg(not(loom))]
    if is_asymmetric() && !crate::thread::is_simulated() {
        system::heavy();
    }
}

#[cfg(all(not(loom), target_os = "linux"))]
mod system {
    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED` and its registration, from `linux/membarrier.h`.
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn call(command: libc::c_int) -> bool {
        // SAFETY: the system call takes three numbers and touches no memory of the process.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        call(REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn heavy() {
        assert!(call(PRIVATE_EXPEDITED), "a registered process may issue barriers");
    }
}

#[cfg(all(not(loom), not(target_os = "linux")))]
mod system {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn heavy() {}
}
