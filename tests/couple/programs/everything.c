/* everything write|read FILE DIRECTORY: one file with variables that are written in every way that PnetCDF has, by rows, and
 * read in every way, by columns. */
#include "told.h"

#include <stdint.h>

enum { Y = 24, X = 18, RECORDS = 5 };

/* What belongs at a place of a variable. */
static double value(int variable, long long y, long long x) { return variable * 1000 + y * 31 + x; }

struct ids {
    int y, x, time;
    int whole, rows, strided, mapped, parts, several[2], flexible, bytes_, text, posted, buffered, shorts, filled, unfilled, series,
        scalar, by_type, single, late, longs;
};

static void define(int file, struct ids *v, int create)
{
    (void)create;
    DO(ncmpi_def_dim(file, "y", Y, &v->y));
    DO(ncmpi_def_dim(file, "x", X, &v->x));
    DO(ncmpi_def_dim(file, "time", NC_UNLIMITED, &v->time));
    int plane[] = {v->y, v->x}, series[] = {v->time, v->x}, row[] = {v->x};
    DO(ncmpi_def_var(file, "whole", NC_FLOAT, 1, row, &v->whole));
    DO(ncmpi_def_var(file, "rows", NC_DOUBLE, 2, plane, &v->rows));
    DO(ncmpi_def_var(file, "strided", NC_INT, 2, plane, &v->strided));
    DO(ncmpi_def_var(file, "mapped", NC_INT, 2, plane, &v->mapped));
    DO(ncmpi_def_var(file, "parts", NC_FLOAT, 2, plane, &v->parts));
    DO(ncmpi_def_var(file, "first", NC_SHORT, 2, plane, &v->several[0]));
    DO(ncmpi_def_var(file, "second", NC_INT64, 2, plane, &v->several[1]));
    DO(ncmpi_def_var(file, "flexible", NC_DOUBLE, 2, plane, &v->flexible));
    DO(ncmpi_def_var(file, "bytes", NC_UBYTE, 2, plane, &v->bytes_));
    DO(ncmpi_def_var(file, "text", NC_CHAR, 2, plane, &v->text));
    DO(ncmpi_def_var(file, "posted", NC_DOUBLE, 2, plane, &v->posted));
    DO(ncmpi_def_var(file, "buffered", NC_FLOAT, 2, plane, &v->buffered));
    DO(ncmpi_def_var(file, "shorts", NC_SHORT, 2, plane, &v->shorts));
    DO(ncmpi_def_var(file, "filled", NC_INT, 2, plane, &v->filled));
    DO(ncmpi_def_var(file, "series", NC_DOUBLE, 2, series, &v->series));
    DO(ncmpi_def_var(file, "scalar", NC_INT, 0, NULL, &v->scalar));
    DO(ncmpi_def_var(file, "by_type", NC_INT, 2, plane, &v->by_type));
    DO(ncmpi_def_var(file, "single", NC_USHORT, 2, plane, &v->single));
    DO(ncmpi_def_var(file, "longs", NC_UINT, 2, plane, &v->longs));
}

static void write_file(const char *name)
{
    int file, i, request[4], status[4];
    struct ids v;
    MPI_Info info = MPI_INFO_NULL;
    DO(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, info, &file));
    define(file, &v, 1);
    int seven = -7, old;
    double range[] = {0.5, 2.5};
    DO(ncmpi_put_att_text(file, NC_GLOBAL, "title", 10, "everything"));
    DO(ncmpi_put_att_double(file, v.rows, "range", NC_FLOAT, 2, range));
    DO(ncmpi_def_var_fill(file, v.filled, 0, &seven));
    DO(ncmpi_set_fill(file, NC_NOFILL, &old));
    TELL(old);
    DO(ncmpi_def_var_fill(file, v.filled, 0, &seven));
    DO(ncmpi_def_var_fill(file, v.series, 0, NULL));
    DO(ncmpi_enddef(file));

    /* My rows. */
    MPI_Offset count[2], start[2] = {0, 0};
    start[0] = part(Y, rank_, size_, &count[0]);
    count[1] = X;
    size_t cells = count[0] * X, at = 0;
    double *doubles = malloc(cells * sizeof *doubles);
    float *floats = malloc(cells * sizeof *floats);
    int *ints = malloc(cells * sizeof *ints);
    short *shorts = malloc(cells * sizeof *shorts);
    long long *longs = malloc(cells * sizeof *longs);
    unsigned char *bytes = malloc(cells);
    char *text = malloc(cells);
#define EACH(expression)                                                                                               \
    for (at = 0; at < cells; at++) {                                                                                   \
        long long y = start[0] + (long long)(at / X), x = at % X;                                                      \
        (void)y, (void)x;                                                                                              \
        expression;                                                                                                    \
    }
    EACH(doubles[at] = value(1, y, x));
    DO(ncmpi_put_vara_double_all(file, v.rows, start, count, doubles));
    /* The program's memory is the program's again. */
    memset(doubles, 0xff, cells * sizeof *doubles);

    float row[X];
    for (i = 0; i < X; i++) row[i] = i * 0.25f;
    DO(ncmpi_put_var_float_all(file, v.whole, row));

    /* Every second column from the first, then every second from the second. */
    for (int odd = 0; odd < 2; odd++) {
        MPI_Offset from[] = {start[0], odd}, many[] = {count[0], X / 2}, stride[] = {1, 2};
        for (at = 0; at < (size_t)(count[0] * X / 2); at++)
            ints[at] = value(2, start[0] + at / (X / 2), 2 * (at % (X / 2)) + odd);
        DO(ncmpi_put_vars_int_all(file, v.strided, from, many, stride, ints));
    }
    /* Columns first in memory. */
    MPI_Offset map[] = {1, count[0]};
    for (i = 0; i < X; i++)
        for (MPI_Offset j = 0; j < count[0]; j++) ints[i * count[0] + j] = value(3, start[0] + j, i);
    DO(ncmpi_put_varm_int_all(file, v.mapped, start, count, NULL, map, ints));

    /* Two halves of each row, the second first. */
    int pieces = 2 * count[0];
    MPI_Offset **starts = malloc(pieces * sizeof *starts), **counts = malloc(pieces * sizeof *counts);
    at = 0;
    for (i = 0; i < pieces; i++) {
        starts[i] = malloc(2 * sizeof **starts);
        counts[i] = malloc(2 * sizeof **counts);
        starts[i][0] = start[0] + i / 2;
        starts[i][1] = i % 2 ? 0 : X / 2;
        counts[i][0] = 1;
        counts[i][1] = X / 2;
        for (int x = 0; x < X / 2; x++) floats[at++] = value(4, starts[i][0], starts[i][1] + x);
    }
    DO(ncmpi_put_varn_float_all(file, v.parts, pieces, starts, counts, floats));

    /* Two variables of different types by one call, from ints. */
    EACH(ints[at] = value(5, y, x));
    MPI_Offset *two_starts[] = {start, start}, *two_counts[] = {count, count};
    int *two[] = {ints, ints};
    DO(ncmpi_mput_vara_int_all(file, 2, v.several, two_starts, two_counts, two));

    /* From an array with ghost cells, by a datatype. */
    int sizes[] = {(int)count[0] + 2, X + 2}, subsizes[] = {(int)count[0], X}, starts_of[] = {1, 1};
    double *ghosts = calloc((count[0] + 2) * (X + 2), sizeof *ghosts);
    for (MPI_Offset j = 0; j < count[0]; j++)
        for (i = 0; i < X; i++) ghosts[(j + 1) * (X + 2) + i + 1] = value(6, start[0] + j, i);
    MPI_Datatype inner;
    MPI_Type_create_subarray(2, sizes, subsizes, starts_of, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_commit(&inner);
    DO(ncmpi_put_vara_all(file, v.flexible, start, count, ghosts, 1, inner));

    EACH(bytes[at] = (unsigned char)(y * 7 + x));
    DO(ncmpi_put_vara_uchar_all(file, v.bytes_, start, count, bytes));
    EACH(text[at] = (char)('a' + (y + x) % 26));
    DO(ncmpi_put_vara_text_all(file, v.text, start, count, text));

    /* Posted by rows, in a different order, and one of them taken back. */
    double *posted = malloc(cells * sizeof *posted);
    for (at = 0; at < cells; at++) posted[at] = value(7, start[0] + at / X, at % X);
    MPI_Offset half[] = {count[0] / 2, X}, rest[] = {count[0] - count[0] / 2, X};
    MPI_Offset second[] = {start[0] + count[0] / 2, 0};
    DO(ncmpi_iput_vara_double(file, v.posted, second, rest, posted + half[0] * X, &request[0]));
    DO(ncmpi_iput_vara_double(file, v.posted, start, half, posted, &request[1]));
    DO(ncmpi_iput_vara_double(file, v.posted, start, count, doubles, &request[2]));
    DO(ncmpi_cancel(file, 1, &request[2], &status[2]));
    TELL(request[2]);
    int pending;
    DO(ncmpi_inq_nreqs(file, &pending));
    TELL(pending);
    DO(ncmpi_wait_all(file, 2, request, status));
    TELL(request[0]);
    memset(posted, 0xff, cells * sizeof *posted);

    /* Copied when it is posted. */
    DO(ncmpi_buffer_attach(file, cells * sizeof *floats));
    EACH(floats[at] = value(8, y, x));
    DO(ncmpi_bput_vara_float(file, v.buffered, start, count, floats, &request[0]));
    memset(floats, 0xff, cells * sizeof *floats);
    MPI_Offset usage;
    DO(ncmpi_inq_buffer_usage(file, &usage));
    TELL((int)(usage == (MPI_Offset)(cells * sizeof *floats)));
    TELL(ncmpi_bput_vara_float(file, v.buffered, start, count, floats, &request[1]));
    TELL(ncmpi_buffer_detach(file));
    DO(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
    DO(ncmpi_buffer_detach(file));

    /* Some do not fit. */
    EACH(doubles[at] = x == 3 ? 1e6 : y == 5 ? -1e6 : y - x + 0.75);
    TELL(ncmpi_put_vara_double_all(file, v.shorts, start, count, doubles));
    EACH(doubles[at] = x == 2 ? -1 : 70000.0 * y + x);
    TELL(ncmpi_put_vara_double_all(file, v.longs, start, count, doubles));

    /* Every other row is never written. */
    for (MPI_Offset j = 0; j < count[0]; j++) {
        MPI_Offset from[] = {start[0] + j, 0}, many[] = {(start[0] + j) % 2 ? 0 : 1, X};
        for (i = 0; i < X; i++) ints[i] = value(9, start[0] + j, i);
        DO(ncmpi_begin_indep_data(file));
        DO(ncmpi_put_vara_int(file, v.filled, from, many, ints));
        DO(ncmpi_end_indep_data(file));
    }

    /* Records: each rank writes its columns, the last but one record is only filled. */
    MPI_Offset record[2], width[2] = {1, 0};
    record[1] = part(X, rank_, size_, &width[1]);
    double line[X];
    for (record[0] = 0; record[0] < RECORDS; record[0]++) {
        if (record[0] == RECORDS - 2) {
            DO(ncmpi_fill_var_rec(file, v.series, record[0]));
            continue;
        }
        for (i = 0; i < width[1]; i++) line[i] = value(10, record[0], record[1] + i);
        DO(ncmpi_put_vara_double_all(file, v.series, record, width, line));
        MPI_Offset records;
        DO(ncmpi_inq_dimlen(file, v.time, &records));
        TELL((int)records);
    }
    int answer = 42;
    DO(ncmpi_put_var_int_all(file, v.scalar, &answer));

    /* My rows of the file as a datatype. */
    int whole[] = {Y, X}, rows[] = {(int)count[0], X}, at_rows[] = {(int)start[0], 0};
    MPI_Datatype in_file;
    MPI_Type_create_subarray(2, whole, rows, at_rows, MPI_ORDER_C, MPI_INT, &in_file);
    MPI_Type_commit(&in_file);
    EACH(ints[at] = value(11, y, x));
    DO(ncmpi_put_vard_all(file, v.by_type, in_file, ints, cells, MPI_INT));

    /* Single elements, by one rank each. */
    DO(ncmpi_begin_indep_data(file));
    for (MPI_Offset y = start[0]; y < start[0] + count[0]; y++)
        for (MPI_Offset x = 0; x < X; x++) {
            MPI_Offset here[] = {y, x};
            unsigned short one = (unsigned short)value(12, y, x);
            DO(ncmpi_put_var1_ushort(file, v.single, here, &one));
        }
    DO(ncmpi_end_indep_data(file));

    /* What PnetCDF refuses. */
    MPI_Offset beyond[] = {Y, 0}, one[] = {1, 1}, negative[] = {-1, 1}, steps[] = {1, 0};
    TELL(ncmpi_put_vara_int_all(file, v.filled, beyond, one, ints));
    MPI_Offset last[] = {Y - 1, 0}, two_rows[] = {2, 1};
    TELL(ncmpi_put_vara_int_all(file, v.filled, last, two_rows, ints));
    TELL(ncmpi_put_vara_int_all(file, v.filled, last, negative, ints));
    TELL(ncmpi_put_vars_int_all(file, v.filled, last, one, steps, ints));
    TELL(ncmpi_put_vara_text_all(file, v.filled, last, one, text));
    TELL(ncmpi_put_vara_int_all(file, v.text, last, one, ints));
    TELL(ncmpi_put_vara_int(file, v.filled, last, one, ints));
    TELL(ncmpi_put_var1_int_all(file, 999, last, ints));
    TELL(ncmpi_put_var1_int_all(file, NC_GLOBAL, last, ints));
    TELL(ncmpi_put_vara_all(file, v.flexible, start, count, ghosts, 3, MPI_DOUBLE));
    TELL(ncmpi_wait_all(file, 1, (int[]){77}, status));

    /* More definitions. */
    DO(ncmpi_redef(file));
    TELL(ncmpi_put_vara_int_all(file, v.filled, last, one, ints));
    int plane[] = {v.y, v.x};
    DO(ncmpi_def_var(file, "late", NC_BYTE, 2, plane, &v.late));
    DO(ncmpi_rename_var(file, v.whole, "entire"));
    DO(ncmpi_put_att_int(file, v.late, "number", NC_INT, 1, &answer));
    DO(ncmpi__enddef(file, 512, 4, 0, 4));
    signed char *late = malloc(cells);
    EACH(late[at] = (signed char)(y - x));
    DO(ncmpi_put_vara_schar_all(file, v.late, start, count, late));
    /* As long as before, so that it may be changed in data mode. */
    DO(ncmpi_put_att_text(file, NC_GLOBAL, "title", 10, "Everything"));
    DO(ncmpi_sync(file));
    DO(ncmpi_close(file));
}

#define COLUMNS(type, suffix, variable)                                                                                \
    do {                                                                                                               \
        type *got = malloc(cells * sizeof *got);                                                                       \
        memset(got, 0x55, cells * sizeof *got);                                                                        \
        TELL(ncmpi_get_vara_##suffix##_all(file, variable, start, count, got));                                        \
        told(#variable " as " #suffix, got, cells * sizeof *got);                                                      \
        free(got);                                                                                                     \
    } while (0)

static int id(int file, const char *name)
{
    int id;
    DO(ncmpi_inq_varid(file, name, &id));
    return id;
}

static void read_file(const char *name)
{
    int file, ndims, nvars, natts, unlimited, format, i;
    DO(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file));
    DO(ncmpi_inq(file, &ndims, &nvars, &natts, &unlimited));
    DO(ncmpi_inq_format(file, &format));
    fprintf(told_, "%d %d %d %d %d\n", ndims, nvars, natts, unlimited, format);
    for (i = 0; i < ndims; i++) {
        char dimension[NC_MAX_NAME + 1];
        MPI_Offset length;
        DO(ncmpi_inq_dim(file, i, dimension, &length));
        fprintf(told_, "%s %lld\n", dimension, length);
    }
    for (i = 0; i < nvars; i++) {
        char variable[NC_MAX_NAME + 1];
        nc_type type;
        int dims, dimids[2], atts;
        MPI_Offset offset;
        DO(ncmpi_inq_var(file, i, variable, &type, &dims, dimids, &atts));
        DO(ncmpi_inq_varoffset(file, i, &offset));
        fprintf(told_, "%s %d %d %d %lld\n", variable, type, dims, atts, offset);
    }
    char title[11] = "";
    double range[2];
    int number, no_fill, fill, path_length;
    char path[4096] = "";
    MPI_Offset header;
    DO(ncmpi_get_att_text(file, NC_GLOBAL, "title", title));
    DO(ncmpi_get_att_double(file, id(file, "rows"), "range", range));
    DO(ncmpi_get_att_int(file, id(file, "late"), "number", &number));
    DO(ncmpi_inq_var_fill(file, id(file, "filled"), &no_fill, &fill));
    DO(ncmpi_inq_header_size(file, &header));
    DO(ncmpi_inq_path(file, &path_length, path));
    fprintf(told_, "%s %g %g %d %d %d %lld %d\n", title, range[0], range[1], number, no_fill, fill, header,
            path_length == (int)strlen(name) && !strcmp(path, name));
    TELL(ncmpi_inq_varid(file, "whole", &number));
    TELL(ncmpi_rename_var(file, 0, "x"));

    /* My columns. */
    MPI_Offset count[2], start[2] = {0, 0};
    count[0] = Y;
    start[1] = part(X, rank_, size_, &count[1]);
    size_t cells = Y * count[1];
    int rows = id(file, "rows"), strided = id(file, "strided"), mapped = id(file, "mapped"), parts = id(file, "parts"),
        first = id(file, "first"), second = id(file, "second"), flexible = id(file, "flexible"), bytes = id(file, "bytes"),
        text = id(file, "text"), posted = id(file, "posted"), buffered = id(file, "buffered"), shorts = id(file, "shorts"),
        filled = id(file, "filled"), series = id(file, "series"), scalar = id(file, "scalar"), by_type = id(file, "by_type"),
        single = id(file, "single"), late = id(file, "late"), longs = id(file, "longs");
    COLUMNS(double, double, rows);
    COLUMNS(float, float, rows);
    COLUMNS(int, int, strided);
    COLUMNS(long, long, mapped);
    COLUMNS(float, float, parts);
    COLUMNS(short, short, first);
    COLUMNS(long long, longlong, second);
    COLUMNS(unsigned long long, ulonglong, second);
    COLUMNS(double, double, flexible);
    COLUMNS(unsigned char, uchar, bytes);
    COLUMNS(signed char, schar, bytes);
    COLUMNS(char, text, text);
    COLUMNS(int, int, text);
    COLUMNS(double, double, posted);
    COLUMNS(float, float, buffered);
    COLUMNS(short, short, shorts);
    COLUMNS(unsigned short, ushort, shorts);
    COLUMNS(int, int, filled);
    COLUMNS(int, int, by_type);
    COLUMNS(unsigned short, ushort, single);
    COLUMNS(signed char, schar, single);
    COLUMNS(signed char, schar, late);
    COLUMNS(unsigned, uint, longs);
    COLUMNS(int, int, longs);

    /* The whole, one element, every third of my columns, turned around, in pieces, into ghost cells. */
    double whole[X], element;
    DO(ncmpi_get_var_double_all(file, id(file, "entire"), whole));
    told("entire", whole, sizeof whole);
    MPI_Offset here[] = {rank_ % Y, X - 1};
    DO(ncmpi_get_var1_double_all(file, rows, here, &element));
    told("one", &element, sizeof element);
    MPI_Offset stride[] = {3, 1}, thirds[] = {Y / 3, count[1]}, from[] = {1, start[1]};
    int *some = calloc(cells, sizeof *some);
    DO(ncmpi_get_vars_int_all(file, strided, from, thirds, stride, some));
    told("thirds", some, cells * sizeof *some);
    MPI_Offset map[] = {1, Y};
    DO(ncmpi_get_varm_int_all(file, mapped, start, count, NULL, map, some));
    told("turned", some, cells * sizeof *some);
    MPI_Offset *starts[] = {(MPI_Offset[]){Y - 1, start[1]}, (MPI_Offset[]){0, start[1]}},
               *counts[] = {(MPI_Offset[]){1, count[1]}, (MPI_Offset[]){2, count[1]}};
    float *pieces = calloc(cells, sizeof *pieces);
    DO(ncmpi_get_varn_float_all(file, parts, 2, starts, counts, pieces));
    told("pieces", pieces, cells * sizeof *pieces);
    int sizes[] = {Y + 2, (int)count[1] + 2}, subsizes[] = {Y, (int)count[1]}, starts_of[] = {1, 1};
    float *ghosts = calloc((Y + 2) * (count[1] + 2), sizeof *ghosts);
    MPI_Datatype inner;
    MPI_Type_create_subarray(2, sizes, subsizes, starts_of, MPI_ORDER_C, MPI_FLOAT, &inner);
    MPI_Type_commit(&inner);
    DO(ncmpi_get_vara_all(file, flexible, start, count, ghosts, 1, inner));
    told("ghosts", ghosts, (Y + 2) * (count[1] + 2) * sizeof *ghosts);

    int file_sizes[] = {Y, X}, file_part[] = {Y, (int)count[1]}, file_start[] = {0, (int)start[1]};
    MPI_Datatype in_file;
    MPI_Type_create_subarray(2, file_sizes, file_part, file_start, MPI_ORDER_C, MPI_INT, &in_file);
    MPI_Type_commit(&in_file);
    DO(ncmpi_get_vard_all(file, by_type, in_file, some, cells, MPI_INT));
    told("by datatype", some, cells * sizeof *some);

    /* Posted, and by several variables. */
    int request[3], status[3];
    double *a = calloc(cells, sizeof *a), *b = calloc(cells, sizeof *b);
    DO(ncmpi_iget_vara_double(file, rows, start, count, a, &request[0]));
    DO(ncmpi_iget_vara_double(file, posted, start, count, b, &request[1]));
    DO(ncmpi_iget_vara(file, flexible, start, count, ghosts, 1, inner, &request[2]));
    DO(ncmpi_wait_all(file, 3, request, status));
    fprintf(told_, "%d %d %d\n", status[0], status[1], status[2]);
    told("a", a, cells * sizeof *a);
    told("b", b, cells * sizeof *b);
    MPI_Offset *two_starts[] = {start, start}, *two_counts[] = {count, count};
    double *two[] = {b, a};
    DO(ncmpi_mget_vara_double_all(file, 2, (int[]){rows, flexible}, two_starts, two_counts, two));
    told("mget", a, cells * sizeof *a);

    /* Records. */
    double *lines = calloc(RECORDS * X, sizeof *lines);
    DO(ncmpi_get_var_double_all(file, series, lines));
    told("series", lines, RECORDS * X * sizeof *lines);
    MPI_Offset late_record[] = {RECORDS, 0}, one[] = {1, 1};
    TELL(ncmpi_get_vara_double_all(file, series, late_record, one, lines));
    MPI_Offset last[] = {RECORDS - 1, 0}, two_records[] = {2, 1};
    TELL(ncmpi_get_vara_double_all(file, series, last, two_records, lines));
    DO(ncmpi_begin_indep_data(file));
    if (rank_ == 0) {
        DO(ncmpi_get_vara_double(file, series, last, one, lines));
        told("last", lines, sizeof *lines);
    }
    DO(ncmpi_end_indep_data(file));
    DO(ncmpi_get_var_int_all(file, scalar, &number));
    TELL(number);
    TELL(ncmpi_put_var_int_all(file, scalar, &number));
    MPI_Offset size;
    DO(ncmpi_inq_get_size(file, &size));
    TELL((int)(size > 0));
    DO(ncmpi_close(file));
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    begin(&argc, &argv, argv[3]);
    if (!strcmp(argv[1], "write")) write_file(argv[2]);
    else read_file(argv[2]);
    end();
    return 0;
}
