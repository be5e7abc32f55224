//! The guide. Every program in it is a test.
//!
//! 1. [Tables, keys, rows](tables)
//! 2. [Boxes, counters, collections](objects)
//! 3. [Errors, retries, rollback, panics](errors)
//! 4. [Which protocol when](protocols)
//! 5. [Threads, workers, sessions](threads)
//! 6. [In a server](servers)
//! 7. [Hot rows: what to do about them](hot_rows)
//! 8. [The conflict report](conflicts)
//! 9. [Deferred operations](deferred)
//! 10. [Procedures and contexts](procedures)
//! 11. [Transaction profiles](profiles)
//! 12. [Snapshots: reading without being in the way](snapshots)
//! 13. [Surviving the process](durability)
//! 14. [Recording and checking a run](histories)
//! 15. [A datatype of your own](crate::object)
//! 16. [Moving to Hotrow](moving): from mutexes, from software transactional memory, from an embedded store
//! 17. [Guarantees, rules for bodies, limits](guarantees)

pub mod conflicts;
pub mod deferred;
pub mod durability;
pub mod errors;
pub mod guarantees;
pub mod histories;
pub mod hot_rows;
pub mod moving;
pub mod objects;
pub mod procedures;
pub mod profiles;
pub mod protocols;
pub mod servers;
pub mod snapshots;
pub mod tables;
pub mod threads;
