/*
 * mlx5: which queue pair runs when
 *
 * A doorbell runs its queue pair at once for a bounded number of bytes, which
 * is what keeps latency low; what is left, and everything that wakes up
 * later, takes turns in a bottom half. Both hold the BQL.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "system/runstate.h"
#include "mlx5-caps.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-fabric.h"
#include "mlx5-qp.h"
#include "trace.h"

enum {
    SLICE_NOW = 256 * KiB,        /* bytes that a doorbell may move itself */
    SLICE_QP = 1 * MiB,           /* bytes of one queue pair's turn */
    SLICE_BH = 4 * MiB,           /* bytes of one bottom half */
    ERR_POLL_MIN = 1 * SCALE_MS,
    ERR_POLL_MAX = 50 * SCALE_MS,
};

/* Slices that are on, of all HCAs. */
static unsigned slices;

static void mlx5_sched_enter(Mlx5QpState *s)
{
    s->running = true;
    slices++;
}

static void mlx5_sched_leave(Mlx5QpState *s)
{
    s->running = false;
    if (!--slices) {
        mlx5_mini_flush_all();
    }
}

bool mlx5_sched_in_slice(void)
{
    return slices;
}

void mlx5_sched_qp(Mlx5Qp *qp)
{
    Mlx5QpState *s = qp->hca->qp;

    if (!qp->queued) {
        qp->queued = true;
        QTAILQ_INSERT_TAIL(&s->run, qp, run);
    }
    qemu_bh_schedule(s->bh);
}

void mlx5_sched_now(Mlx5Qp *qp)
{
    Mlx5QpState *s = qp->hca->qp;
    uint64_t budget = SLICE_NOW;
    bool more;

    if (s->running || qp->queued || s->relink) {
        mlx5_sched_qp(qp);
        return;
    }
    mlx5_sched_enter(s);
    more = mlx5_sq_run(qp, &budget);
    mlx5_sched_leave(s);
    if (more) {
        mlx5_sched_qp(qp);
    }
}

/*
 * At once, too: this is what keeps a fault short. But not in the middle of
 * another HCA's slice, whose operations may rest on what this one changes.
 */
void mlx5_sched_resume(Mlx5Qp *qp)
{
    if (slices) {
        mlx5_sched_qp(qp);
    } else {
        mlx5_sched_now(qp);
    }
}

static void mlx5_sched_bh(void *opaque)
{
    Mlx5QpState *s = opaque;
    uint64_t left = SLICE_BH;

    if (s->running || s->relink) {
        return;
    }
    mlx5_sched_enter(s);
    while (left && !QTAILQ_EMPTY(&s->run)) {
        Mlx5Qp *qp = QTAILQ_FIRST(&s->run);
        uint64_t slice = MIN(left, (uint64_t)SLICE_QP), budget = slice;

        QTAILQ_REMOVE(&s->run, qp, run);
        qp->queued = false;
        if (mlx5_sq_run(qp, &budget)) {
            mlx5_sched_qp(qp);
        }
        left -= slice - budget;
    }
    mlx5_sched_leave(s);
    if (!QTAILQ_EMPTY(&s->run)) {
        qemu_bh_schedule(s->bh);
    }
}

static void mlx5_sched_rearm(Mlx5QpState *s)
{
    Mlx5Op *first = QTAILQ_FIRST(&s->timed);

    if (first) {
        timer_mod_ns(s->timer, first->wake_at);
    } else {
        timer_del(s->timer);
    }
}

void mlx5_sched_at(Mlx5Op *op, int64_t when)
{
    Mlx5QpState *s = op->qp->hca->qp;
    Mlx5Op *after;

    op->wake_at = when;
    QTAILQ_FOREACH_REVERSE(after, &s->timed, timed) {
        if (after->wake_at <= when) {
            break;
        }
    }
    if (after) {
        QTAILQ_INSERT_AFTER(&s->timed, after, op, timed);
    } else {
        QTAILQ_INSERT_HEAD(&s->timed, op, timed);
        mlx5_sched_rearm(s);
    }
}

void mlx5_sched_untimed(Mlx5Op *op)
{
    Mlx5QpState *s = op->qp->hca->qp;

    QTAILQ_REMOVE(&s->timed, op, timed);
    mlx5_sched_rearm(s);
}

static void mlx5_sched_timer(void *opaque)
{
    Mlx5QpState *s = opaque;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    Mlx5Op *op;

    while ((op = QTAILQ_FIRST(&s->timed)) && op->wake_at <= now) {
        QTAILQ_REMOVE(&s->timed, op, timed);
        mlx5_op_wake(op);
    }
    mlx5_sched_rearm(s);
}

/*
 * Posting to a receive queue rings no doorbell, yet what is posted in ERR
 * must come back flushed (ib_drain_rq() waits for it).
 */
static void mlx5_sched_err_timer(void *opaque)
{
    Mlx5QpState *s = opaque;
    Mlx5Qp *qp, *next;
    bool found = false;

    QTAILQ_FOREACH_SAFE(qp, &s->err, err, next) {
        uint16_t before = qp->rq_ci;

        mlx5_rq_flush(qp);
        found |= qp->rq_ci != before;
    }
    if (!QTAILQ_EMPTY(&s->err)) {
        s->err_period = found ? ERR_POLL_MIN
                              : MIN(s->err_period * 2, ERR_POLL_MAX);
        timer_mod_ns(s->err_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                   s->err_period);
    }
}

void mlx5_sched_poll_err(Mlx5Qp *qp)
{
    Mlx5QpState *s = qp->hca->qp;

    if (!qp->err_polled && qp->rq_entries && qp->dbr_addr) {
        qp->err_polled = true;
        QTAILQ_INSERT_TAIL(&s->err, qp, err);
        s->err_period = ERR_POLL_MIN;
        timer_mod_ns(s->err_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                   s->err_period);
    }
}

void mlx5_sched_forget(Mlx5Qp *qp)
{
    Mlx5QpState *s = qp->hca->qp;

    if (qp->queued) {
        QTAILQ_REMOVE(&s->run, qp, run);
        qp->queued = false;
    }
    if (qp->err_polled) {
        QTAILQ_REMOVE(&s->err, qp, err);
        qp->err_polled = false;
    }
}

/*
 * Operations that came with the migration stream find their peers when the
 * machine starts: by then every HCA is loaded.
 */
static void mlx5_sched_relink(Mlx5QpState *s)
{
    Mlx5Obj *o;

    QTAILQ_FOREACH(o, &s->hca->qps.all, next) {
        Mlx5Qp *qp = (Mlx5Qp *)o;

        if (qp->op) {
            mlx5_op_relink(qp->op);
        }
        if (qp->state == MLX5_QPS_ERR) {
            mlx5_sched_poll_err(qp);
        }
        mlx5_sched_qp(qp);
    }
    if (s->hca->bf_qpn) {
        Mlx5Qp *qp = mlx5_qp_find(s->hca, s->hca->bf_qpn);

        s->hca->bf_qpn = 0;
        if (qp) {
            mlx5_sq_doorbell(qp);
        }
    }
}

static void mlx5_sched_bf_timer(void *opaque)
{
    mlx5_bf_flush(opaque);
}

static void mlx5_sched_vm_state(void *opaque, bool running, RunState state)
{
    Mlx5QpState *s = opaque;

    if (running && s->relink) {
        s->relink = false;
        mlx5_sched_relink(s);
    }
}

void mlx5_qp_init(Mlx5Hca *h)
{
    Mlx5QpState *s = g_new0(Mlx5QpState, 1);

    s->hca = h;
    h->qp = s;
    mlx5_table_init(h, &h->qps, "qp", MLX5_FIRST_QPN, (1u << MLX5_LOG_MAX_QP) -
                                             MLX5_FIRST_QPN);
    mlx5_table_init(h, &h->srqs, "srq", 1, (1u << MLX5_LOG_MAX_SRQ) - 1);
    QTAILQ_INIT(&s->run);
    QTAILQ_INIT(&s->err);
    QTAILQ_INIT(&s->timed);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, mlx5_sched_timer, s);
    s->err_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, mlx5_sched_err_timer, s);
    s->bh = aio_bh_new_guarded(qemu_get_aio_context(), mlx5_sched_bh, s,
                               h->guard);
    s->bf_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, mlx5_sched_bf_timer, h);
    s->vmstate = qemu_add_vm_change_state_handler(mlx5_sched_vm_state, s);
    s->free_ops = g_ptr_array_new_with_free_func(g_free);
    s->half_uar = UINT32_MAX;
}

void mlx5_qp_fini(Mlx5Hca *h)
{
    Mlx5QpState *s = h->qp;

    if (!s) {
        return;
    }
    qemu_del_vm_change_state_handler(s->vmstate);
    qemu_bh_delete(s->bh);
    timer_free(s->bf_timer);
    timer_free(s->timer);
    timer_free(s->err_timer);
    g_ptr_array_unref(s->free_ops);
    mlx5_table_fini(&h->qps);
    mlx5_table_fini(&h->srqs);
    g_free(s);
    h->qp = NULL;
}
