//! What an object store says when it will not, as error numbers for programs and sentences for people.

use std::sync::Arc;

use p9::Errno;
use store::Error;

/// Is told in a sentence what a program only gets a number for.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// What the environment says does not make a client of that service.
    #[error(
        "{place}: the object store's settings do not fit together; look at its variables in the environment"
    )]
    Settings {
        /// The bucket's address.
        place: String,
        /// What is wrong.
        #[source]
        source: object_store::Error,
    },
    /// Name or prefix cannot be those of objects.
    #[error("{place}: {why}")]
    Name {
        /// The bucket's address.
        place: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A file of credentials cannot be read.
    #[error("cannot read {path}")]
    Profile {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A refusal by this store itself.
pub(crate) fn refusal(operation: &'static str, errno: Errno) -> Error {
    Error::System { operation, errno }
}

/// What went wrong between this store and the object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There is no such object.
    Missing,
    /// There is no such bucket.
    NoBucket,
    /// The object is not the one that was opened.
    Changed,
    /// Credentials that were good once are not any more.
    Expired,
    /// Not with these credentials.
    Denied,
    /// The service has no such operation, or this crate has none for it.
    Unsupported,
    /// The service kept saying that it is asked too much.
    Busy,
    /// It is not reached.
    Unreachable,
    /// Anything else.
    Failed,
}

impl Trouble {
    /// Tells what an error of the library means. Services say most of it in words only.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        use object_store::Error as E;
        let text = in_full(error);
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"]) {
            return Self::NoBucket;
        }
        if says(&["ExpiredToken", "TokenRefreshRequired", "RequestExpired", "token has expired"]) {
            return Self::Expired;
        }
        match error {
            E::NotFound { .. } => Self::Missing,
            E::Precondition { .. } | E::NotModified { .. } => Self::Changed,
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => Self::Denied,
            E::NotSupported { .. } | E::NotImplemented { .. } => Self::Unsupported,
            _ if says(&[
                "AccessDenied",
                "InvalidAccessKeyId",
                "SignatureDoesNotMatch",
                "403 Forbidden",
            ]) =>
            {
                Self::Denied
            }
            _ if says(&[
                "SlowDown",
                "503 Service",
                "429 Too",
                "Please reduce your request rate",
            ]) =>
            {
                Self::Busy
            }
            _ if says(&[
                "error trying to connect",
                "client error (Connect)",
                "dns error",
                "Connect error",
            ]) =>
            {
                Self::Unreachable
            }
            _ => Self::Failed,
        }
    }

    /// The number that a program gets.
    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::Missing | Self::NoBucket => Errno::ENOENT,
            Self::Changed => Errno::ESTALE,
            Self::Expired | Self::Denied => Errno::EACCES,
            Self::Unsupported => Errno::EOPNOTSUPP,
            Self::Busy | Self::Failed => Errno::EIO,
            Self::Unreachable => Errno::EHOSTUNREACH,
        }
    }

    /// What it means and what to do, for a person.
    fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "there is no such object",
            Self::NoBucket => {
                "there is no such bucket; check its name, and the endpoint and region that are in force"
            }
            Self::Changed => {
                "the object was replaced while it was open; what was read before is of the former one, so \
                 open it again"
            }
            Self::Expired => "the credentials have expired; renew them and start again",
            Self::Denied => {
                "the credentials do not allow this; check AWS_*, GOOGLE_* or AZURE_* in the environment (for \
                 public data: AWS_SKIP_SIGNATURE=true)"
            }
            Self::Unsupported => "the service has no such operation",
            Self::Busy => {
                "the service goes on saying that it is asked too much (503); it was asked again and again in vain"
            }
            Self::Unreachable => "the service is not reached; check the endpoint and the network",
            Self::Failed => "the service could not do it",
        }
    }

    /// Whether it says something that the number does not.
    fn is_worth_telling(self) -> bool {
        !matches!(self, Self::Missing)
    }
}

/// An error with all of its causes.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many repeat their cause already.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Says what is wrong and gives the number for it.
pub(crate) fn explain(
    tell: Option<&Tell>,
    place: &str,
    operation: &'static str,
    error: &object_store::Error,
) -> Error {
    let trouble = Trouble::of(error);
    if let Some(tell) = tell
        && trouble.is_worth_telling()
    {
        // The service's own words are for who has to look deeper, and may be a page.
        let words: String = in_full(error).split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = words.chars().take(300).collect();
        tell(&format!("{place}: {operation}: {}. ({short})", trouble.sentence()));
    }
    refusal(operation, trouble.errno())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn what_services_say_in_words_has_a_number() {
        for (error, errno) in [
            (generic("<Code>NoSuchBucket</Code>"), Errno::ENOENT),
            (generic("<Code>ExpiredToken</Code>"), Errno::EACCES),
            (generic("status code: 403 Forbidden"), Errno::EACCES),
            (generic("<Code>SlowDown</Code>"), Errno::EIO),
            (generic("error trying to connect: refused"), Errno::EHOSTUNREACH),
            (generic("anything"), Errno::EIO),
            (
                object_store::Error::Precondition { path: "k".into(), source: "412".into() },
                Errno::ESTALE,
            ),
            (
                object_store::Error::NotFound { path: "k".into(), source: "404".into() },
                Errno::ENOENT,
            ),
        ] {
            assert_eq!(Trouble::of(&error).errno(), errno, "{error}");
        }
    }

    #[test]
    fn a_sentence_names_place_operation_and_remedy() {
        let told = Arc::new(std::sync::Mutex::new(String::new()));
        let sink = Arc::clone(&told);
        let tell: Tell = Arc::new(move |text| text.clone_into(&mut sink.lock().unwrap()));
        explain(Some(&tell), "s3://b/k", "open", &generic("ExpiredToken"));
        let told = told.lock().unwrap();
        assert!(
            told.starts_with("s3://b/k: open: the credentials have expired; renew them"),
            "{told}"
        );
    }
}
