/* What the programs write: every word of eight bytes says, scrambled, in which epoch and by which rank it was
 * written and where in the file it belongs. So each byte is different from what any other epoch or rank would
 * have put there, and a wrong one can be read back: see `origin`. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define RANK_BITS 8
#define WORD_BITS 40

/* splitmix64's finaliser, which is a bijection; constants by S. Vigna (public domain). */
static inline uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The multipliers' inverses modulo 2^64, the shifts undone in reverse. */
static inline uint64_t unscramble(uint64_t x) {
    x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3u;
    x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089u;
    return x ^ x >> 30 ^ x >> 60;
}

static inline uint64_t word_of(unsigned epoch, unsigned rank, uint64_t word) {
    return scramble((uint64_t)epoch << (WORD_BITS + RANK_BITS) | (uint64_t)rank << WORD_BITS | word);
}

/* The bytes that belong to `offset` of the file, as `rank` writes them in `epoch`. */
static inline void fill(void *to, unsigned epoch, unsigned rank, uint64_t offset, size_t length) {
    unsigned char *bytes = to;
    for (size_t i = 0; i < length;) {
        uint64_t at = offset + i, value = word_of(epoch, rank, at / 8);
        if (at % 8 == 0 && length - i >= 8) {
            memcpy(bytes + i, &value, 8);
            i += 8;
        } else {
            bytes[i++] = (unsigned char)(value >> 8 * (at % 8));
        }
    }
}

/* Says what the word at `offset` of `content` is, for whoever has to find out what went wrong. */
static inline const char *origin(char text[96], const unsigned char *content, uint64_t offset, uint64_t size) {
    uint64_t value, word = offset / 8;
    if (word * 8 + 8 > size) return strcpy(text, "the last bytes");
    memcpy(&value, content + word * 8, 8);
    if (value == 0) return strcpy(text, "zeros");
    value = unscramble(value);
    unsigned epoch = (unsigned)(value >> (WORD_BITS + RANK_BITS));
    unsigned rank = (unsigned)(value >> WORD_BITS) & ((1u << RANK_BITS) - 1);
    uint64_t place = value & (((uint64_t)1 << WORD_BITS) - 1);
    /* Parts of two words, or bytes that no program of ours wrote, decode to nonsense. */
    if (epoch > 1000 || rank > 64 || place > word + (1u << 24)) return strcpy(text, "parts of several words, or foreign bytes");
    snprintf(text, 96, "what rank %u wrote in epoch %u for offset %llu", rank, epoch, (unsigned long long)place * 8);
    return text;
}
