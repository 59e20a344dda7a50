/* Opens the plugin beside it with RTLD_DEEPBIND and lets it do I/O; also calls libc through dlsym. */
#include "common.h"

#include <dlfcn.h>
#include <libgen.h>

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    data_directory = argv[2];
    char path[PATH_MAX], own[PATH_MAX];
    snprintf(own, sizeof own, "%s", argv[0]);
    snprintf(path, sizeof path, "%s/plugin.so", dirname(own));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    if (!plugin)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*run)(const char *, const char *) = dlsym(plugin, "plugin_run");
    CHECK(run != NULL);
    CHECK(run(in("text.txt"), in("by-the-plugin")) == 0);

    /* The same functions, but looked up by hand in libc. */
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    int (*open_by_name)(const char *, int, ...) = dlsym(libc, "open");
    ssize_t (*read_by_name)(int, void *, size_t) = dlsym(libc, "read");
    char b[6] = {0};
    int fd = MUST(open_by_name(in("text.txt"), O_RDONLY));
    CHECK(read_by_name(fd, b, 5) == 5);
    puts(b);
    return 0;
}
