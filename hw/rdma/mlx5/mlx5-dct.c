/*
 * mlx5 dynamically connected transport: targets and initiators' streams
 *
 * A DC target (DCT) receives from any initiator (DCI) that knows its number
 * and key. It has a number of the queue pairs' range and is one here, too: in
 * RTR from its creation on, with a shared receive queue and no send queue.
 * What one initiator does wrong does not move it to the error state.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-cmd.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-eq.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_DCT_UNKNOWN = 0x580001,
    SYND_DCT_PD,
    SYND_DCT_CQ,
    SYND_DCT_SRQ,
    SYND_DCT_FULL,
    SYND_DCT_STATE,
};

/* State of a DC target's context. */
enum {
    DCTC_ACTIVE = 0,
    DCTC_DRAINED = 2,
};

enum { MLX5_MAX_DCI_STREAM_ERRORS = 1 << MLX5_LOG_MAX_DCI_ERRORED };

static Mlx5Qp *dct_of_cmd(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->qps, MLX5_GET(c->in, query_dct_in, dctn));
    Mlx5Qp *qp = (Mlx5Qp *)o;

    if (!o || qp->st != MLX5_ST_DCT) {
        c->syndrome = SYND_DCT_UNKNOWN;
        return NULL;
    }
    return qp;
}

static enum Mlx5CmdStatus cmd_create_dct(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *d = MLX5_ADDR(c->in, create_dct_in, dct_context_entry);
    uint32_t pd = MLX5_GET(d, dctc, pd), cqn = MLX5_GET(d, dctc, cqn);
    uint32_t srqn = MLX5_GET(d, dctc, srqn_xrqn);
    Mlx5Srq *srq = mlx5_srq_find(h, srqn);
    uint8_t *q;
    Mlx5Qp *qp;

    if (!mlx5_res_get(c, &h->pds, pd)) {
        c->syndrome = SYND_DCT_PD;
        return MLX5_CMD_BAD_RES;
    }
    if (!mlx5_res_get(c, &h->cqs, cqn)) {
        c->syndrome = SYND_DCT_CQ;
        return MLX5_CMD_BAD_RES;
    }
    if (!srq || !mlx5_owns(c, &srq->obj) || srq->kind == MLX5_SRQK_XRC) {
        c->syndrome = SYND_DCT_SRQ;
        return MLX5_CMD_BAD_RES;
    }
    qp = mlx5_qp_new(h, c->uid);
    /* The transport looks for these in a QP context. */
    q = qp->qpc;
    MLX5_SET(q, qpc, st, MLX5_ST_DCT);
    MLX5_SET(q, qpc, no_sq, 1);
    MLX5_SET(q, qpc, pd, pd);
    MLX5_SET(q, qpc, user_index, MLX5_GET(d, dctc, user_index));
    MLX5_SET(q, qpc, cqn_rcv, cqn);
    MLX5_SET(q, qpc, rq_type, MLX5_RQ_SRQ);
    MLX5_SET(q, qpc, srqn_rmpn_xrqn, srqn);
    MLX5_SET(q, qpc, rre, MLX5_GET(d, dctc, rre));
    MLX5_SET(q, qpc, rwe, MLX5_GET(d, dctc, rwe));
    MLX5_SET(q, qpc, rae, MLX5_GET(d, dctc, rae));
    MLX5_SET(q, qpc, min_rnr_nak, MLX5_GET(d, dctc, min_rnr_nak));
    MLX5_SET(q, qpc, mtu, MLX5_GET(d, dctc, mtu));
    MLX5_SET(q, qpc, counter_set_id, MLX5_GET(d, dctc, counter_set_id));
    MLX5_SET64(q, qpc, dc_access_key, MLX5_GET64(d, dctc, dc_access_key));
    qp->state = MLX5_QPS_RTR;
    memcpy(qp->dctc, d, sizeof(qp->dctc));
    if (!mlx5_qp_add(qp)) {
        c->syndrome = SYND_DCT_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_dct_create(h->name, qp->obj.id, pd, cqn, srqn);
    MLX5_SET(c->out, create_dct_out, dctn, qp->obj.id);
    return MLX5_CMD_OK;
}

/* Nothing is received from now on; the event says that nothing is on the way */
static enum Mlx5CmdStatus cmd_drain_dct(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = dct_of_cmd(h, c);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    if (qp->state != MLX5_QPS_RTR) {
        c->syndrome = SYND_DCT_STATE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    qp->state = MLX5_QPS_ERR;
    mlx5_qp_unbind_rx(qp, true);
    trace_mlx5_dct_drain(h->name, qp->obj.id);
    mlx5_event_qp(h, MLX5_EVENT_DCT_DRAINED, qp->obj.id, 0);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_dct(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = dct_of_cmd(h, c);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    trace_mlx5_dct_destroy(h->name, qp->obj.id);
    mlx5_qp_free(qp);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_dct(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = dct_of_cmd(h, c);
    uint8_t *out = MLX5_ADDR(c->out, query_dct_out, dct_context_entry);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    memcpy(out, qp->dctc, sizeof(qp->dctc));
    MLX5_SET(out, dctc, state,
             qp->state == MLX5_QPS_RTR ? DCTC_ACTIVE : DCTC_DRAINED);
    MLX5_SET(out, dctc, dc_access_key_violation_count, qp->dc_violations);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_arm_dct(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = dct_of_cmd(h, c);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    qp->dc_armed = true;
    return MLX5_CMD_OK;
}

bool mlx5_dct_admits(Mlx5Qp *dct, uint64_t key)
{
    if (dct->dc_key == key) {
        return true;
    }
    dct->dc_violations++;
    trace_mlx5_dct_key(dct->hca->name, dct->obj.id, dct->dc_violations);
    if (dct->dc_armed) {
        dct->dc_armed = false;
        mlx5_event_qp(dct->hca, MLX5_EVENT_DCT_KEY_VIOLATION, dct->obj.id, 0);
    }
    return false;
}

/* Streams: an error stops the requests of one, not the queue pair. */

bool mlx5_dci_stream_failed(const Mlx5Qp *qp, uint16_t stream)
{
    for (unsigned i = 0; i < qp->dci_nfailed; i++) {
        if (qp->dci_failed[i] == stream) {
            return true;
        }
    }
    return false;
}

bool mlx5_dci_stream_fail(Mlx5Qp *qp, uint16_t stream)
{
    uint32_t limit;

    if (!MLX5_GET(qp->qpc, qpc, log_num_dci_stream_channels)) {
        return false;
    }
    limit = 1u << MLX5_GET(qp->qpc, qpc, log_num_dci_errored_streams);
    trace_mlx5_dci_stream(qp->hca->name, qp->obj.id, stream, true);
    if (!mlx5_dci_stream_failed(qp, stream)) {
        if (qp->dci_nfailed + 1 >= MIN(limit, MLX5_MAX_DCI_STREAM_ERRORS)) {
            return false;
        }
        qp->dci_failed[qp->dci_nfailed++] = stream;
    }
    return true;
}

void mlx5_dci_stream_reset(Mlx5Qp *qp, uint16_t stream)
{
    trace_mlx5_dci_stream(qp->hca->name, qp->obj.id, stream, false);
    for (unsigned i = 0; i < qp->dci_nfailed; i++) {
        if (qp->dci_failed[i] == stream) {
            qp->dci_failed[i] = qp->dci_failed[--qp->dci_nfailed];
            return;
        }
    }
}

const Mlx5CmdDesc mlx5_dct_cmds[] = {
    { 0x710, "CREATE_DCT", MLX5_AT(create_dct_in, dct_context_entry) +
      MLX5_BYTES(dctc), 16, cmd_create_dct },
    { 0x711, "DESTROY_DCT", 16, 16, cmd_destroy_dct },
    { 0x712, "DRAIN_DCT", 16, 16, cmd_drain_dct },
    { 0x713, "QUERY_DCT", 16, MLX5_AT(query_dct_out, dct_context_entry) +
      MLX5_BYTES(dctc), cmd_query_dct },
    { 0x714, "ARM_DCT_FOR_KEY_VIOLATION", 16, 16, cmd_arm_dct },
    { }
};
