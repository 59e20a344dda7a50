//! A plan, explained: what would be done for a pattern, and what each way would cost.

use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;
use sieve::{Access, Adaptive, FileView, Group, Method, Profile, Request, Warmth};

use crate::bench::Clock;
use crate::error::Result;
use crate::price::{self, Price};
use crate::way::Way;

/// What to explain.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The place's parameters.
    pub profile: &'a Profile,
    /// The view.
    pub view: &'a FileView,
    /// The access.
    pub request: &'a Request,
    /// Whose groups are shown.
    pub way: Way,
    /// How many groups are shown.
    pub groups_max: usize,
}

/// The answer, for people and as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The pattern.
    pub view: Shape,
    /// `read` or `write`.
    pub access: &'static str,
    /// `warm` or `cold`.
    pub warmth: &'static str,
    /// The first wanted byte, in the data of the view.
    pub offset: u64,
    /// Wanted bytes.
    pub length: u64,
    /// Size of the sieving buffer in bytes.
    pub buffer_bytes: u64,
    /// Whose groups are shown.
    pub method: &'static str,
    /// The arm that carries the most: `each block by itself`, `window by window` or `vectored
    /// calls`.
    pub arm: &'static str,
    /// Requests under way together.
    pub in_flight: u32,
    /// The first groups.
    pub groups: Vec<ShownGroup>,
    /// What planning itself took, in nanoseconds for each block, by the adaptive way.
    pub planning_ns_per_block: f64,
    /// Every way, the cheapest first.
    pub methods: Vec<Cost>,
}

/// A view in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// Offset of the first tuple in bytes.
    pub displacement: u64,
    /// Tuples in the list.
    pub tuples: u64,
    /// Bytes of data in one turn.
    pub data_bytes: u64,
    /// Bytes of the file in one turn.
    pub extent_bytes: u64,
    /// Levels of repetition when the pattern has a closed form.
    pub levels: Option<usize>,
    /// Bytes of memory that the list takes.
    pub memory_bytes: usize,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownGroup {
    /// The arm.
    pub arm: &'static str,
    /// First byte of data.
    pub data_start: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// First byte of the file.
    pub file_start: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// What one way takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Its name.
    pub method: &'static str,
    /// Predicted time of all of it in nanoseconds.
    pub predicted_ns: f64,
    /// Groups.
    pub groups: u64,
    /// Reads and writes.
    pub calls: u64,
    /// Bytes that they carry.
    pub carried_bytes: u64,
    /// Of these, bytes that nobody wants.
    pub wasted_bytes: u64,
}

/// The words for an arm.
#[must_use]
pub fn arm(method: Method) -> &'static str {
    match method {
        Method::Each => "each block by itself",
        Method::Window => "window by window",
        Method::Vector => "vectored calls",
        Method::Mapped => "from a mapping",
    }
}

/// `read` or `write`.
#[must_use]
pub fn access_word(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
    }
}

/// `warm` or `cold`.
#[must_use]
pub fn warmth_word(warmth: Warmth) -> &'static str {
    match warmth {
        Warmth::Warm => "warm",
        Warmth::Cold => "cold",
    }
}

/// Explains an access.
///
/// # Errors
/// As [`price::groups`].
pub fn explain(question: &Question<'_>) -> Result<Explanation> {
    let Question { profile, view, request, way, groups_max } = question;
    let mut shown: Vec<ShownGroup> = Vec::new();
    let mut chosen = Price::default();
    let mut in_flight = 1;
    price::groups(*way, profile, view, request, |group, together| {
        if shown.len() < *groups_max {
            shown.push(group.into());
        }
        in_flight = in_flight.max(together);
        chosen.add(profile, view, request, group, together)
    })?;
    let mut methods = Vec::with_capacity(Way::ALL.len());
    for way in Way::ALL {
        methods.push(Cost::new(way, &price::price(way, profile, view, request)?));
    }
    methods.sort_by(|a, b| a.predicted_ns.total_cmp(&b.predicted_ns));
    Ok(Explanation {
        view: Shape {
            displacement: view.displacement(),
            tuples: view.tuple_count(),
            data_bytes: view.size(),
            extent_bytes: view.extent(),
            levels: view.closed_form().map(|(_, levels, _)| levels.len() + 1),
            memory_bytes: view.memory_bytes(),
        },
        access: access_word(request.access),
        warmth: warmth_word(request.warmth),
        offset: request.data.start,
        length: request.data.end - request.data.start,
        buffer_bytes: request.buffer_bytes,
        method: way.name(),
        arm: dominant(&chosen),
        in_flight,
        groups: shown,
        planning_ns_per_block: planning_ns(profile, view, request)? / chosen.blocks.max(1) as f64,
        methods,
    })
}

fn dominant(price: &Price) -> &'static str {
    let arms = [
        (Method::Each, price.each_ns),
        (Method::Window, price.window_ns),
        (Method::Vector, price.vector_ns),
        (Method::Mapped, price.mapped_ns),
    ];
    let largest = arms.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    arm(largest.map_or(Method::Each, |(method, _)| method))
}

/// Nanoseconds that planning a request takes, the shortest of some turns: other programs only ever
/// make it longer.
fn planning_ns(profile: &Profile, view: &FileView, request: &Request) -> Result<f64> {
    let mut best = f64::INFINITY;
    let began = Instant::now();
    for _ in 0..5 {
        let mut adaptive = Adaptive::new(*profile)?.steady();
        let mut request = request.clone();
        // Nothing is waited for: what other programs take of the processor is not planning.
        let start_s = Clock::Processor.now_s();
        while !request.data.is_empty() {
            let plan = adaptive.plan(view, &request)?;
            for group in plan.groups {
                black_box(&group);
            }
            request.data.start += plan.data_len;
        }
        best = best.min((Clock::Processor.now_s() - start_s) * 1e9);
        if began.elapsed().as_secs_f64() > 0.5 {
            break;
        }
    }
    Ok(best)
}

impl Cost {
    fn new(way: Way, price: &Price) -> Self {
        Self {
            method: way.name(),
            predicted_ns: price.total_ns(),
            groups: price.groups,
            calls: price.calls,
            carried_bytes: price.carried_bytes,
            wasted_bytes: price.wasted_bytes(),
        }
    }
}

impl From<&Group> for ShownGroup {
    fn from(group: &Group) -> Self {
        Self {
            arm: arm(group.method),
            data_start: group.data.start,
            data_bytes: group.data_len(),
            file_start: group.file.start,
            file_bytes: group.file_len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn explained(pattern: &str, len: u64, way: Way) -> Explanation {
        let view = Pattern::parse(pattern).unwrap().view(0, 1).unwrap();
        let profile = Profile::default();
        let request = Request::new(Access::Read, 0..len, 4 << 20);
        let (profile, view, request) = (&profile, &view, &request);
        explain(&Question { profile, view, request, way, groups_max: 3 }).unwrap()
    }

    #[test]
    fn small_holes_are_sieved_and_large_ones_are_not() {
        let small = explained("8,92", 80_000, Way::Adaptive);
        assert_eq!(small.arm, "window by window");
        assert!(small.methods[0].predicted_ns <= small.methods[5].predicted_ns);
        let large = explained("8,1000000", 80_000, Way::Adaptive);
        assert_eq!(large.arm, "each block by itself");
        let naive = large.methods.iter().find(|cost| cost.method == "naive").unwrap();
        assert_eq!((naive.calls, naive.wasted_bytes), (10_000, 0));
    }

    #[test]
    fn only_the_first_groups_are_shown_but_all_are_counted() {
        let romio = explained("8,92", 8 << 20, Way::Romio);
        assert_eq!(romio.groups.len(), 3);
        assert_eq!(romio.groups[0].file_start, 0);
        let cost = romio.methods.iter().find(|cost| cost.method == "romio").unwrap();
        assert!(cost.groups > 20, "{cost:?}");
        assert!(romio.planning_ns_per_block > 0.0);
        assert_eq!(romio.view.levels, Some(1));
    }
}
