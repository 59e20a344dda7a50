//! `sluice mkdir` and `sluice rm`.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Mkdir, Rm};
use crate::place::{Outcome, Place, Places, Trouble};
use crate::report::Failures;

/// Makes directories.
pub(crate) fn mkdir(args: &Mkdir, places: &Places) -> Result<ExitCode> {
    let mut failures = Failures::new("make the directory");
    for text in &args.places {
        match places.find(text) {
            Ok(place) if args.parents => {
                make_all(&place, &mut failures);
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

/// Makes a directory and those above it that are missing.
fn make_all(place: &Place, failures: &mut Failures) -> bool {
    let mut outcome = place.make_directory(0o777);
    if outcome.as_ref().is_err_and(Trouble::is_missing)
        && let Some(parent) = place.parent()
        && parent.to_bytes() != place.to_bytes()
    {
        if !make_all(&parent, failures) {
            return false;
        }
        outcome = place.make_directory(0o777);
    }
    let Err(trouble) = outcome else { return true };
    // It may be there: made before, or by somebody who was faster, or the root of a service.
    let there = place.stat(true).is_ok_and(|meta| meta.is_directory());
    if !there {
        failures.add(place, &trouble);
    }
    there
}

/// Removes files, and with `-r` directories, each only after it is clear that it may go.
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
        Ok(meta) if meta.is_directory() => match place.remove_directory() {
            Ok(()) => {}
            Err(trouble) if trouble.is_not_empty() => empty(args, place, failures),
            // It would stay after all that is in it is gone: the top of a store, a mount point, somebody else's.
            Err(trouble) => failures.add(place, &trouble),
        },
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

/// Removes what is in a directory, and then the directory.
fn empty(args: &Rm, place: &Place, failures: &mut Failures) {
    let outcome = place.list().map(|names| {
        for name in names {
            remove(args, &place.child(&name), failures);
        }
    });
    if let Err(trouble) = outcome.and_then(|()| place.remove_directory()) {
        failures.add(place, &trouble);
    }
}
