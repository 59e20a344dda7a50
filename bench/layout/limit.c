/* limit VIEW FILE N [check]: how fast a view can be that is made when it is read, where nothing else is done.
 *
 * One process makes VIEW of a file that it has mapped, piece by piece, by the loop written by hand for it, and
 * sends the pieces over a Unix socket; another receives them, 1 MiB at a time. There is no protocol and no
 * other request, nothing is looked up and nothing can go wrong. VIEW is soa_from_aos, aos_from_soa, b_from_aos
 * or every5 of N structures or numbers, or transpose of N lines of N numbers.
 *
 * Prints the seconds from the begin of making until the last byte has come. With `check` all bytes are looked
 * at, too. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../programs/common.h"
#include "points.h"

#include "kernels.c"

/* What the service makes at a time, and how much of it may wait in its socket. */
#define PIECE (256u << 10)
#define WAITING (1 << 20)

#ifdef __AVX512F__
#define EACH3 every3_wide
#define EACH5 every5_wide
#define WOVEN aos_from_soa_wide_of
#define TURNED transpose_wide_of
#else
#define EACH3 every3_scalar
#define EACH5 every5_scalar
#define WOVEN aos_from_soa_scalar_of
#define TURNED transpose_scalar_of
#endif

static const char *view;
static uint64_t n;

static int is(const char *name) { return !strcmp(view, name); }

static uint64_t bytes_of_view(void) {
    if (is("b_from_aos") || is("every5")) return 4 * n;
    return is("transpose") ? 8 * n * n : 12 * n;
}

/* What the number at a place of the view is; of a transpose, the halves of numbers. */
static uint32_t wanted(uint64_t place) {
    if (is("transpose")) {
        uint64_t i = place / 2 % n, j = place / 2 / n;
        return number_at(((i * n + j) * 2 + place % 2) % (3 * BATCH));
    }
    const char *layout = is("soa_from_aos") ? "soa" : is("b_from_aos") ? "b" : is("every5") ? "every5" : "aos";
    return number_at(number_of(layout, place, n) % (3 * BATCH));
}

/* Makes the next piece, from byte `at` of the view on; returns its bytes. */
static size_t make(void *piece, const void *source, uint64_t at) {
    const uint32_t *numbers = source;
    if (is("transpose")) {
        size_t done = at / 8 / n, lines = PIECE / 8 / n / 8 * 8;
        if (lines < 8) lines = 8;
        if (lines > n - done) lines = n - done;
        TURNED(piece, (const uint64_t *)source + done, n, n, lines);
        return 8 * n * lines;
    }
    /* Numbers of each array, or structures. */
    size_t each = is("aos_from_soa") ? PIECE / 12 / 16 * 16 : PIECE / 4;
    uint64_t done = is("aos_from_soa") ? at / 12 : at / 4 % n, array = at / 4 / n;
    /* The loops want 16 numbers at least: no piece leaves fewer. */
    if (n - done < each + 16) each = n - done;
    if (is("aos_from_soa")) {
        WOVEN(piece, numbers + done, n, each);
        return 12 * each;
    }
    if (is("every5")) EACH5(piece, numbers + 5 * done, each);
    else EACH3(piece, numbers + 3 * done + (is("b_from_aos") ? 1 : array), each);
    return 4 * each;
}

static void serve(int socket, const char *path) {
    int fd = open(path, O_RDONLY);
    off_t len = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (len < 0) give_up(path);
    /* All pages are there, as in a service that has been at work for some time. */
    void *source = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    size_t most = is("transpose") && 64 * n > PIECE ? 64 * n : PIECE + 192;
    char *piece = aligned_alloc(2 << 20, (most + (2 << 20) - 1) >> 21 << 21);
    if (source == MAP_FAILED || !piece) give_up("memory");
    madvise(piece, most, MADV_HUGEPAGE);
    memset(piece, 1, most);
    char begin = 0;
    if (write(socket, &begin, 1) != 1 || read(socket, &begin, 1) != 1) give_up("socket");
    for (uint64_t at = 0; at < bytes_of_view();) {
        size_t made = make(piece, source, at);
        for (size_t sent = 0; sent < made;) {
            ssize_t count = send(socket, piece + sent, made - sent, MSG_NOSIGNAL);
            if (count <= 0) give_up("send");
            sent += (size_t)count;
        }
        at += made;
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: limit VIEW FILE N [check]\n");
        return 2;
    }
    view = argv[1];
    n = strtoull(argv[3], NULL, 10);
    int ends[2], room = WAITING;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) give_up("socketpair");
    /* Above the system's limit only with the right to. */
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    pid_t child = fork();
    if (child < 0) give_up("fork");
    if (child == 0) {
        close(ends[0]);
        serve(ends[1], argv[2]);
        return 0;
    }
    close(ends[1]);
    unsigned char *block = aligned_alloc(PAGE, BLOCK);
    memset(block, 1, BLOCK);
    char ready;
    if (read(ends[0], &ready, 1) != 1) give_up("socket");
    uint64_t at = 0, size = bytes_of_view();
    double begin = seconds_now();
    if (write(ends[0], "", 1) != 1) give_up("socket");
    while (at < size) {
        ssize_t count = recv(ends[0], block, size - at < BLOCK ? size - at : BLOCK, MSG_WAITALL);
        if (count <= 0) give_up("recv");
        if (argc > 4)
            for (ssize_t i = 0; i < count / 4; i++)
                if (((uint32_t *)block)[i] != wanted(at / 4 + (uint64_t)i)) wrong_data(view, at + 4 * (uint64_t)i);
        at += (uint64_t)count;
    }
    double took = seconds_now() - begin;
    int status;
    if (waitpid(child, &status, 0) != child || status) return 1;
    printf("{\"seconds\": %.9f}\n", took);
    return 0;
}
