/* smallfiles make|read DIR COUNT: COUNT files of 4 KiB each.
 *
 * `read` opens, reads and closes each of them once, in order, checks that it got
 * the right one, and prints the seconds. */
#include "common.h"

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: smallfiles make|read DIR COUNT\n");
        return 2;
    }
    int making = !strcmp(argv[1], "make");
    long count = atol(argv[3]);
    unsigned char *block = new_block();
    char name[4200];
    double begin = seconds_now();
    for (long i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * PAGE;
        snprintf(name, sizeof name, "%s/f%05ld", argv[2], i);
        int fd = making ? open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644) : open(name, O_RDONLY);
        if (fd < 0) give_up(name);
        if (making) pattern_stamp(block, PAGE, at);
        else memset(block, 0, 8);
        ssize_t n = making ? write(fd, block, PAGE) : read(fd, block, PAGE);
        if (n != PAGE) give_up(name);
        if (close(fd)) give_up(name);
        pattern_check(name, block, PAGE, at);
    }
    printf("{\"seconds\": %.9f, \"files\": %ld}\n", seconds_now() - begin, count);
    return 0;
}
