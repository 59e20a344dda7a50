//! What is done with calls about coupled files that move no data.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exchange::{CycleEnd, Memory, Role, Slab, Type};
use mpi::Mpi;

use crate::codes;
use crate::definition::{FILL_VALUE, check};
use crate::failure::{Code, answer};
use crate::group::Ranks;
use crate::handed;
use crate::header::Private;
use crate::inside::Inside;
use crate::open::{Fills, Notes, OpenFile, Phase, Side};
use crate::requests::Requests;
use crate::{files, library, process};

type Shared = Arc<Mutex<OpenFile>>;

fn lock(file: &Shared) -> MutexGuard<'_, OpenFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `ncmpi_create`.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn create(
    comm: usize,
    path: *const c_char,
    mode: c_int,
    info: usize,
    ncid: *mut c_int,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((name, Role::Writer)) = (unsafe { process::role(path, true) }) else { return pass() };
    answer(|| {
        if mode & codes::NC_NETCDF4 != 0 {
            let sentence = format!(
                "`{name}` is exchanged with other programs, which files in the format of netCDF-4 cannot be: create it as a classic or CDF-5 one"
            );
            return Err(Code::explained(codes::NC_ENOTSUPPORT, sentence));
        }
        let _inside = Inside::enter();
        // SAFETY: the caller's promise.
        let ranks = unsafe { Ranks::of(comm)? };
        let written = process::exchange()?.create(&name, &ranks)?;
        let side = Side::Writer(written);
        if let Side::Writer(written) = &side
            && written.is_file()
        {
            // SAFETY: the caller's promise: a place that holds the number when the call has succeeded.
            return unsafe { handed::opened(side, ranks, ncid, pass) };
        }
        let private = Private::new()?;
        let mut number = -1;
        // SAFETY: a communicator of this process alone, a name, and room for a number.
        check(unsafe {
            let (own, path) = (own_communicator()?, private.name());
            library::create(own, path.as_ptr(), mode & !codes::NC_NOCLOBBER, info, &mut number)
        })?;
        let file = OpenFile::new(name, number, private, ranks, side, Phase::Define);
        files::add(number, file);
        // SAFETY: the caller's promise.
        unsafe { ncid.write(number) };
        Ok(())
    })
}

/// `ncmpi_open`.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn open(
    comm: usize,
    path: *const c_char,
    mode: c_int,
    info: usize,
    ncid: *mut c_int,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    let is_writable = mode & codes::NC_WRITE != 0;
    // SAFETY: the caller's promise.
    let (role, writes) = unsafe { (process::role(path, false), process::role(path, true)) };
    let Some((name, Role::Reader)) = role else {
        return match writes {
            Some((name, Role::Writer)) if is_writable => answer(|| Err(written_again(&name))),
            _ => pass(),
        };
    };
    answer(|| {
        let _inside = Inside::enter();
        // SAFETY: the caller's promise.
        let ranks = unsafe { Ranks::of(comm)? };
        let wanted = process::exchange()?.open(&name, &ranks)?;
        if wanted.is_file() {
            // SAFETY: the caller's promise: a place that holds the number when the call has succeeded.
            return unsafe { handed::opened(Side::Reader(wanted), ranks, ncid, pass) };
        }
        let (header, _) = Notes::split(wanted.header());
        let private = Private::holding(header, wanted.format(), wanted.records())?;
        let mut number = -1;
        // SAFETY: a communicator of this process alone, a name, and room for a number.
        check(unsafe {
            let (own, path) = (own_communicator()?, private.name());
            library::open(own, path.as_ptr(), mode & !codes::NC_WRITE, info, &mut number)
        })?;
        let records = wanted.records();
        let variables = wanted.variables().to_vec();
        let side = Side::Reader(wanted);
        let mut file = OpenFile::new(name, number, private, ranks, side, Phase::Collective);
        if let Err(code) = file.learn() {
            // SAFETY: the file that was just opened.
            unsafe { library::close(number) };
            return Err(code);
        }
        // What is filled is not in the header.
        file.definition.variables = variables;
        file.records = records;
        files::add(number, file);
        // SAFETY: the caller's promise.
        unsafe { ncid.write(number) };
        Ok(())
    })
}

fn written_again(name: &str) -> Code {
    let sentence = format!(
        "`{name}` is exchanged with other programs: it can be created anew, but not be opened to be written"
    );
    Code::explained(codes::NC_ENOTSUPPORT, sentence)
}

fn own_communicator() -> Result<usize, Code> {
    let mpi = Mpi::find().map_err(|error| Code::explained(codes::NC_EFILE, error.to_string()))?;
    Ok(mpi.constants().comm_self.word())
}

impl OpenFile {
    fn new(
        name: String,
        ncid: c_int,
        private: Private,
        ranks: Ranks,
        side: Side,
        phase: Phase,
    ) -> OpenFile {
        let cycle_end = process::cycle_end(&name);
        let is_patient = process::is_lent(&name);
        OpenFile {
            name,
            ncid,
            private,
            ranks,
            side,
            phase,
            definition: crate::definition::Definition::default(),
            defined: Vec::new(),
            fills: Fills::default(),
            records: 0,
            requests: Requests::default(),
            notes: Notes::default(),
            kept: Vec::new(),
            cycle_end,
            is_patient,
            put_bytes: 0,
            got_bytes: 0,
        }
    }

    /// A call that only who writes may make.
    fn writable(&self) -> Result<(), Code> {
        match self.side {
            Side::Writer(_) => Ok(()),
            Side::Reader(_) => Err(Code(codes::NC_EPERM)),
        }
    }
}

/// Makes PnetCDF's call, and then does what is ours.
fn then(
    file: &Shared,
    pass: impl FnOnce() -> c_int,
    work: impl FnOnce(&mut OpenFile) -> Result<(), Code>,
) -> c_int {
    answer(|| {
        let mut file = lock(file);
        let _inside = Inside::enter();
        check(pass())?;
        work(&mut file)
    })
}

/// `ncmpi_enddef`, `ncmpi__enddef`.
pub(crate) fn enddef(file: &Shared, pass: impl FnOnce() -> c_int) -> c_int {
    then(file, pass, |file| {
        file.phase = Phase::Collective;
        file.learn()?;
        file.define()
    })
}

/// `ncmpi_redef`.
pub(crate) fn redef(file: &Shared, pass: impl FnOnce() -> c_int) -> c_int {
    then(file, pass, |file| {
        file.phase = Phase::Define;
        Ok(())
    })
}

/// `ncmpi_begin_indep_data`.
pub(crate) fn begin_independent(file: &Shared, pass: impl FnOnce() -> c_int) -> c_int {
    then(file, pass, |file| {
        file.phase = Phase::Independent;
        Ok(())
    })
}

/// `ncmpi_end_indep_data`, after which all ranks know how many records there are.
pub(crate) fn end_independent(file: &Shared, pass: impl FnOnce() -> c_int) -> c_int {
    then(file, pass, |file| {
        file.phase = Phase::Collective;
        file.agree_on_records()
    })
}

/// `ncmpi_sync` and, without ending a cycle, `ncmpi_flush`: what is written afterwards is newer than what any rank wrote before.
pub(crate) fn synchronise(file: &Shared, ends_cycle: bool) -> c_int {
    answer(|| {
        let mut file = lock(file);
        if file.phase == Phase::Define {
            return Err(Code(codes::NC_EINDEFINE));
        }
        if ends_cycle && file.cycle_end == CycleEnd::Sync {
            return file.transfer();
        }
        file.agree_on_records()?;
        if let Side::Writer(written) = &mut file.side {
            written.synchronise()?;
        }
        Ok(())
    })
}

/// `ncmpi_sync_numrecs`.
pub(crate) fn sync_records(file: &Shared) -> c_int {
    answer(|| {
        let mut file = lock(file);
        if file.phase == Phase::Define {
            return Err(Code(codes::NC_EINDEFINE));
        }
        file.agree_on_records()
    })
}

/// `ncmpi_close`.
pub(crate) fn close(ncid: c_int, pass: impl FnOnce() -> c_int) -> c_int {
    let Some(file) = files::take(ncid) else { return handed::close(ncid, pass) };
    answer(|| {
        let mut file = owned(file)?;
        let _inside = Inside::enter();
        let mut status = Ok(());
        if !file.requests.is_empty() {
            status = Err(Code(codes::NC_EPENDING));
            file.requests.clear();
        }
        let ready = ready_to_close(&mut file);
        let OpenFile { side, ranks, private, records, kept, .. } = file;
        let closed = match side {
            Side::Writer(written) if ready.is_ok() => written.close(records),
            Side::Writer(written) => {
                written.abort();
                Ok(())
            }
            Side::Reader(wanted) => wanted.close(),
        };
        let code = pass();
        drop((kept, private));
        ranks.free();
        ready?;
        closed?;
        check(code)?;
        status
    })
}

/// A file that is closed in define mode leaves it first.
fn ready_to_close(file: &mut OpenFile) -> Result<(), Code> {
    if file.phase == Phase::Define {
        // SAFETY: an open file.
        check(unsafe { library::enddef(file.ncid) })?;
        file.phase = Phase::Collective;
        file.learn()?;
    }
    file.agree_on_records()?;
    file.define()
}

fn owned(file: Shared) -> Result<OpenFile, Code> {
    let file = Arc::try_unwrap(file).map_err(|_| {
        let sentence = "a file is closed while another thread uses it".to_owned();
        Code::explained(codes::NC_EPERM, sentence)
    })?;
    Ok(file.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// `ncmpi_abort`: a file that was never defined is given up. Any other is closed, as PnetCDF does, without what was defined
/// after `redef`.
pub(crate) fn abort(ncid: c_int, pass: impl FnOnce() -> c_int) -> c_int {
    let Some(file) = files::take(ncid) else { return handed::close(ncid, pass) };
    answer(|| {
        let mut file = owned(file)?;
        let _inside = Inside::enter();
        let is_new = file.phase == Phase::Define && file.defined.is_empty();
        let agreed = file.agree_on_records();
        let OpenFile { side, ranks, private, records, kept, .. } = file;
        let closed = match side {
            Side::Writer(written) if is_new => {
                written.abort();
                Ok(())
            }
            Side::Writer(written) => written.close(records),
            Side::Reader(wanted) => wanted.close(),
        };
        let code = pass();
        drop((kept, private));
        ranks.free();
        agreed?;
        closed?;
        check(code)
    })
}

/// `ncmpi_delete`: a file that is in memory only is gone already.
///
/// # Safety
/// The argument of the call.
pub(crate) unsafe fn delete(path: *const c_char, pass: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { process::is_carried(path) } { codes::NC_NOERR } else { pass() }
}

/// `ncmpi_inq_file_format`, which is told of a file that may not have been written yet.
///
/// # Safety
/// The argument of the call.
pub(crate) unsafe fn inq_file_format(path: *const c_char, pass: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    if !unsafe { process::is_carried(path) } {
        return pass();
    }
    answer(|| {
        let sentence = "the format of a file that another program writes is known when it is open: use ncmpi_inq_format";
        Err(Code::explained(codes::NC_ENOTSUPPORT, sentence.to_owned()))
    })
}

/// `ncmpi_set_fill`. PnetCDF is not told: it would fill its private file.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn set_fill(file: &Shared, mode: c_int, old: *mut c_int) -> c_int {
    answer(|| {
        let mut file = lock(file);
        file.writable()?;
        if file.phase != Phase::Define {
            return Err(Code(codes::NC_ENOTINDEFINE));
        }
        let fills = match mode {
            codes::NC_FILL => true,
            codes::NC_NOFILL => false,
            _ => return Err(Code(codes::NC_EINVAL)),
        };
        if !old.is_null() {
            let before = if file.fills.mode { codes::NC_FILL } else { codes::NC_NOFILL };
            // SAFETY: the caller's promise.
            unsafe { old.write(before) };
        }
        file.fills.mode = fills;
        file.fills.variables.fill(fills);
        Ok(())
    })
}

/// `ncmpi_def_var`.
pub(crate) fn def_var(file: &Shared, pass: impl FnOnce() -> c_int) -> c_int {
    then(file, pass, |file| {
        let fills = file.fills.mode;
        file.fills.variables.push(fills);
        Ok(())
    })
}

/// `ncmpi_def_var_fill`.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn def_var_fill(
    file: &Shared,
    varid: c_int,
    no_fill: c_int,
    value: *const c_void,
) -> c_int {
    answer(|| {
        let mut file = lock(file);
        file.writable()?;
        if file.phase != Phase::Define {
            return Err(Code(codes::NC_ENOTINDEFINE));
        }
        if varid == codes::NC_GLOBAL {
            return Err(Code(codes::NC_EGLOBAL));
        }
        let type_ = stored_type(file.ncid, varid)?;
        let fills = usize::try_from(varid).ok().and_then(|at| file.fills.variables.get_mut(at));
        *fills.ok_or(Code(codes::NC_ENOTVAR))? = no_fill == 0;
        if no_fill == 0 && !value.is_null() {
            // SAFETY: the caller's promise: a value of the variable's type.
            check(unsafe {
                let (name, number) = (FILL_VALUE.as_ptr(), type_.number());
                library::put_att(file.ncid, varid, name, number, 1, value)
            })?;
        }
        Ok(())
    })
}

fn stored_type(ncid: c_int, varid: c_int) -> Result<Type, Code> {
    let (mut xtype, nowhere) = (0, ptr::null_mut());
    // SAFETY: an open file and a number to fill; NULL is not filled.
    check(unsafe {
        library::inq_var(ncid, varid, ptr::null_mut(), &mut xtype, nowhere, nowhere, nowhere)
    })?;
    Type::from_number(xtype).ok_or(Code(codes::NC_EFILE))
}

/// `ncmpi_inq_var_fill`.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn inq_var_fill(
    file: &Shared,
    varid: c_int,
    no_fill: *mut c_int,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    then(file, pass, |file| {
        let fills = usize::try_from(varid).ok().and_then(|at| file.fills.variables.get(at));
        if let (Some(fills), false) = (fills, no_fill.is_null()) {
            // SAFETY: the caller's promise.
            unsafe { no_fill.write(c_int::from(!fills)) };
        }
        Ok(())
    })
}

/// `ncmpi_fill_var_rec`: older writes are overwritten, and newer ones overwrite it, whoever makes them.
pub(crate) fn fill_var_rec(file: &Shared, varid: c_int, record: i64) -> c_int {
    answer(|| {
        let mut file = lock(file);
        file.writable()?;
        match file.phase {
            Phase::Define => return Err(Code(codes::NC_EINDEFINE)),
            Phase::Independent => return Err(Code(codes::NC_EINDEP)),
            Phase::Collective => {}
        }
        let spec = file.variable(varid)?.clone();
        if !spec.has_records() {
            return Err(Code(codes::NC_ENOTRECVAR));
        }
        let value = spec.fill.ok_or(Code(codes::NC_ENOTFILL))?;
        let record = u64::try_from(record).map_err(|_| Code(codes::NC_EINVALCOORDS))?;
        let mut start = vec![0; spec.shape.len()];
        start[0] = record;
        let count: Vec<u64> = spec
            .shape
            .iter()
            .map(|length| match length {
                exchange::Length::Records => 1,
                exchange::Length::Fixed(length) => *length,
            })
            .collect();
        let slab = Slab::new(&start, &count).map_err(|_| Code(codes::NC_EINVALCOORDS))?;
        // One value in memory stands for all.
        let memory = Memory::mapped(&vec![0; count.len()]);
        let size = spec.type_.size_bytes();
        let is_first = exchange::Group::rank(&file.ranks) == 0;
        file.records = file.records.max(record + 1);
        file.agree_on_records()?;
        let file = &mut *file;
        let Side::Writer(written) = &mut file.side else { return Ok(()) };
        written.synchronise()?;
        if is_first && !slab.is_empty() {
            let value = value[..size].to_vec();
            let variable = exchange::Variable(varid.cast_unsigned());
            // SAFETY: the value is kept until this is settled.
            unsafe { written.write(variable, slab, memory, spec.type_, value.as_ptr(), size)? };
            file.kept.push(value);
        }
        written.synchronise()?;
        file.settle()
    })
}

/// `ncmpi_inq_dim`, `ncmpi_inq_dimlen`: PnetCDF knows of no record that was written elsewhere.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn inq_dim(
    file: &Shared,
    dimid: c_int,
    length: *mut i64,
    pass: impl FnOnce() -> c_int,
) -> c_int {
    then(file, pass, |file| {
        let (mut unlimited, nowhere) = (-1, ptr::null_mut());
        // SAFETY: an open file and a number to fill; NULL is not filled.
        check(unsafe { library::inq(file.ncid, nowhere, nowhere, nowhere, &mut unlimited) })?;
        if dimid == unlimited && !length.is_null() {
            file.follow();
            // SAFETY: the caller's promise.
            unsafe { length.write(file.records.cast_signed()) };
        }
        Ok(())
    })
}

/// `ncmpi_inq_path`: the name by which the program knows the file.
///
/// # Safety
/// The arguments of the call.
pub(crate) unsafe fn inq_path(file: &Shared, length: *mut c_int, path: *mut c_char) -> c_int {
    answer(|| {
        let file = lock(file);
        // SAFETY: the caller's promise: room for a number, and for the name that the program has given.
        unsafe {
            if !length.is_null() {
                length.write(c_int::try_from(file.name.len()).unwrap_or(c_int::MAX));
            }
            if !path.is_null() {
                ptr::copy_nonoverlapping(file.name.as_ptr().cast(), path, file.name.len());
                path.add(file.name.len()).write(0);
            }
        }
        Ok(())
    })
}

/// Questions that a number answers.
///
/// # Safety
/// Room for a number, or NULL.
pub(crate) unsafe fn inq_size(
    file: &Shared,
    size: *mut i64,
    of: impl FnOnce(&OpenFile) -> u64,
) -> c_int {
    answer(|| {
        if !size.is_null() {
            // SAFETY: the caller's promise.
            unsafe { size.write(of(&lock(file)).cast_signed()) };
        }
        Ok(())
    })
}

/// `ncmpi_inq_nreqs`.
///
/// # Safety
/// Room for a number, or NULL.
pub(crate) unsafe fn inq_requests(file: &Shared, number: *mut c_int) -> c_int {
    answer(|| {
        if !number.is_null() {
            let count = lock(file).requests.len();
            // SAFETY: the caller's promise.
            unsafe { number.write(c_int::try_from(count).unwrap_or(c_int::MAX)) };
        }
        Ok(())
    })
}

/// `ncmpi_buffer_attach`.
pub(crate) fn attach(file: &Shared, bytes: i64) -> c_int {
    answer(|| lock(file).requests.attach(bytes))
}

/// `ncmpi_buffer_detach`.
pub(crate) fn detach(file: &Shared) -> c_int {
    answer(|| lock(file).requests.detach())
}

/// `ncmpi_inq_buffer_usage`, `ncmpi_inq_buffer_size`.
///
/// # Safety
/// Room for a number.
pub(crate) unsafe fn inq_buffer(
    file: &Shared,
    bytes: *mut i64,
    of: impl FnOnce(&Requests) -> Result<u64, Code>,
) -> c_int {
    answer(|| {
        let answer = of(&lock(file).requests)?;
        if !bytes.is_null() {
            // SAFETY: the caller's promise.
            unsafe { bytes.write(answer.cast_signed()) };
        }
        Ok(())
    })
}
