//! Requests in virtual time.

use std::collections::VecDeque;

use crate::cluster::{Cluster, Piece};

/// What went over the network so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// RPCs of either kind.
    pub rpcs: u64,
    /// Bytes fetched, those read ahead included.
    pub read_bytes: u64,
    /// Bytes sent.
    pub written_bytes: u64,
    /// Times that some disk's head had to move.
    pub seeks: u64,
}

/// One client on a [`Cluster`]; time passes by what is asked of it.
#[derive(Debug, Clone)]
pub struct Simulation {
    cluster: Cluster,
    now_s: f64,
    /// When the client's link is free again.
    link_free_s: f64,
    servers: Vec<Server>,
    /// What was read ahead, in the order of the file.
    ahead: VecDeque<Ahead>,
    /// Where the last read ended.
    last_read_end: Option<u64>,
    traffic: Traffic,
}

#[derive(Debug, Clone, Default)]
struct Server {
    /// When it can begin the next request.
    free_s: f64,
    /// When its link is free again.
    link_free_s: f64,
    /// Where its disk's head is, in the object.
    head: Option<u64>,
    /// When the writes under way end, in order.
    writing: VecDeque<f64>,
}

/// A range of the file that was read ahead, and when all of it is there.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    start: u64,
    end: u64,
    ready_s: f64,
}

/// Consecutive pieces of an object, at most an RPC's worth.
#[derive(Debug, Clone, Copy)]
struct Rpc {
    server: usize,
    offset: u64,
    len: u64,
}

impl Simulation {
    /// A client that has done nothing yet, at time 0, with nothing in any cache.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        let servers = vec![Server::default(); cluster.servers.max(1) as usize];
        Self {
            cluster,
            now_s: 0.0,
            link_free_s: 0.0,
            servers,
            ahead: VecDeque::new(),
            last_read_end: None,
            traffic: Traffic::default(),
        }
    }

    /// Virtual seconds since the beginning.
    #[must_use]
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// What went over the network so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// What is simulated.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Lets time pass that the client spends in its own memory: copying `bytes`.
    pub fn copy(&mut self, bytes: u64) {
        self.now_s += bytes as f64 / self.cluster.copy_bandwidth;
    }

    /// Reads a range and waits for it.
    pub fn read(&mut self, offset: u64, len: u64) {
        let done = self.start_read(offset, len);
        self.now_s = self.now_s.max(done);
        self.copy(len);
    }

    /// Reads many ranges with at most `in_flight` of them asked for at a time, and waits for all.
    pub fn read_many(&mut self, ranges: &[(u64, u64)], in_flight: usize) {
        let mut under_way: VecDeque<f64> = VecDeque::new();
        for &(offset, len) in ranges {
            if under_way.len() >= in_flight.max(1)
                && let Some(done) = under_way.pop_front()
            {
                self.now_s = self.now_s.max(done);
            }
            let done = self.start_read(offset, len);
            under_way.push_back(done);
            self.copy(len);
        }
        for done in under_way {
            self.now_s = self.now_s.max(done);
        }
    }

    /// Writes a range; waits only for room among the writes under way.
    pub fn write(&mut self, offset: u64, len: u64) {
        self.now_s += self.cluster.call_s;
        self.copy(len);
        self.forget_ahead();
        for rpc in self.rpcs(offset, len) {
            let limit = self.cluster.rpcs_in_flight.max(1) as usize;
            while self.servers[rpc.server].writing.len() >= limit {
                if let Some(done) = self.servers[rpc.server].writing.pop_front() {
                    self.now_s = self.now_s.max(done);
                }
            }
            let sent = self.now_s.max(self.link_free_s) + self.wire_s(rpc.len);
            self.link_free_s = sent;
            let arrived = sent + self.cluster.network.latency_s;
            let done = self.serve(rpc, arrived) + self.cluster.network.latency_s;
            self.servers[rpc.server].writing.push_back(done);
            self.traffic.written_bytes += rpc.len;
        }
    }

    /// Waits until every write has arrived.
    pub fn flush(&mut self) {
        for server in &mut self.servers {
            while let Some(done) = server.writing.pop_front() {
                self.now_s = self.now_s.max(done);
            }
        }
    }

    /// Takes and gives back a byte-range lock around `work`; what `work` wrote has arrived when the
    /// lock is given back.
    pub fn locked(&mut self, work: impl FnOnce(&mut Self)) {
        let round_trip = self.cluster.lock_s + 2.0 * self.cluster.network.latency_s;
        self.now_s += round_trip;
        work(self);
        self.flush();
        self.now_s += round_trip;
    }

    /// Asks for a range and tells when it will be there.
    fn start_read(&mut self, offset: u64, len: u64) -> f64 {
        self.now_s += self.cluster.call_s;
        if len == 0 {
            return self.now_s;
        }
        let end = offset.saturating_add(len);
        let follows = self.last_read_end.is_some_and(|last| {
            (last..=last.saturating_add(self.cluster.read_ahead_gap_bytes)).contains(&offset)
        });
        self.last_read_end = Some(end);
        if !follows {
            self.ahead.clear();
            return self.fetch(offset, len);
        }
        while self.ahead.front().is_some_and(|ahead| ahead.end <= offset) {
            self.ahead.pop_front();
        }
        let mut done = self.now_s;
        for ahead in self.ahead.iter().filter(|ahead| ahead.start < end) {
            done = done.max(ahead.ready_s);
        }
        let known = self.ahead.back().map_or(offset, |ahead| ahead.end);
        if known < end {
            done = done.max(self.fetch(known, end - known));
        }
        // The next piece is asked for when half of the last one is used up.
        let known = known.max(end);
        let wanted = end.saturating_add(self.cluster.read_ahead_bytes);
        if wanted - known >= self.cluster.read_ahead_bytes / 2 && wanted > known {
            let ready_s = self.fetch(known, wanted - known);
            self.ahead.push_back(Ahead { start: known, end: wanted, ready_s });
        }
        done
    }

    /// Brings a range from the servers and tells when its last byte is there.
    fn fetch(&mut self, offset: u64, len: u64) -> f64 {
        let asked = self.now_s;
        let mut last = asked;
        for rpc in self.rpcs(offset, len) {
            let arrived = asked + self.cluster.network.latency_s;
            let read = self.serve(rpc, arrived);
            let wire = self.wire_s(rpc.len);
            let server = &mut self.servers[rpc.server];
            let sent = read.max(server.link_free_s) + wire;
            server.link_free_s = sent;
            // Through both links at once, but the client's is shared by all servers.
            let received = (self.link_free_s + wire).max(sent) + self.cluster.network.latency_s;
            self.link_free_s = received - self.cluster.network.latency_s;
            self.traffic.read_bytes += rpc.len;
            last = last.max(received);
        }
        last
    }

    /// Gives an RPC its server's time, from `arrived` on, and tells when the disk is done with it.
    fn serve(&mut self, rpc: Rpc, arrived: f64) -> f64 {
        let disk = &self.cluster.disk;
        let server = &mut self.servers[rpc.server];
        let moving = rpc.len as f64 / disk.bandwidth + disk.request_s;
        let ahead = server.head.and_then(|head| rpc.offset.checked_sub(head));
        let done = match ahead {
            // The disk reads on, or writes behind, by itself when it has nothing else to do.
            Some(distance) if distance <= self.cluster.rpc_bytes => {
                (server.free_s + disk.skip_s(distance) + moving).max(arrived + disk.request_s)
            }
            _ => {
                let way = match server.head {
                    Some(head) => disk.seek_s(rpc.offset.abs_diff(head)),
                    None => disk.seek_max_s,
                };
                server.free_s.max(arrived) + way + moving
            }
        };
        if ahead != Some(0) {
            self.traffic.seeks += 1;
        }
        server.head = Some(rpc.offset + rpc.len);
        server.free_s = done;
        self.traffic.rpcs += 1;
        done
    }

    /// The RPCs that a range is moved by: pieces that follow each other in an object join.
    fn rpcs(&self, offset: u64, len: u64) -> Vec<Rpc> {
        let limit = self.cluster.rpc_bytes.max(1);
        let mut rpcs: Vec<Rpc> = Vec::new();
        // The last RPC of each server.
        let mut open: Vec<Option<usize>> = vec![None; self.servers.len()];
        for Piece { server, mut object_offset, mut len } in self.cluster.pieces(offset, len) {
            let server = server as usize;
            while len > 0 {
                let last = open[server].map(|index| &mut rpcs[index]);
                if let Some(rpc) = last
                    && rpc.offset + rpc.len == object_offset
                    && rpc.len < limit
                {
                    let more = len.min(limit - rpc.len);
                    rpc.len += more;
                    object_offset += more;
                    len -= more;
                    continue;
                }
                let now = len.min(limit);
                open[server] = Some(rpcs.len());
                rpcs.push(Rpc { server, offset: object_offset, len: now });
                object_offset += now;
                len -= now;
            }
        }
        rpcs
    }

    fn wire_s(&self, bytes: u64) -> f64 {
        bytes as f64 / self.cluster.network.bandwidth
    }

    fn forget_ahead(&mut self) {
        self.ahead.clear();
        self.last_read_end = None;
    }
}
