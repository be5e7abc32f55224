//! Mutated texts: whatever a client writes, nothing panics, no error is the server's own, and the connection goes on.
//!
//! `HOTROW_MUTATIONS=10000000` asks for so many texts instead of some thousands.

use crate::support::{connect, instance, run};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow_sql::Connection;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

/// The tables that the texts are about.
const TABLES: &[&str] = &[
    "CREATE TABLE t (id int PRIMARY KEY, v bigint DEFAULT 0, s text, n numeric(9,2), CHECK (v > -1000))",
    "CREATE TABLE u (id serial, t int NOT NULL, at timestamptz DEFAULT now(), ok bool, PRIMARY KEY (id, t))",
    "CREATE UNIQUE INDEX u_at ON u (at, id)",
    "INSERT INTO t SELECT a, a * 10, 'text ' || a, a / 3.0 FROM generate_series(1, 20) a",
    "INSERT INTO u (t, ok) SELECT a % 5, a % 2 = 0 FROM generate_series(1, 20) a",
    "SET statement_timeout = '50ms'",
];

/// Texts of which parts are changed, taken from one another, and put together.
const TEXTS: &[&str] = &[
    "SELECT * FROM t WHERE id = 7",
    "SELECT id, v + 1 AS w, upper(s), n * 2.5 FROM t WHERE id BETWEEN 3 AND 9 ORDER BY w DESC NULLS FIRST LIMIT 3 OFFSET 1",
    "SELECT count(*), sum(v), avg(n), max(s), string_agg(s, ',' ORDER BY id) FROM t GROUP BY id % 3 HAVING count(*) > 1",
    "SELECT DISTINCT ON (u.t) u.t, t.s FROM u JOIN t ON t.id = u.t LEFT JOIN u AS x USING (id) WHERE u.ok IS NOT TRUE ORDER BY u.t, t.s",
    "SELECT a.id, (SELECT max(v) FROM t WHERE t.id < a.id) FROM t a WHERE EXISTS (SELECT 1 FROM u WHERE u.t = a.id) AND a.v IN (10, 20, NULL)",
    "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS x (k, l) FULL JOIN t ON t.id = x.k, LATERAL (SELECT x.k + 1) AS y",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT sum(n) FROM r",
    "WITH gone AS (DELETE FROM u WHERE t = 1 RETURNING id), more AS (SELECT 1) SELECT * FROM gone, more",
    "SELECT id FROM t UNION SELECT id FROM u EXCEPT ALL (SELECT t FROM u INTERSECT SELECT 3) ORDER BY 1",
    "INSERT INTO t (id, v, s) VALUES (100, 1, 'x'), (101, DEFAULT, E'a\\n') ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v WHERE t.id > 3 RETURNING *",
    "INSERT INTO t SELECT id + 1000, v, s FROM t WHERE id < 5 ON CONFLICT DO NOTHING",
    "UPDATE t SET v = v + 1 WHERE id = 3",
    "UPDATE t SET v = v - 5 WHERE id = 3 AND v >= 5",
    "UPDATE t SET (v, s) = (u.t, 'new') FROM u WHERE u.id = t.id AND u.ok RETURNING t.id, u.at",
    "DELETE FROM t USING u WHERE t.id = u.t AND length(s) > 2",
    "CREATE TABLE w (a int GENERATED ALWAYS AS IDENTITY, b varchar(3) UNIQUE, c date CHECK (c > '2020-01-01'), PRIMARY KEY (a))",
    "CREATE TABLE x AS SELECT id, s FROM t WITH NO DATA",
    "ALTER TABLE t ADD COLUMN extra numeric DEFAULT 1.5, DROP COLUMN IF EXISTS s, ADD CONSTRAINT big CHECK (v < 100000)",
    "ALTER TABLE t RENAME COLUMN v TO value",
    "CREATE INDEX IF NOT EXISTS t_s ON t (s DESC, id)",
    "DROP TABLE IF EXISTS w, x CASCADE",
    "TRUNCATE t RESTART IDENTITY",
    "CREATE SEQUENCE q START 5 INCREMENT BY -2 MINVALUE -10 CYCLE",
    "SELECT nextval('q'), currval('q'), setval('q', 3, false)",
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "RELEASE a",
    "COMMIT AND CHAIN",
    "ROLLBACK",
    "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT * FROM t ORDER BY id",
    "FETCH BACKWARD 3 FROM c",
    "CLOSE ALL",
    "PREPARE p (int, text) AS UPDATE t SET s = $2 WHERE id = $1",
    "EXECUTE p (3, 'three')",
    "DEALLOCATE ALL",
    "COPY t (id, s) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'n')",
    "COPY u FROM STDIN (FORMAT binary)",
    "EXPLAIN (ANALYZE, COSTS off) SELECT * FROM t WHERE id = 3",
    "SET LOCAL search_path TO public, \"$user\"",
    "SHOW ALL",
    "LISTEN news; NOTIFY news, 'late'; UNLISTEN *",
    "SELECT '2024-02-29'::date + 1, interval '1 day 02:03:04.5' * 2, timestamp '2024-01-01 00:00' - interval '1 month', extract(epoch FROM now())",
    "SELECT 1e400::numeric, '-Infinity'::float8, 'NaN'::numeric, 2147483647 + 1::bigint, 5 / 2, -5 % 3, 2 ^ 0.5, 1 << 3, ~5 & 6 | 1 # 2",
    "SELECT CASE WHEN v > 10 THEN 'a' ELSE s END, coalesce(n, 0), nullif(id, 3), greatest(id, v), s LIKE '%1_' ESCAPE '!', s ~* 'T.xt' FROM t",
    "SELECT ARRAY[1, 2, NULL]::int[], '{a,\"b\"}'::text[], 3 = ANY (ARRAY[1, 3]), array_length(ARRAY[1, 2], 1), unnest(ARRAY[4, 5])",
    "SELECT substring('abc' FROM 2 FOR 1), position('b' IN 'abc'), trim(BOTH ' ' FROM ' a '), overlay('abc' PLACING 'x' FROM 2), '\\xdead'::bytea, md5('a'), repeat('ab', 3)",
    "SELECT format('%s %I %L', 'a', 'b c', NULL), to_char(now(), 'YYYY-MM-DD HH24:MI:SS'), to_number('12', '99'), regexp_replace('aab', 'a+', 'x', 'g'), split_part('a,b', ',', 2)",
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname ~ '^t$' AND a.attnum > 0",
    "SELECT * FROM information_schema.columns WHERE table_name = 't' AND pg_table_is_visible('t'::regclass)",
    "SELECT * FROM hotrow_hot_rows, hotrow_conflicts, pg_stat_activity LIMIT 2",
    "SELECT * FROM t WHERE id = 3 FOR UPDATE SKIP LOCKED",
    "SELECT /* a /* b */ c */ $tag$dollar$tag$, U&'\\0041', B'101', X'1F', 'it''s' -- the end",
];

/// Words that are put in anywhere.
const WORDS: &[&str] = &[
    "NULL",
    "NOT",
    "(",
    ")",
    ",",
    ";",
    "*",
    ".",
    "::",
    "=",
    "<>",
    "$1",
    "$99999",
    "''",
    "'",
    "\"",
    "0",
    "-1",
    "9223372036854775808",
    "1e999",
    "t",
    "u",
    "id",
    "v",
    "s",
    "n",
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "OVER ()",
    "ALL",
    "ANY",
    "IN",
    "IS",
    "LIKE",
    "CAST(",
    "AS",
    "int",
    "text",
    "numeric(1000, 1000)",
    "interval",
    "[",
    "]",
    "ARRAY[",
    "||",
    "->",
    "--",
    "/*",
    "E'\\u0000'",
    "ä",
    "\u{0}",
    "ROW(",
    "excluded",
    "ctid",
    "DEFAULT",
    "WITH",
    "UNION",
    "LATERAL",
    "generate_series(1, 3)",
    "count(*)",
    "DISTINCT",
    "COLLATE \"C\"",
    "AT TIME ZONE 'UTC'",
    "BETWEEN",
    "CASE",
];

/// The pieces of a text: words, numbers, quoted texts, signs, and the spaces between them.
fn pieces(text: &str) -> Vec<String> {
    let kind = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut pieces: Vec<String> = Vec::new();
    let mut last = 2;
    for letter in text.chars() {
        match pieces.last_mut() {
            Some(piece) if kind(letter) == last && last != 2 => piece.push(letter),
            _ => pieces.push(letter.to_string()),
        }
        last = kind(letter);
    }
    pieces
}

struct Mutations {
    random: Random,
    texts: Vec<Vec<String>>,
}

impl Mutations {
    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit.max(1) as u64) as usize
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len());
        all[at].clone()
    }

    fn text(&mut self) -> String {
        let texts = std::mem::take(&mut self.texts);
        let mut pieces = self.of(&texts);
        for _ in 0..self.below(6) {
            let at = self.below(pieces.len());
            match self.below(9) {
                0 => drop(pieces.drain(at..(at + 1).min(pieces.len()))),
                1 => {
                    let other = self.below(pieces.len());
                    if !pieces.is_empty() {
                        pieces.swap(at, other);
                    }
                }
                2 => pieces.truncate(at),
                // A part twice, or in another text.
                3 | 4 => {
                    let from = if self.below(2) == 0 { pieces.clone() } else { self.of(&texts) };
                    let begin = self.below(from.len());
                    let end = (begin + 1 + self.below(12)).min(from.len());
                    pieces.splice(at..at, from[begin.min(end)..end].to_vec());
                }
                5 => {
                    let word = self.of(WORDS);
                    if let Some(piece) = pieces.get_mut(at) {
                        *piece = word.to_owned();
                    }
                }
                6 => pieces.insert(at, "(".repeat(1 + self.below(40))),
                7 => pieces.insert(at, char::from(self.below(127) as u8).to_string()),
                _ => pieces.insert(at, format!(" {} ", self.of(WORDS))),
            }
        }
        self.texts = texts;
        pieces.concat()
    }
}

fn connected() -> Connection {
    let mut connection = connect(&instance("occ"));
    for text in TABLES {
        run(&mut connection, text);
    }
    connection
}

#[test]
fn mutated_texts_do_no_harm() {
    // A server's threads have as much.
    let builder = thread::Builder::new().stack_size(32 << 20);
    builder.spawn(mutate).unwrap().join().unwrap();
}

fn mutate() {
    let asked = std::env::var("HOTROW_MUTATIONS").ok();
    let count: u64 = asked.map_or(4_000, |count| count.parse().expect("a number of texts"));
    let seed = RandomState::new().build_hasher().finish();
    println!("seed {seed}");
    let mut mutations =
        Mutations { random: Random::seeded(seed), texts: TEXTS.iter().map(|text| pieces(text)).collect() };
    let mut connection = connected();
    let (mut succeeded, mut refused) = (0_u64, 0_u64);
    for number in 0..count {
        // A database has so many storages, and definitions use them up.
        if number % 2_000 == 1_999 {
            connection = connected();
        }
        let text = mutations.text();
        let results = run(&mut connection, &text);
        match results.last().map(String::as_str) {
            Some(code) if code.len() == 5 && code.starts_with("XX") => panic!("{results:?} for {text:?}"),
            Some(code) if code.len() == 5 => refused += 1,
            _ => succeeded += 1,
        }
        if number % 10 == 0 {
            run(&mut connection, "ROLLBACK; RESET statement_timeout");
            assert_eq!(run(&mut connection, "SELECT 1"), ["1"], "after {text:?}");
            run(&mut connection, TABLES[TABLES.len() - 1]);
        }
    }
    println!("{succeeded} succeeded, {refused} were refused");
    assert!(succeeded > count / 20 && refused > count / 20, "{succeeded} succeeded, {refused} were refused");
}
