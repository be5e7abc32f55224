//! Certificates, users and passwords.

use super::super::messages::AuthenticateRequest;
use super::servers::{Place, Server};
use super::soon;
use crate::etcd::{EtcdIdentity, EtcdOptions, EtcdStore, EtcdUser};
use crate::{At, Cluster, ClusterError, Freshness, Settings, Store, StoreError};
use hotrow_sync::clock::{Duration, now};
use hotrow_sync::{Arc, thread};
use std::process::Command;

/// Runs `openssl` in a place.
fn openssl(place: &Place, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(place.path())
        .output()
        .expect("the program openssl makes the certificates of this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes an authority, and the certificate of a server, or of a client, that it has signed.
fn certificates(place: &Place, authority: &str, names: &[&str]) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(
        place,
        &format!(
            "req -x509 {key} -keyout {authority}.key -out {authority}.pem -days 2 -subj /CN={authority}"
        ),
    );
    for name in names {
        let extensions =
            "subjectAltName=DNS:etcd.test,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n";
        std::fs::write(place.file("extensions"), extensions).unwrap();
        openssl(place, &format!("req -new {key} -keyout {name}.key -out {name}.request -subj /CN={name}"));
        let signed = format!("-CA {authority}.pem -CAkey {authority}.key -CAcreateserial -days 2");
        openssl(place, &format!("x509 -req -in {name}.request {signed} -out {name}.pem -extfile extensions"));
    }
}

/// The error of a client that is not let in, and comes soon.
fn denied(address: &str, options: EtcdOptions) -> String {
    let store = Arc::new(EtcdStore::with_options([address], options).unwrap());
    let began = now();
    let error = Cluster::over(store).table::<u8, u8>("t").create_or_open().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5), "{error} after {:?}", began.elapsed());
    assert!(!error.is_retryable());
    match error {
        ClusterError::Store(StoreError::Denied { reason }) => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn a_client_under_tls_shows_its_certificate_and_wants_the_servers() {
    let place = Place::new();
    certificates(&place, "authority", &["server", "client"]);
    certificates(&place, "stranger", &["impostor"]);
    let file = |name: &str| place.file(name);
    let (certificate, key, authority) = (file("server.pem"), file("server.key"), file("authority.pem"));
    let options = ["--cert-file", &certificate, "--key-file", &key, "--trusted-ca-file", &authority];
    let Some(server) = Server::start("https", &[&options[..], &["--client-cert-auth"]].concat()) else {
        return;
    };
    let (number, name) =
        (format!("https://127.0.0.1:{}", server.port()), format!("https://localhost:{}", server.port()));
    let read = |name: &str| std::fs::read(file(name)).unwrap();
    let identity = |name: &str| EtcdIdentity::new(read(&format!("{name}.pem")), read(&format!("{name}.key")));
    let mut right = EtcdOptions::default();
    right.tls.authorities = Some(read("authority.pem"));
    right.tls.identity = Some(identity("client"));
    right.tls.server_name = Some("etcd.test".to_owned());
    let changed = |change: &dyn Fn(&mut EtcdOptions)| {
        let mut options = right.clone();
        change(&mut options);
        options
    };
    let works = |address: &str, options: &EtcdOptions| {
        let cluster = Cluster::over(Arc::new(EtcdStore::with_options([address], options.clone()).unwrap()));
        let table = cluster.table::<u8, u8>("t").create_or_open().unwrap();
        cluster.transact(|tx| tx.upsert(&table, 1, 1)).unwrap();
        assert_eq!(cluster.snapshot(Freshness::Newest, |tx| tx.get(&table, &1)).unwrap(), Some(1));
    };
    works(&number, &right);
    works(&name, &changed(&|options| options.tls.server_name = None));
    let reason = denied(&number, changed(&|options| options.tls.server_name = None));
    assert!(reason.contains("not valid for name"), "{reason}");
    let reason = denied(&number, changed(&|options| options.tls.authorities = Some(read("stranger.pem"))));
    assert!(reason.contains("UnknownIssuer") && reason.contains(&number), "{reason}");
    let reason = denied(&number, changed(&|options| options.tls.authorities = None));
    assert!(reason.contains("UnknownIssuer"), "{reason}");
    let reason = denied(&number, changed(&|options| options.tls.identity = None));
    assert!(reason.contains("alert"), "{reason}");
    let reason = denied(&number, changed(&|options| options.tls.identity = Some(identity("impostor"))));
    assert!(reason.contains("alert"), "{reason}");
    assert!(!format!("{right:?}").contains("BEGIN"), "keys are not shown");
}

#[test]
fn options_that_cannot_work_are_errors_at_once() {
    let wrong = |address: &str, change: &dyn Fn(&mut EtcdOptions)| {
        let mut options = EtcdOptions::default();
        change(&mut options);
        EtcdStore::with_options([address], options).unwrap_err().to_string()
    };
    let junk = b"no certificate".to_vec();
    let reason = wrong("https://localhost:1", &|options| options.tls.authorities = Some(junk.clone()));
    assert!(reason.contains("no certificate as PEM"), "{reason}");
    let identity = EtcdIdentity::new(junk.clone(), junk.clone());
    let reason = wrong("https://localhost:1", &|options| options.tls.identity = Some(identity.clone()));
    assert!(reason.contains("no certificate as PEM"), "{reason}");
    let place = Place::new();
    certificates(&place, "authority", &[]);
    let certificate = std::fs::read(place.file("authority.pem")).unwrap();
    let identity = EtcdIdentity::new(certificate.clone(), junk.clone());
    let reason = wrong("https://localhost:1", &|options| options.tls.identity = Some(identity.clone()));
    assert!(reason.contains("private key"), "{reason}");
    let reason = wrong("http://localhost:1", &|options| options.tls.authorities = Some(certificate.clone()));
    assert!(reason.contains("does not begin with https://"), "{reason}");
    let reason = wrong("localhost:1", &|_| {});
    assert!(reason.contains("begins neither with http:// nor with https://"), "{reason}");
}

#[derive(Clone, PartialEq, prost::Message)]
struct UserRole {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    role: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Role {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    permission: Option<Permission>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Permission {
    /// 0 to read, 1 to write, 2 to do both.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

/// Calls a function of etcd for administrators.
fn administer(store: &EtcdStore, path: &'static str, message: impl prost::Message + Clone + 'static) {
    let _: Nothing = store.inner.client.call(path, message, soon()).unwrap();
}

/// Makes the user `root`, and `shop`, who may use keys under `hotrow`; and asks for passwords from now on.
fn enable_users(store: &EtcdStore) {
    // The server may not be ready yet.
    super::fresh(store, "users");
    for (name, password) in [("root", "secret"), ("shop", "open sesame")] {
        let user = AuthenticateRequest { name: name.to_owned(), password: password.to_owned() };
        administer(store, "/etcdserverpb.Auth/UserAdd", user);
        let role = Role { name: name.to_owned(), permission: None };
        administer(store, "/etcdserverpb.Auth/RoleAdd", role);
        let grant = UserRole { user: name.to_owned(), role: name.to_owned() };
        administer(store, "/etcdserverpb.Auth/UserGrantRole", grant);
    }
    let (key, range_end) = (b"hotrow".to_vec(), b"hotrox".to_vec());
    let permission = Some(Permission { kind: 2, key, range_end });
    let role = Role { name: "shop".to_owned(), permission };
    administer(store, "/etcdserverpb.Auth/RoleGrantPermission", role);
    administer(store, "/etcdserverpb.Auth/AuthEnable", Nothing {});
}

#[test]
fn users_authenticate_and_tokens_that_are_forgotten_are_renewed() {
    let Some(mut server) = Server::start("http", &["--auth-token-ttl", "2"]) else { return };
    let address = format!("http://127.0.0.1:{}", server.port());
    let open = |user: Option<(&str, &str)>| {
        let user = user.map(|(name, password)| EtcdUser::new(name, password));
        EtcdStore::with_options([&*address], EtcdOptions { user, ..EtcdOptions::default() }).unwrap()
    };
    let early = open(Some(("shop", "open sesame")));
    // Nobody is asked to authenticate yet.
    super::fresh(&early, "early");
    enable_users(&open(None));

    let cluster = Cluster::over(Arc::new(early));
    let table = cluster.table::<u8, u64>("t").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, 0)).unwrap();
    let count = || {
        cluster.transact(|tx| tx.update(&table, &1, |count| *count += 1)).unwrap();
        cluster.snapshot(Freshness::Newest, |tx| tx.get(&table, &1)).unwrap().unwrap()
    };
    assert_eq!(count(), 1);
    // etcd forgets a token that is not used.
    thread::sleep(Duration::from_secs(5));
    assert_eq!(count(), 2);
    let seen = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            cluster.transact(|tx| match tx.get(&table, &1)? {
                Some(7) => Ok(()),
                _ => tx.retry(),
            })
        });
        // A watch begins with an old token.
        thread::sleep(Duration::from_secs(5));
        cluster.transact(|tx| tx.update(&table, &1, |count| *count = 7)).unwrap();
        waiting.join().unwrap()
    });
    seen.unwrap();
    server.kill();
    server.start_again();
    assert_eq!(count(), 8, "a server that was started again has no token");

    let options = |name: &str, password: &str| EtcdOptions {
        user: Some(EtcdUser::new(name, password)),
        ..EtcdOptions::default()
    };
    let reason = denied(&address, options("shop", "wrong"));
    assert!(reason.contains("invalid user ID or password") && reason.contains(&address), "{reason}");
    assert!(denied(&address, options("nobody", "secret")).contains("invalid user ID or password"));
    assert!(denied(&address, EtcdOptions::default()).contains("user name is empty"));
    let other = Settings { prefix: b"others/".to_vec(), ..Settings::default() };
    let elsewhere = Cluster::with_settings(Arc::new(open(Some(("shop", "open sesame")))), other);
    let error = elsewhere.table::<u8, u8>("t").create_or_open().unwrap_err();
    assert!(matches!(&error, ClusterError::Store(StoreError::Denied { .. })), "{error}");
    let store = open(Some(("shop", "open sesame")));
    let watched = store.watch(&[b"others".to_vec()], &[], 1, soon());
    assert!(matches!(watched, Err(StoreError::Denied { .. })), "{watched:?}");
    let read = store.get_many(&[b"hotrow".to_vec()], At::Newest, soon());
    assert!(read.is_ok(), "{read:?}");
    let shown = format!("{:?}", options("shop", "open sesame"));
    assert!(shown.contains("shop") && !shown.contains("sesame"), "{shown}");
}
