// A reader of the same kind: it goes through the array of structs, tells a sum of everything, and moves every 1000th point.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct point { float a, b, c; };

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    FILE *file = fopen(argv[1], "r+b");
    if (!file) { perror(argv[1]); return 1; }
    struct point point;
    uint64_t sum = 0;
    for (long at = 0; fread(&point, sizeof point, 1, file) == 1; at++) {
        uint32_t bits[3];
        memcpy(bits, &point, sizeof bits);
        sum = sum * 1099511628211u + bits[0] + 3 * (uint64_t)bits[1] + 7 * (uint64_t)bits[2];
        if (at % 1000 == 0) {
            point.a += 1;
            point.c *= 2;
            fseek(file, -(long)sizeof point, SEEK_CUR);
            if (fwrite(&point, sizeof point, 1, file) != 1) { perror("fwrite"); return 1; }
            fseek(file, 0, SEEK_CUR);
        }
    }
    if (ferror(file) || fclose(file)) { perror(argv[1]); return 1; }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
