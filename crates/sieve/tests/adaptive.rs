//! What the adaptive planner decides, and that it is right under its own model and under what it
//! observes.

use proptest::prelude::*;
use sieve::model::{CopyCost, Device, RequestCost};
use sieve::plan::{Candidate, candidates};
use sieve::{Access, Adaptive, FileView, Level, Method, Profile, Request, Warmth};

const BUFFER: u64 = 4 << 20;

/// A profile with round numbers: a call costs 1000 ns, a byte 1 ns, a copied byte half as much.
fn round() -> Profile {
    let request = RequestCost { call_ns: 1000.0, page_ns: 0.0, byte_ns: 1.0 };
    Profile {
        read: request,
        write: request,
        copy: CopyCost { block_ns: 0.0, byte_ns: 0.5, far_byte_ns: 0.5, cache_bytes: 1 << 30 },
        vector_entry_ns: 100.0,
        lock_ns: 500.0,
        ..Profile::default()
    }
}

fn groups(profile: Profile, view: &FileView, request: &Request) -> Vec<sieve::Group> {
    let mut adaptive = Adaptive::new(profile).expect("sound").steady();
    let mut request = request.clone();
    let mut all = Vec::new();
    while !request.data.is_empty() {
        let plan = adaptive.plan(view, &request).expect("within a file");
        assert!(plan.data_len > 0);
        let end = request.data.start + plan.data_len;
        let groups: Vec<_> = plan.groups.collect();
        assert_eq!(groups.last().expect("one at least").data.end, end);
        all.extend(groups);
        request.data.start = end;
    }
    all
}

fn method(profile: Profile, block: u64, hole: u64, access: Access) -> Method {
    let view = FileView::strided(0, block, hole).expect("within a file");
    groups(profile, &view, &Request::new(access, 0..block * 200, BUFFER))[0].method
}

#[test]
fn each_arm_is_taken_where_it_is_the_cheapest() {
    // Small blocks, small holes: a window. A vectored call names 2 places, 200 ns a block.
    assert_eq!(method(round(), 8, 8, Access::Read), Method::Window);
    // Copying 1000 bytes costs 500 ns, naming them 200.
    assert_eq!(method(round(), 1000, 8, Access::Read), Method::Vector);
    // A hole of 2000 bytes costs more than a call.
    assert_eq!(method(round(), 1000, 2000, Access::Read), Method::Each);
    assert_eq!(method(round(), 8, 900, Access::Read), Method::Window);
    assert_eq!(method(round(), 8, 1100, Access::Read), Method::Each);
}

#[test]
fn a_write_with_holes_pays_for_reading_first() {
    // Reading and writing 8 + 600 bytes costs more than a call; reading alone would not.
    assert_eq!(method(round(), 8, 600, Access::Read), Method::Window);
    assert_eq!(method(round(), 8, 600, Access::Write), Method::Each);
    assert_eq!(method(round(), 8, 400, Access::Write), Method::Window);
}

#[test]
fn nothing_is_sieved_without_a_buffer_or_without_reading() {
    let view = FileView::strided(0, 8, 8).unwrap();
    let request = Request::new(Access::Read, 0..800, 0);
    assert_eq!(groups(round(), &view, &request)[0].method, Method::Each);
    let request = Request { readable: false, ..Request::new(Access::Write, 0..800, BUFFER) };
    assert_eq!(groups(round(), &view, &request)[0].method, Method::Each);
}

#[test]
fn a_regular_pattern_is_one_group_of_single_blocks_however_long() {
    let view = FileView::strided(0, 4096, 1 << 20).unwrap();
    let request = Request::new(Access::Read, 0..4096 * 1_000_000, BUFFER);
    let mut adaptive = Adaptive::new(Profile::default()).unwrap();
    let plan = adaptive.plan(&view, &request).unwrap();
    assert_eq!(plan.groups.count(), 1);
}

#[test]
fn nested_patterns_are_joined_as_far_as_it_pays_and_no_farther() {
    // Rows of 10 small blocks with small holes, rows far apart.
    let view = FileView::nested(0, 8, &[Level { count: 10, hole: 24 }], 50_000).unwrap();
    let all = groups(round(), &view, &Request::new(Access::Read, 0..8 * 1000, BUFFER));
    assert_eq!(all.len(), 100);
    assert!(all.iter().all(|group| group.method == Method::Window && group.file_len() == 296));
    // Rows close together: everything in large windows.
    let view = FileView::nested(0, 8, &[Level { count: 10, hole: 24 }], 500).unwrap();
    let all = groups(round(), &view, &Request::new(Access::Read, 0..8 * 1000, BUFFER));
    assert!(all.len() <= 5, "{}", all.len());
}

#[test]
fn windows_end_at_stripes_where_there_are_some() {
    let mut profile = round();
    profile.device = Device {
        servers: 4,
        stripe_bytes: 65536,
        latency_ns: 1e6,
        in_flight_max: 1,
        ..profile.device
    };
    let view = FileView::strided(1000, 3000, 1000).unwrap();
    let request =
        Request { warmth: Warmth::Cold, ..Request::new(Access::Read, 0..3_000_000, 1 << 20) };
    let all = groups(profile, &view, &request);
    let windows: Vec<_> = all.iter().filter(|group| group.method != Method::Each).collect();
    assert!(windows.len() > 1);
    for window in &windows[..windows.len() - 1] {
        // It ends where the stripe does, or in the hole before that.
        let end = window.file.end;
        assert!(end.is_multiple_of(65536) || end.next_multiple_of(65536) - end <= 1000, "{end}");
    }
}

#[test]
fn cold_data_is_asked_for_many_at_a_time() {
    let view = FileView::strided(0, 4096, 1 << 20).unwrap();
    let warm = Request::new(Access::Read, 0..4096 * 500, BUFFER);
    let cold = Request { warmth: Warmth::Cold, ..warm.clone() };
    let mut adaptive = Adaptive::new(Profile::default()).unwrap();
    assert_eq!(adaptive.plan(&view, &warm).unwrap().in_flight, 1);
    assert_eq!(adaptive.plan(&view, &cold).unwrap().in_flight, 32);
    // And the hole that a cold read goes over is larger: 200 000 ns of latency are many bytes.
    let mut slow = Profile::default();
    slow.device.in_flight_max = 1;
    let view = FileView::strided(0, 512, 20_000).unwrap();
    let warm = Request::new(Access::Read, 0..512 * 500, BUFFER);
    assert_eq!(groups(slow, &view, &warm)[0].method, Method::Each);
    let cold = Request { warmth: Warmth::Cold, ..warm };
    assert_ne!(groups(slow, &view, &cold)[0].method, Method::Each);
}

#[test]
fn what_is_observed_changes_what_is_decided() {
    let view = FileView::strided(0, 8, 900).unwrap();
    let request = Request::new(Access::Read, 0..8 * 1000, BUFFER);
    let mut adaptive = Adaptive::new(round()).unwrap().steady();
    let mut turns = 0;
    // The model says a window. It takes three times as long as that.
    loop {
        let plan = adaptive.plan(&view, &request).unwrap();
        let prediction = plan.prediction.clone();
        let method = prediction.model.dominant().0;
        if method == Method::Each {
            break;
        }
        adaptive.observe(&prediction, 3.0 * prediction.model.total_ns());
        turns += 1;
        assert!(turns < 10, "it never learns");
    }
    assert!(turns > 0);
    // Other patterns are judged as before.
    let other = FileView::strided(0, 8, 8).unwrap();
    let plan = adaptive.plan(&other, &Request::new(Access::Read, 0..8 * 1000, BUFFER)).unwrap();
    assert_eq!(plan.prediction.model.dominant().0, Method::Window);
}

/// Plays a request through a planner: what each of its plans "takes" is what `truth` says of the
/// method. Returns the time, and the time of the best method throughout.
fn played(
    adaptive: &mut Adaptive,
    view: &FileView,
    len: u64,
    truth: impl Fn(Method) -> f64,
) -> (f64, f64) {
    let mut request = Request::new(Access::Read, 0..len, BUFFER);
    let mut taken = 0.0;
    while !request.data.is_empty() {
        let plan = adaptive.plan(view, &request).unwrap();
        let ns = truth(plan.prediction.model.dominant().0) * plan.data_len as f64;
        adaptive.observe(&plan.prediction, ns);
        taken += ns;
        request.data.start += plan.data_len;
    }
    let best = [Method::Each, Method::Window, Method::Vector].map(&truth);
    (taken, best.into_iter().fold(f64::INFINITY, f64::min) * len as f64)
}

#[test]
fn trials_find_the_best_method_where_the_model_errs_and_cost_little_where_it_does_not() {
    // In ns a byte. The model thinks the window better by 30 %, and is wrong by a factor of 2.
    let view = FileView::strided(0, 512, 600).unwrap();
    let truth = |method| match method {
        Method::Each => 1.0,
        Method::Window => 2.0,
        Method::Vector | Method::Mapped => 1.4,
    };
    let mut adaptive = Adaptive::new(round()).unwrap();
    played(&mut adaptive, &view, 512 * 100_000, truth);
    let (taken, best) = played(&mut adaptive, &view, 512 * 100_000, truth);
    assert!(taken < 1.05 * best, "regret {}", taken / best);
}

/// How much longer than by the best method `requests` small requests take, when a busy machine makes
/// what is observed longer by a factor that `noise` says.
fn regret_of_small(requests: u64, mut noise: impl FnMut(u64) -> f64) -> f64 {
    // In ns a byte. The model thinks the window better by 30 %, and is wrong by a factor of 2.
    let view = FileView::strided(0, 512, 600).unwrap();
    let truth = |method| match method {
        Method::Each => 3.0,
        Method::Window => 6.0,
        Method::Vector | Method::Mapped => 4.2,
    };
    let mut adaptive = Adaptive::new(round()).unwrap();
    let mut taken = 0.0;
    for number in 0..requests {
        let mut request = Request::new(Access::Read, 0..512 * 40, BUFFER);
        while !request.data.is_empty() {
            let plan = adaptive.plan(&view, &request).unwrap();
            let ns = truth(plan.prediction.model.dominant().0) * plan.data_len as f64;
            adaptive.observe(&plan.prediction, ns * noise(number));
            taken += ns;
            request.data.start += plan.data_len;
        }
    }
    taken / (requests as f64 * 512.0 * 40.0 * 3.0)
}

#[test]
fn trials_find_the_best_method_for_many_small_requests() {
    let regret = regret_of_small(3000, |_| 1.0);
    assert!(regret < 1.05, "regret {regret}");
}

#[test]
fn the_time_of_the_processor_makes_the_choice_robust_on_a_busy_machine() {
    // What the wall's clock says: a time slice of somebody else's in one of three. What the
    // processor's says: caches that others have emptied, at most.
    let random = |number: u64| {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as f64 / (1u64 << 31) as f64
    };
    let wall =
        |number: u64| if random(number) < 0.33 { 1.0 + 20.0 * random(number + 1) } else { 1.0 };
    let processor = |number: u64| 1.0 + 0.2 * random(number);
    let (by_wall, by_processor) = (regret_of_small(3000, wall), regret_of_small(3000, processor));
    assert!(by_processor < 1.06, "regret {by_processor} by the processor's clock");
    assert!(by_processor < by_wall, "{by_processor}, and {by_wall} by the wall's");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The choice costs what it is said to cost, and no more than any window of any size and any
    /// hole limit costs under the same model.
    #[test]
    fn the_predicted_cost_is_that_of_the_groups(
        block in 1u64..5000,
        hole in 1u64..5000,
        count in 2u64..40,
        tail in 1u64..50_000,
        writes: bool,
    ) {
        let levels = [Level { count, hole }];
        let view = FileView::nested(0, block, &levels, tail).unwrap();
        let access = if writes { Access::Write } else { Access::Read };
        // Whole turns, so that the closed form's averages are exact.
        let request = Request::new(access, 0..view.size() * 50, BUFFER);
        let profile = round();
        let (size, levels, tail) = view.closed_form().unwrap();
        let all = candidates(&profile, &request, size, &levels, tail);
        let priced = |candidate: &Candidate| -> f64 {
            let now = request.circumstances(candidate.strategy.in_flight);
            let groups = candidate.strategy.groups(&view, request.data.clone()).unwrap();
            groups.map(|group| {
                let blocks: Vec<_> =
                    view.blocks(group.data.start, group.data_len()).unwrap().collect();
                let size = sieve::model::Extents {
                    file: group.file_len() as f64,
                    data: group.data_len() as f64,
                    blocks: blocks.len() as f64,
                };
                match group.method {
                    Method::Each =>
                        blocks.iter().map(|block| profile.each_ns(block.len as f64, f64::INFINITY, &now)).sum(),
                    Method::Window =>
                        profile.window_ns(&size, candidate.strategy.window_bytes, &now),
                    Method::Vector => profile.vector_ns(&size, &now),
                    Method::Mapped => profile.mapped_ns(&size),
                }
            }).sum()
        };
        let best = all.iter().min_by(|a, b| a.cost.total_ns().total_cmp(&b.cost.total_ns()));
        let best = priced(best.unwrap());
        for candidate in &all {
            let real = priced(candidate);
            let predicted = candidate.cost.total_ns();
            prop_assert!(predicted < 1.6 * real && real < 1.6 * predicted,
                "{candidate:?}: predicted {predicted}, groups cost {real}");
            prop_assert!(best <= 1.25 * real, "{candidate:?} costs {real}, the choice {best}");
        }
    }
}
