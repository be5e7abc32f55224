//! Verifiers of passwords, as PostgreSQL stores them: they prove that a client knows a password without containing it.

use crate::base64;
use crate::error::ServerError;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;

/// The iterations of a new verifier, as in PostgreSQL.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();
/// The length of a new verifier's salt in bytes, as in PostgreSQL.
const SALT_BYTES: usize = 16;
/// The name that a verifier begins with.
const SCHEME: &str = "SCRAM-SHA-256$";

/// The length of a key in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// A key of SCRAM.
pub(crate) type Key = [u8; KEY_BYTES];

/// A verifier of one user's password (RFC 5802, section 3).
#[derive(Clone)]
pub(crate) struct Verifier {
    pub(crate) iterations: NonZeroU32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Key,
    pub(crate) server_key: Key,
}

impl Verifier {
    /// The verifier of a password.
    fn of_password(password: &str, salt: Vec<u8>, iterations: NonZeroU32) -> Self {
        let mut salted = Key::default();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password.as_bytes(), &mut salted);
        let stored_key = hash(&sign(&salted, b"Client Key"));
        Self { iterations, salt, stored_key, server_key: sign(&salted, b"Server Key") }
    }

    /// Reads a verifier.
    fn parse(text: &str) -> Result<Self, &'static str> {
        const LAYOUT: &str = "it is not user:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey";
        let rest = text.strip_prefix(SCHEME).ok_or(LAYOUT)?;
        let (numbers, keys) = rest.split_once('$').ok_or(LAYOUT)?;
        let (iterations, salt) = numbers.split_once(':').ok_or(LAYOUT)?;
        let (stored_key, server_key) = keys.split_once(':').ok_or(LAYOUT)?;
        let key = |text| {
            base64::decode(text)
                .and_then(|bytes| Key::try_from(bytes).ok())
                .ok_or("a key is not 32 bytes in base 64")
        };
        Ok(Self {
            iterations: iterations
                .parse()
                .map_err(|_| "the number of iterations is not a positive number")?,
            salt: base64::decode(salt).filter(|salt| !salt.is_empty()).ok_or("the salt is not in base 64")?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }
}

/// The HMAC of a text under a key.
pub(crate) fn sign(key: &[u8], text: &[u8]) -> Key {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    tag.as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes")
}

/// The hash of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Key {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The users of a server and the verifiers of their passwords.
pub(crate) struct Passwords {
    verifiers: HashMap<String, Verifier>,
    /// The key that the salts of unknown users are made with, so that nobody learns which users there are.
    mock_key: Key,
}

impl Passwords {
    /// Reads a file of verifiers.
    pub(crate) fn read(path: &Path) -> Result<Self, ServerError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ServerError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads a text of verifiers: one `user:verifier` a line; empty lines and those that begin with `#` say nothing.
    pub(crate) fn parse(text: &str) -> Result<Self, ServerError> {
        let mut verifiers = HashMap::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let flaw = |reason| ServerError::Passwords { line: index + 1, reason };
            // A user's name may have colons, a verifier begins with the scheme.
            let (user, verifier) = line
                .find(":SCRAM-SHA-256$")
                .map(|colon| (&line[..colon], &line[colon + 1..]))
                .filter(|(user, _)| !user.is_empty())
                .ok_or_else(|| flaw("it is not user:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey"))?;
            if verifiers.insert(user.to_owned(), Verifier::parse(verifier).map_err(flaw)?).is_some() {
                return Err(flaw("the user has a line already"));
            }
        }
        Ok(Self { verifiers, mock_key: random()? })
    }

    /// The verifier of a user; for an unknown one, a verifier that no password fits, always the same. True for a known
    /// user.
    pub(crate) fn verifier(&self, user: &str) -> (Verifier, bool) {
        match self.verifiers.get(user) {
            Some(verifier) => (verifier.clone(), true),
            None => {
                let mock = sign(&self.mock_key, user.as_bytes());
                let salt = mock[..SALT_BYTES].to_vec();
                (Verifier { iterations: ITERATIONS, salt, stored_key: mock, server_key: mock }, false)
            }
        }
    }
}

/// Random bytes.
pub(crate) fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], ServerError> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ServerError::System {
        what: "random bytes",
        source: std::io::ErrorKind::Other.into(),
    })?;
    Ok(bytes)
}

/// Makes a verifier of a password, `SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`, with a random salt. A line of the
/// file of passwords is the user, a colon, and the verifier.
///
/// # Errors
///
/// If the password is empty or not of ASCII: clients normalize other letters before they use them (RFC 4013), and
/// PostgreSQL can make such a verifier. If the system has no random bytes.
pub fn password_verifier(password: &str) -> Result<String, ServerError> {
    if password.is_empty() || !password.is_ascii() {
        return Err(ServerError::Option { option: "password", reason: "must be of ASCII and not empty" });
    }
    let salt = random::<SALT_BYTES>()?.to_vec();
    let verifier = Verifier::of_password(password, salt, ITERATIONS);
    Ok(format!(
        "{SCHEME}{}:{}${}:{}",
        verifier.iterations,
        base64::encode(&verifier.salt),
        base64::encode(&verifier.stored_key),
        base64::encode(&verifier.server_key)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_the_one_that_postgresql_makes() {
        // `create role u password 'pencil'` on PostgreSQL 15, then `rolpassword` in `pg_authid`.
        let text = include_str!("tests/postgresql_verifier.txt").trim();
        let stored = Verifier::parse(text).unwrap();
        let made = Verifier::of_password("pencil", stored.salt.clone(), stored.iterations);
        assert_eq!((made.stored_key, made.server_key), (stored.stored_key, stored.server_key));
        assert_ne!(
            Verifier::of_password("pencil2", stored.salt, stored.iterations).stored_key,
            made.stored_key
        );
    }

    #[test]
    fn a_file_of_verifiers_is_read_and_its_flaws_are_named_by_line() {
        let verifier = password_verifier("secret").unwrap();
        let passwords = Passwords::parse(&format!("# users\n\nann:{verifier}\na:b:{verifier}\n")).unwrap();
        assert!(passwords.verifier("ann").1 && passwords.verifier("a:b").1 && !passwords.verifier("bob").1);
        for (text, expected) in [
            (format!("\nann:{verifier}x"), 2),
            (format!("ann:{verifier}\nann:{verifier}"), 2),
            (format!(":{verifier}"), 1),
            ("ann:secret".to_owned(), 1),
            (format!("ann:{}", verifier.replace("4096", "0")), 1),
        ] {
            assert!(
                matches!(Passwords::parse(&text), Err(ServerError::Passwords { line, .. }) if line == expected)
            );
        }
    }

    #[test]
    fn an_unknown_user_has_the_same_salt_each_time_and_another_than_the_next() {
        let passwords = Passwords::parse("").unwrap();
        let salt = |user| passwords.verifier(user).0.salt;
        assert_eq!(salt("bob"), salt("bob"));
        assert_ne!(salt("bob"), salt("eve"));
        assert_ne!(salt("bob"), Passwords::parse("").unwrap().verifier("bob").0.salt);
    }
}
