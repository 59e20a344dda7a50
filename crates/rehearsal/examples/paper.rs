//! Table 1 of the paper, and how matching grows, without building all of Sluice:
//!
//! ```console
//! $ cargo run --release -p rehearsal --example paper [table1|growth]
//! ```
//!
//! `sluice couple simulate` shows more.

use rehearsal::{Machine, ScenarioError, experiment};

/// About so many requests of one matcher; 16,832 is the most of Table 1.
const REQUESTS: [u64; 6] = [1 << 10, 1 << 12, 16_832, 1 << 16, 100_000, 1 << 18];

fn main() -> Result<(), ScenarioError> {
    let only = std::env::args().nth(1);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("table1") {
        table1()?;
    }
    if wanted("growth") {
        growth()?;
    }
    Ok(())
}

fn table1() -> Result<(), ScenarioError> {
    println!("distribution  requests, mean and max  matching here  simulated transfer");
    for row in experiment::table1(&Machine::K)? {
        let outcome = &row.outcome;
        println!(
            "{:<12}  {:>10.0}  {:>10}  {:>10.1} ms  {:>15.0} ms",
            row.distribution.to_string(),
            outcome.requests_mean(),
            outcome.requests_max(),
            outcome.matched_max_s() * 1e3,
            outcome.written_s * 1e3,
        );
    }
    Ok(())
}

fn growth() -> Result<(), ScenarioError> {
    println!("requests     pairs    compared  matching here  ns / (n log2 n)");
    for requests in REQUESTS {
        let growth = experiment::growth(requests, &Machine::K)?;
        println!(
            "{:>8}  {:>8}  {:>10}  {:>10.2} ms  {:>15.1}",
            growth.requests,
            growth.pairs,
            growth.compared,
            growth.matched_s * 1e3,
            growth.ns_per_n_log_n(),
        );
    }
    Ok(())
}
