"""A binary dump of LAMMPS: frames with headers and rows of numbers, seen as one array for each quantity, and as HDF5."""

import struct

from house.checking import run, tool, want
from layout.scene import PROGRAMS, check, needs

COLUMNS = ("id", "type", "x", "y", "z", "vx", "vy", "vz")

# What DumpCustom::header_binary() and DumpCustom::write_binary() of LAMMPS (src/dump_custom.cpp, format revision 2)
# write for every frame, of a run of one process.
DUMP = """
dataset {
    const FRAMES = %(frames)d
    const ATOMS = %(atoms)d
    type Atom struct { id, type, x, y, z, vx, vy, vz float64 }
    type Frame struct {
        magic_length int64          // negative, so that old readers do not take it for a step
        magic [10]uint8             // DUMPCUSTOM
        endian, revision int32
        step, atom_count int64
        triclinic int32
        boundary [3, 2]int32
        box [3, 2]float64
        column_count int32
        units_length int32
        has_time uint8
        names_length int32
        names [%(names)d]uint8
        chunk_count, number_count int32
        atoms [ATOMS]Atom
    }
    var frames [FRAMES]Frame
}
view "dump.bin" packed { var frames = frames }
view columns {
    var id [t][i] = frames[t].atoms[i].id
    var type [t][i] = frames[t].atoms[i].type
    var x [t][i] = frames[t].atoms[i].x
    var y [t][i] = frames[t].atoms[i].y
    var z [t][i] = frames[t].atoms[i].z
    var vx [t][i] = frames[t].atoms[i].vx
    var vy [t][i] = frames[t].atoms[i].vy
    var vz [t][i] = frames[t].atoms[i].vz
}
view last read-only { var positions [i] { x, y, z } = frames[FRAMES - 1].atoms[i] }
view run { var step [t] = frames[t].step; var box [t] = frames[t].box }
"""

READ = """
import sys, numpy
frames, atoms = int(sys.argv[2]), int(sys.argv[3])
raw = open(sys.argv[1], "rb").read()
size = len(raw) // frames
rows = numpy.stack([numpy.frombuffer(raw[size * (t + 1) - 64 * atoms:size * (t + 1)], "f8").reshape(atoms, 8) for t in range(frames)])
"""

READ_VIEWS = READ + """
found = numpy.fromfile("/far/columns", "f8").reshape(8, frames, atoms)
assert (found == rows.transpose(2, 0, 1)).all()
assert (numpy.fromfile("/far/last", "f8").reshape(atoms, 3) == rows[-1][:, 2:5]).all()
assert (numpy.fromfile("/far/run", "i8", frames) == numpy.arange(frames) * 10).all()
mapped = numpy.memmap("/far/columns", "f8", mode="r", offset=8 * 2 * frames * atoms, shape=(frames, atoms))
assert (mapped == rows[:, :, 2]).all() and rows[0, :, 2].max() > 1
print("equal")
"""

READ_HDF5 = READ + """
import h5py
with h5py.File(sys.argv[4]) as file:
    for number, name in enumerate(%r):
        found = file["columns/" + name]
        assert found.shape == (frames, atoms) and (found[:] == rows[:, :, number]).all(), name
    table = file["frames"]
    assert bytes(table["magic"][1]) == b"DUMPCUSTOM" and list(table["step"]) == [10 * t for t in range(frames)]
    assert (table["atoms"]["vz"] == rows[:, :, 7]).all()
with h5py.File(sys.argv[5]) as file:
    found = file["run/columns/x"]
    assert found.compression == "gzip" and (found[:] == rows[:, :, 2]).all()
print("equal")
""" % (COLUMNS,)


def header(raw):
    """Frames, atoms, and bytes of the names of the columns."""
    magic_length, = struct.unpack_from("<q", raw)
    want((magic_length, raw[8:18]) == (-10, b"DUMPCUSTOM"), f"no dump of this kind: {raw[:32]}")
    _, revision, _, atoms = struct.unpack_from("<iiqq", raw, 18)
    at = 42 + 4 + 24 + 48
    columns, units, has_time, names = struct.unpack_from("<iiBi", raw, at)
    want((revision, columns, units, has_time) == (2, 8, 0, 0), f"{(revision, columns, units, has_time)}")
    size = at + 13 + names + 8 + 64 * atoms
    want(len(raw) % size == 0, f"{len(raw)} bytes are no frames of {size}")
    return len(raw) // size, atoms, names


@check
def a_dump_of_lammps_is_arrays_and_hdf5(scene):
    """LAMMPS writes its own format into a view; numpy has structure of arrays, h5py a table and columns."""
    lammps, script = tool("lmp"), PROGRAMS / "lattice.lammps"
    needs("numpy", "h5py")
    command = [lammps, "-in", script, "-log", "none", "-screen", "none", "-var", "out"]
    native = scene.local / "native.bin"
    run(*command, native, cwd=scene.local)
    raw = native.read_bytes()
    frames, atoms, names = header(raw)
    stored = ['replica "stored.bin" { view "dump.bin" }',
              'replica "run.h5" hdf5 { view "dump.bin" group "/"; view columns }',
              'replica "small.h5" on-close hdf5 { view columns group "/run/columns" chunk [1, 500] deflate 4 }']
    with scene.dataset(DUMP % {"frames": frames, "atoms": atoms, "names": names}, *stored) as uri:
        scene.carry(uri, *command, "/far/dump.bin")
        want(scene.python(READ_VIEWS, native, str(frames), str(atoms), uri=uri) == "equal\n", "numpy")
    want((scene.directory / "stored.bin").read_bytes() == raw, "not the file that LAMMPS writes natively")
    files = (scene.directory / "run.h5", scene.directory / "small.h5")
    want(scene.python(READ_HDF5, native, str(frames), str(atoms), *files) == "equal\n", "h5py")


@check
def a_dump_that_was_there_is_taken_as_it_is(scene):
    """The file that LAMMPS left is the replica: it is described, and served without being copied or changed."""
    needs("numpy")
    native = scene.directory / "dump.bin"
    run(tool("lmp"), "-in", PROGRAMS / "lattice.lammps", "-log", "none", "-screen", "none", "-var", "out", native,
        cwd=scene.local)
    raw = native.read_bytes()
    frames, atoms, names = header(raw)
    with scene.dataset(DUMP % {"frames": frames, "atoms": atoms, "names": names}, 'replica "dump.bin" { view "dump.bin" }') as uri:
        want(scene.python(READ_VIEWS, native, str(frames), str(atoms), uri=uri) == "equal\n", "numpy")
    want(native.read_bytes() == raw, "the file was changed")
