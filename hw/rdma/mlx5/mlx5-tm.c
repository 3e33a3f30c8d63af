/*
 * mlx5 tag matching: the list, its work requests, rendezvous
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migration/vmstate.h"
#include "mlx5-caps.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-eq.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"
#include "mlx5-tm.h"
#include "trace.h"

/* Header of a message, and what follows it in a rendezvous; big endian. */
typedef struct QEMU_PACKED Mlx5TmHeader {
    uint8_t opcode;
    uint8_t reserved[3];
    uint32_t app_ctx;
    uint64_t tag;
    uint64_t va;
    uint32_t rkey;
    uint32_t len;
} Mlx5TmHeader;

QEMU_BUILD_BUG_ON(sizeof(Mlx5TmHeader) != MLX5_TM_HEAD);

enum {
    TMH_BYTES = 16,               /* of a message that is no rendezvous */
    TMH_RNDV = 1,
    TMH_FIN = 2,
    TMH_EAGER = 3,
};

/* Segment of a work request on the list, big endian. */
typedef struct QEMU_PACKED Mlx5WqeTm {
    uint8_t opcode;               /* bits 7:4 */
    uint8_t flags;
    uint16_t index;
    uint8_t rsvd0[2];
    uint16_t sw_cnt;
    uint8_t rsvd1[8];
    uint64_t append_tag;
    uint64_t append_mask;
} Mlx5WqeTm;

QEMU_BUILD_BUG_ON(sizeof(Mlx5WqeTm) != 32);

enum {
    TM_OP_NOP = 0,
    TM_OP_APPEND = 1,
    TM_OP_REMOVE = 2,
    TM_FLAG_SW_CNT = 1 << 6,
    TM_FLAG_CQE = 1 << 7,
};

/* Completions: offset 40 says "tag matching", 41 what. */
enum {
    CQE_APP = 40,
    CQE_APP_OP = 41,
    CQE_APP_INFO = 42,
    CQE_APP_TM = 1,

    TM_CONSUMED = 0x1,
    TM_EXPECTED = 0x2,
    TM_CQE_UNEXPECTED = 0x3,
    TM_CQE_NO_TAG = 0x4,
    TM_APPEND = 0x5,
    TM_REMOVE = 0x6,
    TM_NOOP = 0x7,
    TM_CONSUMED_MSG = 0xa,
    TM_CONSUMED_MSG_SW = 0xb,
    TM_CANCELED = 0xc,

    TM_SUCCESS = 0x80,            /* byte 0 of an operation's completion */
};

Mlx5Srq *mlx5_tm_of_qp(Mlx5Qp *qp)
{
    Mlx5Srq *srq = qp->rq_type == MLX5_RQ_SRQ && qp->st != MLX5_ST_XRC
                   ? mlx5_srq_find(qp->hca, qp->srqn) : NULL;

    return srq && srq->tm ? srq : NULL;
}

/* A completion on the XRQ's CQ that no receive WQE is behind. */
static void tm_post(Mlx5Qp *qp, Mlx5Srq *srq, uint8_t opcode, uint8_t app_op,
                    uint16_t index, uint32_t bytes, Mlx5Cqe64 *with)
{
    Mlx5Cq *cq = mlx5_cq_find(qp->hca, srq->cqn);
    uint64_t now = mlx5_timestamp();
    Mlx5Cqe64 cqe = { };
    uint8_t *raw = (uint8_t *)&cqe;

    if (with) {
        cqe = *with;
    }
    cqe.srqn = cpu_to_be32(srq->user_index);
    cqe.byte_cnt = cpu_to_be32(bytes);
    cqe.timestamp_h = cpu_to_be32(now >> 32);
    cqe.timestamp_l = cpu_to_be32(now);
    cqe.sop_drop_qpn = cpu_to_be32(qp->obj.id);
    cqe.op_own = opcode << 4;
    raw[CQE_APP] = CQE_APP_TM;
    raw[CQE_APP_OP] = app_op;
    stw_be_p(raw + CQE_APP_INFO, index);
    trace_mlx5_tm_cqe(qp->hca->name, srq->obj.id, app_op, index);
    if (cq) {
        mlx5_cq_post(qp->hca, cq, raw, false);
    }
}

/* Operations on the list */

static void tm_sync(Mlx5Tm *t)
{
    for (int i = 0; t->sw_cnt == t->hw_cnt && i < t->n; i++) {
        t->e[i].listed |= t->e[i].parked;
        t->e[i].parked = false;
    }
}

static uint8_t tm_append(Mlx5Qp *qp, Mlx5Tm *t, const Mlx5WqeTm *seg,
                         const Mlx5WqeData *data)
{
    uint32_t count = be32_to_cpu(data->byte_count);
    uint32_t key = be32_to_cpu(data->lkey);
    Mlx5TmEntry *e = &t->e[t->next];
    uint16_t next = be16_to_cpu(seg->index);

    if (next >= t->n || e->used) {
        mlx5_guest_error(qp->hca, "QP 0x%x: tag appended as entry %u, which "
                         "is in use, or before entry %u of %d", qp->obj.id,
                         t->next, next, t->n);
        return MLX5_SYN_LOCAL_QP_OP;
    }
    if (key == MLX5_TERMINATE_KEY) {
        count = 0;
    } else if (!count) {
        count = 0x80000000u;
    }
    *e = (Mlx5TmEntry) {
        .used = true,
        .parked = true,
        .seq = t->seq++,
        .tag = be64_to_cpu(seg->append_tag),
        .mask = be64_to_cpu(seg->append_mask),
        .key = key,
        .len = count,
        .va = be64_to_cpu(data->addr),
    };
    t->next = next;
    return 0;
}

uint8_t mlx5_tm_wqe(Mlx5Qp *qp, const uint8_t *wqe, uint32_t len)
{
    const Mlx5WqeTm *seg = (const Mlx5WqeTm *)(wqe + sizeof(Mlx5WqeCtrl));
    const Mlx5WqeData *data = (const Mlx5WqeData *)(seg + 1);
    static const uint8_t app_ops[] = { TM_NOOP, TM_APPEND, TM_REMOVE };
    Mlx5Srq *srq = mlx5_tm_of_qp(qp);
    uint32_t head = sizeof(Mlx5WqeCtrl) + sizeof(*seg);
    uint16_t index;
    Mlx5Cqe64 cqe = { };
    uint8_t op, syn = 0;
    Mlx5Tm *t;

    op = len >= head ? seg->opcode >> 4 : 0xff;
    if (!srq || op >= ARRAY_SIZE(app_ops) ||
        (op == TM_OP_APPEND && len < head + sizeof(*data))) {
        return MLX5_SYN_LOCAL_QP_OP;
    }
    t = srq->tm;
    index = op == TM_OP_APPEND ? t->next : be16_to_cpu(seg->index);
    if (seg->flags & TM_FLAG_SW_CNT) {
        t->sw_cnt = be16_to_cpu(seg->sw_cnt);
    }
    ((uint8_t *)&cqe)[0] = TM_SUCCESS;
    if (op == TM_OP_APPEND) {
        syn = tm_append(qp, t, seg, data);
    } else if (op == TM_OP_REMOVE && index >= t->n) {
        syn = MLX5_SYN_LOCAL_QP_OP;
    } else if (op == TM_OP_REMOVE) {
        Mlx5TmEntry *e = &t->e[index];

        if (e->listed || e->parked) {
            *e = (Mlx5TmEntry) { };
        } else {
            ((uint8_t *)&cqe)[0] = 0;   /* a message came first */
        }
    }
    trace_mlx5_tm_op(qp->hca->name, srq->obj.id, op, index, t->sw_cnt,
                     t->hw_cnt, syn);
    if (syn) {
        return syn;
    }
    tm_sync(t);
    if (seg->flags & TM_FLAG_CQE) {
        stw_be_p((uint8_t *)&cqe + 4, t->hw_cnt);
        tm_post(qp, srq, MLX5_CQE_NO_PACKET, app_ops[op], index, 0, &cqe);
    }
    return 0;
}

/* Messages */

static Mlx5TmEntry *tm_match(Mlx5Tm *t, uint64_t tag)
{
    Mlx5TmEntry *found = NULL;

    for (int i = 0; i < t->n; i++) {
        Mlx5TmEntry *e = &t->e[i];

        if (e->listed && !((e->tag ^ tag) & e->mask) &&
            (!found || e->seq < found->seq)) {
            found = e;
        }
    }
    return found;
}

/* The first bytes of the message are the header's. */
static void tm_skip_header(Mlx5Op *op)
{
    uint32_t skip = TMH_BYTES;

    op->len -= TMH_BYTES;
    if (op->src.is_inline) {
        op->src.off += skip;
        return;
    }
    while (skip && op->src.cur < op->src.nsge) {
        uint32_t n = MIN(skip, op->local[op->src.cur].len - op->src.off);

        op->src.off += n;
        skip -= n;
        if (op->src.off == op->local[op->src.cur].len) {
            op->src.cur++;
            op->src.off = 0;
        }
    }
}

Mlx5OpResult mlx5_tm_classify(Mlx5Op *op, Mlx5Qp *peer, Mlx5Srq *srq)
{
    const Mlx5TmHeader *head = (const Mlx5TmHeader *)op->tm_head;
    Mlx5Tm *t = srq->tm;
    Mlx5TmEntry *e;
    Mlx5OpResult r;

    op->tm = MLX5_TM_NO_TAG;
    if (op->len < TMH_BYTES || !mlx5_qp_reliable(peer)) {
        return MLX5_OP_GO;
    }
    memset(op->tm_head, 0, sizeof(op->tm_head));
    r = mlx5_op_peek(op, op->tm_head, MIN(op->len, sizeof(op->tm_head)));
    if (r != MLX5_OP_GO ||
        (head->opcode != TMH_EAGER && head->opcode != TMH_RNDV)) {
        return r;
    }
    e = tm_match(t, be64_to_cpu(head->tag));
    if (!e || (head->opcode == TMH_RNDV && op->len < sizeof(*head))) {
        op->tm = MLX5_TM_UNEXPECTED;
        return MLX5_OP_GO;
    }
    e->listed = false;
    op->tm = head->opcode == TMH_EAGER ? MLX5_TM_MATCH
           : t->rndv && peer->st == MLX5_ST_RC ? MLX5_TM_RNDV
           : MLX5_TM_MATCH_SW;
    op->recv_is_srq = true;
    op->recv_index = e - t->e;
    op->recv_srqn = srq->obj.id;
    op->recv_user_index = srq->user_index;
    op->recv_cqn = srq->cqn;
    op->remote_pd = srq->pd;
    op->dst_nrecv = 1;
    op->remote[0] = (Mlx5Sge) { .key = e->key, .len = e->len, .va = e->va };
    if (op->tm == MLX5_TM_RNDV) {
        op->len = 0;              /* none of it is data */
    } else {
        tm_skip_header(op);
    }
    trace_mlx5_tm_match(peer->hca->name, srq->obj.id, op->recv_index,
                        be64_to_cpu(head->tag), op->tm, op->len);
    return MLX5_OP_GO;
}

void mlx5_tm_taken(Mlx5Op *op, Mlx5Srq *srq)
{
    if (op->tm == MLX5_TM_UNEXPECTED) {
        srq->tm->hw_cnt++;
        trace_mlx5_tm_unexpected(op->peer->hca->name, srq->obj.id,
                                 srq->tm->hw_cnt);
    }
}

void mlx5_tm_cqe(const Mlx5Op *op, Mlx5Cqe64 *cqe)
{
    static const uint8_t app_ops[] = {
        [MLX5_TM_NO_TAG] = TM_CQE_NO_TAG,
        [MLX5_TM_UNEXPECTED] = TM_CQE_UNEXPECTED,
        [MLX5_TM_MATCH] = TM_CONSUMED_MSG,
        [MLX5_TM_MATCH_SW] = TM_CONSUMED_MSG_SW,
        [MLX5_TM_RNDV] = TM_CONSUMED,
    };
    uint8_t *raw = (uint8_t *)cqe;

    raw[CQE_APP] = CQE_APP_TM;
    raw[CQE_APP_OP] = app_ops[op->tm];
    if (op->tm >= MLX5_TM_MATCH) {
        memcpy(raw, op->tm_head, TMH_BYTES);
        stw_be_p(raw + CQE_APP_INFO, op->recv_index);
    }
}

static Mlx5TmEntry *tm_entry(Mlx5Srq *srq, uint16_t index)
{
    return srq && srq->tm && index < srq->tm->n ? &srq->tm->e[index] : NULL;
}

void mlx5_tm_done(Mlx5Op *op, Mlx5Qp *peer)
{
    const Mlx5TmHeader *head = (const Mlx5TmHeader *)op->tm_head;
    Mlx5TmEntry *e = tm_entry(mlx5_srq_find(peer->hca, op->recv_srqn),
                              op->recv_index);

    if (op->tm == MLX5_TM_RNDV) {
        Mlx5TmRead *r = g_new0(Mlx5TmRead, 1);

        r->srqn = op->recv_srqn;
        r->index = op->recv_index;
        r->from = (Mlx5Sge) {
            .key = be32_to_cpu(head->rkey),
            .len = be32_to_cpu(head->len),
            .va = be64_to_cpu(head->va),
        };
        memcpy(r->head, op->tm_head, sizeof(r->head));
        QTAILQ_INSERT_TAIL(&peer->tm_reads, r, next);
        mlx5_sched_qp(peer);
    } else if (e) {
        e->used = false;
    }
}

void mlx5_tm_cancel(Mlx5Op *op, Mlx5Qp *peer)
{
    Mlx5Srq *srq = mlx5_srq_find(peer->hca, op->recv_srqn);
    Mlx5TmEntry *e = tm_entry(srq, op->recv_index);

    op->tm = MLX5_TM_NONE;
    if (e) {
        e->used = false;
        tm_post(peer, srq, MLX5_CQE_RESP_SEND, TM_CANCELED, op->recv_index, 0,
                NULL);
    }
}

/* Rendezvous */

void mlx5_tm_start(Mlx5Qp *qp)
{
    Mlx5TmRead *r = QTAILQ_FIRST(&qp->tm_reads);
    Mlx5Srq *srq = mlx5_srq_find(qp->hca, r->srqn);
    Mlx5TmEntry *e = tm_entry(srq, r->index);
    Mlx5Op *op = mlx5_op_new(qp);

    qp->op = op;
    op->tm_own = true;
    op->rnr_left = MLX5_GET(qp->qpc, qpc, rnr_retry);
    op->retry_left = MLX5_GET(qp->qpc, qpc, retry_count);
    op->dlid = qp->dlid;
    op->dqpn = qp->remote_qpn;
    op->sl = MLX5_GET(MLX5_ADDR(qp->qpc, qpc, primary_address_path), ads, sl);
    trace_mlx5_tm_read(qp->hca->name, qp->obj.id, r->index, r->fin,
                       r->from.key, r->from.va, r->from.len);
    if (r->fin) {
        op->opcode = MLX5_OP_SEND;
        op->src.is_inline = true;
        op->dst = (Mlx5Side) { .remote = true, .nsge = 1,
                               .access = MLX5_ACC_RW };
        memcpy(op->data, r->head, TMH_BYTES);
        op->data[0] = TMH_FIN;
        op->len = TMH_BYTES;
        op->remote[0] = (Mlx5Sge) { .len = TMH_BYTES };
        return;
    }
    op->opcode = MLX5_OP_RDMA_READ;
    op->len = r->from.len;
    op->src = (Mlx5Side) { .remote = true, .nsge = 1, .access = MLX5_ACC_RR };
    op->dst = (Mlx5Side) { .nsge = 1, .access = MLX5_ACC_LW };
    op->remote[0] = r->from;
    op->local[0] = e ? (Mlx5Sge) { .key = e->key, .len = e->len, .va = e->va }
                     : (Mlx5Sge) { };
    if (!e || e->len < r->from.len) {
        op->syndrome = MLX5_SYN_LOCAL_LENGTH;
    }
}

static void tm_read_end(Mlx5Qp *qp, Mlx5TmRead *r, bool tell, uint8_t app_op)
{
    Mlx5Srq *srq = mlx5_srq_find(qp->hca, r->srqn);
    Mlx5TmEntry *e = tm_entry(srq, r->index);

    if (!r->fin && e) {
        e->used = false;
        if (tell) {
            tm_post(qp, srq, MLX5_CQE_RESP_SEND, app_op, r->index,
                    app_op == TM_EXPECTED ? r->from.len : 0, NULL);
        }
    }
}

static void tm_read_free(Mlx5Qp *qp, Mlx5TmRead *r)
{
    QTAILQ_REMOVE(&qp->tm_reads, r, next);
    g_free(r);
}

void mlx5_tm_read_done(Mlx5Op *op)
{
    Mlx5Qp *qp = op->qp;
    Mlx5TmRead *r = QTAILQ_FIRST(&qp->tm_reads);
    uint8_t syndrome = op->syndrome;

    qp->op = NULL;
    mlx5_op_free(op);
    if (syndrome) {
        trace_mlx5_tm_read_failed(qp->hca->name, qp->obj.id, r->index,
                                  syndrome);
        mlx5_qp_to_error(qp, MLX5_EVENT_WQ_ACCESS_ERROR);
        return;                   /* which ends this one, too */
    }
    tm_read_end(qp, r, true, TM_EXPECTED);
    if (r->fin) {
        tm_read_free(qp, r);
    } else {
        r->fin = true;
    }
}

void mlx5_tm_flush(Mlx5Qp *qp, bool tell)
{
    Mlx5TmRead *r;

    while ((r = QTAILQ_FIRST(&qp->tm_reads))) {
        tm_read_end(qp, r, tell, TM_CANCELED);
        tm_read_free(qp, r);
    }
}

void mlx5_tm_free(Mlx5Srq *srq)
{
    if (srq->tm) {
        g_free(srq->tm->e);
        g_free(srq->tm);
        srq->tm = NULL;
    }
}

/* Migration */

static int tm_post_load(void *opaque, int version_id)
{
    Mlx5Tm *t = opaque;

    return t->n > 0 && is_power_of_2(t->n) &&
           t->n <= 1 << MLX5_LOG_MAX_TM_LIST && t->next < t->n ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_tm_entry = {
    .name = "mlx5/tm-entry",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(used, Mlx5TmEntry),
        VMSTATE_BOOL(listed, Mlx5TmEntry),
        VMSTATE_BOOL(parked, Mlx5TmEntry),
        VMSTATE_UINT64(seq, Mlx5TmEntry),
        VMSTATE_UINT64(tag, Mlx5TmEntry),
        VMSTATE_UINT64(mask, Mlx5TmEntry),
        VMSTATE_UINT32(key, Mlx5TmEntry),
        VMSTATE_UINT32(len, Mlx5TmEntry),
        VMSTATE_UINT64(va, Mlx5TmEntry),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_tm = {
    .name = "mlx5/tm",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = tm_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(rndv, Mlx5Tm),
        VMSTATE_UINT16(next, Mlx5Tm),
        VMSTATE_UINT16(sw_cnt, Mlx5Tm),
        VMSTATE_UINT16(hw_cnt, Mlx5Tm),
        VMSTATE_UINT64(seq, Mlx5Tm),
        VMSTATE_INT32(n, Mlx5Tm),
        VMSTATE_STRUCT_VARRAY_ALLOC(e, Mlx5Tm, n, 1, vmstate_tm_entry,
                                    Mlx5TmEntry),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_tm_sge = {
    .name = "mlx5/tm-sge",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(key, Mlx5Sge),
        VMSTATE_UINT32(len, Mlx5Sge),
        VMSTATE_UINT64(va, Mlx5Sge),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_tm_read = {
    .name = "mlx5/tm-read",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(srqn, Mlx5TmRead),
        VMSTATE_UINT16(index, Mlx5TmRead),
        VMSTATE_STRUCT(from, Mlx5TmRead, 1, vmstate_tm_sge, Mlx5Sge),
        VMSTATE_UINT8_ARRAY(head, Mlx5TmRead, MLX5_TM_HEAD),
        VMSTATE_BOOL(fin, Mlx5TmRead),
        VMSTATE_END_OF_LIST()
    }
};
