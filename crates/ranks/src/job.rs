//! Who is what in a job.

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::OwnedFd;

use mpi::{Comm, Mpi};

use crate::post::MpiPost;
use crate::relay::{Clients, Parting, Relay, Services};
use crate::{Control, Error, Result};

/// What a rank tells the others of itself, in so many bytes: [`MAGIC`], role, length of the name, name.
const RECORD_BYTES: usize = 64;
/// Changes with whatever ranks say to each other.
const MAGIC: &[u8; 8] = b"sluice-1";
const NAME_AT: usize = MAGIC.len() + 2;
const NAME_BYTES_MAX: usize = 48;

/// The name of a service in its job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ServiceName(String);

impl ServiceName {
    /// Accepts 1 to 48 letters, digits, `-`, `_` and `.`; not digits only, because those are a rank's
    /// number.
    ///
    /// # Errors
    /// [`Error::ServiceName`].
    pub fn new(name: &str) -> Result<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
        if !fits || !name.bytes().all(allowed) || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::ServiceName { name: name.to_owned() });
        }
        Ok(Self(name.to_owned()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a process is in the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// It serves.
    Service(ServiceName),
    /// It is ours and runs a program that does not know of the job.
    Agent,
    /// It is a program that uses MPI itself. Those that give the same text share their
    /// MPI_COMM_WORLD; at most 48 bytes of it count.
    Program(String),
}

impl Role {
    fn number(&self) -> u8 {
        match self {
            Role::Service(_) => 1,
            Role::Agent => 2,
            Role::Program(_) => 3,
        }
    }

    fn name(&self) -> &[u8] {
        match self {
            Role::Service(name) => name.0.as_bytes(),
            Role::Agent => b"",
            Role::Program(world) => &world.as_bytes()[..world.len().min(NAME_BYTES_MAX)],
        }
    }

    fn record(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        let name = self.name();
        record[..MAGIC.len()].copy_from_slice(MAGIC);
        record[MAGIC.len()] = self.number();
        record[MAGIC.len() + 1] = name.len() as u8;
        record[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
        record
    }

    fn parse(record: &[u8]) -> Option<Self> {
        let rest = record.strip_prefix(MAGIC)?;
        let (role, length) = (*rest.first()?, usize::from(*rest.get(1)?));
        let name = String::from_utf8_lossy(rest.get(2..2 + length)?).into_owned();
        match role {
            1 => Some(Role::Service(ServiceName::new(&name).ok()?)),
            2 => Some(Role::Agent),
            3 => Some(Role::Program(name)),
            _ => None,
        }
    }
}

/// A service of the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its rank in the job.
    pub rank: u32,
    /// Its name.
    pub name: ServiceName,
}

/// A job that this process is part of.
pub struct Job {
    mpi: &'static Mpi,
    rank: u32,
    services: Vec<Member>,
    clients: BTreeSet<u32>,
    private: Comm,
    world: Option<Comm>,
}

impl Job {
    /// Finds out who is what. Collective: every rank of the job calls it, after MPI_Init and before
    /// anything else.
    ///
    /// # Errors
    /// [`Error::Mpi`]; [`Error::Stranger`] and [`Error::SameName`], on all ranks.
    pub fn join(mpi: &'static Mpi, role: &Role) -> Result<Self> {
        let everyone = mpi.constants().comm_world;
        let private = mpi.duplicate(everyone)?;
        mpi.name_comm(private, c"sluice");
        // A rank that is gone is then an error of the connections to it, not the end of all.
        mpi.return_errors(private)?;
        let records = mpi.gather_all(private, &role.record())?;
        let roles = roles(&records)?;
        let services = services(&roles)?;
        let clients = roles.iter().zip(0..).filter(|(role, _)| !matches!(role, Role::Service(_)));
        let clients = clients.map(|(_, rank)| rank).collect();
        let world = mpi.split(everyone, color(&roles, role))?;
        Ok(Self { mpi, rank: mpi.rank(private)?, services, clients, private, world })
    }

    /// The services, by rank.
    #[must_use]
    pub fn services(&self) -> &[Member] {
        &self.services
    }

    /// How many ranks are clients.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.clients.len()
    }

    /// This process's rank in the job.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// What stands for MPI_COMM_WORLD in a program; `None` in services and agents.
    #[must_use]
    pub fn world(&self) -> Option<Comm> {
        self.world
    }

    /// Carries the connections of all clients, until they have all said goodbye. Each is given to `adopt`
    /// as a connected stream socket; a client whose connection it refuses sees it closed.
    ///
    /// After [`Control::end`] connections end and are refused. The clients' goodbyes are waited for all the
    /// same: MPI_Finalize needs them.
    ///
    /// # Errors
    /// [`Error::Mpi`], [`Error::System`].
    pub fn serve(&self, control: &Control, adopt: &mut dyn FnMut(OwnedFd) -> bool) -> Result<()> {
        let side =
            Services { adopt, clients: self.clients.clone(), remaining: self.clients.clone() };
        Relay::new(self.post(), control).serve(side)
    }

    /// Listens on the sockets of all services, by name and by rank, and carries the connections of this
    /// rank's programs, until [`Control::end`]. Then says goodbye and waits for the other clients to do
    /// so. `ready` is called when all sockets listen.
    ///
    /// # Errors
    /// [`Error::Mpi`], [`Error::System`], [`Error::SocketsTaken`].
    pub fn attend(
        &self,
        sockets: &str,
        control: &Control,
        ready: impl FnOnce(),
    ) -> Result<Parting> {
        let side = Clients::listen(sockets, &self.services)?;
        ready();
        Relay::new(self.post(), control).attend(side)
    }

    fn post(&self) -> MpiPost {
        MpiPost::new(self.mpi, self.private)
    }

    /// Gives the communicators back. Collective, before MPI_Finalize.
    pub fn leave(self) {
        if let Some(world) = self.world {
            self.mpi.free_comm(world);
        }
        self.mpi.free_comm(self.private);
    }
}

fn roles(records: &[u8]) -> Result<Vec<Role>> {
    let each = records.chunks(RECORD_BYTES).zip(0..);
    each.map(|(record, rank)| Role::parse(record).ok_or(Error::Stranger { rank })).collect()
}

fn services(roles: &[Role]) -> Result<Vec<Member>> {
    let mut services: Vec<Member> = Vec::new();
    for (role, rank) in roles.iter().zip(0..) {
        let Role::Service(name) = role else { continue };
        if let Some(first) = services.iter().find(|service| service.name == *name) {
            let (name, first) = (name.to_string(), first.rank);
            return Err(Error::SameName { name, first, second: rank });
        }
        services.push(Member { rank, name: name.clone() });
    }
    Ok(services)
}

/// Programs of one world have the color of the first of them.
fn color(roles: &[Role], own: &Role) -> Option<u32> {
    let Role::Program(_) = own else { return None };
    let own = Role::parse(&own.record())?;
    roles.iter().position(|role| *role == own).and_then(|rank| u32::try_from(rank).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> Role {
        Role::Service(ServiceName::new(name).unwrap())
    }

    #[test]
    fn a_name_is_no_rank_and_fits_a_record() {
        assert!(ServiceName::new("data-1.x_y").is_ok());
        for wrong in ["", "17", "a/b", "a b", "ä", &"x".repeat(49)] {
            assert!(ServiceName::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn records_tell_who_is_what() {
        let long = "w".repeat(48);
        for role in [service("s"), Role::Agent, Role::Program(String::new()), Role::Program(long)] {
            assert_eq!(Role::parse(&role.record()), Some(role));
        }
        let mut records = Role::Agent.record().to_vec();
        records.extend([0; RECORD_BYTES]);
        assert!(matches!(roles(&records), Err(Error::Stranger { rank: 1 })));
    }

    #[test]
    fn two_services_of_one_name_are_refused() {
        let roles = [service("a"), Role::Agent, service("b"), service("a")];
        assert!(matches!(services(&roles), Err(Error::SameName { first: 0, second: 3, .. })));
        assert_eq!(services(&roles[..3]).unwrap().len(), 2);
    }

    #[test]
    fn programs_share_a_world_by_its_name() {
        let (ocean, air) = (Role::Program("ocean".into()), Role::Program("air".into()));
        let roles = [service("a"), air.clone(), ocean.clone(), air.clone(), ocean.clone()];
        assert_eq!(color(&roles, &air), Some(1));
        assert_eq!(color(&roles, &ocean), Some(2));
        assert_eq!(color(&roles, &roles[0]), None);
    }
}
