//! SQL through the public interface: one program, because each compiles the engine's code anew.

mod bank;
mod edges;
mod isolation;
mod mutations;
mod support;
