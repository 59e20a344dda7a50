//! `sluice mkdir` and `sluice rm`.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Mkdir, Rm};
use crate::place::{Outcome, Place, Places};
use crate::report::Failures;

/// Makes directories.
pub(crate) fn mkdir(args: &Mkdir, places: &Places) -> Result<ExitCode> {
    let mut failures = Failures::new("make the directory");
    for text in &args.places {
        match places.find(text) {
            Ok(place) if args.parents => {
                if let Err((place, trouble)) = make_all(&place) {
                    failures.add(&place, &trouble);
                }
            }
            Ok(place) => {
                if let Err(trouble) = place.make_directory(0o777) {
                    failures.add(&place, &trouble);
                }
            }
            Err(error) => failures.add_error(&error),
        }
    }
    Ok(failures.exit_code())
}

/// Makes a directory and those above it that are missing; says which one failed.
pub(crate) fn make_all(place: &Place) -> std::result::Result<(), (Place, crate::place::Trouble)> {
    let trouble = match place.make_directory(0o777) {
        Ok(()) => return Ok(()),
        Err(trouble) => trouble,
    };
    if trouble.is_missing()
        && let Some(parent) = place
            .parent()
            .filter(|parent| parent.to_bytes() != place.to_bytes())
    {
        make_all(&parent)?;
        match place.make_directory(0o777) {
            Ok(()) => return Ok(()),
            // Somebody else was faster.
            Err(trouble) if trouble.is_there_already() => {}
            Err(trouble) => return Err((place.clone(), trouble)),
        }
    }
    // The root of a service or of a read-only export is there without our help.
    match place.stat(true) {
        Ok(meta) if meta.is_directory() => Ok(()),
        _ => Err((place.clone(), trouble)),
    }
}

/// Removes files, and with `-r` directories.
pub(crate) fn rm(args: &Rm, places: &Places) -> Result<ExitCode> {
    let mut failures = Failures::new("remove");
    for text in &args.places {
        match places.find(text) {
            Ok(place) if place.file_name().is_none() => {
                failures.add_error(&format_args!(
                    "cannot remove {place}: it is a root, `.` or `..`; name what is in it"
                ));
            }
            Ok(place) => remove(args, &place, &mut failures),
            Err(error) => failures.add_error(&error),
        }
    }
    Ok(failures.exit_code())
}

fn remove(args: &Rm, place: &Place, failures: &mut Failures) {
    match place.stat(false) {
        Ok(meta) if meta.is_directory() && !args.recursive => {
            failures.add_error(&format_args!(
                "cannot remove {place}: Is a directory; use -r for directories"
            ));
        }
        Ok(meta) if meta.is_directory() => {
            let outcome = place.list().map(|names| {
                for name in names {
                    remove(args, &place.child(&name), failures);
                }
            });
            if let Err(trouble) = outcome.and_then(|()| place.remove_directory()) {
                failures.add(place, &trouble);
            }
        }
        found => {
            let outcome: Outcome<()> = found.and_then(|_| place.remove_file());
            match outcome {
                Err(trouble) if args.force && trouble.is_missing() => {}
                Err(trouble) => failures.add(place, &trouble),
                Ok(()) => {}
            }
        }
    }
}
