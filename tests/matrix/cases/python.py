"""CPython's standard library."""

from matrix.case import Registry

case = Registry("python")


def script(name, body, **options):
    """A case whose body is Python; `D`, `U` and `W` are strings there."""
    needs = options.pop("needs", "")
    case(name, "python3 - <<'END_OF_PYTHON'\nimport os, sys, io\nfrom pathlib import Path\n"
               "D, U, W = (os.environ[v] for v in 'DUW')\n" + body + "\nEND_OF_PYTHON\n",
         needs=("python3 " + needs).strip(), **options)


script("py-text", r'''
with open(D + "/text.txt") as f:
    lines = f.readlines()
print(len(lines), lines[7], end="")
with open(D + "/out.txt", "w") as f:
    for i, l in enumerate(lines):
        f.write(f"{i} {l}")
with open(D + "/out.txt", "a") as f:
    print(f.tell())
    f.write("ünï\n")
    print(f.tell())
with open(D + "/out.txt", encoding="utf8") as f:
    f.seek(0, 2)
    end = f.tell()
    f.seek(end - 6)
    print(repr(f.read()))
with open(U + "/no-newline") as f:
    print(f.read())
print([l for l in open(D + "/table.csv", newline="")][:2])
''', core=True)

script("py-binary", r'''
with open(D + "/data.bin", "rb") as f:
    f.seek(1000)
    a = f.read(10)
    f.seek(-10, 1)
    assert f.read(10) == a
    print(a.hex(), f.tell())
    b = bytearray(5000)
    print(f.readinto(b))
    print(f.peek(3)[:3].hex())
    print(len(f.read()))
    print(f.read())
with open(D + "/data.bin", "r+b") as f:
    f.seek(500000)
    f.write(b"OVER" * 100)
    f.seek(0)
    f.write(b"HEAD")
    f.seek(0, 2)
    f.write(b"TAIL")
    f.flush()
    os.fsync(f.fileno())
    f.truncate(1000000)
print(os.path.getsize(D + "/data.bin"))
with open(D + "/x", "xb") as f:
    f.write(bytes(range(256)))
try:
    open(D + "/x", "xb")
except FileExistsError as e:
    print(e.errno)
with open(D + "/w+", "w+b") as f:
    f.write(b"abc")
    f.seek(1)
    print(f.read())
    f.seek(1)
    f.write(b"Z")
''', core=True)

script("py-unbuffered", r'''
with open(D + "/raw", "wb", buffering=0) as f:
    for i in range(300):
        assert f.write(b"%03d\n" % i) == 4
with open(D + "/raw", "rb", buffering=0) as f:
    print(f.read(10), f.readall()[-8:], f.tell(), f.seekable(), f.readline())
f = io.FileIO(D + "/raw", "r+")
print(f.seek(4), f.write(b"XXX"), f.seek(0), f.read(8))
f.close()
with open(D + "/lines", "w", buffering=1) as f:
    f.write("a\nb\n")
    print(os.path.getsize(D + "/lines"))
    f.write("c")
with open(D + "/text.txt", "rb", buffering=7) as f:
    print(f.readline(), f.read(3))
''')

script("py-os-calls", r'''
fd = os.open(D + "/data.bin", os.O_RDWR | os.O_CLOEXEC)
print(
    os.pread(fd, 8, 100).hex(), os.lseek(fd, 0, os.SEEK_CUR), os.pwrite(fd, b"PW", 200), os.read(fd, 4).hex()
)
print(
    os.preadv(fd, [bytearray(3), bytearray(5)], 10),
    os.pwritev(fd, [b"ab", b"cd"], 300),
    os.readv(fd, [bytearray(2)] * 3),
    os.writev(fd, [b"x", b"yz"]),
)
os.ftruncate(fd, 5000)
print(os.fstat(fd).st_size, os.lseek(fd, -10, os.SEEK_END))
os.fsync(fd)
os.fdatasync(fd)
os.fchmod(fd, 0o640)
d2 = os.dup(fd)
os.lseek(d2, 7, 0)
print(os.lseek(fd, 0, 1))
os.close(fd)
print(len(os.read(d2, 100)))
os.close(d2)
try:
    os.read(d2, 1)
except OSError as e:
    print(e.errno)
fd = os.open(D, os.O_RDONLY | os.O_DIRECTORY)
print(sorted(os.listdir(fd)))
print(os.stat("text.txt", dir_fd=fd).st_size)
g = os.open("via-dirfd", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd)
os.write(g, b"hi")
os.close(g)
os.rename("via-dirfd", "renamed", src_dir_fd=fd, dst_dir_fd=fd)
os.mkdir("made", dir_fd=fd)
os.symlink("made", "sl", dir_fd=fd)
print(os.readlink("sl", dir_fd=fd))
os.link("renamed", "hard", src_dir_fd=fd, dst_dir_fd=fd)
os.unlink("empty", dir_fd=fd)
os.rmdir("made", dir_fd=fd)
os.fchdir(fd)
print(os.getcwd() == D, os.path.exists("renamed"))
os.utime("renamed", ns=(10**18, 10**18), dir_fd=fd)
os.chmod("renamed", 0o644, dir_fd=fd)
print(os.access("renamed", os.W_OK, dir_fd=fd))
''', core=True)

script("py-mmap-read", r'''
import mmap, hashlib

with open(D + "/big.bin", "rb") as f:
    with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
        print(len(m), hashlib.sha256(m).hexdigest(), m[5:9].hex(), m.find(b"\x00\x01\x02"), m.rfind(b"zz"))
    with mmap.mmap(
        f.fileno(), 8192, offset=mmap.ALLOCATIONGRANULARITY * 3, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE
    ) as m:
        print(m[:4].hex())
with open(D + "/text.txt", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
    m[:5] = b"XXXXX"
    print(m.readline())
    m.close()
    print(f.readline())
''', core=True)

script("py-mmap-write", r'''
import mmap

with open(D + "/data.bin", "r+b") as f:
    with mmap.mmap(f.fileno(), 0) as m:
        m[100:104] = b"MMAP"
        m[-4:] = b"LAST"
        m.flush()
        m[700000:700003] = b"mid"
with open(D + "/data.bin", "rb") as f:
    f.seek(100)
    print(f.read(4))
    f.seek(700000)
    print(f.read(3))
with open(D + "/fresh", "w+b") as f:
    f.truncate(20000)
    m = mmap.mmap(f.fileno(), 20000)
    m[0:5] = b"begin"
    m[19990:] = b"0123456789"
    m.flush(0, 4096)
    m.close()
print(os.path.getsize(D + "/fresh"))
f = open(D + "/text.txt", "r+b")
m = mmap.mmap(f.fileno(), 0)
f.close()
m[0:3] = b"!!!"
m.move(10, 20, 5)
m.close()
print(open(D + "/text.txt").readline())
''', core=True)

script("py-shutil", r'''
import shutil

shutil.copytree(D + "/tree", D + "/t2")
shutil.copytree(D + "/tree", W + "/t3", symlinks=True)
shutil.move(D + "/t2", D + "/moved")
shutil.rmtree(D + "/tree")
shutil.copy(D + "/run.sh", D + "/r2")
shutil.copy2(D + "/run.sh", D + "/r3")
shutil.copyfile(D + "/big.bin", W + "/b")
shutil.copyfile(W + "/b", D + "/b2")
shutil.copymode(D + "/secret", D + "/r2")
shutil.copystat(D + "/secret", D + "/r3")
with open(D + "/text.txt", "rb") as a, open(D + "/t", "wb") as b:
    shutil.copyfileobj(a, b)
print(shutil.disk_usage(D).total > 0, oct(os.stat(D + "/r2").st_mode))
shutil.move(D + "/b2", W + "/b3")
shutil.move(W + "/b3", D + "/b4")
print(
    shutil.which("run.sh", path=D) == D + "/run.sh",
    shutil.make_archive(W + "/arc", "tar", D, "moved") == W + "/arc.tar",
)
os.remove(W + "/arc.tar")
''', core=True)

script("py-pathlib", r'''
p = Path(D)
print(
    sorted(x.relative_to(p).as_posix() for x in p.glob("*.txt")),
    sorted(x.relative_to(p).as_posix() for x in p.rglob("*") if x.is_file()),
)
(p / "w").write_text("abc\n")
(p / "w").write_bytes(b"xyz" * 1000)
print(
    len((p / "w").read_bytes()),
    (p / "text.txt").read_text()[:20],
    (p / "link").is_symlink(),
    (p / "link").resolve().name,
    (p / "dangling").exists(),
    (p / "link").readlink(),
)
(p / "q" / "r").mkdir(parents=True, exist_ok=True)
(p / "q" / "r").rmdir()
(p / "w").rename(p / "w2")
(p / "w2").replace(p / "empty")
(p / "touched").touch()
(p / "touched").chmod(0o600)
(p / "secret").unlink()
(p / "absent").unlink(missing_ok=True)
print(
    sorted(x.name for x in (p / "tree").iterdir()),
    (p / "text.txt").stat().st_size,
    (p / "text.txt").samefile(p / "link"),
    (p / "sl").symlink_to("tree"),
    (p / "sl").is_dir(),
    (p / "hl").hardlink_to(p / "text.txt"),
    (p / "text.txt").owner() != "",
)
''', core=True)

script("py-walk", r'''
for base, dirs, files in os.walk(D):
    dirs.sort()
    print(base.replace(D, ""), dirs, sorted(files))
with os.scandir(D) as it:
    for e in sorted(it, key=lambda e: e.name):
        print(
            e.name,
            e.is_dir(),
            e.is_file(follow_symlinks=False),
            e.is_symlink(),
            e.stat(follow_symlinks=False).st_size if not e.is_dir() else "",
            e.inode() == os.lstat(e.path).st_ino,
        )
for base, dirs, files, fd in os.fwalk(D + "/tree"):
    dirs.sort()
    print(base.replace(D, ""), sorted(files), sum(os.stat(n, dir_fd=fd).st_size for n in files))
import glob, fnmatch

print(
    sorted(glob.glob(D + "/t*/*/*.txt")),
    sorted(glob.glob("**/*.txt", root_dir=D, recursive=True)),
    os.path.realpath(D + "/dirlink/a/../b"),
    os.path.samefile(D, D + "/tree/.."),
)
''', core=True)

script("py-tempfile", r'''
import tempfile

with tempfile.TemporaryFile(dir=D) as f:
    f.write(b"temp")
    f.seek(0)
    print(f.read(), os.fstat(f.fileno()).st_nlink)
with tempfile.NamedTemporaryFile("w+", dir=D, suffix=".tmp") as f:
    f.write("named")
    f.flush()
    print(open(f.name).read(), Path(f.name).parent == Path(D))
with tempfile.TemporaryDirectory(dir=D) as d:
    Path(d, "x").write_text("y")
    print(os.listdir(d))
with tempfile.SpooledTemporaryFile(100, dir=D) as f:
    f.write(b"z" * 1000)
    f.seek(990)
    print(f.read())
fd, name = tempfile.mkstemp(dir=D)
os.write(fd, b"kept")
os.close(fd)
os.rename(name, D + "/kept")
print(oct(os.stat(D + "/kept").st_mode))
''')

script("py-archives", r'''
import zipfile, tarfile, gzip, bz2, lzma

with zipfile.ZipFile(D + "/z.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.write(D + "/text.txt", "text.txt")
    z.writestr(zipfile.ZipInfo("s"), "string")
with zipfile.ZipFile(D + "/z.zip", "a") as z:
    z.write(D + "/table.csv", "t.csv")
with zipfile.ZipFile(D + "/z.zip") as z:
    print(z.namelist(), z.testzip(), len(z.read("text.txt")))
    z.extractall(D + "/unzipped")
with tarfile.open(D + "/t.tar.gz", "w:gz") as t:
    t.add(D + "/tree", "tree")
with tarfile.open(D + "/t.tar.gz") as t:
    print(sorted(t.getnames()))
    t.extractall(D + "/untarred")
    print(t.extractfile("tree/a/one.txt").readline())
for module, suffix in ((gzip, "gz"), (bz2, "bz2"), (lzma, "xz")):
    with module.open(D + "/c." + suffix, "wt") as f:
        f.write("line\n" * 5000)
    with module.open(D + "/c." + suffix, "rt") as f:
        print(sum(1 for _ in f))
os.remove(D + "/t.tar.gz")
os.remove(D + "/c.gz")
''')

script("py-sqlite", r'''
import sqlite3

c = sqlite3.connect(D + "/db")
c.execute("create table t(a integer primary key, b blob)")
with c:
    c.executemany("insert into t(b) values(?)", ((bytes([i % 256]) * 500,) for i in range(2000)))
try:
    with c:
        c.execute("delete from t")
        raise RuntimeError
except RuntimeError:
    pass
print(
    c.execute("select count(*), sum(length(b)) from t").fetchone(),
    c.execute("pragma integrity_check").fetchone(),
)
c.close()
c = sqlite3.connect(f"file:{D}/db?mode=ro", uri=True)
print(c.execute("select max(a) from t").fetchone())
try:
    c.execute("delete from t")
except sqlite3.OperationalError as e:
    print(e)
d = sqlite3.connect(W + "/backup")
c.backup(d)
print(d.execute("select count(*) from t").fetchone())
d.close()
os.remove(W + "/backup")
''')

script("py-subprocess", r'''
import subprocess

with open(D + "/text.txt") as i, open(D + "/out", "w") as o:
    subprocess.run(["sort", "-r"], stdin=i, stdout=o, check=True)
print(open(D + "/out").readline(), end="")
with open(D + "/out", "a") as o:
    o.write("before\n")
    o.flush()
    subprocess.run(["echo", "child"], stdout=o, check=True)
    o.write("after\n")
print(open(D + "/out").read()[-20:])
print(
    subprocess.run(["cat", D + "/no-newline"], capture_output=True).stdout,
    subprocess.check_output("wc -c < $D/text.txt", shell=True),
    subprocess.run(["ls"], cwd=D + "/tree", capture_output=True, text=True).stdout,
)
fd = os.open(D + "/passed", os.O_CREAT | os.O_WRONLY)
subprocess.run(["bash", "-c", f"echo through {fd} >&{fd}".replace(f"through {fd}", "through")], pass_fds=[fd])
os.close(fd)
print(open(D + "/passed").read())
p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=open(D + "/piped", "wb"))
p.communicate(open(D + "/data.bin", "rb").read())
print(os.path.getsize(D + "/piped"))
os.system(f"echo sys > {D}/sys")
print(os.popen(f"cat {D}/sys").read())
''', core=True)

script("py-fork", r'''
f = open(D + "/forked", "w")
f.write("parent\n")
f.flush()
for i in range(5):
    if os.fork() == 0:
        f.write(f"child {i}\n")
        f.flush()
        os._exit(0)
    os.wait()
f.write("end\n")
f.close()
print(open(D + "/forked").read())
r = open(D + "/text.txt", "rb", buffering=0)
r.read(6)
if os.fork() == 0:
    r.read(100)
    os._exit(0)
os.wait()
print(r.tell(), r.read(10))
fd = os.open(D + "/append", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
kids = []
for i in range(4):
    pid = os.fork()
    if pid == 0:
        for j in range(50):
            os.write(fd, b"%d%02d\n" % (i, j))
        os._exit(0)
    kids.append(pid)
for k in kids:
    assert os.waitpid(k, 0)[1] == 0
lines = open(D + "/append").read().split()
print(len(lines), len(set(lines)))
Path(D + "/append").write_text("\n".join(sorted(lines)))
''', core=True)

case("py-multiprocessing", r'''
cat > job.py << 'END'
import multiprocessing as mp, os
D = os.environ["D"]
def part(i):
    with open(f"{D}/part{i}", "w") as f: f.write(f"{i}\n" * 1000)
    with open(f"{D}/shared", "r+b") as f: f.seek(i * 1000); f.write(bytes([65 + i]) * 1000)
    with open(f"{D}/text.txt") as f: return sum(len(l) for l in f)
if __name__ == "__main__":
    open(f"{D}/shared", "wb").close()
    for method in ("fork", "spawn"):
        with mp.get_context(method).Pool(3) as pool: print(method, pool.map(part, range(6)))
END
python3 job.py
''')

script("py-threads", r'''
import threading, hashlib
from concurrent.futures import ThreadPoolExecutor
def writer(i):
    with open(f"{D}/thread{i}", "wb") as f:
        for j in range(200):
            f.write(bytes([i]) * 997)
def reader(i):
    with open(D + "/big.bin", "rb") as f:
        f.seek(i * 100_000)
        return hashlib.md5(f.read(300_000)).hexdigest()
with ThreadPoolExecutor(8) as pool:
    list(pool.map(writer, range(16)))
    print(list(pool.map(reader, range(24))))
fd = os.open(D + "/one", os.O_CREAT | os.O_RDWR)
def slot(i):
    os.pwrite(fd, bytes([i % 256]) * 1000, i * 1000)
    return os.pread(fd, 1, i * 1000)[0] == i % 256
with ThreadPoolExecutor(8) as pool:
    print(all(pool.map(slot, range(500))))
os.close(fd)
''', core=True)

script("py-formats", r'''
import csv, json, pickle, configparser, shelve, dbm.dumb, tomllib, struct, array, marshal

with open(D + "/table.csv", newline="") as f:
    rows = list(csv.DictReader(f))
    print(len(rows), rows[3])
with open(D + "/o.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerows([[i, i * i, 'a,b"c'] for i in range(1000)])
json.dump({"rows": rows}, open(D + "/o.json", "w"))
print(len(json.load(open(D + "/o.json"))["rows"]), json.load(open(D + "/notes.json")))
with open(D + "/o.pickle", "wb") as f:
    pickle.dump(list(range(50000)), f)
    pickle.dump({"second": 2}, f)
with open(D + "/o.pickle", "rb") as f:
    print(len(pickle.load(f)), pickle.load(f))
db = dbm.dumb.open(D + "/dumb", "c")
db[b"k"] = b"v"
db.close()
print(dbm.dumb.open(D + "/dumb")[b"k"])
c = configparser.ConfigParser()
c["s"] = {"k": "v"}
c.write(open(D + "/o.ini", "w"))
c2 = configparser.ConfigParser()
print(c2.read(D + "/o.ini") != [], c2["s"]["k"])
a = array.array("d", range(1000))
a.tofile(open(D + "/o.array", "wb"))
b = array.array("d")
b.fromfile(open(D + "/o.array", "rb"), 1000)
print(a == b)
''')

script("py-errors", r'''
def attempt(what, *args, **kw):
    try:
        print("no error", what(*args, **kw))
    except OSError as e:
        print(type(e).__name__, e.errno)
attempt(open, D + "/absent")
attempt(open, D + "/tree")
attempt(open, D + "/tree", "w")
attempt(open, D + "/text.txt/x")
attempt(os.mkdir, D + "/tree")
attempt(os.rmdir, D + "/tree")
attempt(os.rmdir, D + "/text.txt")
attempt(os.unlink, D + "/tree")
attempt(os.unlink, D + "/absent")
attempt(os.rename, D + "/absent", D + "/x")
attempt(os.rename, D + "/tree", D + "/text.txt")
attempt(os.listdir, D + "/text.txt")
attempt(os.listdir, D + "/absent")
attempt(os.readlink, D + "/text.txt")
attempt(os.symlink, "x", D + "/link")
attempt(os.link, D + "/tree", D + "/h")
attempt(open, D + "/" + "n" * 256)
attempt(open, D + "/" + "n/" * 3000)
attempt(os.chdir, D + "/text.txt")
attempt(os.truncate, D + "/tree", 0)
attempt(os.stat, D + "/dangling")
attempt(os.open, D + "/link", os.O_NOFOLLOW)
attempt(os.open, D + "/text.txt", os.O_DIRECTORY)
attempt(os.open, D + "/text.txt", os.O_CREAT | os.O_EXCL)
fd = os.open(D + "/text.txt", os.O_RDONLY)
attempt(os.write, fd, b"x")
attempt(os.lseek, fd, -5, 0)
attempt(os.ftruncate, fd, 5)
attempt(os.pread, fd, 5, -1)
last = 2**63 - 1
attempt(os.lseek, fd, last, 1)
attempt(os.lseek, fd, last, 2)
attempt(os.pread, fd, 5, last)
attempt(os.preadv, fd, [bytearray(5)], last - 4)
os.close(fd)
for flags in (os.O_WRONLY, os.O_WRONLY | os.O_APPEND):
    fd = os.open(D + "/text.txt", flags)
    attempt(os.pwrite, fd, b"x", last)
    attempt(os.pwritev, fd, [b"xy"], last - 1)
    attempt(os.pwrite, fd, b"", last)
    os.close(fd)
fd = os.open(D + "/text.txt", os.O_WRONLY)
attempt(os.pwrite, fd, b"x", last - 1)
os.close(fd)
attempt(os.fstat, fd)
fd = os.open(D + "/text.txt", os.O_WRONLY)
attempt(os.read, fd, 5)
os.close(fd)
attempt(os.rename, D + "/tree", D + "/tree/b/x")
os.symlink("loop", D + "/loop")
attempt(open, D + "/loop")
attempt(os.stat, D + "/text.txt/")
attempt(os.rename, D + "/text.txt", "/dev/shm/sluice-never")
attempt(os.link, D + "/text.txt", "/dev/shm/sluice-never")
''')

script("py-statvfs-times", r'''
s = os.statvfs(D)
print(s.f_namemax, s.f_bsize > 0, s.f_blocks > 0)
os.utime(D + "/text.txt", (1e9, 1e9 + 0.5))
s = os.stat(D + "/text.txt")
print(s.st_atime_ns, s.st_mtime_ns, s.st_nlink, oct(s.st_mode))
os.utime(D + "/link", ns=(5, 7), follow_symlinks=False)
print(os.lstat(D + "/link").st_mtime_ns)
before = os.stat(D + "/empty").st_mtime
open(D + "/empty", "w").write("x")
print(os.stat(D + "/empty").st_mtime > before)
print(
    os.stat(D + "/text.txt").st_ino == os.stat(D + "/link").st_ino,
    os.stat(D + "/text.txt").st_dev == os.stat(D + "/tree").st_dev,
    os.stat(D + "/text.txt").st_blksize > 0,
)
fd = os.open(D + "/text.txt", os.O_RDWR)
os.utime(fd, (5e8, 5e8))
print(os.fstat(fd).st_mtime, os.fstat(fd).st_ino == os.stat(D + "/text.txt").st_ino)
os.close(fd)
''')

script("py-locks", r'''
import fcntl

f = open(D + "/lock", "w")
fcntl.lockf(f, fcntl.LOCK_EX)
if (pid := os.fork()) == 0:
    try:
        fcntl.lockf(open(D + "/lock", "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
        os._exit(1)
    except BlockingIOError:
        os._exit(0)
print(os.waitpid(pid, 0)[1])
fcntl.lockf(f, fcntl.LOCK_UN)
g = open(D + "/lock")
fcntl.flock(g, fcntl.LOCK_SH)
h = open(D + "/lock")
fcntl.flock(h, fcntl.LOCK_SH | fcntl.LOCK_NB)
try:
    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("refused")
g.close()
h.close()
fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("granted", fcntl.fcntl(f, fcntl.F_GETFL) & os.O_ACCMODE, fcntl.fcntl(f, fcntl.F_GETFD))
''')

script("py-sparse-and-5gib", r'''
fd = os.open(D + "/sparse", os.O_CREAT | os.O_RDWR)
os.pwrite(fd, b"far", 5 << 30)
os.pwrite(fd, b"mid", 3 << 30)
print(
    os.fstat(fd).st_size, os.pread(fd, 5, (5 << 30) - 1), os.pread(fd, 3, 3 << 30), os.pread(fd, 4, 1 << 30)
)
print(os.lseek(fd, 0, os.SEEK_END))
os.ftruncate(fd, (4 << 30) + 1)
print(os.stat(D + "/sparse").st_size)
os.close(fd)
with open(D + "/sparse", "r+b") as f:
    f.seek((4 << 30) - 2)
    f.write(b"xyz")
    f.seek(4 << 30)
    print(f.read(2))
    f.seek(3 << 30)
    print(f.read(4))
''')

case("py-compileall", r'''
mkdir $D/pkg
echo "X = 7" > $D/pkg/__init__.py
echo "from . import X; print(X * 6)" > $D/pkg/run.py
unset PYTHONDONTWRITEBYTECODE
python3 -m compileall -q --invalidation-mode unchecked-hash $D/pkg
ls $D/pkg/__pycache__
cd $D
python3 -m pkg.run
PYTHONPATH=$D python3 -c "import pkg; print(pkg.__file__)"
python3 $D/pkg/../pkg/__init__.py
cp -r pkg $W/
python3 -c "import zipapp; zipapp.create_archive('$D/pkg', '$W/a.pyz', main='run:print')"
rm -rf $W/a.pyz $D/pkg/__pycache__ $W/pkg
''')

case("py-stdio-streams", r'''
python3 -c "print(1); import sys; print(2, file=sys.stderr)" > $D/o 2> $D/e
python3 -c "import sys; print(len(sys.stdin.buffer.read()))" < $D/big.bin
python3 -u -c "import os; os.write(1, b'raw'); print('buffered'); os.write(1, b'raw2')" > $D/u
cat $D/u
python3 -c "import os; os.dup2(os.open('$D/dup', os.O_CREAT|os.O_WRONLY), 1); print('x'); os.system('echo y')"
cat $D/dup
echo "print('script')" > $D/s.py
python3 $D/s.py
python3 < $D/s.py
python3 -m json.tool $D/notes.json $D/pretty.json
python3 -m zipfile -c $D/m.zip $D/s.py
python3 -m tarfile -c $D/m.tar $D/s.py
python3 -m zipfile -l $D/m.zip | wc -l
rm $D/m.zip $D/m.tar
python3 -m difflib 2> /dev/null || true
python3 -m filecmp $D/tree $D/tree 2> /dev/null || true
rm -f $D/e
''')

script("py-sendfile", r'''
import socket, threading

a, b = socket.socketpair()
got = []
t = threading.Thread(target=lambda: [got.append(c) for c in iter(lambda: b.recv(65536), b"")])
t.start()
with open(D + "/data.bin", "rb") as f:
    print(a.sendfile(f))
    a.close()
    t.join()
    f.seek(0)
    print(b"".join(got) == f.read())
i, o = os.open(D + "/data.bin", os.O_RDONLY), os.open(D + "/sent", os.O_CREAT | os.O_WRONLY)
try:
    n = os.sendfile(o, i, 10, 1000)
    print(n)
except OSError:
    n = os.write(o, os.pread(i, 1000, 10))
    print(n)
print(os.path.getsize(D + "/sent"))
''')

script("py-append-and-copy-corners", r'''
import mmap, os

p = D + "/appended"
open(p, "wb").write(b"a" * 8192)
with open(p, "a+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[0:3] = b"XYZ"
    m.flush()
    os.fsync(f.fileno())
    print(os.path.getsize(p), open(p, "rb").read()[:5])
    m[5:8] = b"QQQ"
b = open(p, "rb").read()
print(len(b), b[:9], b[-3:])

fd = os.open(D + "/nothing", os.O_RDWR | os.O_CREAT | os.O_APPEND)
os.write(fd, b"0123456789")
os.lseek(fd, 2, 0)
os.write(fd, b"")
print(os.read(fd, 4))

fd = os.open(D + "/within", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 4096)
print(os.copy_file_range(fd, fd, 10000, 0, 10001), os.fstat(fd).st_size)
try:
    print(os.copy_file_range(fd, fd, 10, 0, 5))
except OSError as error:
    print(error.errno)

fd = os.open(D + "/behind", os.O_RDWR | os.O_CREAT)
os.write(fd, b"0123456789")
os.lseek(fd, 0, 0)
os.pwritev(fd, [b"AAAAA"], -1, os.RWF_APPEND)
os.write(fd, b"BBB")
print(open(D + "/behind", "rb").read())
''')
