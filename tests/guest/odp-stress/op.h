/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef OP_H
#define OP_H

#include "arena.h"

enum { MAX_SEGS = 4, MAX_BYTES = 12288 };

/* A piece of an area. */
struct seg {
    struct region *region;
    unsigned area;
    unsigned offset;        /* in the area */
    unsigned len;
    bool zeroed;            /* around it are zeroes, not the guard bytes */
};

/* A buffer made of pieces of the same area of different regions. */
struct buf {
    struct seg seg[MAX_SEGS];
    unsigned n;
    unsigned len;
    uint64_t guard;         /* seed of the guard bytes of a target */
};

/*
 * Choose n pieces that make len bytes together. set: regions, of which the
 * first `kinds` may be used; align: of each offset, a power of two.
 */
void buf_choose(struct buf *b, struct rng *rng, struct region **set,
                unsigned kinds, unsigned area, unsigned n, unsigned len,
                unsigned align);
/* Source: write bytes [0, len) of message `seed`; often drop its pages. */
void buf_fill(struct buf *b, struct arena *a, struct rng *rng, uint64_t seed);
/* Target: guard bytes in and around it; often drop its pages. */
void buf_guard(struct buf *b, struct arena *a, struct rng *rng);
/*
 * Exit with a message unless the bytes from `skip` on are message `seed`, `len`
 * bytes of it, and what follows, and all guard bytes, are as they were.
 */
void buf_check(const struct buf *b, uint64_t seed, unsigned skip, unsigned len,
               const char *what);
void buf_sge(const struct buf *b, struct ibv_sge *sge);

static inline uint8_t *seg_cpu(const struct seg *s)
{
    return s->region->cpu + (size_t)s->area * AREA_BYTES + s->offset;
}
static inline uint8_t *seg_dev(const struct seg *s)
{
    return s->region->dev + (size_t)s->area * AREA_BYTES + s->offset;
}

#endif
