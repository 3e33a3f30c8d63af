/*
 * mlx5 queue pair: life and state machine
 *
 * Which fields of the context each transition takes follows what the Linux
 * driver fills in (drivers/infiniband/hw/mlx5/qp.c): some always, some when
 * the command's opt_param_mask says so.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-cmd.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-devx.h"
#include "mlx5-eq.h"
#include "mlx5-mcast.h"
#include "mlx5-qos.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-tm.h"
#include "trace.h"

/* opt_param_mask, and bits of ours for what has none. */
enum {
    OPT_RRE          = 1 << 1,
    OPT_RAE          = 1 << 2,
    OPT_RWE          = 1 << 3,
    OPT_PKEY_INDEX   = 1 << 4,
    OPT_QKEY         = 1 << 5,
    OPT_RNR_TIMEOUT  = 1 << 6,
    OPT_PATH         = 1 << 7,
    OPT_SRA_MAX      = 1 << 8,
    OPT_RRA_MAX      = 1 << 9,
    OPT_PM_STATE     = 1 << 10,
    OPT_DRAIN_SIGERR = 1 << 11,
    OPT_RETRY        = 1 << 12,
    OPT_RNR_RETRY    = 1 << 13,
    OPT_TIMEOUT      = 1 << 14,
    OPT_PORT         = 1 << 16,
    OPT_SRQN         = 1 << 18,
    OPT_CQN_RCV      = 1 << 19,
    OPT_COUNTER_SET  = 1 << 25,
    /* Not the driver's: */
    OPT_MTU          = 1 << 26,
    OPT_REMOTE_QPN   = 1 << 27,
    OPT_RCV_PSN      = 1 << 28,
    OPT_SEND_PSN     = 1 << 29,
    OPT_BASE         = 1 << 30,
    OPT_ACCESS       = OPT_RRE | OPT_RAE | OPT_RWE,
    OPT_DRIVER       = OPT_COUNTER_SET * 2 - 1,
};

#define FROM(s) (1u << MLX5_QPS_##s)

static const struct Mlx5Transition {
    uint16_t opcode;
    uint32_t from;                /* FROM() bits */
    uint8_t to;
    uint32_t takes;               /* always */
} mlx5_transitions[] = {
    { 0x502, FROM(RST), MLX5_QPS_INIT,
      OPT_BASE | OPT_PM_STATE | OPT_PKEY_INDEX | OPT_PORT | OPT_ACCESS |
      OPT_QKEY | OPT_COUNTER_SET | OPT_MTU },
    { 0x503, FROM(INIT), MLX5_QPS_RTR,
      OPT_MTU | OPT_REMOTE_QPN | OPT_PATH | OPT_RCV_PSN | OPT_RRA_MAX |
      OPT_RNR_TIMEOUT },
    { 0x504, FROM(RTR), MLX5_QPS_RTS,
      OPT_RETRY | OPT_RNR_RETRY | OPT_TIMEOUT | OPT_SRA_MAX | OPT_SEND_PSN },
    { 0x505, FROM(RTS), MLX5_QPS_RTS, 0 },
    { 0x506, FROM(SQER), MLX5_QPS_RTS, 0 },
    { 0x50c, FROM(SQD), MLX5_QPS_RTS, 0 },
    { 0x50e, FROM(INIT), MLX5_QPS_INIT, 0 },
    { 0x507, UINT32_MAX, MLX5_QPS_ERR, 0 },
    { 0x50a, UINT32_MAX, MLX5_QPS_RST, 0 },
};

/* Fields outside of the path and what lets a transition take them. */
static const struct Mlx5Taken {
    uint32_t opt;
    uint16_t off, width;
} mlx5_taken[] = {
    { OPT_BASE, MLX5_FLD(qpc, rlky) },
    { OPT_BASE, MLX5_FLD(qpc, deth_sqpn) },
    { OPT_BASE, MLX5_FLD(qpc, log_ack_req_freq) },
    { OPT_PM_STATE, MLX5_FLD(qpc, pm_state) },
    { OPT_DRAIN_SIGERR, MLX5_FLD(qpc, drain_sigerr) },
    { OPT_MTU, MLX5_FLD(qpc, log_msg_max) },
    { OPT_MTU, MLX5_FLD(qpc, mtu) },
    { OPT_RRE, MLX5_FLD(qpc, rre) },
    { OPT_RWE, MLX5_FLD(qpc, rwe) },
    { OPT_RAE, MLX5_FLD(qpc, rae) },
    { OPT_RAE, MLX5_FLD(qpc, atomic_mode) },
    { OPT_QKEY, MLX5_FLD(qpc, q_key) },
    { OPT_REMOTE_QPN, MLX5_FLD(qpc, remote_qpn) },
    { OPT_RCV_PSN, MLX5_FLD(qpc, next_rcv_psn) },
    { OPT_SEND_PSN, MLX5_FLD(qpc, next_send_psn) },
    { OPT_RRA_MAX, MLX5_FLD(qpc, log_rra_max) },
    { OPT_SRA_MAX, MLX5_FLD(qpc, log_sra_max) },
    { OPT_RNR_TIMEOUT, MLX5_FLD(qpc, min_rnr_nak) },
    { OPT_RETRY, MLX5_FLD(qpc, retry_count) },
    { OPT_RNR_RETRY, MLX5_FLD(qpc, rnr_retry) },
    { OPT_COUNTER_SET, MLX5_FLD(qpc, counter_set_id) },
};

static void mlx5_qp_take_path(uint8_t *to, const uint8_t *from, uint32_t mask)
{
    void *dst = MLX5_ADDR(to, qpc, primary_address_path);
    const void *src = MLX5_ADDR(from, qpc, primary_address_path);

    if (mask & OPT_PATH) {
        uint32_t pkey = MLX5_GET(dst, ads, pkey_index);
        uint32_t port = MLX5_GET(dst, ads, vhca_port_num);
        uint32_t timeout = MLX5_GET(dst, ads, ack_timeout);

        memcpy(dst, src, MLX5_BYTES(ads));
        MLX5_SET(dst, ads, pkey_index, pkey);
        MLX5_SET(dst, ads, vhca_port_num, port);
        MLX5_SET(dst, ads, ack_timeout, timeout);
    }
    if (mask & OPT_PKEY_INDEX) {
        MLX5_SET(dst, ads, pkey_index, MLX5_GET(src, ads, pkey_index));
    }
    if (mask & OPT_PORT) {
        MLX5_SET(dst, ads, vhca_port_num, MLX5_GET(src, ads, vhca_port_num));
    }
    if (mask & OPT_TIMEOUT) {
        MLX5_SET(dst, ads, ack_timeout, MLX5_GET(src, ads, ack_timeout));
    }
}

static void mlx5_qp_take(uint8_t *to, const uint8_t *from, uint32_t mask)
{
    if (!MLX5_GET(from, qpc, mtu)) {
        mask &= ~OPT_MTU;         /* the driver has not said yet */
    }
    for (unsigned i = 0; i < ARRAY_SIZE(mlx5_taken); i++) {
        const struct Mlx5Taken *t = &mlx5_taken[i];

        if (mask & t->opt) {
            mlx5_field_set(to, t->off, t->width,
                           mlx5_field_get(from, t->off, t->width));
        }
    }
    mlx5_qp_take_path(to, from, mask);
}

void mlx5_qp_refresh(Mlx5Qp *qp)
{
    const uint8_t *c = qp->qpc;

    qp->remote_qpn = MLX5_GET(c, qpc, remote_qpn);
    qp->qkey = MLX5_GET(c, qpc, q_key);
    qp->dlid = MLX5_GET(MLX5_ADDR(c, qpc, primary_address_path), ads, rlid);
}

uint32_t mlx5_qp_wire_qpn(const Mlx5Qp *qp)
{
    uint32_t deth = MLX5_GET(qp->qpc, qpc, deth_sqpn);

    switch (qp->st) {
    case MLX5_ST_QP0:
        return 0;
    case MLX5_ST_QP1:
        return 1;
    default:
        return deth ? deth : qp->obj.id;
    }
}

void mlx5_qp_unbind_rx(Mlx5Qp *qp, bool flush)
{
    Mlx5Op *op;

    while ((op = QTAILQ_FIRST(&qp->turn))) {
        QTAILQ_REMOVE(&qp->turn, op, timed);
        op->turn_of = NULL;
        mlx5_op_wake(op);
    }
    while ((op = QLIST_FIRST(&qp->rx_ops))) {
        if (op->has_recv && flush) {
            mlx5_rq_abort(qp, op);
        }
        mlx5_op_lost_peer(op);
    }
    qp->rx_busy = false;
}

static void mlx5_qp_set_state(Mlx5Qp *qp, uint8_t state)
{
    trace_mlx5_qp_state(qp->hca->name, qp->obj.id, state);
    qp->state = state;
}

void mlx5_qp_to_error(Mlx5Qp *qp, uint8_t event)
{
    if (qp->state == MLX5_QPS_ERR || qp->state == MLX5_QPS_RST ||
        qp->st == MLX5_ST_DCT) {  /* a target serves others, too */
        return;
    }
    mlx5_qp_set_state(qp, MLX5_QPS_ERR);
    mlx5_qp_unbind_rx(qp, true);
    mlx5_sq_flush(qp);
    mlx5_rq_flush(qp);
    mlx5_sched_poll_err(qp);
    if (event) {
        mlx5_event_qp(qp->hca, event, qp->obj.id, 0);
    }
    if (qp->rq_type == MLX5_RQ_SRQ && qp->st != MLX5_ST_XRC) {
        mlx5_event_qp(qp->hca, MLX5_EVENT_SRQ_LAST_WQE, qp->obj.id, 0);
    }
}

void mlx5_qp_set_groups(Mlx5Qp *qp, uint32_t req, uint32_t resp)
{
    Mlx5Table *t = &qp->hca->sched_elems;

    mlx5_obj_ref(mlx5_table_get(t, qp->qos_req), -1);
    mlx5_obj_ref(mlx5_table_get(t, qp->qos_resp), -1);
    qp->qos_req = req;
    qp->qos_resp = resp;
    mlx5_obj_ref(mlx5_table_get(t, req), 1);
    mlx5_obj_ref(mlx5_table_get(t, resp), 1);
}

void mlx5_qp_reset(Mlx5Qp *qp)
{
    mlx5_qp_set_state(qp, MLX5_QPS_RST);
    mlx5_qp_unbind_rx(qp, false);
    if (qp->op) {
        Mlx5Op *op = qp->op;

        mlx5_op_detach(op);
        qp->op = NULL;
        mlx5_op_free(op);
    }
    mlx5_tm_flush(qp, false);
    mlx5_sched_forget(qp);
    mlx5_qp_set_groups(qp, 0, 0);
    qp->sq_pi = qp->sq_ci = 0;
    qp->rq_pi = qp->rq_ci = 0;
    qp->orphan = false;
    qp->dci_nfailed = 0;
    qp->dbr_addr = MLX5_GET64(qp->qpc, qpc, dbr_addr);
}

/* What a queue pair rests on cannot be destroyed under it. */
static void mlx5_qp_hold_refs(Mlx5Qp *qp, int n)
{
    Mlx5Hca *h = qp->hca;

    mlx5_obj_ref(mlx5_table_get(&h->pds, qp->pd), n);
    mlx5_obj_ref(mlx5_table_get(&h->cqs, qp->cqn_snd), n);
    mlx5_obj_ref(mlx5_table_get(&h->cqs, qp->cqn_rcv), n);
    if (qp->rq_type == MLX5_RQ_SRQ) {
        mlx5_obj_ref(mlx5_table_get(&h->srqs, qp->srqn), n);
    }
    if (qp->sq_bbs) {
        mlx5_uar_ref(h, qp->uar_page, n);
    }
    if (qp->st == MLX5_ST_XRC) {
        mlx5_obj_ref(mlx5_table_get(&h->xrcds, MLX5_GET(qp->qpc, qpc, xrcd)),
                     n);
    }
}

/* RST2INIT names the PD once more, for the UMR service the first time. */
static bool mlx5_qp_take_pd(Mlx5Qp *qp, const Mlx5Cmd *c, const uint8_t *from)
{
    uint32_t pd = MLX5_GET(from, qpc, pd);

    if (!pd || pd == qp->pd) {    /* user space leaves it out */
        return true;
    }
    if (!mlx5_res_get(c, &qp->hca->pds, pd)) {
        return false;
    }
    mlx5_qp_hold_refs(qp, -1);
    qp->pd = pd;
    MLX5_SET(qp->qpc, qpc, pd, pd);
    mlx5_qp_hold_refs(qp, 1);
    return true;
}

/* Another shared receive queue, another CQ to receive in. */
static bool mlx5_qp_take_queues(Mlx5Qp *qp, const Mlx5Cmd *c,
                                const uint8_t *from, uint32_t opt)
{
    Mlx5Hca *h = qp->hca;
    uint32_t srqn = opt & OPT_SRQN ? MLX5_GET(from, qpc, srqn_rmpn_xrqn)
                                   : qp->srqn;
    uint32_t cqn = opt & OPT_CQN_RCV ? MLX5_GET(from, qpc, cqn_rcv)
                                     : qp->cqn_rcv;

    if ((opt & OPT_SRQN && (qp->rq_type != MLX5_RQ_SRQ ||
                            !mlx5_res_get(c, &h->srqs, srqn))) ||
        (opt & OPT_CQN_RCV && !mlx5_res_get(c, &h->cqs, cqn))) {
        return false;
    }
    mlx5_qp_hold_refs(qp, -1);
    qp->srqn = srqn;
    qp->cqn_rcv = cqn;
    MLX5_SET(qp->qpc, qpc, srqn_rmpn_xrqn, srqn);
    MLX5_SET(qp->qpc, qpc, cqn_rcv, cqn);
    mlx5_qp_hold_refs(qp, 1);
    return true;
}

void mlx5_qp_free(Mlx5Qp *qp)
{
    Mlx5QpState *s = qp->hca->qp;

    mlx5_qp_reset(qp);
    mlx5_mcast_forget(qp);
    mlx5_obj_ref(mlx5_table_get(&qp->hca->rates, qp->rate_index), -1);
    mlx5_qp_hold_refs(qp, -1);
    if (s->qp0 == qp->obj.id) {
        s->qp0 = 0;
    }
    if (s->qp1 == qp->obj.id) {
        s->qp1 = 0;
    }
    mlx5_table_del(&qp->hca->qps, &qp->obj);
    mlx5_umem_put(qp->hca, &qp->umems);
    mlx5_buf_fini(&qp->buf);
    g_free(qp->faults);
    g_free(qp);
}

void mlx5_qp_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o;

    h->qp->bf_wait = false;
    h->qp->bf_len = 0;
    while ((o = QTAILQ_FIRST(&h->qps.all))) {
        mlx5_qp_free((Mlx5Qp *)o);
    }
}

static bool mlx5_qp_known_service(uint8_t st)
{
    return st == MLX5_ST_RC || st == MLX5_ST_UC || st == MLX5_ST_UD ||
           st == MLX5_ST_XRC || st == MLX5_ST_DCI || st == MLX5_ST_QP0 ||
           st == MLX5_ST_QP1 || st == MLX5_ST_REG_UMR;
}

bool mlx5_qp_setup(Mlx5Qp *qp)
{
    const uint8_t *c = qp->qpc;

    qp->st = MLX5_GET(c, qpc, st);
    qp->pd = MLX5_GET(c, qpc, pd);
    qp->uar_page = MLX5_GET(c, qpc, uar_page);
    qp->user_index = MLX5_GET(c, qpc, user_index);
    qp->dbr_addr = MLX5_GET64(c, qpc, dbr_addr);
    qp->cqn_snd = MLX5_GET(c, qpc, cqn_snd);
    qp->cqn_rcv = MLX5_GET(c, qpc, cqn_rcv);
    qp->rq_type = MLX5_GET(c, qpc, rq_type);
    qp->srqn = MLX5_GET(c, qpc, srqn_rmpn_xrqn);
    qp->dc_key = MLX5_GET64(c, qpc, dc_access_key);
    qp->rq_stride = 16u << MLX5_GET(c, qpc, log_rq_stride);
    qp->rq_entries = qp->rq_type == MLX5_RQ_OWN && qp->st != MLX5_ST_XRC ?
                     1u << MLX5_GET(c, qpc, log_rq_size) : 0;
    qp->sq_off = (uint64_t)qp->rq_entries * qp->rq_stride;
    qp->sq_bbs = MLX5_GET(c, qpc, no_sq) ? 0
                                         : 1u << MLX5_GET(c, qpc, log_sq_size);
    return qp->sq_bbs <= 0x8000 && qp->rq_entries <= 0x8000 &&
           MLX5_GET(c, qpc, log_num_dci_errored_streams) <=
           MLX5_LOG_MAX_DCI_ERRORED;
}

static enum Mlx5CmdStatus mlx5_qp_check(Mlx5Hca *h, const Mlx5Qp *qp,
                                        Mlx5Cmd *c)
{
    bool rq = qp->rq_entries || qp->rq_type == MLX5_RQ_SRQ;

    if (!mlx5_qp_known_service(qp->st)) {
        mlx5_unimp(h, "queue pair of service type 0x%x", qp->st);
        return MLX5_CMD_BAD_PARAM;
    }
    if (qp->rq_type != MLX5_RQ_OWN && qp->rq_type != MLX5_RQ_SRQ &&
        qp->rq_type != MLX5_RQ_NONE) {
        return MLX5_CMD_BAD_PARAM;
    }
    /* The driver gives its UMR service a PD with RST2INIT only. */
    if (qp->st != MLX5_ST_REG_UMR && !mlx5_res_get(c, &h->pds, qp->pd)) {
        c->syndrome = 0x50001;
        return MLX5_CMD_BAD_RES;
    }
    if (qp->sq_bbs && (!mlx5_res_get(c, &h->cqs, qp->cqn_snd) ||
                       !mlx5_uar_owned(h, c, qp->uar_page))) {
        c->syndrome = 0x50002;
        return MLX5_CMD_BAD_RES;
    }
    if (rq && qp->st != MLX5_ST_XRC &&
        !mlx5_res_get(c, &h->cqs, qp->cqn_rcv)) {
        c->syndrome = 0x50003;
        return MLX5_CMD_BAD_RES;
    }
    /* An initiator receives nothing: Linux names one of its own there. */
    if (qp->rq_type == MLX5_RQ_SRQ && qp->st != MLX5_ST_XRC &&
        !(qp->st == MLX5_ST_DCI
          ? mlx5_res_get_shared(c, &h->srqs, qp->srqn)
          : mlx5_res_get(c, &h->srqs, qp->srqn))) {
        c->syndrome = 0x50004;
        return MLX5_CMD_BAD_RES;
    }
    if ((qp->sq_bbs || qp->rq_entries) && (qp->dbr_addr & 3)) {
        c->syndrome = 0x50005;
        return MLX5_CMD_BAD_PARAM;
    }
    return MLX5_CMD_OK;
}

/* The queues' memory and doorbell record: DMA addresses, or in UMEMs. */
static enum Mlx5CmdStatus mlx5_qp_memory(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Qp *qp,
                                         uint64_t size)
{
    if (MLX5_GET(qp->qpc, qpc, dbr_umem_valid)) {
        if (!mlx5_umem_dbr(h, c, mlx5_umem_get32(qp->qpc,
                                                 MLX5_UMEM_QPC_DBR_ID),
                           &qp->dbr_addr, &qp->umems)) {
            c->syndrome = 0x50008;
            return MLX5_CMD_BAD_RES;
        }
        MLX5_SET64(qp->qpc, qpc, dbr_addr, qp->dbr_addr);
    }
    if (!size) {
        return MLX5_CMD_OK;
    }
    if (MLX5_GET(c->in, create_qp_in, wq_umem_valid)) {
        if (!mlx5_umem_buf(h, c, MLX5_GET(c->in, create_qp_in, wq_umem_id),
                           MLX5_GET64(c->in, create_qp_in, wq_umem_offset),
                           size, false, &qp->buf, &qp->umems)) {
            c->syndrome = 0x50009;
            return MLX5_CMD_BAD_RES;
        }
        return MLX5_CMD_OK;
    }
    return mlx5_buf_init(&qp->buf, c->in + MLX5_BYTES(create_qp_in),
                         c->in_len - MLX5_BYTES(create_qp_in),
                         MLX5_GET(qp->qpc, qpc, log_page_size),
                         MLX5_GET(qp->qpc, qpc, page_offset), size) ?
           MLX5_CMD_OK : MLX5_CMD_BAD_INP_LEN;
}

Mlx5Qp *mlx5_qp_new(Mlx5Hca *h, uint16_t uid)
{
    Mlx5Qp *qp = g_new0(Mlx5Qp, 1);

    qp->hca = h;
    qp->obj.uid = uid;
    QLIST_INIT(&qp->rx_ops);
    QTAILQ_INIT(&qp->turn);
    QTAILQ_INIT(&qp->tm_reads);
    return qp;
}

bool mlx5_qp_add(Mlx5Qp *qp)
{
    Mlx5Hca *h = qp->hca;

    if (!mlx5_qp_setup(qp) || !mlx5_table_add(&h->qps, &qp->obj)) {
        mlx5_umem_put(h, &qp->umems);
        mlx5_buf_fini(&qp->buf);
        g_free(qp);
        return false;
    }
    mlx5_qp_refresh(qp);
    mlx5_qp_hold_refs(qp, 1);
    return true;
}

static enum Mlx5CmdStatus mlx5_create_qp(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = mlx5_qp_new(h, c->uid);
    const uint8_t *in = MLX5_ADDR(c->in, create_qp_in, qpc);
    enum Mlx5CmdStatus status;
    uint64_t size;

    memcpy(qp->qpc, in, sizeof(qp->qpc));
    status = mlx5_qp_setup(qp) ? mlx5_qp_check(h, qp, c) : MLX5_CMD_LIM_ERR;
    if (status != MLX5_CMD_OK) {
        g_free(qp);
        return status;
    }
    size = qp->sq_off + (uint64_t)qp->sq_bbs * MLX5_WQE_BB;
    status = mlx5_qp_memory(h, c, qp, size);
    if (status != MLX5_CMD_OK) {
        mlx5_umem_put(h, &qp->umems);
        g_free(qp);
        return status;
    }
    if (!mlx5_qp_add(qp)) {
        return MLX5_CMD_NO_RES;
    }
    if (qp->st == MLX5_ST_QP0) {
        h->qp->qp0 = qp->obj.id;
    } else if (qp->st == MLX5_ST_QP1) {
        h->qp->qp1 = qp->obj.id;
    }
    trace_mlx5_qp_create(h->name, qp->obj.id, qp->st, qp->pd, qp->cqn_snd,
                         qp->cqn_rcv, qp->sq_bbs, qp->rq_entries);
    MLX5_SET(c->out, create_qp_out, qpn, qp->obj.id);
    return MLX5_CMD_OK;
}

static Mlx5Qp *mlx5_qp_of_cmd(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = mlx5_qp_find(h, MLX5_GET(c->in, rst2init_qp_in, qpn));

    return qp && qp->st != MLX5_ST_DCT && qp->st != MLX5_ST_SQ &&
           (!c->uid || qp->obj.uid == c->uid) ? qp : NULL;
}

static enum Mlx5CmdStatus mlx5_destroy_qp(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = mlx5_qp_of_cmd(h, c);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    trace_mlx5_qp_destroy(h->name, qp->obj.id);
    mlx5_qp_free(qp);
    return MLX5_CMD_OK;
}

/*
 * INIT2INIT and RTS2RTS may carry an extension of the context with a mask of
 * its own, which only user space knows (rdma-core: providers/mlx5/mlx5_ifc.h,
 * rts2rts_qp_in, qpc_ext); byte offsets in the command.
 */
enum {
    EXT_MASK = 0x108,
    EXT_STREAM = 0x112,
    EXT_GROUP_REQ = 0x114,
    EXT_GROUP_RESP = 0x118,
    EXT_END = 0x11c,
    EXT_OPT_DCI_STREAM = 1 << 0,
    EXT_OPT_GROUPS = 1 << 1,
};

/* What of the extension the command asks for. */
static uint64_t mlx5_qp_ext_mask(const Mlx5Cmd *c)
{
    bool ext = (c->opcode == 0x505 || c->opcode == 0x50e) &&
               c->in_len >= EXT_END && c->in[8] & 0x80;

    return ext ? ldq_be_p(c->in + EXT_MASK) : 0;
}

static bool mlx5_qp_check_ext(Mlx5Qp *qp, const Mlx5Cmd *c)
{
    uint32_t req, resp;

    if (!(mlx5_qp_ext_mask(c) & EXT_OPT_GROUPS)) {
        return true;
    }
    req = ldl_be_p(c->in + EXT_GROUP_REQ);
    resp = ldl_be_p(c->in + EXT_GROUP_RESP);
    return (!req || mlx5_qos_group(qp->hca, c, req)) &&
           (!resp || (mlx5_qp_reliable(qp) &&
                      mlx5_qos_group(qp->hca, c, resp)));
}

static void mlx5_qp_take_ext(Mlx5Qp *qp, const Mlx5Cmd *c)
{
    uint64_t mask = mlx5_qp_ext_mask(c);

    if (mask & EXT_OPT_DCI_STREAM && c->opcode == 0x505 &&
        qp->st == MLX5_ST_DCI) {
        mlx5_dci_stream_reset(qp, lduw_be_p(c->in + EXT_STREAM));
    }
    if (mask & EXT_OPT_GROUPS) {
        mlx5_qp_set_groups(qp, ldl_be_p(c->in + EXT_GROUP_REQ),
                           ldl_be_p(c->in + EXT_GROUP_RESP));
        trace_mlx5_qp_groups(qp->hca->name, qp->obj.id, qp->qos_req,
                             qp->qos_resp);
    }
}

static enum Mlx5CmdStatus mlx5_modify_qp(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = mlx5_qp_of_cmd(h, c);
    const struct Mlx5Transition *t = mlx5_transitions;
    const uint8_t *in;
    uint32_t opt;

    while (t->opcode != c->opcode) {
        t++;                      /* every opcode of the table below has one */
    }
    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    if (!(t->from & (1u << qp->state))) {
        return MLX5_CMD_BAD_QP_STATE;
    }
    if (t->to == MLX5_QPS_RST) {
        mlx5_qp_reset(qp);
        return MLX5_CMD_OK;
    }
    if (t->to == MLX5_QPS_ERR) {
        if (qp->state == MLX5_QPS_RST) {
            mlx5_qp_set_state(qp, MLX5_QPS_ERR);
            mlx5_sched_poll_err(qp);
        }
        mlx5_qp_to_error(qp, 0);
        return MLX5_CMD_OK;
    }
    in = MLX5_ADDR(c->in, rst2init_qp_in, qpc);
    opt = MLX5_GET(c->in, rst2init_qp_in, opt_param_mask) & OPT_DRIVER;
    if (!mlx5_qp_check_ext(qp, c)) {
        c->syndrome = 0x5000a;
        return MLX5_CMD_BAD_RES;
    }
    if (t->takes & OPT_BASE && !mlx5_qp_take_pd(qp, c, in)) {
        c->syndrome = 0x50006;
        return MLX5_CMD_BAD_RES;
    }
    if (!mlx5_qp_take_queues(qp, c, in, opt)) {
        c->syndrome = 0x50007;
        return MLX5_CMD_BAD_RES;
    }
    mlx5_qp_take(qp->qpc, in, t->takes | opt);
    mlx5_qp_refresh(qp);
    mlx5_qp_set_state(qp, t->to);
    mlx5_qp_take_ext(qp, c);
    if (t->to == MLX5_QPS_RTS &&
        (qp->sq_ci != qp->sq_pi || !QTAILQ_EMPTY(&qp->tm_reads))) {
        mlx5_sched_qp(qp);        /* posted while the queue stood still */
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus mlx5_query_qp(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Qp *qp = mlx5_qp_of_cmd(h, c);
    uint8_t *out = MLX5_ADDR(c->out, query_qp_out, qpc);

    if (!qp) {
        return MLX5_CMD_BAD_RES;
    }
    memcpy(out, qp->qpc, sizeof(qp->qpc));
    MLX5_SET(out, qpc, state, qp->state);
    MLX5_SET(out, qpc, hw_sq_wqebb_counter, qp->sq_ci);
    MLX5_SET(out, qpc, sw_sq_wqebb_counter, qp->sq_pi);
    MLX5_SET(out, qpc, hw_rq_counter, qp->rq_ci);
    MLX5_SET(out, qpc, sw_rq_counter, qp->rq_pi);
    return MLX5_CMD_OK;
}

#define MODIFY(op, name) \
    { op, name, MLX5_BYTES(rst2init_qp_in), 16, mlx5_modify_qp }
#define END(op, name) \
    { op, name, MLX5_BYTES(qp_2rst_in), 16, mlx5_modify_qp }

const Mlx5CmdDesc mlx5_qp_cmds[] = {
    { 0x500, "CREATE_QP", MLX5_BYTES(create_qp_in), 16, mlx5_create_qp },
    { 0x501, "DESTROY_QP", MLX5_BYTES(qp_2rst_in), 16, mlx5_destroy_qp },
    MODIFY(0x502, "RST2INIT_QP"),
    MODIFY(0x503, "INIT2RTR_QP"),
    MODIFY(0x504, "RTR2RTS_QP"),
    MODIFY(0x505, "RTS2RTS_QP"),
    MODIFY(0x506, "SQERR2RTS_QP"),
    END(0x507, "2ERR_QP"),
    END(0x50a, "2RST_QP"),
    MODIFY(0x50c, "SQD_RTS_QP"),
    MODIFY(0x50e, "INIT2INIT_QP"),
    { 0x50b, "QUERY_QP", 16,
      MLX5_OFF_query_qp_out_qpc / 8 + MLX5_BYTES(qpc), mlx5_query_qp },
    { }
};
