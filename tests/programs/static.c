/* Linked statically: no preload library can reach it, so `sluice run` must refuse it. */
#include <stdio.h>

int main(int argc, char **argv) {
    FILE *f = fopen(argc > 1 ? argv[1] : "/dev/null", "a");
    if (!f)
        return perror("fopen"), 1;
    fputs("written by a static program\n", f);
    return fclose(f) == 0 ? 0 : 1;
}
