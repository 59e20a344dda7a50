// A simulation of the paper's: it writes an array of N structs of a, b and c, a part at a time, and knows no other layout.
#include <stdio.h>
#include <stdlib.h>

struct point { float a, b, c; };

int main(int argc, char **argv) {
    static struct point part[100000];
    if (argc != 3) return 2;
    long count = atol(argv[2]);
    FILE *file = fopen(argv[1], "wb");
    if (!file) { perror(argv[1]); return 1; }
    setvbuf(file, NULL, _IONBF, 0);
    for (long at = 0; at < count;) {
        long some = 0;
        for (; some < 100000 && at < count; some++, at++) {
            part[some].a = (float)(at % 16777213);
            part[some].b = (float)(at % 8388593) + 0.5f;
            part[some].c = -(float)(at % 4194301);
        }
        if (fwrite(part, sizeof *part, some, file) != (size_t)some) { perror("fwrite"); return 1; }
    }
    if (fclose(file)) { perror("fclose"); return 1; }
    return 0;
}
