/* A plugin that is opened with RTLD_DEEPBIND: its calls are bound to libc, past every preloaded symbol. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int plugin_run(const char *input, const char *output) {
    char line[200];
    FILE *f = fopen(input, "r");
    if (!f)
        return perror("plugin: fopen"), 1;
    if (!fgets(line, sizeof line, f))
        return perror("plugin: fgets"), 1;
    printf("%s", line);
    fclose(f);
    int fd = open(input, O_RDONLY);
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0 || read(fd, line, 5) != 5)
        return perror("plugin: read"), 1;
    printf("%.5s of %ld\n", line, (long)s.st_size);
    close(fd);
    f = fopen(output, "w");
    if (!f)
        return perror("plugin: fopen"), 1;
    for (int i = 0; i < 2000; i++)
        fprintf(f, "plugin line %d\n", i);
    return fclose(f) == 0 ? 0 : 1;
}
