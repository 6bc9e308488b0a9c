/* Calls of a program that were recorded on one machine, made again on another: replay CODE.so CALLS.bin, where machines.py says what is in them.
   Ends with the number of arrays that differ; two NaN are the same number. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *file;

static int64_t whole(void) {
    int64_t x;
    if (fread(&x, 8, 1, file) != 1) { fprintf(stderr, "the calls end too early\n"); exit(125); }
    return x;
}

static void *room(int64_t bytes) {
    void *place = aligned_alloc(4096, (bytes + 8191) & ~(int64_t)4095);
    if (!place) { fprintf(stderr, "no memory\n"); exit(125); }
    return place;
}

static void *bytes(int64_t count) {
    void *place = room(count);
    if (count && fread(place, 1, count, file) != (size_t)count) { fprintf(stderr, "the calls end too early\n"); exit(125); }
    return place;
}

static int differs(const char *a, const char *b, int64_t count, int64_t kind) {
    if (!memcmp(a, b, count)) return 0;
    if (!kind) return 1;
    for (int64_t i = 0; i < count; i += kind) {
        if (!memcmp(a + i, b + i, kind)) continue;
        double x, y;
        if (kind == 8) { memcpy(&x, a + i, 8); memcpy(&y, b + i, 8); }
        else { float u, v; memcpy(&u, a + i, 4); memcpy(&v, b + i, 4); x = u; y = v; }
        if (!(isnan(x) && isnan(y))) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    void *code = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!code || !(file = fopen(argv[2], "rb"))) { fprintf(stderr, "%s\n", code ? "no calls" : dlerror()); return 125; }
    int64_t calls = whole(), same = 0, different = 0;
    for (int64_t c = 0; c < calls; c++) {
        char name[16] = {0};
        if (fread(name, 1, 16, file) != 16) return 125;
        int64_t size = whole(), entries = whole();
        int64_t *table = room(8 * (entries + 1));
        char **after = calloc(entries, sizeof *after);
        int64_t *counts = calloc(entries, 8), *kinds = calloc(entries, 8);
        table[0] = (int64_t)room(size);
        for (int64_t i = 0; i < entries; i++) {
            kinds[i] = whole();
            if (kinds[i] == -1) { table[i + 1] = whole(); continue; }
            counts[i] = whole();
            table[i + 1] = (int64_t)bytes(counts[i]);
            if (kinds[i] >= 0) after[i] = bytes(counts[i]);
        }
        void (*function)(void *) = (void (*)(void *))dlsym(code, name);
        if (!function) { fprintf(stderr, "%s\n", dlerror()); return 125; }
        function(table);
        for (int64_t i = 0; i < entries; i++)
            if (kinds[i] >= 0) {
                if (!differs((char *)table[i + 1], after[i], counts[i], kinds[i])) { same++; continue; }
                if (different++ < 10) fprintf(stderr, "call %lld, %s: entry %lld, of %lld bytes, kind %lld, differs\n", (long long)c, name, (long long)i, (long long)counts[i], (long long)kinds[i]);
            }
        for (int64_t i = 0; i < entries; i++)
            if (kinds[i] != -1) { free((void *)table[i + 1]); free(after[i]); }
        free((void *)table[0]); free(table); free(after); free(counts); free(kinds);
    }
    printf("%lld calls, %lld arrays the same, %lld different\n", (long long)calls, (long long)same, (long long)different);
    return different > 100 ? 100 : (int)different;
}
