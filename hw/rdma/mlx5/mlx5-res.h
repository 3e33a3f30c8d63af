/*
 * mlx5 plain resources: PDs, UARs, XRC and transport domains, Q counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_RES_H
#define HW_RDMA_MLX5_RES_H

#include "mlx5-cmd.h"
#include "mlx5-qp.h"

/* What a counter set counts, in the order of the table in mlx5-res.c. */
enum Mlx5QCount {
    MLX5_QC_RX_WRITE_REQUESTS,
    MLX5_QC_RX_READ_REQUESTS,
    MLX5_QC_RX_ATOMIC_REQUESTS,
    MLX5_QC_OUT_OF_BUFFER,
    MLX5_QC_OUT_OF_SEQUENCE,
    MLX5_QC_DUPLICATE_REQUEST,
    MLX5_QC_RNR_NAK_RETRY_ERR,
    MLX5_QC_PACKET_SEQ_ERR,
    MLX5_QC_IMPLIED_NAK_SEQ_ERR,
    MLX5_QC_LOCAL_ACK_TIMEOUT_ERR,
    MLX5_QC_REQ_RNR_RETRIES_EXCEEDED,
    MLX5_QC_RESP_LOCAL_LENGTH_ERROR,
    MLX5_QC_RESP_CQE_ERROR,
    MLX5_QC_REQ_CQE_ERROR,
    MLX5_QC_REQ_REMOTE_INVALID_REQUEST,
    MLX5_QC_RESP_REMOTE_ACCESS_ERRORS,
    MLX5_QC_REQ_REMOTE_ACCESS_ERRORS,
    MLX5_QC_REQ_TRANSPORT_RETRIES_EXCEEDED,
    MLX5_QC_RESP_CQE_FLUSH_ERROR,
    MLX5_QC_REQ_CQE_FLUSH_ERROR,
    MLX5_QC_MAX,
};

typedef struct Mlx5QCounter {
    Mlx5Obj obj;                  /* id: counter set, 8 bits */
    uint32_t n[MLX5_QC_MAX];
} Mlx5QCounter;

/*
 * Counts one event of kind @what in counter set @set (a QP context's
 * counter_set_id); a set that does not exist counts nothing.
 */
void mlx5_q_count(Mlx5Hca *h, uint32_t set, enum Mlx5QCount what);

/* ... in the set that @qp's context names. */
static inline void mlx5_qp_count(const Mlx5Qp *qp, enum Mlx5QCount what)
{
    mlx5_q_count(qp->hca, MLX5_GET(qp->qpc, qpc, counter_set_id), what);
}

/*
 * Which of a table's objects a command may touch: DEVX commands carry the
 * uid of the user context, which must be the owner's; uid 0 is the kernel.
 */
static inline bool mlx5_owns(const Mlx5Cmd *c, const Mlx5Obj *o)
{
    return c->uid == 0 || c->uid == o->uid;
}

/* A resource of table @t by number, owned by the command's uid, or NULL. */
static inline Mlx5Obj *mlx5_res_get(const Mlx5Cmd *c, const Mlx5Table *t,
                                    uint32_t id)
{
    Mlx5Obj *o = mlx5_table_get(t, id);

    return o && mlx5_owns(c, o) ? o : NULL;
}

/*
 * The same, or one of the kernel's: what it shares with user contexts, which
 * is event queues, and XRC domains and the like of its own.
 */
static inline Mlx5Obj *mlx5_res_get_shared(const Mlx5Cmd *c,
                                           const Mlx5Table *t, uint32_t id)
{
    Mlx5Obj *o = mlx5_table_get(t, id);

    return o && (mlx5_owns(c, o) || !o->uid) ? o : NULL;
}

/* UAR page @uar (4 KiB pages of BAR0) is allocated. */
bool mlx5_uar_exists(Mlx5Hca *h, uint32_t uar);
/* ... and belongs to the command's user context. */
bool mlx5_uar_owned(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t uar);

/* @n more (or less) objects ring in it: it stays while any does. */
void mlx5_uar_ref(Mlx5Hca *h, uint32_t uar, int n);

void mlx5_res_init(Mlx5Hca *h);
void mlx5_res_fini(Mlx5Hca *h);
void mlx5_res_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_resources;  /* of Mlx5Hca */

#endif
