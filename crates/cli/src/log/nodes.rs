//! Several nodes, one job: each node's agent keeps a log of its own, and one of them, the *home*, keeps the order of
//! everything that the job does.
//!
//! 1. The agents find each other in a directory that all nodes share ([`Meeting`]). Who comes first is the home: its store
//!    is that of all.
//! 2. The others are *members* ([`member`]): what their programs ask goes on to the home, each program by a connection of
//!    its own, over TCP and only with the job's secret ([`greeting`]). So there is one tree of names, one size of each file,
//!    one lock table and one order of writes and epochs, as on one node.
//! 3. Bytes that a member's ranks write in epochs stay in the member's log; the home's log gets a record of where they are.
//!    A member has them durable before it hands on that a rank has prepared: so the home's commit of an epoch proves that
//!    the bytes of all nodes are there.
//! 4. Whoever reads such bytes, the home's drain first of all, is given them by the member ([`bytes`]).
//!
//! Where the nodes are is kept until the home's log is drained: after a crash it says who has what.

pub(super) mod bytes;
pub(super) mod greeting;
pub(super) mod home;
pub(super) mod member;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::files::Place;
use greeting::Secret;

/// The home's own file in the meeting's directory.
const HOME: &str = "home.json";
/// What a log's directory says of the meeting that it belongs to.
const MEETING: &str = "meeting.json";
/// How long a home that has said where it is may take to answer: it may just be ending, or be started again.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long one may take to begin: it first drains what an earlier run left.
const BEGIN_WITHIN: Duration = Duration::from_secs(600);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What an agent says of itself to those of other nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    /// The machine's name.
    pub(crate) host: String,
    /// The log's directory there.
    pub(crate) dir: PathBuf,
    /// Where the log is drained to.
    pub(crate) target: String,
    /// The log's identity, once it is open.
    #[serde(default)]
    pub(crate) log: String,
    /// Where the agent listens, once it does.
    #[serde(default)]
    pub(crate) address: Option<String>,
    /// What callers must know.
    #[serde(default)]
    pub(crate) secret: Secret,
}

impl Node {
    /// The agent of a log on this machine.
    pub(crate) fn here(place: &Place, target: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            host,
            dir: place.dir.clone(),
            target: target.to_owned(),
            log: String::new(),
            address: None,
            secret: Secret::default(),
        }
    }

    fn is_at(&self, other: &Self) -> bool {
        self.host == other.host && self.dir == other.dir
    }
}

/// What an agent is for the others.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// It keeps the order.
    Home,
    /// It keeps its programs' bytes, and the home their order.
    Member(Node),
}

/// The directory that all nodes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meeting {
    dir: PathBuf,
}

/// What stands beside a log that belongs to a meeting.
#[derive(Debug, Serialize, Deserialize)]
struct Belonging {
    dir: PathBuf,
    /// The log is a member's, whose home has this identity.
    member_of: Option<String>,
    /// Where its agent was told to listen.
    #[serde(default)]
    listen: Option<String>,
}

impl Belonging {
    fn of(place: &Place) -> Result<Option<Self>> {
        let path = place.file(MEETING);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context(|| path.display().to_string())?,
        };
        serde_json::from_slice(&text).map(Some).with_context(|| path.display().to_string())
    }
}

impl Meeting {
    /// The directory, made where it is missing.
    pub(crate) fn at(dir: &Path) -> Result<Self> {
        let what = || format!("--log-meet {}: cannot use the directory", dir.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).with_context(what)?;
        Ok(Self { dir: dir.canonicalize().with_context(what)? })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The meeting that a log belongs to, and the identity of its home if the log is a member's.
    pub(crate) fn of(place: &Place) -> Result<Option<(Self, Option<String>)>> {
        Ok(Belonging::of(place)?.map(|found| (Self { dir: found.dir }, found.member_of)))
    }

    /// Where the agent of a log was told to listen: whoever serves its bytes next listens there, too.
    pub(crate) fn listened(place: &Place) -> Result<Option<String>> {
        Ok(Belonging::of(place)?.and_then(|found| found.listen))
    }

    /// Notes beside a log that it belongs to this meeting.
    pub(crate) fn note(
        &self,
        place: &Place,
        member_of: Option<&str>,
        listen: Option<&str>,
    ) -> Result<()> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let belonging =
            Belonging { dir: self.dir.clone(), member_of: owned(member_of), listen: owned(listen) };
        place.replace(MEETING, &serde_json::to_string(&belonging)?).context(MEETING)
    }

    /// Takes that note away.
    pub(crate) fn forget(place: &Place) {
        let _ = fs::remove_file(place.file(MEETING));
    }

    /// The home, if there is one.
    pub(crate) fn home(&self) -> Result<Option<Node>> {
        self.read(HOME)
    }

    /// A member, by its log.
    pub(crate) fn member(&self, log: u64) -> Result<Option<Node>> {
        self.read(&member_file(log))
    }

    /// Decides what the agent of a log is: the home if there is none, or if it was the home before; else a member.
    pub(crate) fn role(&self, me: &Node) -> Result<Role> {
        let (since, mut told) = (Instant::now(), None);
        loop {
            let limit = match self.home()? {
                None if self.claim(me)? => return Ok(Role::Home),
                None => BEGIN_WITHIN,
                Some(home) if home.is_at(me) => return Ok(Role::Home),
                Some(home) => {
                    if home.target != me.target {
                        bail!(
                            "the agents that meet in {} drain to {}, and this run is for {}: give it a meeting of its own",
                            self.dir.display(),
                            home.target,
                            me.target
                        );
                    }
                    match home::reach(&home) {
                        Ok(true) => return Ok(Role::Member(home)),
                        Ok(false) => BEGIN_WITHIN,
                        Err(error) => {
                            told = Some((home, error));
                            ANSWER_WITHIN
                        }
                    }
                }
            };
            if since.elapsed() > limit {
                let dir = self.dir.display();
                match told {
                    Some((home, error)) => bail!(
                        "the agent on {} that {dir} names as the home does not answer ({error:#}): if its job is over, run \
                         `sluice log recover {}` there",
                        home.host,
                        home.dir.display()
                    ),
                    None => bail!(
                        "the home that {dir} names has not begun: if its job is over, remove {dir}/{HOME}"
                    ),
                }
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Becomes the home, if nobody is. A link is made by one only, on NFS, too.
    fn claim(&self, me: &Node) -> Result<bool> {
        let fresh = self.written(me)?;
        let linked = fs::hard_link(&fresh, self.dir.join(HOME));
        let _ = fs::remove_file(&fresh);
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error).with_context(|| {
                format!("--log-meet {}: cannot make a link there", self.dir.display())
            }),
        }
    }

    /// Says where the home is.
    pub(crate) fn publish_home(&self, me: &Node) -> Result<()> {
        let fresh = self.written(me)?;
        fs::rename(&fresh, self.dir.join(HOME)).with_context(|| self.dir.display().to_string())
    }

    /// Says where a member's bytes are.
    pub(crate) fn publish_member(&self, log: u64, me: &Node) -> Result<()> {
        let fresh = self.written(me)?;
        fs::rename(&fresh, self.dir.join(member_file(log)))
            .with_context(|| self.dir.display().to_string())
    }

    /// The home has nothing any more that anybody might need. Members that have ended without knowing that, by a crash,
    /// find it said.
    pub(crate) fn leave_home(&self, place: &Place) -> Result<()> {
        let me = Node::here(place, "");
        if let Some(home) = self.home()?.filter(|home| home.is_at(&me)) {
            if self.has_members() {
                let fresh = self.written(&home)?;
                let drained = self.dir.join(drained_file(&home.log));
                fs::rename(fresh, drained).with_context(|| self.dir.display().to_string())?;
            }
            let _ = fs::remove_file(self.dir.join(HOME));
        }
        Self::forget(place);
        Ok(())
    }

    /// Whether a home has said that all of its log is in the target.
    pub(crate) fn has_drained(&self, home: &str) -> Result<bool> {
        Ok(self.read(&drained_file(home))?.is_some())
    }

    /// What was to be the home could not begin, and never had anything.
    pub(crate) fn give_up(&self, place: &Place) {
        let me = Node::here(place, "");
        let is_mine = |home: &Node| home.is_at(&me) && home.log.is_empty();
        if self.home().ok().flatten().as_ref().is_some_and(is_mine) {
            let _ = fs::remove_file(self.dir.join(HOME));
        }
    }

    /// Nobody needs the bytes of a member of this home any more.
    pub(crate) fn leave_member(&self, log: u64, home: &str, place: &Place) {
        let _ = fs::remove_file(self.dir.join(member_file(log)));
        if !self.has_members() {
            let _ = fs::remove_file(self.dir.join(drained_file(home)));
        }
        Self::forget(place);
    }

    fn has_members(&self) -> bool {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name());
        names.any(|name| name.as_encoded_bytes().starts_with(b"member-"))
    }

    fn written(&self, node: &Node) -> Result<PathBuf> {
        let name = format!(".{}-{}.new", node.host, std::process::id());
        let path = self.dir.join(name);
        let write = || -> io::Result<()> {
            let _ = fs::remove_file(&path);
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(serde_json::to_string(node)?.as_bytes())?;
            file.sync_all()
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// Reads what an agent said, if it is this user's and nobody else can read it: who could write it could have a job's
    /// data brought to himself.
    fn read(&self, name: &str) -> Result<Option<Node>> {
        let path = self.dir.join(name);
        let shown = || path.display().to_string();
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // The directory is gone with all that was in it.
            other => other.with_context(shown)?,
        };
        let meta = file.metadata().with_context(shown)?;
        if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & 0o077 != 0 {
            bail!(
                "{}: it must belong to this user and be nobody else's to read: others could lead the job elsewhere",
                path.display()
            );
        }
        let text = io::read_to_string(file).with_context(shown)?;
        serde_json::from_str(&text).map(Some).with_context(shown)
    }
}

fn drained_file(home: &str) -> String {
    // The number of the log; before it stands the machine's name.
    format!("drained-{}.json", home.rsplit(':').next().unwrap_or_default())
}

fn member_file(log: u64) -> String {
    format!("member-{log:016x}.json")
}

/// A socket for the agents of other nodes: at the address that was asked for, or the one that this machine's name has.
pub(crate) fn listener(address: Option<&str>) -> Result<(TcpListener, String)> {
    let host = match address {
        Some(address) => address.to_owned(),
        None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let listener = TcpListener::bind((host.as_str(), 0)).with_context(|| {
        format!(
            "cannot listen on {host} for the agents of other nodes: name an address of this machine that they reach by \
             --log-listen"
        )
    })?;
    let address = listener.local_addr().context("a socket without an address")?;
    Ok((listener, address.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn node(dir: &str) -> Node {
        Node {
            host: "one".into(),
            dir: dir.into(),
            target: "/t".into(),
            log: String::new(),
            address: None,
            secret: Secret::random().unwrap(),
        }
    }

    #[test]
    fn the_first_is_the_home_and_comes_back_as_it() {
        let dir = tempfile::tempdir().unwrap();
        let meeting = Meeting::at(dir.path()).unwrap();
        let (one, other) = (node("/a"), node("/b"));
        assert!(meeting.claim(&one).unwrap());
        assert!(!meeting.claim(&other).unwrap());
        assert!(matches!(meeting.role(&one).unwrap(), Role::Home));
        assert_eq!(meeting.home().unwrap(), Some(one));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn agents_with_another_target_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let meeting = Meeting::at(dir.path()).unwrap();
        meeting.role(&node("/a")).unwrap();
        let other = Node { target: "/elsewhere".into(), ..node("/b") };
        let refused = meeting.role(&other).unwrap_err().to_string();
        assert!(refused.contains("drain to /t, and this run is for /elsewhere"), "{refused}");
    }

    #[test]
    fn what_others_could_have_written_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let meeting = Meeting::at(dir.path()).unwrap();
        meeting.role(&node("/a")).unwrap();
        let path = dir.path().join(HOME);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = meeting.role(&node("/b")).unwrap_err().to_string();
        assert!(refused.contains("belong to this user"), "{refused}");
    }
}
