//! Transactions on shared memory that stay fast, fair and correct when every thread wants the same row.

pub use hotrow_core::{
    Abort, Conflict, Engine, EngineId, Error, HotKey, Misuse, Protocol, Reason, RetryPolicy, Statistics,
    Transaction, Value, Worker, WorkerId,
};
pub use hotrow_core::{cell, cell::Plain};
pub use hotrow_derive::{Key, Value};
pub use hotrow_objects::{TArray, TBox, TCounter};
pub use hotrow_protocols::{NoProtocol, Occ, Tl2};
pub use hotrow_protocols as protocols;
pub use hotrow_sync as sync;
pub use hotrow_tables::{
    Context, Data, Database, Direction, IndexRef, Key, KeyRange, Operation, OperationId, OperationKind,
    Procedure, Recorded, SecondaryIndex, Table, TableBuilder, TableMemory, TableRef, Text, TextError,
};
pub use hotrow_tables::{context, key};
