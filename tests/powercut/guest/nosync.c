/* Takes the syncs from a log's agent, and from nobody else: for the test that the test sees what is lost. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_agent;

__attribute__((constructor)) static void look(void) {
    char words[4096] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, words, sizeof words - 1);
    if (fd >= 0) close(fd);
    static const char agent[] = "log\0agent";
    is_agent = length > 0 && memmem(words, (size_t)length, agent, sizeof agent) != NULL;
}

int fsync(int fd) { return is_agent ? 0 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return is_agent ? 0 : (int)syscall(SYS_fdatasync, fd); }
