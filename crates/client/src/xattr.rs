//! Extended attributes: three messages each.

use p9::{Data, Errno, Fid, Reply, Request};

use crate::connection::{Body, Connection};
use crate::error::{Error, Result};
use crate::live::Live;

/// `XATTR_REPLACE` (setxattr(2)). With an empty value it removes, as Linux's v9fs asks for it.
pub(crate) const REPLACE: u32 = 2;

/// Longest value and longest list (xattr(7): `XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const VALUE_MAX: usize = 64 * 1024;

/// Asks for a value, or with an empty name for the list. `new_fid` is to be clunked afterwards,
/// which [`value`] does.
pub(crate) fn get<'r>(
    connection: &Connection,
    fid: Fid,
    new_fid: Fid,
    name: &'r [u8],
) -> Vec<Request<'r>> {
    let count = VALUE_MAX.min(connection.payload_max()) as u32;
    vec![
        Request::Xattrwalk { fid, new_fid, name },
        Request::Read { fid: new_fid, offset: 0, count },
    ]
}

/// The value from the replies to [`get`].
pub(crate) fn value(live: &Live, new_fid: Fid, replies: Vec<Result<Body>>) -> Result<Vec<u8>> {
    let mut replies = replies.into_iter();
    let walked = replies.next().unwrap_or(Err(Error::Refused(Errno::EPROTO)));
    let body = match walked {
        Ok(body) => body,
        Err(error) => {
            live.release(new_fid);
            return Err(error);
        }
    };
    let outcome = match live.reply(&body)? {
        Reply::Xattrwalk { size } if size as usize <= VALUE_MAX => {
            rest_of_value(live, new_fid, size as usize, replies.next())
        }
        _ => Err(Error::Refused(Errno::E2BIG)),
    };
    live.clunk(new_fid);
    outcome
}

fn rest_of_value(
    live: &Live,
    fid: Fid,
    size: usize,
    first: Option<Result<Body>>,
) -> Result<Vec<u8>> {
    if size == 0 {
        return Ok(Vec::new());
    }
    let mut value = first.unwrap_or(Err(Error::Refused(Errno::EPROTO)))?.data().to_vec();
    while value.len() < size {
        let count = (size - value.len()).min(live.connection.payload_max()) as u32;
        let offset = value.len() as u64;
        let body = live.connection.call(&Request::Read { fid, offset, count })?;
        if body.data().is_empty() {
            return Err(Error::Refused(Errno::EIO));
        }
        value.extend_from_slice(body.data());
    }
    value.truncate(size);
    Ok(value)
}

/// Turns `fid` into the value, writes it, and clunks, at which the service sets it.
pub(crate) fn create<'r>(
    connection: &Connection,
    fid: Fid,
    name: &'r [u8],
    value: &'r [u8],
    flags: u32,
) -> Result<Vec<Request<'r>>> {
    if value.len() > VALUE_MAX {
        return Err(Error::Refused(Errno::E2BIG));
    }
    let mut requests = vec![Request::Xattrcreate { fid, name, size: value.len() as u64, flags }];
    for (index, part) in value.chunks(connection.payload_max()).enumerate() {
        let offset = (index * connection.payload_max()) as u64;
        requests.push(Request::Write { fid, offset, data: Data(part) });
    }
    requests.push(Request::Clunk { fid });
    Ok(requests)
}

/// The first refusal among the replies to [`create`].
pub(crate) fn created(live: &Live, fid: Fid, replies: Vec<Result<Body>>) -> Result<()> {
    match replies.into_iter().find_map(Result::err) {
        Some(error) => {
            live.clunk(fid);
            Err(error)
        }
        None => {
            live.release(fid);
            Ok(())
        }
    }
}
