/*
 * mlx5 translation tables: sparse, by octoword
 *
 * The table of a memory key as the guest wrote it, in units of 16 bytes: two
 * MTTs, one KLM or one KSM. Zero entries cost nothing, and neither does the
 * regular filling of an implicit MR's KSM (same key, addresses in equal
 * steps): memory follows what differs from that.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_XLT_H
#define HW_RDMA_MLX5_XLT_H

#include "mlx5-core.h"

enum {
    MLX5_XLT_LEAF = 256,          /* octowords of a leaf: 4 KiB */
    MLX5_XLT_FANOUT = 512,
};

typedef struct Mlx5Xlt {
    void *root;                   /* a leaf or a node; NULL: all zero */
    uint32_t size;                /* octowords */
    uint8_t depth;                /* nodes above the leaves */
    bool rules;                   /* regular leaves are kept as their rule */
} Mlx5Xlt;

/*
 * Sets the size; the table is all zero and costs nothing. @rules: for tables
 * of KLMs and KSMs, which are never read through mlx5_xlt_mtts().
 */
void mlx5_xlt_init(Mlx5Xlt *x, uint32_t octowords, bool rules);
void mlx5_xlt_fini(Mlx5Hca *h, Mlx5Xlt *x);
/*
 * Writes @n octowords at @off; what lies beyond the end is dropped. false:
 * the HCA's budget for translation tables is used up; the table is as far
 * written as it got.
 */
bool mlx5_xlt_write(Mlx5Hca *h, Mlx5Xlt *x, uint64_t off, const void *data,
                    uint32_t n);
/* Reads @n octowords at @off; zero beyond the end. */
void mlx5_xlt_read(const Mlx5Xlt *x, uint64_t off, void *buf, uint32_t n);

/* One octoword as two 64-bit words in CPU order; zero beyond the end. */
void mlx5_xlt_get(const Mlx5Xlt *x, uint64_t off, uint64_t w[2]);
/*
 * The big-endian MTTs from number @idx on that lie in one piece: NULL when
 * they are all zero (or beyond the end). *@n: how many.
 */
const uint64_t *mlx5_xlt_mtts(const Mlx5Xlt *x, uint64_t idx, uint64_t *n);

/* Bytes of memory that a table takes. */
uint64_t mlx5_xlt_usage(const Mlx5Xlt *x);

extern const VMStateInfo vmstate_info_mlx5_xlt;

#endif
