//! Servers of a test's own.

use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory of a test's own, which is deleted in the end.
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hotrow-etcd-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An etcd server alone, which is killed in the end.
pub(super) struct Server {
    program: String,
    options: Vec<String>,
    process: Child,
    port: u16,
    _place: Place,
}

impl Server {
    /// Starts a server with more options; `None`, said aloud, if no program is known.
    pub(super) fn start(scheme: &str, options: &[&str]) -> Option<Self> {
        let Ok(program) = std::env::var("HOTROW_ETCD_PROGRAM") else {
            eprintln!("skipped: HOTROW_ETCD_PROGRAM does not say where the program etcd is; .ci/etcd does");
            return None;
        };
        let place = Place::new();
        let (port, peers) = (free_port(), free_port());
        let client = format!("{scheme}://127.0.0.1:{port}");
        let peer = format!("http://127.0.0.1:{peers}");
        let data = place.file("data");
        let cluster = format!("n={peer}");
        let own = [
            ["--name", "n"],
            ["--data-dir", &data],
            ["--log-level", "error"],
            ["--listen-client-urls", &client],
            ["--advertise-client-urls", &client],
            ["--listen-peer-urls", &peer],
            ["--initial-advertise-peer-urls", &peer],
            ["--initial-cluster", &cluster],
        ];
        let options: Vec<String> =
            own.as_flattened().iter().chain(options).map(|option| (*option).to_owned()).collect();
        let process = run(&program, &options);
        Some(Self { program, options, process, port, _place: place })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Stops it for now. It is killed all the same in the end.
    pub(super) fn pause(&self) {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
    }

    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it with its data after it was killed.
    pub(super) fn start_again(&mut self) {
        self.process = run(&self.program, &self.options);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(program: &str, options: &[String]) -> Child {
    Command::new(program).args(options).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
