/* Conversions between the layouts of the bench, each written by hand for that one layout: what an
 * optimised program would contain. A shared library, called by the bench through ctypes.
 *
 * Every conversion has several variants, `NAME_scalar` (whatever the compiler makes of a plain loop
 * for this processor), `NAME_wide` (registers of 64 bytes permuted by hand, or of 32) and
 * `NAME_stream` (the same, with stores that pass the caches by). Which is the best one depends on
 * the sizes, so the bench measures them all and compares with the fastest. `*_stream` needs
 * destinations that are aligned to 64 bytes, and all need counts that are multiples of 16: the bench
 * sees to both. Compiled with -march=native; processors without AVX-512 have the variants of AVX2.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- memcpy, which no conversion can beat by much ------------------------------------------- */

void copy_plain(void *restrict dst, const void *restrict src, size_t bytes) { memcpy(dst, src, bytes); }

/* ---- structs {a, b, c} to arrays, and back --------------------------------------------------- */

void soa_from_aos_scalar(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    uint32_t *restrict a = dst, *restrict b = dst + n, *restrict c = dst + 2 * n;
    for (size_t i = 0; i < n; i++) {
        a[i] = src[3 * i];
        b[i] = src[3 * i + 1];
        c[i] = src[3 * i + 2];
    }
}

/* The arrays are `stride` numbers apart. */
void aos_from_soa_scalar_of(uint32_t *restrict dst, const uint32_t *restrict src, size_t stride, size_t n) {
    const uint32_t *a = src, *b = src + stride, *c = src + 2 * stride;
    for (size_t i = 0; i < n; i++) {
        dst[3 * i] = a[i];
        dst[3 * i + 1] = b[i];
        dst[3 * i + 2] = c[i];
    }
}

void aos_from_soa_scalar(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    aos_from_soa_scalar_of(dst, src, n, n);
}

void every3_scalar(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    for (size_t i = 0; i < n; i++) dst[i] = src[3 * i];
}

void every5_scalar(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    for (size_t i = 0; i < n; i++) dst[i] = src[5 * i];
}

/* ---- a matrix of 8-byte numbers, `rows` times `columns`, becomes its transpose --------------- */

/* Blocks whose lines, on both sides, stay in the first cache. Lines of the source are `stride` numbers apart. */
void transpose_scalar_of(uint64_t *restrict dst, const uint64_t *restrict src, size_t stride, size_t rows,
                         size_t columns) {
    const size_t edge = 32;
    for (size_t j = 0; j < columns; j += edge)
        for (size_t i = 0; i < rows; i += edge)
            for (size_t k = j; k < columns && k < j + edge; k++)
                for (size_t l = i; l < rows && l < i + edge; l++) dst[k * rows + l] = src[l * stride + k];
}

void transpose_scalar(uint64_t *restrict dst, const uint64_t *restrict src, size_t rows, size_t columns) {
    transpose_scalar_of(dst, src, columns, rows, columns);
}

#ifdef __AVX512F__

/* Registers put together from two others: lanes below 16 are the first one's. */
#define TWO(first, lanes, second) _mm512_permutex2var_epi32(first, lanes, second)
#define LANES(...) _mm512_setr_epi32(__VA_ARGS__)

typedef __m512i lanes_t;
#define LOAD(from) _mm512_loadu_si512((const void *)(from))
#define STORE(to, value) _mm512_storeu_si512((void *)(to), value)
#define STREAM(to, value) _mm512_stream_si512((void *)(to), value)
#define AHEAD(from) _mm_prefetch((const char *)(from) + 1024, _MM_HINT_T0)

#define SOA_FROM_AOS(name, PUT)                                                                       \
    void name(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {                       \
        uint32_t *restrict a = dst, *restrict b = dst + n, *restrict c = dst + 2 * n;                 \
        const lanes_t a1 = LANES(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);              \
        const lanes_t a2 = LANES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);               \
        const lanes_t b1 = LANES(1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);             \
        const lanes_t b2 = LANES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30);               \
        const lanes_t c1 = LANES(2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);              \
        const lanes_t c2 = LANES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);               \
        for (size_t i = 0; i < n; i += 16) {                                                          \
            const uint32_t *from = src + 3 * i;                                                       \
            lanes_t x = LOAD(from), y = LOAD(from + 16), z = LOAD(from + 32);                         \
            PUT(a + i, TWO(TWO(x, a1, y), a2, z));                                                    \
            PUT(b + i, TWO(TWO(x, b1, y), b2, z));                                                    \
            PUT(c + i, TWO(TWO(x, c1, y), c2, z));                                                    \
        }                                                                                             \
        _mm_sfence();                                                                                 \
    }
SOA_FROM_AOS(soa_from_aos_wide, STORE)
SOA_FROM_AOS(soa_from_aos_stream, STREAM)

#define AOS_FROM_SOA(name, PUT)                                                                       \
    void name##_of(uint32_t *restrict dst, const uint32_t *restrict src, size_t stride, size_t n) {   \
        const uint32_t *a = src, *b = src + stride, *c = src + 2 * stride;                            \
        const lanes_t x1 = LANES(0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5);                \
        const lanes_t x2 = LANES(0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15);            \
        const lanes_t y1 = LANES(21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26);              \
        const lanes_t y2 = LANES(0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15);            \
        const lanes_t z1 = LANES(0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0);           \
        const lanes_t z2 = LANES(26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31);           \
        for (size_t i = 0; i < n; i += 16) {                                                          \
            lanes_t p = LOAD(a + i), q = LOAD(b + i), r = LOAD(c + i);                                \
            uint32_t *to = dst + 3 * i;                                                               \
            PUT(to, TWO(TWO(p, x1, q), x2, r));                                                       \
            PUT(to + 16, TWO(TWO(p, y1, q), y2, r));                                                  \
            PUT(to + 32, TWO(TWO(p, z1, q), z2, r));                                                  \
        }                                                                                             \
        _mm_sfence();                                                                                 \
    }                                                                                                 \
    void name(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) { name##_of(dst, src, n, n); }
AOS_FROM_SOA(aos_from_soa_wide, STORE)
AOS_FROM_SOA(aos_from_soa_stream, STREAM)

#define EVERY3(name, PUT)                                                                             \
    void name(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {                       \
        const lanes_t one = LANES(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);             \
        const lanes_t two = LANES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);              \
        for (size_t i = 0; i + 16 < n; i += 16) {                                                     \
            const uint32_t *from = src + 3 * i;                                                       \
            AHEAD(from), AHEAD(from + 16), AHEAD(from + 32);                                          \
            PUT(dst + i, TWO(TWO(LOAD(from), one, LOAD(from + 16)), two, LOAD(from + 32)));           \
        }                                                                                             \
        /* A whole register behind the last number may lie outside. */                                \
        for (size_t i = n - 16; i < n; i++) dst[i] = src[3 * i];                                      \
        _mm_sfence();                                                                                 \
    }
EVERY3(every3_wide, STORE)
EVERY3(every3_stream, STREAM)

/* The five registers hold 4, 3, 3, 3 and 3 of the numbers. */
#define EVERY5(name, PUT)                                                                             \
    void name(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {                       \
        const lanes_t one = LANES(0, 5, 10, 15, 20, 25, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0);               \
        const lanes_t two = LANES(3, 8, 13, 18, 23, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);                \
        const lanes_t join = LANES(0, 1, 2, 3, 4, 5, 6, 16, 17, 18, 19, 20, 21, 0, 0, 0);             \
        const lanes_t rest = LANES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17, 22, 27);             \
        for (size_t i = 0; i + 16 < n; i += 16) {                                                     \
            const uint32_t *from = src + 5 * i;                                                       \
            AHEAD(from), AHEAD(from + 16), AHEAD(from + 32), AHEAD(from + 48), AHEAD(from + 64);      \
            lanes_t low = TWO(LOAD(from), one, LOAD(from + 16));                                      \
            lanes_t high = TWO(LOAD(from + 32), two, LOAD(from + 48));                                \
            PUT(dst + i, TWO(TWO(low, join, high), rest, LOAD(from + 64)));                           \
        }                                                                                             \
        for (size_t i = n - 16; i < n; i++) dst[i] = src[5 * i];                                      \
        _mm_sfence();                                                                                 \
    }
EVERY5(every5_wide, STORE)
EVERY5(every5_stream, STREAM)

/* Squares of 8 numbers a side, in registers; `depth` lines of the source side by side, so that lines
 * of the destination are written some cache lines at a time. */
#define TRANSPOSE(name, PUT, depth)                                                                   \
    void name##_of(uint64_t *restrict dst, const uint64_t *restrict src, size_t stride, size_t rows,  \
                   size_t columns) {                                                                  \
        for (size_t block = 0; block < rows; block += depth) {                                        \
            size_t end = block + depth < rows ? block + depth : rows;                                 \
            for (size_t j = 0; j < columns; j += 8)                                                   \
                for (size_t i = block; i < end; i += 8) {                                             \
                    const uint64_t *from = src + i * stride + j;                                      \
                    uint64_t *to = dst + j * rows + i;                                                \
                    lanes_t r[8], s[8], t[8];                                                         \
                    for (int k = 0; k < 8; k++) r[k] = LOAD(from + k * stride);                       \
                    for (int k = 0; k < 8; k += 2) {                                                  \
                        s[k] = _mm512_unpacklo_epi64(r[k], r[k + 1]);                                 \
                        s[k + 1] = _mm512_unpackhi_epi64(r[k], r[k + 1]);                             \
                    }                                                                                 \
                    for (int k = 0; k < 8; k += 4)                                                    \
                        for (int m = 0; m < 2; m++) {                                                 \
                            t[k + m] = _mm512_shuffle_i64x2(s[k + m], s[k + m + 2], 0x88);            \
                            t[k + m + 2] = _mm512_shuffle_i64x2(s[k + m], s[k + m + 2], 0xdd);        \
                        }                                                                             \
                    for (int m = 0; m < 4; m++) {                                                     \
                        PUT(to + m * rows, _mm512_shuffle_i64x2(t[m], t[m + 4], 0x88));               \
                        PUT(to + (m + 4) * rows, _mm512_shuffle_i64x2(t[m], t[m + 4], 0xdd));         \
                    }                                                                                 \
                }                                                                                     \
        }                                                                                             \
        _mm_sfence();                                                                                 \
    }                                                                                                 \
    void name(uint64_t *restrict dst, const uint64_t *restrict src, size_t rows, size_t columns) {    \
        name##_of(dst, src, columns, rows, columns);                                                  \
    }
TRANSPOSE(transpose_wide, STORE, 64)
TRANSPOSE(transpose_wide256, STORE, 256)
TRANSPOSE(transpose_stream, STREAM, 64)
TRANSPOSE(transpose_stream256, STREAM, 256)

#elif defined(__AVX2__)

/* The compiler's own loops for 32 bytes are good; what it does not find are stores past the caches. */
#define PUT8(to, value) _mm256_stream_si256((__m256i *)(to), value)

static inline __m256i take(const uint32_t *from, int step) {
    return _mm256_setr_epi32((int)from[0], (int)from[step], (int)from[2 * step], (int)from[3 * step],
                             (int)from[4 * step], (int)from[5 * step], (int)from[6 * step], (int)from[7 * step]);
}

void soa_from_aos_stream(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    for (size_t i = 0; i < n; i += 8)
        for (int k = 0; k < 3; k++) PUT8(dst + k * n + i, take(src + 3 * i + k, 3));
    _mm_sfence();
}

void aos_from_soa_stream(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    uint32_t block[24] __attribute__((aligned(32)));
    for (size_t i = 0; i < n; i += 8) {
        for (size_t k = 0; k < 8; k++)
            for (size_t f = 0; f < 3; f++) block[3 * k + f] = src[f * n + i + k];
        for (int k = 0; k < 3; k++) PUT8(dst + 3 * i + 8 * k, _mm256_load_si256((__m256i *)(block + 8 * k)));
    }
    _mm_sfence();
}

void every3_stream(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    for (size_t i = 0; i < n; i += 8) PUT8(dst + i, take(src + 3 * i, 3));
    _mm_sfence();
}

void every5_stream(uint32_t *restrict dst, const uint32_t *restrict src, size_t n) {
    for (size_t i = 0; i < n; i += 8) PUT8(dst + i, take(src + 5 * i, 5));
    _mm_sfence();
}

#endif
