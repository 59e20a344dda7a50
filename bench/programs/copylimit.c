/* The limit of what any way of access to a file in the page cache can reach:
 * the file is mapped, and each block is copied. No call, no lock. */
#include <sys/mman.h>
#include <sys/stat.h>

#include "beside.h"

static char *map, *memory;
static size_t memory_len;

static const char *copy_blocks(const struct request *r, uint64_t start, uint64_t len) {
    char *user = memory;
    uint64_t block = start / r->data, within = start % r->data;
    while (len > 0) {
        uint64_t part = r->data - within < len ? r->data - within : len;
        char *there = map + r->displacement + block * (r->data + r->hole) + within;
        if (r->writes) memcpy(there, user, part);
        else memcpy(user, there, part);
        user += part, len -= part, block++, within = 0;
    }
    /* What was copied is wanted. */
    __asm__ volatile("" : : "r"(memory), "r"(map) : "memory");
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: copylimit FILE\n");
        return 2;
    }
    int fd = open(argv[1], O_RDWR);
    struct stat known;
    if (fd < 0 || fstat(fd, &known) != 0) give_up(argv[1]);
    map = mmap(NULL, (size_t)known.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (map == MAP_FAILED) give_up("mmap");
    struct request r;
    while (next_request(&r)) {
        if (memory_len < r.call) {
            free(memory);
            memory_len = r.call;
            memory = malloc(memory_len);
            if (!memory) give_up("malloc");
            memset(memory, 0xa5, memory_len);
        }
        answer(&r, copy_blocks);
    }
    return 0;
}
