/* transfer MODE PATH SIZE BUFFER: moves SIZE bytes between memory and one file.
 *
 * MODE is read, write (system calls of BUFFER bytes), fread, fwrite (stdio, BUFFER
 * bytes at a time), fgetc, fputc, read1, write1 (one byte at a time), or check
 * (compares every byte, for use outside the timing). Prints the seconds from
 * before the open until after the close, so that data which is only safe at
 * close is counted. A plain program: it knows nothing of redirection. */
#include "common.h"

static const char *path;
static uint64_t size;
static size_t buffer;
static unsigned char *block;

static void expect(uint64_t moved) {
    if (moved != size) {
        fprintf(stderr, "%s: moved %llu of %llu bytes\n", path, (unsigned long long)moved,
                (unsigned long long)size);
        exit(3);
    }
}

/* The sum of the bytes that the pattern has in a file of `size` bytes. */
static uint64_t pattern_sum(void) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at < size; at += BLOCK) {
        size_t len = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
        pattern_stamp(block, BLOCK, at);
        for (size_t i = 0; i < len; i++) sum += block[i];
    }
    return sum;
}

static int open_file(int flags) {
    int fd = open(path, flags, 0644);
    if (fd < 0) give_up(path);
    return fd;
}

static FILE *open_stream(const char *mode) {
    FILE *stream = fopen(path, mode);
    if (!stream) give_up(path);
    return stream;
}

static void do_read(void) {
    int fd = open_file(O_RDONLY);
    uint64_t at = 0;
    ssize_t n;
    while ((n = read(fd, block, buffer)) > 0) {
        pattern_check(path, block, (size_t)n, at);
        at += (uint64_t)n;
    }
    if (n < 0 || close(fd)) give_up(path);
    expect(at);
}

static void do_write(void) {
    int fd = open_file(O_WRONLY | O_CREAT | O_TRUNC);
    for (uint64_t at = 0; at < size;) {
        size_t len = size - at < buffer ? (size_t)(size - at) : buffer;
        pattern_stamp(block, len, at);
        for (size_t done = 0; done < len;) {
            ssize_t n = write(fd, block + done, len - done);
            if (n < 0) give_up(path);
            done += (size_t)n;
        }
        at += len;
    }
    if (close(fd)) give_up(path);
}

static void do_fread(void) {
    FILE *stream = open_stream("r");
    uint64_t at = 0;
    size_t n;
    while ((n = fread(block, 1, buffer, stream)) > 0) {
        pattern_check(path, block, n, at);
        at += n;
    }
    if (ferror(stream) || fclose(stream)) give_up(path);
    expect(at);
}

static void do_fwrite(void) {
    FILE *stream = open_stream("w");
    for (uint64_t at = 0; at < size;) {
        size_t len = size - at < buffer ? (size_t)(size - at) : buffer;
        pattern_stamp(block, len, at);
        if (fwrite(block, 1, len, stream) != len) give_up(path);
        at += len;
    }
    if (fclose(stream)) give_up(path);
}

static uint64_t do_fgetc(void) {
    FILE *stream = open_stream("r");
    uint64_t at = 0, sum = 0;
    int c;
    while ((c = fgetc(stream)) != EOF) {
        sum += (uint64_t)c;
        at++;
    }
    if (ferror(stream) || fclose(stream)) give_up(path);
    expect(at);
    return sum;
}

static void do_fputc(void) {
    FILE *stream = open_stream("w");
    for (uint64_t at = 0; at < size; at += BLOCK) {
        size_t len = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
        pattern_stamp(block, BLOCK, at);
        for (size_t i = 0; i < len; i++)
            if (fputc(block[i], stream) == EOF) give_up(path);
    }
    if (fclose(stream)) give_up(path);
}

static uint64_t do_read1(void) {
    int fd = open_file(O_RDONLY);
    uint64_t at = 0, sum = 0;
    unsigned char c;
    ssize_t n;
    while ((n = read(fd, &c, 1)) == 1) {
        sum += c;
        at++;
    }
    if (n < 0 || close(fd)) give_up(path);
    expect(at);
    return sum;
}

static void do_write1(void) {
    int fd = open_file(O_WRONLY | O_CREAT | O_TRUNC);
    for (uint64_t at = 0; at < size; at += BLOCK) {
        size_t len = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
        pattern_stamp(block, BLOCK, at);
        for (size_t i = 0; i < len; i++)
            if (write(fd, block + i, 1) != 1) give_up(path);
    }
    if (close(fd)) give_up(path);
}

static void do_check(void) {
    unsigned char *got = new_block();
    int fd = open_file(O_RDONLY);
    uint64_t at = 0;
    for (;;) {
        size_t have = 0;
        ssize_t n = 1;
        while (have < BLOCK && (n = read(fd, got + have, BLOCK - have)) > 0) have += (size_t)n;
        if (n < 0) give_up(path);
        pattern_stamp(block, BLOCK, at);
        if (memcmp(got, block, have)) wrong_data(path, at);
        at += have;
        if (have < BLOCK) break;
    }
    expect(at);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: transfer MODE PATH SIZE BUFFER\n");
        return 2;
    }
    const char *mode = argv[1];
    path = argv[2];
    size = strtoull(argv[3], NULL, 10);
    buffer = strtoul(argv[4], NULL, 10);
    if (buffer == 0 || buffer > BLOCK || buffer % PAGE || size % PAGE) {
        fprintf(stderr, "transfer: BUFFER and SIZE must be whole pages, BUFFER at most %u\n", BLOCK);
        return 2;
    }
    block = new_block();

    int summed = !strcmp(mode, "fgetc") || !strcmp(mode, "read1");
    uint64_t wanted = summed ? pattern_sum() : 0, got = wanted;
    double begin = seconds_now();
    if (!strcmp(mode, "read")) do_read();
    else if (!strcmp(mode, "write")) do_write();
    else if (!strcmp(mode, "fread")) do_fread();
    else if (!strcmp(mode, "fwrite")) do_fwrite();
    else if (!strcmp(mode, "fgetc")) got = do_fgetc();
    else if (!strcmp(mode, "fputc")) do_fputc();
    else if (!strcmp(mode, "read1")) got = do_read1();
    else if (!strcmp(mode, "write1")) do_write1();
    else if (!strcmp(mode, "check")) do_check();
    else {
        fprintf(stderr, "transfer: no mode %s\n", mode);
        return 2;
    }
    double took = seconds_now() - begin;
    if (got != wanted) wrong_data(path, size);
    printf("{\"seconds\": %.9f, \"bytes\": %llu}\n", took, (unsigned long long)size);
    return 0;
}
