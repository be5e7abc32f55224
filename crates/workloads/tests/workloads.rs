//! The workloads and protocols: on threads of the system, and, with feature `sim`, on virtual cores. One test binary, because they share most
//! of what is compiled for them: `cargo test -p hotrow-workloads --features sim --test workloads`.

#[cfg(feature = "sim")]
#[path = "../../hotrow/tests/models/mod.rs"]
mod models;
mod mutants;
mod native;
#[cfg(feature = "sim")]
mod simulated;
