//! What a cluster is made of, and how a file lies on it.

/// Shape and speed of a striped file system and of one client's way to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Servers that a file is spread over; at least 1.
    pub servers: u32,
    /// Bytes of a file that lie on one server before the next one's turn; at least 1.
    pub stripe_bytes: u64,
    /// The most bytes that one RPC moves; at least 1.
    pub rpc_bytes: u64,
    /// Write RPCs per server that the client may have under way before a write waits.
    pub rpcs_in_flight: u32,
    /// How far the client reads ahead of accesses that follow each other closely.
    pub read_ahead_bytes: u64,
    /// The largest hole between accesses that follow each other closely.
    pub read_ahead_gap_bytes: u64,
    /// Each server's disks.
    pub disk: Disk,
    /// Between client and servers.
    pub network: Network,
    /// Time of a call that moves nothing, in seconds.
    pub call_s: f64,
    /// Bytes per second of a copy within the client's memory.
    pub copy_bandwidth: f64,
    /// Time to take or give back a byte-range lock, beside the network's latency, in seconds.
    pub lock_s: f64,
}

/// A server's disks as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// Bytes per second in sequence.
    pub bandwidth: f64,
    /// Time to move to a place nearby, in seconds.
    pub seek_min_s: f64,
    /// Time to move `seek_span_bytes` or further, in seconds.
    pub seek_max_s: f64,
    /// The distance at which moving takes the longest time.
    pub seek_span_bytes: u64,
    /// Time that a server needs for an RPC beside moving data, in seconds.
    pub request_s: f64,
}

/// Links of the client and of each server are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// One way, in seconds.
    pub latency_s: f64,
    /// Bytes per second of one link.
    pub bandwidth: f64,
}

/// Part of a file on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which server, from 0.
    pub server: u32,
    /// Where in the server's part of the file, its object, in bytes.
    pub object_offset: u64,
    /// How many bytes; never 0.
    pub len: u64,
}

impl Cluster {
    /// The thesis's own cluster (§5.2.1): Lustre on desktop disks, Gigabit Ethernet.
    #[must_use]
    pub fn wr(servers: u32, stripe_bytes: u64) -> Self {
        Self {
            servers,
            stripe_bytes,
            rpc_bytes: 1 << 20,
            rpcs_in_flight: 8,
            // "Lustre reads ahead for the size of one stripe" (§5.3.2).
            read_ahead_bytes: stripe_bytes,
            // "Good performance for hole sizes up to 4 - 32 KiByte" (§5.3.3).
            read_ahead_gap_bytes: 32 << 10,
            disk: Disk {
                bandwidth: 110e6,
                seek_min_s: 1e-3,
                seek_max_s: 15e-3,
                seek_span_bytes: 1 << 30,
                request_s: 50e-6,
            },
            network: Network { latency_s: 80e-6, bandwidth: 118.0 * 1_048_576.0 },
            call_s: 1e-6,
            copy_bandwidth: 4e9,
            lock_s: 50e-6,
        }
    }

    /// The porting system of DKRZ (§5.2.2): two servers with 84 disks each, FDR InfiniBand.
    #[must_use]
    pub fn dkrz(servers: u32, stripe_bytes: u64) -> Self {
        Self {
            disk: Disk {
                bandwidth: 2.5e9,
                seek_min_s: 0.5e-3,
                seek_max_s: 8e-3,
                seek_span_bytes: 8 << 30,
                request_s: 20e-6,
            },
            network: Network { latency_s: 1e-6, bandwidth: 6e9 },
            copy_bandwidth: 8e9,
            lock_s: 20e-6,
            ..Self::wr(servers, stripe_bytes)
        }
    }

    /// Where `offset..offset + len` of a file lies, in order, cut at stripe boundaries.
    pub fn pieces(&self, offset: u64, len: u64) -> impl Iterator<Item = Piece> + use<> {
        let (stripe, servers) = (self.stripe_bytes.max(1), u64::from(self.servers.max(1)));
        let end = offset.saturating_add(len);
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (index, within) = (at / stripe, at % stripe);
            let len = (stripe - within).min(end - at);
            at += len;
            Some(Piece {
                // The remainder of a division by a u32.
                server: (index % servers) as u32,
                object_offset: index / servers * stripe + within,
                len,
            })
        })
    }
}

impl Disk {
    /// Time to move the head over `distance` bytes, in seconds: nothing for none, then with the
    /// root of the distance, as an arm that is accelerated and braked.
    #[must_use]
    pub fn seek_s(&self, distance: u64) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        let share = (distance as f64 / self.seek_span_bytes.max(1) as f64).min(1.0);
        self.seek_min_s + (self.seek_max_s - self.seek_min_s) * share.sqrt()
    }

    /// Time to get past `distance` bytes in the direction of reading: reading them or moving over
    /// them, whichever is shorter.
    #[must_use]
    pub fn skip_s(&self, distance: u64) -> f64 {
        self.seek_s(distance).min(distance as f64 / self.bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stripes_go_round_the_servers() {
        let cluster = Cluster::wr(2, 100);
        let pieces: Vec<_> = cluster.pieces(150, 300).collect();
        let piece = |server, object_offset, len| Piece { server, object_offset, len };
        assert_eq!(
            pieces,
            [piece(1, 50, 50), piece(0, 100, 100), piece(1, 100, 100), piece(0, 200, 50)]
        );
    }

    #[test]
    fn a_longer_way_takes_longer_and_no_way_takes_no_time() {
        let disk = Cluster::wr(1, 1 << 20).disk;
        assert_eq!(disk.seek_s(0), 0.0);
        assert!(disk.seek_s(1) >= disk.seek_min_s);
        assert!(disk.seek_s(4096) < disk.seek_s(1 << 24));
        assert_eq!(disk.seek_s(1 << 40), disk.seek_max_s);
        // A few bytes are read over rather than jumped over.
        assert!(disk.skip_s(4096) < disk.seek_min_s);
    }

    proptest! {
        #[test]
        fn pieces_cover_the_range_without_overlap(
            servers in 1_u32..7,
            stripe in 1_u64..50,
            offset in 0_u64..500,
            len in 0_u64..500,
        ) {
            let cluster = Cluster::wr(servers, stripe);
            let mut at = offset;
            for piece in cluster.pieces(offset, len) {
                prop_assert!(piece.len > 0 && piece.len <= stripe);
                // The file offset that this place of the object stands for.
                let index = piece.object_offset / stripe * u64::from(servers)
                    + u64::from(piece.server);
                prop_assert_eq!(index * stripe + piece.object_offset % stripe, at);
                at += piece.len;
            }
            prop_assert_eq!(at, offset + len);
        }
    }
}
