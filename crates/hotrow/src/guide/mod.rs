//! The guide. Every program in it is a test.
//!
//! 1. [Tables, keys, rows](tables)
//! 2. [Boxes, arrays, counters](objects)
//! 3. [Errors, retries, rollback, panics](errors)
//! 4. [Which protocol when](protocols)
//! 5. [Threads, workers, sessions](threads)
//! 6. [Hot rows: what to do about them](hot_rows)
//! 7. [The conflict report](conflicts)
//! 8. [Deferred operations](deferred)
//! 9. [Procedures and contexts](procedures)
//! 10. [Transaction profiles](profiles)
//! 11. [Recording and checking a run](histories)
//! 12. [A datatype of your own](crate::object)
//! 13. [Moving to Hotrow](moving): from mutexes, from software transactional memory, from an embedded store
//! 14. [Guarantees, rules for bodies, limits](guarantees)

pub mod conflicts;
pub mod deferred;
pub mod errors;
pub mod guarantees;
pub mod histories;
pub mod hot_rows;
pub mod moving;
pub mod objects;
pub mod procedures;
pub mod profiles;
pub mod protocols;
pub mod tables;
pub mod threads;
