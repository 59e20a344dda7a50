"""Arrays in files, read when they are indexed. numpy is imported when the first is made."""

from __future__ import annotations

import ast
import contextlib
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from sluice import _sluice
from sluice._io import RawFile


class Array:
    """An array that lies in a file: indexing reads just what is asked for, and assigning writes it.

        lattice = sluice.Array(sluice.open(uri, "rb", 0), "<f4", (1000, 1000, 1000), offset=512)
        plane = lattice[:, 500, ::10]                 # a numpy array of (1000, 100)

    `file` is a `RawFile` (`file.raw` of a buffered one, which must be flushed before). `strides` are in bytes, as numpy has
    them; without, elements are dense in the `order` of C or Fortran. Indices are integers, slices and `...`; of structs the
    name of a field gives the array of that field, which is not read yet. What is read together is planned by the sieve.
    """

    def __init__(
        self,
        file: RawFile,
        dtype: Any,
        shape: int | tuple[int, ...] = (),
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
        order: str = "C",
    ) -> None:
        import numpy

        if not isinstance(file, RawFile):
            raise TypeError(f"an unbuffered file of sluice.open(…, buffering=0) is needed, not {type(file).__name__}")
        if order not in ("C", "F"):
            raise ValueError(f"order is 'C' or 'F', not {order!r}")
        lengths = [int(length) for length in (shape if isinstance(shape, (tuple, list)) else (shape,))]
        self.file = file
        self.dtype = numpy.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError("objects of Python have no bytes of their own in a file")
        if offset < 0 or min(lengths, default=0) < 0:
            raise ValueError("an offset or a length is not negative")
        if strides is None:
            dense, step = [0] * len(lengths), self.dtype.itemsize
            for axis in range(len(lengths)) if order == "F" else reversed(range(len(lengths))):
                dense[axis] = step
                step *= lengths[axis]
            strides = tuple(dense)
        if len(strides) != len(lengths) or min(strides, default=0) < 0:
            raise ValueError("as many strides as dimensions are needed, none of them negative")
        if self.dtype.subdtype is not None:
            # An element that is an array itself has more dimensions, as in numpy.
            inner, more = self.dtype.subdtype
            step = self.dtype.itemsize
            for length in more:
                step //= max(length, 1)
                lengths.append(length)
                strides = (*strides, step)
            self.dtype = inner
        self.shape = tuple(lengths)
        self.offset = offset
        self.strides = tuple(strides)

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<sluice.Array {self.dtype} {self.shape} in {self.file.name}>"

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("what lies in a file of a service is always copied")
        data = self[...]
        return data if dtype is None else data.astype(dtype, copy=False)

    def field(self, name: str) -> Array:
        """The array of one field of the structs; nothing is read."""
        if not self.dtype.fields or name not in self.dtype.fields:
            known = ", ".join(self.dtype.names or ()) or "none"
            raise KeyError(f"no field of name {name!r}; there are: {known}")
        kind, offset = self.dtype.fields[name][:2]
        return Array(self.file, kind, self.shape, self.offset + offset, self.strides)

    def __getitem__(self, key: Any) -> Any:
        import numpy

        if isinstance(key, str):
            return self.field(key)
        part = _Part(self, key)
        shape = [part.counts[axis] for axis in part.file_order]
        data = numpy.empty(shape, self.dtype)
        if data.size:
            flat = data.reshape(-1).view(numpy.uint8)
            read = self.file._file.read_strided(flat, *part.pattern())
            if read != flat.nbytes:
                raise EOFError(f"{self.file.name}: the file ends {flat.nbytes - read} bytes before the end of the array")
        data = data.transpose(part.array_order)[part.turned]
        return data[()] if part.is_element else data

    def __setitem__(self, key: Any, value: Any) -> None:
        import numpy

        if isinstance(key, str):
            self.field(key)[...] = value
            return
        if not self.file.writable():
            raise ValueError(f"{self.file.name} is open for reading only")
        part = _Part(self, key)
        value = numpy.broadcast_to(numpy.asarray(value, self.dtype), part.counts)
        data = numpy.ascontiguousarray(value[part.turned].transpose(part.file_order))
        if data.size:
            self.file._file.write_strided(data.reshape(-1).view(numpy.uint8), *part.pattern())


class _Part:
    """What an index means: a regular pattern in the file, and how numpy's array lies to it."""

    def __init__(self, array: Array, key: Any) -> None:
        keys = list(key) if isinstance(key, tuple) else [key]
        dots = [at for at, one in enumerate(keys) if one is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index has one ... only")
        if len(keys) - len(dots) > array.ndim:
            raise IndexError(f"{len(keys) - len(dots)} indices for {array.ndim} dimensions")
        at = dots[0] if dots else len(keys)
        keys[at : at + 1] = [slice(None)] * (array.ndim - (len(keys) - len(dots)))
        self.item = array.dtype.itemsize
        self.offset = array.offset
        self.is_element = bool(array.ndim == 0 or not dots)
        self.counts: list[int] = []
        self.strides: list[int] = []
        turned = []
        for one, length, stride in zip(keys, array.shape, array.strides):
            first: Any
            if isinstance(one, slice):
                self.is_element = False
                places = range(*one.indices(length))
                backwards = places.step < 0
                first = min(places, default=0)
                self.counts.append(len(places))
                self.strides.append(abs(places.step) * stride)
                turned.append(slice(None, None, -1 if backwards else None))
            else:
                first = None
                with contextlib.suppress(AttributeError, TypeError):
                    first = None if isinstance(one, bool) else one.__index__()
                if first is None:
                    raise IndexError(
                        "indices are integers, slices and ...; read a part by those, and index what was read"
                    )
                if not -length <= first < length:
                    raise IndexError(f"index {first} is out of bounds for a dimension of {length}")
                first %= length
            self.offset += first * stride
        self.turned = tuple(turned)
        # The file is read in its own order: the longest stride is the outermost.
        axes = range(len(self.counts))
        self.file_order = sorted(axes, key=lambda axis: (-self.strides[axis], -self.counts[axis], axis))
        self.array_order = [self.file_order.index(axis) for axis in axes]

    def pattern(self) -> tuple[int, list[int], list[int], int]:
        counts = [self.counts[axis] for axis in self.file_order]
        return self.offset, counts, [self.strides[axis] for axis in self.file_order], self.item


class View(Mapping[str, Array]):
    """A view of a dataset: its variables by name, as arrays with their dtypes.

        with sluice.View("scdc+uds://default/points/aos") as view:
            data = view["data"]              # <sluice.Array [('a', '<f4'), …] (1000,) in …>
            data["b"][::5]                   # b of every fifth point, read now

    How the file of the view lies is told by the dataset itself. What the arrays read and write goes through the service, whatever
    replicas the data is stored in. `writable` allows to assign to them.
    """

    def __init__(self, uri: Any, *, writable: bool = False) -> None:
        service, path = _sluice.split(uri)
        above, _, name = path.rstrip("/").rpartition("/")
        dataset = service + above
        try:
            definition = RawFile(f"{dataset}/.sluice/definition", os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            # Is there no such file at all? Then that is said.
            RawFile(uri, os.O_RDONLY).close()
            raise ValueError(f"{uri}: {dataset} is no dataset, so that nothing tells what the file holds") from None
        with definition:
            text = definition.readall().decode()
        arrays, read_only = _sluice.arrays_of_view(dataset, text, name)
        if writable and read_only:
            raise ValueError(f"{uri}: the view is read-only")
        self.definition = text
        """The definition of the dataset."""
        self.file = RawFile(uri, os.O_RDWR if writable else os.O_RDONLY)
        """The file of the view."""
        self._arrays = {
            name: Array(self.file, ast.literal_eval(dtype), tuple(shape), offset, order="F" if fortran else "C")
            for name, dtype, offset, shape, fortran in arrays
        }

    def __getitem__(self, name: str) -> Array:
        try:
            return self._arrays[name]
        except KeyError:
            raise KeyError(f"no variable of name {name!r}; there are: {', '.join(self._arrays)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        held = ", ".join(f"{name}: {array.dtype} {array.shape}" for name, array in self.items())
        return f"<sluice.View {self.file.name} {{{held}}}>"

    def close(self) -> None:
        """Closes the file; the arrays can be read no more."""
        self.file.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
