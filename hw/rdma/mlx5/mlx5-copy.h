/*
 * mlx5: memory at one side of an operation, as its copy walks through it
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_COPY_H
#define HW_RDMA_MLX5_COPY_H

#include "mlx5-qp.h"

/* A stretch of one side that is at hand within this slice. */
typedef struct Mlx5Cursor {
    Mlx5Side *side;
    Mlx5Hca *hca;                 /* NULL: bytes of op->data */
    uint8_t *bytes;
    uint64_t left;                /* bytes not yet used of the stretch */
    bool null;                    /* null mkey: zeroes, or thrown away */
    bool held;
    uint64_t held_done;
    Mlx5Hold hold;
} Mlx5Cursor;

/* Whose memory a side is, and who asks for it. */
static inline Mlx5Hca *mlx5_side_hca(const Mlx5Op *op, const Mlx5Side *s)
{
    return s->remote ? op->peer->hca : op->qp->hca;
}

static inline Mlx5Sge *mlx5_side_sge(Mlx5Op *op, const Mlx5Side *s)
{
    return s->remote ? &op->remote[s->cur] : &op->local[s->cur];
}

/*
 * Gets at least one byte of @c's side at hand: at its place in its list, or
 * (_at) of [va, va + want) of @key. Other than MLX5_OP_GO: the operation
 * waits or has failed, nothing is held.
 */
Mlx5OpResult mlx5_cursor_fill(Mlx5Op *op, Mlx5Cursor *c, uint64_t want);
Mlx5OpResult mlx5_cursor_at(Mlx5Op *op, Mlx5Cursor *c, uint32_t key,
                            uint64_t va, uint64_t want);
void mlx5_cursor_advance(Mlx5Cursor *c, uint64_t n);
/* Ends the hold; nothing is at hand any more. */
void mlx5_cursor_drop(Mlx5Cursor *c);

/* mlx5-sigcopy.c: the copy when a signature key is at one of its sides. */
/* The operation, which has moved no byte so far, needs it. */
bool mlx5_sig_copy_needed(const Mlx5Op *op);
Mlx5OpResult mlx5_sig_copy(Mlx5Op *op, uint64_t *budget);
/*
 * Bytes on the wire that an entry of a scatter or gather list stands for:
 * the entry counts those in memory when only the wire has signatures.
 */
uint32_t mlx5_sig_sge_len(Mlx5Hca *h, uint32_t key, uint32_t len);

#endif
