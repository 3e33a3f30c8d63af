/*
 * mlx5 send queues as objects of their own (CREATE_SQ)
 *
 * On an Ethernet link these send packets of raw Ethernet. On InfiniBand there
 * is no transport interface (TIS) to bind one to, so that it executes NOPs,
 * and UMRs when its context says so: Linux finds out with one whether write
 * combining works. It has a number of the queue pairs' range and is one here,
 * too, without a receive side.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-cmd.h"
#include "mlx5-devx.h"
#include "mlx5-qos.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_SQ_CONTEXT = 0x5d0001,
    SYND_SQ_TIS,
    SYND_SQ_PD,
    SYND_SQ_CQ,
    SYND_SQ_UAR,
    SYND_SQ_RATE,
    SYND_SQ_GROUP,
    SYND_SQ_UMEM,
    SYND_SQ_FULL,
    SYND_SQ_UNKNOWN,
    SYND_SQ_STATE,
    SYND_SQ_MASK,
};

/* State of a send queue's context. */
enum { SQC_RST = 0, SQC_RDY = 1, SQC_ERR = 3 };

enum {
    WQ_CYCLIC = 1,
    WQ_LOG_STRIDE = 6,
    TS_DEFAULT = 1,               /* ts_format: up to this the free clock */
    MODIFY_RATE = 1 << 0,
    MODIFY_GROUP = 1 << 2,
};

static uint8_t sq_state(const Mlx5Qp *qp)
{
    return qp->state == MLX5_QPS_RST ? SQC_RST :
           qp->state == MLX5_QPS_RTS ? SQC_RDY : SQC_ERR;
}

static enum Mlx5CmdStatus sq_check(Mlx5Hca *h, Mlx5Cmd *c, const uint8_t *sqc)
{
    const uint8_t *wq = MLX5_ADDR(sqc, sqc, wq);
    uint32_t pd = MLX5_GET(wq, wq, pd);

    if (MLX5_GET(sqc, sqc, hairpin) || MLX5_GET(sqc, sqc, state) != SQC_RST ||
        MLX5_GET(sqc, sqc, ts_format) > TS_DEFAULT ||
        MLX5_GET(wq, wq, wq_type) != WQ_CYCLIC ||
        MLX5_GET(wq, wq, log_wq_stride) != WQ_LOG_STRIDE ||
        MLX5_GET(wq, wq, log_wq_sz) > MLX5_LOG_MAX_QP_SZ) {
        c->syndrome = SYND_SQ_CONTEXT;
        return MLX5_CMD_BAD_PARAM;
    }
    if (MLX5_GET(sqc, sqc, tis_lst_sz)) {
        c->syndrome = SYND_SQ_TIS;
        return MLX5_CMD_BAD_RES;
    }
    /* Without memory to name it needs no PD. */
    if (pd && !mlx5_res_get(c, &h->pds, pd)) {
        c->syndrome = SYND_SQ_PD;
        return MLX5_CMD_BAD_RES;
    }
    if (!mlx5_res_get(c, &h->cqs, MLX5_GET(sqc, sqc, cqn))) {
        c->syndrome = SYND_SQ_CQ;
        return MLX5_CMD_BAD_RES;
    }
    if (!mlx5_uar_owned(h, c, MLX5_GET(wq, wq, uar_page))) {
        c->syndrome = SYND_SQ_UAR;
        return MLX5_CMD_BAD_RES;
    }
    return MLX5_CMD_OK;
}

/* Whether the command may use what @sqc names to pace the queue. */
static enum Mlx5CmdStatus sq_check_pace(Mlx5Hca *h, Mlx5Cmd *c,
                                        const uint8_t *sqc, uint64_t mask)
{
    uint32_t rate = MLX5_GET(sqc, sqc, packet_pacing_rate_limit_index);
    uint32_t group = MLX5_GET(sqc, sqc, qos_queue_group_id);

    if (mask & MODIFY_RATE && rate && !mlx5_res_get(c, &h->rates, rate)) {
        c->syndrome = SYND_SQ_RATE;
        return MLX5_CMD_BAD_RES;
    }
    if (mask & MODIFY_GROUP && group && !mlx5_qos_group(h, c, group)) {
        c->syndrome = SYND_SQ_GROUP;
        return MLX5_CMD_BAD_RES;
    }
    return MLX5_CMD_OK;
}

static void sq_take_pace(Mlx5Qp *qp, const uint8_t *sqc, uint64_t mask)
{
    Mlx5Hca *h = qp->hca;

    if (mask & MODIFY_RATE) {
        mlx5_obj_ref(mlx5_table_get(&h->rates, qp->rate_index), -1);
        qp->rate_index = MLX5_GET(sqc, sqc, packet_pacing_rate_limit_index);
        mlx5_obj_ref(mlx5_table_get(&h->rates, qp->rate_index), 1);
    }
    if (mask & MODIFY_GROUP) {
        mlx5_qp_set_groups(qp, MLX5_GET(sqc, sqc, qos_queue_group_id), 0);
    }
}

/* The queue's memory and doorbell record: DMA addresses, or in UMEMs. */
static enum Mlx5CmdStatus sq_memory(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Qp *qp,
                                    const uint8_t *wq)
{
    uint64_t size = (uint64_t)MLX5_WQE_BB << MLX5_GET(wq, wq, log_wq_sz);
    uint64_t dbr = MLX5_GET64(wq, wq, dbr_addr);
    uint32_t head = MLX5_AT(create_sq_in, ctx) + MLX5_AT(sqc, wq) +
                    MLX5_AT(wq, pas);

    if (MLX5_GET(wq, wq, dbr_umem_valid) &&
        !mlx5_umem_dbr(h, c, MLX5_GET(wq, wq, dbr_umem_id), &dbr,
                       &qp->umems)) {
        c->syndrome = SYND_SQ_UMEM;
        return MLX5_CMD_BAD_RES;
    }
    if (dbr & 3) {
        c->syndrome = SYND_SQ_CONTEXT;
        return MLX5_CMD_BAD_PARAM;
    }
    MLX5_SET64(qp->qpc, qpc, dbr_addr, dbr);
    if (MLX5_GET(wq, wq, wq_umem_valid)) {
        if (!mlx5_umem_buf(h, c, MLX5_GET(wq, wq, wq_umem_id),
                           MLX5_GET64(wq, wq, wq_umem_offset), size, false,
                           &qp->buf, &qp->umems)) {
            c->syndrome = SYND_SQ_UMEM;
            return MLX5_CMD_BAD_RES;
        }
        return MLX5_CMD_OK;
    }
    return mlx5_buf_init(&qp->buf, c->in + head, c->in_len - head,
                         MLX5_GET(wq, wq, log_wq_pg_sz),
                         MLX5_GET(wq, wq, page_offset), size) ?
           MLX5_CMD_OK : MLX5_CMD_BAD_INP_LEN;
}

static enum Mlx5CmdStatus cmd_create_sq(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *sqc = MLX5_ADDR(c->in, create_sq_in, ctx);
    const uint8_t *wq = MLX5_ADDR(sqc, sqc, wq);
    enum Mlx5CmdStatus status = sq_check(h, c, sqc);
    uint8_t *q;
    Mlx5Qp *qp;

    if (!status) {
        status = sq_check_pace(h, c, sqc, MODIFY_RATE | MODIFY_GROUP);
    }
    if (status) {
        return status;
    }
    qp = mlx5_qp_new(h, c->uid);
    q = qp->qpc;
    MLX5_SET(q, qpc, st, MLX5_ST_SQ);
    MLX5_SET(q, qpc, rq_type, MLX5_RQ_NONE);
    MLX5_SET(q, qpc, pd, MLX5_GET(wq, wq, pd));
    MLX5_SET(q, qpc, uar_page, MLX5_GET(wq, wq, uar_page));
    MLX5_SET(q, qpc, user_index, MLX5_GET(sqc, sqc, user_index));
    MLX5_SET(q, qpc, cqn_snd, MLX5_GET(sqc, sqc, cqn));
    MLX5_SET(q, qpc, log_sq_size, MLX5_GET(wq, wq, log_wq_sz));
    MLX5_SET(q, qpc, fre, MLX5_GET(sqc, sqc, fre));
    memcpy(qp->sqc, sqc, sizeof(qp->sqc));
    status = sq_memory(h, c, qp, wq);
    if (status) {
        mlx5_umem_put(h, &qp->umems);
        g_free(qp);
        return status;
    }
    if (!mlx5_qp_add(qp)) {
        c->syndrome = SYND_SQ_FULL;
        return MLX5_CMD_NO_RES;
    }
    sq_take_pace(qp, sqc, MODIFY_RATE | MODIFY_GROUP);
    trace_mlx5_qp_create(h->name, qp->obj.id, qp->st, qp->pd, qp->cqn_snd, 0,
                         qp->sq_bbs, 0);
    MLX5_SET(c->out, create_sq_out, sqn, qp->obj.id);
    return MLX5_CMD_OK;
}

static Mlx5Qp *sq_of_cmd(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = (Mlx5Qp *)mlx5_res_get(c, &h->qps,
                                        MLX5_GET(c->in, modify_sq_in, sqn));

    if (!qp || qp->st != MLX5_ST_SQ) {
        c->syndrome = SYND_SQ_UNKNOWN;
        return NULL;
    }
    return qp;
}

static enum Mlx5CmdStatus cmd_modify_sq(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *sqc = MLX5_ADDR(c->in, modify_sq_in, ctx);
    uint64_t mask = MLX5_GET64(c->in, modify_sq_in, modify_bitmask);
    uint32_t to = MLX5_GET(sqc, sqc, state);
    Mlx5Qp *qp = sq_of_cmd(h, c);
    enum Mlx5CmdStatus status;

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    if (MLX5_GET(c->in, modify_sq_in, sq_state) != sq_state(qp) ||
        (to == SQC_RDY && sq_state(qp) == SQC_ERR) ||
        (to != SQC_RST && to != SQC_RDY && to != SQC_ERR)) {
        c->syndrome = SYND_SQ_STATE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    if (mask & ~(uint64_t)(MODIFY_RATE | MODIFY_GROUP)) {
        c->syndrome = SYND_SQ_MASK;
        return MLX5_CMD_BAD_PARAM;
    }
    status = sq_check_pace(h, c, sqc, mask);
    if (status) {
        return status;
    }
    if (to != sq_state(qp)) {
        switch (to) {
        case SQC_RST:
            mlx5_qp_reset(qp);
            break;
        case SQC_RDY:
            qp->state = MLX5_QPS_RTS;
            break;
        default:
            qp->state = MLX5_QPS_RTS;
            mlx5_qp_to_error(qp, 0);
            break;
        }
        trace_mlx5_qp_state(h->name, qp->obj.id, qp->state);
    }
    sq_take_pace(qp, sqc, mask);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_sq(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = sq_of_cmd(h, c);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    trace_mlx5_qp_destroy(h->name, qp->obj.id);
    mlx5_qp_free(qp);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_sq(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t *out = MLX5_ADDR(c->out, query_sq_out, sq_context);
    uint8_t *wq = MLX5_ADDR(out, sqc, wq);
    Mlx5Qp *qp = sq_of_cmd(h, c);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    memcpy(out, qp->sqc, sizeof(qp->sqc));
    MLX5_SET(out, sqc, state, sq_state(qp));
    MLX5_SET(out, sqc, packet_pacing_rate_limit_index, qp->rate_index);
    MLX5_SET(out, sqc, qos_queue_group_id, qp->qos_req);
    MLX5_SET(wq, wq, wq_type, WQ_CYCLIC);
    MLX5_SET(wq, wq, log_wq_stride, WQ_LOG_STRIDE);
    MLX5_SET(wq, wq, log_wq_sz, ctz32(qp->sq_bbs));
    MLX5_SET(wq, wq, pd, qp->pd);
    MLX5_SET(wq, wq, uar_page, qp->uar_page);
    MLX5_SET64(wq, wq, dbr_addr, qp->dbr_addr);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_sqobj_cmds[] = {
    { 0x904, "CREATE_SQ", MLX5_AT(create_sq_in, ctx) + MLX5_AT(sqc, wq) +
      MLX5_AT(wq, pas), 16, cmd_create_sq },
    { 0x905, "MODIFY_SQ", MLX5_AT(modify_sq_in, ctx) + MLX5_AT(sqc, wq), 16,
      cmd_modify_sq },
    { 0x906, "DESTROY_SQ", 16, 16, cmd_destroy_sq },
    { 0x907, "QUERY_SQ", 16, MLX5_AT(query_sq_out, sq_context) +
      MLX5_AT(sqc, wq) + MLX5_AT(wq, pas), cmd_query_sq },
    { }
};
