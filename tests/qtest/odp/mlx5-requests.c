/*
 * A small mlx5 driver for qtests: work requests, UMR, page faults
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    WAIT_US = 10 * 1000 * 1000,
    UAR_SQ = 0x800,
    TERMINATE_KEY = 0x100,
};

void qmlx5_wqe(QMlx5Wqe *w, uint8_t op, uint8_t flags, uint32_t imm)
{
    memset(w, 0, sizeof(*w));
    stl_be_p(w->b, op);
    w->b[11] = flags;
    stl_be_p(w->b + 12, imm);
    w->len = 16;
}

static uint8_t *wqe_seg(QMlx5Wqe *w, uint32_t len)
{
    uint8_t *seg = w->b + w->len;

    g_assert_cmpint(w->len + len, <=, sizeof(w->b));
    w->len += len;
    return seg;
}

void qmlx5_wqe_raddr(QMlx5Wqe *w, uint64_t va, uint32_t rkey)
{
    uint8_t *seg = wqe_seg(w, 16);

    stq_be_p(seg, va);
    stl_be_p(seg + 8, rkey);
}

void qmlx5_wqe_data(QMlx5Wqe *w, uint32_t lkey, uint64_t va, uint32_t len)
{
    uint8_t *seg;

    if (!len) {
        return;                   /* 0 would stand for 2 GiB */
    }
    seg = wqe_seg(w, 16);
    stl_be_p(seg, len);
    stl_be_p(seg + 4, lkey);
    stq_be_p(seg + 8, va);
}

void qmlx5_wqe_inline(QMlx5Wqe *w, const void *p, uint32_t len)
{
    uint8_t *seg = wqe_seg(w, ROUND_UP(len + 4, 16));

    stl_be_p(seg, len | 1u << 31);
    memcpy(seg + 4, p, len);
}

void qmlx5_wqe_atomic(QMlx5Wqe *w, uint64_t swap_add, uint64_t compare)
{
    uint8_t *seg = wqe_seg(w, 16);

    stq_be_p(seg, swap_add);
    stq_be_p(seg + 8, compare);
}

void qmlx5_wqe_av(QMlx5Wqe *w, uint16_t dlid, uint32_t dqpn, uint32_t qkey)
{
    uint8_t *seg = wqe_seg(w, 48);

    stl_be_p(seg, qkey);
    stl_be_p(seg + 8, dqpn | 1u << 31);
    stw_be_p(seg + 14, dlid);
}

void qmlx5_queue(QMlx5Qp *qp, QMlx5Wqe *w)
{
    uint32_t bbs = DIV_ROUND_UP(w->len, 64), size = 1u << qp->a.log_sq;
    uint32_t idx = qp->sq_pi;

    g_assert_cmpint(bbs, <=, size);
    stl_be_p(w->b, (qmlx5_be32(w->b) & 0xff0000ff) | (idx & 0xffff) << 8);
    if (!qmlx5_be32(w->b + 4)) {
        stl_be_p(w->b + 4, qp->qpn << 8 | w->len / 16);
    }
    for (uint32_t i = 0; i < bbs; i++) {
        qmlx5_write(qp->d, qp->sq_buf + ((idx + i) & (size - 1)) * 64,
                    w->b + i * 64, 64);
    }
    qp->sq_pi += bbs;
}

void qmlx5_ring(QMlx5Qp *qp)
{
    uint8_t b[8] = { };

    qmlx5_put32(qp->d, qp->dbr + 4, qp->sq_pi);
    stl_be_p(b, (uint32_t)qp->sq_pi << 8);
    stl_be_p(b + 4, qp->qpn << 8);
    qtest_memwrite(qp->d->qts, qp->d->bar + (uint64_t)qp->uar * QMLX5_PAGE +
                   UAR_SQ, b, 8);
}

void qmlx5_post(QMlx5Qp *qp, QMlx5Wqe *w)
{
    qmlx5_queue(qp, w);
    qmlx5_ring(qp);
}

void qmlx5_post_rdma(QMlx5Qp *qp, uint8_t op, uint32_t lkey, uint64_t va,
                     uint32_t len, uint32_t rkey, uint64_t raddr)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, op, QMLX5_F_SIGNALED, 0x1234);
    qmlx5_wqe_raddr(&w, raddr, rkey);
    qmlx5_wqe_data(&w, lkey, va, len);
    qmlx5_post(qp, &w);
}

void qmlx5_post_send(QMlx5Qp *qp, uint8_t op, uint32_t lkey, uint64_t va,
                     uint32_t len)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, op, QMLX5_F_SIGNALED, 0x1234);
    if (qp->a.st == QMLX5_UD) {
        qmlx5_wqe_av(&w, qp->dlid, qp->remote_qpn, qp->a.qkey);
    }
    qmlx5_wqe_data(&w, lkey, va, len);
    qmlx5_post(qp, &w);
}

void qmlx5_post_atomic(QMlx5Qp *qp, uint8_t op, uint32_t lkey, uint64_t va,
                       uint32_t rkey, uint64_t raddr, uint64_t swap_add,
                       uint64_t compare)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, op, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_raddr(&w, raddr, rkey);
    qmlx5_wqe_atomic(&w, swap_add, compare);
    qmlx5_wqe_data(&w, lkey, va, 8);
    qmlx5_post(qp, &w);
}

void qmlx5_recv_sgl(QMlx5Qp *qp, const QMlx5Sge *sge, unsigned n)
{
    uint32_t stride = 16u << qp->a.log_rq_stride;
    uint32_t slot = qp->rq_pi & ((1u << qp->a.log_rq) - 1);
    uint8_t b[512] = { };

    g_assert_cmpint(n * 16, <=, stride);
    g_assert_cmpint(stride, <=, sizeof(b));
    for (unsigned i = 0; i < n; i++) {
        stl_be_p(b + i * 16, sge[i].len);
        stl_be_p(b + i * 16 + 4, sge[i].key);
        stq_be_p(b + i * 16 + 8, sge[i].va);
    }
    if (n * 16 < stride) {
        stl_be_p(b + n * 16 + 4, TERMINATE_KEY);
    }
    qmlx5_write(qp->d, qp->rq_buf + slot * stride, b, stride);
    qp->rq_pi++;
    qmlx5_put32(qp->d, qp->dbr, qp->rq_pi);
}

void qmlx5_recv(QMlx5Qp *qp, uint32_t lkey, uint64_t va, uint32_t len)
{
    QMlx5Sge sge = { lkey, va, len };

    qmlx5_recv_sgl(qp, &sge, 1);
}

/* UMR */

void qmlx5_wqe_umr(QMlx5Wqe *w, const QMlx5Umr *u)
{
    uint8_t *ctrl, *seg;

    qmlx5_wqe(w, QMLX5_OP_UMR, QMLX5_F_SIGNALED, u->key);
    ctrl = wqe_seg(w, 48);
    ctrl[0] = u->flags;
    stw_be_p(ctrl + 4, u->octowords);
    stw_be_p(ctrl + 6, u->bsf ? 4 : u->offset);
    stq_be_p(ctrl + 8, u->mask);
    stl_be_p(ctrl + 16, u->offset >> 16);
    seg = wqe_seg(w, 64);
    seg[0] = u->free ? 0x40 : 0;
    seg[2] = (u->access & QMLX5_LR ? 1 << 2 : 0) |
             (u->access & QMLX5_LW ? 1 << 3 : 0) |
             (u->access & QMLX5_RR ? 1 << 4 : 0) |
             (u->access & QMLX5_RW ? 1 << 5 : 0) |
             (u->access & QMLX5_A ? 1 << 6 : 0) | 1 << 7;
    stl_be_p(seg + 4, 0xffffff00 | u->variant);
    stl_be_p(seg + 12, u->pd | (uint32_t)u->bsf_en << 30 |
                       (uint32_t)u->sigerr << 26);
    stq_be_p(seg + 16, u->va);
    stq_be_p(seg + 24, u->len);
    stl_be_p(seg + 52, u->xlt);
    seg[59] = u->log_page;
    if (u->inl) {
        memcpy(wqe_seg(w, ROUND_UP(u->bytes, 64)), u->inl, u->bytes);
        if (u->bsf) {
            memcpy(wqe_seg(w, 64), u->bsf, 64);
        }
    } else if (u->bytes) {
        qmlx5_wqe_data(w, u->lkey, u->addr, u->bytes);
    }
}

static void umr_qp(QMlx5 *d)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_ST_UMR);

    if (!d->umr_qp) {
        d->umr_cq = qmlx5_cq_new(d, 8);
        a.rq_type = 3;
        a.log_sq = 8;
        a.scq = a.rcq = d->umr_cq;
        d->umr_qp = qmlx5_qp_new(d, &a);
        qmlx5_qp_rts(d->umr_qp);
    }
}

uint8_t qmlx5_umr(QMlx5 *d, const QMlx5Umr *u)
{
    uint8_t cqe[64];
    QMlx5Wqe w;

    umr_qp(d);
    qmlx5_wqe_umr(&w, u);
    qmlx5_post(d->umr_qp, &w);
    qmlx5_cq_wait(d->umr_cq, cqe);
    if (qmlx5_cqe_op(cqe) == QMLX5_CQE_REQ) {
        return 0;
    }
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ_ERR);
    qmlx5_qp_revive(d->umr_qp);
    return qmlx5_cqe_syndrome(cqe);
}

void qmlx5_mtt_update(QMlx5 *d, uint32_t key, uint32_t first,
                      const uint64_t *mtt, uint32_t n)
{
    uint32_t bytes = ROUND_UP(n * 8, 64);
    g_autofree uint8_t *b = g_malloc0(bytes);
    static uint64_t list;
    static QMlx5Host *list_of;
    QMlx5Umr u = {
        .key = key, .flags = QMLX5_UMR_OFFSET | QMLX5_UMR_CHECK_FREE,
        .octowords = bytes / 16, .offset = first / 2, .lkey = d->lkey,
        .bytes = bytes,
    };

    /* In units of 64 bytes: 8 entries. */
    g_assert_cmpint(first % 8, ==, 0);
    if (list_of != d->host) {
        list = qmlx5_alloc(d->host, 64 * 1024);
        list_of = d->host;
    }
    g_assert_cmpint(bytes, <=, 64 * 1024);
    for (uint32_t i = 0; i < n; i++) {
        stq_be_p(b + 8 * i, mtt[i]);
    }
    qmlx5_write(d, list, b, bytes);
    u.addr = list;
    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
}

/* Page faults */

void qmlx5_pf_enable(QMlx5 *d, uint8_t log_size)
{
    if (!d->pf_eq) {
        d->pf_eq = qmlx5_eq_new(d, log_size, 3, 1ull << QMLX5_EV_PAGE_FAULT);
    }
}

bool qmlx5_pf_poll(QMlx5 *d, QMlx5Fault *f)
{
    uint8_t eqe[64], *p = eqe + 32;

    if (!qmlx5_eq_poll(d->pf_eq, eqe)) {
        return false;
    }
    qmlx5_eq_update(d->pf_eq, true);
    g_assert_cmphex(eqe[1], ==, QMLX5_EV_PAGE_FAULT);
    *f = (QMlx5Fault) {
        .sub_type = eqe[3], .flags = p[0],
        .token = (uint64_t)lduw_be_p(p + 6) << 32 | qmlx5_be32(p + 8),
        .pages = qmlx5_be32(p + 12) >> 12,
        .key = qmlx5_be32(p + 16), .va = ldq_be_p(p + 20),
    };
    memcpy(f->data, p, sizeof(f->data));
    return true;
}

void qmlx5_pf_wait(QMlx5 *d, QMlx5Fault *f)
{
    gint64 end = g_get_monotonic_time() + WAIT_US;

    while (!qmlx5_pf_poll(d, f)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
}

uint8_t qmlx5_pf_resume(QMlx5 *d, const QMlx5Fault *f, bool error)
{
    return qmlx5_cmd_simple(d, QMLX5_PAGE_FAULT_RESUME, 0,
                            (uint32_t)error << 31 | (f->token >> 32 & 0xffff),
                            f->token, NULL);
}
