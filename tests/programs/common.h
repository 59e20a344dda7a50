/* What the test programs share: calls that must succeed, calls whose outcome is printed, paths. */
#ifndef COMMON_H
#define COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the program with a message when a call that must succeed returns -1 or NULL. */
#define MUST(call) must((long)(call), #call, __FILE__, __LINE__)
#define MUST_PTR(call) must_ptr((call), #call, __FILE__, __LINE__)

/* Prints a call with its value, or with the name of its error, then on standard error as well. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long value_ = (long)(call);                                                                \
        if (value_ == -1) {                                                                        \
            printf("%s -> %s\n", #call, strerrorname_np(errno));                                   \
            fprintf(stderr, "%s -> %s\n", #call, strerrorname_np(errno));                          \
        } else                                                                                     \
            printf("%s -> %ld\n", #call, value_);                                                  \
    } while (0)

/* Ends the program with a message when a condition does not hold. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline long must(long value, const char *call, const char *file, int line) {
    if (value == -1) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, strerror(errno));
        exit(1);
    }
    return value;
}

static inline void *must_ptr(void *value, const char *call, const char *file, int line) {
    if (value == NULL) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, strerror(errno));
        exit(1);
    }
    return value;
}

/* The data directory, the second argument. */
static const char *data_directory;

/* `name` inside the data directory; the last eight results stay valid. */
static inline const char *in(const char *name) {
    static _Thread_local char buffers[8][PATH_MAX];
    static _Thread_local int next;
    char *buffer = buffers[next++ % 8];
    snprintf(buffer, PATH_MAX, "%s/%s", data_directory, name);
    return buffer;
}

/* A byte that depends on its offset, so that misplaced data shows. */
static inline unsigned char byte_at(long offset) {
    return (unsigned char)((offset * 2654435761u) >> 13);
}

static inline void fill(unsigned char *buffer, long offset, long count) {
    for (long i = 0; i < count; i++)
        buffer[i] = byte_at(offset + i);
}

/* Writes a whole small file. */
static inline void put(const char *name, const char *text) {
    int fd = MUST(open(in(name), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    MUST(close(fd));
}

/* Prints a small file between brackets. */
static inline void show(const char *name) {
    char buffer[4096];
    int fd = MUST(open(in(name), O_RDONLY));
    ssize_t count = MUST(read(fd, buffer, sizeof buffer));
    printf("%s [%.*s]\n", name, (int)count, buffer);
    MUST(close(fd));
}

/* Waits for a child and prints how it ended. */
static inline void reap(pid_t child, const char *name) {
    int status;
    MUST(waitpid(child, &status, 0));
    if (WIFSIGNALED(status))
        printf("%s was ended by signal %d\n", name, WTERMSIG(status));
    else
        printf("%s ended with %d\n", name, WEXITSTATUS(status));
}

struct part {
    const char *name;
    void (*run)(void);
};

/* `program PART DIRECTORY` runs one part; `program list` names them. */
static inline int run_part(const struct part *parts, int argc, char **argv) {
    if (argc >= 3) {
        data_directory = argv[2];
        for (const struct part *part = parts; part->name; part++)
            if (strcmp(part->name, argv[1]) == 0) {
                part->run();
                return 0;
            }
    }
    for (const struct part *part = parts; part->name; part++)
        puts(part->name);
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}

#endif
