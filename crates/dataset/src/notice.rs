//! What happens to a dataset without anybody having asked for it.

use std::fmt;
use std::sync::Arc;

/// Something that the people who look after a dataset should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A replica is not used any more.
    Stale {
        /// The replica.
        replica: String,
        /// Why.
        reason: String,
    },
    /// The file of a replica has lost its name, and cannot be done without.
    Orphaned {
        /// The replica.
        replica: String,
        /// What has become of it.
        reason: String,
    },
    /// A replica was made.
    Made {
        /// The replica.
        replica: String,
        /// Those that its data is from; none: it is all zeros.
        from: Vec<String>,
    },
    /// Replicas could differ after a crash, and were made equal.
    Recovered {
        /// How much of them was compared, in bytes of views.
        bytes: u64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { replica, reason } => write!(
                f,
                "replica `{replica}` is stale and no longer used: {reason}; make it anew by `sluice layout rebuild`"
            ),
            Self::Orphaned { replica, reason } => write!(
                f,
                "replica `{replica}` alone holds something, and its file is lost as soon as it is no longer open: \
                 {reason}; save it by `sluice layout rebuild` now"
            ),
            Self::Made { replica, from } if from.is_empty() => {
                write!(f, "replica `{replica}` was created, all zeros")
            }
            Self::Made { replica, from } => {
                write!(f, "replica `{replica}` was made from {}", from.join(", "))
            }
            Self::Recovered { bytes } => {
                write!(f, "after a crash, {bytes} bytes of views were made equal in all replicas")
            }
        }
    }
}

/// Who is told.
pub type Tell = Arc<dyn Fn(&Notice) + Send + Sync>;
