/* What a pair of plain sockets does, the measure for streaming.
 *
 *   rawsock source|sink ADDRESS BUFFER [FILE]   the far end: sends, or takes in, what
 *                                               each connection asks for; with FILE
 *                                               from or into that file
 *   rawsock get|put ADDRESS BUFFER SIZE         the near end: prints the seconds
 *
 * ADDRESS is unix:PATH or tcp:PORT (loopback; port 0 lets the kernel choose). The
 * far end prints "listening ADDRESS" when it is ready. Both ends make one system
 * call per BUFFER and nothing else; a put ends when the far end says that it has
 * everything, as a close does. */
#include "common.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

struct request {
    uint64_t size;
};

static union {
    struct sockaddr any;
    struct sockaddr_un path;
    struct sockaddr_in port;
} address;
static socklen_t address_len;

static int new_socket(const char *text) {
    memset(&address, 0, sizeof address);
    if (!strncmp(text, "unix:", 5)) {
        address.path.sun_family = AF_UNIX;
        if (strlen(text + 5) >= sizeof address.path.sun_path) {
            errno = ENAMETOOLONG;
            give_up(text);
        }
        strcpy(address.path.sun_path, text + 5);
        address_len = sizeof address.path;
        return socket(AF_UNIX, SOCK_STREAM, 0);
    }
    address.port.sin_family = AF_INET;
    address.port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.port.sin_port = htons((uint16_t)atoi(strchr(text, ':') + 1));
    address_len = sizeof address.port;
    return socket(AF_INET, SOCK_STREAM, 0);
}

static void no_delay(int s) {
    int on = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* harmless failure on AF_UNIX */
}

static void send_all(int s, const void *data, size_t len) {
    const unsigned char *p = data;
    while (len) {
        ssize_t n = send(s, p, len, MSG_NOSIGNAL);
        if (n <= 0) give_up("send");
        p += n;
        len -= (size_t)n;
    }
}

static void receive_all(int s, void *data, size_t len) {
    if (recv(s, data, len, MSG_WAITALL) != (ssize_t)len) give_up("recv");
}

static void source(int s, uint64_t size, size_t buffer, unsigned char *block, const char *file) {
    int fd = file ? open(file, O_RDONLY) : -1;
    if (file && fd < 0) give_up(file);
    for (uint64_t at = 0; at < size;) {
        size_t len = size - at < buffer ? (size_t)(size - at) : buffer;
        if (file) {
            ssize_t n = read(fd, block, len);
            if (n <= 0) give_up(file);
            len = (size_t)n;
        } else {
            pattern_stamp(block, len, at);
        }
        send_all(s, block, len);
        at += len;
    }
    if (file) close(fd);
}

static void sink(int s, uint64_t size, size_t buffer, unsigned char *block, const char *file) {
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    if (file && fd < 0) give_up(file);
    for (uint64_t at = 0; at < size;) {
        ssize_t n = recv(s, block, buffer, 0);
        if (n <= 0) give_up("recv");
        if (file) {
            if (write(fd, block, (size_t)n) != n) give_up(file);
        } else {
            pattern_check("sink", block, (size_t)n, at);
        }
        at += (uint64_t)n;
    }
    if (file && close(fd)) give_up(file);
    send_all(s, "k", 1);
}

static void serve(int sourcing, const char *text, size_t buffer, const char *file) {
    int listener = new_socket(text);
    if (listener < 0 || bind(listener, &address.any, address_len) || listen(listener, 8))
        give_up(text);
    if (!strncmp(text, "unix:", 5)) {
        printf("listening %s\n", text);
    } else {
        getsockname(listener, &address.any, &address_len);
        printf("listening tcp:%d\n", ntohs(address.port.sin_port));
    }
    fflush(stdout);
    unsigned char *block = new_block();
    for (;;) {
        int s = accept(listener, NULL, NULL);
        if (s < 0) give_up("accept");
        no_delay(s);
        struct request wanted;
        if (recv(s, &wanted, sizeof wanted, MSG_WAITALL) == sizeof wanted)
            (sourcing ? source : sink)(s, wanted.size, buffer, block, file);
        close(s);
    }
}

static void move(int getting, const char *text, size_t buffer, uint64_t size) {
    unsigned char *block = new_block();
    double begin = seconds_now();
    int s = new_socket(text);
    if (s < 0 || connect(s, &address.any, address_len)) give_up(text);
    no_delay(s);
    struct request wanted = {size};
    send_all(s, &wanted, sizeof wanted);
    for (uint64_t at = 0; at < size;) {
        if (getting) {
            ssize_t n = recv(s, block, buffer, 0);
            if (n <= 0) give_up("recv");
            pattern_check("get", block, (size_t)n, at);
            at += (uint64_t)n;
        } else {
            size_t len = size - at < buffer ? (size_t)(size - at) : buffer;
            pattern_stamp(block, len, at);
            send_all(s, block, len);
            at += len;
        }
    }
    char done;
    if (!getting) receive_all(s, &done, 1);
    close(s);
    printf("{\"seconds\": %.9f, \"bytes\": %llu}\n", seconds_now() - begin,
           (unsigned long long)size);
}

int main(int argc, char **argv) {
    size_t buffer = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    if (buffer == 0 || buffer > BLOCK || buffer % PAGE || !strchr(argv[2], ':')) {
        fprintf(stderr, "usage: rawsock source|sink|get|put unix:PATH|tcp:PORT BUFFER [FILE|SIZE]\n");
        return 2;
    }
    if (!strcmp(argv[1], "source") || !strcmp(argv[1], "sink"))
        serve(argv[1][1] == 'o', argv[2], buffer, argc > 4 ? argv[4] : NULL);
    else if (argc > 4 && (!strcmp(argv[1], "get") || !strcmp(argv[1], "put")))
        move(argv[1][0] == 'g', argv[2], buffer, strtoull(argv[4], NULL, 10));
    else
        return 2;
    return 0;
}
