//! `hotrow serve`: a database for PostgreSQL's clients.

use crate::arguments::Refusal;
use clap::Command;

#[cfg(feature = "serve")]
pub(crate) use with_server::{ServePlan, plan, run};

/// The subcommand's definition.
pub(crate) fn command() -> Command {
    #[cfg(feature = "serve")]
    return with_server::command();
    #[cfg(not(feature = "serve"))]
    crate::arguments::without_feature("serve", "Serves a database to PostgreSQL's clients", "serve")
}

/// The refusal of a build without the server.
#[cfg(not(feature = "serve"))]
pub(crate) fn missing() -> Refusal {
    Refusal::Message(
        "this build has no server, because its protocol and parser lengthen the build; use: \
         cargo run --release --features serve -- serve"
            .to_owned(),
    )
}

#[cfg(feature = "serve")]
mod with_server {
    use super::{Command, Refusal};
    use crate::arguments::{known_protocol, shortened};
    use crate::error::CommandError;
    use crate::text::print;
    use clap::{ArgMatches, Args, FromArgMatches as _};
    use hotrow::durable::Mode;
    use hotrow::sync::thread;
    use hotrow_server::{Server, ServerOptions, TlsFiles, password_verifier};
    use hotrow_sql::{Instance, InstanceOptions};
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use std::error::Error;
    use std::io::{BufRead as _, stdin};
    use std::net::SocketAddr;
    use std::path::PathBuf;
    use std::time::Duration;

    /// The interval at which `async` writes.
    const INTERVAL: Duration = Duration::from_millis(10);

    /// A server to be started.
    #[derive(Debug)]
    pub(crate) struct ServePlan(ServeArguments);

    #[derive(Debug, Args)]
    struct ServeArguments {
        /// The directory of the database; without one it is in memory, and gone when the server stops
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// The address to listen on. Beyond loopback it needs a certificate and passwords
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5432")]
        listen: SocketAddr,
        /// The directory for a socket besides, by which programs of this machine connect faster: `psql -h DIR`
        #[arg(long, value_name = "DIR")]
        socket: Option<PathBuf>,
        /// The protocol (`hotrow list`)
        #[arg(long, value_name = "P", default_value = "occ")]
        protocol: String,
        /// When a commit is acknowledged: "group", when it is on the device; "async", at once, and a crash may undo the last 10 ms
        #[arg(long, value_name = "MODE", default_value = "group", value_parser = ["group", "async"])]
        durability: String,
        /// The address of `GET /metrics`, for Prometheus
        #[arg(long, value_name = "ADDRESS:PORT")]
        metrics: Option<SocketAddr>,
        /// The certificate, in PEM form
        #[arg(long, value_name = "FILE", requires = "tls_key")]
        tls_certificate: Option<PathBuf>,
        /// Its private key, in PEM form
        #[arg(long, value_name = "FILE", requires = "tls_certificate")]
        tls_key: Option<PathBuf>,
        /// The users and their passwords' verifiers, a line each; then every client needs a password
        #[arg(long, value_name = "FILE")]
        passwords: Option<PathBuf>,
        /// The largest number of connections
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        connections: usize,
        /// Read a password from standard input, print this user's line for the file of passwords, and stop
        #[arg(long, value_name = "USER", exclusive = true)]
        password_of: Option<String>,
    }

    pub(super) fn command() -> Command {
        ServeArguments::augment_args(Command::new("serve"))
            .about("Serves a database to psql, pgbench and every PostgreSQL driver")
            .after_help(
                "Transactions are serializable, always. What is not supported says so (0A000).\n\n\
                 Example:\n  hotrow serve accounts --protocol plor &\n  psql -h 127.0.0.1",
            )
    }

    pub(crate) fn plan(matches: &ArgMatches) -> Result<ServePlan, Refusal> {
        let arguments = ServeArguments::from_arg_matches(matches).map_err(shortened)?;
        known_protocol(&arguments.protocol, &[])?;
        if matches.value_source("durability") == Some(clap::parser::ValueSource::CommandLine)
            && arguments.directory.is_none()
        {
            return Err(Refusal::Message("--durability needs a directory".to_owned()));
        }
        Ok(ServePlan(arguments))
    }

    pub(crate) fn run(ServePlan(arguments): ServePlan) -> Result<(), CommandError> {
        if let Some(user) = &arguments.password_of {
            return print_verifier(user);
        }
        let mode =
            if arguments.durability == "async" { Mode::Async { interval: INTERVAL } } else { Mode::Group };
        let place = arguments.directory.as_ref().map(|directory| directory.display().to_string());
        let options = InstanceOptions { directory: arguments.directory, protocol: arguments.protocol, mode };
        let instance =
            Instance::open(options).map_err(|error| CommandError::BadInput(error.message.to_string()))?;
        let protocol = instance.protocol().to_owned();
        let tls = arguments.tls_certificate.zip(arguments.tls_key);
        let options = ServerOptions {
            address: arguments.listen,
            directory: arguments.socket,
            metrics: arguments.metrics,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            passwords: arguments.passwords,
            connections_max: arguments.connections,
            ..ServerOptions::default()
        };
        let server =
            Server::bind(instance, options).map_err(|error| CommandError::BadInput(with_cause(&error)))?;
        let stopper = server.stopper();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        thread::spawn(move || {
            for _ in signals.forever() {
                stopper.stop();
            }
        });
        let place = place.unwrap_or_else(|| "a database in memory".to_owned());
        let socket = server.local_path().map(|path| format!(" and {}", path.display())).unwrap_or_default();
        print(&format!("serves {place} under {protocol} at {}{socket}\n", server.local_address()))?;
        server.serve().map_err(|error| CommandError::Verdict(with_cause(&error)))
    }

    /// The text of an error, and that of its cause.
    fn with_cause(error: &dyn Error) -> String {
        match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        }
    }

    fn print_verifier(user: &str) -> Result<(), CommandError> {
        let mut password = String::new();
        stdin().lock().read_line(&mut password)?;
        let password = password.trim_end_matches(['\n', '\r']);
        let verifier =
            password_verifier(password).map_err(|error| CommandError::BadInput(error.to_string()))?;
        Ok(print(&format!("{user}:{verifier}\n"))?)
    }
}
