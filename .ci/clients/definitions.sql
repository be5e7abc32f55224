-- What `describe.psql` looks at. Both servers get the same definitions.
create table t (
    id serial primary key,
    name varchar(40) not null unique,
    kind char(3) default 'abc',
    price numeric(12, 2) default 0.00 check (price >= 0),
    amount bigint not null default 7,
    weight double precision,
    is_there boolean default true,
    since timestamp default current_timestamp,
    changed timestamptz default now(),
    day date,
    identity uuid,
    raw bytea,
    numbers integer[],
    note text default 'it''s',
    constraint t_amount_is_large check (amount > 0 and amount < 1000000)
);
create index t_price on t (price, name);
create unique index t_identity on t (identity);
create table u (a integer, b smallint, c real, primary key (a, b));
create table without_key (a integer, b text);
create table "Odd name" ("a b" integer primary key, "select" text);
create sequence numbers start with 5 increment by 3;
insert into t (name, price) values ('one', 1.50), ('two', 2);
