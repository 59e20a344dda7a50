#!/usr/bin/python3
"""Datasets with real inputs: the files of LAMMPS, gfortran, HDF5 and NetCDF-4, and the readers people have.

Programs here never change: what differs between the runs of one is the layout that is stored. Sizes are small;
with --full there are the 168 million points of the paper, a Fortran record of more than 2 GiB, VTK and ParaView.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from house import suite  # noqa: E402
from layout.scene import CHECKS, Scene  # noqa: E402

if __name__ == "__main__":
    sys.exit(suite.conduct("layout", __doc__, HERE, CHECKS, Scene))
