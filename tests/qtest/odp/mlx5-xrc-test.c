/*
 * QTest: mlx5 extended reliable connections and their domains
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    CREATE_XRC_SRQ = 0x705,
    DESTROY_XRC_SRQ = 0x706,
    DEALLOC_XRCD = 0x80f,
    ST_XRC = 3,
    MEM = 16384,
};

typedef struct Bench {
    QMlx5 *d;
    uint32_t xrcd, other;         /* XRC domains */
    QMlx5Srq srq;                 /* in the first */
    QMlx5Cq *cq;                  /* of the SRQ */
    QMlx5Qp *ini, *tgt;
    uint64_t mem;
} Bench;

static uint32_t xrcd_new(QMlx5 *d)
{
    uint8_t out[16];

    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ALLOC_XRCD, 0, 0, 0, out), ==, 0);
    return MLX5_GET(out, alloc_xrcd_out, xrcd);
}

static uint8_t xrcd_free(QMlx5 *d, uint32_t xrcd)
{
    return qmlx5_cmd_simple(d, DEALLOC_XRCD, 0, xrcd, 0, NULL);
}

static uint8_t srq_new(Bench *b, QMlx5Srq *s, uint32_t xrcd, uint32_t cqn)
{
    QMlx5 *d = b->d;
    uint32_t head = MLX5_BYTES(create_xrc_srq_in);
    g_autofree uint8_t *in = g_malloc0(head + 8);
    uint8_t *ctx = MLX5_ADDR(in, create_xrc_srq_in, xrc_srq_context_entry);
    uint8_t out[16] = { }, st;

    *s = (QMlx5Srq) { .d = d, .log_size = 3, .log_stride = 6 };
    s->buf = qmlx5_alloc(d->host, QMLX5_PAGE);
    s->dbr = qmlx5_dbr_new(d);
    for (int i = 0; i < 8; i++) {
        uint8_t next[16] = { };

        stw_be_p(next + 2, (i + 1) & 7);
        qmlx5_write(d, s->buf + i * 64, next, sizeof(next));
    }
    qmlx5_cmd_head(in, CREATE_XRC_SRQ, 0);
    MLX5_SET(ctx, xrc_srqc, log_xrc_srq_size, 3);
    MLX5_SET(ctx, xrc_srqc, log_rq_stride, 2);
    MLX5_SET(ctx, xrc_srqc, xrcd, xrcd);
    MLX5_SET(ctx, xrc_srqc, pd, d->pd);
    MLX5_SET(ctx, xrc_srqc, cqn, cqn);
    MLX5_SET(ctx, xrc_srqc, user_index, 0x777);
    MLX5_SET64(ctx, srqc, dbr_addr, s->dbr);
    stq_be_p(in + head, s->buf);
    st = qmlx5_cmd(d, in, head + 8, out, sizeof(out));
    s->srqn = qmlx5_be32(out + 8) & 0xffffff;
    return st;
}

static QMlx5Qp *qp_new(Bench *b, uint32_t xrcd)
{
    QMlx5QpAttr a = qmlx5_qp_attr(b->d, ST_XRC);
    g_autofree uint8_t *in = g_malloc0(65536);
    uint8_t *qpc = MLX5_ADDR(in, create_qp_in, qpc), out[16] = { };
    QMlx5Qp *qp = g_new0(QMlx5Qp, 1);
    uint32_t len;

    g_ptr_array_add(b->d->objs, qp);
    a.rq_type = 3;
    a.scq = qmlx5_cq_new(b->d, 6);
    a.rcq = b->cq;
    qp->d = b->d;
    qp->a = a;
    qp->uar = a.uar;
    qp->buf = qp->sq_buf = qmlx5_alloc(b->d->host, 64ull << a.log_sq);
    qp->dbr = qmlx5_dbr_new(b->d);
    len = qmlx5_qp_in(qp, in);
    MLX5_SET(qpc, qpc, xrcd, xrcd);
    g_assert_cmphex(qmlx5_cmd(b->d, in, len, out, sizeof(out)), ==, 0);
    qp->qpn = qmlx5_be32(out + 8) & 0xffffff;
    return qp;
}

static Bench *bench(void)
{
    Bench *b = g_new0(Bench, 1);

    b->d = qmlx5_start("");
    b->xrcd = xrcd_new(b->d);
    b->other = xrcd_new(b->d);
    b->cq = qmlx5_cq_new(b->d, 6);
    b->mem = qmlx5_alloc(b->d->host, MEM);
    g_assert_cmphex(srq_new(b, &b->srq, b->xrcd, b->cq->cqn), ==, 0);
    b->ini = qp_new(b, b->xrcd);
    b->tgt = qp_new(b, b->xrcd);
    qmlx5_qp_connect(b->ini, b->tgt);
    qmlx5_qp_rts(b->ini);
    qmlx5_qp_rts(b->tgt);
    return b;
}

static void bench_free(Bench *b)
{
    qmlx5_stop(b->d);
    g_free(b);
}

/* A request for shared receive queue @srqn. */
static void wqe(QMlx5Wqe *w, uint8_t op, uint32_t srqn)
{
    qmlx5_wqe(w, op, QMLX5_F_SIGNALED, 0);
    stl_be_p(w->b + w->len, srqn);
    w->len += 16;
}

static void test_traffic(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t rkey = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    uint8_t cqe[64];
    QMlx5Wqe w;

    qmlx5_fill(d, b->mem, 1000, 1);
    qmlx5_srq_recv(&b->srq, d->lkey, b->mem + 4096, 4096);
    wqe(&w, QMLX5_OP_SEND, b->srq.srqn);
    qmlx5_wqe_data(&w, d->lkey, b->mem, 1000);
    qmlx5_post(b->ini, &w);
    qmlx5_cq_expect(b->ini->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_wait(b->cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SEND);
    g_assert_cmphex(qmlx5_be32(cqe + 32), ==, 0x777);
    qmlx5_expect(d, b->mem + 4096, 1000, 1);

    wqe(&w, QMLX5_OP_WRITE, b->srq.srqn);
    qmlx5_wqe_raddr(&w, b->mem + 8192, rkey);
    qmlx5_wqe_data(&w, d->lkey, b->mem, 1000);
    qmlx5_post(b->ini, &w);
    qmlx5_cq_expect(b->ini->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(d, b->mem + 8192, 1000, 1);
    bench_free(b);
}

static void test_atomics(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t rkey = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    QMlx5Wqe w;

    qmlx5_put64_le(d, b->mem, 40);
    wqe(&w, QMLX5_OP_FA, b->srq.srqn);
    qmlx5_wqe_raddr(&w, b->mem, rkey);
    qmlx5_wqe_atomic(&w, 2, 0);
    qmlx5_wqe_data(&w, d->lkey, b->mem + 64, 8);
    qmlx5_post(b->ini, &w);
    g_assert_cmpint(qmlx5_cq_expect(b->ini->a.scq, QMLX5_CQE_REQ), ==, 8);
    g_assert_cmpint(qmlx5_get64_le(d, b->mem), ==, 42);
    g_assert_cmpint(qmlx5_get64_le(d, b->mem + 64), ==, 40);

    wqe(&w, QMLX5_OP_CS, b->srq.srqn);
    qmlx5_wqe_raddr(&w, b->mem, rkey);
    qmlx5_wqe_atomic(&w, 1000, 42);
    qmlx5_wqe_data(&w, d->lkey, b->mem + 64, 8);
    qmlx5_post(b->ini, &w);
    qmlx5_cq_expect(b->ini->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(qmlx5_get64_le(d, b->mem), ==, 1000);
    g_assert_cmpint(qmlx5_get64_le(d, b->mem + 64), ==, 42);

    /* Not aligned. */
    wqe(&w, QMLX5_OP_FA, b->srq.srqn);
    qmlx5_wqe_raddr(&w, b->mem + 4, rkey);
    qmlx5_wqe_atomic(&w, 1, 0);
    qmlx5_wqe_data(&w, d->lkey, b->mem + 64, 8);
    qmlx5_post(b->ini, &w);
    qmlx5_cq_expect_err(b->ini->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_INVAL);
    g_assert_cmpint(qmlx5_get64_le(d, b->mem), ==, 1000);
    bench_free(b);
}

/* A shared receive queue of another domain, and one that is not there. */
static void test_domains(void)
{
    uint32_t bad[2];

    for (int i = 0; i < 2; i++) {
        Bench *b = bench();
        QMlx5Srq other;
        QMlx5Wqe w;

        g_assert_cmphex(srq_new(b, &other, b->other, b->cq->cqn), ==, 0);
        qmlx5_srq_recv(&other, b->d->lkey, b->mem, 4096);
        bad[0] = other.srqn;
        bad[1] = 0xfff0;
        wqe(&w, QMLX5_OP_SEND, bad[i]);
        qmlx5_wqe_data(&w, b->d->lkey, b->mem, 100);
        qmlx5_post(b->ini, &w);
        qmlx5_cq_expect_err(b->ini->a.scq, QMLX5_CQE_REQ_ERR,
                            QMLX5_SYN_REMOTE_INVAL);
        qmlx5_cq_none(b->cq);
        bench_free(b);
    }
}

static void test_in_use(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    QMlx5Srq s;

    g_assert_cmphex(srq_new(b, &s, 0xffff, b->cq->cqn), ==, QMLX5_BAD_RES);
    g_assert_cmphex(srq_new(b, &s, b->xrcd, 0xffff), ==, QMLX5_BAD_RES);
    g_assert_cmphex(xrcd_free(d, b->other), ==, 0);
    g_assert_cmphex(xrcd_free(d, b->other), ==, QMLX5_BAD_RES);
    g_assert_cmphex(xrcd_free(d, b->xrcd), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(b->ini), ==, 0);
    g_assert_cmphex(qmlx5_qp_destroy(b->tgt), ==, 0);
    g_assert_cmphex(xrcd_free(d, b->xrcd), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_cq_destroy(b->cq), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_cmd_simple(d, DESTROY_XRC_SRQ, 0, b->srq.srqn, 0,
                                     NULL), ==, 0);
    g_assert_cmphex(xrcd_free(d, b->xrcd), ==, 0);
    g_assert_cmphex(qmlx5_cq_destroy(b->cq), ==, 0);
    bench_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/xrc/traffic", test_traffic);
    qtest_add_func("/mlx5/xrc/atomics", test_atomics);
    qtest_add_func("/mlx5/xrc/domains", test_domains);
    qtest_add_func("/mlx5/xrc/in-use", test_in_use);
    return g_test_run();
}
