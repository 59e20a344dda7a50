//! What one process knows: settings, sessions, the working directory.
//!
//! It stands behind one pointer so that a forked child, which must not wait for locks that threads of
//! its parent held, starts with a fresh one ([`renew`]).

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use address::{Endpoint, Resolved, Settings, Uri};
use client::{At, Exchange, Handle, Options, Session};
use p9::Errno;

use crate::description::Description;
use crate::glance::{self, Cwd, may_be_far};
use crate::ops::memory::Mappings;
use crate::outcome::is_restricted;
use crate::remote::Remote;
use crate::{own, table};

/// Symbolic links with absolute targets that one path may lead through (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The knowledge of a process.
pub(crate) struct Context {
    pub(crate) settings: Settings,
    remotes: Mutex<Vec<(Endpoint, Arc<Remote>)>>,
    local: Mutex<Option<Arc<dyn Exchange>>>,
    /// Shared mappings of files.
    pub(crate) mappings: Mappings,
    /// Descriptions that no descriptor stands for.
    pub(crate) unused: Mutex<Vec<&'static Description>>,
    /// The working directory as the program knows it, when it is a redirected one.
    cwd: RwLock<Option<Vec<u8>>>,
}

static CONTEXT: AtomicPtr<Context> = AtomicPtr::new(std::ptr::null_mut());

/// Some prefix is mapped.
static HAS_ROUTES: AtomicBool = AtomicBool::new(false);

/// Starts with settings from the environment, before the first hook can be entered.
pub(crate) fn start(settings: Settings) {
    HAS_ROUTES.store(!settings.routes.is_empty(), Ordering::Relaxed);
    settings.routes.iter().for_each(|route| glance::watch_prefix(route.prefix()));
    install(settings, None);
    local_cwd_changed();
}

fn install(settings: Settings, cwd: Option<Vec<u8>>) {
    let context = Context {
        settings,
        remotes: Mutex::default(),
        local: Mutex::default(),
        mappings: Mappings::default(),
        unused: Mutex::default(),
        cwd: RwLock::new(cwd),
    };
    CONTEXT.store(Box::into_raw(Box::new(context)), Ordering::Release);
}

/// In a forked child: begins anew. What the parent had is left where it is, because its locks may
/// be held by threads that do not exist here.
pub(crate) fn renew(cwd: Option<Vec<u8>>) {
    let settings = context().settings.clone();
    install(settings, cwd);
}

/// The process's context. Only called by hooks, which are entered after [`start`].
pub(crate) fn context() -> &'static Context {
    // SAFETY: set by `start` from a leaked box before any hook is installed; never freed.
    unsafe { &*CONTEXT.load(Ordering::Acquire) }
}

/// A path that leads to a service.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) uri: Uri,
    /// The open directory that the path is relative to, so that it means the same after the directory
    /// was renamed.
    start: Option<Start>,
}

#[derive(Clone)]
struct Start {
    directory: Arc<Handle>,
    path: Vec<u8>,
}

/// Where a path leads.
pub(crate) enum Located {
    /// To a service.
    Far(Place),
    /// To a local file, by `..` out of a mapped prefix, where the kernel could not follow: this is the
    /// path without them.
    Near(CString),
    /// To a local file, as it stands.
    Here,
    /// Nowhere: it is too long, or what looks like an address cannot be one.
    Nowhere(Errno),
}

fn text<'a>(path: *const c_char) -> &'a [u8] {
    // SAFETY: callers pass the program's path argument after checking it for NULL; POSIX makes it
    // a NUL-terminated string that lives through the call.
    unsafe { CStr::from_ptr(path) }.to_bytes()
}

/// Whether a path leads to a service, for hooks that only refuse.
pub(crate) fn is_far(dir: c_int, path: *const c_char) -> bool {
    may_be_far(dir, path) && matches!(locate(dir, path), Located::Far(_) | Located::Nowhere(_))
}

/// Whether a path relative to a local directory may lead into a mapped prefix: it begins with a name
/// that some prefix has, or climbs.
fn names_a_prefix(path: &[u8]) -> bool {
    let first = path.split(|byte| *byte == b'/').find(|name| !name.is_empty() && *name != b".");
    first.is_some_and(|first| {
        let routes = &context().settings.routes;
        first == b".."
            || routes.iter().any(|r| r.prefix().split(|b| *b == b'/').any(|n| n == first))
    })
}

/// Where a path leads.
pub(crate) fn locate(dir: c_int, path: *const c_char) -> Located {
    locate_bytes(dir, text(path))
}

/// As [`locate`], for a path in bytes.
pub(crate) fn locate_bytes(dir: c_int, path: &[u8]) -> Located {
    // PATH_MAX counts the NUL.
    if path.len() >= libc::PATH_MAX as usize {
        return Located::Nowhere(Errno::ENAMETOOLONG);
    }
    if let Some(found) = address::detect(path) {
        return Place::at_uri(Uri::parse(&path[found.start..]));
    }
    if is_bare_scheme(path) {
        return Located::Nowhere(Errno::EINVAL);
    }
    if let Some(fd) = descriptor_name(path) {
        return match table::get(fd).and_then(Description::uri) {
            Some(uri) => Located::Far(Place::new(uri)),
            None => Located::Here,
        };
    }
    let relative = path.first() != Some(&b'/');
    let mut start = None;
    if relative && dir != libc::AT_FDCWD {
        if let Some(description) = table::get(dir) {
            return description.below(dir, path);
        }
        if !HAS_ROUTES.load(Ordering::Relaxed) || !names_a_prefix(path) {
            return Located::Here;
        }
        // A local directory from which a mapped prefix can be reached.
        match crate::own::path_of(dir) {
            Some(path) => start = Some(path),
            None => return Located::Here,
        }
    }
    if relative && !glance::cwd_matters() && start.is_none() {
        // `..` may lead up and down into a mapped prefix; a plain `./x` cannot.
        let climbs = || path.split(|byte| *byte == b'/').any(|name| name == b"..");
        if !HAS_ROUTES.load(Ordering::Relaxed) || !climbs() {
            return Located::Here;
        }
    }
    let virtual_cwd = if relative { start.or_else(virtual_cwd) } else { None };
    let cwd = match virtual_cwd {
        Some(cwd) if cwd.first() != Some(&b'/') => {
            return Place::at_uri(Uri::parse(&cwd).map(|uri| uri.join(path)));
        }
        Some(cwd) => cwd,
        None if relative => kernel_cwd().unwrap_or_default(),
        None => Vec::new(),
    };
    match context().settings.routes.resolve(&cwd, path) {
        Resolved::Remote(hit) => Place::at_uri(Ok(hit.uri())),
        Resolved::LocalCleaned => {
            let whole = if relative { [&cwd[..], b"/", path].concat() } else { path.to_vec() };
            match CString::new(address::clean_absolute(&whole)) {
                Ok(cleaned) => Located::Near(cleaned),
                Err(_) => Located::Here,
            }
        }
        Resolved::Local => Located::Here,
    }
}

/// The redirected descriptor that a path names as a descriptor: `/dev/stdin`, `/dev/fd/3`,
/// `/proc/self/fd/3`. The kernel would open what stands behind the descriptor, which is the state of
/// the open file and not its content.
pub(crate) fn descriptor_name(path: &[u8]) -> Option<c_int> {
    if !table::any() || !(path.starts_with(b"/dev/") || path.starts_with(b"/proc/")) {
        return None;
    }
    let number = match path {
        b"/dev/stdin" => 0,
        b"/dev/stdout" => 1,
        b"/dev/stderr" => 2,
        _ => {
            let own = format!("/proc/{}/fd/", rustix::process::getpid().as_raw_nonzero());
            let prefixes: [&[u8]; 4] =
                [b"/dev/fd/", b"/proc/self/fd/", b"/proc/thread-self/fd/", own.as_bytes()];
            let digits = prefixes.iter().find_map(|prefix| path.strip_prefix(*prefix))?;
            std::str::from_utf8(digits).ok()?.parse().ok()?
        }
    };
    table::is_ours(number).then_some(number)
}

/// Whether a path ends with the scheme of an address and nothing behind it. Programs that make parents
/// one by one (mkdir -p) come by: the name must not become a local directory, into which they would
/// then write what was meant for the service.
fn is_bare_scheme(path: &[u8]) -> bool {
    path.ends_with(b":") && address::detect(&[path, b"/x"].concat()).is_some()
}

fn kernel_cwd() -> Option<Vec<u8>> {
    rustix::process::getcwd(Vec::new()).ok().map(|cwd| cwd.into_bytes())
}

/// The redirected working directory as the program knows it.
pub(crate) fn virtual_cwd() -> Option<Vec<u8>> {
    if is_restricted() {
        return inherited_virtual_cwd();
    }
    context().cwd.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The working directory without waiting for a lock: in a forked child, the parent's.
pub(crate) fn inherited_virtual_cwd() -> Option<Vec<u8>> {
    match context().cwd.try_read() {
        Ok(cwd) => cwd.clone(),
        // It is being changed; the kernel's directory has the same name.
        Err(_) => crate::ops::namespace::inherited_cwd(),
    }
}

/// Records a redirected working directory, or that it is a local one again.
pub(crate) fn set_virtual_cwd(cwd: Option<Vec<u8>>) {
    let is_far = cwd.is_some();
    *context().cwd.write().unwrap_or_else(PoisonError::into_inner) = cwd;
    if is_far {
        glance::set_cwd(Cwd::Far);
    } else {
        local_cwd_changed();
    }
}

/// Whether some prefix is mapped.
pub(crate) fn routes_exist() -> bool {
    HAS_ROUTES.load(Ordering::Relaxed)
}

/// Whether the working directory is a redirected one.
pub(crate) fn cwd_is_far() -> bool {
    glance::cwd_matters() && virtual_cwd().is_some()
}

/// After chdir(2) to a local directory: does a mapped prefix lie below it?
pub(crate) fn local_cwd_changed() {
    if !HAS_ROUTES.load(Ordering::Relaxed) {
        glance::set_cwd(Cwd::Local);
        return;
    }
    let matters = match kernel_cwd() {
        Some(cwd) => {
            let below = |prefix: &[u8]| {
                cwd == b"/"
                    || prefix.strip_prefix(&cwd[..]).is_some_and(|rest| rest.starts_with(b"/"))
            };
            context().settings.routes.iter().any(|route| below(route.prefix()))
        }
        None => true,
    };
    glance::set_cwd(if matters { Cwd::AbovePrefix } else { Cwd::Local });
}

impl Place {
    /// A place by its address.
    pub(crate) fn new(uri: Uri) -> Self {
        Self { uri, start: None }
    }

    fn at_uri(uri: Result<Uri, address::AddressError>) -> Located {
        match uri {
            Ok(uri) => Located::Far(Place::new(context().settings.lead(uri))),
            Err(error) => Located::Nowhere(Errno::from_raw(error.to_errno())),
        }
    }

    /// A place relative to an open directory whose address is `uri`.
    pub(crate) fn below(directory: Arc<Handle>, uri: &Uri, path: &[u8]) -> Self {
        let start = Start { directory, path: path.to_vec() };
        Self { uri: uri.join(path), start: Some(start) }
    }

    fn at(&self) -> At<'_> {
        match &self.start {
            Some(start) => At::dir(&start.directory, &start.path),
            None => At::root(self.uri.path.as_bytes()),
        }
    }

    /// Two places on one service, for rename(2) and link(2).
    pub(crate) fn run_with<T>(
        &self,
        other: &Place,
        mut operation: impl FnMut(&Remote, At<'_>, At<'_>) -> client::Result<T>,
    ) -> Result<T, Errno> {
        self.run(|remote, at, _| operation(remote, at, other.at()))
    }

    /// The path as the program would write it: below a mapped prefix, else the URI that it used.
    pub(crate) fn visible_path(&self) -> Vec<u8> {
        context().settings.path_of(&self.uri)
    }

    /// The service.
    pub(crate) fn remote(&self) -> Result<Arc<Remote>, Errno> {
        if is_restricted() {
            return Err(Errno::EIO);
        }
        context().remote(&self.uri.endpoint)
    }

    /// Runs an operation on this place, and again where an absolute symbolic link leads, as long
    /// as that is a service too.
    pub(crate) fn run<T>(
        &self,
        mut operation: impl FnMut(&Remote, At<'_>, &Place) -> client::Result<T>,
    ) -> Result<T, Errno> {
        let mut place = self.clone();
        for _ in 0..LINKS_MAX {
            let remote = place.remote()?;
            match operation(&remote, place.at(), &place) {
                Err(client::Error::AbsoluteLink { mut target, rest }) => {
                    if !rest.is_empty() {
                        target.push(b'/');
                        target.extend_from_slice(&rest);
                    }
                    place = match locate_bytes(libc::AT_FDCWD, &target) {
                        Located::Far(place) => place,
                        // A service's link to one of our local files is nothing to follow.
                        Located::Near(_) | Located::Here => return Err(Errno::EXDEV),
                        Located::Nowhere(errno) => return Err(errno),
                    };
                }
                Ok(value) => return Ok(value),
                Err(error) => return Err(error.to_errno()),
            }
        }
        Err(Errno::ELOOP)
    }
}

impl Context {
    /// A service, by its first use. Connections are made when something is asked of it.
    pub(crate) fn remote(&self, endpoint: &Endpoint) -> Result<Arc<Remote>, Errno> {
        let mut remotes = self.remotes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, remote)) = remotes.iter().find(|(known, _)| known == endpoint) {
            return Ok(remote.clone());
        }
        let options = Options::from(&self.settings.client);
        let session = match client::Place::of(endpoint) {
            Some(place) => Session::new(Box::new(own::dial(place)), options),
            None if *endpoint == Endpoint::Direct => {
                Session::new(Box::new(client::direct(self.local(&options)?)), options)
            }
            // These need more than a plain socket; the agent that brings it comes later.
            None => return Err(Errno::EOPNOTSUPP),
        };
        let remote = Arc::new(Remote::new(session));
        remotes.push((endpoint.clone(), remote.clone()));
        Ok(remote)
    }

    /// The services in use.
    pub(crate) fn remotes(&self) -> Vec<Arc<Remote>> {
        let remotes = self.remotes.lock().unwrap_or_else(PoisonError::into_inner);
        remotes.iter().map(|(_, remote)| remote.clone()).collect()
    }

    /// The stores of this process, behind `scdc:///`.
    fn local(&self, options: &Options) -> Result<Arc<dyn Exchange>, Errno> {
        let mut local = self.local.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(service) = &*local {
            return Ok(service.clone());
        }
        let service = own::service(&self.settings.stores, options)?;
        *local = Some(service.clone());
        Ok(service)
    }
}

#[cfg(test)]
mod tests {
    use super::is_bare_scheme;

    #[test]
    fn parents_of_an_address_are_no_local_directories() {
        for bare in ["scdc+uds:", "scdc:", "sluice+tcp:", "dir/scdc+tcp:", "/a/b/s3:"] {
            assert!(is_bare_scheme(bare.as_bytes()), "{bare}");
        }
        for plain in ["", ":", "a:", "dir/c:", "scdc", "scdc+uds", "http:"] {
            assert!(!is_bare_scheme(plain.as_bytes()), "{plain}");
        }
    }
}
