/* Listing, walking, matching and standing in directories. */
#include "common.h"

#include <dirent.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <libgen.h>
#include <sys/statvfs.h>

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void print_sorted(char **names, int count) {
    qsort(names, count, sizeof *names, by_text);
    for (int i = 0; i < count; i++) {
        printf("%s\n", names[i]);
        free(names[i]);
    }
}

static void reading(void) {
    DIR *d = MUST_PTR(opendir(data_directory));
    char *names[100], line[400];
    int count = 0;
    struct dirent *e;
    while ((errno = 0, e = readdir(d))) {
        struct stat s;
        MUST(fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW));
        CHECK(e->d_type == DT_UNKNOWN || e->d_type == IFTODT(s.st_mode));
        CHECK(e->d_name[0] == '.' || e->d_ino == s.st_ino);
        snprintf(line, sizeof line, "%s %d", e->d_name, IFTODT(s.st_mode));
        names[count++] = strdup(line);
    }
    CHECK(errno == 0);
    int first = count;
    rewinddir(d);
    count = 0;
    while (readdir(d))
        count++;
    CHECK(count == first);
    rewinddir(d);
    readdir(d);
    long place = telldir(d);
    e = readdir(d);
    char second[256];
    snprintf(second, sizeof second, "%s", e->d_name);
    while (readdir(d))
        ;
    seekdir(d, place);
    e = readdir(d);
    CHECK(e && strcmp(e->d_name, second) == 0);
    MUST(closedir(d));
    print_sorted(names, first);

    int fd = MUST(open(in("tree"), O_RDONLY | O_DIRECTORY));
    d = MUST_PTR(fdopendir(fd));
    for (count = 0; readdir(d); count++)
        ;
    printf("%d entries, %d\n", count, dirfd(d) == fd);
    MUST(closedir(d));
    TRY(opendir(in("absent")) ? 0 : -1);
    TRY(opendir(in("text.txt")) ? 0 : -1);
    struct dirent entry, *result;
    d = MUST_PTR(opendir(in("dirlink")));
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    count = 0;
    while (readdir_r(d, &entry, &result) == 0 && result)
        count++;
    printf("%d\n", count);
    closedir(d);
    fd = MUST(open(in("text.txt"), O_RDONLY));
    TRY(fdopendir(fd) ? 0 : -1);
}

static int text_files(const struct dirent *e) { return strstr(e->d_name, ".txt") != NULL; }

static void scanning(void) {
    struct dirent **list;
    int count = MUST(scandir(data_directory, &list, text_files, alphasort));
    for (int i = 0; i < count; i++)
        puts(list[i]->d_name);
    int fd = MUST(open(data_directory, O_RDONLY | O_DIRECTORY));
    printf("%ld\n", MUST(scandirat(fd, "tree", &list, NULL, versionsort)));
    TRY(scandir(in("absent"), &list, NULL, NULL));
}

static char *walked[200];
static int walked_count;

static int visit(const char *path, const struct stat *s, int kind, struct FTW *where) {
    char line[PATH_MAX + 100];
    snprintf(line, sizeof line, "%s %d level %d base %s size %ld", path + strlen(data_directory), kind, where->level,
             where->level ? path + where->base : "-", S_ISREG(s->st_mode) ? (long)s->st_size : 0);
    walked[walked_count++] = strdup(line);
    return 0;
}

static int visit_plain(const char *path, const struct stat *s, int kind) {
    walked_count += kind == FTW_F && s->st_size > 0 && path != NULL;
    return 0;
}

static void walking(void) {
    MUST(nftw(data_directory, visit, 20, FTW_PHYS));
    print_sorted(walked, walked_count);
    walked_count = 0;
    MUST(nftw(in("tree"), visit, 2, FTW_DEPTH | FTW_CHDIR));
    print_sorted(walked, walked_count);
    walked_count = 0;
    MUST(ftw(in("dirlink"), visit_plain, 5));
    printf("%d\n", walked_count);
    TRY(nftw(in("absent"), visit, 5, 0));
}

static int by_name(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

static void fts_walk(void) {
    int kinds[] = {FTS_PHYSICAL, FTS_LOGICAL | FTS_NOCHDIR};
    for (int i = 0; i < 2; i++) {
        char *roots[] = {(char *)in("tree"), NULL};
        FTS *walk = MUST_PTR(fts_open(roots, kinds[i], by_name));
        FTSENT *e;
        while ((e = fts_read(walk)))
            printf("%d %s %d\n", e->fts_info, e->fts_path + strlen(data_directory), e->fts_level);
        MUST(fts_close(walk));
    }
}

static void matching(void) {
    glob_t found;
    const char *patterns[] = {"*.txt", "tree/*/*.txt", "t*", "[de]*", "nothing*", "tree/*/", "{text,numbers}.txt"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        int status = glob(in(patterns[i]), GLOB_MARK | GLOB_BRACE, NULL, &found);
        printf("%s: %d\n", patterns[i], status);
        for (size_t j = 0; status == 0 && j < found.gl_pathc; j++)
            puts(found.gl_pathv[j] + strlen(data_directory));
        if (status == 0)
            globfree(&found);
    }
}

static void resolving(void) {
    const char *names[] = {"text.txt", "link", "dirlink/a/../b/./four.dat", "dangling", "absent", "tree/", "text.txt/x", "."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *resolved = realpath(in(names[i]), NULL);
        printf("%s: %s\n", names[i], resolved ? resolved : strerrorname_np(errno));
        free(resolved);
    }
    char *name = canonicalize_file_name(in("link"));
    puts(name ? name : "none");
    free(name);
}

static void standing(void) {
    char here[PATH_MAX];
    MUST(chdir(data_directory));
    MUST_PTR(getcwd(here, sizeof here));
    printf("%d\n", strcmp(here, data_directory));
    struct stat s;
    MUST(stat("text.txt", &s));
    printf("%ld\n", (long)s.st_size);
    int fd = MUST(open("relative", O_CREAT | O_WRONLY, 0644));
    CHECK(write(fd, "made here", 9) == 9);
    MUST(close(fd));
    MUST(chdir("tree/b"));
    printf("%s\n", (char *)MUST_PTR(getcwd(here, sizeof here)) + strlen(data_directory));
    MUST(rename("../../relative", "moved"));
    MUST(mkdir("sub", 0755));
    int up = MUST(open("..", O_RDONLY | O_DIRECTORY));
    MUST(fchdir(up));
    printf("%s\n", (char *)MUST_PTR(getcwd(NULL, 0)) + strlen(data_directory));
    MUST(access("b/moved", R_OK));
    FILE *f = MUST_PTR(fopen("b/moved", "r"));
    MUST_PTR(fgets(here, sizeof here, f));
    puts(here);
    fclose(f);
    DIR *d = MUST_PTR(opendir("."));
    int count = 0;
    while (readdir(d))
        count++;
    printf("%d\n", count);
    closedir(d);
    fflush(stdout);
    CHECK(system("pwd; cat b/moved; ls") == 0);
    TRY(getcwd(here, 3) ? 0 : -1);
    MUST(chdir("/"));
    puts(MUST_PTR(getcwd(here, sizeof here)));
    TRY(access("text.txt", F_OK));
    MUST(fchdir(up));
    MUST(access("b", X_OK));
    printf("%s\n", (char *)MUST_PTR(get_current_dir_name()) + strlen(data_directory));
    TRY(chdir(in("text.txt")));
    TRY(chdir(in("absent")));
    fd = MUST(open(in("text.txt"), O_RDONLY));
    TRY(fchdir(fd));
    MUST(chdir(in("dirlink/a")));
    printf("%s\n", (char *)MUST_PTR(getcwd(here, sizeof here)) + strlen(data_directory));
}

static void at_family(void) {
    int d = MUST(open(data_directory, O_RDONLY | O_DIRECTORY)), t = MUST(openat(d, "tree", O_RDONLY | O_DIRECTORY));
    struct stat s;
    int fd = MUST(openat(t, "new", O_CREAT | O_RDWR, 0640));
    CHECK(write(fd, "0123", 4) == 4);
    MUST(close(fd));
    MUST(fstatat(t, "new", &s, 0));
    printf("%ld %o\n", (long)s.st_size, s.st_mode);
    MUST(renameat(t, "new", d, "new2"));
    MUST(mkdirat(t, "made", 0700));
    MUST(symlinkat("../text.txt", t, "sym"));
    char target[100] = {0};
    printf("%ld %s\n", MUST(readlinkat(t, "sym", target, 100)), target);
    MUST(linkat(d, "new2", t, "hard", 0));
    MUST(fstatat(t, "hard", &s, 0));
    printf("%d\n", (int)s.st_nlink);
    MUST(linkat(t, "sym", t, "sym-followed", AT_SYMLINK_FOLLOW));
    MUST(fstatat(t, "sym", &s, AT_SYMLINK_NOFOLLOW));
    printf("%d\n", S_ISLNK(s.st_mode));
    MUST(fstatat(t, "", &s, AT_EMPTY_PATH));
    printf("%d\n", S_ISDIR(s.st_mode));
    MUST(faccessat(t, "hard", R_OK, 0));
    TRY(faccessat(t, "absent", F_OK, 0));
    TRY(faccessat(t, "../dangling", F_OK, AT_SYMLINK_NOFOLLOW));
    MUST(fchmodat(t, "hard", 0604, 0));
    struct timespec times[2] = {{1000000000, 5}, {1100000000, 987654321}};
    MUST(utimensat(t, "hard", times, 0));
    MUST(fchownat(t, "hard", -1, -1, 0));
    TRY(unlinkat(t, "made", 0));
    MUST(unlinkat(t, "made", AT_REMOVEDIR));
    TRY(unlinkat(t, "b", AT_REMOVEDIR));
    MUST(unlinkat(d, "numbers.txt", 0));
    TRY(openat(999, "x", O_RDONLY));
    fd = MUST(openat(d, "text.txt", O_RDONLY));
    TRY(openat(fd, "x", O_RDONLY));
    MUST(openat(999, in("text.txt"), O_RDONLY));
    TRY(renameat2(d, "secret", d, "run.sh", RENAME_NOREPLACE));
    TRY(renameat2(d, "secret", d, "fresh", RENAME_NOREPLACE));
    int exchanged = renameat2(d, "text.txt", d, "table.csv", RENAME_EXCHANGE);
    if (exchanged == -1) {
        CHECK(errno == EINVAL || errno == ENOSYS);
        MUST(renameat(d, "text.txt", d, "spare"));
        MUST(renameat(d, "table.csv", d, "text.txt"));
        MUST(renameat(d, "spare", d, "table.csv"));
    }
}

static void moved_directory(void) {
    /* A directory may move while it is open. */
    struct stat s;
    int t = MUST(open(in("tree"), O_RDONLY | O_DIRECTORY));
    MUST(rename(in("tree"), in("moved-tree")));
    MUST(fstatat(t, "a/one.txt", &s, 0));
    int fd = MUST(openat(t, "after-the-move", O_CREAT | O_WRONLY, 0644));
    MUST(close(fd));
}

static void thousand(void) {
    char name[40];
    MUST(mkdir(in("thousand"), 0755));
    int d = MUST(open(in("thousand"), O_RDONLY | O_DIRECTORY));
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "file number %d", i);
        int fd = MUST(openat(d, name, O_CREAT | O_WRONLY | O_EXCL, 0644));
        CHECK(write(fd, name, strlen(name)) == (ssize_t)strlen(name));
        MUST(close(fd));
    }
    DIR *listing = MUST_PTR(opendir(in("thousand")));
    int count = 0, removed = 0;
    struct dirent *e;
    while ((e = readdir(listing))) {
        count++;
        /* Removing while listing is what rm -r does. */
        if (e->d_name[0] == 'f' && atoi(e->d_name + 12) % 3 == 0) {
            MUST(unlinkat(d, e->d_name, 0));
            removed++;
        }
    }
    closedir(listing);
    printf("%d seen, %d removed\n", count, removed);
    struct dirent **list;
    printf("%d left\n", scandir(in("thousand"), &list, NULL, alphasort));
}

static void long_names(void) {
    char name[300];
    memset(name, 'n', sizeof name);
    name[255] = 0;
    int fd = MUST(open(in(name), O_CREAT | O_WRONLY, 0644));
    MUST(close(fd));
    name[255] = 'n', name[256] = 0;
    TRY(open(in(name), O_CREAT | O_WRONLY, 0644));
    TRY(mkdir(in(name), 0755));
    /* PATH_MAX counts the terminating zero: 4,096 characters are one too many, 4,095 are not. */
    char *path = MUST_PTR(malloc(5000));
    for (int length = 4095; length <= 4096; length++) {
        int at = sprintf(path, "%s/", data_directory);
        while (at + 2 <= length)
            path[at++] = '.', path[at++] = '/';
        while (at < length)
            path[at++] = '/';
        path[at] = 0;
        struct stat s;
        int opened = open(path, O_RDONLY);
        printf("%d: %s %s\n", length, opened >= 0 ? "open" : strerrorname_np(errno),
               stat(path, &s) == 0 ? "there" : strerrorname_np(errno));
    }
    struct statvfs v;
    MUST(statvfs(data_directory, &v));
    printf("%lu %ld %ld\n", v.f_namemax, pathconf(data_directory, _PC_NAME_MAX), pathconf(data_directory, _PC_PATH_MAX));
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"reading", reading}, {"scanning", scanning}, {"walking", walking}, {"fts", fts_walk},
        {"matching", matching}, {"resolving", resolving}, {"standing", standing},
        {"at-family", at_family}, {"moved-directory", moved_directory}, {"thousand", thousand}, {"long-names", long_names}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
