// Command pgx asks a server what pgx, the driver of Go, asks. Usage: pgx HOST PORT
//
// Each check states what PostgreSQL answers, so that it passes there, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const table = "drop table if exists d; create table d (a integer primary key check (a >= 0), b text, c bigint[])"

var (
	all   = context.Background()
	place string
)

// equal fails unless both are the same.
func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("expected %#v, found %#v", expected, found))
	}
}

// done fails if there is an error, and gives the value otherwise.
func done[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// code is the code that an action has been refused with.
func code(err error) string {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return fmt.Sprint(err)
}

func types(connection *pgx.Conn) {
	instant := time.Date(2024, 2, 29, 12, 34, 56, 789000, time.UTC)
	sent := []any{true, int16(-32768), int32(7), int64(-1 << 63), 0.1, "it's 'ä' €", []byte{0, 255}, instant, []int64{1, 2}}
	text := "select $1::boolean, $2::smallint, $3::integer, $4::bigint, $5::float8, $6::text, $7::bytea, $8::timestamptz, $9::bigint[]"
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		var (
			is             bool
			small          int16
			middle         int32
			large          int64
			float          float64
			words          string
			bytes          []byte
			when           time.Time
			list           []int64
			missing        *int
			number, identy string
		)
		row := connection.QueryRow(all, text, append([]any{mode}, sent...)...)
		done(0, row.Scan(&is, &small, &middle, &large, &float, &words, &bytes, &when, &list))
		equal([]any{is, small, middle, large, float, words, bytes, when.UTC(), list}, sent)
		row = connection.QueryRow(all, "select null::integer, 1.50::numeric::text, $1::uuid::text", mode, "6f2c1a7e-0000-4000-8000-0123456789ab")
		done(0, row.Scan(&missing, &number, &identy))
		equal([]any{missing, number, identy}, []any{(*int)(nil), "1.50", "6f2c1a7e-0000-4000-8000-0123456789ab"})
	}
}

func prepared(connection *pgx.Conn) {
	done(connection.Exec(all, table))
	statement := done(connection.Prepare(all, "insert", "insert into d values ($1, $2, $3)"))
	equal(statement.ParamOIDs, []uint32{23, 25, 1016})
	for number := range 20 {
		equal(done(connection.Exec(all, "insert", number, fmt.Sprint(number), []int64{int64(number)})).String(), "INSERT 0 1")
	}
	rows := done(connection.Query(all, "select a from d where a > $1 order by a", 16))
	equal(done(pgx.CollectRows(rows, pgx.RowTo[int])), []int{17, 18, 19})
	done(0, connection.Deallocate(all, "insert"))
}

func pipeline(connection *pgx.Conn) {
	done(connection.Exec(all, table))
	batch := &pgx.Batch{}
	for number := range 50 {
		batch.Queue("insert into d (a, b) values ($1, 'x')", number)
	}
	batch.Queue("select count(*) from d").QueryRow(func(row pgx.Row) error {
		var count int
		err := row.Scan(&count)
		equal(count, 50)
		return err
	})
	done(0, connection.SendBatch(all, batch).Close())
	broken := &pgx.Batch{}
	broken.Queue("insert into d values (100)")
	broken.Queue("insert into d values (1)")
	broken.Queue("insert into d values (101)")
	equal(code(connection.SendBatch(all, broken).Close()), "23505")
	var count int
	done(0, connection.QueryRow(all, "select count(*) from d").Scan(&count))
	equal(count, 50)
}

func copies(connection *pgx.Conn) {
	done(connection.Exec(all, table))
	source := pgx.CopyFromSlice(1000, func(number int) ([]any, error) {
		return []any{number, fmt.Sprintf("row\t%d", number), []int64{int64(number), 1}}, nil
	})
	equal(done(connection.CopyFrom(all, pgx.Identifier{"d"}, []string{"a", "b", "c"}, source)), int64(1000))
	var target strings.Builder
	done(connection.PgConn().CopyTo(all, &target, "copy (select * from d where a < 2 order by a) to stdout"))
	equal(target.String(), "0\trow\\t0\t{0,1}\n1\trow\\t1\t{1,1}\n")
	_, err := connection.CopyFrom(all, pgx.Identifier{"d"}, []string{"a"}, pgx.CopyFromRows([][]any{{5}}))
	equal(code(err), "23505")
}

func refusals(connection *pgx.Conn) {
	done(connection.Exec(all, table))
	refused := map[string]string{
		"selec 1": "42601", "select * from nowhere": "42P01", "select 1 / 0": "22012", "insert into d values (-1)": "23514",
		"insert into d values (null)": "23502", "select 2147483647 + 1": "22003",
	}
	for text, expected := range refused {
		_, err := connection.Exec(all, text)
		equal([]string{text, code(err)}, []string{text, expected})
	}
	transaction := done(connection.BeginTx(all, pgx.TxOptions{IsoLevel: pgx.Serializable}))
	_, err := transaction.Exec(all, "select 1 / $1::integer", 0)
	equal(code(err), "22012")
	_, err = transaction.Exec(all, "select 1")
	equal(code(err), "25P02")
	done(0, transaction.Rollback(all))
}

func cancel(_ *pgx.Conn) {
	connection := done(pgx.Connect(all, place))
	begun := time.Now()
	time.AfterFunc(300*time.Millisecond, func() { done(0, connection.PgConn().CancelRequest(all)) })
	_, err := connection.Exec(all, "select pg_sleep(30)")
	equal(code(err), "57014")
	equal(time.Since(begun) < 10*time.Second, true)
	done(0, connection.Close(all))
}

func notify(connection *pgx.Conn) {
	done(connection.Exec(all, "listen news"))
	other := done(pgx.Connect(all, place))
	done(other.Exec(all, "select pg_notify('news', $1)", "late"))
	done(0, other.Close(all))
	limited, stop := context.WithTimeout(all, 5*time.Second)
	defer stop()
	told := done(connection.WaitForNotification(limited))
	equal([]string{told.Channel, told.Payload}, []string{"news", "late"})
}

func main() {
	place = fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable", os.Args[1], os.Args[2])
	time.AfterFunc(40*time.Second, func() {
		fmt.Println("pgx of Go: no answer within 40 s")
		os.Exit(1)
	})
	connection := done(pgx.Connect(all, place))
	names := []string{"types", "prepared", "pipeline", "copies", "refusals", "cancel", "notify"}
	checks := []func(*pgx.Conn){types, prepared, pipeline, copies, refusals, cancel, notify}
	failed := 0
	for index, check := range checks {
		func() {
			defer func() {
				if reason := recover(); reason != nil {
					failed++
					fmt.Printf("-- pgx of Go: %s\n%v\n", names[index], reason)
				}
			}()
			check(connection)
		}()
	}
	fmt.Printf("pgx of Go: %d passed, %d failed\n", len(checks)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
