//! The expected performance of a repeated data block and hole, as a closed formula.
//!
//! # Source
//! Zickler 2015, §5.3.2 and Figures 5.2 to 5.4: "the model is based on the transfer time and the
//! network latency. … For reading access the assumption was made that Lustre reads ahead for the
//! size of one stripe. Also the seek time of hard drives depending on the hole size are included in
//! the reading model."

use crate::cluster::Cluster;

/// Expected bytes of data per second when every block of `data_bytes` is written by itself.
#[must_use]
pub fn write(cluster: &Cluster, data_bytes: u64) -> f64 {
    let data = data_bytes as f64;
    data / (transfer_s(cluster, data) + cluster.network.latency_s)
}

/// Expected bytes of data per second when every block of `data_bytes` is read by itself and holes
/// of `hole_bytes` lie between.
#[must_use]
pub fn read(cluster: &Cluster, data_bytes: u64, hole_bytes: u64) -> f64 {
    let (data, hole) = (data_bytes as f64, hole_bytes as f64);
    let period = data_bytes.saturating_add(hole_bytes);
    let ahead = cluster.read_ahead_bytes;
    let time = if period <= ahead {
        // One fetch of `ahead` bytes serves so many blocks.
        let blocks = ahead as f64 / period.max(1) as f64;
        (transfer_s(cluster, ahead as f64) + cluster.network.latency_s) / blocks
    } else {
        transfer_s(cluster, data.max(0.0)) + cluster.network.latency_s
    };
    let seek = if period <= ahead { 0.0 } else { cluster.disk.seek_s(hole as u64) };
    data / (time + seek)
}

/// Time to move `bytes` over the client's link, which bounds what any number of servers can do,
/// and off the servers' disks.
fn transfer_s(cluster: &Cluster, bytes: f64) -> f64 {
    let disks = cluster.disk.bandwidth * f64::from(cluster.servers.max(1));
    bytes / cluster.network.bandwidth.min(disks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_dominates_below_four_kibibytes() {
        let cluster = Cluster::wr(1, 2 << 20);
        let time = |data: u64| data as f64 / write(&cluster, data);
        // Eight times the data takes hardly longer, far above it takes nearly eight times as long.
        assert!(time(512) < 1.1 * time(64));
        assert!(time(8 << 20) > 7.5 * time(1 << 20));
    }

    #[test]
    fn larger_stripes_read_better_and_larger_holes_worse() {
        let (small, large) = (Cluster::wr(2, 128 << 10), Cluster::wr(2, 2 << 20));
        for data in [100, 4096, 32_768] {
            for hole in [8, 1000, 32_768] {
                assert!(read(&small, data, hole) <= read(&large, data, hole));
            }
            assert!(read(&large, data, 10_000_000) < read(&large, data, 2_200_000));
            assert!(read(&large, data, 1000) < read(&large, data, 0) + 1.0);
        }
    }
}
