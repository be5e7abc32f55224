//! Connections to servers, by their addresses and the options.

use super::options::{EtcdIdentity, EtcdOptions, EtcdTls};
use hotrow_sync::clock::Duration;
use std::io;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// The time after which a server is asked if it is still there while a watch waits. etcd takes less than 5 seconds amiss.
const PROBE: Duration = Duration::from_secs(6);

/// A server, and the connection to it, which is made when it is needed.
pub(super) struct Server {
    pub(super) address: String,
    pub(super) channel: Channel,
}

/// Prepares the connections, on the runtime that this is called in.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] if there is no server, an address is none, or the certificates do not fit.
pub(super) fn servers(addresses: &[String], options: &EtcdOptions) -> io::Result<Vec<Server>> {
    if addresses.is_empty() {
        return Err(invalid("no address of an etcd server is given".to_owned()));
    }
    addresses.iter().map(|address| server(address, options)).collect()
}

fn server(address: &str, options: &EtcdOptions) -> io::Result<Server> {
    let endpoint = Endpoint::from_shared(address.to_owned());
    let endpoint =
        endpoint.map_err(|error| invalid(format!("{address} is no address: {}", chain(&error))))?;
    let endpoint = endpoint.connect_timeout(options.call_max).tcp_nodelay(true);
    let endpoint = endpoint.http2_keep_alive_interval(PROBE).keep_alive_timeout(options.call_max);
    let endpoint = match endpoint.uri().scheme_str() {
        Some("https") => {
            let wrong = |reason| invalid(format!("the certificates for {address}: {reason}"));
            let tls = certificates(&options.tls).map_err(wrong)?;
            endpoint.tls_config(tls).map_err(|error| wrong(chain(&error)))?
        }
        // Certificates that are not used would make a connection look safe.
        Some("http") if options.tls != EtcdTls::default() => {
            return Err(invalid(format!(
                "there are options of TLS, and {address} does not begin with https://"
            )));
        }
        Some("http") => endpoint,
        _ => return Err(invalid(format!("{address} begins neither with http:// nor with https://"))),
    };
    Ok(Server { address: address.to_owned(), channel: endpoint.connect_lazy() })
}

fn certificates(options: &EtcdTls) -> Result<ClientTlsConfig, String> {
    let mut tls = ClientTlsConfig::new();
    tls = match &options.authorities {
        Some(authorities) => {
            has_certificate(authorities)?;
            tls.ca_certificate(Certificate::from_pem(authorities))
        }
        None => tls.with_native_roots(),
    };
    if let Some(EtcdIdentity { certificate, key }) = &options.identity {
        has_certificate(certificate)?;
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    if let Some(name) = &options.server_name {
        tls = tls.domain_name(name);
    }
    Ok(tls)
}

fn has_certificate(pem: &[u8]) -> Result<(), String> {
    let begin = b"-----BEGIN CERTIFICATE-----";
    let found = pem.windows(begin.len()).any(|bytes| bytes == begin);
    if found { Ok(()) } else { Err("a text has no certificate as PEM".to_owned()) }
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// An error, and what has caused it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !texts.iter().any(|known| known.contains(&text)) {
            texts.push(text);
        }
        source = error.source();
    }
    texts.join(": ")
}
