/* proxy LISTEN TARGET DELAY_US: a long wire, and a count of the round trips on it.
 *
 * LISTEN and TARGET are unix:PATH or tcp:PORT (loopback; port 0 for LISTEN lets the
 * kernel choose). Every byte arrives DELAY_US later than it was sent, in each
 * direction, and nothing else is slowed: chunks wait in a queue, each with the
 * time at which it is due, so that what is pipelined stays pipelined.
 *
 * Round trips are counted as a chain of causes. What the client sends has depth
 * 1 + the greatest depth among the bytes that had been delivered to it before; what
 * the server sends has the greatest depth delivered to the server before. The
 * greatest depth of all is the number of times that the client, to get where it
 * got, had to wait for the other end. Requests sent together, or sent while older
 * answers are still on the wire, share a depth; a request that nobody waits for
 * costs nothing. All connections count together. The delay must be well above the
 * time that the client thinks, or a request that nobody waited for looks as if
 * somebody had.
 *
 * Frames are counted too, if they are 9P's: size[4] with itself included, little
 * endian. Prints "listening ADDRESS" when ready, and on SIGTERM one JSON object. */
#include "common.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LINKS_MAX 64
#define CHUNK_BYTES (256u << 10)
#define QUEUE_BYTES_MAX (64u << 20) /* more than delay times bandwidth of loopback at 5 ms */

struct chunk {
    struct chunk *next;
    double due;
    long depth;
    size_t len, sent; /* len 0 is the end of the stream */
    unsigned char data[];
};

/* One direction of one connection: from a socket, through a queue, to a socket. */
struct flow {
    int from, to;
    int upward; /* from client to server */
    int reading, writing;
    struct chunk *head, *tail;
    size_t queued;
    uint64_t frame_left;   /* bytes left of the 9P frame at hand */
    unsigned char size[4]; /* its size, as far as it has come */
    unsigned size_have;
};

static struct flow flows[LINKS_MAX * 2];
static int flow_count;
static double delay;
static long depth_at_client, depth_at_server;
static uint64_t bytes_up, bytes_down, frames_up;
static volatile sig_atomic_t stopping;

static void stop(int signal) {
    (void)signal;
    stopping = 1;
}

static int new_socket(const char *text, struct sockaddr_storage *address, socklen_t *len) {
    memset(address, 0, sizeof *address);
    if (!strncmp(text, "unix:", 5)) {
        struct sockaddr_un *path = (struct sockaddr_un *)address;
        path->sun_family = AF_UNIX;
        snprintf(path->sun_path, sizeof path->sun_path, "%s", text + 5);
        *len = sizeof *path;
        return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
    struct sockaddr_in *port = (struct sockaddr_in *)address;
    port->sin_family = AF_INET;
    port->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    port->sin_port = htons((uint16_t)atoi(strchr(text, ':') + 1));
    *len = sizeof *port;
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void no_delay(int s) {
    int on = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void link_up(int client, const char *target) {
    struct sockaddr_storage address;
    socklen_t len;
    int server = new_socket(target, &address, &len);
    if (flow_count + 2 > LINKS_MAX * 2 || server < 0 ||
        connect(server, (struct sockaddr *)&address, len)) {
        close(client);
        if (server >= 0) close(server);
        return;
    }
    no_delay(client);
    no_delay(server);
    flows[flow_count++] =
        (struct flow){.from = client, .to = server, .upward = 1, .reading = 1, .writing = 1};
    flows[flow_count++] = (struct flow){.from = server, .to = client, .reading = 1, .writing = 1};
}

static void count_frames(struct flow *flow, const unsigned char *data, size_t len) {
    while (len) {
        if (flow->frame_left) {
            size_t step = len < flow->frame_left ? len : (size_t)flow->frame_left;
            flow->frame_left -= step;
            data += step;
            len -= step;
            continue;
        }
        flow->size[flow->size_have++] = *data++;
        len--;
        if (flow->size_have == 4) {
            uint32_t size = (uint32_t)flow->size[0] | (uint32_t)flow->size[1] << 8 |
                            (uint32_t)flow->size[2] << 16 | (uint32_t)flow->size[3] << 24;
            flow->size_have = 0;
            flow->frame_left = size > 4 ? size - 4 : 0;
            frames_up++;
        }
    }
}

static void take_in(struct flow *flow) {
    struct chunk *chunk = malloc(sizeof *chunk + CHUNK_BYTES);
    if (!chunk) give_up("memory");
    ssize_t n = recv(flow->from, chunk->data, CHUNK_BYTES, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        free(chunk);
        return;
    }
    if (n <= 0) {
        n = 0;
        flow->reading = 0;
    }
    if (n < (ssize_t)CHUNK_BYTES) chunk = realloc(chunk, sizeof *chunk + (size_t)n);
    chunk->next = NULL;
    chunk->due = seconds_now() + delay;
    chunk->len = (size_t)n;
    chunk->sent = 0;
    chunk->depth = flow->upward ? depth_at_client + 1 : depth_at_server;
    if (flow->upward) {
        bytes_up += (uint64_t)n;
        count_frames(flow, chunk->data, (size_t)n);
    } else {
        bytes_down += (uint64_t)n;
    }
    if (flow->tail) flow->tail->next = chunk;
    else flow->head = chunk;
    flow->tail = chunk;
    flow->queued += chunk->len;
}

/* Delivers what is due. Returns whether the socket would not take it all. */
static int give_out(struct flow *flow, double now) {
    while (flow->head && flow->head->due <= now) {
        struct chunk *chunk = flow->head;
        if (chunk->len == 0) {
            shutdown(flow->to, SHUT_WR);
            flow->writing = 0;
        }
        if (chunk->sent < chunk->len) {
            ssize_t n = send(flow->to, chunk->data + chunk->sent, chunk->len - chunk->sent,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
            if (n < 0) { /* nobody listens any more: drop what is left */
                n = (ssize_t)(chunk->len - chunk->sent);
                shutdown(flow->from, SHUT_RD);
            }
            chunk->sent += (size_t)n;
            flow->queued -= (size_t)n;
            if (chunk->sent < chunk->len) return 1;
            long *depth = flow->upward ? &depth_at_server : &depth_at_client;
            if (chunk->depth > *depth) *depth = chunk->depth;
        }
        flow->head = chunk->next;
        if (!flow->head) flow->tail = NULL;
        free(chunk);
    }
    return 0;
}

static void close_finished(void) {
    for (int i = 0; i + 1 < flow_count; i += 2) {
        struct flow *up = &flows[i], *down = &flows[i + 1];
        if (up->writing || down->writing) continue;
        close(up->from);
        close(up->to);
        flows[i] = flows[flow_count - 2];
        flows[i + 1] = flows[flow_count - 1];
        flow_count -= 2;
        i -= 2;
    }
}

/* `while_waiting` are the signals blocked during ppoll. SIGTERM is blocked everywhere else: it
 * would otherwise be lost between the look at `stopping` and the wait. */
static void run(int listener, const char *target, const sigset_t *while_waiting) {
    struct pollfd polls[1 + LINKS_MAX * 2 * 2];
    int blocked[LINKS_MAX * 2];
    while (!stopping) {
        double now = seconds_now(), due = now + 3600;
        for (int i = 0; i < flow_count; i++) {
            blocked[i] = give_out(&flows[i], now);
            if (flows[i].head && !blocked[i] && flows[i].head->due < due) due = flows[i].head->due;
        }
        close_finished();
        polls[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        int polled = flow_count;
        for (int i = 0; i < polled; i++) {
            int wanted = flows[i].reading && flows[i].queued < QUEUE_BYTES_MAX;
            polls[1 + 2 * i] = (struct pollfd){.fd = wanted ? flows[i].from : -1, .events = POLLIN};
            /* close_finished may have moved flows, so ask the queue itself whether it is stuck */
            int stuck = flows[i].head && flows[i].head->due <= now;
            polls[2 + 2 * i] = (struct pollfd){.fd = stuck ? flows[i].to : -1, .events = POLLOUT};
        }
        double wait = due - seconds_now();
        if (wait < 0) wait = 0;
        struct timespec timeout = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
        if (ppoll(polls, (nfds_t)(1 + 2 * polled), &timeout, while_waiting) < 0) continue;
        for (int i = 0; i < polled; i++)
            if (polls[1 + 2 * i].revents) take_in(&flows[i]);
        if (polls[0].revents) {
            int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (client >= 0) link_up(client, target);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 4 || !strchr(argv[1], ':') || !strchr(argv[2], ':')) {
        fprintf(stderr, "usage: proxy unix:PATH|tcp:PORT unix:PATH|tcp:PORT DELAY_US\n");
        return 2;
    }
    delay = atof(argv[3]) * 1e-6;
    prctl(PR_SET_TIMERSLACK, 1000);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    sigdelset(&before, SIGTERM);
    struct sockaddr_storage address;
    socklen_t len;
    int listener = new_socket(argv[1], &address, &len);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, len) || listen(listener, 16))
        give_up(argv[1]);
    if (!strncmp(argv[1], "unix:", 5)) {
        printf("listening %s\n", argv[1]);
    } else {
        getsockname(listener, (struct sockaddr *)&address, &len);
        printf("listening tcp:%d\n", ntohs(((struct sockaddr_in *)&address)->sin_port));
    }
    fflush(stdout);
    run(listener, argv[2], &before);
    printf("{\"round_trips\": %ld, \"frames_up\": %llu, \"bytes_up\": %llu, \"bytes_down\": %llu}\n",
           depth_at_client, (unsigned long long)frames_up, (unsigned long long)bytes_up,
           (unsigned long long)bytes_down);
    return 0;
}
