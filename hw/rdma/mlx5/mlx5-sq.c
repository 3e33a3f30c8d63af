/*
 * mlx5 send queue: WQEs become operations
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-copy.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-eq.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-sig.h"
#include "mlx5-tm.h"
#include "trace.h"

/* WQEs of one turn, so that those without bytes are bounded, too. */
#define MLX5_SQ_BURST 256

static bool mlx5_sq_read(Mlx5Qp *qp, uint16_t index, uint8_t *p, uint32_t len)
{
    uint64_t off = (uint64_t)(index & (qp->sq_bbs - 1)) * MLX5_WQE_BB;
    uint64_t size = (uint64_t)qp->sq_bbs * MLX5_WQE_BB;
    uint32_t first = MIN((uint64_t)len, size - off);

    return mlx5_buf_read(qp->hca, &qp->buf, qp->sq_off + off, p, first) ==
           MLX5_DMA_OK &&
           (first == len ||
            mlx5_buf_read(qp->hca, &qp->buf, qp->sq_off, p + first,
                          len - first) == MLX5_DMA_OK);
}

/*
 * Reads the WQE at sq_ci into @wqe. Returns its length in bytes, or 0 when it
 * is malformed or cannot be read; *@bbs is how far the queue moves on.
 */
static uint32_t mlx5_sq_fetch(Mlx5Qp *qp, uint8_t *wqe, uint16_t *bbs)
{
    uint16_t posted = qp->sq_pi - qp->sq_ci;
    const Mlx5WqeCtrl *ctrl = (const Mlx5WqeCtrl *)wqe;
    const uint8_t *bf = qp->bf;
    uint32_t qpn_ds, len;

    *bbs = 1;
    qp->bf = NULL;
    if (bf && lduw_be_p(bf + 1) != qp->sq_ci) {   /* not its index */
        bf = NULL;
    }
    if (bf) {
        memcpy(wqe, bf, MLX5_WQE_BB);
    } else if (!mlx5_sq_read(qp, qp->sq_ci, wqe, MLX5_WQE_BB)) {
        mlx5_guest_error(qp->hca, "QP 0x%x: send queue is not readable",
                         qp->obj.id);
        return 0;
    }
    qpn_ds = be32_to_cpu(ctrl->qpn_ds);
    len = (qpn_ds & 0x3f) * MLX5_WQE_DS;
    if (len < sizeof(*ctrl) || qpn_ds >> 8 != qp->obj.id ||
        DIV_ROUND_UP(len, MLX5_WQE_BB) > posted) {
        mlx5_guest_error(qp->hca, "QP 0x%x: bad send WQE at 0x%x (QPN 0x%x, "
                         "%u bytes, %u blocks posted)", qp->obj.id, qp->sq_ci,
                         qpn_ds >> 8, len, posted);
        return 0;
    }
    *bbs = DIV_ROUND_UP(len, MLX5_WQE_BB);
    if (len > MLX5_WQE_BB && bf) {
        memcpy(wqe + MLX5_WQE_BB, bf + MLX5_WQE_BB, len - MLX5_WQE_BB);
    } else if (len > MLX5_WQE_BB &&
        !mlx5_sq_read(qp, qp->sq_ci + 1, wqe + MLX5_WQE_BB,
                      len - MLX5_WQE_BB)) {
        return 0;
    }
    return len;
}

static void mlx5_sq_cqe_fill(Mlx5Qp *qp, Mlx5Op *op, Mlx5Cqe64 *cqe)
{
    uint64_t now = mlx5_timestamp();

    cqe->srqn = cpu_to_be32(qp->user_index);
    cqe->timestamp_h = cpu_to_be32(now >> 32);
    cqe->timestamp_l = cpu_to_be32(now);
    cqe->sop_drop_qpn = cpu_to_be32((uint32_t)op->opcode << 24 | qp->obj.id);
    cqe->wqe_counter = cpu_to_be16(op->wqe_index);
    if (op->opcode == MLX5_OP_RDMA_READ || mlx5_opcode_is_atomic(op->opcode)) {
        cqe->byte_cnt = cpu_to_be32(op->len);
    }
    cqe->op_own = MLX5_CQE_REQ << 4;
}

static void mlx5_sq_count_error(const Mlx5Qp *qp, uint8_t syndrome)
{
    if (syndrome == MLX5_SYN_WR_FLUSH) {
        mlx5_qp_count(qp, MLX5_QC_REQ_CQE_FLUSH_ERROR);
        return;
    }
    mlx5_qp_count(qp, MLX5_QC_REQ_CQE_ERROR);
    if (syndrome == MLX5_SYN_REMOTE_INVAL) {
        mlx5_qp_count(qp, MLX5_QC_REQ_REMOTE_INVALID_REQUEST);
    } else if (syndrome == MLX5_SYN_REMOTE_ACCESS) {
        mlx5_qp_count(qp, MLX5_QC_REQ_REMOTE_ACCESS_ERRORS);
    }
}

static bool mlx5_sq_error_cqe(Mlx5Qp *qp, uint8_t opcode, uint16_t index,
                              uint8_t syndrome)
{
    Mlx5Cq *cq = mlx5_cq_find(qp->hca, qp->cqn_snd);
    Mlx5ErrCqe cqe = {
        .srqn = cpu_to_be32(qp->user_index),
        .syndrome = syndrome,
        .s_wqe_opcode_qpn = cpu_to_be32((uint32_t)opcode << 24 | qp->obj.id),
        .wqe_counter = cpu_to_be16(index),
        .op_own = MLX5_CQE_REQ_ERR << 4,
    };

    trace_mlx5_sq_error(qp->hca->name, qp->obj.id, index, opcode, syndrome);
    mlx5_sq_count_error(qp, syndrome);
    return cq && mlx5_cq_post(qp->hca, cq, (uint8_t *)&cqe, true);
}

void mlx5_sq_complete(Mlx5Op *op)
{
    Mlx5Qp *qp = op->qp;
    uint8_t syndrome = op->syndrome;
    uint16_t stream = op->dci_stream;
    bool drain = op->sig_failed && MLX5_GET(qp->qpc, qpc, drain_sigerr);
    bool posted = true;

    if (op->tm_own) {
        mlx5_tm_read_done(op);
        return;
    }
    qp->sq_ci = op->wqe_index + op->wqe_bbs;
    qp->op = NULL;
    if (syndrome) {
        posted = mlx5_sq_error_cqe(qp, op->opcode, op->wqe_index, syndrome);
    } else {
        trace_mlx5_sq_done(qp->hca->name, qp->obj.id, op->wqe_index,
                           op->opcode, op->len);
        if (op->fm_ce_se & MLX5_CTRL_CQ_UPDATE) {
            Mlx5Cq *cq = mlx5_cq_find(qp->hca, qp->cqn_snd);
            Mlx5Cqe64 cqe = { 0 };

            mlx5_sq_cqe_fill(qp, op, &cqe);
            posted = cq && mlx5_cq_post(qp->hca, cq, (uint8_t *)&cqe,
                                        op->fm_ce_se & MLX5_CTRL_SOLICITED);
        }
    }
    mlx5_op_free(op);
    if (syndrome || !posted) {
        if (posted && (qp->st == MLX5_ST_UD || qp->st == MLX5_ST_UC)) {
            /* These services go on receiving (IBA 10.3.1, SQE state). */
            qp->state = MLX5_QPS_SQER;
            trace_mlx5_qp_state(qp->hca->name, qp->obj.id, qp->state);
            mlx5_sq_flush(qp);
        } else if (posted && qp->st == MLX5_ST_DCI &&
                   mlx5_dci_stream_fail(qp, stream)) {
            /* The other streams go on. */
        } else {
            mlx5_qp_to_error(qp, posted ? 0 : MLX5_EVENT_WQ_CATAS_ERROR);
        }
    } else if (drain && qp->state == MLX5_QPS_RTS) {
        /* Software decides before what follows is sent. */
        qp->state = MLX5_QPS_SQD;
        trace_mlx5_qp_state(qp->hca->name, qp->obj.id, qp->state);
        mlx5_event_qp(qp->hca, MLX5_EVENT_SQ_DRAINED, qp->obj.id, 0);
    }
}

void mlx5_sq_flush(Mlx5Qp *qp)
{
    uint8_t wqe[MLX5_WQE_BB];

    if (qp->sq_busy) {
        return;                   /* mlx5_sq_run() does it on its way out */
    }
    if (qp->op) {
        Mlx5Op *op = qp->op;

        mlx5_op_detach(op);
        if (!op->tm_own) {
            mlx5_sq_error_cqe(qp, op->opcode, op->wqe_index,
                              MLX5_SYN_WR_FLUSH);
            qp->sq_ci = op->wqe_index + op->wqe_bbs;
        }
        qp->op = NULL;
        mlx5_op_free(op);
    }
    mlx5_tm_flush(qp, true);
    while (qp->sq_ci != qp->sq_pi) {
        const Mlx5WqeCtrl *ctrl = (const Mlx5WqeCtrl *)wqe;
        uint16_t index = qp->sq_ci, posted = qp->sq_pi - qp->sq_ci;
        uint32_t ds;

        if (!mlx5_sq_read(qp, index, wqe, sizeof(wqe))) {
            qp->sq_ci = qp->sq_pi;
            break;
        }
        ds = be32_to_cpu(ctrl->qpn_ds) & 0x3f;
        qp->sq_ci += CLAMP(DIV_ROUND_UP(ds * MLX5_WQE_DS, MLX5_WQE_BB), 1,
                           posted);
        if (!mlx5_sq_error_cqe(qp, be32_to_cpu(ctrl->opmod_idx_opcode), index,
                               MLX5_SYN_WR_FLUSH)) {
            qp->sq_ci = qp->sq_pi;
        }
    }
}

static bool mlx5_sq_take_pi(Mlx5Qp *qp)
{
    uint8_t rec[4];
    uint16_t pi;

    if (!qp->dbr_addr ||
        mlx5_dma_read(qp->hca, qp->dbr_addr + 4, rec, 4) != MLX5_DMA_OK) {
        mlx5_guest_error(qp->hca, "QP 0x%x: doorbell record is not readable",
                         qp->obj.id);
        return false;
    }
    pi = ldl_be_p(rec);
    if ((uint16_t)(pi - qp->sq_ci) > qp->sq_bbs) {
        mlx5_guest_error(qp->hca, "QP 0x%x: send queue of %u blocks overrun "
                         "(posted 0x%x, done 0x%x)", qp->obj.id, qp->sq_bbs,
                         pi, qp->sq_ci);
        return false;
    }
    qp->sq_pi = pi;
    return true;
}

void mlx5_sq_doorbell(Mlx5Qp *qp)
{
    if (!qp->sq_bbs || qp->state == MLX5_QPS_RST ||
        qp->state == MLX5_QPS_INIT || qp->state == MLX5_QPS_RTR) {
        mlx5_guest_error(qp->hca, "QP 0x%x: send doorbell in state %u",
                         qp->obj.id, qp->state);
        return;
    }
    if (!mlx5_sq_take_pi(qp)) {
        if (qp->state != MLX5_QPS_ERR) {
            mlx5_qp_to_error(qp, MLX5_EVENT_WQ_CATAS_ERROR);
        }
        return;
    }
    switch (qp->state) {
    case MLX5_QPS_ERR:
    case MLX5_QPS_SQER:
        mlx5_sq_flush(qp);
        break;
    case MLX5_QPS_RTS:
        mlx5_sched_now(qp);
        break;
    default:
        break;
    }
}

void mlx5_sq_doorbell_bf(Mlx5Qp *qp, const uint8_t *wqe)
{
    qp->bf = wqe;
    mlx5_sq_doorbell(qp);
    qp->bf = NULL;
}

/* Segments of a WQE are consumed in order. */
typedef struct Mlx5WqeReader {
    const uint8_t *p;
    uint32_t left;
} Mlx5WqeReader;

static const void *mlx5_wqe_seg(Mlx5WqeReader *r, uint32_t len)
{
    const void *seg = r->p;

    if (r->left < len) {
        return NULL;
    }
    r->p += len;
    r->left -= len;
    return seg;
}

static bool mlx5_sq_parse_av(Mlx5Op *op, Mlx5WqeReader *r)
{
    const Mlx5WqeAv *av = mlx5_wqe_seg(r, 16);
    uint32_t dqp, grh;
    uint8_t *h = op->data;

    if (!av) {
        return false;
    }
    dqp = be32_to_cpu(av->dqp_dct);
    op->dqpn = dqp & 0xffffff;
    op->qkey = be32_to_cpu(av->qkey);
    op->dc_key = (uint64_t)op->qkey << 32 | be32_to_cpu(av->dc_key_lo);
    op->dlid = be16_to_cpu(av->rlid);
    op->sl = av->stat_rate_sl & 0xf;
    op->has_grh = false;
    if (!(dqp & MLX5_EXTENDED_UD_AV)) {
        return true;
    }
    if (!mlx5_wqe_seg(r, 32)) {
        return false;
    }
    grh = be32_to_cpu(av->grh_gid_fl);
    if (grh & (1u << 30)) {
        /* The global route header that the receiver finds (IBA 8.3). */
        op->has_grh = true;
        memset(h, 0, MLX5_GRH_LEN);
        stl_be_p(h, 6u << 28 | (uint32_t)av->tclass << 20 | (grh & 0xfffff));
        h[6] = 0x1b;
        h[7] = av->hop_limit;
        stq_be_p(h + 8, 0xfe80000000000000ULL);
        stq_be_p(h + 16, op->qp->hca->port.port_guid);
        memcpy(h + 24, av->rgid, 16);
    }
    return true;
}

/* Data segments: keys, or bytes in the WQE, not both. */
static uint8_t mlx5_sq_parse_data(Mlx5Op *op, Mlx5WqeReader *r, Mlx5Side *side)
{
    uint32_t inl = 0;

    while (r->left) {
        const Mlx5WqeData *seg = mlx5_wqe_seg(r, sizeof(uint32_t));
        uint32_t count;

        if (!seg) {
            return MLX5_SYN_LOCAL_QP_OP;
        }
        count = ldl_be_p(seg);
        if (count & MLX5_INLINE_SEG) {
            uint32_t pad;
            const uint8_t *bytes;

            count &= ~MLX5_INLINE_SEG;
            bytes = mlx5_wqe_seg(r, count);
            if (!bytes || side->nsge ||
                side->off + inl + count > sizeof(op->data)) {
                return MLX5_SYN_LOCAL_QP_OP;
            }
            memcpy(op->data + side->off + inl, bytes, count);
            inl += count;
            side->is_inline = true;
            pad = -(count + 4) % MLX5_WQE_DS;
            mlx5_wqe_seg(r, MIN(pad, r->left));
            continue;
        }
        if (!mlx5_wqe_seg(r, sizeof(*seg) - sizeof(uint32_t)) || inl ||
            side->nsge == MLX5_OP_MAX_SGE) {
            return MLX5_SYN_LOCAL_QP_OP;
        }
        /* A count of 0 stands for 2 GiB (31 bits cannot say it). */
        op->local[side->nsge++] = (Mlx5Sge) {
            .key = be32_to_cpu(seg->lkey),
            .len = mlx5_sig_sge_len(op->qp->hca, be32_to_cpu(seg->lkey),
                                    count ? count : 0x80000000u),
            .va = be64_to_cpu(seg->addr),
        };
        op->len += op->local[side->nsge - 1].len;
    }
    op->len += inl;
    return 0;
}

static uint8_t mlx5_sq_parse_raddr(Mlx5Op *op, Mlx5WqeReader *r)
{
    const Mlx5WqeRaddr *seg = mlx5_wqe_seg(r, sizeof(*seg));

    if (!seg) {
        return MLX5_SYN_LOCAL_QP_OP;
    }
    op->remote[0] = (Mlx5Sge) {
        .key = be32_to_cpu(seg->rkey),
        .va = be64_to_cpu(seg->raddr),
    };
    return 0;
}

static uint8_t mlx5_sq_parse_atomic(Mlx5Op *op, Mlx5WqeReader *r)
{
    bool masked = op->opcode == MLX5_OP_ATOMIC_MASKED_CS ||
                  op->opcode == MLX5_OP_ATOMIC_MASKED_FA;
    const Mlx5WqeMaskedAtomic *seg;

    seg = mlx5_wqe_seg(r, masked ? sizeof(*seg) : sizeof(Mlx5WqeAtomic));
    if (!seg) {
        return MLX5_SYN_LOCAL_QP_OP;
    }
    op->swap_add = be64_to_cpu(seg->swap_add);
    op->compare = be64_to_cpu(seg->compare);
    op->swap_add_mask = masked ? be64_to_cpu(seg->swap_add_mask) : 0;
    op->compare_mask = masked ? be64_to_cpu(seg->compare_mask) : 0;
    if (!masked) {
        /* All bits swap and compare; no bit stops a carry. */
        op->compare_mask = UINT64_MAX;
        op->swap_add_mask = op->opcode == MLX5_OP_ATOMIC_CS ? UINT64_MAX : 0;
    }
    return 0;
}

/* What each opcode may be used for (IBA table 36), by service. */
static bool mlx5_sq_allowed(const Mlx5Qp *qp, uint8_t opcode)
{
    switch (qp->st) {
    case MLX5_ST_RC:
    case MLX5_ST_XRC:
    case MLX5_ST_DCI:
        return mlx5_opcode_is_send(opcode) || mlx5_opcode_is_atomic(opcode) ||
               opcode == MLX5_OP_RDMA_WRITE ||
               opcode == MLX5_OP_RDMA_WRITE_IMM ||
               opcode == MLX5_OP_RDMA_READ;
    case MLX5_ST_UC:
        return opcode == MLX5_OP_SEND || opcode == MLX5_OP_SEND_IMM ||
               opcode == MLX5_OP_RDMA_WRITE ||
               opcode == MLX5_OP_RDMA_WRITE_IMM;
    case MLX5_ST_UD:
    case MLX5_ST_QP0:
    case MLX5_ST_QP1:
        return opcode == MLX5_OP_SEND || opcode == MLX5_OP_SEND_IMM;
    default:
        return false;
    }
}

/* Fills @op from the WQE; returns the syndrome of a bad one. */
static uint8_t mlx5_sq_parse(Mlx5Qp *qp, Mlx5Op *op, const uint8_t *wqe,
                             uint32_t len)
{
    Mlx5WqeReader r = { wqe, len };
    bool datagram = qp->st == MLX5_ST_UD || qp->st == MLX5_ST_QP0 ||
                    qp->st == MLX5_ST_QP1;
    uint64_t max = 1ull << MLX5_GET(qp->qpc, qpc, log_msg_max);
    uint8_t syn = 0;

    mlx5_wqe_seg(&r, sizeof(Mlx5WqeCtrl));
    if (!mlx5_sq_allowed(qp, op->opcode)) {
        return MLX5_SYN_LOCAL_QP_OP;
    }
    op->dlid = qp->dlid;
    op->dqpn = qp->remote_qpn;
    op->sl = MLX5_GET(MLX5_ADDR(qp->qpc, qpc, primary_address_path), ads, sl);
    if (qp->st == MLX5_ST_XRC) {
        const Mlx5WqeXrc *x = mlx5_wqe_seg(&r, sizeof(*x));

        if (!x) {
            return MLX5_SYN_LOCAL_QP_OP;
        }
        op->xrc_srqn = be32_to_cpu(x->xrc_srqn) & 0xffffff;
    } else if (qp->st == MLX5_ST_DCI) {
        if (!mlx5_sq_parse_av(op, &r)) {
            return MLX5_SYN_LOCAL_QP_OP;
        }
        op->has_grh = false;      /* no receiver of this service sees one */
        if (mlx5_dci_stream_failed(qp, op->dci_stream)) {
            return MLX5_SYN_WR_FLUSH;
        }
    } else if (datagram) {
        if (!mlx5_sq_parse_av(op, &r)) {
            return MLX5_SYN_LOCAL_QP_OP;
        }
        /* Inline bytes follow the room for the GRH in op->data. */
        op->src.off = MLX5_GRH_LEN;
    }
    if (!mlx5_opcode_is_send(op->opcode)) {
        syn = mlx5_sq_parse_raddr(op, &r);
    }
    if (!syn && mlx5_opcode_is_atomic(op->opcode)) {
        syn = mlx5_sq_parse_atomic(op, &r);
    }
    if (!syn) {
        syn = mlx5_sq_parse_data(op, &r, &op->src);
    }
    if (syn) {
        return syn;
    }
    if (!op->src.is_inline) {
        op->src.off = 0;
    }
    if (op->opcode == MLX5_OP_RDMA_READ || mlx5_opcode_is_atomic(op->opcode)) {
        /* Bytes come back: what the data segments name is written. */
        if (op->src.is_inline ||
            (mlx5_opcode_is_atomic(op->opcode) && op->len != 8)) {
            return op->src.is_inline ? MLX5_SYN_LOCAL_QP_OP
                                     : MLX5_SYN_LOCAL_LENGTH;
        }
        op->dst = op->src;
        op->dst.access = MLX5_ACC_LW;
        op->src = (Mlx5Side) { .remote = true, .nsge = 1,
                               .access = MLX5_ACC_RR };
    } else {
        op->src.access = MLX5_ACC_LR;
        op->dst = (Mlx5Side) { .remote = true, .nsge = 1,
                               .access = MLX5_ACC_RW };
    }
    op->remote[0].len = op->len;
    if (op->len > max || op->len > UINT32_MAX) {
        return MLX5_SYN_LOCAL_LENGTH;
    }
    return 0;
}

/* Starts the WQE at sq_ci. Returns its operation, or NULL when it is done. */
static Mlx5Op *mlx5_sq_start(Mlx5Qp *qp)
{
    uint8_t wqe[MLX5_WQE_MAX] QEMU_ALIGNED(8);
    const Mlx5WqeCtrl *ctrl = (const Mlx5WqeCtrl *)wqe;
    Mlx5Op *op = mlx5_op_new(qp);
    uint32_t len;

    len = mlx5_sq_fetch(qp, wqe, &op->wqe_bbs);
    op->wqe_index = qp->sq_ci;
    op->rnr_left = MLX5_GET(qp->qpc, qpc, rnr_retry);
    op->retry_left = MLX5_GET(qp->qpc, qpc, retry_count);
    qp->op = op;
    if (!len) {
        op->fm_ce_se = MLX5_CTRL_CQ_UPDATE;
        op->syndrome = MLX5_SYN_LOCAL_QP_OP;
        mlx5_sq_complete(op);
        return NULL;
    }
    op->opcode = be32_to_cpu(ctrl->opmod_idx_opcode);
    op->fm_ce_se = ctrl->fm_ce_se;
    op->dci_stream = be16_to_cpu(ctrl->dci_stream);
    op->imm = be32_to_cpu(ctrl->imm);
    trace_mlx5_sq_wqe(qp->hca->name, qp->obj.id, op->wqe_index, op->opcode,
                      len);
    if (op->opcode == MLX5_OP_UMR &&
        (qp->st != MLX5_ST_SQ || MLX5_GET(qp->sqc, sqc, reg_umr))) {
        Mlx5UmrCtx ctx = {
            .pd = qp->pd,
            .qpn = qp->obj.id,
            .mkey = op->imm,
            .service = qp->st == MLX5_ST_REG_UMR,
            .fre = MLX5_GET(qp->qpc, qpc, fre),
        };

        op->syndrome = mlx5_umr_execute(qp->hca, &ctx, wqe, len);
        mlx5_sq_complete(op);
        return NULL;
    }
    if (op->opcode == MLX5_OP_SET_PSV) {
        op->syndrome = mlx5_psv_set(qp->hca, qp->pd, wqe, len);
    } else if (op->opcode == MLX5_OP_TAG_MATCHING) {
        op->syndrome = mlx5_tm_wqe(qp, wqe, len);
    } else if (op->opcode != MLX5_OP_NOP) {
        op->syndrome = mlx5_sq_parse(qp, op, wqe, len);
        if (!op->syndrome) {
            return op;
        }
    }
    mlx5_sq_complete(op);
    return NULL;
}

static bool mlx5_sq_work(Mlx5Qp *qp, uint64_t *budget)
{
    int burst = MLX5_SQ_BURST;

    for (;;) {
        if (!qp->op) {
            bool own = !QTAILQ_EMPTY(&qp->tm_reads);

            if (qp->state != MLX5_QPS_RTS ||
                (!own && qp->sq_ci == qp->sq_pi)) {
                return false;
            }
            if (!*budget || !burst--) {
                return true;
            }
            if (own) {
                mlx5_tm_start(qp);
                if (qp->op->syndrome) {
                    mlx5_sq_complete(qp->op);
                    continue;
                }
            } else if (!mlx5_sq_start(qp)) {
                continue;
            }
            if (!mlx5_op_book(qp->op, qp->hca, qp->qos_req)) {
                return false;
            }
        } else if (qp->op->wait) {
            return false;
        }
        switch (mlx5_op_run(qp->op, budget)) {
        case MLX5_OP_DONE:
            mlx5_sq_complete(qp->op);
            break;
        case MLX5_OP_AGAIN:
            return true;
        default:
            return false;
        }
    }
}

bool mlx5_sq_run(Mlx5Qp *qp, uint64_t *budget)
{
    bool more;

    qp->sq_busy = true;
    more = mlx5_sq_work(qp, budget);
    qp->sq_busy = false;
    if (qp->state == MLX5_QPS_ERR || qp->state == MLX5_QPS_SQER) {
        mlx5_sq_flush(qp);
        return false;
    }
    return more;
}
