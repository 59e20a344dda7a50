//! Groups of threads, and files of one variable of integers.

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use exchange::{
    Configuration, Exchange, Fault, Format, Group, Length, Memory, Plan, Slab, Type, Variable,
    VariableSpec, Wanted, Written,
};

/// What threads of a group have given.
struct Table {
    given: Mutex<Vec<Vec<u8>>>,
    barrier: Barrier,
}

/// One thread of a group.
#[derive(Clone)]
pub(crate) struct Thread {
    rank: u32,
    size: u32,
    table: Arc<Table>,
}

impl Group for Thread {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn gather_all(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        self.table.given.lock().unwrap()[self.rank as usize] = mine.to_vec();
        self.table.barrier.wait();
        let all = self.table.given.lock().unwrap().clone();
        self.table.barrier.wait();
        Ok(all)
    }
}

pub(crate) fn group(size: u32) -> Vec<Thread> {
    let given = Mutex::new(vec![Vec::new(); size as usize]);
    let table = Arc::new(Table { given, barrier: Barrier::new(size as usize) });
    (0..size).map(|rank| Thread { rank, size, table: table.clone() }).collect()
}

/// A meeting place, and what is agreed on.
pub(crate) struct Meet {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) configuration: Configuration,
}

impl Meet {
    pub(crate) fn new(configuration: &str) -> Self {
        let configuration = Configuration::parse(configuration, "couple.toml").unwrap();
        Self { directory: tempfile::tempdir().unwrap(), configuration }
    }

    pub(crate) fn plan(&self, component: &str) -> Plan {
        let plan = Plan::new(self.configuration.clone(), component, self.directory.path()).unwrap();
        plan.with_patience(Duration::from_secs(10))
    }

    pub(crate) fn join(&self, component: &str) -> Exchange {
        Exchange::join(self.plan(component)).unwrap()
    }

    /// Runs each rank of a component in a thread of its own; their answers by their ranks.
    pub(crate) fn ranks<T: Send>(
        &self,
        component: &str,
        size: u32,
        work: impl Fn(&Exchange, &Thread) -> T + Sync,
    ) -> Vec<T> {
        std::thread::scope(|scope| {
            let work = &work;
            let one = |thread: Thread| {
                scope.spawn(move || {
                    let exchange = self.join(component);
                    let answer = work(&exchange, &thread);
                    exchange.leave();
                    answer
                })
            };
            let all: Vec<_> = group(size).into_iter().map(one).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    /// The launcher says that a component has ended.
    pub(crate) fn ended(&self, component: u16, how: &str) {
        let path: &Path = self.directory.path();
        std::fs::create_dir_all(path.join("ended")).unwrap();
        std::fs::write(path.join(format!("ended/{component}")), how).unwrap();
    }
}

/// What tests call a header: exchange does not look into it.
pub(crate) const HEADER: &[u8] = b"CDF\x05 as the writers have it";

pub(crate) fn variable(name: &str, shape: &[u64]) -> VariableSpec {
    VariableSpec {
        name: name.to_owned(),
        type_: Type::Int,
        shape: shape.iter().map(|length| Length::Fixed(*length)).collect(),
        fill: None,
    }
}

pub(crate) fn define(file: &mut Written, variables: Vec<VariableSpec>) {
    file.define(HEADER, Format::Data64, variables).unwrap();
}

/// Writes integers, which stay where they are.
pub(crate) fn put(
    file: &mut Written,
    number: u32,
    slab: &Slab,
    values: &[i32],
) -> Result<u64, Fault> {
    let memory = Memory::dense(slab).unwrap();
    let bytes = size_of_val(values);
    // SAFETY: tests settle before they change or drop what they have written.
    let ranged = unsafe {
        let address = values.as_ptr().cast();
        file.write(Variable(number), slab.clone(), memory, Type::Int, address, bytes)
    };
    ranged.map(|ranged| ranged.0)
}

/// Reads integers, and waits for them.
pub(crate) fn get(file: &mut Wanted, number: u32, slab: &Slab) -> Result<Vec<i32>, Fault> {
    let memory = Memory::dense(slab).unwrap();
    let mut values = vec![-1i32; slab.elements() as usize];
    let bytes = size_of_val(values.as_slice());
    // SAFETY: they are waited for before they are looked at.
    let token = unsafe {
        let address = values.as_mut_ptr().cast();
        file.read(Variable(number), slab.clone(), memory, Type::Int, address, bytes)?
    };
    file.wait(&[token]).remove(0)?;
    Ok(values)
}

pub(crate) fn slab(start: &[u64], count: &[u64]) -> Slab {
    Slab::new(start, count).unwrap()
}
