/*
 * mlx5 transport: what the two ends of an operation owe each other
 *
 * RC, UC, UD and XRC between HCAs of one fabric. The peer's part of an
 * operation (checks, receive WQE, completion, error) is executed here on the
 * peer's own objects; the bytes move in mlx5-op.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-copy.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-eq.h"
#include "mlx5-fabric.h"
#include "mlx5-flow.h"
#include "mlx5-mcast.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-tm.h"
#include "trace.h"

static bool mlx5_datagram(const Mlx5Qp *qp)
{
    return qp->st == MLX5_ST_UD || qp->st == MLX5_ST_QP0 ||
           qp->st == MLX5_ST_QP1;
}

static Mlx5OpResult mlx5_fail(Mlx5Op *op, uint8_t syndrome)
{
    op->syndrome = syndrome;
    return MLX5_OP_DONE;
}

/* RNR NAK timer, 5 bits to microseconds (IBA table 45). */
static int64_t mlx5_rnr_delay(uint32_t code)
{
    static const uint32_t us10[32] = {
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
        256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
        16384, 24576, 32768, 49152,
    };

    return (int64_t)us10[code & 31] * 10 * SCALE_US;
}

/* The peer has no receive WQE. */
static Mlx5OpResult mlx5_rnr(Mlx5Op *op, Mlx5Qp *peer)
{
    mlx5_qp_count(peer, MLX5_QC_OUT_OF_BUFFER);
    if (!mlx5_qp_reliable(op->qp)) {
        return MLX5_OP_DONE;      /* the message is lost */
    }
    mlx5_qp_count(op->qp, MLX5_QC_RNR_NAK_RETRY_ERR);
    if (op->rnr_left == 0) {
        mlx5_qp_count(op->qp, MLX5_QC_REQ_RNR_RETRIES_EXCEEDED);
        return mlx5_fail(op, MLX5_SYN_RNR_RETRY_EXC);
    }
    if (op->rnr_left < 7) {       /* 7: without end */
        op->rnr_left--;
    }
    trace_mlx5_rnr(op->qp->hca->name, op->qp->obj.id, peer->obj.id,
                   op->rnr_left);
    op->wait = MLX5_WAIT_RNR;
    mlx5_sched_at(op, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                      mlx5_rnr_delay(MLX5_GET(peer->qpc, qpc, min_rnr_nak)));
    return MLX5_OP_WAIT;
}

/* Nobody answers at the destination. */
static Mlx5OpResult mlx5_no_answer(Mlx5Op *op)
{
    Mlx5Qp *qp = op->qp;
    void *path = MLX5_ADDR(qp->qpc, qpc, primary_address_path);
    uint32_t timeout = MLX5_GET(path, ads, ack_timeout);
    int64_t delay;

    if (!mlx5_qp_reliable(qp)) {
        return MLX5_OP_DONE;
    }
    mlx5_qp_count(qp, MLX5_QC_LOCAL_ACK_TIMEOUT_ERR);
    if (timeout && op->retry_left == 0) {
        mlx5_qp_count(qp, MLX5_QC_REQ_TRANSPORT_RETRIES_EXCEEDED);
        return mlx5_fail(op, MLX5_SYN_RETRY_EXC);
    }
    if (timeout) {                /* 0: wait without end */
        op->retry_left--;
    }
    delay = timeout ? 4096ll << timeout : 100 * SCALE_MS;
    trace_mlx5_retry(qp->hca->name, qp->obj.id, op->dlid, op->dqpn,
                     op->retry_left);
    op->wait = MLX5_WAIT_RETRY;
    mlx5_sched_at(op, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + delay);
    return MLX5_OP_WAIT;
}

static Mlx5Qp *mlx5_find_peer(Mlx5Op *op, Mlx5Hca *to)
{
    Mlx5Qp *qp = op->qp, *peer;

    if (mlx5_datagram(qp)) {
        uint32_t qpn = op->dqpn;

        if (qpn < 2) {
            qpn = qpn ? to->qp->qp1 : to->qp->qp0;
        }
        peer = qpn ? mlx5_qp_find(to, qpn) : NULL;
        if (!peer || !mlx5_datagram(peer) || !mlx5_qp_can_receive(peer)) {
            return NULL;
        }
        /* Management QPs answer to the well-known key. */
        if (peer->st == MLX5_ST_UD &&
            peer->qkey != (op->qkey >> 31 ? qp->qkey : op->qkey)) {
            to->port.qkey_viol++;
            return NULL;
        }
        return peer;
    }
    peer = mlx5_qp_find(to, op->dqpn);
    if (qp->st == MLX5_ST_DCI) {
        return peer && peer->st == MLX5_ST_DCT && mlx5_qp_can_receive(peer) &&
               mlx5_dct_admits(peer, op->dc_key) ? peer : NULL;
    }
    if (!peer || peer->st != qp->st || !mlx5_qp_can_receive(peer) ||
        peer->remote_qpn != qp->obj.id || peer->dlid != qp->hca->port.lid) {
        return NULL;
    }
    return peer;
}

/*
 * Datagrams for a management agent that lives in the device: the embedded
 * subnet manager, or QP0 of a port whose driver leaves it to the device.
 */
static bool mlx5_for_agent(Mlx5Op *op, Mlx5Hca *to)
{
    return mlx5_datagram(op->qp) && op->dqpn < 2 &&
           (op->dlid == MLX5_FABRIC_SM_LID || (to && op->dqpn == 0));
}

static Mlx5OpResult mlx5_take_receive(Mlx5Op *op, Mlx5Qp *peer)
{
    bool own = peer->rq_type == MLX5_RQ_OWN && peer->st != MLX5_ST_XRC;
    Mlx5Srq *xrq = mlx5_opcode_is_send(op->opcode) ? mlx5_tm_of_qp(peer)
                                                   : NULL;
    uint64_t room = 0;
    unsigned i;

    if (own && peer->rx_busy) {
        op->wait = MLX5_WAIT_TURN;
        QTAILQ_INSERT_TAIL(&peer->turn, op, timed);
        op->turn_of = peer;
        return MLX5_OP_WAIT;
    }
    if (xrq) {
        Mlx5OpResult r = mlx5_tm_classify(op, peer, xrq);

        if (r != MLX5_OP_GO) {
            return r;
        }
    }
    switch (op->tm < MLX5_TM_MATCH ? mlx5_rq_take(peer, op) : MLX5_RQ_OK) {
    case MLX5_RQ_EMPTY:
        return mlx5_rnr(op, peer);
    case MLX5_RQ_ERROR:
        mlx5_qp_to_error(peer, MLX5_EVENT_WQ_CATAS_ERROR);
        return mlx5_fail(op, mlx5_qp_reliable(op->qp) ? MLX5_SYN_REMOTE_OP : 0);
    case MLX5_RQ_OK:
        break;
    }
    mlx5_op_bind(op, peer);
    op->has_recv = true;
    if (xrq) {
        mlx5_tm_taken(op, xrq);
    }
    peer->rx_busy |= own;
    for (i = 0; i < op->dst_nrecv; i++) {
        op->remote[i].len = mlx5_sig_sge_len(peer->hca, op->remote[i].key,
                                             op->remote[i].len);
        room += op->remote[i].len;
    }
    if (mlx5_opcode_is_send(op->opcode)) {
        op->dst.nsge = op->dst_nrecv;
        op->dst.access = MLX5_ACC_LW;
        if (room < op->len + (mlx5_datagram(peer) ? MLX5_GRH_LEN : 0)) {
            mlx5_rq_complete(peer, op, 0, MLX5_SYN_LOCAL_LENGTH);
            mlx5_qp_to_error(peer, 0);
            return mlx5_fail(op, mlx5_qp_reliable(op->qp)
                                 ? MLX5_SYN_REMOTE_INVAL : 0);
        }
    }
    return MLX5_OP_GO;
}

/* A datagram's bytes follow 40 that only a GRH fills. */
static void mlx5_setup_datagram(Mlx5Op *op)
{
    if (op->has_grh) {
        stw_be_p(op->data + 4, op->len);
        op->grh_left = MLX5_GRH_LEN;
    } else {
        uint32_t skip = MLX5_GRH_LEN;

        while (skip && op->dst.cur < op->dst.nsge) {
            uint32_t n = MIN(skip, op->remote[op->dst.cur].len);

            op->dst.off = n;
            skip -= n;
            if (n == op->remote[op->dst.cur].len) {
                op->dst.cur++;
                op->dst.off = 0;
            }
        }
    }
}

/* RDMA and atomics: what the peer allows before a byte moves. */
static uint8_t mlx5_check_rdma(Mlx5Op *op, Mlx5Qp *peer)
{
    bool atomic = mlx5_opcode_is_atomic(op->opcode);
    Mlx5MkeyReq req = {
        .key = op->remote[0].key,
        .pd = op->remote_pd,
        .qpn = peer->obj.id,
        .va = op->remote[0].va,
        .len = op->len,
    };
    bool allowed;

    if (op->opcode == MLX5_OP_RDMA_READ) {
        allowed = MLX5_GET(peer->qpc, qpc, rre);
        req.access = MLX5_ACC_RR;
    } else if (atomic) {
        allowed = MLX5_GET(peer->qpc, qpc, rae);
        req.access = MLX5_ACC_ATOMIC;
    } else {
        allowed = MLX5_GET(peer->qpc, qpc, rwe);
        req.access = MLX5_ACC_RW;
    }
    if (!allowed || (atomic && req.va & 7)) {
        return MLX5_SYN_REMOTE_INVAL;
    }
    if (req.len && !mlx5_mkey_check(peer->hca, &req)) {
        return MLX5_SYN_REMOTE_ACCESS;
    }
    return 0;
}

/* The peer refuses what a remote key was to give. */
static Mlx5OpResult mlx5_remote_refused(Mlx5Op *op, Mlx5Qp *peer, uint8_t syn)
{
    bool reliable = mlx5_qp_reliable(op->qp);

    if (syn == MLX5_SYN_REMOTE_ACCESS) {
        mlx5_qp_count(peer, MLX5_QC_RESP_REMOTE_ACCESS_ERRORS);
    }
    if (reliable) {
        mlx5_qp_to_error(peer, syn == MLX5_SYN_REMOTE_ACCESS ?
                               MLX5_EVENT_WQ_ACCESS_ERROR :
                               MLX5_EVENT_WQ_INVAL_REQ);
    }
    return mlx5_fail(op, reliable ? syn : 0);
}

static Mlx5OpResult mlx5_agent(Mlx5Op *op, Mlx5Hca *to)
{
    /* The request's bytes are gathered first, by the copy to nowhere. */
    op->agent = true;
    op->agent_to_sm = op->dlid == MLX5_FABRIC_SM_LID;
    op->dst = (Mlx5Side) { .is_inline = true };
    op->state = MLX5_OPS_COPY;
    return op->len <= 256 ? MLX5_OP_GO : mlx5_fail(op, 0);
}

/*
 * The protection domain that @peer's memory is looked up in. XRC: of the
 * shared receive queue that the packet names, within the peer's XRC domain.
 */
static bool mlx5_remote_pd(const Mlx5Op *op, const Mlx5Qp *peer, uint32_t *pd)
{
    Mlx5Srq *srq;

    *pd = peer->pd;
    if (peer->st != MLX5_ST_XRC) {
        return true;
    }
    srq = mlx5_srq_find(peer->hca, op->xrc_srqn);
    if (!srq || srq->kind != MLX5_SRQK_XRC ||
        srq->xrcd != MLX5_GET(peer->qpc, qpc, xrcd)) {
        return false;
    }
    *pd = srq->pd;
    return true;
}

/* Requests that @peer serves, by kind. */
static void mlx5_count_request(const Mlx5Op *op, const Mlx5Qp *peer)
{
    if (op->opcode == MLX5_OP_RDMA_READ) {
        mlx5_qp_count(peer, MLX5_QC_RX_READ_REQUESTS);
    } else if (mlx5_opcode_is_atomic(op->opcode)) {
        mlx5_qp_count(peer, MLX5_QC_RX_ATOMIC_REQUESTS);
    } else if (!mlx5_opcode_is_send(op->opcode)) {
        mlx5_qp_count(peer, MLX5_QC_RX_WRITE_REQUESTS);
    }
}

/* The peer's side of the operation begins: its checks, its receive WQE. */
static Mlx5OpResult mlx5_begin_at(Mlx5Op *op, Mlx5Qp *peer)
{
    bool recv = mlx5_opcode_is_send(op->opcode) ||
                op->opcode == MLX5_OP_RDMA_WRITE_IMM;
    uint32_t pd;

    if (!mlx5_remote_pd(op, peer, &pd)) {
        return mlx5_remote_refused(op, peer, MLX5_SYN_REMOTE_INVAL);
    }
    op->remote_pd = pd;
    if (!mlx5_opcode_is_send(op->opcode)) {
        uint8_t syn = mlx5_check_rdma(op, peer);

        if (syn) {
            return mlx5_remote_refused(op, peer, syn);
        }
    }
    if (op->opcode == MLX5_OP_RDMA_READ && !op->resp_booked) {
        op->resp_booked = true;
        if (!mlx5_op_book(op, peer->hca, peer->qos_resp)) {
            return MLX5_OP_WAIT;
        }
    }
    if (recv) {
        Mlx5Sge rdma = op->remote[0];
        Mlx5OpResult r = mlx5_take_receive(op, peer);

        if (r != MLX5_OP_GO) {
            return r;
        }
        if (!mlx5_opcode_is_send(op->opcode)) {
            op->remote[0] = rdma; /* the WQE is only there to complete */
            op->remote_pd = pd;
        } else if (mlx5_datagram(peer)) {
            mlx5_setup_datagram(op);
        }
    } else {
        mlx5_op_bind(op, peer);
    }
    mlx5_count_request(op, peer);
    op->state = MLX5_OPS_COPY;
    return MLX5_OP_GO;
}

/* The copy for one member of a group is done or lost: on to the next. */
static void mlx5_mcast_advance(Mlx5Op *op)
{
    op->mc_id++;
    op->done = 0;
    g_free(op->sig);
    op->sig = NULL;
    op->src.cur = 0;
    op->src.off = op->src.is_inline ? MLX5_GRH_LEN : 0;
    op->dst = (Mlx5Side) { .remote = true, .nsge = 1 };
    op->grh_left = 0;
    op->state = MLX5_OPS_START;
}

static Mlx5OpResult mlx5_mcast_begin(Mlx5Op *op)
{
    Mlx5Qp *peer;

    if (!op->mcast && !mlx5_flow_pass(op->qp->hca, MLX5_FT_RDMA_TX,
                                      op->dqpn, op->len)) {
        return MLX5_OP_DONE;
    }
    op->mcast = true;
    if (!op->has_grh) {
        return MLX5_OP_DONE;      /* a group is named by its GID */
    }
    while ((peer = mlx5_mcast_peer(op))) {
        Mlx5OpResult r = MLX5_OP_DONE;

        if (mlx5_flow_pass(peer->hca, MLX5_FT_RDMA_RX, op->dqpn, op->len)) {
            r = mlx5_begin_at(op, peer);
        }

        if (r != MLX5_OP_DONE) {
            return r;
        }
        mlx5_mcast_advance(op);
    }
    return MLX5_OP_DONE;
}

/*
 * Whether the flow tables of both ends let a message and what answers it get
 * through to @to, which may be unknown. A request whose answer is dropped is
 * not executed either: its retries will not get further.
 */
static bool mlx5_flow_lets(Mlx5Op *op, Mlx5Hca *to)
{
    Mlx5Hca *h = op->qp->hca;
    bool read = op->opcode == MLX5_OP_RDMA_READ;
    uint64_t there = read ? 0 : op->len, back = read ? op->len : 0;

    return mlx5_flow_pass(h, MLX5_FT_RDMA_TX, op->dqpn, there) &&
           (!to || (mlx5_flow_pass(to, MLX5_FT_RDMA_RX, op->dqpn, there) &&
                    (!mlx5_qp_reliable(op->qp) ||
                     (mlx5_flow_pass(to, MLX5_FT_RDMA_TX, op->qp->obj.id,
                                     back) &&
                      mlx5_flow_pass(h, MLX5_FT_RDMA_RX, op->qp->obj.id,
                                     back)))));
}

Mlx5OpResult mlx5_transport_begin(Mlx5Op *op)
{
    Mlx5Hca *to;
    Mlx5Qp *peer;

    if (op->dlid >= MLX5_LID_MCAST && op->dlid != MLX5_LID_PERMISSIVE &&
        op->qp->st == MLX5_ST_UD) {
        return mlx5_mcast_begin(op);
    }
    to = mlx5_fabric_by_lid(op->qp->hca, op->dlid);
    if (!mlx5_flow_lets(op, to)) {
        return mlx5_no_answer(op);
    }
    if (mlx5_for_agent(op, to)) {
        return mlx5_agent(op, to);
    }
    peer = to ? mlx5_find_peer(op, to) : NULL;
    return peer ? mlx5_begin_at(op, peer) : mlx5_no_answer(op);
}

Mlx5OpResult mlx5_transport_finish(Mlx5Op *op)
{
    Mlx5Qp *peer = op->peer;
    uint8_t opcode;

    op->qp->hca->port.tx_bytes += op->len;
    op->qp->hca->port.tx_pkts++;
    if (!peer) {
        return MLX5_OP_DONE;
    }
    peer->hca->port.rx_bytes += op->len;
    peer->hca->port.rx_pkts++;
    if (!op->has_recv) {
        mlx5_op_unbind(op);
        return MLX5_OP_DONE;
    }
    switch (op->opcode) {
    case MLX5_OP_RDMA_WRITE_IMM:
        opcode = MLX5_CQE_RESP_WR_IMM;
        break;
    case MLX5_OP_SEND_IMM:
        opcode = MLX5_CQE_RESP_SEND_IMM;
        break;
    case MLX5_OP_SEND_INVAL:
        opcode = MLX5_CQE_RESP_SEND_INV;
        if (!mlx5_mkey_invalidate(peer->hca, op->imm, peer->pd, peer->obj.id,
                                  true)) {
            mlx5_rq_complete(peer, op, 0, MLX5_SYN_REMOTE_INVAL);
            return mlx5_remote_refused(op, peer, MLX5_SYN_REMOTE_ACCESS);
        }
        break;
    default:
        opcode = MLX5_CQE_RESP_SEND;
        break;
    }
    if (op->tm == MLX5_TM_RNDV) {
        opcode = MLX5_CQE_NO_PACKET;  /* the data is yet to come */
    }
    mlx5_rq_complete(peer, op, opcode, 0);
    if (op->mcast) {
        mlx5_mcast_advance(op);
        return MLX5_OP_GO;
    }
    return MLX5_OP_DONE;
}

Mlx5OpResult mlx5_transport_fail(Mlx5Op *op, bool remote)
{
    Mlx5Qp *peer = op->peer;

    if (!remote) {
        /*
         * The requester's own memory. A message that had begun at a reliable
         * peer stops there without a completion; the peer learns of it when
         * the connection is torn down.
         */
        return mlx5_fail(op, MLX5_SYN_LOCAL_PROT);
    }
    if (!peer) {
        return mlx5_fail(op, MLX5_SYN_REMOTE_OP);
    }
    if (mlx5_opcode_is_send(op->opcode)) {
        /* The peer's receive buffer: its own local error. */
        mlx5_rq_complete(peer, op, 0, MLX5_SYN_LOCAL_PROT);
        mlx5_qp_to_error(peer, 0);
        return mlx5_fail(op, mlx5_qp_reliable(op->qp) ? MLX5_SYN_REMOTE_OP : 0);
    }
    return mlx5_remote_refused(op, peer, MLX5_SYN_REMOTE_ACCESS);
}
