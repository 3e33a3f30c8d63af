/*
 * mlx5 UAR pages: which doorbell, for whom
 *
 * Offsets within a UAR page (Linux: include/linux/mlx5/{cq,driver}.h,
 * drivers/.../mlx5/core/eq.c): CQ 0x20, EQ 0x40 and 0x48, send queues from
 * 0x800 on in registers of 256 bytes, of which the first 8 bytes ring.
 *
 * BlueFlame: a driver may write the WQE itself into the register, in pieces
 * of 64 bytes, whose first 8 ring as ever. It is in memory, too, and that is
 * where a queue pair's is read from: nothing is gained by waiting for bytes
 * that come one store at a time. Only Linux's test of write combining, which
 * posts NOPs to a queue of CREATE_SQ, looks which of the two was executed.
 * Such a queue's doorbell is served at once, until more have followed one;
 * from then on its doorbells wait for the WQE, for a moment or until the CPU
 * goes on with another one.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-core.h"
#include "mlx5-cq.h"
#include "mlx5-doorbell.h"
#include "mlx5-eq.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "trace.h"

enum {
    UAR_CQ = 0x20,
    UAR_EQ_ARM = 0x40,
    UAR_EQ_CI = 0x48,
    UAR_SQ = 0x800,
    UAR_SQ_REG = 0x100,

    BF_WAIT_NS = 100 * SCALE_US,
};

/* @qp: the one that @qpn_ds names, if there is one. */
static void mlx5_uar_sq(Mlx5Hca *h, uint32_t uar, uint32_t qpn_ds, Mlx5Qp *qp)
{
    if (!qp || qp->uar_page != uar) {
        mlx5_guest_error(h, "send doorbell for QP 0x%x in UAR 0x%x, which is "
                         "not its own", qpn_ds >> 8, uar);
        return;
    }
    mlx5_sq_doorbell(qp);
}

static void mlx5_uar_cq(Mlx5Hca *h, uint32_t uar, uint64_t value)
{
    uint32_t cqn = value & 0xffffff;
    Mlx5Cq *cq = mlx5_cq_find(h, cqn);

    if (!cq || cq->uar_page != uar) {
        mlx5_guest_error(h, "doorbell for CQ 0x%x in UAR 0x%x, which is not "
                         "its own", cqn, uar);
        return;
    }
    mlx5_cq_doorbell(h, value);
}

void mlx5_bf_flush(Mlx5Hca *h)
{
    Mlx5QpState *s = h->qp;

    s->bf_len = 0;
    if (s->bf_wait) {
        uint32_t qpn_ds = ldl_be_p(s->bf_bytes + 4);
        Mlx5Qp *qp = mlx5_qp_find(h, qpn_ds >> 8);

        s->bf_wait = false;
        if (qp) {
            qp->bf_mode = false;
        }
        mlx5_uar_sq(h, s->bf_uar, qpn_ds, qp);
    }
}

static void mlx5_bf_begin(Mlx5Hca *h, uint32_t uar, uint32_t off,
                          const uint8_t bytes[8])
{
    uint32_t qpn_ds = ldl_be_p(bytes + 4);
    Mlx5Qp *qp = mlx5_qp_find(h, qpn_ds >> 8);
    Mlx5QpState *s = h->qp;

    mlx5_bf_flush(h);
    if (!qp || qp->st != MLX5_ST_SQ) {
        mlx5_uar_sq(h, uar, qpn_ds, qp);
        return;
    }
    s->bf_uar = uar;
    s->bf_off = off;
    s->bf_len = 8;
    memcpy(s->bf_bytes, bytes, 8);
    if (qp->bf_mode && qp->uar_page == uar &&
        (qpn_ds & 0x3f) * MLX5_WQE_DS <= sizeof(s->bf_bytes)) {
        s->bf_wait = true;
        timer_mod_ns(s->bf_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                  BF_WAIT_NS);
    } else {
        mlx5_uar_sq(h, uar, qpn_ds, qp);
    }
}

static void mlx5_bf_more(Mlx5Hca *h, uint32_t uar, uint32_t off,
                         const uint8_t bytes[8])
{
    Mlx5QpState *s = h->qp;
    uint32_t qpn_ds;
    Mlx5Qp *qp;

    if (!s->bf_len || uar != s->bf_uar || off != s->bf_off + s->bf_len) {
        mlx5_bf_flush(h);
        return;
    }
    memcpy(s->bf_bytes + s->bf_len, bytes, 8);
    s->bf_len += 8;
    if (s->bf_len % MLX5_WQE_BB) {
        return;
    }
    qpn_ds = ldl_be_p(s->bf_bytes + 4);
    qp = mlx5_qp_find(h, qpn_ds >> 8);
    if (!qp || qp->uar_page != uar) {
        s->bf_wait = false;
        return;
    }
    qp->bf_mode = true;
    if (s->bf_wait && (qpn_ds & 0x3f) * MLX5_WQE_DS <= s->bf_len) {
        s->bf_wait = false;
        s->bf_len = 0;
        timer_del(s->bf_timer);
        trace_mlx5_blueflame(h->name, qp->obj.id,
                             lduw_be_p(s->bf_bytes + 1));
        mlx5_sq_doorbell_bf(qp, s->bf_bytes);
    }
}

void mlx5_uar_write(Mlx5Hca *h, uint32_t uar, uint32_t off, uint64_t value,
                    unsigned size)
{
    Mlx5QpState *s = h->qp;
    uint8_t bytes[8];
    uint32_t hi, lo;

    if (!mlx5_uar_exists(h, uar)) {
        mlx5_guest_error(h, "doorbell in UAR 0x%x, which is not allocated",
                         uar);
        return;
    }
    trace_mlx5_doorbell(h->name, uar, off, value, size);
    stq_le_p(bytes, value);
    hi = ldl_be_p(bytes);

    if (size == 4) {
        /* A CPU that cannot write 8 bytes writes the halves in order. */
        if (off == UAR_EQ_ARM || off == UAR_EQ_CI) {
            mlx5_eq_doorbell(h, uar, hi, off == UAR_EQ_ARM);
        } else if (off == UAR_CQ) {
            s->half_uar = uar;
            s->half = hi;
        } else if (off == UAR_CQ + 4 && s->half_uar == uar) {
            mlx5_uar_cq(h, uar, (uint64_t)s->half << 32 | hi);
        } else if (off >= UAR_SQ && off % UAR_SQ_REG == 4) {
            mlx5_bf_flush(h);
            mlx5_uar_sq(h, uar, hi, mlx5_qp_find(h, hi >> 8));
        }
        return;
    }
    if (size != 8) {
        mlx5_guest_error(h, "doorbell of %u bytes", size);
        return;
    }
    lo = ldl_be_p(bytes + 4);
    if (off >= UAR_SQ) {
        if (off % UAR_SQ_REG == 0) {
            mlx5_bf_begin(h, uar, off, bytes);
        } else {
            mlx5_bf_more(h, uar, off, bytes);
        }
        return;
    }
    switch (off) {
    case UAR_CQ:
        mlx5_uar_cq(h, uar, (uint64_t)hi << 32 | lo);
        break;
    case UAR_EQ_ARM:
    case UAR_EQ_CI:
        mlx5_eq_doorbell(h, uar, hi, off == UAR_EQ_ARM);
        break;
    default:
        break;
    }
}
