//! Tests of the protocol against a small engine: by scripts of bytes, by random bytes, and over sockets.

mod engine;
mod protocol;
mod random;
mod script;
mod sockets;
mod start;
