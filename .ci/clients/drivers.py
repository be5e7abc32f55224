"""Asks a server what Python's drivers ask: psycopg, asyncpg, pg8000 and SQLAlchemy.

Usage: drivers.py HOST PORT [DRIVER]...

Each check states what PostgreSQL answers, so that it passes there, too. A check that fails is printed with its traceback, the others run
on; the exit status is 1 if one has failed.
"""

import asyncio
import datetime
import decimal
import sys
import time
import traceback
import uuid

HOST, PORT = sys.argv[1], int(sys.argv[2])
PLACE = {"host": HOST, "port": PORT, "user": "postgres"}
URL = f"host={HOST} port={PORT} user=postgres dbname=postgres"

UTC = datetime.timezone.utc
# A value of each type that crosses the wire in both formats.
VALUES = {
    "boolean": True,
    "smallint": -32768,
    "integer": 2147483647,
    "bigint": -9223372036854775808,
    "numeric": decimal.Decimal("-12345678901234567890.001200"),
    "double precision": 0.1,
    "text": "it's \\ 'ä' € 🦀",
    "bytea": bytes(range(256)),
    "date": datetime.date(2024, 2, 29),
    "timestamp": datetime.datetime(1999, 12, 31, 23, 59, 59, 999999),
    "timestamptz": datetime.datetime(2024, 2, 29, 12, 0, tzinfo=UTC),
    "uuid": uuid.UUID("6f2c1a7e-0000-4000-8000-0123456789ab"),
}
# Statements and the codes that they are refused with.
REFUSED = {
    "selec 1": "42601",
    "select * from nowhere": "42P01",
    "select nothing from d": "42703",
    "select nothing(1)": "42883",
    "insert into d values (1, 'again')": "23505",
    "insert into d values (null, 'nobody')": "23502",
    "insert into d values (-1, 'negative')": "23514",
    "select 1 / 0": "22012",
    "select 'x'::integer": "22P02",
    "select 2147483647 + 1": "22003",
    "create table d (a integer)": "42P07",
}
TABLE = "create table d (a integer primary key check (a >= 0), b text)"
# Runs for minutes, unless it is cancelled.
ENDLESS = "select count(*) from generate_series(1, 100000) x, generate_series(1, 100000) y"


def equal(found, expected):
    """Fails unless both are the same."""
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def code_of(action, *arguments):
    """The code that an action is refused with; None if it is not."""
    try:
        action(*arguments)
    except Exception as error:
        details = error.args[0] if error.args else None
        return getattr(error, "sqlstate", None) or (details.get("C") if isinstance(details, dict) else repr(error))
    return None


def psycopg_checks():
    import psycopg

    def types(connection):
        for binary in (False, True):
            for kind, value in VALUES.items():
                equal(connection.cursor(binary=binary).execute(f"select %s::{kind}", [value]).fetchone(), (value,))
                equal(connection.cursor(binary=binary).execute(f"select %b::{kind}", [value]).fetchone(), (value,))
            values = connection.cursor(binary=binary).execute("select %s::integer[], %s::text[]", [[1, 2], ["a", 'b"']])
            equal(values.fetchone(), ([1, 2], ["a", 'b"']))
        equal(connection.execute("select null::integer, ''").fetchone(), (None, ""))

    def prepared(connection):
        connection.execute(f"drop table if exists d; {TABLE}")
        for number in range(12):
            connection.execute("insert into d values (%s, %s)", [number, str(number)])
        for number in range(12):
            # By a name from the sixth time on, and at once.
            equal(connection.execute("select b from d where a = %s", [number]).fetchone(), (str(number),))
            equal(connection.execute("select a from d where b = %s", [str(number)], prepare=True).fetchone(), (number,))
        equal(connection.execute("delete from d where a > %s returning a", [9]).fetchall(), [(10,), (11,)])

    def cursors(connection):
        with connection.transaction(), connection.cursor(name="c") as cursor:
            cursor.itersize = 3
            equal([a for (a,) in cursor.execute("select a from d order by a")], list(range(10)))

    def pipeline(connection):
        connection.execute(f"drop table if exists d; {TABLE}")
        with connection.pipeline():
            cursors = [connection.execute("insert into d values (%s, %s) returning a", [n, "x"]) for n in range(50)]
        equal([cursor.fetchone()[0] for cursor in cursors], list(range(50)))
        with connection.cursor() as cursor:
            cursor.executemany("update d set b = b || %s where a = %s", [("y", n) for n in range(50)])
            equal(cursor.rowcount, 50)
        try:
            with connection.pipeline():
                connection.execute("insert into d values (100, 'lost')")
                connection.execute("insert into d values (1, 'again')")
                connection.execute("insert into d values (101, 'aborted')")
        except psycopg.errors.UniqueViolation:
            pass
        equal(connection.execute("select 1").fetchone(), (1,))

    def copy(connection):
        connection.execute("drop table if exists e; create table e (a integer, b text, c bytea)")
        rows = [(number, None if number % 7 == 0 else f"tab\t{number}\\\n", bytes([number % 256])) for number in range(1000)]
        for options in ("", " (format binary)"):
            connection.execute("truncate e")
            with connection.cursor().copy("copy e from stdin" + options) as target:
                target.set_types(["int4", "text", "bytea"])
                for row in rows:
                    target.write_row(row)
            with connection.cursor().copy("copy (select * from e order by a) to stdout" + options) as source:
                source.set_types(["int4", "text", "bytea"])
                equal(list(source.rows()), rows)
        def broken():
            with connection.cursor().copy("copy e from stdin") as target:
                target.write("1\tx\n")
        equal(code_of(broken), "22P04")
        def given_up():
            with connection.cursor().copy("copy e from stdin") as target:
                target.write("1\tx\t\\\\x00\n")
                raise ZeroDivisionError
        equal(code_of(given_up), "ZeroDivisionError()")
        equal(connection.execute("select count(*) from e").fetchone(), (1000,))

    def errors(connection):
        connection.execute(f"drop table if exists d; {TABLE}; insert into d values (1, 'one')")
        for text, code in REFUSED.items():
            equal((text, code_of(connection.execute, text)), (text, code))
        try:
            connection.execute("insert into d values (1, 'again')")
        except psycopg.errors.UniqueViolation as error:
            equal((error.diag.constraint_name, error.diag.table_name, error.diag.schema_name), ("d_pkey", "d", "public"))
            equal(error.diag.message_detail, "Key (a)=(1) already exists.")
        with connection.transaction(force_rollback=True):
            equal(code_of(connection.execute, "select 1 / 0"), "22012")
            equal(code_of(connection.execute, "select 1"), "25P02")
        with connection.transaction():
            try:
                with connection.transaction():
                    connection.execute("insert into d values (2, 'two')")
                    connection.execute("insert into d values (1, 'again')")
            except psycopg.errors.UniqueViolation:
                connection.execute("insert into d values (3, 'three')")
        equal(connection.execute("select a from d order by a").fetchall(), [(1,), (3,)])

    def serializable(connection):
        connection.execute("drop table if exists w; create table w (a integer primary key, b integer)")
        connection.execute("insert into w values (1, 0), (2, 0)")
        with psycopg.connect(URL) as one, psycopg.connect(URL) as two:
            codes = []
            for each in (one, two):
                each.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                each.execute("set local lock_timeout = '2s'")
                equal(each.execute("select sum(b) from w").fetchone(), (0,))
            for number, each in ((1, one), (2, two)):
                codes.append(code_of(each.execute, "update w set b = 1 where a = %s", [number]))
            codes += [code_of(each.commit) for each in (one, two)]
            equal([code for code in codes if code], ["40001"])

    def cancel(connection):
        with psycopg.connect(URL) as other:
            import threading

            threading.Timer(0.3, other.cancel_safe).start()
            began = time.monotonic()
            equal(code_of(other.execute, ENDLESS), "57014")
            equal(time.monotonic() - began < 10, True)
            other.rollback()
            other.execute("set statement_timeout = 100")
            equal(code_of(other.execute, "select pg_sleep(20)"), "57014")

    def notify(connection):
        with psycopg.connect(URL, autocommit=True) as listener:
            listener.execute("listen news")
            connection.execute("select pg_notify('news', %s)", ["late"])
            told = next(listener.notifies(timeout=5, stop_after=1))
            equal((told.channel, told.payload, told.pid), ("news", "late", connection.info.backend_pid))

    connection = psycopg.connect(URL, autocommit=True)
    equal(connection.info.server_version >= 150000, True)
    return connection, [types, prepared, cursors, pipeline, copy, errors, serializable, cancel, notify]


def asyncpg_checks():
    import asyncpg

    loop = asyncio.new_event_loop()

    def check(function):
        def checked(connection):
            loop.run_until_complete(asyncio.wait_for(function(connection), 30))

        checked.__name__ = function.__name__
        return checked

    async def refusal(awaitable):
        try:
            await awaitable
        except asyncpg.PostgresError as error:
            return error.sqlstate
        return None

    @check
    async def types(connection):
        for kind, value in VALUES.items():
            equal(await connection.fetchval(f"select $1::{kind}", value), value)
            equal(await connection.fetchval(f"select $1::{kind}", None), None)
        # Of arrays it reads the catalog with WITH RECURSIVE, which Hotrow does not have.

    @check
    async def prepared(connection):
        await connection.execute(f"drop table if exists d; {TABLE}")
        await connection.executemany("insert into d values ($1, $2)", [(n, str(n)) for n in range(100)])
        statement = await connection.prepare("select b from d where a = $1")
        equal([await statement.fetchval(number) for number in range(100)], [str(n) for n in range(100)])
        equal(([p.name for p in statement.get_parameters()], [a.name for a in statement.get_attributes()]), (["int4"], ["b"]))
        async with connection.transaction():
            equal([record[0] async for record in connection.cursor("select a from d order by a", prefetch=7)], list(range(100)))

    @check
    async def copy(connection):
        await connection.execute("drop table if exists e; create table e (a integer, b text, c numeric)")
        rows = [(n, f"row {n}", decimal.Decimal(n) / 8) for n in range(1000)]
        equal(await connection.copy_records_to_table("e", records=rows), "COPY 1000")
        equal([tuple(record) for record in await connection.fetch("select * from e order by a")], rows)

    @check
    async def errors(connection):
        await connection.execute(f"drop table if exists d; {TABLE}; insert into d values (1, 'one')")
        for text, code in REFUSED.items():
            equal((text, await refusal(connection.fetch(text))), (text, code))
        async with connection.transaction(isolation="serializable"):
            equal(await connection.fetchval("select b from d where a = $1", 1), "one")

    @check
    async def cancel(connection):
        try:
            await connection.fetch(ENDLESS, timeout=0.3)
            raise AssertionError("the statement has ended")
        except asyncio.TimeoutError:
            equal(await connection.fetchval("select 1"), 1)

    @check
    async def notify(connection):
        told = loop.create_future()
        await connection.add_listener("news", lambda *arguments: told.set_result(arguments[2:]))
        await connection.execute("notify news, 'early'")
        equal(await asyncio.wait_for(told, 5), ("news", "early"))
        await connection.reset()

    return loop.run_until_complete(asyncpg.connect(**PLACE)), [types, prepared, copy, errors, cancel, notify]


def pg8000_checks():
    import pg8000.native

    def types(connection):
        for kind, value in VALUES.items():
            if kind == "smallint":
                value = -1
            equal(connection.run(f"select cast(:v as {kind})", v=value), [[value]])

    def prepared(connection):
        connection.run("drop table if exists d")
        connection.run(TABLE)
        insert = connection.prepare("insert into d values (:a, :b)")
        for number in range(10):
            insert.run(a=number, b=str(number))
        insert.close()
        equal(connection.run("select count(*), max(b) from d"), [[10, "9"]])

    def errors(connection):
        for text, code in REFUSED.items():
            equal((text, code_of(connection.run, text)), (text, code))
        connection.run("start transaction")
        equal(code_of(connection.run, "select 1 / 0"), "22012")
        equal(code_of(connection.run, "select 1"), "25P02")
        connection.run("rollback")

    def copy(connection):
        import io

        connection.run("copy d from stdin (format csv)", stream=io.BytesIO(b'20,"a ""b"""\n21,\n'))
        target = io.BytesIO()
        connection.run("copy (select * from d where a > 19 order by a) to stdout (format csv)", stream=target)
        equal(target.getvalue(), b'20,"a ""b"""\n21,\n')

    def notify(connection):
        connection.run("listen news")
        connection.run("notify news, 'now'")
        connection.run("select 1")
        equal([told[1:] for told in connection.notifications], [("news", "now")])

    return pg8000.native.Connection("postgres", host=HOST, port=PORT), [types, prepared, errors, copy, notify]


def sqlalchemy_checks():
    import sqlalchemy
    from sqlalchemy import orm

    class Base(orm.DeclarativeBase):
        pass

    class Owner(Base):
        __tablename__ = "owners"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        name: orm.Mapped[str] = orm.mapped_column(sqlalchemy.String(20), unique=True)
        since: orm.Mapped[datetime.datetime] = orm.mapped_column(server_default=sqlalchemy.func.now())

    class Pet(Base):
        __tablename__ = "pets"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        owner_id: orm.Mapped[int] = orm.mapped_column(index=True)
        weight: orm.Mapped[decimal.Decimal] = orm.mapped_column(sqlalchemy.Numeric(6, 2))

    def definitions(engine):
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("drop table if exists owners, pets"))
        # Without its look-up of tables, which a later release may word anew.
        Base.metadata.create_all(engine, checkfirst=False)

    def objects(engine):
        with orm.Session(engine) as session:
            session.add_all([Owner(name=name) for name in ("ann", "bob", "cy")])
            session.flush()
            for owner in session.scalars(sqlalchemy.select(Owner)):
                session.add_all([Pet(owner_id=owner.id, weight=decimal.Decimal(f"{owner.id}.{n}5")) for n in range(3)])
            session.commit()
            heavy = sqlalchemy.func.sum(Pet.weight)
            query = sqlalchemy.select(Owner.name, heavy).join(Pet, Pet.owner_id == Owner.id).group_by(Owner.name).order_by(heavy.desc())
            found = session.execute(query.limit(2)).all()
            equal([tuple(row) for row in found], [("cy", decimal.Decimal("9.45")), ("bob", decimal.Decimal("6.45"))])

    def errors(engine):
        with orm.Session(engine) as session:
            session.add(Owner(name="ann"))
            try:
                session.commit()
                raise AssertionError("two owners of one name")
            except sqlalchemy.exc.IntegrityError as error:
                equal(error.orig.sqlstate, "23505")
                session.rollback()
            try:
                with session.begin_nested():
                    session.execute(sqlalchemy.insert(Owner).values(name="bob"))
            except sqlalchemy.exc.IntegrityError:
                session.add(Owner(name="dee"))
            session.commit()
            equal(session.scalar(sqlalchemy.select(sqlalchemy.func.count()).select_from(Owner)), 4)

    engine = sqlalchemy.create_engine(f"postgresql+psycopg://postgres@{HOST}:{PORT}/postgres", isolation_level="SERIALIZABLE")
    return engine, [definitions, objects, errors]


DRIVERS = {"psycopg": psycopg_checks, "asyncpg": asyncpg_checks, "pg8000": pg8000_checks, "sqlalchemy": sqlalchemy_checks}


def main():
    passed, failed = 0, 0
    for driver in sys.argv[3:] or DRIVERS:
        place, checks = DRIVERS[driver]()
        for check in checks:
            try:
                check(place)
                passed += 1
            except Exception:
                failed += 1
                print(f"-- {driver}: {check.__name__}\n{traceback.format_exc()}")
    print(f"drivers of Python: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
