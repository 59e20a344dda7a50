/* Which consistency points of `epochs` a file equals, bit for bit.
 *
 * usage: points FILE PLAN RANKS EACH EPOCHS [WRITER]
 *        points --make FILE PLAN RANKS EACH EPOCH     writes what the file is after an epoch
 *
 * RANKS share the file; a file of one rank's own (posix) has RANKS 1 and its rank as WRITER. Prints the epochs whose
 * state is that of the file, on one line; epoch 0 is no file, or an empty one. If there is none, lines follow that say
 * what the file is made of: its size, and for each run of blocks the epochs whose bytes they have. */
#include "epochs.h"

static unsigned char *content;
static uint64_t length;
static unsigned ranks, each, epochs, shift;
static const struct plan *plan;

/* Whether block is as after `epoch`. */
static int is_as(uint64_t block, unsigned epoch) {
    unsigned char should[BLOCK] = {0};
    unsigned last = written_in(plan, epoch, block, ranks, each);
    if (last > 0) fill(should, last, (unsigned)(block % ranks) + shift, block * BLOCK, BLOCK);
    uint64_t rest = length - block * BLOCK;
    return memcmp(content + block * BLOCK, should, rest < BLOCK ? rest : BLOCK) == 0;
}

static int equals(unsigned epoch) {
    uint64_t blocks = blocks_after(plan, epoch, ranks, each);
    if (length != blocks * BLOCK) return 0;
    for (uint64_t block = 0; block < blocks; block++)
        if (!is_as(block, epoch)) return 0;
    return 1;
}

/* The epochs with which a block agrees, as a text. */
static void agreeing(char *text, size_t room, uint64_t block) {
    size_t used = 0;
    text[0] = 0;
    for (unsigned epoch = 0; epoch <= epochs; epoch++)
        if (is_as(block, epoch) && used + 12 < room) used += (size_t)sprintf(text + used, " %u", epoch);
    if (used == 0) {
        char from[96];
        /* The first whole word of the block. */
        snprintf(text, room, " none: %s", origin(from, content, (block * BLOCK + 7) / 8 * 8, length));
    }
}

static int make(char **argv) {
    if (!(plan = plan_of(argv[3]))) return 2;
    ranks = (unsigned)atoi(argv[4]), each = (unsigned)atoi(argv[5]);
    unsigned epoch = (unsigned)atoi(argv[6]);
    FILE *file = fopen(argv[2], "wb");
    unsigned char bytes[BLOCK];
    for (uint64_t block = 0; file && block < blocks_after(plan, epoch, ranks, each); block++) {
        unsigned last = written_in(plan, epoch, block, ranks, each);
        fill(bytes, last, (unsigned)(block % ranks), block * BLOCK, BLOCK);
        if (fwrite(bytes, 1, BLOCK, file) != BLOCK) return perror(argv[2]), 2;
    }
    return !file || fclose(file) ? perror(argv[2]), 2 : 0;
}

int main(int argc, char **argv) {
    if (argc == 7 && strcmp(argv[1], "--make") == 0) return make(argv);
    if (argc < 6 || !(plan = plan_of(argv[2]))) return fprintf(stderr, "usage: points FILE PLAN RANKS EACH EPOCHS [WRITER]\n"), 2;
    ranks = (unsigned)atoi(argv[3]), each = (unsigned)atoi(argv[4]), epochs = (unsigned)atoi(argv[5]);
    shift = argc > 6 ? (unsigned)atoi(argv[6]) : 0;
    FILE *file = fopen(argv[1], "rb");
    size_t room = 1 << 20;
    content = calloc(room, 1);
    while (file) {
        size_t count = fread(content + length, 1, room - length, file);
        if (count == 0) break;
        if ((length += count) == room) content = realloc(content, room *= 2);
    }
    if (file && ferror(file)) return perror(argv[1]), 2;
    int found = 0;
    for (unsigned epoch = 0; epoch <= epochs; epoch++)
        if (equals(epoch)) printf("%s%u", found++ ? " " : "", epoch);
    putchar('\n');
    if (found) return 0;
    printf("%llu bytes in %llu blocks of %u\n", (unsigned long long)length, (unsigned long long)((length + BLOCK - 1) / BLOCK), BLOCK);
    char before[512] = "", now[512];
    uint64_t from = 0, blocks = (length + BLOCK - 1) / BLOCK;
    for (uint64_t block = 0; block <= blocks; block++) {
        if (block < blocks) agreeing(now, sizeof now, block);
        if (block > 0 && (block == blocks || strcmp(now, before))) {
            printf("blocks %llu to %llu are as after%s\n", (unsigned long long)from, (unsigned long long)block, before);
            from = block;
        }
        strcpy(before, now);
    }
    return 1;
}
