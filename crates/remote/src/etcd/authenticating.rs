//! Tokens, which etcd gives for a user's name and password, and forgets after a while.

use super::failing::CallError;
use super::messages::{AuthenticateRequest, AuthenticateResponse};
use super::options::EtcdUser;
use std::future::Future;
use tokio::sync::Mutex;
use tonic::metadata::AsciiMetadataValue;

/// The call that gives tokens.
pub(super) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// The proof of who calls; `None` if etcd asks nobody.
pub(super) type Token = Option<AsciiMetadataValue>;

/// A user, and its newest token.
pub(super) struct Login {
    user: EtcdUser,
    // Held while a call is made, so that one is enough for all that wait.
    token: Mutex<Option<Token>>,
}

impl Login {
    pub(super) fn new(user: EtcdUser) -> Self {
        Self { user, token: Mutex::new(None) }
    }

    /// A token other than the one that has failed, for which `ask` calls etcd.
    ///
    /// # Errors
    ///
    /// The error of the call that was to be made with it.
    pub(super) async fn token<F: Future<Output = Result<AuthenticateResponse, CallError>>>(
        &self,
        failed: Option<&Token>,
        ask: impl FnOnce(AuthenticateRequest) -> F,
    ) -> Result<Token, CallError> {
        let mut known = self.token.lock().await;
        if let Some(token) = known.as_ref().filter(|token| Some(*token) != failed) {
            return Ok(token.clone());
        }
        let EtcdUser { name, password } = self.user.clone();
        let token = match ask(AuthenticateRequest { name, password }).await {
            Ok(answer) => Some(answer.token.parse().map_err(|_| CallError::no_token())?),
            Err(error) if error.is_open() => None,
            Err(error) => return Err(error.before_call()),
        };
        *known = Some(token.clone());
        Ok(token)
    }
}
