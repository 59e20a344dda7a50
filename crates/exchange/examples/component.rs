//! A program of one rank that takes part in a coupled workflow without MPI and PnetCDF: for tests, and to try a configuration.
//!
//! ```console
//! $ sluice couple run --no-preload couple.toml    # command = ["component", "write", "a.nc", "10", "1000000"]
//! ```
//!
//! `write FILE CYCLES VALUES` and `read FILE CYCLES VALUES` hand over a variable of integers so often; `step READ WRITE CYCLES VALUES`
//! reads one file and writes another; `die` in place of a number of cycles ends the process by SIGKILL while the file is open.

use std::process::ExitCode;

use exchange::{
    Exchange, Fault, Format, Group, Length, Memory, Plan, Slab, Type, Variable, VariableSpec,
};

struct Alone;

impl Group for Alone {
    fn rank(&self) -> u32 {
        0
    }
    fn size(&self) -> u32 {
        1
    }
    fn gather_all(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        Ok(vec![mine.to_vec()])
    }
}

fn write(exchange: &Exchange, name: &str, values: &[i32]) -> Result<(), Fault> {
    let mut file = exchange.create(name, &Alone)?;
    let shape = vec![Length::Fixed(values.len() as u64)];
    let t = VariableSpec { name: "t".to_owned(), type_: Type::Int, shape, fill: None };
    file.define(b"", Format::Data64, vec![t])?;
    let all = Slab::all(&[values.len() as u64]);
    let memory = Memory::dense(&all).expect("it is small");
    // SAFETY: the values stay until the file is closed.
    unsafe {
        let address = values.as_ptr().cast();
        file.write(Variable(0), all, memory, Type::Int, address, size_of_val(values))?;
    }
    file.close(0)
}

fn read(exchange: &Exchange, name: &str, count: usize) -> Result<Vec<i32>, Fault> {
    let mut file = exchange.open(name, &Alone)?;
    let all = Slab::all(&[count as u64]);
    let memory = Memory::dense(&all).expect("it is small");
    let mut values = vec![0i32; count];
    // SAFETY: they are waited for before they are looked at.
    let token = unsafe {
        let address = values.as_mut_ptr().cast();
        file.read(Variable(0), all, memory, Type::Int, address, count * 4)?
    };
    file.wait(&[token]).remove(0)?;
    file.close()?;
    Ok(values)
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    unreachable!("nobody survives that")
}

fn run(words: &[String]) -> Result<(), Fault> {
    let plan = Plan::of_environment()
        .unwrap_or(Err(Fault::Environment { variable: Plan::CONFIGURATION }))?;
    let exchange = Exchange::join(plan)?;
    let count = words.last().and_then(|word| word.parse().ok()).unwrap_or(4);
    let cycles: Option<i32> = words.get(words.len().wrapping_sub(2)).and_then(|n| n.parse().ok());
    let mut value = 1;
    match (words.first().map(String::as_str), cycles) {
        (Some("write"), None) => {
            let _file = exchange.create(&words[1], &Alone)?;
            die();
        }
        (Some("read"), None) => {
            let _file = exchange.open(&words[1], &Alone)?;
            die();
        }
        (Some("write"), Some(cycles)) => {
            for cycle in 0..cycles {
                write(&exchange, &words[1], &vec![cycle; count])?;
            }
        }
        (Some("read"), Some(cycles)) => {
            for cycle in 0..cycles {
                let values = read(&exchange, &words[1], count)?;
                assert!(values.iter().all(|one| *one == cycle), "cycle {cycle}: {}", values[0]);
            }
        }
        (Some("start"), Some(cycles)) => {
            for _ in 0..cycles {
                write(&exchange, &words[1], &vec![value; count])?;
                value = read(&exchange, &words[2], count)?[count - 1];
            }
            println!("{value}");
        }
        (Some("step"), Some(cycles)) => {
            for _ in 0..cycles {
                value = read(&exchange, &words[1], count)?[0];
                write(&exchange, &words[2], &vec![value * 2; count])?;
            }
        }
        _ => panic!("write|read FILE CYCLES VALUES, or start|step FILE FILE CYCLES VALUES"),
    }
    for unread in exchange.leave() {
        eprintln!("{}: {}", unread.file, unread.why);
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{}", fault.report());
            ExitCode::from(3)
        }
    }
}
