/* Which state a file is in after each epoch: what `epochs.c` and `lone.c` write and `points.c` recognises.
 *
 * A file is a row of blocks; ranks own them in turn. In an epoch a rank writes some of its blocks, with content that
 * only this epoch, rank and place have. The plan says which. */
#include <stdlib.h>

#include "content.h"

/* Not a multiple of a word, a page or a record. */
#define BLOCK 1003

struct plan {
    const char *name;
    /* All blocks in every epoch; some of them; new ones at the end; some of them and new ones. */
    int overwrites, appends;
};

static const struct plan plans[] = {{"whole", 1, 0}, {"some", 3, 0}, {"growing", 0, 1}, {"mixed", 4, 1}};
#define PLANS (sizeof plans / sizeof *plans)

/* Blocks of a file of which `ranks` ranks write `each`, after an epoch. */
static inline uint64_t blocks_after(const struct plan *plan, unsigned epoch, unsigned ranks, unsigned each) {
    return (uint64_t)ranks * each * (plan->appends ? epoch : epoch > 0);
}

static inline int is_written(const struct plan *plan, unsigned epoch, uint64_t block, unsigned ranks, unsigned each) {
    if (block >= blocks_after(plan, epoch, ranks, each)) return 0;
    if (block >= blocks_after(plan, epoch - 1, ranks, each)) return 1;
    return plan->overwrites && scramble(block << 20 | epoch) % (unsigned)plan->overwrites == 0;
}

/* The last epoch up to `epoch` in which a block was written; 0 if none. */
static inline unsigned written_in(const struct plan *plan, unsigned epoch, uint64_t block, unsigned ranks, unsigned each) {
    while (epoch > 0 && !is_written(plan, epoch, block, ranks, each)) epoch--;
    return epoch;
}

/* The blocks that a rank writes in an epoch, one behind the other. */
static inline unsigned gather(const struct plan *plan, unsigned epoch, unsigned ranks, unsigned writer, unsigned each, uint64_t *places, unsigned char *bytes) {
    unsigned count = 0;
    for (uint64_t block = writer % ranks; block < blocks_after(plan, epoch, ranks, each); block += ranks)
        if (is_written(plan, epoch, block, ranks, each)) {
            places[count] = block * BLOCK;
            fill(bytes + (size_t)count++ * BLOCK, epoch, writer, block * BLOCK, BLOCK);
        }
    return count;
}

static inline const struct plan *plan_of(const char *name) {
    for (unsigned i = 0; i < PLANS; i++)
        if (strcmp(plans[i].name, name) == 0) return &plans[i];
    return NULL;
}
