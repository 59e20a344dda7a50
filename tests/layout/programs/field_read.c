// Reads the field in the order of C, the last index runs fastest; and writes back what it has doubled.
#include <stdio.h>

#define NX 7
#define NY 11
#define NZ 13
static double u[NX][NY][NZ];

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    FILE *file = fopen(argv[1], "r+b");
    if (!file || fread(u, sizeof u, 1, file) != 1 || fgetc(file) != EOF) { perror(argv[1]); return 1; }
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NY; j++)
            for (int k = 0; k < NZ; k++) {
                if (u[i][j][k] != 10000 * i + 100 * j + k + 0.25) { printf("%d %d %d: %g\n", i, j, k, u[i][j][k]); return 1; }
                u[i][j][k] *= 2;
            }
    rewind(file);
    if (fwrite(u, sizeof u, 1, file) != 1 || fclose(file)) { perror(argv[1]); return 1; }
    puts("equal");
    return 0;
}
