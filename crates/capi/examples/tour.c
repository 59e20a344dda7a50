/* Writes a file of a service, reads a part of it, lists its directory, and removes it.
 *
 *     cc tour.c $(pkg-config --cflags --libs sluice_c) -o tour && ./tour scdc+uds://default/store
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sluice_error());
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s URI-OF-A-DIRECTORY\n", argv[0]);
        return 2;
    }
    char name[1024];
    snprintf(name, sizeof name, "%s/from-c.dat", argv[1]);

    sluice_file *file = sluice_open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file == NULL)
        give_up("open");
    double values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = i / 8.0;
    if (sluice_pwrite(file, values, sizeof values, 0) != (ssize_t) sizeof values)
        give_up("pwrite");
    double some[3];
    if (sluice_pread(file, some, sizeof some, 500 * sizeof(double)) != (ssize_t) sizeof some)
        give_up("pread");
    printf("values 500 to 502: %g %g %g\n", some[0], some[1], some[2]);
    if (sluice_truncate(file, 4000) != 0)
        give_up("truncate");
    printf("bytes: %" PRId64 "\n", sluice_size(file));
    if (sluice_close(file) != 0)
        give_up("close");

    sluice_dir *listing = sluice_list(argv[1]);
    if (listing == NULL)
        give_up("list");
    for (const char *entry; (entry = sluice_list_next(listing)) != NULL;)
        if (strcmp(entry, "from-c.dat") == 0)
            printf("listed: %s\n", entry);
    sluice_list_close(listing);

    sluice_stat_t stat;
    if (sluice_stat(name, &stat) != 0)
        give_up("stat");
    printf("stat: %" PRIu64 " bytes, mode %o\n", stat.size, (unsigned) stat.mode);
    if (sluice_remove(name) != 0)
        give_up("remove");
    if (sluice_stat(name, &stat) == 0 || errno != ENOENT)
        give_up("it is still there");
    return 0;
}
