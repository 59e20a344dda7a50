//! How agents of several nodes know each other: both prove that they have the job's secret, and neither says it.
//!
//! ```text
//! called   32 bytes: a random number A
//! caller   32 bytes: a random number B, and 32 bytes: HMAC-SHA-256 of the secret over "caller" A B
//! called   32 bytes: HMAC-SHA-256 of the secret over "called" A B
//! ```
//!
//! What follows is neither encrypted nor authenticated piece by piece: whoever can change what travels between the
//! nodes can change data, and whoever can read it can read them.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ring::hmac;
use serde::{Deserialize, Serialize};

/// Bytes of a secret, of a random number, and of a proof.
const BYTES: usize = 32;
/// How long a greeting may take.
const WITHIN: Duration = Duration::from_secs(5);

/// What those who belong together know.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// One that nobody had before.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(crate) fn random() -> io::Result<Self> {
        Ok(Self(random()?.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn key(&self) -> io::Result<hmac::Key> {
        // An empty one would be known to everybody.
        if self.0.len() < 2 * BYTES {
            return Err(io::Error::other("the secret is too short"));
        }
        Ok(hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes()))
    }
}

fn random() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if got == BYTES { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn text(who: &str, called: &[u8], caller: &[u8]) -> Vec<u8> {
    [who.as_bytes(), called, caller].concat()
}

fn bounded(stream: &TcpStream, limit: Option<Duration>) -> io::Result<()> {
    stream.set_read_timeout(limit)?;
    stream.set_write_timeout(limit)
}

/// Lets in who knows the secret.
///
/// # Errors
/// `PermissionDenied` for everybody else; those of the socket.
pub(crate) fn receive(stream: &mut TcpStream, secret: &Secret) -> io::Result<()> {
    let key = secret.key()?;
    stream.set_nodelay(true)?;
    bounded(stream, Some(WITHIN))?;
    let called = random()?;
    stream.write_all(&called)?;
    let mut answer = [0; 2 * BYTES];
    stream.read_exact(&mut answer)?;
    let (caller, proof) = answer.split_at(BYTES);
    hmac::verify(&key, &text("caller", &called, caller), proof)
        .map_err(|_| io::Error::from(io::ErrorKind::PermissionDenied))?;
    stream.write_all(hmac::sign(&key, &text("called", &called, caller)).as_ref())?;
    bounded(stream, None)
}

/// Proves to be one who knows the secret, to one who does.
///
/// # Errors
/// `PermissionDenied` where the other one does not know it; those of the socket.
pub(crate) fn call(stream: &mut TcpStream, secret: &Secret) -> io::Result<()> {
    let key = secret.key()?;
    stream.set_nodelay(true)?;
    bounded(stream, Some(WITHIN))?;
    let mut called = [0; BYTES];
    stream.read_exact(&mut called)?;
    let caller = random()?;
    let proof = hmac::sign(&key, &text("caller", &called, &caller));
    stream.write_all(&[&caller, proof.as_ref()].concat())?;
    let mut answer = [0; BYTES];
    stream.read_exact(&mut answer)?;
    hmac::verify(&key, &text("called", &called, &caller), &answer)
        .map_err(|_| io::Error::from(io::ErrorKind::PermissionDenied))?;
    bounded(stream, None)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn greet(theirs: Secret, ours: Secret) -> (io::Result<()>, io::Result<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let called = std::thread::spawn(move || receive(&mut listener.accept()?.0, &theirs));
        let caller = TcpStream::connect(address).and_then(|mut stream| call(&mut stream, &ours));
        (called.join().unwrap(), caller)
    }

    #[test]
    fn only_who_knows_the_secret_is_let_in() {
        let secret = Secret::random().unwrap();
        let (called, caller) = greet(secret.clone(), secret.clone());
        assert!(called.is_ok() && caller.is_ok(), "{called:?} {caller:?}");
        let (called, caller) = greet(secret.clone(), Secret::random().unwrap());
        assert_eq!(called.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(caller.is_err());
        let (called, caller) = greet(secret, Secret::default());
        assert!(called.is_err() && caller.is_err());
    }

    #[test]
    fn who_only_sends_back_what_he_is_sent_is_not_believed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mirror = std::thread::spawn(move || -> io::Result<()> {
            let mut stream = listener.accept()?.0;
            stream.write_all(&[7; BYTES])?;
            let mut answer = [0; 2 * BYTES];
            stream.read_exact(&mut answer)?;
            stream.write_all(&answer[BYTES..])
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let refused = call(&mut stream, &Secret::random().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        mirror.join().unwrap().unwrap();
    }
}
