//! Routes: directories that are really somewhere else.
//!
//! `--map /far=scdc+tcp://host/base` makes `/far/x` mean `scdc+tcp://host/base/x`. Programs ask for every path, so an
//! answer costs one walk over the path's names and never allocates.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::lossy;
use crate::path::{clean_absolute, names};
use crate::{AddressError, Uri};

/// One mapped prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    prefix: Vec<u8>,
    uri: Uri,
}

impl Route {
    /// A route from a path prefix to a service.
    ///
    /// # Errors
    /// [`AddressError::RoutePrefix`] unless `prefix` is absolute, below `/` and free of `..`.
    pub fn new(prefix: &[u8], uri: Uri) -> Result<Self, AddressError> {
        let usable = prefix.first() == Some(&b'/')
            && !prefix.contains(&0)
            && names(prefix).next().is_some()
            && names(prefix).all(|name| name != b"..");
        if !usable {
            return Err(AddressError::RoutePrefix { prefix: lossy(prefix) });
        }
        Ok(Self { prefix: clean_absolute(prefix), uri })
    }

    /// Parses the `PREFIX=URI` of `--map`. The first `=` that a URI follows divides them.
    ///
    /// # Errors
    /// [`AddressError::RouteWithoutUri`], [`AddressError::RoutePrefix`], or what [`Uri::parse`] says.
    pub fn parse(text: &[u8]) -> Result<Self, AddressError> {
        let mut divided = memchr::memchr_iter(b'=', text).map(|at| (&text[..at], &text[at + 1..]));
        let first = divided
            .clone()
            .next()
            .ok_or_else(|| AddressError::RouteWithoutUri { text: lossy(text) })?;
        let (prefix, uri) = divided
            .find(|(_, uri)| crate::detect(uri).is_some_and(|found| found.start == 0))
            .unwrap_or(first);
        Self::new(prefix, Uri::parse(uri)?)
    }

    /// The prefix: absolute, clean, without a slash at the end.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The prefix as a path.
    pub fn prefix_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.prefix))
    }

    /// Where the prefix leads.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// All mapped prefixes of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes {
    /// Longest prefix first, so that the first match is the right one.
    routes: Vec<Route>,
}

/// Where a path leads, by [`Routes::resolve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved<'a> {
    /// To the local file system, as it is.
    Local,
    /// To the local file system, but through `..` out of a mapped prefix, where the kernel could not follow:
    /// use [`clean_absolute`] of the path instead.
    LocalCleaned,
    /// To a service.
    Remote(Hit<'a>),
}

/// A path below a mapped prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit<'a> {
    /// The route that matched.
    pub route: &'a Route,
    /// The rest of the working directory and the rest of the path: their names follow each other.
    pub rest: [&'a [u8]; 2],
}

impl Hit<'_> {
    /// The address that the path stands for.
    pub fn uri(&self) -> Uri {
        let mut uri = self.route.uri.clone();
        for rest in self.rest {
            uri.path.extend(rest);
        }
        uri
    }
}

impl Routes {
    /// Routes, in any order.
    ///
    /// # Errors
    /// [`AddressError::RouteTwice`] if two have one prefix.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Result<Self, AddressError> {
        let mut routes: Vec<Route> = routes.into_iter().collect();
        routes.sort_by(|a, b| {
            b.prefix.len().cmp(&a.prefix.len()).then_with(|| a.prefix.cmp(&b.prefix))
        });
        match routes.windows(2).find(|pair| pair[0].prefix == pair[1].prefix) {
            Some(pair) => Err(AddressError::RouteTwice { prefix: lossy(&pair[0].prefix) }),
            None => Ok(Self { routes }),
        }
    }

    /// True if nothing is mapped.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The routes, longest prefix first.
    pub fn iter(&self) -> std::slice::Iter<'_, Route> {
        self.routes.iter()
    }

    /// Where `path` leads. A relative path continues `cwd`, which must be absolute, or empty if the working directory is
    /// known to lie below no prefix and above none.
    ///
    /// `..` is folded lexically up to the mapped prefix, as nothing exists there that could be a symbolic link; behind
    /// the prefix it is kept, because only the service knows. Never allocates.
    #[inline]
    pub fn resolve<'a>(&'a self, cwd: &'a [u8], path: &'a [u8]) -> Resolved<'a> {
        if self.routes.is_empty() {
            return Resolved::Local;
        }
        let cwd: &[u8] = match path.first() {
            Some(b'/') if is_plain(path) => return self.resolve_plain(path),
            Some(b'/') => &[],
            _ if cwd.is_empty() => return Resolved::Local,
            Some(first) if *first != b'.' && is_plain(path) && is_plain(cwd) => {
                return self.resolve_plain_below(cwd, path);
            }
            _ => cwd,
        };
        self.resolve_any(cwd, path)
    }

    /// As [`Routes::resolve`], for an absolute path without anything to fold: most paths.
    fn resolve_plain<'a>(&'a self, path: &'a [u8]) -> Resolved<'a> {
        let hit = self.routes.iter().find_map(|route| {
            let rest = [after(path, &route.prefix)?, &[]];
            Some(Hit { route, rest })
        });
        hit.map_or(Resolved::Local, Resolved::Remote)
    }

    /// As [`Routes::resolve`], for a relative path without anything to fold.
    fn resolve_plain_below<'a>(&'a self, cwd: &'a [u8], path: &'a [u8]) -> Resolved<'a> {
        let hit = self.routes.iter().find_map(|route| {
            if let Some(below) = after(cwd, &route.prefix) {
                return Some(Hit { route, rest: [below, path] });
            }
            // The working directory is above the prefix, and the path may lead down to it.
            let missing = after(&route.prefix, cwd.strip_suffix(b"/").unwrap_or(cwd))?;
            let rest = [after(path, missing.get(1..)?)?, &[]];
            Some(Hit { route, rest })
        });
        hit.map_or(Resolved::Local, Resolved::Remote)
    }

    /// As [`Routes::resolve`], for all paths.
    #[cold]
    fn resolve_any<'a>(&'a self, cwd: &'a [u8], path: &'a [u8]) -> Resolved<'a> {
        let mut left_a_prefix = false;
        for route in &self.routes {
            match follow(route, cwd, path) {
                Follow::Inside(rest) => return Resolved::Remote(Hit { route, rest }),
                Follow::Left => left_a_prefix = true,
                Follow::Outside => {}
            }
        }
        if left_a_prefix { Resolved::LocalCleaned } else { Resolved::Local }
    }

    /// The path under which a user of these routes knows `uri`: below a prefix if one leads there, or the URI itself.
    /// For getcwd(3) and realpath(3).
    pub fn path_of(&self, uri: &Uri) -> Vec<u8> {
        let below = |route: &Route| {
            let same = route.uri.endpoint == uri.endpoint;
            let rest = uri.path.strip_prefix(&route.uri.path).filter(|_| same)?;
            let mut path = route.prefix.clone();
            if !rest.is_empty() {
                path.push(b'/');
                path.extend_from_slice(rest);
            }
            Some((route.uri.path.as_bytes().len(), path))
        };
        let deepest = self.routes.iter().filter_map(below).max_by_key(|(len, _)| *len);
        deepest.map_or_else(|| uri.to_bytes(), |(_, path)| path)
    }
}

impl<'a> IntoIterator for &'a Routes {
    type Item = &'a Route;
    type IntoIter = std::slice::Iter<'a, Route>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// True if nothing in `path` is to be folded: no `//`, and no name behind a slash that begins with a dot.
///
/// Written without a branch, so that it becomes a few vector instructions.
#[inline]
fn is_plain(path: &[u8]) -> bool {
    let pairs = path.iter().zip(path.get(1..).unwrap_or_default());
    let folds = |a: u8, b: u8| (a == b'/') & ((b == b'/') | (b == b'.'));
    !pairs.fold(false, |found, (a, b)| found | folds(*a, *b))
}

/// What of `path` follows `prefix`, if that ends where a name does.
#[inline]
fn after<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    path.strip_prefix(prefix).filter(|rest| matches!(rest.first(), None | Some(b'/')))
}

enum Follow<'a> {
    Outside,
    /// It went into the prefix and by `..` out again.
    Left,
    Inside([&'a [u8]; 2]),
}

/// Follows `cwd` and then `path` from `/`, counting how many leading names equal the prefix's.
fn follow<'a>(route: &'a Route, cwd: &'a [u8], path: &'a [u8]) -> Follow<'a> {
    let prefix = &route.prefix[..];
    // How deep we are; how much of the prefix (in bytes) the names so far spell; how deep that reaches.
    let (mut depth, mut matched_len, mut matched_depth) = (0usize, 0usize, 0usize);
    let mut rest: Option<[&[u8]; 2]> = None;
    let mut was_inside = false;
    for (part, text) in [cwd, path].into_iter().enumerate() {
        let mut at = 0;
        while at < text.len() {
            let end = memchr::memchr(b'/', &text[at..]).map_or(text.len(), |len| at + len);
            let name = &text[at..end];
            at = end + 1;
            match name {
                b"" | b"." => {}
                b".." => {
                    depth = depth.saturating_sub(1);
                    while matched_depth > depth {
                        matched_depth -= 1;
                        matched_len = memchr::memrchr(b'/', &prefix[..matched_len]).unwrap_or(0);
                        rest = None;
                    }
                }
                _ => {
                    let next = matched_len + 1;
                    let goes_on = matched_depth == depth
                        && prefix.get(next..next + name.len()) == Some(name)
                        && matches!(prefix.get(next + name.len()), None | Some(b'/'));
                    depth += 1;
                    if goes_on {
                        matched_len = next + name.len();
                        matched_depth = depth;
                        if matched_len == prefix.len() {
                            was_inside = true;
                            let after = text.get(end..).unwrap_or_default();
                            rest = Some(if part == 0 { [after, path] } else { [after, &[]] });
                        }
                    }
                }
            }
        }
    }
    match rest {
        Some(rest) => Follow::Inside(rest),
        None if was_inside => Follow::Left,
        None => Follow::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(list: &[&str]) -> Routes {
        Routes::new(list.iter().map(|text| Route::parse(text.as_bytes()).unwrap())).unwrap()
    }

    fn goes_to(routes: &Routes, cwd: &str, path: &str) -> String {
        match routes.resolve(cwd.as_bytes(), path.as_bytes()) {
            Resolved::Local => "local".into(),
            Resolved::LocalCleaned => "cleaned".into(),
            Resolved::Remote(hit) => hit.uri().to_string(),
        }
    }

    #[test]
    fn the_longest_prefix_wins_on_boundaries() {
        let routes =
            routes(&["/far=scdc+tcp://h/base", "/far/deep=scdc:///d", "/a/b=scdc+tcp://x"]);
        for (path, uri) in [
            ("/far", "scdc+tcp://h/base"),
            ("/far/", "scdc+tcp://h/base/"),
            ("//far/./x//y", "scdc+tcp://h/base/x/y"),
            ("/far/deep/x", "scdc:///d/x"),
            ("/far/deeper", "scdc+tcp://h/base/deeper"),
            ("/farther", "local"),
            ("/a", "local"),
            ("/a/b/c", "scdc+tcp://x/c"),
            ("/a/c/b", "local"),
            ("far", "local"),
            ("", "local"),
            ("/x/far", "local"),
        ] {
            assert_eq!(goes_to(&routes, "", path), uri, "{path}");
        }
    }

    #[test]
    fn relative_paths_continue_the_working_directory() {
        let routes = routes(&["/far/off=scdc+tcp://h/base"]);
        assert_eq!(goes_to(&routes, "/far", "off/x"), "scdc+tcp://h/base/x");
        assert_eq!(goes_to(&routes, "/far/off/dir", "x"), "scdc+tcp://h/base/dir/x");
        assert_eq!(goes_to(&routes, "/far/off/dir", "../x"), "scdc+tcp://h/base/dir/../x");
        assert_eq!(goes_to(&routes, "/far/off", "../x"), "cleaned");
        assert_eq!(goes_to(&routes, "/far/off", "/x"), "local");
        assert_eq!(goes_to(&routes, "/home/me", "../../far/off/x"), "scdc+tcp://h/base/x");
        assert_eq!(goes_to(&routes, "/far/off/dir", ""), "scdc+tcp://h/base/dir");
    }

    #[test]
    fn dotdot_leaves_and_enters() {
        let routes = routes(&["/far=scdc:///s", "/far/deep=scdc:///d"]);
        assert_eq!(goes_to(&routes, "", "/far/../etc"), "cleaned");
        assert_eq!(goes_to(&routes, "", "/etc/../far/x"), "scdc:///s/x");
        assert_eq!(goes_to(&routes, "", "/../far"), "scdc:///s");
        assert_eq!(goes_to(&routes, "", "/far/a/../b"), "scdc:///s/a/../b");
        assert_eq!(goes_to(&routes, "", "/far/deep/../b"), "scdc:///s/deep/../b");
        assert_eq!(goes_to(&routes, "", "/far/x/../deep/b"), "scdc:///d/b");
        assert_eq!(goes_to(&routes, "", "/far/../far/b"), "scdc:///s/b");
    }

    #[test]
    fn a_prefix_may_contain_an_equals_sign() {
        let route = Route::parse(b"/far=away=scdc+tcp://h/x=y").unwrap();
        assert_eq!(
            (route.prefix(), route.uri().to_string().as_str()),
            (&b"/far=away"[..], "scdc+tcp://h/x=y")
        );
    }

    #[test]
    fn bad_routes_are_refused() {
        for bad in [
            "/far",
            "far=scdc:///x",
            "/=scdc:///x",
            "/a/../b=scdc:///x",
            "=scdc:///x",
            "/far=/local",
            "/far=",
        ] {
            assert!(Route::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let twice =
            ["/a=scdc:///x", "/a/=scdc:///y"].map(|text| Route::parse(text.as_bytes()).unwrap());
        assert_eq!(Routes::new(twice), Err(AddressError::RouteTwice { prefix: "/a".into() }));
    }

    #[test]
    fn the_way_back_prefers_the_deepest_route() {
        let routes = routes(&["/far=scdc+tcp://h/base", "/deep=scdc+tcp://h/base/dir"]);
        let back = |uri: &str| String::from_utf8(routes.path_of(&uri.parse().unwrap())).unwrap();
        assert_eq!(back("scdc+tcp://h/base/x"), "/far/x");
        assert_eq!(back("scdc+tcp://h/base"), "/far");
        assert_eq!(back("scdc+tcp://h/base/dir/y"), "/deep/y");
        assert_eq!(back("scdc+tcp://h/basement"), "scdc+tcp://h/basement");
        assert_eq!(back("scdc+tcp://other/base"), "scdc+tcp://other/base");
    }
}
