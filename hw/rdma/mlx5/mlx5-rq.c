/*
 * mlx5 receive WQEs: of a queue pair and of a shared receive queue
 *
 * Posting one rings no doorbell: the doorbell record in guest memory is read
 * when what is known to be posted has run out.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-eq.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-tm.h"
#include "trace.h"

#define MLX5_RECV_WQE_MAX (MLX5_OP_MAX_SGE * sizeof(Mlx5WqeData))

/* Scatter entries of a receive WQE, up to the terminator. */
static bool mlx5_rq_parse(Mlx5Op *op, const uint8_t *p, uint32_t len)
{
    op->dst_nrecv = 0;
    for (; len >= sizeof(Mlx5WqeData);
         p += sizeof(Mlx5WqeData), len -= sizeof(Mlx5WqeData)) {
        const Mlx5WqeData *seg = (const Mlx5WqeData *)p;
        uint32_t count = be32_to_cpu(seg->byte_count);

        if (be32_to_cpu(seg->lkey) == MLX5_TERMINATE_KEY) {
            break;
        }
        if (count & MLX5_INLINE_SEG || op->dst_nrecv == MLX5_OP_MAX_SGE) {
            return false;
        }
        op->remote[op->dst_nrecv++] = (Mlx5Sge) {
            .key = be32_to_cpu(seg->lkey),
            .len = count ? count : 0x80000000u,
            .va = be64_to_cpu(seg->addr),
        };
    }
    return true;
}

/* Reads a counter of posted WQEs; false: not readable, stop looking. */
static bool mlx5_rq_counter(Mlx5Hca *h, uint64_t *dbr, uint16_t ci,
                            uint32_t entries, uint16_t *pi)
{
    uint8_t rec[4];
    uint16_t posted;

    if (!*dbr || mlx5_dma_read(h, *dbr, rec, sizeof(rec)) != MLX5_DMA_OK) {
        *dbr = 0;
        return false;
    }
    posted = ldl_be_p(rec);
    if ((uint16_t)(posted - ci) > entries) {
        mlx5_guest_error(h, "receive queue of %u entries overrun (posted 0x%x, "
                         "taken 0x%x)", entries, posted, ci);
        return false;
    }
    *pi = posted;
    return true;
}

static Mlx5RqResult mlx5_rq_take_own(Mlx5Qp *qp, Mlx5Op *op)
{
    uint8_t wqe[MLX5_RECV_WQE_MAX];
    uint32_t slot;

    if (!qp->rq_entries) {
        return MLX5_RQ_EMPTY;
    }
    if (qp->rq_pi == qp->rq_ci &&
        (!mlx5_rq_counter(qp->hca, &qp->dbr_addr, qp->rq_ci, qp->rq_entries,
                          &qp->rq_pi) || qp->rq_pi == qp->rq_ci)) {
        return MLX5_RQ_EMPTY;
    }
    slot = qp->rq_ci & (qp->rq_entries - 1);
    op->recv_is_srq = false;
    op->recv_index = qp->rq_ci;
    op->recv_cqn = qp->cqn_rcv;
    op->remote_pd = qp->pd;
    qp->rq_ci++;
    if (mlx5_buf_read(qp->hca, &qp->buf, (uint64_t)slot * qp->rq_stride, wqe,
                      MIN(qp->rq_stride, sizeof(wqe))) != MLX5_DMA_OK ||
        !mlx5_rq_parse(op, wqe, MIN(qp->rq_stride, sizeof(wqe)))) {
        return MLX5_RQ_ERROR;
    }
    return MLX5_RQ_OK;
}

static void mlx5_srq_error(Mlx5Hca *h, Mlx5Srq *srq)
{
    if (!srq->state) {
        mlx5_guest_error(h, "SRQ 0x%x: bad receive WQE", srq->obj.id);
        srq->state = 1;
        mlx5_event_srq(h, MLX5_EVENT_SRQ_CATAS_ERROR, srq->obj.id);
    }
}

static Mlx5RqResult mlx5_rq_take_srq(Mlx5Qp *qp, Mlx5Op *op, uint32_t srqn)
{
    Mlx5Hca *h = qp->hca;
    Mlx5Srq *srq = mlx5_srq_find(h, srqn);
    uint8_t wqe[MLX5_RECV_WQE_MAX];
    const Mlx5WqeSrqNext *next = (const Mlx5WqeSrqNext *)wqe;
    uint32_t len;

    if (!srq || srq->state ||
        (srq->kind == MLX5_SRQK_XRC) != (qp->st == MLX5_ST_XRC)) {
        return MLX5_RQ_ERROR;
    }
    if (srq->pi == srq->ci &&
        (!mlx5_rq_counter(h, &srq->dbr_addr, srq->ci, srq->entries,
                          &srq->pi) || srq->pi == srq->ci)) {
        return MLX5_RQ_EMPTY;
    }
    op->recv_is_srq = true;
    op->recv_index = srq->head;
    op->recv_srqn = srqn;
    op->recv_user_index = srq->user_index;
    op->recv_cqn = mlx5_srq_has_cq(srq->kind) ? srq->cqn : qp->cqn_rcv;
    op->remote_pd = srq->pd;
    len = MIN(srq->stride, sizeof(wqe));
    if (mlx5_buf_read(h, &srq->buf, (uint64_t)srq->head * srq->stride, wqe,
                      len) != MLX5_DMA_OK ||
        be16_to_cpu(next->next_wqe_index) >= srq->entries ||
        !mlx5_rq_parse(op, wqe + sizeof(*next), len - sizeof(*next))) {
        mlx5_srq_error(h, srq);
        return MLX5_RQ_ERROR;
    }
    srq->head = be16_to_cpu(next->next_wqe_index);
    srq->ci++;
    if (srq->lwm && (uint16_t)(srq->pi - srq->ci) < srq->lwm) {
        mlx5_rq_counter(h, &srq->dbr_addr, srq->ci, srq->entries, &srq->pi);
        if ((uint16_t)(srq->pi - srq->ci) < srq->lwm) {
            srq->lwm = 0;
            mlx5_event_srq(h, MLX5_EVENT_SRQ_RQ_LIMIT, srqn);
        }
    }
    return MLX5_RQ_OK;
}

Mlx5RqResult mlx5_rq_take(Mlx5Qp *qp, Mlx5Op *op)
{
    Mlx5RqResult r;

    if (qp->st == MLX5_ST_XRC) {
        r = mlx5_rq_take_srq(qp, op, op->xrc_srqn);
    } else if (qp->rq_type == MLX5_RQ_SRQ) {
        r = mlx5_rq_take_srq(qp, op, qp->srqn);
    } else {
        r = mlx5_rq_take_own(qp, op);
    }
    trace_mlx5_rq_take(qp->hca->name, qp->obj.id, op->recv_index,
                       op->dst_nrecv, r);
    return r;
}

static void mlx5_rq_error_cqe(Mlx5Qp *qp, uint32_t cqn, uint32_t srqn,
                              uint16_t index, uint8_t syndrome)
{
    Mlx5Cq *cq = mlx5_cq_find(qp->hca, cqn);
    Mlx5ErrCqe cqe = {
        .srqn = cpu_to_be32(srqn),
        .syndrome = syndrome,
        .s_wqe_opcode_qpn = cpu_to_be32(qp->obj.id),
        .wqe_counter = cpu_to_be16(index),
        .op_own = MLX5_CQE_RESP_ERR << 4,
    };

    trace_mlx5_rq_error(qp->hca->name, qp->obj.id, index, syndrome);
    if (syndrome == MLX5_SYN_WR_FLUSH) {
        mlx5_qp_count(qp, MLX5_QC_RESP_CQE_FLUSH_ERROR);
    } else {
        mlx5_qp_count(qp, MLX5_QC_RESP_CQE_ERROR);
    }
    if (syndrome == MLX5_SYN_LOCAL_LENGTH) {
        mlx5_qp_count(qp, MLX5_QC_RESP_LOCAL_LENGTH_ERROR);
    }
    if (cq) {
        mlx5_cq_post(qp->hca, cq, (uint8_t *)&cqe, true);
    }
}

/* What offset 32 of a receive CQE says: of the XRC SRQ or XRQ, else the QP. */
static uint32_t mlx5_rq_user_index(const Mlx5Qp *qp, const Mlx5Op *op)
{
    return qp->st == MLX5_ST_XRC || op->tm ? op->recv_user_index
                                           : qp->user_index;
}

static bool mlx5_rq_cqe(Mlx5Qp *qp, Mlx5Op *op, uint8_t opcode)
{
    bool datagram = qp->st == MLX5_ST_UD || qp->st == MLX5_ST_QP0 ||
                    qp->st == MLX5_ST_QP1;
    Mlx5Cq *cq = mlx5_cq_find(qp->hca, op->recv_cqn);
    uint64_t now = mlx5_timestamp();
    Mlx5Cqe64 cqe = {
        .slid = cpu_to_be16(op->src_lid),
        .srqn = cpu_to_be32(mlx5_rq_user_index(qp, op)),
        .immediate = cpu_to_be32(op->imm),
        .byte_cnt = cpu_to_be32(op->len + (datagram ? MLX5_GRH_LEN : 0)),
        .timestamp_h = cpu_to_be32(now >> 32),
        .timestamp_l = cpu_to_be32(now),
        .sop_drop_qpn = cpu_to_be32(qp->obj.id),
        .wqe_counter = cpu_to_be16(op->recv_index),
        .op_own = opcode << 4,
    };

    cqe.flags_rqpn = cpu_to_be32((uint32_t)op->has_grh << 28 |
                                 (uint32_t)op->sl << 24 |
                                 (datagram || qp->st == MLX5_ST_DCT
                                  ? op->src_qpn : qp->remote_qpn));
    if (qp->st == MLX5_ST_QP1) {
        cqe.immediate = cpu_to_be32(0xffff); /* the P_Key of the packet */
    }
    if (op->tm) {
        mlx5_tm_cqe(op, &cqe);
    }
    return cq && mlx5_cq_post(qp->hca, cq, (uint8_t *)&cqe,
                              op->fm_ce_se & MLX5_CTRL_SOLICITED);
}

void mlx5_rq_complete(Mlx5Qp *qp, Mlx5Op *op, uint8_t opcode, uint8_t syndrome)
{
    bool posted = true;

    if (syndrome && op->tm >= MLX5_TM_MATCH) {
        mlx5_tm_cancel(op, qp);
    } else if (syndrome) {
        mlx5_rq_error_cqe(qp, op->recv_cqn, mlx5_rq_user_index(qp, op),
                          op->recv_index, syndrome);
    } else {
        trace_mlx5_rq_done(qp->hca->name, qp->obj.id, op->recv_index, opcode,
                           op->len);
        posted = mlx5_rq_cqe(qp, op, opcode);
        if (op->tm >= MLX5_TM_MATCH) {
            mlx5_tm_done(op, qp);
        }
    }
    if (op->peer) {
        mlx5_op_unbind(op);
    }
    op->has_recv = false;
    if (!posted) {
        mlx5_qp_to_error(qp, MLX5_EVENT_WQ_CATAS_ERROR);
    }
}

void mlx5_rq_abort(Mlx5Qp *qp, Mlx5Op *op)
{
    if (!op->recv_is_srq) {
        qp->rq_ci--;              /* nobody has taken another one since */
    } else if (op->tm >= MLX5_TM_MATCH) {
        mlx5_tm_cancel(op, qp);
    } else if (qp->st == MLX5_ST_RC || qp->st == MLX5_ST_XRC) {
        qp->orphan = true;
        qp->orphan_index = op->recv_index;
        qp->orphan_cqn = op->recv_cqn;
        qp->orphan_user_index = mlx5_rq_user_index(qp, op);
    } else {
        mlx5_rq_complete(qp, op, 0, MLX5_SYN_WR_FLUSH);
    }
}

void mlx5_rq_flush(Mlx5Qp *qp)
{
    if (qp->orphan) {
        qp->orphan = false;
        mlx5_rq_error_cqe(qp, qp->orphan_cqn, qp->orphan_user_index,
                          qp->orphan_index, MLX5_SYN_WR_FLUSH);
    }
    if (!qp->rq_entries || !qp->dbr_addr) {
        return;
    }
    mlx5_rq_counter(qp->hca, &qp->dbr_addr, qp->rq_ci, qp->rq_entries,
                    &qp->rq_pi);
    while (qp->rq_ci != qp->rq_pi) {
        mlx5_rq_error_cqe(qp, qp->cqn_rcv, qp->user_index, qp->rq_ci++,
                          MLX5_SYN_WR_FLUSH);
    }
}
