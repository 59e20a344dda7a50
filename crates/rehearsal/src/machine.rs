//! What a simulated machine is like.

/// Costs of a machine, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// From one rank to another, for the first byte.
    pub latency_ns: f64,
    /// For each byte that a rank sends or receives.
    pub byte_ns: f64,
    /// For each message, at either end.
    pub message_ns: f64,
    /// For each byte that is packed or unpacked.
    pub copy_byte_ns: f64,
    /// For each run of elements that is packed or unpacked.
    pub run_ns: f64,
    /// For each box that a matcher compares.
    pub compare_ns: f64,
    /// For each request that a matcher gets.
    pub request_ns: f64,
    /// For each pair that it finds.
    pub pair_ns: f64,
}

impl Machine {
    /// In the manner of the K computer: links of 5 GB/s each way; all else is a guess of the right order.
    ///
    /// # Source
    /// Martsinkevich et al. 2018, §4.
    pub const K: Self = Self {
        latency_ns: 3_000.0,
        byte_ns: 0.2,
        message_ns: 1_000.0,
        copy_byte_ns: 0.55,
        run_ns: 20.0,
        compare_ns: 40.0,
        request_ns: 500.0,
        pair_ns: 1_000.0,
    };
}
