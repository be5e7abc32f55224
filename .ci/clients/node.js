// Asks a server what `pg`, the driver of Node.js, asks. Usage: node node.js HOST PORT, with NODE_PATH at the folder of its modules.
//
// Each check states what PostgreSQL answers, so that it passes there, too.
"use strict";
const assert = require("node:assert");
const { Client, Pool } = require("pg");

const place = { host: process.argv[2], port: Number(process.argv[3]), user: "postgres", database: "postgres" };
const TABLE = "drop table if exists d; create table d (a integer primary key check (a >= 0), b text)";

/** The code that a query is refused with. */
async function refusal(promise) {
    try {
        await promise;
    } catch (error) {
        return error.code;
    }
    return undefined;
}

const checks = {
    async types(client) {
        const sent = [true, -32768, 2147483647, "-9223372036854775808", "1.50", 0.1, "it's 'ä' €", Buffer.from([0, 255]), "x"];
        const text =
            "select $1::boolean, $2::smallint, $3::integer, $4::bigint, $5::numeric(9,2), $6::float8, $7::text, $8::bytea, $9::varchar";
        const result = await client.query({ text, values: sent, rowMode: "array" });
        assert.deepStrictEqual(result.rows, [sent]);
        const instant = new Date("2024-02-29T12:34:56.789Z");
        const times = await client.query({ text: "select $1::timestamptz, $2::date::text", values: [instant, "2024-02-29"], rowMode: "array" });
        assert.deepStrictEqual(times.rows, [[instant, "2024-02-29"]]);
        const nothing = await client.query({ text: "select $1::integer, $2::text", values: [null, ""], rowMode: "array" });
        assert.deepStrictEqual(nothing.rows, [[null, ""]]);
        const lists = await client.query({ text: "select $1::integer[], $2::text[]", values: [[1, 2], ["a", 'b"']], rowMode: "array" });
        assert.deepStrictEqual(lists.rows, [[[1, 2], ["a", 'b"']]]);
    },
    async prepared(client) {
        await client.query(TABLE);
        for (let a = 0; a < 20; a++) {
            const { rowCount } = await client.query({ name: "insert", text: "insert into d values ($1, $2)", values: [a, `${a}`] });
            assert.strictEqual(rowCount, 1);
        }
        const { rows } = await client.query("select a from d where b = any($1) order by a", [["3", "17"]]);
        assert.deepStrictEqual(rows, [{ a: 3 }, { a: 17 }]);
        const many = await client.query("select 1 as one; update d set b = '' where a < 3; select count(*) from d");
        assert.deepStrictEqual(many.map((result) => [result.command, result.rowCount]), [["SELECT", 1], ["UPDATE", 3], ["SELECT", 1]]);
    },
    async errors(client) {
        await client.query(`${TABLE}; insert into d values (1, 'one')`);
        const refused = { "selec 1": "42601", "select * from nowhere": "42P01", "select 1 / 0": "22012", "insert into d values (1)": "23505" };
        for (const [text, code] of Object.entries(refused)) {
            assert.strictEqual(await refusal(client.query(text)), code);
            assert.strictEqual(await refusal(client.query({ name: code, text })), code);
        }
        assert.strictEqual(await refusal(client.query("select $1::integer", ["x"])), "22P02");
        await client.query("begin");
        assert.strictEqual(await refusal(client.query("insert into d values (-1)")), "23514");
        assert.strictEqual(await refusal(client.query("select 1")), "25P02");
        await client.query("rollback");
    },
    async pool() {
        const pool = new Pool({ ...place, max: 4 });
        await pool.query("drop table if exists p; create table p (a integer primary key, b integer); insert into p values (1, 0)");
        const add = async () => {
            while ((await refusal(pool.query("update p set b = b + 1 where a = 1"))) === "40001");
        };
        await Promise.all(Array.from({ length: 40 }, add));
        assert.deepStrictEqual((await pool.query("select b from p")).rows, [{ b: 40 }]);
        await pool.end();
    },
    async notify(client) {
        const told = new Promise((resolve) => client.once("notification", ({ channel, payload }) => resolve([channel, payload])));
        await client.query("listen news");
        const other = new Client(place);
        await other.connect();
        await other.query("notify news, 'late'");
        await other.end();
        assert.deepStrictEqual(await told, ["news", "late"]);
    },
};

async function main() {
    const client = new Client(place);
    await client.connect();
    let failed = 0;
    for (const [name, check] of Object.entries(checks)) {
        try {
            await check(client);
        } catch (error) {
            failed++;
            console.log(`-- pg of Node.js: ${name}\n${error.stack}`);
        }
    }
    await client.end();
    console.log(`pg of Node.js: ${Object.keys(checks).length - failed} passed, ${failed} failed`);
    process.exitCode = failed ? 1 : 0;
}

setTimeout(() => {
    console.log("pg of Node.js: no answer within 40 s");
    process.exit(1);
}, 40_000).unref();
main();
