//! Asks a server what tokio-postgres, the driver of Rust, asks. Usage: tokio-client HOST PORT
//!
//! Each check states what PostgreSQL answers, so that it passes there, too.

use futures_util::{SinkExt as _, StreamExt as _};
use std::fmt::Debug;
use std::pin::pin;
use std::process::exit;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Error, IsolationLevel, NoTls, SimpleQueryMessage};

const TABLE: &str = "drop table if exists d; create table d (a integer primary key check (a >= 0), b text)";

type Checked = Result<(), Error>;

/// Connects. The connection's task hands notifications on.
async fn connect(place: &Config) -> Result<(Client, tokio::sync::mpsc::UnboundedReceiver<String>), Error> {
    let (client, mut connection) = place.connect(NoTls).await?;
    let (telling, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = pin!(futures_util::stream::poll_fn(move |cx| connection.poll_message(cx)));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(it) = message {
                let _ = telling.send(format!("{} {}", it.channel(), it.payload()));
            }
        }
    });
    Ok((client, told))
}

/// The code that something is refused with.
fn code<T: Debug>(result: Result<T, Error>) -> String {
    let error = result.expect_err("it is refused");
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

async fn types(client: &Client) -> Checked {
    let text = "select $1::boolean, $2::smallint, $3::integer, $4::bigint, $5::real, $6::float8, $7::text, $8::bytea, $9::bigint[], $10::varchar";
    let (short, long, list) = (-32_768_i16, i64::MIN, vec![1_i64, -2]);
    let row = client
        .query_one(
            text,
            &[
                &true,
                &short,
                &7_i32,
                &long,
                &0.5_f32,
                &0.1_f64,
                &"it's 'ä' €",
                &&[0_u8, 255][..],
                &list,
                &"x",
            ],
        )
        .await?;
    assert!(row.get::<_, bool>(0));
    assert_eq!((row.get::<_, i16>(1), row.get::<_, i32>(2), row.get::<_, i64>(3)), (short, 7, long));
    assert_eq!((row.get::<_, f32>(4), row.get::<_, f64>(5)), (0.5, 0.1));
    assert_eq!((row.get::<_, &str>(6), row.get::<_, &[u8]>(7)), ("it's 'ä' €", &[0_u8, 255][..]));
    assert_eq!((row.get::<_, Vec<i64>>(8), row.get::<_, &str>(9)), (list, "x"));
    let row = client.query_one("select null::integer, timestamptz '2024-02-29 12:00+00'::text", &[]).await?;
    assert_eq!((row.get::<_, Option<i32>>(0), row.get::<_, &str>(1)), (None, "2024-02-29 12:00:00+00"));
    let rows = client.simple_query("select 1.50::numeric(9,2) as n, null as nothing").await?;
    let Some(SimpleQueryMessage::Row(row)) = rows.iter().find(|it| matches!(it, SimpleQueryMessage::Row(_)))
    else {
        panic!("{rows:?}")
    };
    assert_eq!((row.get("n"), row.get("nothing")), (Some("1.50"), None));
    Ok(())
}

async fn prepared(client: &Client) -> Checked {
    client.batch_execute(TABLE).await?;
    let insert = client.prepare("insert into d values ($1, $2)").await?;
    assert_eq!(insert.params(), [Type::INT4, Type::TEXT]);
    for a in 0..20 {
        assert_eq!(client.execute(&insert, &[&a, &a.to_string()]).await?, 1);
    }
    let typed = client.prepare_typed("select a, b from d where a > $1 order by a", &[Type::INT8]).await?;
    assert_eq!(typed.columns().iter().map(|it| it.name().to_owned()).collect::<Vec<_>>(), ["a", "b"]);
    let rows = client.query(&typed, &[&16_i64]).await?;
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [17, 18, 19]);
    Ok(())
}

async fn pipeline(client: &Client) -> Checked {
    client.batch_execute(TABLE).await?;
    let insert = client.prepare("insert into d values ($1, 'x')").await?;
    // Futures that are polled together are sent together.
    let numbers: Vec<i32> = (0..50).collect();
    let insert = &insert;
    let all = numbers.iter().map(|a| client.execute_raw(insert, [a]));
    for inserted in futures_util::future::join_all(all).await {
        assert_eq!(inserted?, 1);
    }
    let (one, two) = futures_util::future::join(
        client.query_one("select count(*) from d", &[]),
        client.execute(insert, &[&3]),
    )
    .await;
    assert_eq!((one?.get::<_, i64>(0), code(two)), (50, "23505".to_owned()));
    Ok(())
}

async fn copies(client: &Client) -> Checked {
    client.batch_execute(TABLE).await?;
    let sink = client.copy_in::<_, &[u8]>("copy d from stdin").await?;
    let mut sink = pin!(sink);
    sink.send(b"1\tone\\\\\n2\t\\N\n").await?;
    assert_eq!(sink.finish().await?, 2);
    let sink = client.copy_in("copy d from stdin (format binary)").await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT]));
    for a in 3..1_003 {
        writer.as_mut().write(&[&a, &"row\t"]).await?;
    }
    assert_eq!(writer.finish().await?, 1_000);
    let out = client.copy_out("copy (select * from d where a < 4 order by a) to stdout").await?;
    let parts: Vec<_> = out.collect().await;
    let bytes: Vec<u8> = parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    assert_eq!(String::from_utf8_lossy(&bytes), "1\tone\\\\\n2\t\\N\n3\trow\\t\n");
    let sink = client.copy_in::<_, &[u8]>("copy d from stdin").await?;
    let mut sink = pin!(sink);
    sink.send(b"1\tagain\n").await?;
    assert_eq!(code(sink.finish().await), "23505");
    Ok(())
}

async fn refusals(client: &mut Client) -> Checked {
    client.batch_execute(TABLE).await?;
    let refused = [
        ("selec 1", "42601"),
        ("select * from nowhere", "42P01"),
        ("select 1 / 0", "22012"),
        ("insert into d values (-1)", "23514"),
        ("insert into d values (null)", "23502"),
    ];
    for (text, expected) in refused {
        assert_eq!(code(client.execute(text, &[]).await), expected, "{text}");
        assert_eq!(code(client.batch_execute(text).await), expected, "{text}");
    }
    let mut transaction =
        client.build_transaction().isolation_level(IsolationLevel::Serializable).start().await?;
    transaction.execute("insert into d values (1, 'one')", &[]).await?;
    let inner = transaction.savepoint("part").await?;
    assert_eq!(code(inner.execute("insert into d values (1, 'one')", &[]).await), "23505");
    inner.rollback().await?;
    assert_eq!(transaction.query_one("select count(*) from d", &[]).await?.get::<_, i64>(0), 1);
    let portal = transaction.bind("select a from generate_series(1, 5) a", &[]).await?;
    for expected in [vec![1, 2], vec![3, 4], vec![5]] {
        let rows = transaction.query_portal(&portal, 2).await?;
        assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), expected);
    }
    assert_eq!(code(transaction.execute("select 1 / 0", &[]).await), "22012");
    assert_eq!(code(transaction.execute("select 1", &[]).await), "25P02");
    transaction.rollback().await?;
    assert_eq!(client.query_one("select count(*) from d", &[]).await?.get::<_, i64>(0), 0);
    Ok(())
}

async fn cancel(client: &Client) -> Checked {
    let (token, begun) = (client.cancel_token(), Instant::now());
    tokio::spawn(async move {
        sleep(Duration::from_millis(300)).await;
        token.cancel_query(NoTls).await
    });
    assert_eq!(code(client.execute("select pg_sleep(30)", &[]).await), "57014");
    assert!(begun.elapsed() < Duration::from_secs(10));
    Ok(())
}

async fn notify(place: &Config) -> Checked {
    let (client, mut told) = connect(place).await?;
    client.batch_execute("listen news").await?;
    connect(place).await?.0.execute("select pg_notify('news', $1)", &[&"late"]).await?;
    let told = timeout(Duration::from_secs(5), told.recv()).await;
    assert_eq!(told.expect("it is told in time").as_deref(), Some("news late"));
    Ok(())
}

async fn ask(place: &Config) -> Checked {
    let (mut client, _told) = connect(place).await?;
    types(&client).await?;
    prepared(&client).await?;
    pipeline(&client).await?;
    copies(&client).await?;
    refusals(&mut client).await?;
    cancel(&client).await?;
    notify(place).await
}

fn main() {
    let mut words = std::env::args().skip(1);
    let (Some(host), Some(Ok(port))) = (words.next(), words.next().map(|port| port.parse())) else {
        eprintln!("usage: tokio-client HOST PORT");
        exit(2);
    };
    let mut place = Config::new();
    place.host(&host).port(port).user("postgres").dbname("postgres");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(async { timeout(Duration::from_secs(40), ask(&place)).await }) {
        Ok(Ok(())) => println!("tokio-postgres: passed"),
        Ok(Err(error)) => {
            println!("tokio-postgres: {error:?}");
            exit(1);
        }
        Err(_) => {
            println!("tokio-postgres: no answer within 40 s");
            exit(1);
        }
    }
}
