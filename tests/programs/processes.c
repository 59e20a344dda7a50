/* Descriptors across fork, vfork, exec and posix_spawn. */
#include "common.h"

#include <signal.h>
#include <spawn.h>

extern char **environ;
static char *self;

static void fork_shared_offset(void) {
    char b[10] = {0};
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    CHECK(read(fd, b, 6) == 6);
    pid_t child = MUST(fork());
    if (child == 0) {
        CHECK(read(fd, b, 4) == 4);
        printf("child %.4s\n", b);
        exit(0);
    }
    reap(child, "child");
    CHECK(read(fd, b, 4) == 4);
    printf("parent %.4s at %ld\n", b, (long)lseek(fd, 0, SEEK_CUR));
}

static void fork_both_write(void) {
    int fd = MUST(open(in("both"), O_CREAT | O_RDWR | O_TRUNC, 0644));
    CHECK(write(fd, "parent one\n", 11) == 11);
    pid_t child = MUST(fork());
    if (child == 0) {
        CHECK(write(fd, "child one\n", 10) == 10);
        CHECK(write(fd, "child two\n", 10) == 10);
        MUST(close(fd));
        int own = MUST(open(in("of-the-child"), O_CREAT | O_WRONLY, 0644));
        CHECK(write(own, "mine\n", 5) == 5);
        _exit(0); /* neither closed nor flushed by hand */
    }
    reap(child, "child");
    CHECK(write(fd, "parent two\n", 11) == 11);
    printf("%ld\n", (long)lseek(fd, 0, SEEK_CUR));
    MUST(close(fd));
    show("both");
    show("of-the-child");
}

static void fork_in_turns(void) {
    int fd = MUST(open(in("turns"), O_CREAT | O_WRONLY, 0644)), to_child[2], to_parent[2];
    MUST(pipe(to_child));
    MUST(pipe(to_parent));
    pid_t child = MUST(fork());
    char token;
    for (int i = 0; i < 20; i++) {
        char line[40];
        if (child == 0) {
            CHECK(read(to_child[0], &token, 1) == 1);
            int n = snprintf(line, sizeof line, "child %d\n", i);
            CHECK(write(fd, line, n) == n);
            CHECK(write(to_parent[1], "x", 1) == 1);
        } else {
            int n = snprintf(line, sizeof line, "parent %d\n", i);
            CHECK(write(fd, line, n) == n);
            CHECK(write(to_child[1], "x", 1) == 1);
            CHECK(read(to_parent[0], &token, 1) == 1);
        }
    }
    if (child == 0)
        _exit(0);
    reap(child, "child");
    MUST(close(fd));
    show("turns");
}

static void fork_stdio(void) {
    FILE *f = MUST_PTR(fopen(in("stdio"), "w"));
    fprintf(f, "buffered before the fork\n");
    fflush(f);
    pid_t child = MUST(fork());
    if (child == 0) {
        fprintf(f, "by the child\n");
        exit(0);
    }
    reap(child, "child");
    fprintf(f, "by the parent\n");
    fclose(f);
    show("stdio");
}

static void append_from_two(void) {
    int fd = MUST(open(in("log"), O_CREAT | O_WRONLY | O_APPEND, 0644));
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if ((children[i] = MUST(fork())) == 0) {
            int own = i % 2 ? fd : MUST(open(in("log"), O_WRONLY | O_APPEND));
            for (int line = 0; line < 100; line++) {
                char text[40];
                int n = snprintf(text, sizeof text, "writer %d line %03d\n", i, line);
                CHECK(write(own, text, n) == n);
            }
            _exit(0);
        }
    for (int i = 0; i < 4; i++)
        reap(children[i], "writer");
    /* The order is free, so a sorted copy is left behind. */
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, "sort -o '%s' '%s'; sort -u '%s' | wc -l", in("log"), in("log"), in("log"));
    fflush(stdout);
    CHECK(system(command) == 0);
}

static void exec_inherits(void) {
    int readable = MUST(open(in("text.txt"), O_RDONLY)), writable = MUST(open(in("made"), O_CREAT | O_RDWR, 0644));
    int hidden = MUST(open(in("numbers.txt"), O_RDONLY | O_CLOEXEC));
    char b[6];
    CHECK(read(readable, b, 6) == 6);
    CHECK(write(writable, "before exec, ", 13) == 13);
    char numbers[3][12];
    snprintf(numbers[0], 12, "%d", readable), snprintf(numbers[1], 12, "%d", writable), snprintf(numbers[2], 12, "%d", hidden);
    fflush(stdout);
    execl(self, self, "after-exec", data_directory, numbers[0], numbers[1], numbers[2], NULL);
    perror("exec");
    exit(1);
}

static void after_exec(char **numbers) {
    int readable = atoi(numbers[0]), writable = atoi(numbers[1]), hidden = atoi(numbers[2]);
    char b[20] = {0};
    CHECK(read(readable, b, 4) == 4);
    printf("%.4s at %ld\n", b, (long)lseek(readable, 0, SEEK_CUR));
    CHECK(write(writable, "after exec", 10) == 10);
    CHECK(pread(writable, b, 12, 0) == 12);
    printf("%.12s\n", b);
    TRY(read(hidden, b, 1));
    struct stat s;
    MUST(fstat(writable, &s));
    printf("%ld\n", (long)s.st_size);
    MUST(close(writable));
    show("made");
}

static void vfork_exec(void) {
    int out = MUST(open(in("vforked"), O_CREAT | O_WRONLY, 0644)), keep = MUST(open(in("text.txt"), O_RDONLY));
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        close(out);
        close(keep);
        execlp("echo", "echo", "from the vforked child", NULL);
        _exit(127);
    }
    reap(child, "child");
    /* The child's close must not have closed ours. */
    char b[6] = {0};
    CHECK(read(keep, b, 5) == 5);
    puts(b);
    CHECK(write(out, "and the parent\n", 15) == 15);
    MUST(close(out));
    show("vforked");
    for (volatile int i = 0; i < 3; i++) {
        child = vfork();
        if (child == 0)
            _exit(3);
        reap(child, "short child");
    }
}

static void spawn_with_actions(void) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, in("text.txt"), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, in("spawned"), O_CREAT | O_WRONLY | O_TRUNC, 0644);
    int extra = MUST(open(in("extra"), O_CREAT | O_WRONLY, 0644));
    posix_spawn_file_actions_adddup2(&actions, extra, 7);
    posix_spawn_file_actions_addclose(&actions, extra);
    char *arguments[] = {"sh", "-c", "head -2; echo to seven >&7", NULL};
    pid_t child;
    fflush(stdout);
    int status = posix_spawnp(&child, "sh", &actions, NULL, arguments, environ);
    if (status) {
        fprintf(stderr, "posix_spawnp: %s\n", strerror(status));
        exit(1);
    }
    reap(child, "child");
    posix_spawn_file_actions_destroy(&actions);
    show("spawned");
    show("extra");
}

static void spawn_inherits(void) {
    int out = MUST(open(in("spawned"), O_CREAT | O_WRONLY, 0644));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_addchdir_np(&actions, data_directory);
    char *arguments[] = {"sh", "-c", "pwd | wc -l; ls", NULL};
    pid_t child;
    int status = posix_spawnp(&child, "sh", &actions, NULL, arguments, environ);
    if (status) {
        fprintf(stderr, "posix_spawnp: %s\n", strerror(status));
        exit(1);
    }
    reap(child, "child");
    CHECK(write(out, "parent\n", 7) == 7);
    MUST(close(out));
    show("spawned");
}

static void exec_from_directory(void) {
    /* The kernel itself loads a program: a routed one cannot be run, and must say so. */
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        execl(in("run.sh"), "run.sh", "x", NULL);
        fprintf(stderr, "exec: %s\n", strerror(errno));
        _exit(errno == ENOENT || errno == ENOEXEC || errno == EACCES || errno == ENOSYS || errno == ENOTSUP ? 126 : 99);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    if (status != 0)
        exit(1);
}

static void environment_cleared(void) {
    /* A child without environment has no preload library: its inherited descriptors fail, loudly. */
    int out = MUST(open(in("cleared"), O_CREAT | O_WRONLY, 0644));
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        MUST(dup2(out, 1));
        char *nothing[] = {NULL};
        execle("/bin/echo", "echo", "without environment", NULL, nothing);
        _exit(127);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    MUST(close(out));
    struct stat s;
    MUST(stat(in("cleared"), &s));
    printf("right or refused: %d\n", (WEXITSTATUS(status) == 0 && s.st_size == 20) || (WEXITSTATUS(status) != 0 && s.st_size == 0));
    MUST(unlink(in("cleared")));
}

static void daemon_like(void) {
    fflush(stdout);
    pid_t child = MUST(fork());
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            closefrom(3);
            int fd = MUST(open(in("daemon.log"), O_CREAT | O_WRONLY | O_APPEND, 0644));
            MUST(dup2(fd, 1));
            MUST(dup2(fd, 2));
            MUST(close(fd));
            printf("to the log\n");
            fprintf(stderr, "also to the log\n");
            exit(0);
        }
        _exit(0);
    }
    reap(child, "child");
    struct stat s;
    for (int i = 0; i < 200 && (stat(in("daemon.log"), &s) == -1 || s.st_size < 27); i++)
        usleep(20000);
    show("daemon.log");
}

static void killed_child(void) {
    int fd = MUST(open(in("text.txt"), O_RDWR));
    pid_t child = MUST(fork());
    if (child == 0) {
        char b[100];
        for (;;)
            CHECK(pread(fd, b, 100, 0) == 100);
    }
    usleep(50000);
    kill(child, SIGKILL);
    reap(child, "child");
    char b[6] = {0};
    CHECK(read(fd, b, 5) == 5);
    puts(b);
    CHECK(pwrite(fd, "alive", 5, 0) == 5);
    MUST(close(fd));
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    self = argv[0];
    if (argc == 6 && strcmp(argv[1], "after-exec") == 0) {
        data_directory = argv[2];
        after_exec(argv + 3);
        return 0;
    }
    const struct part parts[] = {
        {"fork-shared-offset", fork_shared_offset}, {"fork-both-write", fork_both_write},
        {"fork-in-turns", fork_in_turns}, {"fork-stdio", fork_stdio}, {"append-from-two", append_from_two},
        {"exec-inherits", exec_inherits}, {"vfork-exec", vfork_exec}, {"spawn-with-actions", spawn_with_actions},
        {"spawn-inherits", spawn_inherits}, {"exec-from-directory", exec_from_directory},
        {"environment-cleared", environment_cleared}, {"daemon-like", daemon_like},
        {"killed-child", killed_child}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
