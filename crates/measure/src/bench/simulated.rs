//! The ways of access on a simulated cluster, in virtual time.

use sieve::model::{CopyCost, Device, MapCost, RequestCost};
use sieve::{Access, Adaptive, FileView, Group, Method, Profile, Request, Warmth, aggregate};
use stripes::{Cluster, Simulation, expected};

use super::{Cell, Lane, Turn, Work};
use crate::error::{Error, Result};
use crate::price;
use crate::way::Way;

/// How many blocks are simulated for a cell at most: what comes behind is more of the same.
const BLOCKS_MAX: u64 = 100_000;

/// Which cluster is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// The thesis's own cluster.
    Wr,
    /// The porting system of DKRZ.
    Dkrz,
}

impl Model {
    /// The cluster of this kind with so many servers and such stripes.
    #[must_use]
    pub fn cluster(self, servers: u32, stripe_bytes: u64) -> Cluster {
        match self {
            Model::Wr => Cluster::wr(servers, stripe_bytes),
            Model::Dkrz => Cluster::dkrz(servers, stripe_bytes),
        }
    }

    /// Its name, as the command line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Model::Wr => "wr",
            Model::Dkrz => "dkrz",
        }
    }
}

/// What the cost model has to know of a cluster. What a seek costs depends on the distance; here
/// it is the shortest, as of blocks that follow each other.
#[must_use]
pub fn profile(cluster: &Cluster) -> Profile {
    let copy_byte_ns = 1e9 / cluster.copy_bandwidth;
    let one_server = cluster.disk.bandwidth.min(cluster.network.bandwidth);
    // More servers than fill the client's link bring nothing.
    let useful = (cluster.network.bandwidth / one_server).ceil() as u32;
    let servers = cluster.servers.min(useful).max(1);
    let request =
        RequestCost { call_ns: cluster.call_s * 1e9, page_ns: 0.0, byte_ns: copy_byte_ns };
    let way_s = 2.0 * cluster.network.latency_s + cluster.disk.request_s;
    Profile {
        read: request,
        write: request,
        device: Device {
            latency_ns: (way_s + cluster.disk.seek_min_s) * 1e9,
            byte_ns: 1e9 / one_server,
            in_flight_max: cluster.rpcs_in_flight.max(1),
            unit_bytes: 1,
            read_ahead_bytes: cluster.read_ahead_bytes,
            servers,
            stripe_bytes: cluster.stripe_bytes,
            write_behind: false,
        },
        copy: CopyCost {
            block_ns: 2.0,
            byte_ns: copy_byte_ns,
            far_byte_ns: copy_byte_ns,
            cache_bytes: 1 << 20,
        },
        // There is none.
        map: MapCost::default(),
        vector_entry_ns: 0.0,
        lock_ns: 2.0 * (cluster.lock_s + 2.0 * cluster.network.latency_s) * 1e9,
        page_bytes: 4096,
    }
}

/// One way of access on a cluster.
#[derive(Debug)]
pub struct SimulatedLane {
    way: Way,
    model: Model,
    stage: Option<Stage>,
}

#[derive(Debug)]
struct Stage {
    cell: Cell,
    work: Work,
    cluster: Cluster,
    view: FileView,
    total: u64,
    expected_byte_s: Option<f64>,
}

impl SimulatedLane {
    /// A way on a cluster of a kind; cells say how many servers it has.
    #[must_use]
    pub fn new(way: Way, model: Model) -> Self {
        Self { way, model, stage: None }
    }

    fn failed(&self, what: &str) -> Error {
        Error::Lane { lane: self.way.name().to_owned(), what: what.to_owned() }
    }
}

impl Lane for SimulatedLane {
    fn name(&self) -> &str {
        self.way.name()
    }

    fn begin(&mut self, cell: &Cell, work: &Work) -> Result<()> {
        if cell.servers == 0 || cell.warmth == Warmth::Warm {
            return Err(self.failed("a simulated file is never in a cache"));
        }
        let cluster = self.model.cluster(cell.servers, cell.stripe_bytes);
        let total = cell.data_in(work.file_bytes).min(BLOCKS_MAX.saturating_mul(cell.data));
        let view = cell.view()?;
        // The thesis's formula is about blocks by themselves; the cost model knows the others.
        let rate = match cell.access {
            Access::Read => expected::read(&cluster, cell.data, cell.hole),
            Access::Write => expected::write(&cluster, cell.data),
        };
        let expected_byte_s = match self.way {
            Way::Naive => Some(1.0 / rate),
            _ if total == 0 => None,
            _ => {
                let len = total.min(work.call_in(cell));
                let request = request(cell, 0..len);
                let price = price::price(self.way, &profile(&cluster), &view, &request)?;
                Some(price.total_ns() * 1e-9 / len as f64)
            }
        };
        self.stage =
            Some(Stage { cell: *cell, work: *work, cluster, view, total, expected_byte_s });
        Ok(())
    }

    fn turn(&mut self, _first_call: u64) -> Result<Turn> {
        let Some(stage) = &self.stage else {
            return Err(self.failed("no cell was begun"));
        };
        if stage.total == 0 {
            return Err(self.failed("the file has no room for a block"));
        }
        let mut simulation = Simulation::new(stage.cluster.clone());
        let known = profile(&stage.cluster);
        // What is learned is learned within one turn, which is one run of a program.
        let mut adaptive = Adaptive::new(known)?;
        let mut done = 0;
        while done < stage.total && simulation.now_s() < stage.work.seconds {
            let end = (done + stage.work.call_in(&stage.cell)).min(stage.total);
            let request = request(&stage.cell, done..end);
            match self.way.function(&known, Warmth::Cold) {
                Some(mut function) => {
                    let (len, buffer) = (end - done, stage.cell.buffer_bytes);
                    let access = stage.cell.access;
                    let groups = aggregate::Groups::new(
                        &stage.view,
                        access,
                        done,
                        len,
                        buffer,
                        function.as_mut(),
                    )?;
                    for group in groups {
                        carry_out(&mut simulation, &stage.view, access, &[group?], 1)?;
                    }
                }
                None => adapt(&mut simulation, &mut adaptive, &stage.view, request)?,
            }
            done = end;
        }
        simulation.flush();
        Ok(Turn::new(done, simulation.now_s()))
    }

    fn expected_byte_s(&self) -> Option<f64> {
        self.stage.as_ref().and_then(|stage| stage.expected_byte_s)
    }
}

fn request(cell: &Cell, data: std::ops::Range<u64>) -> Request {
    let mut request = Request::new(cell.access, data, cell.buffer_bytes);
    request.warmth = Warmth::Cold;
    // The file system has no vectored requests.
    request.vectored = false;
    request
}

fn adapt(
    simulation: &mut Simulation,
    adaptive: &mut Adaptive,
    view: &FileView,
    mut request: Request,
) -> Result<()> {
    while !request.data.is_empty() {
        let plan = adaptive.plan(view, &request)?;
        let groups: Vec<Group> = plan.groups.collect();
        let start_s = simulation.now_s();
        carry_out(simulation, view, request.access, &groups, plan.in_flight)?;
        adaptive.observe(&plan.prediction, (simulation.now_s() - start_s) * 1e9);
        request.data.start += plan.data_len;
    }
    Ok(())
}

/// Does groups as an executor would.
fn carry_out(
    simulation: &mut Simulation,
    view: &FileView,
    access: Access,
    groups: &[Group],
    in_flight: u32,
) -> Result<()> {
    // Reads that may be under way together wait until a group comes that cannot join them.
    let mut together: Vec<(u64, u64)> = Vec::new();
    let in_flight = in_flight.max(1) as usize;
    for group in groups {
        let span = (group.file.start, group.file_len());
        match (access, group.method) {
            (Access::Read, Method::Each) => {
                for block in view.blocks(group.data.start, group.data_len())? {
                    together.push((block.file, block.len));
                }
            }
            (Access::Read, _) => {
                together.push(span);
                simulation.copy(group.data_len());
            }
            (Access::Write, Method::Each) => {
                for block in view.blocks(group.data.start, group.data_len())? {
                    simulation.write(block.file, block.len);
                }
            }
            (Access::Write, _) => simulation.locked(|simulation| {
                simulation.read(span.0, span.1);
                simulation.copy(group.data_len());
                simulation.write(span.0, span.1);
            }),
        }
    }
    simulation.read_many(&together, in_flight);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: Work = Work::new(256 << 20, 8 << 20, 100.0);

    fn byte_s(way: Way, access: Access, data: u64, hole: u64) -> f64 {
        let cell = Cell {
            access,
            warmth: Warmth::Cold,
            data,
            hole,
            displacement: hole,
            buffer_bytes: 4 << 20,
            servers: 2,
            stripe_bytes: 2 << 20,
        };
        let mut lane = SimulatedLane::new(way, Model::Wr);
        lane.begin(&cell, &WORK).unwrap();
        let turn = lane.turn(0).unwrap();
        assert_eq!(turn, lane.turn(0).unwrap(), "virtual time does not depend on the machine");
        turn.byte_s()
    }

    #[test]
    fn the_ways_differ_as_in_the_thesis() {
        // §5.3.4: sieving pays for small holes and harms for large ones.
        for access in [Access::Read, Access::Write] {
            let of = |way| byte_s(way, access, 100_000, 2_000_000);
            assert!(of(Way::Naive) < of(Way::Romio), "{access:?}");
        }
        assert!(
            byte_s(Way::Romio, Access::Write, 8, 100)
                < 0.5 * byte_s(Way::Naive, Access::Write, 8, 100)
        );
    }

    #[test]
    fn a_real_file_is_none_of_its_business() {
        let mut lane = SimulatedLane::new(Way::Naive, Model::Dkrz);
        assert!(lane.begin(&crate::bench::tests::cell(8, 8), &WORK).is_err());
        assert!(lane.turn(0).is_err());
    }
}
