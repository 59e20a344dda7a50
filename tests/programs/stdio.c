/* stdio in all its calls. Built plain, with _FORTIFY_SOURCE=2, with _FILE_OFFSET_BITS=64, and with
 * the explicit 64-bit names (-DNAMES64): the four forms in which programs import it. */
#include "common.h"

#include <stdarg.h>
#include <wchar.h>

#ifdef NAMES64
#define fopen fopen64
#define freopen freopen64
#define fseeko fseeko64
#define ftello ftello64
#define tmpfile tmpfile64
#define fgetpos fgetpos64
#define fsetpos fsetpos64
#define fpos_t fpos64_t
#define open open64
#define lseek lseek64
#define off_t off64_t
#endif

static void print_through_va(FILE *file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
}

static void write_and_read(void) {
    FILE *f = MUST_PTR(fopen(in("made"), "w"));
    fprintf(f, "number %d, text %s, real %.3f\n", 42, "word", 2.5);
    print_through_va(f, "%c%c%c\n", 'a', 'b', 'c');
    fputs("a line\n", f);
    fputc('X', f);
    putc('\n', f);
    unsigned char block[10000];
    fill(block, 0, sizeof block);
    CHECK(fwrite(block, 100, 100, f) == 100);
    CHECK(fclose(f) == 0);

    f = MUST_PTR(fopen(in("made"), "r"));
    int number;
    char word[20], line[100];
    float real;
    CHECK(fscanf(f, "number %d, text %19s real %f\n", &number, word, &real) == 3);
    printf("%d %s %.2f\n", number, word, real);
    MUST_PTR(fgets(line, sizeof line, f));
    printf("%s", line);
    MUST_PTR(fgets(line, sizeof line, f));
    printf("%s", line);
    printf("%c%d\n", fgetc(f), getc(f));
    unsigned char again[10000];
    CHECK(fread(again, 1, sizeof again, f) == sizeof again);
    CHECK(memcmp(block, again, sizeof again) == 0);
    printf("eof %d then %d, eof %d error %d\n", feof(f), fgetc(f), feof(f) != 0, ferror(f));
    fclose(f);
}

static void read_lines(void) {
    FILE *f = MUST_PTR(fopen(in("text.txt"), "r"));
    char *line = NULL;
    size_t capacity = 0;
    long lines = 0, bytes = 0;
    ssize_t count;
    while ((count = getline(&line, &capacity, f)) != -1)
        lines++, bytes += count;
    printf("%ld lines, %ld bytes\n", lines, bytes);
    rewind(f);
    count = getdelim(&line, &capacity, ' ', f);
    printf("[%s] %zd\n", line, count);
    free(line);
    char small[7];
    lines = 0;
    rewind(f);
    while (fgets(small, sizeof small, f))
        lines++;
    printf("%ld pieces\n", lines);
    fclose(f);
}

static void read_inlined(void) {
    /* At -O2 getc_unlocked and putc_unlocked are inlined: only __uflow and __overflow are imported. */
    FILE *f = MUST_PTR(fopen(in("big.bin"), "r"));
    FILE *out = MUST_PTR(fopen(in("inlined"), "w"));
    unsigned long sum = 0, count = 0;
    int c;
    while ((c = getc_unlocked(f)) != EOF) {
        sum = sum * 31 + c, count++;
        if (count % 16 == 0)
            putc_unlocked(c, out);
    }
    printf("%lu bytes, sum %lu\n", count, sum);
    fclose(f);
    CHECK(fclose(out) == 0);
}

static void seek_and_update(void) {
    FILE *f = MUST_PTR(fopen(in("data.bin"), "r+"));
    CHECK(fseek(f, 1000, SEEK_SET) == 0);
    printf("%d at %ld\n", fgetc(f), ftell(f));
    CHECK(fseek(f, -1, SEEK_CUR) == 0);
    CHECK(fwrite("UPDATED", 1, 7, f) == 7);
    CHECK(fseek(f, 0, SEEK_CUR) == 0);
    printf("%d at %ld\n", fgetc(f), ftell(f));
    CHECK(fseek(f, -3, SEEK_END) == 0);
    CHECK(fputs("END+more", f) >= 0);
    printf("%ld\n", ftell(f));
    rewind(f);
    printf("%ld %d\n", ftell(f), fgetc(f));
    CHECK(ungetc('Q', f) == 'Q');
    printf("%c %ld\n", fgetc(f), ftell(f));
    fpos_t place;
    CHECK(fgetpos(f, &place) == 0);
    CHECK(fseeko(f, 123456, SEEK_SET) == 0);
    printf("%lld\n", (long long)ftello(f));
    CHECK(fsetpos(f, &place) == 0);
    printf("%ld %d\n", ftell(f), fgetc(f));
    for (long at = 5; at < 1000000; at += 99991) {
        CHECK(fseek(f, at, SEEK_SET) == 0);
        fputc('*', f);
        CHECK(fseek(f, at - 5, SEEK_SET) == 0);
        printf("%d ", fgetc(f));
    }
    printf("\n%d\n", fclose(f));
}

static void append(void) {
    FILE *f = MUST_PTR(fopen(in("no-newline"), "a"));
    printf("%ld\n", ftell(f));
    fputs("+appended", f);
    printf("%ld\n", ftell(f));
    fclose(f);
    f = MUST_PTR(fopen(in("no-newline"), "a+"));
    char text[100];
    rewind(f);
    MUST_PTR(fgets(text, 10, f));
    printf("%s at %ld\n", text, ftell(f));
    fseek(f, 0, SEEK_SET);
    fputs("+at the end", f);
    fseek(f, 0, SEEK_SET);
    MUST_PTR(fgets(text, sizeof text, f));
    printf("%s at %ld\n", text, ftell(f));
    fclose(f);
    f = MUST_PTR(fopen(in("fresh"), "a+"));
    fprintf(f, "x%dy", 7);
    printf("%ld\n", ftell(f));
    fclose(f);
}

static void modes(void) {
    const char *names[] = {"r", "w", "a", "r+", "w+", "a+", "wx", "re", "rb", "r+b", "rbm", "w+bx", "q"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        errno = 0;
        FILE *f = fopen(in("absent"), names[i]);
        printf("%s absent: %s, ", names[i], f ? "open" : strerrorname_np(errno));
        if (f)
            fclose(f);
        unlink(in("absent"));
        errno = 0;
        f = fopen(in("numbers.txt"), names[i]);
        printf("present: %s", f ? "open" : strerrorname_np(errno));
        if (f) {
            errno = 0;
            int c = fgetc(f);
            printf(", reads %s", c == EOF ? (errno ? strerrorname_np(errno) : "nothing") : "something");
            clearerr(f);
            errno = 0;
            fseek(f, 0, SEEK_END);
            int put_result = fputc('!', f);
            int flushed = fflush(f);
            printf(", writes %s", put_result == '!' && flushed == 0 ? "something" : strerrorname_np(errno));
            printf(", closes %d", fclose(f));
        }
        struct stat s;
        MUST(stat(in("numbers.txt"), &s));
        printf(", size %ld\n", (long)s.st_size);
    }
    FILE *f = fopen(in("tree"), "r");
    printf("directory: %s", f ? "open" : strerrorname_np(errno));
    if (f) {
        int c = fgetc(f);
        printf(" reads %d %s", c, strerrorname_np(errno));
        fclose(f);
    }
    printf("\n");
}

static void buffering(void) {
    struct stat s;
    char own[5000];
    int kinds[] = {_IONBF, _IOLBF, _IOFBF};
    for (int i = 0; i < 3; i++) {
        FILE *f = MUST_PTR(fopen(in("buffered"), "w"));
        CHECK(setvbuf(f, kinds[i] == _IOFBF ? own : NULL, kinds[i], sizeof own) == 0);
        fputs("one", f);
        MUST(stat(in("buffered"), &s));
        printf("%ld ", (long)s.st_size);
        fputs(" line\nnext", f);
        MUST(stat(in("buffered"), &s));
        printf("%ld ", (long)s.st_size);
        fflush(f);
        MUST(stat(in("buffered"), &s));
        printf("%ld\n", (long)s.st_size);
        CHECK(fclose(f) == 0);
    }
    FILE *f = MUST_PTR(fopen(in("text.txt"), "r"));
    setbuf(f, NULL);
    char line[50];
    MUST_PTR(fgets(line, sizeof line, f));
    printf("%s\n", line);
    fclose(f);
    f = MUST_PTR(fopen(in("data.bin"), "r"));
    setvbuf(f, NULL, _IOFBF, 1 << 20);
    long count = 0;
    while (fgetc(f) != EOF)
        count++;
    printf("%ld\n", count);
    fclose(f);
}

static void reopen(void) {
    FILE *f = MUST_PTR(fopen(in("first"), "w"));
    fputs("in the first", f);
    f = MUST_PTR(freopen(in("second"), "w", f));
    fputs("in the second", f);
    f = MUST_PTR(freopen(in("first"), "r", f));
    char text[50];
    MUST_PTR(fgets(text, sizeof text, f));
    puts(text);
    f = MUST_PTR(freopen("/dev/null", "r", f));
    printf("%d\n", fgetc(f));
    fclose(f);
    MUST_PTR(freopen(in("text.txt"), "r", stdin));
    char word[20];
    CHECK(scanf("%19s", word) == 1);
    printf("%s\n", word);
    fflush(stdout);
    MUST_PTR(freopen(in("stdout-goes-here"), "w", stdout));
    printf("hidden %d\n", 1);
    puts("from puts");
    putchar('c');
    fflush(stdout);
    CHECK(system("echo from the child") == 0);
}

static void from_descriptor(void) {
    int fd = MUST(open(in("text.txt"), O_RDONLY));
    char raw[6];
    CHECK(read(fd, raw, 6) == 6);
    FILE *f = MUST_PTR(fdopen(fd, "r"));
    char line[100];
    MUST_PTR(fgets(line, sizeof line, f));
    printf("%d %.6s|%s", fileno(f) == fd, raw, line);
    printf("%ld\n", ftell(f));
    fflush(f);
    printf("%ld\n", (long)lseek(fd, 0, SEEK_CUR));
    fclose(f);
    printf("%ld %s\n", (long)lseek(fd, 0, SEEK_CUR), strerrorname_np(errno));

    f = MUST_PTR(fopen(in("mixed"), "w"));
    fputs("stdio ", f);
    fflush(f);
    CHECK(write(fileno(f), "direct ", 7) == 7);
    fputs("stdio again", f);
    fclose(f);
    show("mixed");
    fd = MUST(open(in("mixed"), O_RDWR | O_APPEND));
    f = MUST_PTR(fdopen(fd, "a"));
    fprintf(f, " and more");
    dprintf(fd, " dprintf");
    fclose(f);
    show("mixed");
    TRY(fdopen(-1, "r") == NULL ? -1 : 0);
    fd = MUST(open(in("mixed"), O_RDONLY));
    TRY(fdopen(fd, "w") == NULL ? -1 : 0);
    close(fd);
}

static void temporary(void) {
    FILE *f = MUST_PTR(tmpfile());
    fputs("temporary", f);
    rewind(f);
    char text[20];
    MUST_PTR(fgets(text, sizeof text, f));
    puts(text);
    fclose(f);
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s", in("tXXXXXX"));
    int fd = MUST(mkstemp(name));
    CHECK(write(fd, "kept", 4) == 4);
    struct stat s;
    MUST(fstat(fd, &s));
    printf("%o\n", s.st_mode);
    MUST(rename(name, in("kept")));
    close(fd);
    snprintf(name, sizeof name, "%s", in("sXXXXXX.suffix"));
    fd = MUST(mkostemps(name, 7, O_APPEND));
    MUST(unlink(name));
    CHECK(write(fd, "gone", 4) == 4);
    close(fd);
    snprintf(name, sizeof name, "%s", in("dXXXXXX"));
    MUST_PTR(mkdtemp(name));
    MUST(rmdir(name));
}

static void pipes(void) {
    char command[PATH_MAX * 2], line[100];
    snprintf(command, sizeof command, "head -2 '%s'", in("text.txt"));
    FILE *f = MUST_PTR(popen(command, "r"));
    while (fgets(line, sizeof line, f))
        printf("got %s", line);
    printf("%d\n", pclose(f));
    snprintf(command, sizeof command, "cat > '%s'", in("through-popen"));
    f = MUST_PTR(popen(command, "w"));
    fputs("through the pipe\n", f);
    printf("%d\n", pclose(f));
    show("through-popen");
    snprintf(command, sizeof command, "wc -c < '%s'; exit 3", in("big.bin"));
    fflush(stdout);
    printf("%d\n", WEXITSTATUS(system(command)));
}

static void wide(void) {
    FILE *f = MUST_PTR(fopen(in("wide"), "w"));
    fwprintf(f, L"%ls %d\n", L"wide", 5);
    fputws(L"second\n", f);
    fclose(f);
    f = MUST_PTR(fopen(in("wide"), "r,ccs=UTF-8"));
    wchar_t line[50];
    MUST_PTR(fgetws(line, 50, f));
    printf("%ls", line);
    printf("%lc\n", fgetwc(f));
    fclose(f);
}

static void many_numbers(void) {
    FILE *f = MUST_PTR(fopen(in("numbers"), "w"));
    for (int i = 0; i < 100000; i++)
        fprintf(f, "%d %.6g\n", i, i / 3.0);
    CHECK(fclose(f) == 0);
    f = MUST_PTR(fopen(in("numbers"), "r"));
    int i, lines = 0;
    double real, sum = 0;
    while (fscanf(f, "%d %lf", &i, &real) == 2)
        lines++, sum += real;
    printf("%d lines, %.3f\n", lines, sum);
    fclose(f);
}

static void several_streams(void) {
    FILE *reader = MUST_PTR(fopen(in("text.txt"), "r"));
    FILE *writers[20];
    char name[20], line[200];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "stream%d", i);
        writers[i] = MUST_PTR(fopen(in(name), "w"));
    }
    for (int i = 0; fgets(line, sizeof line, reader); i++)
        fputs(line, writers[i % 20]);
    fcloseall();
}

static void left_open(void) {
    /* The final flush happens in exit(), after the destructors of libraries. */
    FILE *f = MUST_PTR(fopen(in("left-open"), "w"));
    for (int i = 0; i < 3000; i++)
        fprintf(f, "line %d\n", i);
    puts("not closed");
}

static void full_variable_reads(void) {
    /* Sizes the compiler cannot know, in buffers it can: the __*_chk forms under FORTIFY. */
    volatile size_t size = 1000;
    char buffer[4096];
    int flags = O_RDONLY | (size == 1 ? O_APPEND : 0);
    int fd = MUST(open(in("data.bin"), flags));
    printf("%zd ", read(fd, buffer, size));
    printf("%zd ", pread(fd, buffer, size, 100));
    FILE *f = MUST_PTR(fdopen(fd, "r"));
    printf("%zu ", fread(buffer, 1, size, f));
    CHECK(fseek(f, 0, SEEK_SET) == 0);
    printf("%d ", fgets(buffer, (int)size, f) != NULL);
    printf("%zu\n", fread_unlocked(buffer, 1, size, f));
    fclose(f);
    printf("%zd [%.8s]\n", readlink(in("link"), buffer, size), buffer);
    printf("%d\n", realpath(in("link"), buffer) != NULL);
    int directory = MUST(open(data_directory, O_RDONLY | O_DIRECTORY));
    fd = MUST(openat(directory, "text.txt", flags));
    close(fd);
    printf("%zd\n", readlinkat(directory, "link", buffer, size));
    close(directory);
    dprintf(STDOUT_FILENO, "%s\n", "through dprintf");
    fd = MUST(open(in("dprintf"), O_CREAT | O_WRONLY, 0644));
    dprintf(fd, "%05d %s\n", 7, "lines");
    close(fd);
    f = MUST_PTR(fopen(in("dprintf"), "r+"));
    fgets_unlocked(buffer, (int)size, f);
    printf("%s", buffer);
    fclose(f);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const struct part parts[] = {
        {"write-and-read", write_and_read}, {"read-lines", read_lines}, {"read-inlined", read_inlined},
        {"seek-and-update", seek_and_update}, {"append", append}, {"modes", modes},
        {"buffering", buffering}, {"reopen", reopen}, {"from-descriptor", from_descriptor},
        {"temporary", temporary}, {"pipes", pipes}, {"wide", wide}, {"many-numbers", many_numbers},
        {"several-streams", several_streams}, {"left-open", left_open},
        {"variable-reads", full_variable_reads}, {NULL, NULL}};
    return run_part(parts, argc, argv);
}
