"""Datasets: programs see layouts, replicas stay equal, and what breaks is said."""

import os
import random
import shutil
import struct
import subprocess
import time

from faults.scenario import Skip, clear_sentence, hold, scenario
from house import places

POINTS = 20_000

DATASET = """
dataset {
    const N = %d
    type Point struct { a, b, c float32 }
    var data [N]Point
}
view aos { var data = data }
view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }
view b { var b [] { b } = data }
view fifth { var d[i] = data[i*5] }
"""

NUMPY = """
import numpy
points = numpy.dtype([("a", "f4"), ("b", "f4"), ("c", "f4")])
n = %d
rows = numpy.zeros(n, points)
rows["a"], rows["b"], rows["c"] = numpy.arange(n), numpy.arange(n) + 0.5, -numpy.arange(n)
rows.tofile("/far/aos")
found = numpy.fromfile("/far/soa", "f4").reshape(3, n)
assert (found[0] == rows["a"]).all() and (found[1] == rows["b"]).all() and (found[2] == rows["c"]).all()
assert (numpy.fromfile("/far/fifth", points) == rows[::5]).all()
column = numpy.memmap("/far/b", "f4", mode="r+")
column[7::11] = 42
column.flush()
rows["b"][7::11] = 42
assert (numpy.fromfile("/far/aos", points) == rows).all()
print("equal")
"""

# A program from before there were datasets: it knows one file of its own format, and updates it in place.
LEGACY = r"""
#include <stdio.h>
#include <stdlib.h>

struct point { float a, b, c; };

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    FILE *file = fopen(argv[1], "r+b");
    if (!file) { perror(argv[1]); return 1; }
    struct point point;
    double sum = 0;
    for (long i = 0; fread(&point, sizeof point, 1, file) == 1; i++) {
        sum += point.b;
        if (i % 10 == 0) {
            point.c += atof(argv[2]);
            fseek(file, -(long)sizeof point, SEEK_CUR);
            if (fwrite(&point, sizeof point, 1, file) != 1) { perror("fwrite"); return 1; }
            fseek(file, 0, SEEK_CUR);
        }
    }
    if (fclose(file)) { perror("fclose"); return 1; }
    printf("%.1f\n", sum);
    return 0;
}
"""


def define(house, replicas, text=DATASET % POINTS, name="points.drepl"):
    """Writes a definition with these replicas."""
    directory = house.scratch / "dataset"
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(text + "\n".join(replicas) + "\n")
    return path


def serve(house, path):
    return house.serve(export=f"p={path}")


def rows(seed):
    """Points as an array of structs, and the bytes of the other layouts."""
    numbers = random.Random(seed)
    points = [(numbers.randrange(1 << 20), numbers.randrange(1 << 20), numbers.randrange(1 << 20)) for _ in range(POINTS)]
    aos = b"".join(struct.pack("<3f", *point) for point in points)
    soa = b"".join(struct.pack(f"<{POINTS}f", *(point[k] for point in points)) for k in range(3))
    b = struct.pack(f"<{POINTS}f", *(point[1] for point in points))
    fifth = b"".join(struct.pack("<3f", *point) for point in points[::5])
    return {"aos": aos, "soa": soa, "b": b, "fifth": fifth}


def differences(house, uri, expected):
    """The views that `sluice cat` does not give as expected."""
    wrong = []
    for view, data in expected.items():
        got = subprocess.run([house.sluice, "cat", f"{uri}/p/{view}"], capture_output=True, timeout=60)
        if got.returncode != 0 or got.stdout != data:
            wrong.append(view)
    return wrong


@scenario
def programs_see_the_layout_they_like(house):
    """cp, dd, cat and the shell write one view and read others; every replica gets it, byte for byte."""
    for number, replicas in enumerate((["replica r1 { view aos }"], ["replica r1 { view soa }"],
                                       ["replica r1 { view aos }", "replica r2 { view soa }", "replica r3 complete { view b }"],
                                       ["replica r1 { view aos }", "replica r2 async { view soa }", "replica r3 on-close { view b }"])):
        shutil.rmtree(house.scratch / "dataset", ignore_errors=True)
        service = serve(house, define(house, replicas))
        for written, how in (("aos", "cp"), ("soa", "dd"), ("aos", "cat")):
            expected = rows(f"{number}{written}{how}")
            (house.local / "in").write_bytes(expected[written])
            command = {"cp": f"cp in /far/{written}", "cat": f"cat in > /far/{written}",
                       "dd": f"dd if=in of=/far/{written} bs=7777 conv=notrunc status=none"}[how]
            done = house.run(f"{service.uri}/p", f"{command} && cmp in /far/{written} && ls -l /far")
            hold(done.returncode == 0, how, done.stderr)
            hold(str(len(expected["b"])) in done.stdout, done.stdout)
            hold(not differences(house, service.uri, expected), how, replicas, differences(house, service.uri, expected))
        hold(service.stop(), "it had to be killed")
        done = house.cli("layout", "status", house.scratch / "dataset" / "points.drepl")
        hold(done.returncode == 0 and "not closed" not in done.stdout, done.stdout, done.stderr)
        stored = {"aos": "r1", "soa": "r2", "b": "r3"} if len(replicas) > 1 else {replicas[0].split()[-2]: "r1"}
        for view, name in stored.items():
            data = (house.scratch / "dataset" / name).read_bytes()
            hold(data[:len(expected[view])] == expected[view], name, "differs")


@scenario
def numpy_reads_and_maps_views(house):
    """numpy writes an array of structs, reads arrays, and changes a column through a mapping."""
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode:
        raise Skip("numpy is not installed")
    service = serve(house, define(house, ["replica r1 { view soa }", "replica r2 { view b }"]))
    done = house.run(f"{service.uri}/p", f"/usr/bin/python3 -c '{NUMPY % POINTS}'")
    hold(done.stdout.strip() == "equal", done.stdout, done.stderr)


@scenario
def a_legacy_program_stays_while_replicas_change(house):
    """The same binary gives the same results whatever its data is stored in."""
    source, program = house.scratch / "legacy.c", house.scratch / "legacy"
    source.write_text(LEGACY)
    built = subprocess.run(["gcc", "-O2", "-o", program, source], capture_output=True, text=True)
    if built.returncode:
        raise Skip(f"gcc: {built.stderr.strip()}")
    data = rows("legacy")["aos"]
    plain = house.local / "plain"
    said = []
    for replicas in (["replica r1 { view aos }"], ["replica r1 { view soa }"], ["replica r1 { view soa }", "replica r2 async { view aos }"],
                     ["replica r1 complete { view fifth }"]):
        plain.write_bytes(data)
        natively = subprocess.run([program, plain, "0.25"], capture_output=True, text=True)
        shutil.rmtree(house.scratch / "dataset", ignore_errors=True)
        service = serve(house, define(house, replicas))
        (house.local / "in").write_bytes(data)
        done = house.run(f"{service.uri}/p", f"cat in > /far/aos && {program} /far/aos 0.25 && cmp plain /far/aos")
        hold(done.returncode == 0 and done.stdout == natively.stdout, replicas, done.stdout, done.stderr)
        said.append(done.stdout)
        service.stop()
    hold(len(set(said)) == 1, said)


@scenario
def a_second_service_is_refused(house):
    """Whoever comes second is told which process has the dataset."""
    path = define(house, ["replica r1 { view aos }", "replica r2 { view soa }"])
    service = serve(house, path)
    done = house.cli("serve", f"p={path}", "--listen", f"unix:{house.scratch}/other.sock")
    clear_sentence(done, "in use", str(service.pid))
    done = house.cli("layout", "rebuild", path)
    hold(done.returncode == 0 and "up to date" in done.stdout, "the service is asked", done.stdout, done.stderr)
    done = house.cli("layout", "status", path)
    hold(done.returncode == 0 and str(service.pid) in done.stdout, done.stdout, done.stderr)
    service.stop()
    hold("process" not in house.cli("layout", "status", path).stdout, "nobody has it any more")
    serve(house, path)


@scenario
def killed_services_leave_equal_replicas(house):
    """SIGKILL while a program writes; what it was told is there, and replicas agree."""
    path = define(house, ["replica r1 { view aos }", "replica r2 { view soa }", "replica r3 async { view b }"])
    for turn in range(4):
        service = serve(house, path)
        data = rows(f"kill{turn}")
        (house.local / "in").write_bytes(data["aos"])
        program = ("import os\nat = os.open('/far/aos', os.O_WRONLY)\ndata = open('in', 'rb').read()\n"
                   "for i in range(0, len(data), 5000):\n    os.pwrite(at, data[i:i+5000], i); os.fsync(at); print(i, flush=True)\n")
        writer = house.start(house.python(f"{service.uri}/p", program), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True)
        told = 0
        for line in writer.stdout:
            told = int(line) + 5000
            if told > 20_000 + 40_000 * turn:
                service.kill()
                break
        writer.kill()
        hold(told > 0, "nothing was written")
        service = serve(house, path)
        got = subprocess.run([house.sluice, "cat", f"{service.uri}/p/aos"], capture_output=True, timeout=60).stdout
        hold(got[:told] == data["aos"][:told], "acknowledged data is lost", turn)
        again = {"soa": b"".join(got[k + 12 * i:k + 12 * i + 4] for k in (0, 4, 8) for i in range(POINTS)),
                 "b": b"".join(got[4 + 12 * i:8 + 12 * i] for i in range(POINTS))}
        hold(not differences(house, service.uri, again), "views differ")
        service.stop()
        for name, data in (("r1", got), ("r2", again["soa"]), ("r3", again["b"])):
            hold((house.scratch / "dataset" / name).read_bytes() == data, name, "differs")


@scenario
def a_full_disk_costs_one_replica_of_three(house):
    """A replica on a full disk is stale and said to be; programs do not notice; rebuild makes it anew."""
    if os.geteuid() != 0:
        raise Skip("mounting needs root")
    small = house.scratch / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True, text=True)
    if mounted.returncode:
        raise Skip(f"mount: {mounted.stderr.strip()}")
    house.closing.append(lambda: subprocess.run(["umount", "-l", small], capture_output=True))
    directory = house.scratch / "dataset"
    directory.mkdir()
    (directory / "small").symlink_to(small)
    path = define(house, ["replica r1 { view aos }", 'replica "small/r2" { view soa }', "replica r3 complete { view b }"])
    service = serve(house, path)
    expected = rows("full")
    (house.local / "in").write_bytes(expected["aos"])
    done = house.run(f"{service.uri}/p", "cat in > /far/aos && sync /far/aos && cmp in /far/aos")
    hold(done.returncode == 0, done.stderr)
    hold(not differences(house, service.uri, expected), "views differ")
    time.sleep(0.2)
    said = [line for line in service.lines if "stale" in line]
    hold(len(said) == 1 and "small/r2" in said[0] and "No space left" in said[0], service.lines)
    done = house.cli("layout", "status", path)
    hold(done.returncode == 1 and "stale" in done.stdout and "No space left" in done.stdout, done.stdout)
    service.stop()
    subprocess.run(["mount", "-o", "remount,size=8m", small], check=True)
    done = house.cli("layout", "rebuild", path)
    hold(done.returncode == 0 and "small/r2: made" in done.stdout, done.stdout, done.stderr)
    hold((small / "r2").read_bytes() == expected["soa"], "the new one differs")
    hold(house.cli("layout", "status", path).returncode == 0, "it is up to date")


@scenario
def views_cannot_be_made_removed_or_cut(house):
    """What a directory of views does not do is refused with the usual errors, and changes nothing."""
    service = serve(house, define(house, ["replica r1 { view aos }"], DATASET % POINTS + "view ro read-only { var data = data }\n"))
    expected = rows("refused")
    (house.local / "in").write_bytes(expected["aos"])
    hold(house.run(f"{service.uri}/p", "cat in > /far/aos").returncode == 0, "writing")
    for script, said in (("echo x > /far/new", "not permitted"), ("rm /far/b", "not permitted"), ("mv /far/b /far/c", "not permitted"),
                         ("mkdir /far/d", "not permitted"), ("ln -s x /far/s", "not permitted"), ("echo x > /far/ro", "Read-only"),
                         ("truncate -s 100 /far/b", "Invalid argument"), ("chmod 600 /far/b", "not permitted"),
                         ("dd if=/dev/zero of=/far/b bs=1k count=1 seek=1000 conv=notrunc status=none", "File too large")):
        clear_sentence(house.run(f"{service.uri}/p", script), said)
    done = house.run(f"{service.uri}/p", "truncate -s 0 /far/b; truncate -s %d /far/b; : > /far/aos; stat -c '%%s %%a' /far/b /far/ro"
                     % len(expected["b"]))
    hold(done.stdout.split() == [str(len(expected["b"])), "644", str(len(expected["aos"])), "444"], done.stdout, done.stderr)
    hold(not differences(house, service.uri, expected), "something was changed")


@scenario
def definitions_that_cannot_be_served(house):
    """A wrong definition is shown with its line; a cut replica with both sizes."""
    path = define(house, ["replica r1 { view nothing }"])
    done = house.cli("serve", f"p={path}", "--listen", f"unix:{house.scratch}/x.sock")
    clear_sentence(done, "nothing", "points.drepl")
    path = define(house, ["replica r1 { view aos }"])
    serve(house, path).stop()
    with open(house.scratch / "dataset" / "r1", "r+b") as file:
        file.truncate(1234)
    done = house.cli("serve", f"p={path}", "--listen", f"unix:{house.scratch}/x.sock")
    clear_sentence(done, "1234", str(12 * POINTS))
    done = house.cli("run", "--store", f"p={path}", "--", "cat", "scdc:///p/aos")
    clear_sentence(done, "1234", str(12 * POINTS))


@scenario
def fortran_records_are_plain_arrays_to_others(house):
    """gfortran writes an unformatted sequential file; C readers see arrays, and the other way round."""
    if shutil.which("gfortran", path=places.CASE_PATH) is None:
        raise Skip("gfortran is not installed")
    source, program = house.scratch / "records.f90", house.scratch / "records"
    source.write_text("""
program records
  real(8) :: a(1000)
  integer(4) :: k(1000), i
  do i = 1, 1000
    a(i) = i / 4d0
    k(i) = -i
  end do
  open(10, file='/far/f', form='unformatted', access='sequential')
  write(10) a
  write(10) k
  rewind(10)
  a = 0; k = 0
  read(10) a
  read(10) k
  if (a(1000) /= 250d0 .or. k(7) /= -7) stop 1
  close(10)
end program
""")
    subprocess.run(["gfortran", "-O1", "-o", program, source], check=True)
    text = ("dataset { var a [1000]float64; var k [1000]int32 }\nview f records 4 { var a = a; var k = k }\n"
            "view plain { var a = a; var k = k }\nview k { var k = k }\n")
    service = serve(house, define(house, ["replica r1 { view plain }"], text))
    done = house.run(f"{service.uri}/p", str(program))
    hold(done.returncode == 0, done.stdout, done.stderr)
    a = struct.pack("<1000d", *(i / 4 for i in range(1, 1001)))
    k = struct.pack("<1000i", *(-i for i in range(1, 1001)))
    record = lambda data: struct.pack("<i", len(data)) + data + struct.pack("<i", len(data))
    wrong = differences(house, service.uri, {"plain": a + k, "k": k, "f": record(a) + record(k)})
    hold(not wrong, wrong)


STL = """
dataset {
    const N = %d
    type Vector struct { x, y, z float32 }
    type Triangle struct { normal Vector; corner [3]Vector; attribute uint16 }
    var title [80]uint8
    var count uint32
    var triangles [N]Triangle
}
view "mesh.stl" packed { var title = title; var count = count; var triangles = triangles }
view normals { var x[i] = triangles[i].normal.x; var y[i] = triangles[i].normal.y; var z[i] = triangles[i].normal.z }
view parts { var normal[i] = triangles[i].normal; var corner[i] = triangles[i].corner }
replica "stored.stl" complete { view "mesh.stl" }
replica "mesh.h5" hdf5 {
    view "mesh.stl" group "/"
    view normals
}
replica "small.h5" on-close hdf5 {
    view parts group "/mesh" split deflate 6
}
"""

READ_HDF5 = """
import sys
import h5py, numpy
directory, n = sys.argv[1], int(sys.argv[2])
triangle = numpy.dtype([("normal", "<f4", 3), ("corner", "<f4", (3, 3)), ("attribute", "<u2")])
stl = numpy.fromfile(directory + "/given.stl", triangle, offset=84)
assert len(stl) == n
with h5py.File(directory + "/dataset/mesh.h5") as file:
    assert file["count"][()] == n
    assert bytes(file["title"][:]) == open(directory + "/given.stl", "rb").read(80)
    found = file["triangles"]
    assert found.dtype.names == ("normal", "corner", "attribute"), found.dtype
    assert (found["attribute"] == stl["attribute"]).all()
    assert (found["normal"]["y"] == stl["normal"][:, 1]).all()
    assert (file["normals/z"][:] == stl["normal"][:, 2]).all()
with h5py.File(directory + "/dataset/small.h5") as file:
    assert file["mesh/normal/x"].compression == "gzip"
    assert (file["mesh/normal/x"][:] == stl["normal"][:, 0]).all()
    assert (file["mesh/corner/z"][:] == stl["corner"][:, :, 2]).all()
print("equal")
"""

MAKE_HDF5 = """
import sys
import h5py, numpy
with h5py.File(sys.argv[1], "w") as file:
    file["time"] = 1.5
    file["run/density"] = numpy.arange(24, dtype="<f8").reshape(4, 6)
    file["run/big"] = numpy.arange(12, dtype=">i4")
    file.create_dataset("run/packed", data=numpy.arange(1000, dtype="<i8"), chunks=(100,), compression="gzip")
    file["run/names"] = numpy.array([b"one", b"two"], dtype="S5")
    file["run/words"] = ["of", "variable length"]
"""


def system_python():
    """The Python that has the system's h5py."""
    if subprocess.run(["/usr/bin/python3", "-c", "import h5py, numpy"], capture_output=True).returncode:
        raise Skip("the system's Python has no h5py")
    return "/usr/bin/python3"


@scenario
def an_old_format_comes_out_as_hdf5(house):
    """A binary STL is written as ever; numpy reads structure of arrays, h5py a table and compressed columns."""
    python, n = system_python(), 5000
    path = define(house, [], STL % n)
    numbers = random.Random(5)
    body = b"".join(struct.pack("<12fH", *(numbers.randrange(1 << 20) / 8 for _ in range(12)), i) for i in range(n))
    given = house.scratch / "given.stl"
    given.write_bytes(b"solid of triangles".ljust(80) + struct.pack("<I", n) + body)
    service = serve(house, path)
    done = house.run(f"{service.uri}/p", f"cp {given} /far/mesh.stl && cmp {given} /far/mesh.stl && cat /far/normals")
    hold(done.returncode == 0, done.stderr)
    column = [struct.unpack_from("<3f", body, 50 * i) for i in range(n)]
    expected = b"".join(struct.pack(f"<{n}f", *(normal[k] for normal in column)) for k in range(3))
    hold(not differences(house, service.uri, {"normals": expected}), "normals differ")
    hold(service.stop(), "it had to be killed")
    hold((path.parent / "stored.stl").read_bytes() == given.read_bytes(), "the STL that is stored differs")
    read = subprocess.run([python, "-c", READ_HDF5, house.scratch, str(n)], timeout=60, capture_output=True, text=True)
    hold(read.stdout == "equal\n", read.stderr)


@scenario
def an_hdf5_file_appears_as_raw_views(house):
    """`sluice layout import` takes over a file of h5py's; plain programs read and write its datasets."""
    python = system_python()
    path = define(house, [], "")
    file = path.parent / "run.h5"
    subprocess.run([python, "-c", MAKE_HDF5, file], check=True, timeout=60)
    made = house.cli("layout", "import", file)
    hold(made.returncode == 0 and "/run/words is left out: " in made.stderr, made.stderr)
    views = "view wanted bigendian { var density [i,j] = run_density[j,i] }\nview big { var big = run_big }\n"
    path.write_text(made.stdout + views)
    service = serve(house, path)
    transposed = struct.pack(">24d", *(float(6 * i + j) for j in range(6) for i in range(4)))
    expected = {"wanted": transposed, "big": struct.pack("<12i", *range(12))}
    hold(not differences(house, service.uri, expected), differences(house, service.uri, expected))
    (house.local / "new").write_bytes(struct.pack("<2i", 70, 80))
    done = house.run(f"{service.uri}/p", "dd if=new of=/far/big bs=4 seek=3 conv=notrunc status=none")
    hold(done.returncode == 0, done.stderr)
    hold(service.stop(), "it had to be killed")
    read = "import h5py, sys; f = h5py.File(sys.argv[1]); print(list(f['run/big'][:6]), f['run/names'][1], f['run/packed'][999])"
    found = subprocess.run([python, "-c", read, file], timeout=60, capture_output=True, text=True)
    hold(found.stdout == "[0, 1, 2, 70, 80, 5] b'two' 999\n", found.stdout, found.stderr)
