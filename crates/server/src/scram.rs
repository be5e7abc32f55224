//! SCRAM-SHA-256 (RFC 5802 and RFC 7677), the server's side, without channel binding.
//!
//! The client proves that it knows a password, and the server that it knows the password's verifier; neither tells
//! the other. A user that the server does not know is asked like any other, and fails at the end.

use crate::base64;
use crate::passwords::{Key, Passwords, Verifier, hash, random, sign};
use crate::peers::equal_in_constant_time;
use hotrow_sql::SqlError;

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// The length of the server's part of the nonce, as in PostgreSQL.
const NONCE_BYTES: usize = 18;

/// An exchange between the client's first message and its last.
pub(crate) struct Exchange {
    verifier: Verifier,
    is_known: bool,
    user: String,
    /// The client's announcement of channel binding, that it repeats in its last message.
    header: String,
    client_first: String,
    server_first: String,
    nonce: String,
}

impl Exchange {
    /// Begins with the client's first message.
    pub(crate) fn begin(passwords: &Passwords, user: &str, message: &[u8]) -> Result<Self, SqlError> {
        let nonce = random::<NONCE_BYTES>().map_err(|error| SqlError::new("XX000", error.to_string()))?;
        Self::begin_with(passwords, user, message, &base64::encode(&nonce))
    }

    fn begin_with(
        passwords: &Passwords,
        user: &str,
        message: &[u8],
        server_nonce: &str,
    ) -> Result<Self, SqlError> {
        let message = text(message)?;
        let (binding, rest) = message.split_once(',').ok_or_else(malformed)?;
        match binding {
            "n" | "y" => {}
            _ if binding.starts_with("p=") => {
                return Err(SqlError::new(
                    "08P01",
                    "the client selected SCRAM-SHA-256 without channel binding, but its message has binding data",
                ));
            }
            _ => return Err(malformed()),
        }
        let (identity, client_first) = rest.split_once(',').ok_or_else(malformed)?;
        if !identity.is_empty() {
            return Err(SqlError::not_supported("an authorization identity"));
        }
        if client_first.starts_with("m=") {
            return Err(SqlError::not_supported("an extension of SCRAM"));
        }
        // The name in the message is ignored, as PostgreSQL does: the one at the connection's start counts.
        let mut attributes = client_first.split(',');
        attributes.next().filter(|name| name.starts_with("n=")).ok_or_else(malformed)?;
        let client_nonce =
            attributes.next().and_then(|nonce| nonce.strip_prefix("r=")).ok_or_else(malformed)?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|byte| matches!(byte, 0x21..=0x7e)) {
            return Err(malformed());
        }
        let (verifier, is_known) = passwords.verifier(user);
        let nonce = format!("{client_nonce}{server_nonce}");
        let server_first =
            format!("r={nonce},s={},i={}", base64::encode(&verifier.salt), verifier.iterations);
        Ok(Self {
            verifier,
            is_known,
            user: user.to_owned(),
            header: format!("{binding},{identity},"),
            client_first: client_first.to_owned(),
            server_first,
            nonce,
        })
    }

    /// The server's first message.
    pub(crate) fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Ends with the client's last message; gives the server's last.
    pub(crate) fn finish(self, message: &[u8]) -> Result<String, SqlError> {
        let message = text(message)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(malformed)?;
        let mut attributes = without_proof.split(',');
        let header = attributes.next().and_then(|header| header.strip_prefix("c=")).ok_or_else(malformed)?;
        if header != base64::encode(self.header.as_bytes()) {
            return Err(SqlError::new(
                "08P01",
                "unexpected SCRAM channel-binding attribute in client-final-message",
            ));
        }
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r=")).ok_or_else(malformed)?;
        if nonce != self.nonce {
            return Err(SqlError::new("08P01", "invalid SCRAM response"));
        }
        let proof =
            base64::decode(proof).and_then(|proof| Key::try_from(proof).ok()).ok_or_else(malformed)?;
        let exchange = format!("{},{},{without_proof}", self.client_first, self.server_first);
        let signature = sign(&self.verifier.stored_key, exchange.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(key, signature)| *key ^= signature);
        let is_proved = equal_in_constant_time(&hash(&client_key), &self.verifier.stored_key);
        if !(is_proved & self.is_known) {
            return Err(SqlError::new(
                "28P01",
                format!("password authentication failed for user \"{}\"", self.user),
            ));
        }
        Ok(format!("v={}", base64::encode(&sign(&self.verifier.server_key, exchange.as_bytes()))))
    }
}

fn text(message: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(message).map_err(|_| malformed())
}

fn malformed() -> SqlError {
    SqlError::new("08P01", "malformed SCRAM message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passwords::password_verifier;

    // RFC 7677, section 3: user "user", password "pencil".
    const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn begin(user: &str) -> Exchange {
        let line = "user:SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==\
                    $WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        Exchange::begin_with(&Passwords::parse(line).unwrap(), user, CLIENT_FIRST, SERVER_NONCE).unwrap()
    }

    fn code(result: Result<String, SqlError>) -> &'static str {
        result.unwrap_err().code
    }

    #[test]
    fn the_example_of_the_rfc_runs() {
        let exchange = begin("user");
        assert_eq!(
            exchange.server_first(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        assert_eq!(
            exchange.finish(CLIENT_FINAL.as_bytes()).unwrap(),
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn a_wrong_proof_nonce_header_or_user_fails() {
        assert_eq!(code(begin("user").finish(CLIENT_FINAL.replace("p=d", "p=e").as_bytes())), "28P01");
        assert_eq!(code(begin("user").finish(CLIENT_FINAL.replace("$k0", "$k1").as_bytes())), "08P01");
        assert_eq!(code(begin("user").finish(CLIENT_FINAL.replace("biws", "eSws").as_bytes())), "08P01");
        assert_eq!(code(begin("other").finish(CLIENT_FINAL.as_bytes())), "28P01");
    }

    #[test]
    fn malformed_messages_are_refused() {
        let passwords = Passwords::parse(&format!("u:{}", password_verifier("p").unwrap())).unwrap();
        for message in [
            "",
            "n",
            "n,",
            "n,,",
            "n,,n=",
            "n,,r=a",
            "n,,n=,r=",
            "n,,n=,r= ",
            "x,,n=,r=a",
            "n,a=b,n=,r=a",
            "p=tls,,n=,r=a",
            "n,,m=1,n=,r=a",
        ] {
            assert!(Exchange::begin(&passwords, "u", message.as_bytes()).is_err(), "{message}");
        }
        assert!(Exchange::begin(&passwords, "u", b"\xff").is_err());
        for message in ["", "c=biws", "c=biws,p=", "p=", ",p=", "c=biws,r=a,p=YQ=="] {
            assert_eq!(code(begin("user").finish(message.as_bytes())), "08P01", "{message}");
        }
    }
}
