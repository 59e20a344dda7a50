//! The effects that the thesis saw on its clusters, looked for in the simulation (§5.3.3, §5.3.4).

use stripes::{Cluster, Simulation, expected};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Bytes of data per second when each block of a repeated (data, hole) pattern is accessed by
/// itself, over at least 64 blocks and 32 MiB of file.
fn naive(cluster: &Cluster, writes: bool, data: u64, hole: u64, initial: u64) -> f64 {
    let mut simulation = Simulation::new(cluster.clone());
    let blocks = (32 * MIB / (data + hole)).clamp(64, 400_000);
    for block in 0..blocks {
        let offset = initial + block * (data + hole);
        if writes { simulation.write(offset, data) } else { simulation.read(offset, data) }
    }
    simulation.flush();
    (blocks * data) as f64 / simulation.now_s()
}

/// The same when windows of 4 MiB are read whole, whatever is in them, and written back.
fn sieved(cluster: &Cluster, writes: bool, data: u64, hole: u64) -> f64 {
    const WINDOW: u64 = 4 * MIB;
    let mut simulation = Simulation::new(cluster.clone());
    let period = data + hole;
    let blocks = (32 * MIB / period).clamp(64, 400_000);
    let held = (WINDOW / period).max(1);
    for start in (0..blocks).step_by(held as usize).map(|block| block * period) {
        if writes {
            simulation.locked(|simulation| {
                simulation.read(start, WINDOW);
                simulation.copy(held * data);
                simulation.write(start, WINDOW);
            });
        } else {
            simulation.read(start, WINDOW);
            simulation.copy(held * data);
        }
    }
    (blocks * data) as f64 / simulation.now_s()
}

#[test]
fn reading_has_a_plateau_of_large_data_and_small_holes() {
    // Figure 5.5: good for data of more and holes of less than 4 KiB.
    let cluster = Cluster::wr(1, 128 * KIB);
    let best = naive(&cluster, false, 2 * MIB, 0, 0);
    assert!(best > 0.7 * cluster.network.bandwidth.min(cluster.disk.bandwidth));
    assert!(naive(&cluster, false, 32_768, 64, 0) > 0.5 * best);
    assert!(naive(&cluster, false, 4096, 64, 0) > 0.5 * best);
    assert!(naive(&cluster, false, 8, 32_768, 0) < 0.01 * best);
    assert!(naive(&cluster, false, 4096, 10_000_000, 0) < 0.05 * best);
}

#[test]
fn larger_holes_never_read_faster() {
    let cluster = Cluster::wr(2, 2 * MIB);
    for data in [100, 4096, 100_000] {
        let rates = [0, 64, 4096, 100_000, 1_000_000, 10_000_000]
            .map(|hole| naive(&cluster, false, data, hole, 0));
        for pair in rates.windows(2) {
            assert!(pair[1] <= pair[0] * 1.02, "{data}: {rates:?}");
        }
    }
}

#[test]
fn aligned_writes_come_in_waves_when_they_meet_one_server_only() {
    // Figures 5.14 and 5.15: with two servers and data of one stripe, a hole of an odd number of
    // stripes leaves all data on one server, an even number uses both.
    let mut cluster = Cluster::wr(2, 128 * KIB);
    // One server's disk is the limit, as on the thesis's I/O nodes.
    cluster.disk.bandwidth = 60e6;
    cluster.disk.seek_min_s = 0.2e-3;
    let rate = |hole: u64| naive(&cluster, true, 128 * KIB, hole * 128 * KIB, 0);
    for odd in [1, 3, 5] {
        assert!(rate(odd + 1) > 1.3 * rate(odd), "hole {odd}: {} {}", rate(odd + 1), rate(odd));
    }
    // "The waves could not be seen in Figure 5.13 as the unaligned cases always hit both servers."
    let unaligned = |hole: u64| naive(&cluster, true, 128 * KIB, hole * 128 * KIB, 64 * KIB);
    for odd in [1, 3, 5] {
        assert!(unaligned(odd + 1) < 1.3 * unaligned(odd));
    }
    // "For 256 KiByte data and above both servers were used all the time."
    let wide = |hole: u64| naive(&cluster, true, 256 * KIB, hole * 128 * KIB, 0);
    assert!(wide(2) < 1.3 * wide(1));
}

#[test]
fn sieving_helps_for_small_holes_and_harms_for_large_ones() {
    // Figures 5.17 to 5.20: good while holes are small, above all for writes, which no read-ahead
    // helps; harmful for data above 4 KiB and holes above 1 MB.
    let cluster = Cluster::wr(2, 2 * MIB);
    for (data, hole, gain) in [(8, 64, 3.0), (8, 100, 3.0), (64, 1000, 1.1)] {
        let naive = |writes| naive(&cluster, writes, data, hole, 0);
        assert!(sieved(&cluster, true, data, hole) > gain * naive(true), "{data}, {hole}");
        // Windows that are read one after the other do without read-ahead.
        assert!(sieved(&cluster, false, data, hole) > 0.5 * naive(false), "{data}, {hole}");
    }
    for writes in [false, true] {
        let naive = naive(&cluster, writes, 100_000, 2_097_152, 0);
        assert!(sieved(&cluster, writes, 100_000, 2_097_152) < naive);
    }
}

#[test]
fn more_servers_are_faster_until_the_clients_link_is_full() {
    let rate = |servers| {
        let mut cluster = Cluster::dkrz(servers, MIB);
        cluster.disk.bandwidth = 1e9;
        naive(&cluster, false, 64 * MIB, 0, 0)
    };
    assert!(rate(2) > 1.6 * rate(1));
    assert!(rate(5) > 1.4 * rate(2));
    assert!(rate(20) <= 6e9);
}

#[test]
fn the_simulation_agrees_with_the_expected_performance_where_that_is_simple() {
    // Figures 5.2 to 5.4 are one formula; far from its corners the simulation is within a factor
    // of two of it.
    let cluster = Cluster::wr(2, 2 * MIB);
    for data in [32_768, 100_000, 1_000_000, 2_097_152] {
        for hole in [0, 100, 4096, 32_768] {
            let ratio =
                naive(&cluster, false, data, hole, 0) / expected::read(&cluster, data, hole);
            assert!((0.5..2.0).contains(&ratio), "{data}, {hole}: {ratio}");
        }
    }
}

#[test]
fn requests_in_flight_hide_latency() {
    let mut cluster = Cluster::wr(2, 2 * MIB);
    cluster.network.latency_s = 5e-3;
    let ranges: Vec<_> = (0..200).map(|block| (block * 300_000, 4096)).collect();
    let time = |in_flight| {
        let mut simulation = Simulation::new(cluster.clone());
        simulation.read_many(&ranges, in_flight);
        simulation.now_s()
    };
    assert!(time(16) < 0.5 * time(1), "{} {}", time(16), time(1));
}

#[test]
fn nothing_depends_on_chance_and_traffic_is_what_was_asked_for() {
    let run = || {
        let mut simulation = Simulation::new(Cluster::wr(5, 128 * KIB));
        for block in 0..100 {
            simulation.locked(|simulation| {
                simulation.read(block * 5 * MIB, MIB);
                simulation.write(block * 5 * MIB, MIB);
            });
        }
        (simulation.now_s(), simulation.traffic())
    };
    let (time, traffic) = run();
    assert_eq!(run(), (time, traffic));
    assert_eq!(traffic.read_bytes, 100 * MIB);
    assert_eq!(traffic.written_bytes, 100 * MIB);
}
