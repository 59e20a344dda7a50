/* cxx write|read FILE DIRECTORY: PnetCDF's interface for C++. */
#include "told.h"

#include <pnetcdf>
#include <vector>

using namespace PnetCDF;

enum { Y = 12, X = 10 };

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    begin(&argc, &argv, argv[3]);
    try {
        MPI_Offset count;
        std::vector<MPI_Offset> start(2), counts(2);
        if (!strcmp(argv[1], "write")) {
            NcmpiFile file(MPI_COMM_WORLD, argv[2], NcmpiFile::replace, NcmpiFile::classic5);
            std::vector<NcmpiDim> dims{file.addDim("y", Y), file.addDim("x", X)};
            NcmpiVar field = file.addVar("field", ncmpiDouble, dims);
            field.putAtt("units", "K");
            file.enddef();
            start[0] = part(Y, rank_, size_, &count);
            counts[0] = count, counts[1] = X;
            std::vector<double> values(count * X);
            for (size_t at = 0; at < values.size(); at++) values[at] = start[0] * X + at;
            field.putVar_all(start, counts, values.data());
        } else {
            NcmpiFile file(MPI_COMM_WORLD, argv[2], NcmpiFile::read);
            NcmpiVar field = file.getVar("field");
            std::string units;
            field.getAtt("units").getValues(units);
            start[1] = part(X, rank_, size_, &count);
            counts[0] = Y, counts[1] = count;
            std::vector<float> values(Y * count);
            field.getVar_all(start, counts, values.data());
            told(units.c_str(), values.data(), values.size() * sizeof values[0]);
        }
    } catch (exceptions::NcmpiException &error) {
        fprintf(stderr, "%s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    end();
    return 0;
}
