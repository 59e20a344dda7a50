"""numpy and h5py: what scientific programs do to files."""

from matrix.case import Registry

case = Registry("numeric")


def script(name, body, modules, **options):
    """A case whose body is Python with numpy (and h5py) at hand."""
    case(name, "python3 - <<'END_OF_PYTHON'\nimport os\nimport numpy as np\nD, U, W = (os.environ[v] for v in 'DUW')\n"
         + body + "\nEND_OF_PYTHON\n", modules=modules, **options)


NUMPY, H5PY = ("numpy",), ("numpy", "h5py")

script("numpy-save-load", r'''
a = np.arange(60000, dtype="f8").reshape(200, 300)
np.save(D + "/a.npy", a)
b = np.load(D + "/a.npy")
print((a == b).all(), b.shape)
np.savez(D + "/z.npz", a=a, s=a[::2])
z = np.load(D + "/z.npz")
print(sorted(z.files), z["s"].sum())
np.savez_compressed(D + "/c.npz", a=a)
print(np.load(D + "/c.npz")["a"].sum())
os.remove(D + "/z.npz")
os.remove(D + "/c.npz")
with open(D + "/two.npy", "wb") as f:
    np.save(f, a[0])
    np.save(f, a[1])
with open(D + "/two.npy", "rb") as f:
    print(np.load(f).sum(), np.load(f).sum())
np.save(U + "/uri.npy", a)
print(np.load(U + "/uri.npy").sum())
''', NUMPY, core=True)

script("numpy-fromfile", r'''
x = np.fromfile(D + "/data.bin", dtype="u1")
print(x.size, int(x.sum()))
print(np.fromfile(D + "/data.bin", dtype="<u4", count=10, offset=77))
x[::-1].tofile(D + "/rev.bin")
np.arange(1000).astype(">i4").tofile(D + "/be")
with open(D + "/mix", "wb") as f:
    f.write(b"HEAD")
    np.arange(10.0).tofile(f)
    f.write(b"TAIL")
    print(f.tell())
with open(D + "/mix", "rb") as f:
    f.read(4)
    print(np.fromfile(f, "f8", 10), f.read())
np.arange(5.0).tofile(D + "/text-out", sep=" ")
print(np.fromfile(D + "/text-out", sep=" "), np.fromfile(D + "/numbers.txt", sep="\n", dtype=int).sum())
''', NUMPY)

script("numpy-text", r'''
n = np.loadtxt(D + "/numbers.txt")
print(n.size, n.sum())
np.savetxt(D + "/out.txt", n[:500].reshape(50, 10), fmt="%.3e")
print(np.loadtxt(D + "/out.txt").shape)
t = np.genfromtxt(D + "/table.csv", delimiter=",", names=True, dtype=None, encoding="utf8")
print(t[3], t.dtype.names)
np.savetxt(D + "/out.gz", n[:10])
print(np.loadtxt(D + "/out.gz").sum())
os.remove(D + "/out.gz")
''', NUMPY)

script("numpy-memmap-read", r'''
m = np.memmap(D + "/big.bin", dtype="u1", mode="r")
print(m.shape, int(m.sum()), m[1234567])
m = np.memmap(D + "/big.bin", dtype="<u2", mode="r", offset=5000, shape=(100, 100))
print(int(m[::7, ::3].sum()))
m = np.memmap(D + "/data.bin", dtype="u1", mode="c")
m[:4] = 0
print(m[:6], np.fromfile(D + "/data.bin", "u1", 6))
np.save(W + "/l.npy", np.arange(9))
np.save(D + "/r.npy", np.arange(90))
print(np.load(D + "/r.npy", mmap_mode="r")[5:8])
''', NUMPY, core=True)

script("numpy-memmap-write", r'''
m = np.memmap(D + "/new.mm", dtype="f8", mode="w+", shape=(300, 400))
m[:] = np.arange(120000).reshape(300, 400)
m.flush()
m[7, 7] = -1
del m
print(np.fromfile(D + "/new.mm", "f8").sum())
m = np.memmap(D + "/new.mm", dtype="f8", mode="r+", shape=(300, 400))
m[100:200, ::2] *= 2
del m
print(np.fromfile(D + "/new.mm", "f8").sum())
a = np.lib.format.open_memmap(D + "/om.npy", mode="w+", dtype="i4", shape=(1000,))
a[:] = 5
a.flush()
print(np.load(D + "/om.npy").sum())
m = np.memmap(D + "/data.bin", dtype="u1", mode="r+", offset=10000, shape=(10,))
m[:] = 255
del m
''', NUMPY, core=True)

script("h5py-create-read", r'''
import h5py

with h5py.File(D + "/a.h5", "w") as f:
    f["x"] = np.arange(10000.0)
    g = f.create_group("g/h")
    g.attrs["unit"] = "m"
    g.create_dataset("i", data=np.arange(12).reshape(3, 4))
    f["s"] = "text"
    f["link"] = h5py.SoftLink("/g/h/i")
with h5py.File(D + "/a.h5", "r") as f:
    print(
        sorted(f),
        f["x"][10:20].sum(),
        f["g/h"].attrs["unit"],
        f["link"][1],
        f["s"][()],
        f["x"].id.get_offset() is not None,
    )
print(h5py.is_hdf5(D + "/a.h5"), h5py.is_hdf5(D + "/text.txt"))
''', H5PY, core=True)

script("h5py-chunked", r'''
import h5py

with h5py.File(D + "/c.h5", "w") as f:
    d = f.create_dataset(
        "d", (100, 100), maxshape=(None, 100), chunks=(10, 10), compression="gzip", dtype="i4"
    )
    d[...] = np.arange(10000).reshape(100, 100)
    d.resize((250, 100))
    d[200:] = 7
    f.create_dataset("l", data=np.zeros(50000), compression="lzf", shuffle=True, fletcher32=True)
with h5py.File(D + "/c.h5", "r+") as f:
    f["d"][0, :5] = -1
    f.create_dataset("more", data=np.ones(3))
    del f["l"]
    f.flush()
with h5py.File(D + "/c.h5", "a") as f:
    f["again"] = 5
    print(sorted(f), int(f["d"][...].sum()), f["d"].shape)
''', H5PY, core=True)

script("h5py-append-locks", r'''
import h5py

for i in range(5):
    with h5py.File(D + "/log.h5", "a") as f:
        d = (
            f.require_dataset("t", (0,), maxshape=(None,), chunks=(64,), dtype="f8")
            if "t" not in f
            else f["t"]
        )
        n = d.shape[0]
        d.resize((n + 100,))
        d[n:] = i
with h5py.File(D + "/log.h5") as f:
    print(f["t"].shape, f["t"][...].sum())
w = h5py.File(D + "/log.h5", "r+")
if os.fork() == 0:
    try:
        h5py.File(D + "/log.h5", "r+")
        os._exit(1)
    except OSError:
        os._exit(0)
print(os.wait()[1])
w.close()
try:
    h5py.File(D + "/absent.h5", "r")
except OSError as e:
    print(e.errno)
try:
    h5py.File(D + "/text.txt", "r")
except OSError as e:
    print("not HDF5")
''', H5PY)

script("h5py-drivers", r'''
import h5py

with h5py.File(D + "/sec2.h5", "w", driver="sec2") as f:
    f["x"] = np.arange(100)
with h5py.File(D + "/stdio.h5", "w", driver="stdio") as f:
    f["x"] = np.arange(100)
with h5py.File(D + "/core.h5", "w", driver="core", backing_store=True) as f:
    f["x"] = np.arange(100)
with h5py.File(D + "/latest.h5", "w", libver="latest") as f:
    f["x"] = np.arange(100)
    f.swmr_mode = True
    f["x"][5] = 0
    f.flush()
with open(D + "/obj.h5", "w+b") as o, h5py.File(o, "w") as f:
    f["x"] = np.arange(100)
for n in ("sec2", "stdio", "core", "latest", "obj"):
    with h5py.File(f"{D}/{n}.h5", "r") as f:
        print(n, f["x"][...].sum())
os.remove(D + "/latest.h5")  # holds the time of its making
''', H5PY)
