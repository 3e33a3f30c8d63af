/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ODP_UTIL_H
#define ODP_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Print a line and exit with status 1. */
void die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
/* The same with the text of errno. */
void die_errno(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/* Seconds on the monotonic clock. */
double now(void);

/* Bytes of the kernel's pages: 4, 16 or 64 KiB. */
size_t page_size(void);
/* Bytes of a transparent huge page, one entry a level up; 0: there are none. */
size_t huge_page_size(void);

/* Pseudo-random numbers (splitmix64): one state per thread, from a seed. */
struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
/* Uniform in [0, n); n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
/* True once in n times. */
static inline int rng_one_in(struct rng *r, uint64_t n)
{
    return rng_below(r, n) == 0;
}

/*
 * The generator of expected bytes: byte i of the message `seed` depends on
 * both and on nothing else, so any part can be made or checked by itself.
 */
void pattern_fill(void *dst, uint64_t seed, size_t offset, size_t len);
/* Index of the first wrong byte of [0, len), -1 when all are right. */
long pattern_check(const void *data, uint64_t seed, size_t offset,
                   size_t len);
/* One number for a range of bytes (64-bit FNV-1a over words). */
uint64_t checksum(const void *data, size_t len);

#endif
