//! The guide. Every program in it is a test.
//!
//! 1. [Tables, keys, rows](tables)
//! 2. [Boxes, counters, collections](objects)
//! 3. [Errors, retries, rollback, panics](errors)
//! 4. [Waiting for a change, and hooks](waiting)
//! 5. [Which protocol when](protocols)
//! 6. [Threads, workers, sessions](threads)
//! 7. [In a server](servers)
//! 8. [Asynchronous code: what may block, and for how long](tasks)
//! 9. [Hot rows: what to do about them](hot_rows)
//! 10. [The conflict report](conflicts)
//! 11. [Deferred operations](deferred)
//! 12. [Procedures and contexts](procedures)
//! 13. [Transaction profiles](profiles)
//! 14. [Snapshots: reading without being in the way](snapshots)
//! 15. [Surviving the process](durability)
//! 16. [Recording and checking a run](histories)
//! 17. [A datatype of your own](crate::object)
//! 18. [Moving to Hotrow](moving): from mutexes, from software transactional memory, from an embedded store
//! 19. [Guarantees, rules for bodies, limits](guarantees)

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
pub mod tasks;
pub mod threads;
pub mod waiting;
