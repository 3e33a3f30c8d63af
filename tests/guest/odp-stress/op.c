/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "op.h"

/* Guard bytes on each side of a piece. */
enum { GUARD = 64 };

void buf_choose(struct buf *b, struct rng *rng, struct region **set,
                unsigned kinds, unsigned area, unsigned n, unsigned len,
                unsigned align)
{
    unsigned first = rng_below(rng, kinds);
    unsigned left = len;

    if (n > kinds) {
        n = kinds;
    }
    if (n > len) {
        n = len ? len : 1;
    }
    b->n = n;
    b->len = len;
    b->guard = rng_next(rng);
    for (unsigned i = 0; i < n; i++) {
        struct seg *s = &b->seg[i];

        s->region = set[(first + i) % kinds];
        s->area = area;
        s->zeroed = false;
        s->len = i == n - 1 ? left : 1 + rng_below(rng, left - (n - 1 - i));
        s->offset = rng_below(rng, AREA_BYTES - s->len + 1) & ~(align - 1);
        left -= s->len;
    }
}

static bool loses_pages(const struct region *r)
{
    return r->reg != REG_PINNED;
}

static void drop_area(struct seg *s, struct arena *a)
{
    region_drop(s->region, (size_t)s->area * AREA_BYTES, AREA_BYTES);
    atomic_fetch_add(&a->totals.own_drops, 1);
}

void buf_fill(struct buf *b, struct arena *a, struct rng *rng, uint64_t seed)
{
    unsigned done = 0;

    for (unsigned i = 0; i < b->n; i++) {
        struct seg *s = &b->seg[i];

        pattern_fill(seg_cpu(s), seed, done, s->len);
        done += s->len;
        if (loses_pages(s->region) && s->region->mem == MEM_FILE &&
            rng_one_in(rng, 4)) {
            drop_area(s, a);
        }
    }
}

static void guard_span(const struct seg *s, unsigned *from, unsigned *to)
{
    *from = s->offset > GUARD ? s->offset - GUARD : 0;
    *to = s->offset + s->len + GUARD < AREA_BYTES ?
          s->offset + s->len + GUARD : AREA_BYTES;
}

void buf_guard(struct buf *b, struct arena *a, struct rng *rng)
{
    for (unsigned i = 0; i < b->n; i++) {
        struct seg *s = &b->seg[i];
        unsigned from, to;

        guard_span(s, &from, &to);
        pattern_fill(seg_cpu(s) - s->offset + from, b->guard, from, to - from);
        if (loses_pages(s->region) && rng_one_in(rng, 4)) {
            drop_area(s, a);
            s->zeroed = s->region->mem == MEM_ANON;
        }
    }
}

static long check_guard(const struct buf *b, const struct seg *s,
                        unsigned from, unsigned to)
{
    const uint8_t *area = seg_cpu(s) - s->offset;
    long at;

    if (!s->zeroed) {
        at = pattern_check(area + from, b->guard, from, to - from);
        return at < 0 ? -1 : at + from;
    }
    for (unsigned i = from; i < to; i++) {
        if (area[i]) {
            return i;
        }
    }
    return -1;
}

static void bad_byte(const struct seg *s, long at, const char *why,
                     const char *what, uint64_t seed)
{
    const uint8_t *area = seg_cpu(s) - s->offset;

    die("wrong byte: %s, %s: %s, area %u (device address %p), byte %ld of the "
        "area is 0x%02x, the piece is [%u, %u), message seed 0x%llx",
        what, why, s->region->name, s->area, seg_dev(s) - s->offset, at,
        area[at], s->offset, s->offset + s->len, (unsigned long long)seed);
}

void buf_check(const struct buf *b, uint64_t seed, unsigned skip, unsigned len,
               const char *what)
{
    unsigned pos = 0;               /* in the buffer */

    for (unsigned i = 0; i < b->n; i++) {
        const struct seg *s = &b->seg[i];
        unsigned from, to, end = s->offset + s->len;
        unsigned lo = pos < skip ? skip : pos;
        unsigned hi = pos + s->len < skip + len ? pos + s->len : skip + len;
        long at;

        if (lo < hi) {
            at = pattern_check(seg_cpu(s) + (lo - pos), seed, lo - skip,
                               hi - lo);
            if (at >= 0) {
                bad_byte(s, s->offset + (lo - pos) + at, "content", what,
                         seed);
            }
            end = s->offset + (hi - pos);
        } else if (pos >= skip + len) {
            end = s->offset;
        }
        guard_span(s, &from, &to);
        at = check_guard(b, s, from, s->offset);
        if (at < 0) {
            at = check_guard(b, s, end, to);
        }
        if (at >= 0) {
            bad_byte(s, at, "outside of the transfer", what, seed);
        }
        pos += s->len;
    }
}

void buf_sge(const struct buf *b, struct ibv_sge *sge)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct seg *s = &b->seg[i];

        sge[i].addr = (uintptr_t)seg_dev(s);
        sge[i].length = s->len;
        sge[i].lkey = s->region->mr->lkey;
    }
}
