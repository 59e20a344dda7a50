//! Whether a thread that waits for us has been sent a signal.
//!
//! The kernel tells by a request of its own (`FUSE_INTERRUPT`) that a program wants to be let go,
//! but fuser 0.18 does not hand it on. What it would tell can be looked at: the thread waits in the
//! kernel with the signal pending.

/// Whether a signal that is not blocked is pending for a thread. A thread that cannot be seen (in a
/// process namespace that is not ours it has the number 0) has none.
pub(super) fn is_interrupted(thread: u32) -> bool {
    if thread == 0 {
        return false;
    }
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
    status.is_ok_and(|status| has_pending(&status))
}

/// `SigPnd`, `ShdPnd` and `SigBlk` of proc_pid_status(5).
fn has_pending(status: &str) -> bool {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let [own, shared, blocked] =
        ["SigPnd:", "ShdPnd:", "SigBlk:"].map(|name| mask(name).unwrap_or(0));
    (own | shared) & !blocked != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_signals_count_unless_they_are_blocked() {
        let status = |own: &str, shared: &str, blocked: &str| {
            format!(
                "Name:\tsh\nSigQ:\t1/2\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\nSigIgn:\t0\n"
            )
        };
        let none = "0000000000000000";
        assert!(!has_pending(&status(none, none, none)));
        assert!(has_pending(&status(none, "0000000000002000", none)));
        assert!(has_pending(&status("0000000000000100", none, "0000000000000002")));
        assert!(!has_pending(&status(none, "0000000000002000", "0000000000002000")));
    }

    #[test]
    fn a_thread_that_is_not_there_has_none() {
        assert!(!is_interrupted(0));
        assert!(!is_interrupted(u32::MAX));
    }
}
