//! # Serving over SQL: psql and every PostgreSQL driver
//!
//! `hotrow serve` makes a database look like PostgreSQL 15 to its clients. The command is built with `--features serve`.
//!
//! ```sh
//! hotrow serve shop &            # A directory; without one the database is in memory.
//! psql -h 127.0.0.1 -f shop.sql
//! ```
//!
//! ```sql
//! CREATE TABLE events (id int PRIMARY KEY, price int NOT NULL, free int NOT NULL);
//! CREATE TABLE tickets (
//!     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event int NOT NULL, email text NOT NULL);
//! INSERT INTO events VALUES (7, 20, 100);
//!
//! -- A sale: one statement, which the server runs again until it commits. No row if nothing is left.
//! WITH seat AS (UPDATE events SET free = free - 1 WHERE id = 7 AND free >= 1 RETURNING id)
//! INSERT INTO tickets (event, email) SELECT id, 'ada@example.com' FROM seat RETURNING id;
//!
//! -- A seat comes back: an addition at the commit, which reads nothing.
//! EXPLAIN UPDATE events SET free = free + 1 WHERE id = 7;
//! --  Update on events
//! --    ->  Addition at commit by events's primary key
//!
//! -- A report: on a snapshot, so that no sale waits for it.
//! BEGIN READ ONLY;
//! SELECT sum(free) FROM events;
//! SELECT count(*) FROM tickets;
//! COMMIT;
//!
//! -- The rows over which transactions have lost, and who has lost to whom.
//! SELECT * FROM hotrow_hot_rows;
//! SELECT * FROM hotrow_conflicts;
//! ```
//!
//! A sale may also be a procedure in Rust, which clients run by `CALL sell(7, 'ada@example.com')`: the front page of crate `hotrow-server` has the
//! program (`cargo doc --open -p hotrow-server`).
//!
//! SQL has only the tables that SQL has made. In the directory of a Rust program, the tables of the program are separate from these.
//!
//! # Guarantees
//!
//! Every transaction is serializable, also if it asks for a lower isolation level. With a directory, a commit is acknowledged when it is on the
//! device. `--durability async` acknowledges immediately, and a crash may undo the last 10 ms. Definitions are transactional.
//!
//! # Failures
//!
//! | code and message | meaning | do |
//! |---|---|---|
//! | `40001`, `could not serialize access due to concurrent update` | an open block lost a conflict; the detail names the key: `a value that was read has changed: events (id)=(7).` | run the block again |
//! | `40P01`, `deadlock detected` | the block was the youngest of a cycle | the same |
//! | `23505`, `23514` | a unique key or a check is violated | report it |
//! | `0A000`, for example `CREATE VIEW is not supported` | the server lacks it | see `docs/sql.md` |
//!
//! Only open blocks end with a conflict. The server runs a single statement again, and also all statements of one message.
//!
//! Without a certificate and passwords, the server refuses an address that other machines can reach:
//! `0.0.0.0:5432 is reachable from other machines: it needs a certificate (TLS) and passwords`.
//!
//! # Speed on a hot row
//!
//! In this order:
//!
//! 1. Send a transaction as **one message**: one statement, several in one text (`BEGIN; …; COMMIT`), or a `CALL`. No round trip lies between its
//!    statements, so that no transaction waits for a client.
//! 2. Write changes of a hot row's integers as `SET c = c + $1 WHERE key = $2`. If `EXPLAIN` says `Addition at commit`, such statements do not abort
//!    each other. An index or a check on the column, or `RETURNING`, makes the statement read the row.
//! 3. Use **prepared statements**, and `--socket DIR` for clients on the same machine.
//! 4. Send reports as `READ ONLY`, or as single statements, which read a snapshot, too.
//! 5. Call the library in place of a server: a program in one process has neither messages nor SQL.
//!
//! Figures of Hotrow and PostgreSQL are in `docs/results/README.md`.
//!
//! See also: `docs/sql.md` for types, statements and differences, [moving from PostgreSQL](super::moving#from-postgresql), [the state of a
//! server](super::servers), [crash safety](super::crash).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;
