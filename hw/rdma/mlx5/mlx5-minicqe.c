/*
 * mlx5 compressed completions: receive CQEs that come in a row
 *
 * Receives that complete in one slice of work wait until it ends. Those that
 * tell apart by length and index only become one session: a title, which is
 * the first CQE with their number in place of its length, and blocks of eight
 * pairs of index (or checksum) and length. A session takes as many slots as
 * it has CQEs; blocks are in the second one and then in each eighth. What
 * comes alone is written as it is, so nothing is held back for long.
 * (Linux: drivers/net/ethernet/mellanox/mlx5/core/en_rx.c)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-cq.h"
#include "mlx5-qp.h"
#include "mlx5-wqe.h"
#include "trace.h"

enum {
    MINI_BLOCK = 8,               /* pairs in a slot */
    MINI_COMPRESSED = 3 << 2,     /* format bits of op_own */
    MINI_STRIDE_INDEX = 3,        /* mini_cqe_res_format with an index */
    SAME_BYTES = offsetof(Mlx5Cqe64, byte_cnt), /* equal in a session */
};

struct Mlx5Mini {
    Mlx5Cq *cq;
    uint32_t n;
    bool solicited;               /* any of them was */
    Mlx5Cqe64 cqe[MLX5_CQE_COMP_MAX];
    QTAILQ_ENTRY(Mlx5Mini) next;
};

/* Sessions that end with the slice. */
static QTAILQ_HEAD(, Mlx5Mini) minis = QTAILQ_HEAD_INITIALIZER(minis);

void mlx5_mini_new(Mlx5Cq *cq)
{
    cq->mini = g_new0(Mlx5Mini, 1);
    cq->mini->cq = cq;
}

void mlx5_mini_free(Mlx5Cq *cq)
{
    if (cq->mini) {
        if (cq->mini->n) {
            QTAILQ_REMOVE(&minis, cq->mini, next);
        }
        g_free(cq->mini);
        cq->mini = NULL;
    }
}

uint32_t mlx5_mini_pending(const Mlx5Cq *cq)
{
    return cq->mini ? cq->mini->n : 0;
}

static bool mini_joins(const Mlx5Mini *m, const Mlx5Cqe64 *cqe)
{
    const Mlx5Cqe64 *first = &m->cqe[0], *last = &m->cqe[m->n - 1];

    return m->n < MLX5_CQE_COMP_MAX && !memcmp(first, cqe, SAME_BYTES) &&
           first->sop_drop_qpn == cqe->sop_drop_qpn &&
           (m->cq->mini_format == MINI_STRIDE_INDEX ||
            (uint16_t)(be16_to_cpu(last->wqe_counter) + 1) ==
            be16_to_cpu(cqe->wqe_counter));
}

bool mlx5_mini_take(Mlx5Cq *cq, const uint8_t raw[64], bool solicited)
{
    const Mlx5Cqe64 *cqe = (const Mlx5Cqe64 *)raw;
    Mlx5Mini *m = cq->mini;

    if (!m || !mlx5_sched_in_slice() ||
        cqe->op_own >> 4 != MLX5_CQE_RESP_SEND) {
        return false;
    }
    if (m->n && !mini_joins(m, cqe) && !mlx5_mini_flush(cq)) {
        return false;
    }
    if (!m->n) {
        QTAILQ_INSERT_TAIL(&minis, m, next);
    }
    m->cqe[m->n++] = *cqe;
    m->solicited |= solicited;
    return true;
}

/* The blocks first: the title gives the session away. */
static bool mini_write(Mlx5Cq *cq, const Mlx5Mini *m)
{
    Mlx5Cqe64 title = m->cqe[0];

    if (m->n == 1) {
        return mlx5_cq_write(cq, cq->pi, (uint8_t *)&title, true);
    }
    for (uint32_t at = 0; at < m->n; at += MINI_BLOCK) {
        uint8_t block[MLX5_CQE_SIZE] = { };

        for (uint32_t i = 0; i < MINI_BLOCK && at + i < m->n; i++) {
            if (cq->mini_format == MINI_STRIDE_INDEX) {
                memcpy(block + i * 8 + 2, &m->cqe[at + i].wqe_counter, 2);
            }
            memcpy(block + i * 8 + 4, &m->cqe[at + i].byte_cnt, 4);
        }
        if (!mlx5_cq_write(cq, cq->pi + MAX(at, 1), block, false)) {
            return false;
        }
    }
    title.byte_cnt = cpu_to_be32(m->n);
    title.op_own |= MINI_COMPRESSED;
    return mlx5_cq_write(cq, cq->pi, (uint8_t *)&title, true);
}

bool mlx5_mini_flush(Mlx5Cq *cq)
{
    Mlx5Mini *m = cq->mini;
    uint32_t n = m ? m->n : 0;
    bool ok;

    if (!n) {
        return true;
    }
    QTAILQ_REMOVE(&minis, m, next);
    ok = cq->status == MLX5_CQ_STATUS_OK && mini_write(cq, m);
    m->n = 0;
    trace_mlx5_cq_compressed(cq->hca->name, cq->obj.id, cq->pi, n, ok);
    if (ok) {
        mlx5_cq_advance(cq, n, m->solicited);
    } else if (cq->status == MLX5_CQ_STATUS_OK) {
        mlx5_cq_fail(cq, MLX5_CQ_STATUS_WRITE, MLX5_CQ_ERR_ACCESS);
    }
    m->solicited = false;
    return ok;
}

void mlx5_mini_flush_all(void)
{
    Mlx5Mini *m;

    while ((m = QTAILQ_FIRST(&minis))) {
        mlx5_mini_flush(m->cq);
    }
}
