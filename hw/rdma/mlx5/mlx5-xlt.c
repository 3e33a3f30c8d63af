/*
 * mlx5 translation tables: sparse, by octoword
 *
 * A radix tree with leaves of 256 octowords. A table that fits one leaf has
 * a leaf of just its size and no node. A leaf of 256 KSMs in which the key
 * is the same and the address advances in equal steps is kept as its rule.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qemu/units.h"
#include "migration/vmstate.h"
#include "migration/qemu-file-types.h"
#include "mlx5-mkey.h"
#include "mlx5-xlt.h"
#include "trace.h"

/* A leaf as its rule: octoword i is { w0, w1 + i * step }. Tagged pointer. */
typedef struct Mlx5XltRule {
    uint64_t w0, w1, step;        /* CPU order */
} Mlx5XltRule;

enum { MLX5_XLT_RULE = 1 };

static bool xlt_is_rule(const void *leaf)
{
    return (uintptr_t)leaf & MLX5_XLT_RULE;
}

static Mlx5XltRule *xlt_rule(const void *leaf)
{
    return (Mlx5XltRule *)((uintptr_t)leaf & ~(uintptr_t)MLX5_XLT_RULE);
}

/* Octowords of the table's leaves. */
static uint32_t xlt_leaf_size(const Mlx5Xlt *x)
{
    return x->depth ? MLX5_XLT_LEAF : ROUND_UP(x->size, 4);
}

void mlx5_xlt_init(Mlx5Xlt *x, uint32_t octowords, bool rules)
{
    uint64_t reach = MLX5_XLT_LEAF;

    *x = (Mlx5Xlt) { .size = octowords, .rules = rules };
    while (reach < octowords) {
        reach *= MLX5_XLT_FANOUT;
        x->depth++;
    }
}

/* @h NULL: a table that is being loaded, counted later. */
static void *xlt_alloc(Mlx5Hca *h, size_t bytes)
{
    uint64_t limit;

    if (h) {
        limit = h->conf.xlt_limit ?: 4 * GiB;
        if (h->mk->xlt_bytes + bytes > limit) {
            trace_mlx5_xlt_full(h->name, h->mk->xlt_bytes, limit);
            return NULL;
        }
        h->mk->xlt_bytes += bytes;
    }
    return g_malloc0(bytes);
}

static void xlt_release(Mlx5Hca *h, void *p, size_t bytes)
{
    if (h) {
        h->mk->xlt_bytes -= bytes;
    }
    g_free(p);
}

static void xlt_free_leaf(Mlx5Hca *h, Mlx5Xlt *x, void *leaf)
{
    if (xlt_is_rule(leaf)) {
        xlt_release(h, xlt_rule(leaf), sizeof(Mlx5XltRule));
    } else if (leaf) {
        xlt_release(h, leaf, xlt_leaf_size(x) * 16);
    }
}

static void xlt_free(Mlx5Hca *h, Mlx5Xlt *x, void *p, unsigned depth)
{
    void **node = p;

    if (!p) {
        return;
    }
    if (!depth) {
        xlt_free_leaf(h, x, p);
        return;
    }
    for (unsigned i = 0; i < MLX5_XLT_FANOUT; i++) {
        xlt_free(h, x, node[i], depth - 1);
    }
    xlt_release(h, node, MLX5_XLT_FANOUT * sizeof(void *));
}

void mlx5_xlt_fini(Mlx5Hca *h, Mlx5Xlt *x)
{
    xlt_free(h, x, x->root, x->depth);
    x->root = NULL;
}

/* The slot of the leaf that holds octoword @off; NULL: not there. */
static void **xlt_slot(Mlx5Hca *h, Mlx5Xlt *x, uint64_t off, bool create)
{
    uint64_t leaf = off / MLX5_XLT_LEAF;
    void **slot = &x->root;

    for (unsigned d = x->depth; d; d--) {
        if (!*slot) {
            if (!create) {
                return NULL;
            }
            *slot = xlt_alloc(h, MLX5_XLT_FANOUT * sizeof(void *));
            if (!*slot) {
                return NULL;
            }
        }
        slot = (void **)*slot + (leaf >> (9 * (d - 1))) % MLX5_XLT_FANOUT;
    }
    return slot;
}

static void *xlt_leaf(const Mlx5Xlt *x, uint64_t off)
{
    uint64_t leaf = off / MLX5_XLT_LEAF;
    void *p = x->root;

    for (unsigned d = x->depth; d && p; d--) {
        p = ((void **)p)[(leaf >> (9 * (d - 1))) % MLX5_XLT_FANOUT];
    }
    return p;
}

static void xlt_from_rule(const void *leaf, uint32_t at, uint8_t *be,
                          uint32_t n)
{
    const Mlx5XltRule *r = xlt_rule(leaf);

    for (uint32_t i = 0; i < n; i++) {
        stq_be_p(be + i * 16, r->w0);
        stq_be_p(be + i * 16 + 8, r->w1 + (at + i) * r->step);
    }
}

static bool xlt_find_rule(const uint8_t *be, Mlx5XltRule *r)
{
    r->w0 = ldq_be_p(be);
    r->w1 = ldq_be_p(be + 8);
    r->step = ldq_be_p(be + 24) - r->w1;
    for (uint32_t i = 1; i < MLX5_XLT_LEAF; i++) {
        if (ldq_be_p(be + i * 16) != r->w0 ||
            ldq_be_p(be + i * 16 + 8) != r->w1 + i * r->step) {
            return false;
        }
    }
    return true;
}

/* Writes within one leaf. */
static bool xlt_write_leaf(Mlx5Hca *h, Mlx5Xlt *x, uint64_t off,
                           const void *data, uint32_t n)
{
    uint32_t at = off % MLX5_XLT_LEAF, size = xlt_leaf_size(x);
    bool zero = buffer_is_zero(data, n * 16);
    void **slot = xlt_slot(h, x, off, !zero);
    Mlx5XltRule rule;

    if (!slot) {
        return zero;
    }
    if (n == size && zero) {
        xlt_free_leaf(h, x, *slot);
        *slot = NULL;
        return true;
    }
    if (x->rules && x->depth && n == MLX5_XLT_LEAF &&
        xlt_find_rule(data, &rule)) {
        Mlx5XltRule *r = xlt_is_rule(*slot) ? xlt_rule(*slot)
                                            : xlt_alloc(h, sizeof(*r));

        if (!r) {
            return false;
        }
        if (!xlt_is_rule(*slot)) {
            xlt_free_leaf(h, x, *slot);
        }
        *r = rule;
        *slot = (void *)((uintptr_t)r | MLX5_XLT_RULE);
        return true;
    }
    if (!*slot || xlt_is_rule(*slot)) {
        void *old = *slot, *leaf;

        if (!old && zero) {
            return true;
        }
        leaf = xlt_alloc(h, size * 16);
        if (!leaf) {
            return false;
        }
        if (old) {
            xlt_from_rule(old, 0, leaf, size);
            xlt_free_leaf(h, x, old);
        }
        *slot = leaf;
    }
    memcpy((uint8_t *)*slot + at * 16, data, n * 16);
    if (zero && buffer_is_zero(*slot, size * 16)) {
        xlt_free_leaf(h, x, *slot);
        *slot = NULL;
    }
    return true;
}

bool mlx5_xlt_write(Mlx5Hca *h, Mlx5Xlt *x, uint64_t off, const void *data,
                    uint32_t n)
{
    if (off >= x->size) {
        return true;
    }
    n = MIN(n, x->size - off);
    while (n) {
        uint32_t part = MIN(n, MLX5_XLT_LEAF - off % MLX5_XLT_LEAF);

        if (!xlt_write_leaf(h, x, off, data, part)) {
            return false;
        }
        data = (const uint8_t *)data + part * 16;
        off += part;
        n -= part;
    }
    return true;
}

void mlx5_xlt_read(const Mlx5Xlt *x, uint64_t off, void *buf, uint32_t n)
{
    uint8_t *to = buf;

    while (n) {
        uint32_t at = off % MLX5_XLT_LEAF;
        uint32_t part = MIN(n, MLX5_XLT_LEAF - at);
        void *leaf = NULL;

        if (off < x->size) {
            part = MIN(part, x->size - off);
            leaf = xlt_leaf(x, off);
        }
        if (!leaf) {
            memset(to, 0, part * 16);
        } else if (xlt_is_rule(leaf)) {
            xlt_from_rule(leaf, at, to, part);
        } else {
            memcpy(to, (uint8_t *)leaf + at * 16, part * 16);
        }
        to += part * 16;
        off += part;
        n -= part;
    }
}

void mlx5_xlt_get(const Mlx5Xlt *x, uint64_t off, uint64_t w[2])
{
    uint32_t at = off % MLX5_XLT_LEAF;
    void *leaf = off < x->size ? xlt_leaf(x, off) : NULL;

    if (!leaf) {
        w[0] = w[1] = 0;
    } else if (xlt_is_rule(leaf)) {
        w[0] = xlt_rule(leaf)->w0;
        w[1] = xlt_rule(leaf)->w1 + at * xlt_rule(leaf)->step;
    } else {
        w[0] = ldq_be_p((uint8_t *)leaf + at * 16);
        w[1] = ldq_be_p((uint8_t *)leaf + at * 16 + 8);
    }
}

const uint64_t *mlx5_xlt_mtts(const Mlx5Xlt *x, uint64_t idx, uint64_t *n)
{
    uint64_t off = idx / 2, at = idx % (MLX5_XLT_LEAF * 2);
    void *leaf;

    if (off >= x->size) {
        *n = UINT64_MAX;
        return NULL;
    }
    *n = MIN(MLX5_XLT_LEAF * 2 - at, (uint64_t)x->size * 2 - idx);
    leaf = xlt_leaf(x, off);
    return leaf ? (uint64_t *)leaf + at : NULL;
}

static uint64_t xlt_count(const Mlx5Xlt *x, void *p, unsigned depth)
{
    uint64_t sum = MLX5_XLT_FANOUT * sizeof(void *);

    if (!p) {
        return 0;
    }
    if (!depth) {
        return xlt_is_rule(p) ? sizeof(Mlx5XltRule) : xlt_leaf_size(x) * 16;
    }
    for (unsigned i = 0; i < MLX5_XLT_FANOUT; i++) {
        sum += xlt_count(x, ((void **)p)[i], depth - 1);
    }
    return sum;
}

uint64_t mlx5_xlt_usage(const Mlx5Xlt *x)
{
    return xlt_count(x, x->root, x->depth);
}

/* Migration: the leaves by number, each raw or as its rule. */

enum {
    MLX5_XLT_STREAM_RAW = 0,
    MLX5_XLT_STREAM_RULE = 1,
    MLX5_XLT_STREAM_END = 2,
};

static void xlt_put(QEMUFile *f, const Mlx5Xlt *x, void *p, unsigned depth,
                    uint32_t leaf)
{
    if (!p) {
        return;
    }
    if (depth) {
        for (unsigned i = 0; i < MLX5_XLT_FANOUT; i++) {
            xlt_put(f, x, ((void **)p)[i], depth - 1,
                    leaf * MLX5_XLT_FANOUT + i);
        }
        return;
    }
    if (xlt_is_rule(p)) {
        qemu_put_byte(f, MLX5_XLT_STREAM_RULE);
        qemu_put_be32(f, leaf);
        qemu_put_be64(f, xlt_rule(p)->w0);
        qemu_put_be64(f, xlt_rule(p)->w1);
        qemu_put_be64(f, xlt_rule(p)->step);
    } else {
        qemu_put_byte(f, MLX5_XLT_STREAM_RAW);
        qemu_put_be32(f, leaf);
        qemu_put_buffer(f, p, xlt_leaf_size(x) * 16);
    }
}

static int xlt_info_put(QEMUFile *f, void *pv, size_t size,
                        const VMStateField *field, JSONWriter *vmdesc)
{
    Mlx5Xlt *x = pv;

    qemu_put_be32(f, x->size);
    qemu_put_byte(f, x->rules);
    xlt_put(f, x, x->root, x->depth, 0);
    qemu_put_byte(f, MLX5_XLT_STREAM_END);
    return 0;
}

static int xlt_info_get(QEMUFile *f, void *pv, size_t size,
                        const VMStateField *field)
{
    Mlx5Xlt *x = pv;
    uint32_t octowords = qemu_get_be32(f);
    int kind;

    mlx5_xlt_init(x, octowords, qemu_get_byte(f));
    while ((kind = qemu_get_byte(f)) != MLX5_XLT_STREAM_END) {
        uint64_t off = (uint64_t)qemu_get_be32(f) * MLX5_XLT_LEAF;
        void **slot;

        if (off >= x->size || qemu_file_get_error(f)) {
            return -EINVAL;
        }
        slot = xlt_slot(NULL, x, off, true);
        if (*slot) {
            return -EINVAL;
        }
        if (kind == MLX5_XLT_STREAM_RULE && x->rules) {
            Mlx5XltRule *r = xlt_alloc(NULL, sizeof(*r));

            r->w0 = qemu_get_be64(f);
            r->w1 = qemu_get_be64(f);
            r->step = qemu_get_be64(f);
            *slot = (void *)((uintptr_t)r | MLX5_XLT_RULE);
        } else if (kind == MLX5_XLT_STREAM_RAW) {
            *slot = xlt_alloc(NULL, xlt_leaf_size(x) * 16);
            qemu_get_buffer(f, *slot, xlt_leaf_size(x) * 16);
        } else {
            return -EINVAL;
        }
    }
    return 0;
}

const VMStateInfo vmstate_info_mlx5_xlt = {
    .name = "mlx5-xlt",
    .get = xlt_info_get,
    .put = xlt_info_put,
};
