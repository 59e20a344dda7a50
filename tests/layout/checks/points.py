"""The paper's dataset: N points of three float32, as structs, as arrays, and b alone."""

from house.checking import want
from layout.scene import check, needs

POINTS = """
dataset {
    const N = %d
    type Point struct { a, b, c float32 }
    var data [N]Point
}
view aos { var data = data }
view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }
view b { var b [] { b } = data }
"""

# Compares views with what points_write.c writes, a part at a time.
READ = """
import sys, numpy
n, part = int(sys.argv[1]), 4_000_000
aos, b = open("/far/aos", "rb"), open("/far/b", "rb")
a_of_soa, b_of_soa, c_of_soa = (open("/far/soa", "rb") for _ in range(3))
for number, column in enumerate((a_of_soa, b_of_soa, c_of_soa)):
    column.seek(4 * n * number)
for at in range(0, n, part):
    i = numpy.arange(at, min(at + part, n))
    a, b_, c = (i % 16777213).astype("f4"), (i % 8388593).astype("f4") + numpy.float32(0.5), -(i % 4194301).astype("f4")
    rows = numpy.fromfile(aos, "f4", 3 * len(i)).reshape(-1, 3)
    assert (rows[:, 0] == a).all() and (rows[:, 1] == b_).all() and (rows[:, 2] == c).all(), at
    for file, column in ((b, b_), (a_of_soa, a), (b_of_soa, b_), (c_of_soa, c)):
        assert (numpy.fromfile(file, "f4", len(i)) == column).all(), (file, at)
assert not aos.read(1) and not b.read(1) and not c_of_soa.read(1)
print("equal")
"""

STORED = (["replica r1 { view aos }"], ["replica r1 { view soa }"], ["replica r1 complete { view b }"],
          ["replica r1 { view soa }", "replica r2 async { view aos }", "replica r3 on-close { view b }"],
          ['replica "r.h5" hdf5 { view aos; view soa split }'])


def sizes(directory):
    return {path.name: path.stat().st_size for path in directory.iterdir() if path.is_file()}


@check
def a_legacy_program_never_changes_while_replicas_do(scene):
    """The same two programs, natively on a file and on a view, whatever is stored: the same answers, the same bytes."""
    write, read = scene.compile("points_write.c"), scene.compile("points_read.c")
    n, plain = 20_011, scene.local / "plain"
    said = []
    for replicas in STORED:
        text = POINTS % n
        with scene.dataset(text, *replicas) as uri:
            scene.carry(uri, write, plain, str(n))
            natively = [scene.carry(uri, read, plain) for _ in range(2)]
            scene.carry(uri, write, "/far/aos", str(n))
            carried = [scene.carry(uri, read, "/far/aos") for _ in range(2)]
            want(natively == carried, f"{replicas}: {natively} natively, {carried} carried")
            said.append(carried)
            want(scene.cat(uri, "aos") == plain.read_bytes(), f"{replicas}: other bytes")
        scene.forget()
    want(len(set(map(tuple, said))) == 1 and said[0][0] != said[0][1], f"{said}")


@check
def the_points_of_the_paper(scene):
    """168 million with --full: written as structs, read as structs, arrays and b; stored as arrays, and b."""
    needs("numpy")
    write, n = scene.compile("points_write.c"), 168_000_000 if scene.full else 1_000_003
    with scene.dataset(POINTS % n, "replica legacy { view soa }", "replica viz { view b }") as uri:
        scene.carry(uri, write, "/far/aos", str(n))
        want(scene.python(READ, str(n), uri=uri) == "equal\n", "numpy")
    found = sizes(scene.directory)
    want((found["legacy"], found["viz"]) == (12 * n, 4 * n), f"{found}")
