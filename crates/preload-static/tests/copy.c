/* copy FROM TO CHECK: copies a file by stdio and by descriptors, as any program would that knows nothing of
 * Sluice, and compares what can be asked about both. CHECK is a local file that must stay reachable. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int give_up(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    FILE *from = fopen(argv[1], "rb");
    if (!from) return give_up(argv[1]);
    int to = open(argv[2], O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (to < 0) return give_up(argv[2]);
    char buffer[5000];
    size_t count;
    while ((count = fread(buffer, 1, sizeof buffer, from)) > 0)
        if (write(to, buffer, count) != (ssize_t)count) return give_up("write");
    if (ferror(from) || fclose(from)) return give_up("read");
    if (close(to)) return give_up("close");
    struct stat one, other;
    if (stat(argv[1], &one) || stat(argv[2], &other)) return give_up("stat");
    if (one.st_size != other.st_size || access(argv[3], R_OK)) return give_up("compare");
    printf("%lld bytes\n", (long long)one.st_size);
    return 0;
}
