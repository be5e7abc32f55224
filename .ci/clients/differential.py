"""Runs generated statements against PostgreSQL and Hotrow, and compares rows and codes.

Usage: differential.py POSTGRESQL HOTROW STATEMENTS [SEED]     (two connection strings)

Statements are of the supported subset: definitions, changes, and queries over two tables whose rows both servers have. Rows are compared as
text, of each third one that merges no values as bytes of the binary format; as a multiset, unless the query sorts them by a key. Of errors the codes are
compared. The first differences are printed, and their number is the exit status (at most 100).
"""

import random
import re
import sys
from decimal import Decimal

import psycopg

TYPES = {
    "i": "integer",
    "b": "bigint",
    "s": "smallint",
    "n": "numeric(12,2)",
    "t": "text",
    "v": "varchar(8)",
    "o": "boolean",
    "d": "date",
    "m": "timestamp",
    "f": "double precision",
}
COLUMNS = list(TYPES)


class Draw:
    """Draws statements."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def number(self):
        draws = [0, 1, -1, 2, 7, 10, 42, 100, 32767, -32768, 2147483647, 9223372036854775807]
        return self.pick(draws) if self.chance(25) else self.random.randint(-20, 20)

    def literal(self, kind):
        if self.chance(7):
            return "NULL"
        if kind in "ibs":
            return str(self.number())
        if kind == "n":
            return self.pick(["0.00", "1.5", "-2.25", "10", "99999999.99", "3.14159", "1e3", "0.005"])
        if kind == "f":
            return self.pick(["0.5", "1e10", "-2.5", "3", "0.1", "1e-7", "123456789.125"])
        if kind in "tv":
            return self.pick(["'a'", "'b'", "''", "'Abc'", "'abc def'", "'it''s'", "'%_'", "'ä'", "'longer than eight'", "'7'"])
        if kind == "o":
            return self.pick(["true", "false"])
        if kind == "d":
            return self.pick(["'2024-02-29'", "'1999-12-31'", "'2000-01-01'", "'2024-13-01'", "date '2020-06-15'"])
        return self.pick(["'2024-02-29 12:34:56'", "'2000-01-01'", "timestamp '1999-12-31 23:59:59.5'", "'2024-03-01 00:00:00.000001'"])

    def column(self, kinds, tables):
        return f"{self.pick(tables)}.{self.pick(kinds)}"

    def value(self, kind, tables, depth=2):
        """An expression of about this kind."""
        draw = self.random.randrange(10)
        if depth == 0 or draw < 3 or not tables:
            return self.literal(kind) if not tables or self.chance(35) else self.column([kind], tables)
        inner = lambda wanted: self.value(wanted, tables, depth - 1)
        if kind in "ibsnf":
            if draw < 6:
                return f"({inner(kind)} {self.pick('+-*/%' if kind in 'ibsn' else '+-*/')} {inner(self.pick('ibs') if kind in 'ibs' else kind)})"
            return self.pick(
                [
                    f"abs({inner(kind)})",
                    f"coalesce({inner(kind)}, {inner(kind)})",
                    f"greatest({inner(kind)}, {inner(kind)})",
                    f"least({inner(kind)}, {inner(kind)})",
                    f"nullif({inner(kind)}, {inner(kind)})",
                    f"case when {self.condition(tables, depth - 1)} then {inner(kind)} else {inner(kind)} end",
                    f"length({inner('t')})" if kind in "ib" else f"round({inner('n')}, {self.random.randint(-1, 3)})",
                    f"- {inner(kind)}" if self.chance(50) else f"({inner(kind)})::{TYPES[self.pick('ibsn')]}",
                ]
            )
        if kind in "tv":
            return self.pick(
                [
                    f"({inner('t')} || {inner('t')})",
                    f"upper({inner('t')})",
                    f"lower({inner('t')})",
                    f"substring({inner('t')} from {self.random.randint(-1, 4)} for {self.random.randint(0, 4)})",
                    f"trim({inner('t')})",
                    f"replace({inner('t')}, 'a', 'x')",
                    f"({inner(self.pick('ibnodm'))})::text",
                    f"coalesce({inner('t')}, {inner('t')})",
                    f"left({inner('t')}, {self.random.randint(-2, 4)})",
                    f"lpad({inner('t')}, {self.random.randint(0, 6)}, 'xy')",
                    f"md5({inner('t')})",
                ]
            )
        if kind == "o":
            return f"({self.condition(tables, depth - 1)})"
        if kind == "d":
            return self.pick([f"({inner('d')} + {self.random.randint(-400, 400)})", f"({inner('m')})::date", f"coalesce({inner('d')}, {inner('d')})"])
        return self.pick([f"({inner('m')} + interval '{self.random.randint(1, 90)} minutes')", f"({inner('d')})::timestamp", f"date_trunc('{self.pick(['hour', 'day', 'month', 'year'])}', {inner('m')})"])

    def condition(self, tables, depth=2):
        kind = self.pick("ibsntvdmf")
        value = lambda: self.value(kind, tables, depth - 1 if depth else 0)
        draw = self.random.randrange(14)
        if depth and draw < 3:
            return f"({self.condition(tables, depth - 1)} {self.pick(['and', 'or'])} {self.condition(tables, depth - 1)})"
        if draw < 8:
            return f"{value()} {self.pick(['=', '<>', '<', '<=', '>', '>='])} {value()}"
        if draw == 8:
            return f"{value()} is {self.pick(['', 'not '])}null"
        if draw == 9:
            return f"{value()} {self.pick(['', 'not '])}in ({value()}, {value()}, {value()})"
        if draw == 10:
            return f"{value()} {self.pick(['', 'not '])}between {value()} and {value()}"
        if draw == 11:
            text = self.value("t", tables, depth - 1 if depth else 0)
            return f"{text} {self.pick(['like', 'not like', 'ilike'])} {self.pick([chr(39) + p + chr(39) for p in ('a%', '%b%', '_', 'A_c%', '%')])}"
        if draw == 12:
            return f"{value()} is {self.pick(['', 'not '])}distinct from {value()}"
        return f"not ({self.condition(tables, depth - 1 if depth else 0)})"

    def query(self, depth=1):
        """A query, and whether its rows come in a certain order."""
        two = self.chance(35)
        tables = ["x", "y"] if two else ["x"]
        source = f"{self.pick(['t', 'u'])} x"
        if two:
            join = self.pick(["join", "left join", "right join", "full join", "cross join"])
            source += f" {join} {self.pick(['t', 'u'])} y"
            if join != "cross join":
                on = f"x.{self.pick(['k', 'i'])} = y.{self.pick(['k', 'i'])}"
                source += f" on {on}" + (f" and {self.condition(tables, 0)}" if self.chance(30) and join != "full join" else "")
        where = f" where {self.condition(tables)}" if self.chance(70) else ""
        if depth and self.chance(15):
            extra = self.pick(
                [
                    f"x.i in (select {self.pick('isb')} from u z where {self.condition(['z'], 1)})",
                    "exists (select 1 from u z where z.k = x.k)",
                    f"x.i > (select min(z.i) from t z where z.k {self.pick('<>=')} x.k)",
                    f"x.k not in (select z.k from u z where z.{self.pick('tv')} = 'a')",
                ]
            )
            where += (" and " if where else " where ") + extra
        if self.chance(25):
            kind = self.pick("isotvd")
            aggregates = [
                "count(*)",
                f"count({self.column(COLUMNS, tables)})",
                f"sum({self.column(list('ibsn'), tables)})",
                f"avg({self.column(list('ibsn'), tables)})",
                f"min({self.column(list('ibsntdm'), tables)})",
                f"max({self.column(list('ibsntdm'), tables)})",
                f"count(distinct {self.column(COLUMNS, tables)})",
                f"sum(distinct {self.column(list('is'), tables)})",
                f"bool_and({self.column(['o'], tables)})",
            ]
            chosen = ", ".join(self.pick(aggregates) for _ in range(self.random.randint(1, 3)))
            if self.chance(30):
                return f"select {chosen} from {source}{where}", False
            having = f" having count(*) > {self.random.randint(0, 2)}" if self.chance(30) else ""
            order = " order by 1" if self.chance(40) else ""
            return f"select x.{kind}, {chosen} from {source}{where} group by x.{kind}{having}{order}", False
        kinds = [self.pick(COLUMNS) for _ in range(self.random.randint(1, 4))]
        values = ", ".join(self.value(kind, tables) for kind in kinds)
        if self.chance(12):
            operation = self.pick(["union", "union all", "intersect", "except"])
            kind = self.pick("ibtnd")
            sides = [f"select x.{kind} from {table} x where {self.condition(['x'], 1)}" for table in ("t", "u")]
            return f"{sides[0]} {operation} {sides[1]}" + (" order by 1" if self.chance(40) else ""), False
        distinct = "distinct " if self.chance(15) else ""
        text = f"select {distinct}{values} from {source}{where}"
        if not two and not distinct and self.chance(50):
            direction = self.pick(["", " desc", " nulls first", " desc nulls last"])
            text += f" order by x.{self.pick(COLUMNS)}{direction}, x.k"
            if self.chance(50):
                text += f" limit {self.random.randint(0, 9)}" + (f" offset {self.random.randint(0, 5)}" if self.chance(40) else "")
            return text, True
        return text, False

    def change(self):
        table = self.pick(["t", "u"])
        draw = self.random.randrange(10)
        if draw < 5:
            columns = self.random.sample(COLUMNS, self.random.randint(1, 6))
            rows = []
            for _ in range(self.random.randint(1, 3)):
                rows.append("(" + ", ".join([str(self.random.randint(0, 60))] + [self.value(c, [], 1) for c in columns]) + ")")
            text = f"insert into {table} (k, {', '.join(columns)}) values {', '.join(rows)}"
            if self.chance(50):
                text += " on conflict (k) do " + self.pick(
                    ["nothing", f"update set {columns[0]} = excluded.{columns[0]}", f"update set i = {table}.i + 1 where {table}.i < 5"]
                )
        elif draw < 8:
            # Whether several rows with unique values can be moved depends on their order.
            column = self.pick([c for c in COLUMNS if c != "b" or table == "u"])
            value = self.pick([f"{column} + 1", f"{column} - 3"]) if column in "ibs" and self.chance(50) else self.value(column, [table])
            where = f"k = {self.random.randint(0, 60)}" if self.chance(60) else self.condition([table], 1)
            text = f"update {table} set {column} = {value} where {where}"
        else:
            where = f"k = {self.random.randint(0, 60)}" if self.chance(70) else f"k > 40 and {self.condition([table], 1)}"
            text = f"delete from {table} where {where}"
        if self.chance(25):
            text += " returning k, " + self.pick(COLUMNS)
        return text

    def statement(self):
        draw = self.random.randrange(100)
        if draw < 62:
            return self.query()
        if draw < 94:
            return self.change(), False
        if draw < 97:
            return f"select {', '.join(self.value(self.pick(COLUMNS), []) for _ in range(3))}", False
        return self.pick(["truncate u", "insert into u select * from t on conflict do nothing", "select x.* from t x, u y where x.k = y.k"]), False


def run(connection, text, is_binary):
    """What a server answers: its rows as text, or its code."""
    try:
        # In the binary format it is a statement of the extended protocol, too.
        cursor = connection.cursor(binary=is_binary).execute(text, prepare=is_binary)
        rows = cursor.fetchall() if cursor.description else []
        return [tuple("" if value is None else "=" + value for value in row) for row in rows], cursor.statusmessage
    except psycopg.Error as error:
        return error.sqlstate or "?", str(error)


class AsText(psycopg.adapt.Loader):
    """Leaves a value the text that the server sends."""

    def load(self, data):
        return bytes(data).decode()


class AsDigits(psycopg.adapt.Loader):
    """Shows the bytes that the server sends."""

    format = psycopg.pq.Format.BINARY

    def load(self, data):
        return bytes(data).hex()


def connect(place):
    connection = psycopg.connect(place, autocommit=True)
    for info in psycopg.adapters.types:
        connection.adapters.register_loader(info.oid, AsText)
        connection.adapters.register_loader(info.oid, AsDigits)
    return connection


def align(postgresql, hotrow):
    """Gives Hotrow PostgreSQL's rows."""
    for table in ("t", "u"):
        hotrow.execute(f"truncate {table}")
        with postgresql.cursor().copy(f"copy {table} to stdout") as source, hotrow.cursor().copy(f"copy {table} from stdin") as target:
            for chunk in source:
                target.write(chunk)


# Queries that make one of several equal values, of which either may stay.
MERGING = re.compile("distinct|group by|union|intersect|except")


def merged(rows):
    """The rows, with numbers that are equal written in one way: 0 and -0, or 10 and 10.00."""
    return [tuple(re.sub(r"^=(-?\d+(\.\d+)?)$", lambda number: f"={Decimal(number[1]).normalize() + 0}", value) for value in row) for row in rows]


def is_of_data(answer):
    """True for an error of a value."""
    return isinstance(answer, str) and answer.startswith("22")


def violates(answer):
    """True for an error of a constraint."""
    return isinstance(answer, str) and answer.startswith("23")


def main():
    postgresql, hotrow, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    servers = [connect(postgresql), connect(hotrow)]
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    for server in servers:
        server.execute("drop table if exists t, u")
        server.execute(f"create table t (k integer primary key, {columns})")
        server.execute(f"create table u (k integer primary key, {columns}, check (i < 1000000))")
        server.execute("create index u_i on u (i)")
        server.execute("create unique index t_b on t (b)")
    draw = Draw(seed)
    differences, unspecified = 0, 0
    for number in range(count):
        text, is_sorted = draw.statement()
        (expected, told), (found, said) = (run(server, text, number % 3 == 2 and not MERGING.search(text)) for server in servers)
        if isinstance(expected, list) and isinstance(found, list):
            if MERGING.search(text):
                expected, found = merged(expected), merged(found)
            same = (expected == found if is_sorted else sorted(expected) == sorted(found)) and told == said
        else:
            same = expected == found
            # SQL does not say which of a statement's conditions and values are computed first, or at all: an error of data (class 22) may
            # come on one side only, or another one before it.
            if not same and violates(expected) and violates(found):
                # Of several rows, PostgreSQL checks the first one against all constraints; Hotrow checks all against one constraint first.
                same = True
            if not same and is_of_data(expected) and (is_of_data(found) or isinstance(found, list)) or is_of_data(found) and isinstance(expected, list):
                unspecified += 1
                same = True
                # One of them may have changed what the other has not.
                if not text.startswith("select"):
                    align(*servers)
        if not same:
            differences += 1
            if differences <= 20:
                print(f"-- {number}\n{text};\n   PostgreSQL: {str(expected)[:400]} {told[:200]!r}\n   Hotrow:     {str(found)[:400]} {said[:200]!r}")
    print(f"{count} statements, {differences} differences, {unspecified} with an error of data on one side (seed {seed})")
    sys.exit(min(differences, 100))


if __name__ == "__main__":
    main()
