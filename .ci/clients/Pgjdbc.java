import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Timer;
import java.util.TimerTask;
import java.util.UUID;
import org.postgresql.PGConnection;

/**
 * Asks a server what pgjdbc, the driver of Java, asks. Usage: java -cp postgresql.jar Pgjdbc.java HOST PORT
 *
 * <p>Each check states what PostgreSQL answers, so that it passes there, too.
 */
public final class Pgjdbc {
    private static final String TABLE =
        "drop table if exists d; create table d (a integer primary key check (a >= 0), b text)";

    /** A check; it fails with any exception. */
    private interface Check {
        void run(Connection connection) throws Exception;
    }

    /** An action that is refused. */
    private interface Action {
        void run() throws SQLException;
    }

    /** Fails unless both are the same. */
    private static void equal(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    /** The code that an action is refused with. */
    private static String code(Action action) {
        try {
            action.run();
            return null;
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    private static void execute(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }

    private static Object value(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
            equal(rows.next(), true);
            return rows.getObject(1);
        }
    }

    private static void types(Connection connection) throws Exception {
        OffsetDateTime instant = OffsetDateTime.of(2024, 2, 29, 12, 34, 56, 789_000, ZoneOffset.UTC);
        UUID identity = UUID.fromString("6f2c1a7e-0000-4000-8000-0123456789ab");
        List<Object> sent = Arrays.asList(
            true, 7, Long.MIN_VALUE, new BigDecimal("-1.50"), 0.1, "it's 'ä' €", new byte[] {0, -1}, LocalDate.of(2024, 2, 29), identity);
        String text = "select ?::boolean, ?::integer, ?::bigint, ?::numeric, ?::float8, ?::text, ?::bytea, ?::date, ?::uuid, ?::timestamptz";
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            // From the fifth time on the statement has a name, and results come in binary.
            for (int time = 0; time < 8; time++) {
                for (int index = 0; index < sent.size(); index++) {
                    statement.setObject(index + 1, sent.get(index));
                }
                statement.setObject(10, instant);
                try (ResultSet rows = statement.executeQuery()) {
                    equal(rows.next(), true);
                    for (int index = 0; index < sent.size(); index++) {
                        Object expected = sent.get(index);
                        equal(rows.getObject(index + 1, expected.getClass()), expected);
                    }
                    equal(rows.getObject(10, OffsetDateTime.class), instant);
                    equal(rows.next(), false);
                }
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("select a from generate_series(1, 5) a where a = any(?) order by 1")) {
            statement.setArray(1, connection.createArrayOf("integer", new Integer[] {2, 4, 9}));
            List<Integer> found = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    found.add(rows.getInt(1));
                }
            }
            equal(found, List.of(2, 4));
        }
    }

    private static void batches(Connection connection) throws Exception {
        execute(connection, TABLE);
        connection.setAutoCommit(false);
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        try (PreparedStatement statement = connection.prepareStatement("insert into d values (?, ?)")) {
            for (int number = 0; number < 300; number++) {
                statement.setInt(1, number);
                statement.setString(2, "row " + number);
                statement.addBatch();
            }
            equal(Arrays.stream(statement.executeBatch()).sum(), 300);
        }
        connection.commit();
        try (PreparedStatement statement = connection.prepareStatement("select a from d order by a")) {
            // Portals of seven rows.
            statement.setFetchSize(7);
            int count = 0;
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    equal(rows.getInt(1), count++);
                }
            }
            equal(count, 300);
        }
        connection.commit();
        connection.setAutoCommit(true);
        try (PreparedStatement statement = connection.prepareStatement("insert into d (a) values (?)", new String[] {"a"})) {
            statement.setInt(1, 1000);
            statement.executeUpdate();
            try (ResultSet rows = statement.getGeneratedKeys()) {
                equal(rows.next(), true);
                equal(rows.getInt(1), 1000);
            }
        }
    }

    private static void savepoints(Connection connection) throws Exception {
        execute(connection, TABLE);
        connection.setAutoCommit(false);
        execute(connection, "insert into d values (1, 'one')");
        var savepoint = connection.setSavepoint();
        equal(code(() -> execute(connection, "insert into d values (1, 'again')")), "23505");
        equal(code(() -> execute(connection, "select 1")), "25P02");
        connection.rollback(savepoint);
        execute(connection, "insert into d values (2, 'two')");
        connection.commit();
        connection.setAutoCommit(true);
        equal(value(connection, "select count(*) from d"), 2L);
    }

    private static void copies(Connection connection) throws Exception {
        execute(connection, TABLE);
        var copy = connection.unwrap(PGConnection.class).getCopyAPI();
        equal(copy.copyIn("copy d from stdin (format csv, header)", new StringReader("a,b\n1,\"x,\"\"y\"\n2,\n")), 2L);
        var target = new StringWriter();
        equal(copy.copyOut("copy d to stdout (format csv)", target), 2L);
        equal(target.toString(), "1,\"x,\"\"y\"\n2,\n");
        equal(code(() -> {
            try {
                copy.copyIn("copy d from stdin", new StringReader("1\tagain\n"));
            } catch (java.io.IOException error) {
                throw new IllegalStateException(error);
            }
        }), "23505");
    }

    private static void refusals(Connection connection) throws Exception {
        execute(connection, TABLE);
        Map<String, String> refused = new LinkedHashMap<>();
        refused.put("selec 1", "42601");
        refused.put("select * from nowhere", "42P01");
        refused.put("select 1 / 0", "22012");
        refused.put("insert into d values (-1)", "23514");
        refused.put("select 'x'::integer", "22P02");
        for (var each : refused.entrySet()) {
            equal(code(() -> execute(connection, each.getKey())), each.getValue());
        }
    }

    private static void cancel(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            Timer timer = new Timer(true);
            timer.schedule(new TimerTask() {
                @Override
                public void run() {
                    try {
                        statement.cancel();
                    } catch (SQLException error) {
                        throw new IllegalStateException(error);
                    }
                }
            }, 300);
            equal(code(() -> statement.execute("select pg_sleep(30)")), "57014");
        }
    }

    private static void notify(Connection connection) throws Exception {
        execute(connection, "listen news");
        execute(connection, "notify news, 'now'");
        var told = connection.unwrap(PGConnection.class).getNotifications(5000);
        equal(List.of(told[0].getName(), told[0].getParameter()), List.of("news", "now"));
    }

    public static void main(String[] arguments) throws Exception {
        String place = "jdbc:postgresql://" + arguments[0] + ":" + arguments[1] + "/postgres?socketTimeout=40";
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("types", Pgjdbc::types);
        checks.put("batches", Pgjdbc::batches);
        checks.put("savepoints", Pgjdbc::savepoints);
        checks.put("copies", Pgjdbc::copies);
        checks.put("refusals", Pgjdbc::refusals);
        checks.put("cancel", Pgjdbc::cancel);
        checks.put("notify", Pgjdbc::notify);
        int failed = 0;
        for (var check : checks.entrySet()) {
            try (Connection connection = DriverManager.getConnection(place, "postgres", "")) {
                check.getValue().run(connection);
            } catch (Exception | AssertionError error) {
                failed++;
                System.out.println("-- pgjdbc: " + check.getKey());
                error.printStackTrace(System.out);
            }
        }
        System.out.println("pgjdbc: " + (checks.size() - failed) + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }
}
