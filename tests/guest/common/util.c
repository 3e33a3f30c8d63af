/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

static void vcomplain(const char *tail, const char *fmt, va_list ap)
{
    char text[512];

    vsnprintf(text, sizeof(text), fmt, ap);
    fflush(stdout);
    fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, text,
            tail ? ": " : "", tail ? tail : "");
    fflush(stderr);
}

void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vcomplain(NULL, fmt, ap);
    va_end(ap);
    _Exit(1);
}

void die_errno(const char *fmt, ...)
{
    const char *why = strerror(errno);
    va_list ap;

    va_start(ap, fmt);
    vcomplain(why, fmt, ap);
    va_end(ap);
    _Exit(1);
}

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

size_t page_size(void)
{
    static size_t size;

    if (!size) {
        size = sysconf(_SC_PAGESIZE);
    }
    return size;
}

size_t huge_page_size(void)
{
    static const char file[] =
        "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    static size_t size;

    if (!size) {
        FILE *f = fopen(file, "r");

        if (f) {
            if (fscanf(f, "%zu", &size) != 1) {
                die("%s says nothing", file);
            }
            fclose(f);
        }
    }
    return size;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

uint64_t rng_next(struct rng *r)
{
    r->state += 0x9e3779b97f4a7c15ull;
    return mix(r->state);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
    return rng_next(r) % n;
}

/* One multiplication a word: every byte of an emulated guest counts. */
static inline uint64_t word(uint64_t seed, uint64_t index)
{
    uint64_t w = (seed + index) * 0x9e3779b97f4a7c15ull;

    return w ^ (w >> 29);
}

enum { CHUNK = 64 };

void pattern_fill(void *dst, uint64_t seed, size_t offset, size_t len)
{
    uint64_t words[CHUNK];
    uint8_t *out = dst;

    seed = mix(seed);
    while (len) {
        size_t skip = offset % 8;
        size_t n = sizeof(words) - skip < len ? sizeof(words) - skip : len;

        for (unsigned i = 0; i < (skip + n + 7) / 8; i++) {
            words[i] = word(seed, offset / 8 + i);
        }
        memcpy(out, (uint8_t *)words + skip, n);
        out += n;
        offset += n;
        len -= n;
    }
}

long pattern_check(const void *data, uint64_t seed, size_t offset, size_t len)
{
    uint64_t words[CHUNK];
    const uint8_t *in = data;
    size_t done = 0;

    seed = mix(seed);
    while (done < len) {
        size_t skip = (offset + done) % 8;
        size_t n = sizeof(words) - skip;

        if (n > len - done) {
            n = len - done;
        }
        for (unsigned i = 0; i < (skip + n + 7) / 8; i++) {
            words[i] = word(seed, (offset + done) / 8 + i);
        }
        if (memcmp(in + done, (uint8_t *)words + skip, n)) {
            for (size_t i = 0; i < n; i++) {
                if (in[done + i] != ((uint8_t *)words)[skip + i]) {
                    return done + i;
                }
            }
        }
        done += n;
    }
    return -1;
}

uint64_t checksum(const void *data, size_t len)
{
    const uint8_t *in = data;
    uint64_t sum = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = 0;

        memcpy(&w, in + i, len - i < 8 ? len - i : 8);
        sum = (sum ^ w) * 0x100000001b3ull;
        sum ^= sum >> 32;
    }
    return sum;
}
