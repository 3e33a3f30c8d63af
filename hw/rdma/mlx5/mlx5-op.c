/*
 * mlx5 operation: the copy, its faults and its life
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-copy.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-dma.h"
#include "mlx5-fabric.h"
#include "mlx5-mkey.h"
#include "mlx5-qos.h"
#include "mlx5-qp.h"
#include "mlx5-sig.h"
#include "mlx5-tm.h"
#include "trace.h"

#define MLX5_SPARE_OPS 64

Mlx5Op *mlx5_op_new(Mlx5Qp *qp)
{
    GPtrArray *spare = qp->hca->qp->free_ops;
    Mlx5Op *op = spare->len ? g_ptr_array_steal_index_fast(spare,
                                                           spare->len - 1)
                            : g_new(Mlx5Op, 1);

    /* The lists and bytes are written before they are read. */
    memset(op, 0, offsetof(Mlx5Op, local));
    memset((uint8_t *)op + offsetof(Mlx5Op, swap_add), 0,
           sizeof(*op) - offsetof(Mlx5Op, swap_add));
    op->qp = qp;
    op->src_lid = qp->hca->port.lid;
    op->src_qpn = mlx5_qp_wire_qpn(qp);
    return op;
}

void mlx5_op_free(Mlx5Op *op)
{
    GPtrArray *spare = op->qp->hca->qp->free_ops;

    assert(!op->peer && !op->wait);
    g_free(op->sig);
    op->sig = NULL;
    if (spare->len < MLX5_SPARE_OPS) {
        g_ptr_array_add(spare, op);
    } else {
        g_free(op);
    }
}

void mlx5_op_bind(Mlx5Op *op, Mlx5Qp *peer)
{
    op->peer = peer;
    QLIST_INSERT_HEAD(&peer->rx_ops, op, on_peer);
}

void mlx5_op_unbind(Mlx5Op *op)
{
    Mlx5Qp *peer = op->peer;

    if (!peer) {
        return;
    }
    QLIST_REMOVE(op, on_peer);
    op->peer = NULL;
    if (op->has_recv && !op->recv_is_srq) {
        Mlx5Op *next = QTAILQ_FIRST(&peer->turn);

        peer->rx_busy = false;
        if (next) {
            QTAILQ_REMOVE(&peer->turn, next, timed);
            next->turn_of = NULL;
            mlx5_op_wake(next);
        }
    }
    op->has_recv = false;
}

/* Ends whatever @op waits for. */
static void mlx5_op_stop_waiting(Mlx5Op *op)
{
    switch (op->wait) {
    case MLX5_WAIT_FAULT:
        mlx5_odp_cancel(op->fault_hca, &op->waiter);
        op->fault_hca = NULL;
        break;
    case MLX5_WAIT_DMA:
        mlx5_dma_cancel(&op->dma);
        break;
    case MLX5_WAIT_RNR:
    case MLX5_WAIT_RETRY:
    case MLX5_WAIT_PACE:
        mlx5_sched_untimed(op);
        break;
    case MLX5_WAIT_TURN:
        QTAILQ_REMOVE(&op->turn_of->turn, op, timed);
        op->turn_of = NULL;
        break;
    default:
        break;
    }
    op->wait = MLX5_WAIT_NONE;
}

void mlx5_op_detach(Mlx5Op *op)
{
    mlx5_op_stop_waiting(op);
    if (op->has_recv) {
        mlx5_rq_abort(op->peer, op);
    }
    mlx5_op_unbind(op);
}

void mlx5_op_wake(Mlx5Op *op)
{
    op->wait = MLX5_WAIT_NONE;
    mlx5_sched_qp(op->qp);
}

bool mlx5_op_book(Mlx5Op *op, Mlx5Hca *h, uint32_t group)
{
    int64_t start;

    if (!group) {
        return true;
    }
    start = mlx5_qos_book(h, group, op->len);
    if (start <= qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL)) {
        return true;
    }
    op->wait = MLX5_WAIT_PACE;
    mlx5_sched_at(op, start);
    return false;
}

/* The peer leaves in mid-operation: the requester finds out in its turn. */
void mlx5_op_lost_peer(Mlx5Op *op)
{
    mlx5_op_stop_waiting(op);
    mlx5_op_unbind(op);
    op->lost = true;
    mlx5_sched_qp(op->qp);
}

static void mlx5_op_resumed(Mlx5Waiter *w, bool error)
{
    Mlx5Op *op = container_of(w, Mlx5Op, waiter);

    trace_mlx5_op_resume(op->qp->hca->name, op->qp->obj.id, op->wqe_index,
                         op->done, error);
    op->wait = MLX5_WAIT_NONE;
    op->fault_hca = NULL;
    op->fault_failed = error;
    mlx5_sched_qp(op->qp);
}

/* The IOMMU has decided. An error takes its way through the run queue. */
static void mlx5_op_dma_ready(Mlx5DmaWait *w, bool ok)
{
    Mlx5Op *op = container_of(w, Mlx5Op, dma);

    trace_mlx5_op_resume(op->qp->hca->name, op->qp->obj.id, op->wqe_index,
                         op->done, !ok);
    op->wait = MLX5_WAIT_NONE;
    op->fault_failed = !ok;
    if (ok) {
        mlx5_sched_resume(op->qp);
    } else {
        mlx5_sched_qp(op->qp);
    }
}

/* Where the one whose memory a side is keeps its fault counters. */
static Mlx5FaultStats **mlx5_side_faults(Mlx5Op *op, const Mlx5Side *s)
{
    return s->remote ? &op->peer->faults : &op->qp->faults;
}

void mlx5_cursor_drop(Mlx5Cursor *c)
{
    if (c->held) {
        mlx5_dma_release(c->hca, &c->hold, c->held_done);
        c->held = false;
    }
    c->left = 0;
}

/*
 * In the transport scheme the driver reads the WQE and brings what the rest
 * of its list names, too.
 */
static void mlx5_op_fault_also(Mlx5Op *op, const Mlx5Side *s,
                               const Mlx5MkeyReq *here, Mlx5FaultInfo *f)
{
    const Mlx5Sge *list = s->remote ? op->remote : op->local;

    for (unsigned i = s->cur + 1;
         i < s->nsge && f->n_also < MLX5_PF_MAX_ALSO; i++) {
        Mlx5MkeyReq req = *here;
        Mlx5MkeyRun run;

        req.key = list[i].key;
        req.va = list[i].va;
        req.len = list[i].len;
        if (mlx5_mkey_translate(mlx5_side_hca(op, s), &req, &run) ==
            MLX5_MKEY_FAULT && run.fault_log > MLX5_PF_PAGE_BITS) {
            f->also[f->n_also++] = (Mlx5FaultAlso) {
                .key = run.fault_key,
                .va = run.fault_va,
                .log_piece = run.fault_log,
            };
        }
    }
}

static Mlx5OpResult mlx5_op_fault(Mlx5Op *op, Mlx5Side *s,
                                  const Mlx5MkeyReq *req,
                                  const Mlx5MkeyRun *run)
{
    Mlx5Hca *h = mlx5_side_hca(op, s);
    bool recv = s->remote && mlx5_opcode_is_send(op->opcode);
    bool back = op->opcode == MLX5_OP_RDMA_READ ||
                mlx5_opcode_is_atomic(op->opcode);
    Mlx5FaultInfo f = {
        .key = run->fault_key,
        .va = run->fault_va,
        .len = req->len,
        .log_piece = run->fault_log,
        .is_write = s->access != MLX5_ACC_RR && s->access != MLX5_ACC_LR,
        .bytes_committed = op->done,
        .packet_len = MIN(op->len - op->done, (uint64_t)UINT32_MAX),
    };

    if (!s->remote) {
        f.wq_type = back ? MLX5_PF_REQ_READ_ATOMIC : MLX5_PF_REQ_SEND_WRITE;
        f.wqn = op->qp->obj.id;
        f.wqe_index = op->wqe_index;
    } else if (recv) {
        f.wq_type = op->recv_is_srq ? MLX5_PF_RMP : MLX5_PF_RESP;
        f.wqn = op->recv_is_srq ? op->recv_srqn : op->peer->obj.id;
        f.wqe_index = op->recv_index;
    } else {
        f.rdma = true;
        f.wq_type = MLX5_PF_RESP;
        f.wqn = op->peer->obj.id;
        f.rdma_key = op->remote[0].key;
        /* Of the whole operation: the driver adds what is committed. */
        f.rdma_va = op->remote[0].va;
        f.rdma_op_len = MIN(op->len, (uint64_t)UINT32_MAX);
    }
    if (!f.rdma && !mlx5_caps_mem_page_fault(h)) {
        mlx5_op_fault_also(op, s, req, &f);
    }
    op->waiter.wake = mlx5_op_resumed;
    if (!mlx5_odp_fault(h, &f, &op->waiter)) {
        return mlx5_transport_fail(op, s->remote);
    }
    trace_mlx5_op_fault(h->name, op->qp->obj.id, op->wqe_index, f.key, f.va,
                        op->done, s->remote, f.is_write);
    op->wait = MLX5_WAIT_FAULT;
    op->fault_hca = h;
    op->fault_remote = s->remote;
    return MLX5_OP_WAIT;
}

/* What became of an access of payload. */
static Mlx5OpResult mlx5_op_dma_result(Mlx5Op *op, const Mlx5Side *s,
                                       Mlx5DmaResult r)
{
    switch (r) {
    case MLX5_DMA_OK:
        return MLX5_OP_GO;
    case MLX5_DMA_PENDING:
        op->wait = MLX5_WAIT_DMA;
        op->fault_remote = s->remote;
        return MLX5_OP_WAIT;
    default:
        return mlx5_transport_fail(op, s->remote);
    }
}

static Mlx5OpResult mlx5_side_translate(Mlx5Op *op, Mlx5Side *s,
                                        const Mlx5MkeyReq *req,
                                        Mlx5MkeyRun *run, bool *null)
{
    *null = false;
    switch (mlx5_mkey_translate(mlx5_side_hca(op, s), req, run)) {
    case MLX5_MKEY_OK:
        return MLX5_OP_GO;
    case MLX5_MKEY_NULL:
        *null = true;
        run->len = req->len;
        return MLX5_OP_GO;
    case MLX5_MKEY_FAULT:
        return mlx5_op_fault(op, s, req, run);
    default:
        trace_mlx5_op_denied(op->qp->hca->name, op->qp->obj.id, op->wqe_index,
                             req->key, req->va, req->len, req->access);
        return mlx5_transport_fail(op, s->remote);
    }
}

Mlx5OpResult mlx5_cursor_fill(Mlx5Op *op, Mlx5Cursor *c, uint64_t want)
{
    Mlx5Side *s = c->side;
    Mlx5Sge *sge;

    mlx5_cursor_drop(c);
    if (s->is_inline) {
        if (s->off >= sizeof(op->data)) {
            return mlx5_transport_fail(op, s->remote);
        }
        c->hca = NULL;
        c->null = false;
        c->bytes = op->data + s->off;
        c->left = MIN(want, sizeof(op->data) - s->off);
        return MLX5_OP_GO;
    }
    while (s->cur < s->nsge && s->off >= mlx5_side_sge(op, s)->len) {
        s->cur++;
        s->off = 0;
    }
    if (s->cur >= s->nsge || (s->remote && !op->peer)) {
        return mlx5_transport_fail(op, s->remote);
    }
    sge = mlx5_side_sge(op, s);
    return mlx5_cursor_at(op, c, sge->key, sge->va + s->off,
                          MIN(want, (uint64_t)sge->len - s->off));
}

Mlx5OpResult mlx5_cursor_at(Mlx5Op *op, Mlx5Cursor *c, uint32_t key,
                            uint64_t va, uint64_t want)
{
    Mlx5Side *s = c->side;
    Mlx5MkeyReq req = {
        .key = key,
        .pd = s->remote ? op->remote_pd : op->qp->pd,
        .qpn = s->remote ? op->peer->obj.id : op->qp->obj.id,
        .access = s->access,
        .va = va,
        .len = want,
    };
    Mlx5MkeyRun run;
    Mlx5OpResult r;

    mlx5_cursor_drop(c);
    r = mlx5_side_translate(op, s, &req, &run, &c->null);
    if (r != MLX5_OP_GO) {
        return r;
    }
    c->hca = mlx5_side_hca(op, s);
    c->bytes = NULL;
    c->left = MIN(run.len, req.len);
    if (!c->left) {
        return mlx5_transport_fail(op, s->remote);
    }
    if (!c->null) {
        bool write = s->access & (MLX5_ACC_LW | MLX5_ACC_RW);

        op->dma.ready = mlx5_op_dma_ready;
        r = mlx5_op_dma_result(op, s, mlx5_dma_hold_via(
                c->hca, &run.via, &op->dma, mlx5_side_faults(op, s),
                run.addr, c->left, write, &c->hold));
        if (r != MLX5_OP_GO) {
            c->left = 0;
            return r;
        }
        c->held = true;
        c->held_done = 0;
        c->left = MIN(c->left, c->hold.len);
        c->bytes = c->hold.ptr;
    }
    return MLX5_OP_GO;
}

void mlx5_cursor_advance(Mlx5Cursor *c, uint64_t n)
{
    c->left -= n;
    c->held_done += n;
    c->side->off += n;
    if (c->bytes) {
        c->bytes += n;
    }
}

/* Moves @n bytes that are at hand on both sides. */
static void mlx5_copy(const Mlx5Cursor *src, const Mlx5Cursor *dst, uint64_t n)
{
    if (dst->null) {
        return;
    }
    if (src->null) {
        memset(dst->bytes, 0, n);
    } else {
        memmove(dst->bytes, src->bytes, n);
    }
}

/* A hold of what is not RAM: its release may make other devices work. */
static bool mlx5_cursor_is_device(const Mlx5Cursor *c)
{
    return c->held && !c->hold.is_ram;
}

static Mlx5OpResult mlx5_op_copy(Mlx5Op *op, Mlx5Side *from, Mlx5Side *to,
                                 uint64_t len, uint64_t *done,
                                 uint64_t *budget)
{
    Mlx5Cursor src = { .side = from }, dst = { .side = to };
    Mlx5OpResult r = MLX5_OP_GO;

    while (*done < len) {
        uint64_t n;

        if (!*budget) {
            r = MLX5_OP_AGAIN;
            break;
        }
        if (!src.left) {
            r = mlx5_cursor_fill(op, &src, len - *done);
            if (r != MLX5_OP_GO) {
                break;
            }
        }
        if (!dst.left) {
            r = mlx5_cursor_fill(op, &dst, len - *done);
            if (r != MLX5_OP_GO) {
                break;
            }
        }
        n = MIN(MIN(src.left, dst.left), *budget);
        mlx5_copy(&src, &dst, n);
        mlx5_cursor_advance(&src, n);
        mlx5_cursor_advance(&dst, n);
        *done += n;
        *budget -= n;
        if (mlx5_cursor_is_device(&src) || mlx5_cursor_is_device(&dst)) {
            /* Translations may change: no pointer stays. */
            mlx5_cursor_drop(&src);
            mlx5_cursor_drop(&dst);
        }
    }
    mlx5_cursor_drop(&src);
    mlx5_cursor_drop(&dst);
    return r;
}

/* The GRH goes before the message; it is in op->data[0..39]. */
static Mlx5OpResult mlx5_op_copy_grh(Mlx5Op *op)
{
    Mlx5Side grh = { .is_inline = true, .off = MLX5_GRH_LEN - op->grh_left };
    uint64_t done = grh.off, budget = MLX5_GRH_LEN;
    Mlx5OpResult r;

    r = mlx5_op_copy(op, &grh, &op->dst, MLX5_GRH_LEN, &done, &budget);
    op->grh_left = MLX5_GRH_LEN - done;
    return r;
}

Mlx5OpResult mlx5_op_peek(Mlx5Op *op, uint8_t *head, uint32_t n)
{
    Mlx5Side from = op->src, to = { .is_inline = true };
    uint64_t done = 0, budget = n;
    Mlx5OpResult r;

    if (op->src.is_inline) {
        memcpy(head, op->data + op->src.off, n);
        return MLX5_OP_GO;
    }
    r = mlx5_op_copy(op, &from, &to, n, &done, &budget);
    if (r == MLX5_OP_GO) {
        memcpy(head, op->data, n);
    }
    return r;
}

static uint64_t mlx5_atomic_new(uint64_t old, void *opaque)
{
    const Mlx5Op *op = opaque;
    uint64_t sum, carry, bit;

    switch (op->opcode) {
    case MLX5_OP_ATOMIC_CS:
    case MLX5_OP_ATOMIC_MASKED_CS:
        if ((old ^ op->compare) & op->compare_mask) {
            return old;
        }
        return (old & ~op->swap_add_mask) | (op->swap_add & op->swap_add_mask);
    case MLX5_OP_ATOMIC_FA:
        return old + op->swap_add;
    default:
        /* Masked add: a set mask bit is the top of a field of its own. */
        sum = 0;
        carry = 0;
        for (bit = 1; bit; bit <<= 1) {
            bool a = old & bit, b = op->swap_add & bit;

            sum |= (a ^ b ^ carry) ? bit : 0;
            carry = (a && b) || (carry && (a || b));
            if (op->swap_add_mask & bit) {
                carry = 0;
            }
        }
        return sum;
    }
}

/* Executes an atomic once; its result is then sent back like inline data. */
static Mlx5OpResult mlx5_op_atomic(Mlx5Op *op)
{
    Mlx5Side s = { .remote = true, .nsge = 1, .access = MLX5_ACC_ATOMIC };
    Mlx5MkeyReq req = {
        .key = op->remote[0].key,
        .pd = op->remote_pd,
        .qpn = op->peer->obj.id,
        .access = MLX5_ACC_ATOMIC,
        .va = op->remote[0].va,
        .len = 8,
    };
    Mlx5MkeyRun run;
    uint64_t old;
    bool null;
    Mlx5OpResult r = mlx5_side_translate(op, &s, &req, &run, &null);

    if (r != MLX5_OP_GO) {
        return r;
    }
    if (null || run.len < 8) {
        return mlx5_transport_fail(op, true);
    }
    op->dma.ready = mlx5_op_dma_ready;
    r = mlx5_op_dma_result(op, &s, mlx5_dma_atomic(
            op->peer->hca, &run.via, &op->dma, mlx5_side_faults(op, &s),
            run.addr, 8, mlx5_atomic_new, op, &old));
    if (r != MLX5_OP_GO) {
        return r;
    }
    trace_mlx5_op_atomic(op->qp->hca->name, op->qp->obj.id, op->wqe_index,
                         req.key, req.va, old);
    stq_le_p(op->data, old);
    op->src = (Mlx5Side) { .is_inline = true };
    op->atomic_done = true;
    return MLX5_OP_GO;
}

/* A management datagram is complete: the agent's reply goes to our QP. */
static Mlx5OpResult mlx5_op_agent(Mlx5Op *op)
{
    Mlx5Qp *qp = op->qp;
    Mlx5Hca *to = mlx5_fabric_by_lid(qp->hca, op->dlid);
    uint8_t reply[256];
    bool replied;

    memset(op->data + op->len, 0, 256 - op->len);
    replied = mlx5_mad_process(to ? to : qp->hca, op->agent_to_sm,
                               qp->hca->port.lid, mlx5_qp_wire_qpn(qp),
                               op->data, reply);
    if (replied) {
        mlx5_mad_deliver(qp->hca, op->dlid, op->dqpn, mlx5_qp_wire_qpn(qp),
                         reply);
    }
    return MLX5_OP_DONE;
}

Mlx5OpResult mlx5_op_run(Mlx5Op *op, uint64_t *budget)
{
    Mlx5OpResult r = MLX5_OP_GO;

    if (op->lost) {
        /* What began at a peer that is gone cannot be taken up again. */
        op->lost = false;
        op->syndrome = mlx5_qp_reliable(op->qp) ? MLX5_SYN_RETRY_EXC : 0;
        return MLX5_OP_DONE;
    }
    if (op->fault_failed) {
        op->fault_failed = false;
        r = mlx5_transport_fail(op, op->fault_remote);
    }
    while (r == MLX5_OP_GO) {
        switch (op->state) {
        case MLX5_OPS_START:
            r = mlx5_transport_begin(op);
            break;
        case MLX5_OPS_COPY:
            if (mlx5_opcode_is_atomic(op->opcode) && !op->atomic_done) {
                r = mlx5_op_atomic(op);
            }
            if (r == MLX5_OP_GO && op->grh_left) {
                r = mlx5_op_copy_grh(op);
            }
            if (r == MLX5_OP_GO && mlx5_sig_copy_needed(op)) {
                r = mlx5_sig_copy(op, budget);
            } else if (r == MLX5_OP_GO) {
                r = mlx5_op_copy(op, &op->src, &op->dst, op->len, &op->done,
                                 budget);
            }
            if (r == MLX5_OP_GO) {
                op->state = MLX5_OPS_FINISH;
            }
            break;
        default:
            r = op->agent ? mlx5_op_agent(op) : mlx5_transport_finish(op);
            break;
        }
    }
    if (r == MLX5_OP_DONE) {
        if (op->has_recv) {
            mlx5_rq_abort(op->peer, op);
        }
        mlx5_op_unbind(op);
    }
    return r;
}

void mlx5_op_relink(Mlx5Op *op)
{
    Mlx5Hca *to = NULL;
    Mlx5Qp *peer;

    if (op->state != MLX5_OPS_START && op->peer_qpn) {
        to = mlx5_fabric_by_guid(op->qp->hca, op->peer_guid);
        peer = to ? mlx5_qp_find(to, op->peer_qpn) : NULL;
        if (!peer) {
            op->has_recv = false;
            op->lost = true;
            op->wait = MLX5_WAIT_NONE;
            return;
        }
        mlx5_op_bind(op, peer);
        if (op->has_recv && !op->recv_is_srq) {
            peer->rx_busy = true;
        }
    }
    switch (op->wait) {
    case MLX5_WAIT_FAULT:
        op->waiter.wake = mlx5_op_resumed;
        op->fault_hca = op->fault_remote ? to : op->qp->hca;
        if (!op->fault_hca || !mlx5_odp_reattach(op->fault_hca, &op->waiter)) {
            op->wait = MLX5_WAIT_NONE;
            op->fault_hca = NULL;
        }
        break;
    case MLX5_WAIT_RNR:
    case MLX5_WAIT_RETRY:
    case MLX5_WAIT_PACE:
        mlx5_sched_at(op, op->wake_at);
        break;
    default:
        op->wait = MLX5_WAIT_NONE;
        break;
    }
}

static int mlx5_op_pre_save(void *opaque)
{
    Mlx5Op *op = opaque;

    op->peer_guid = op->peer ? op->peer->hca->port.port_guid : 0;
    op->peer_qpn = op->peer ? op->peer->obj.id : 0;
    return 0;
}

static int mlx5_op_post_load(void *opaque, int version_id)
{
    Mlx5Op *op = opaque;

    if (op->src.nsge > MLX5_OP_MAX_SGE || op->dst.nsge > MLX5_OP_MAX_SGE ||
        op->state > MLX5_OPS_FINISH || op->done > op->len ||
        op->grh_left > MLX5_GRH_LEN || op->tm > MLX5_TM_RNDV) {
        return -EINVAL;
    }
    return 0;
}

static const VMStateDescription vmstate_mlx5_sge = {
    .name = "mlx5/sge",
    .version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(key, Mlx5Sge),
        VMSTATE_UINT32(len, Mlx5Sge),
        VMSTATE_UINT64(va, Mlx5Sge),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_mlx5_side = {
    .name = "mlx5/side",
    .version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(remote, Mlx5Side),
        VMSTATE_BOOL(is_inline, Mlx5Side),
        VMSTATE_UINT8(nsge, Mlx5Side),
        VMSTATE_UINT8(cur, Mlx5Side),
        VMSTATE_UINT32(off, Mlx5Side),
        VMSTATE_UINT32(access, Mlx5Side),
        VMSTATE_END_OF_LIST()
    }
};

/* Elements are allocated as they come, and not zeroed. */
static int mlx5_op_pre_load(void *opaque)
{
    memset(opaque, 0, sizeof(Mlx5Op));
    return 0;
}

static bool mlx5_op_sig_needed(void *opaque)
{
    return ((Mlx5Op *)opaque)->sig || ((Mlx5Op *)opaque)->sig_failed;
}

static int mlx5_op_sig_pre_load(void *opaque)
{
    ((Mlx5Op *)opaque)->sig = g_new0(Mlx5SigCopy, 1);
    return 0;
}

static const VMStateDescription vmstate_mlx5_op_sig = {
    .name = "mlx5/op/sig",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_op_sig_needed,
    .pre_load = mlx5_op_sig_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(sig_failed, Mlx5Op),
        VMSTATE_STRUCT_POINTER(sig, Mlx5Op, vmstate_mlx5_sig_copy,
                               Mlx5SigCopy),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_op = {
    .name = "mlx5/op",
    .version_id = 1,
    .pre_load = mlx5_op_pre_load,
    .pre_save = mlx5_op_pre_save,
    .post_load = mlx5_op_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(opcode, Mlx5Op),
        VMSTATE_UINT8(fm_ce_se, Mlx5Op),
        VMSTATE_UINT8(state, Mlx5Op),
        VMSTATE_UINT8(wait, Mlx5Op),
        VMSTATE_UINT8(syndrome, Mlx5Op),
        VMSTATE_UINT16(wqe_index, Mlx5Op),
        VMSTATE_UINT16(wqe_bbs, Mlx5Op),
        VMSTATE_UINT32(imm, Mlx5Op),
        VMSTATE_UINT16(dlid, Mlx5Op),
        VMSTATE_UINT32(dqpn, Mlx5Op),
        VMSTATE_UINT32(qkey, Mlx5Op),
        VMSTATE_UINT32(xrc_srqn, Mlx5Op),
        VMSTATE_UINT64(dc_key, Mlx5Op),
        VMSTATE_BOOL(mcast, Mlx5Op),
        VMSTATE_UINT16(mc_lid, Mlx5Op),
        VMSTATE_UINT32(mc_id, Mlx5Op),
        VMSTATE_UINT16(dci_stream, Mlx5Op),
        VMSTATE_BOOL(has_grh, Mlx5Op),
        VMSTATE_UINT8(grh_left, Mlx5Op),
        VMSTATE_BOOL(agent, Mlx5Op),
        VMSTATE_BOOL(agent_to_sm, Mlx5Op),
        VMSTATE_UINT8(sl, Mlx5Op),
        VMSTATE_UINT16(src_lid, Mlx5Op),
        VMSTATE_UINT32(src_qpn, Mlx5Op),
        VMSTATE_UINT64(len, Mlx5Op),
        VMSTATE_UINT64(done, Mlx5Op),
        VMSTATE_STRUCT(src, Mlx5Op, 1, vmstate_mlx5_side, Mlx5Side),
        VMSTATE_STRUCT(dst, Mlx5Op, 1, vmstate_mlx5_side, Mlx5Side),
        VMSTATE_STRUCT_ARRAY(local, Mlx5Op, MLX5_OP_MAX_SGE, 1,
                             vmstate_mlx5_sge, Mlx5Sge),
        VMSTATE_STRUCT_ARRAY(remote, Mlx5Op, MLX5_OP_MAX_SGE, 1,
                             vmstate_mlx5_sge, Mlx5Sge),
        VMSTATE_UINT8_ARRAY(data, Mlx5Op, MLX5_WQE_MAX),
        VMSTATE_UINT64(swap_add, Mlx5Op),
        VMSTATE_UINT64(compare, Mlx5Op),
        VMSTATE_UINT64(swap_add_mask, Mlx5Op),
        VMSTATE_UINT64(compare_mask, Mlx5Op),
        VMSTATE_BOOL(atomic_done, Mlx5Op),
        VMSTATE_UINT64(peer_guid, Mlx5Op),
        VMSTATE_UINT32(peer_qpn, Mlx5Op),
        VMSTATE_BOOL(has_recv, Mlx5Op),
        VMSTATE_BOOL(recv_is_srq, Mlx5Op),
        VMSTATE_UINT8(dst_nrecv, Mlx5Op),
        VMSTATE_UINT16(recv_index, Mlx5Op),
        VMSTATE_UINT32(recv_srqn, Mlx5Op),
        VMSTATE_UINT32(remote_pd, Mlx5Op),
        VMSTATE_UINT32(recv_user_index, Mlx5Op),
        VMSTATE_UINT32(recv_cqn, Mlx5Op),
        VMSTATE_UINT8(rnr_left, Mlx5Op),
        VMSTATE_UINT8(retry_left, Mlx5Op),
        VMSTATE_BOOL(resp_booked, Mlx5Op),
        VMSTATE_INT64(wake_at, Mlx5Op),
        VMSTATE_UINT64(waiter.token, Mlx5Op),
        VMSTATE_BOOL(waiter.held, Mlx5Op),
        VMSTATE_BOOL(waiter.counted, Mlx5Op),
        VMSTATE_BOOL(fault_remote, Mlx5Op),
        VMSTATE_BOOL(fault_failed, Mlx5Op),
        VMSTATE_BOOL(lost, Mlx5Op),
        VMSTATE_UINT8(tm, Mlx5Op),
        VMSTATE_BOOL(tm_own, Mlx5Op),
        VMSTATE_UINT8_ARRAY(tm_head, Mlx5Op, MLX5_TM_HEAD),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_mlx5_op_sig,
        NULL
    }
};
