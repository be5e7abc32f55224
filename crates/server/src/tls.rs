//! The certificate behind TLS.

use crate::error::ServerError;
use crate::options::TlsFiles;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

/// Reads a certificate and its key.
pub(crate) fn configuration(files: &TlsFiles) -> Result<Arc<ServerConfig>, ServerError> {
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| flaw(&files.certificate, error))?;
    if certificates.is_empty() {
        return Err(flaw(&files.certificate, "there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| flaw(&files.key, error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map(Arc::new)
        .map_err(|error| flaw(&files.certificate, error))
}

/// The error of a file that cannot be used.
fn flaw(path: &Path, reason: impl std::fmt::Display) -> ServerError {
    ServerError::Certificate { path: path.to_owned(), reason: reason.to_string() }
}
