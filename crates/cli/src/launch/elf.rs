//! What the kernel and the dynamic loader will do with an executable file.
//!
//! # Source
//! elf(5), ld.so(8); `struct Elf64_Ehdr`, `struct Elf64_Phdr` of `<elf.h>`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What an executable is, as far as preloading goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// An ELF file.
    Elf(Elf),
    /// A script and the words of its `#!` line: interpreter and at most one argument.
    Script {
        /// Absolute or relative path, as written.
        interpreter: Vec<u8>,
        /// The rest of the line.
        argument: Option<Vec<u8>>,
    },
    /// Neither: the kernel refuses it and execvp(3) hands it to /bin/sh.
    Other,
}

/// The few facts of an ELF header that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elf {
    /// 1: 32 bits, 2: 64 bits (`EI_CLASS`).
    pub(crate) class: u8,
    /// Machine (`e_machine`).
    pub(crate) machine: u16,
    /// `e_type`: 2 executable, 3 position-independent or shared object.
    pub(crate) kind: u16,
    /// The dynamic loader (`PT_INTERP`); a static program has none.
    pub(crate) loader: Option<Vec<u8>>,
    /// Whether there is a dynamic section (`PT_DYNAMIC`).
    pub(crate) dynamic: bool,
}

/// `e_machine` of this build.
pub(crate) const OWN_MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
/// `EI_CLASS` of 64-bit files.
pub(crate) const CLASS_64: u8 = 2;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
/// The longest `#!` line that the kernel reads (`BINPRM_BUF_SIZE`, linux/binfmts.h).
const SCRIPT_LINE_MAX: usize = 256;

/// The name of a machine, for messages.
pub(crate) fn machine_name(class: u8, machine: u16) -> String {
    match (class, machine) {
        (1, 62) => "x32".into(),
        (_, 3) => "32-bit x86".into(),
        (_, 40) => "32-bit ARM".into(),
        (_, 62) => "x86-64".into(),
        (_, 183) => "AArch64".into(),
        (_, 243) => "RISC-V".into(),
        (_, other) => format!("machine {other}"),
    }
}

impl Image {
    /// Looks into a file.
    ///
    /// # Errors
    /// When it cannot be read. A malformed ELF file is [`Image::Other`], as it is for the kernel.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let mut head = [0; SCRIPT_LINE_MAX];
        let len = read_some(file, &mut head, 0)?;
        let head = &head[..len];
        if head.starts_with(b"\x7fELF") {
            return Ok(parse_elf(file, head)?.map_or(Self::Other, Self::Elf));
        }
        Ok(head.strip_prefix(b"#!").and_then(parse_script).unwrap_or(Self::Other))
    }
}

fn parse_script(line: &[u8]) -> Option<Image> {
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    let argument = argument.trim_ascii();
    if interpreter.is_empty() {
        return None;
    }
    let argument = (!argument.is_empty()).then(|| argument.to_vec());
    Some(Image::Script { interpreter: interpreter.to_vec(), argument })
}

fn parse_elf(file: &File, head: &[u8]) -> io::Result<Option<Elf>> {
    let (class, little) = match (head.get(4), head.get(5)) {
        (Some(class @ 1..=2), Some(order @ 1..=2)) => (*class, *order == 1),
        _ => return Ok(None),
    };
    let wide = class == CLASS_64;
    let word = |bytes: &[u8], at: usize, len: usize| -> Option<u64> {
        let field = bytes.get(at..at + len)?;
        let fold = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
        Some(if little { field.iter().rev().fold(0, fold) } else { field.iter().fold(0, fold) })
    };
    let header = || {
        let kind = word(head, 16, 2)?;
        let machine = word(head, 18, 2)?;
        // e_phoff, e_phentsize and e_phnum lie behind fields whose width depends on the class.
        let (offset, sizes_at) =
            if wide { (word(head, 32, 8)?, 54) } else { (word(head, 28, 4)?, 42) };
        Some((
            kind as u16,
            machine as u16,
            offset,
            word(head, sizes_at, 2)?,
            word(head, sizes_at + 2, 2)?,
        ))
    };
    let Some((kind, machine, table_at, entry_len, count)) = header() else {
        return Ok(None);
    };
    let mut elf = Elf { class, machine, kind, loader: None, dynamic: false };
    let mut entry = [0; 56];
    let needed = if wide { 56 } else { 32 };
    if (entry_len as usize) < needed {
        return Ok(None);
    }
    for index in 0..count {
        let Some(at) = table_at.checked_add(index * entry_len) else {
            return Ok(None);
        };
        if read_some(file, &mut entry[..needed], at)? < needed {
            return Ok(None);
        }
        let field = |narrow_at: usize, wide_at: usize| {
            let at = if wide { wide_at } else { narrow_at };
            word(&entry, at, if wide { 8 } else { 4 }).unwrap_or(0)
        };
        match word(&entry, 0, 4).unwrap_or(0) as u32 {
            PT_DYNAMIC => elf.dynamic = true,
            PT_INTERP => {
                let (offset, len) = (field(4, 8), field(16, 32).min(4096));
                let mut loader = vec![0; len as usize];
                let len = read_some(file, &mut loader, offset)?;
                loader.truncate(len);
                while loader.last() == Some(&0) {
                    loader.pop();
                }
                elf.loader = Some(loader);
            }
            _ => {}
        }
    }
    Ok(Some(elf))
}

/// Fills `buffer` from `at`, short only at the end of the file.
fn read_some(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // An offset past what a file can have is the end of the file, not trouble.
            Err(error) if error.raw_os_error() == Some(22) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(bytes: &[u8]) -> Image {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        Image::read(&File::open(file.path()).unwrap()).unwrap()
    }

    #[test]
    fn scripts_name_their_interpreter() {
        let script = |line: &str| match image(line.as_bytes()) {
            Image::Script { interpreter, argument } => Some((
                String::from_utf8(interpreter).unwrap(),
                argument.map(|argument| String::from_utf8(argument).unwrap()),
            )),
            _ => None,
        };
        assert_eq!(script("#!/bin/sh\necho"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            script("#! /usr/bin/env python3 -u \nx"),
            Some(("/usr/bin/env".into(), Some("python3 -u".into())))
        );
        assert_eq!(script("#!\n"), None);
        assert_eq!(script("echo"), None);
        assert_eq!(script(""), None);
    }

    #[test]
    fn this_very_program_has_a_loader() {
        let own = File::open(std::env::current_exe().unwrap()).unwrap();
        let Image::Elf(elf) = Image::read(&own).unwrap() else { panic!("no ELF file") };
        assert_eq!((elf.class, elf.machine), (CLASS_64, OWN_MACHINE));
        assert!(elf.dynamic && elf.loader.is_some_and(|loader| loader.starts_with(b"/")));
    }

    #[test]
    fn broken_headers_are_no_elf_files() {
        let mut own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        own.truncate(4096);
        for len in [4, 6, 20, 63, 100] {
            assert_eq!(image(&own[..len]), Image::Other, "{len}");
        }
        for (at, bytes) in [(32, [0xff; 8]), (32, [0x7f; 8])] {
            let mut lying = own.clone();
            lying[at..at + 8].copy_from_slice(&bytes);
            assert_eq!(image(&lying), Image::Other);
        }
    }
}
