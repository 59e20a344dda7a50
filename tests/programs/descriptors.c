/* Descriptors: duplicates, flags, closing in bulk, many at once, waiting, signals. */
#include "common.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>

static void duplicates(void) {
    char b[20];
    int fd = MUST(open(in("text.txt"), O_RDWR));
    CHECK(read(fd, b, 6) == 6);
    int d = MUST(dup(fd)), d2 = MUST(dup2(fd, 100)), d3 = MUST(dup3(fd, 101, O_CLOEXEC));
    int d4 = MUST(fcntl(fd, F_DUPFD, 200)), d5 = MUST(fcntl(fd, F_DUPFD_CLOEXEC, 201));
    printf("%d %d %d %d\n", d2, d3, d4, d5);
    int all[] = {fd, d, d2, d3, d4, d5};
    for (int i = 0; i < 6; i++) {
        CHECK(read(all[i], b, 3) == 3);
        printf("%.3s at %ld, flags %d\n", b, (long)lseek(fd, 0, SEEK_CUR), fcntl(all[i], F_GETFD));
    }
    MUST(lseek(d3, 0, SEEK_SET));
    CHECK(write(d5, "<>", 2) == 2);
    printf("%ld\n", (long)lseek(d4, 0, SEEK_CUR));
    MUST(close(fd));
    TRY(read(fd, b, 1));
    CHECK(read(d, b, 4) == 4);
    printf("%.4s\n", b);
    int other = MUST(open(in("numbers.txt"), O_RDONLY));
    MUST(dup2(other, d));
    CHECK(read(d, b, 4) == 4);
    printf("%.4s\n", b);
    TRY(dup2(d, d) == d);
    TRY(dup3(d, d, 0));
    TRY(dup2(-1, 5));
    TRY(dup2(d, 1 << 24));
    TRY(dup(99));
    TRY(close(99));
    MUST(dup2(STDOUT_FILENO, d2));
    CHECK(write(d2, "to stdout\n", 10) == 10);
    MUST(dup2(d3, STDIN_FILENO));
    CHECK(read(STDIN_FILENO, b, 5) == 5);
    printf("%.5s\n", b);
}

static void flags(void) {
    int fd = MUST(open(in("text.txt"), O_RDWR | O_APPEND | O_CLOEXEC));
    printf("%o %d\n", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK), fcntl(fd, F_GETFD));
    CHECK(write(fd, "end", 3) == 3);
    printf("%ld\n", (long)lseek(fd, 0, SEEK_CUR));
    MUST(fcntl(fd, F_SETFL, O_NONBLOCK));
    printf("%o\n", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    MUST(lseek(fd, 0, SEEK_SET));
    CHECK(write(fd, "BEGIN", 5) == 5);
    MUST(fcntl(fd, F_SETFL, O_APPEND));
    CHECK(write(fd, "END", 3) == 3);
    MUST(fcntl(fd, F_SETFD, 0));
    printf("%d\n", fcntl(fd, F_GETFD));
    MUST(close(fd));
    TRY(fcntl(fd, F_GETFL));
    TRY(open(in("text.txt"), O_CREAT | O_EXCL | O_WRONLY, 0600));
    TRY(open(in("link"), O_RDONLY | O_NOFOLLOW));
    TRY(open(in("text.txt"), O_RDONLY | O_DIRECTORY));
    TRY(open(in("tree"), O_WRONLY));
    TRY(open(in("tree"), O_RDONLY | O_CREAT, 0600));
    TRY(open(in("dangling"), O_RDONLY));
    TRY(open(in("absent/x"), O_CREAT | O_WRONLY, 0600));
    TRY(open(in("text.txt/x"), O_CREAT | O_WRONLY, 0600));
    TRY(open("", O_RDONLY));
    fd = MUST(open(in("dangling"), O_CREAT | O_WRONLY, 0604));
    CHECK(write(fd, "made through the link", 21) == 21);
    MUST(close(fd));
    fd = MUST(open(in("text.txt"), O_WRONLY | O_TRUNC));
    char b[4];
    TRY(read(fd, b, 4));
    MUST(close(fd));
    fd = MUST(open(in("numbers.txt"), O_RDONLY));
    TRY(write(fd, "x", 1));
    MUST(close(fd));
    fd = MUST(creat(in("created"), 0755));
    MUST(close(fd));
    mode_t old = umask(077);
    fd = MUST(open(in("masked"), O_CREAT | O_WRONLY | O_SYNC, 0666));
    CHECK(write(fd, "s", 1) == 1);
    MUST(fsync(fd));
    MUST(fdatasync(fd));
    MUST(close(fd));
    umask(old);
    fd = MUST(open(in("tree"), O_RDONLY));
    TRY(read(fd, b, 4));
    MUST(fsync(fd));
    MUST(close(fd));
    fd = open(in("text.txt"), O_PATH);
    if (fd != -1) {
        TRY(read(fd, b, 4));
        close(fd);
    }
}

static void close_in_bulk(void) {
    int fds[10];
    for (int i = 0; i < 10; i++) {
        int fd = MUST(open(in("text.txt"), O_RDONLY));
        fds[i] = MUST(fcntl(fd, F_DUPFD, 50));
        MUST(close(fd));
    }
    MUST(close_range(fds[2], fds[4], 0));
    char b[8];
    TRY(read(fds[3], b, 5));
    TRY(read(fds[5], b, 5));
    MUST(close_range(fds[6], fds[7], CLOSE_RANGE_CLOEXEC));
    printf("%d %d\n", fcntl(fds[6], F_GETFD), fcntl(fds[8], F_GETFD));
    /* A number that was ours must not be taken for ours when it is somebody else's. */
    int null = MUST(open("/dev/zero", O_RDONLY));
    MUST(dup2(null, fds[3]));
    CHECK(read(fds[3], b, 4) == 4);
    printf("%d%d%d%d\n", b[0], b[1], b[2], b[3]);
    closefrom(50);
    TRY(read(fds[9], b, 4));
    int pipe_ends[2];
    MUST(pipe(pipe_ends));
    MUST(dup2(pipe_ends[0], fds[9]));
    CHECK(write(pipe_ends[1], "pipe", 4) == 4);
    CHECK(read(fds[9], b, 4) == 4);
    printf("%.4s\n", b);
}

static void ten_thousand(void) {
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max < 20000 ? limit.rlim_max : 20000;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_cur < 10100) {
        printf("the limit is too low\n");
        return;
    }
    int *fds = MUST_PTR(calloc(10000, sizeof *fds));
    for (int i = 0; i < 10000; i++)
        fds[i] = MUST(open(in(i % 2 ? "text.txt" : "numbers.txt"), O_RDONLY));
    long sum = 0;
    for (int i = 0; i < 10000; i++) {
        char c;
        CHECK(pread(fds[i], &c, 1, i) == 1);
        sum = sum * 7 + c;
    }
    printf("%ld\n", sum);
    for (int i = 0; i < 10000; i++)
        MUST(close(fds[i]));
}

static void too_many(void) {
    struct rlimit limit = {40, 40};
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    int opened = 0;
    while (open(in("text.txt"), O_RDONLY) != -1)
        opened++;
    printf("%s, some before: %d\n", strerrorname_np(errno), opened > 3);
}

static void numbering(void) {
    /* open returns the lowest free descriptor: shells and daemons depend on it. */
    int a = MUST(open(in("text.txt"), O_RDONLY)), b = MUST(open("/dev/null", O_RDONLY));
    int c = MUST(open(in("numbers.txt"), O_RDONLY));
    printf("%d %d\n", b - a, c - b);
    MUST(close(a));
    printf("%ld\n", MUST(open(in("empty"), O_RDONLY)) - a);
    MUST(close(STDIN_FILENO));
    printf("%ld\n", MUST(open(in("text.txt"), O_RDONLY)));
    char line[6];
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    puts(line);
}

static void waiting(void) {
    int fd = MUST(open(in("text.txt"), O_RDWR));
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
    printf("%d ", poll(&p, 1, 1000));
    printf("%d\n", p.revents);
    fd_set readable, writable;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_SET(fd, &readable);
    FD_SET(fd, &writable);
    struct timeval moment = {1, 0};
    printf("%d\n", select(fd + 1, &readable, &writable, NULL, &moment));
    int pair[2];
    MUST(pipe(pair));
    struct pollfd two[2] = {{.fd = fd, .events = POLLIN}, {.fd = pair[0], .events = POLLIN}};
    printf("%d\n", poll(two, 2, 1000));
    struct timespec second = {1, 0};
    printf("%d\n", ppoll(two, 2, &second, NULL));
    int events = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    TRY(epoll_ctl(events, EPOLL_CTL_ADD, fd, &event));
    int available;
    TRY(ioctl(fd, FIONREAD, &available));
    TRY(isatty(fd) == 0 ? errno : 0);
}

static volatile sig_atomic_t alarms;
static void on_alarm(int number) { alarms += number == SIGALRM; }

static void signals(void) {
    /* Calls that are interrupted must resume or report EINTR, never lose bytes. */
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    struct itimerval often = {{0, 1000}, {0, 1000}};
    MUST(setitimer(ITIMER_REAL, &often, NULL));
    unsigned char block[5000];
    int fd = MUST(open(in("signals"), O_CREAT | O_RDWR, 0644));
    for (long at = 0; at < 3000 * 1000; at += 3000) {
        fill(block, at, 3000);
        CHECK(write(fd, block, 3000) == 3000);
    }
    MUST(fsync(fd));
    MUST(lseek(fd, 0, SEEK_SET));
    long at = 0;
    ssize_t count;
    while ((count = MUST(read(fd, block, sizeof block))) > 0)
        for (ssize_t i = 0; i < count; i++, at++)
            CHECK(block[i] == byte_at(at));
    MUST(close(fd));
    for (int i = 0; i < 200; i++) {
        fd = MUST(open(in("text.txt"), O_RDONLY));
        CHECK(read(fd, block, 100) == 100);
        MUST(close(fd));
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    MUST(setitimer(ITIMER_REAL, &never, NULL));
    printf("%ld bytes\n", at);
}

static void on_write(int number) {
    static int fd = -1;
    if (fd == -1)
        fd = open(in("from-handler"), O_CREAT | O_WRONLY | O_APPEND, 0644);
    char text[] = "signal  \n";
    text[7] = '0' + number % 10;
    if (write(fd, text, sizeof text - 1) != sizeof text - 1)
        _exit(9);
}

static void handler_writes(void) {
    struct sigaction action = {.sa_handler = on_write};
    MUST(sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < 5; i++)
        MUST(raise(SIGUSR1));
    show("from-handler");
}

static void passed_over_socket(void) {
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    char b[10], control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {b, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK(sendmsg(pair[0], &message, 0) == 1);
    CHECK(recvmsg(pair[1], &message, 0) == 1);
    int received;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    if (read(received, b, 5) != 5) {
        perror("read of a received descriptor");
        exit(1);
    }
    printf("%.5s\n", b);
}

static void proc_names(void) {
    char path[64], target[PATH_MAX] = {0};
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDONLY);
    if (again == -1) {
        perror("open through /proc/self/fd");
        exit(1);
    }
    CHECK(read(again, target, 5) == 5);
    puts(target);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror("fopen through /dev/fd");
        exit(1);
    }
    CHECK(fgets(target, 6, f) != NULL);
    puts(target);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"duplicates", duplicates}, {"flags", flags}, {"close-in-bulk", close_in_bulk},
        {"ten-thousand", ten_thousand}, {"too-many", too_many}, {"numbering", numbering},
        {"waiting", waiting}, {"signals", signals}, {"handler-writes", handler_writes},
        {"passed-over-socket", passed_over_socket}, {"proc-names", proc_names}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
