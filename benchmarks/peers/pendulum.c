/* Langevin pendulum, the way one writes it by hand: arrays over trajectories, vector mathematics, one core.
 *
 *     p <- p - h sin q - h g p + sqrt(2 g kT h) z,     q <- q + h p
 *
 * Normals by Box and Muller from xoroshiro128+, one generator per pair of trajectories.
 * cc -O3 -march=native -ffast-math pendulum.c -lm -lmvec; prints path-steps per second and the mean of p*p.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRAJECTORIES 10000
#define PAIRS (TRAJECTORIES / 2)

static double q[TRAJECTORIES], p[TRAJECTORIES], z[TRAJECTORIES], radius[PAIRS], angle[PAIRS];
static uint64_t first[PAIRS], second[PAIRS];

static inline uint64_t rotated(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t splitmix(uint64_t *state) {
    uint64_t x = (*state += 0x9e3779b97f4a7c15ULL);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static inline double unit(uint64_t word) { /* in [1, 2) */
    union { uint64_t u; double d; } c;
    c.u = (word >> 12) | 0x3ff0000000000000ULL;
    return c.d;
}

static inline uint64_t next(uint64_t *a, uint64_t *b) { /* xoroshiro128+ */
    uint64_t s0 = *a, s1 = *b, sum = s0 + s1;
    s1 ^= s0;
    *a = rotated(s0, 24) ^ s1 ^ (s1 << 16);
    *b = rotated(s1, 37);
    return sum;
}

static void normals(void) {
    for (int i = 0; i < PAIRS; i++) {
        uint64_t a = first[i], b = second[i];
        uint64_t u = next(&a, &b), v = next(&a, &b);
        first[i] = a, second[i] = b;
        radius[i] = 2.0 - unit(u);
        angle[i] = (unit(v) - 1.0) * 6.283185307179586;
    }
    for (int i = 0; i < PAIRS; i++) {
        double r = sqrt(-2.0 * log(radius[i]));
        z[i] = r * cos(angle[i]);
        z[i + PAIRS] = r * sin(angle[i]);
    }
}

int main(int count, char **words) {
    int steps = count > 1 ? atoi(words[1]) : 2000;
    double h = 0.05, g = 1.0, kick = sqrt(2.0 * g * h);
    uint64_t seed = 1;
    for (int i = 0; i < PAIRS; i++) first[i] = splitmix(&seed), second[i] = splitmix(&seed);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int t = 0; t < steps; t++) {
        normals();
        for (int i = 0; i < TRAJECTORIES; i++) {
            p[i] += -h * sin(q[i]) - h * g * p[i] + kick * z[i];
            q[i] += h * p[i];
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double seconds = (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec), mean = 0.0;
    for (int i = 0; i < TRAJECTORIES; i++) mean += p[i] * p[i] / TRAJECTORIES;
    printf("%.6e %.6f\n", (double)TRAJECTORIES * steps / seconds, mean);
    return 0;
}
