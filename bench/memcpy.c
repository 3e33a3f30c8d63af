/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the host's memcpy bandwidth over 256 MiB, in MiB/s. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 256 << 20, COPIES = 4 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void)
{
    char *src = malloc(BYTES), *dst = malloc(BYTES);
    double start;

    if (!src || !dst) {
        return 1;
    }
    memset(src, 1, BYTES);
    memset(dst, 2, BYTES);
    start = now();
    for (int i = 0; i < COPIES; i++) {
        memcpy(dst, src, BYTES);
        /* Or the compiler leaves copies out, or moves them past the clock. */
        __asm__ volatile("" : : "r"(dst) : "memory");
    }
    printf("%.1f\n", COPIES * (double)(BYTES >> 20) / (now() - start));
    return dst[BYTES / 2] != 1 || dst[BYTES - 1] != 1;
}
