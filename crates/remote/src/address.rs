//! Addresses of clusters, as command lines have them.

use crate::cluster::Cluster;
use crate::etcd::{EtcdIdentity, EtcdOptions, EtcdStore, EtcdUser};
use crate::settings::Settings;
use hotrow_sync::Arc;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The environment variable that has the password of the user.
const PASSWORD: &str = "HOTROW_ETCD_PASSWORD";

/// The beginnings of addresses without TLS, and with it.
const SCHEMES: [(&str, bool); 2] = [("etcd://", false), ("etcds://", true)];

/// The least operations of a transaction: a change and its marker.
const OPERATIONS_MIN: usize = 2;

/// The address of a cluster in etcd: `etcd://HOST:PORT[,HOST:PORT...][/NAME][?OPTION=VALUE&...]`, or with `etcds://` under TLS.
///
/// The keys of the cluster begin with the name and a slash; without a name, with the default of [`Settings`]. The options, each at most once, with their
/// values as they stand:
///
/// | option | value | default |
/// |---|---|---|
/// | `max-txn-ops` | the operations that etcd takes at once, as its option of this name says: 2 or more | 128 |
/// | `user` | the user as whom to authenticate, whose password is in the environment variable `HOTROW_ETCD_PASSWORD` | none |
/// | `ca` | a file with certificates, as PEM, of which one must have signed the servers' | those that the system trusts |
/// | `certificate`, `key` | files with the certificate that the client shows, and with its key, as PEM: both or none | none |
/// | `server-name` | the name that the servers' certificates must have | the host in each server's address |
///
/// The last four are for `etcds://`.
///
/// ```no_run
/// let address: hotrow_remote::StoreAddress = "etcds://10.0.0.1:2379,10.0.0.2:2379/shop?ca=ca.pem&max-txn-ops=1024".parse()?;
/// let cluster = address.open()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAddress {
    is_under_tls: bool,
    /// Each as `HOST:PORT`.
    servers: Vec<String>,
    /// `None` for the default.
    name: Option<String>,
    options: AddressOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct AddressOptions {
    operations_max: Option<usize>,
    user: Option<String>,
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    server_name: Option<String>,
}

/// The fault of a text that is no address of a cluster, or the reason for which a cluster cannot be opened by its address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is no address.
    #[error("it is no address of a store: {0}")]
    Malformed(String),
    /// There is a user, and no password.
    #[error("the password of etcd's user {user} is not in {PASSWORD}")]
    NoPassword {
        /// The user.
        user: String,
    },
    /// A file of an option cannot be read.
    #[error("{option}={}: {error}", path.display())]
    File {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The certificates do not fit, or the system gives no thread.
    #[error("{0}")]
    Store(io::Error),
}

fn malformed<T>(reason: impl Into<String>) -> Result<T, AddressError> {
    Err(AddressError::Malformed(reason.into()))
}

impl std::str::FromStr for StoreAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let found = SCHEMES.iter().find_map(|(scheme, tls)| Some((text.strip_prefix(scheme)?, *tls)));
        let Some((rest, is_under_tls)) = found else {
            return malformed("it begins neither with etcd:// nor with etcds://");
        };
        let (place, options) = rest.split_once('?').map_or((rest, None), |(place, rest)| (place, Some(rest)));
        let (hosts, name) = place.split_once('/').unwrap_or((place, ""));
        // The text before it may be a password, and is not shown.
        if hosts.contains('@') {
            return malformed(format!(
                "a user is the option user=NAME, and the password is in {PASSWORD}; neither is before the host"
            ));
        }
        let servers = hosts.split(',').map(server).collect::<Result<_, _>>()?;
        let name = match name.trim_end_matches('/') {
            "" => None,
            name => Some(name.to_owned()),
        };
        let options = options.map_or(Ok(AddressOptions::default()), str::parse)?;
        options.check(is_under_tls)?;
        Ok(Self { is_under_tls, servers, name, options })
    }
}

/// Checks that a text is a host and a port.
fn server(text: &str) -> Result<String, AddressError> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_owned())
        }
        _ => malformed(format!("{text:?} is no HOST:PORT")),
    }
}

impl std::str::FromStr for AddressOptions {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut options = Self::default();
        for option in text.split('&') {
            // A value may be a secret, and is not shown.
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let is_known = Self::default().each().iter().any(|(known, _)| *known == name);
            if !is_known {
                return malformed(format!("there is no option {name}; the password is in {PASSWORD}"));
            }
            if value.is_empty() {
                return malformed(format!("the option {name} has no value: {name}=VALUE"));
            }
            let is_twice = options.each().into_iter().any(|(known, value)| known == name && value.is_some());
            if is_twice {
                return malformed(format!("the option {name} is there twice"));
            }
            options.set(name, value)?;
        }
        Ok(options)
    }
}

impl AddressOptions {
    /// The options by their names, with their values.
    fn each(&self) -> [(&'static str, Option<String>); 6] {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        [
            ("max-txn-ops", self.operations_max.map(|most| most.to_string())),
            ("user", self.user.clone()),
            ("ca", path(&self.authorities)),
            ("certificate", path(&self.certificate)),
            ("key", path(&self.key)),
            ("server-name", self.server_name.clone()),
        ]
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), AddressError> {
        match name {
            "max-txn-ops" => match value.parse() {
                Ok(most) if most >= OPERATIONS_MIN => self.operations_max = Some(most),
                _ => return malformed(format!("{name}={value}: expected a number from {OPERATIONS_MIN} on")),
            },
            "user" => self.user = Some(value.to_owned()),
            "ca" => self.authorities = Some(value.into()),
            "certificate" => self.certificate = Some(value.into()),
            "key" => self.key = Some(value.into()),
            _ => self.server_name = Some(value.to_owned()),
        }
        Ok(())
    }

    fn check(&self, is_under_tls: bool) -> Result<(), AddressError> {
        let of_tls = self.each().into_iter().skip(2).find(|(_, value)| value.is_some());
        match (of_tls, &self.certificate, &self.key) {
            (Some((name, _)), ..) if !is_under_tls => {
                malformed(format!("the option {name} is one of TLS: use etcds://"))
            }
            (_, Some(_), None) => malformed("there is a certificate, and no key: key=FILE"),
            (_, None, Some(_)) => malformed("there is a key, and no certificate: certificate=FILE"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, _) = SCHEMES[usize::from(self.is_under_tls)];
        write!(f, "{scheme}{}", self.servers.join(","))?;
        if let Some(name) = &self.name {
            write!(f, "/{name}")?;
        }
        let options = self.options.each().into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (at, (name, value)) in options.enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl StoreAddress {
    /// The cluster at this address. Connections are made when they are needed.
    ///
    /// # Errors
    ///
    /// [`AddressError`]: a password or a file is missing, or the certificates do not fit.
    pub fn open(&self) -> Result<Cluster, AddressError> {
        let options = self.etcd_options(|| std::env::var(PASSWORD).ok())?;
        let scheme = if self.is_under_tls { "https" } else { "http" };
        let servers = self.servers.iter().map(|server| format!("{scheme}://{server}"));
        let store = EtcdStore::with_options(servers, options).map_err(AddressError::Store)?;
        Ok(Cluster::with_settings(Arc::new(store), self.settings()))
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(name) = &self.name {
            settings.prefix = format!("{name}/").into_bytes();
        }
        settings
    }

    fn etcd_options(&self, password: impl Fn() -> Option<String>) -> Result<EtcdOptions, AddressError> {
        let AddressOptions { operations_max, user, authorities, certificate, key, server_name } =
            &self.options;
        let mut options = EtcdOptions::default();
        if let Some(most) = operations_max {
            options.operations_max = *most;
        }
        if let Some(user) = user {
            let no_password = || AddressError::NoPassword { user: user.clone() };
            options.user = Some(EtcdUser::new(user, password().ok_or_else(no_password)?));
        }
        options.tls.authorities = authorities.as_ref().map(|path| read("ca", path)).transpose()?;
        if let (Some(certificate), Some(key)) = (certificate, key) {
            let identity = EtcdIdentity::new(read("certificate", certificate)?, read("key", key)?);
            options.tls.identity = Some(identity);
        }
        options.tls.server_name.clone_from(server_name);
        Ok(options)
    }
}

fn read(option: &'static str, path: &PathBuf) -> Result<Vec<u8>, AddressError> {
    std::fs::read(path).map_err(|error| AddressError::File { option, path: path.clone(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::EtcdTls;

    fn address(text: &str) -> StoreAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn addresses_are_read_and_shown_as_they_were_written() {
        let whole = "etcds://a:2379,[::1]:80/shop/eu?max-txn-ops=1024&user=ada&ca=/x/ca.pem&certificate=c&key=k&server-name=db";
        for text in ["etcd://a:2379", "etcd://a:1,b:2/shop", "etcd://a:1?user=ada", whole] {
            assert_eq!(address(text).to_string(), text);
        }
        assert_eq!(address("etcd://a:1/").to_string(), "etcd://a:1");
        assert_eq!(address("etcd://a:1").settings().prefix, b"hotrow/");
        assert_eq!(address(whole).settings().prefix, b"shop/eu/");
        assert_eq!(address("etcd://a:1/shop/").settings().prefix, b"shop/");
    }

    #[test]
    fn options_of_an_address_are_those_of_its_store() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name).display().to_string();
        for name in ["ca", "certificate", "key"] {
            std::fs::write(file(name), name).unwrap();
        }
        let (ca, certificate, key) = (file("ca"), file("certificate"), file("key"));
        let text = format!("etcds://a:1?max-txn-ops=9&ca={ca}&certificate={certificate}&key={key}");
        let with = address(&format!("{text}&server-name=db&user=ada"));
        let tls = EtcdTls {
            authorities: Some(b"ca".to_vec()),
            identity: Some(EtcdIdentity::new("certificate", "key")),
            server_name: Some("db".to_owned()),
        };
        let user = Some(EtcdUser::new("ada", "secret"));
        let options = EtcdOptions { operations_max: 9, user, tls, ..EtcdOptions::default() };
        assert_eq!(with.etcd_options(|| Some("secret".to_owned())).unwrap(), options);
        let missing = with.etcd_options(|| None).unwrap_err().to_string();
        assert_eq!(missing, "the password of etcd's user ada is not in HOTROW_ETCD_PASSWORD");
        std::fs::remove_file(&key).unwrap();
        let unread = with.etcd_options(|| Some("secret".to_owned())).unwrap_err().to_string();
        assert!(unread.starts_with(&format!("key={key}: ")), "{unread}");
        // The file is no certificate.
        let unfit = address(&format!("etcds://a:1?ca={ca}")).open().unwrap_err().to_string();
        assert_eq!(unfit, "the certificates for https://a:1: a text has no certificate as PEM");
        assert!(address("etcd://a:1/shop").open().is_ok());
    }

    #[test]
    fn other_texts_are_refused_with_their_fault() {
        for (text, fault) in [
            ("", "it begins neither with etcd:// nor with etcds://"),
            ("redis://a:1", "it begins neither with etcd:// nor with etcds://"),
            ("etcd://", "\"\" is no HOST:PORT"),
            ("etcd://a", "\"a\" is no HOST:PORT"),
            ("etcd://a:0", "\"a:0\" is no HOST:PORT"),
            ("etcd://a:1,,b:2", "\"\" is no HOST:PORT"),
            ("etcd://:1/x", "\":1\" is no HOST:PORT"),
            ("etcd://a:1?", "there is no option ; the password is in HOTROW_ETCD_PASSWORD"),
            (
                "etcd://a:1?password=secret",
                "there is no option password; the password is in HOTROW_ETCD_PASSWORD",
            ),
            ("etcd://a:1?user", "the option user has no value: user=VALUE"),
            ("etcd://a:1?user=", "the option user has no value: user=VALUE"),
            ("etcd://a:1?user=a&user=b", "the option user is there twice"),
            ("etcd://a:1?max-txn-ops=1", "max-txn-ops=1: expected a number from 2 on"),
            ("etcd://a:1?max-txn-ops=many", "max-txn-ops=many: expected a number from 2 on"),
            ("etcd://a:1?ca=x", "the option ca is one of TLS: use etcds://"),
            ("etcd://a:1?server-name=x", "the option server-name is one of TLS: use etcds://"),
            ("etcds://a:1?certificate=x", "there is a certificate, and no key: key=FILE"),
            ("etcds://a:1?key=x", "there is a key, and no certificate: certificate=FILE"),
            (
                "etcd://ada:secret@a:1",
                "a user is the option user=NAME, and the password is in HOTROW_ETCD_PASSWORD; neither is before the host",
            ),
        ] {
            let error = text.parse::<StoreAddress>().unwrap_err().to_string();
            assert_eq!(error, format!("it is no address of a store: {fault}"), "{text}");
            assert!(!error.contains("secret"));
        }
    }
}
