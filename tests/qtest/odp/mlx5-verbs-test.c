/*
 * QTest: mlx5 objects of user contexts, dynamically connected transport,
 * multicast
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    ATTACH_TO_MCG = 0x806, DETACH_FROM_MCG = 0x807,
    CREATE_DCT = 0x710, DESTROY_DCT = 0x711, DRAIN_DCT = 0x712,
    QUERY_DCT = 0x713, ARM_DCT = 0x714,
    CREATE_UCTX = 0xa04, DESTROY_UCTX = 0xa06,
    CREATE_UMEM = 0xa08, DESTROY_UMEM = 0xa0a,
    EV_DCT_DRAINED = 0x1c, EV_DCT_KEY = 0x1d,
    DCI = 5,
    NOBODY = 0xabcdef,
};

#define DC_KEY 0x0123456789abcdefull
#define VA 0x100000

static void set_uid(uint8_t *in, uint32_t uid)
{
    stw_be_p(in + 2, uid);
}

static uint32_t create(QMlx5 *d, const uint8_t *in, uint32_t len)
{
    uint8_t out[16] = { };

    g_assert_cmphex(qmlx5_cmd(d, in, len, out, sizeof(out)), ==, 0);
    return qmlx5_be32(out + 8) & 0xffffff;
}

/* User contexts and UMEMs. */

static uint32_t uctx_new(QMlx5 *d)
{
    uint8_t in[32] = { }, out[16] = { };

    qmlx5_cmd_head(in, CREATE_UCTX, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    return MLX5_GET(out, create_uctx_out, uid);
}

static uint32_t umem_new(QMlx5 *d, uint32_t uid, uint64_t pa, uint32_t pages,
                         uint32_t offset, bool writable)
{
    g_autofree uint8_t *in = g_malloc0(MLX5_BYTES(create_umem_in) + 8 * pages);
    uint8_t *u = MLX5_ADDR(in, create_umem_in, umem);

    qmlx5_cmd_head(in, CREATE_UMEM, 0);
    set_uid(in, uid);
    MLX5_SET64(u, umem, num_of_mtt, pages);
    MLX5_SET(u, umem, page_offset, offset);
    for (uint32_t i = 0; i < pages; i++) {
        stq_be_p(MLX5_ADDR(u, umem, mtt) + i * 8,
                 (pa + i * QMLX5_PAGE) | (writable ? 3 : 1));
    }
    return create(d, in, MLX5_BYTES(create_umem_in) + 8 * pages);
}

static uint8_t umem_destroy(QMlx5 *d, uint32_t uid, uint32_t id)
{
    uint8_t in[16] = { }, out[16];

    qmlx5_cmd_head(in, DESTROY_UMEM, 0);
    set_uid(in, uid);
    stl_be_p(in + 8, id);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

static uint32_t uar_new(QMlx5 *d, uint32_t uid)
{
    uint8_t in[16] = { };

    qmlx5_cmd_head(in, QMLX5_ALLOC_UAR, 0);
    set_uid(in, uid);
    return create(d, in, sizeof(in));
}

/* CREATE_CQ with 16 entries in UMEM @mem, its record at @off of UMEM @dbr. */
static uint8_t umem_cq(QMlx5 *d, uint32_t uid, uint32_t mem, uint64_t at,
                       uint32_t dbr, uint64_t off, QMlx5Cq *cq)
{
    uint32_t uar = uar_new(d, uid);

    uint8_t in[4096] = { }, out[16] = { }, st;
    uint8_t *cqc = MLX5_ADDR(in, create_cq_in, cq_context);

    cq->d = d;
    cq->uar = uar;
    cq->log_size = 4;
    qmlx5_cq_in(cq, in, d->comp_eq->eqn);
    set_uid(in, uid);
    MLX5_SET64(cqc, cqc, dbr_addr, off);
    MLX5_SET(cqc, cqc, dbr_umem_valid, 1);
    stl_be_p(cqc + 4, dbr);
    stq_be_p(in + 0x50, at);
    stl_be_p(in + 0x58, mem);
    MLX5_SET(in, create_cq_in, cq_umem_valid, 1);
    st = qmlx5_cmd(d, in, MLX5_BYTES(create_cq_in), out, sizeof(out));
    cq->cqn = qmlx5_be32(out + 8) & 0xffffff;
    return st;
}

static void test_umem_cq(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t uid = uctx_new(d), other = uctx_new(d);
    uint64_t pa = qmlx5_alloc(d->host, 2 * QMLX5_PAGE);
    uint32_t mem = umem_new(d, uid, pa, 2, 64, true);
    uint32_t ro = umem_new(d, uid, pa, 2, 0, false);
    QMlx5Cq cq = { .buf = pa + 64 + 128, .dbr = pa + 64 + 2048 }, bad = { };
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    uint8_t cqe[64];
    QMlx5Wqe w;
    QMlx5Qp *qp;

    qtest_memset(d->qts, pa, 0xf1, 2 * QMLX5_PAGE);
    /* Of another context, unknown, outside, not writable, misaligned. */
    g_assert_cmphex(umem_cq(d, other, mem, 0, mem, 2048, &bad), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_cq(d, uid, mem, 0, NOBODY, 2048, &bad), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_cq(d, uid, NOBODY, 0, mem, 2048, &bad), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(umem_cq(d, uid, mem, 2 * QMLX5_PAGE - 512, mem, 2048, &bad),
                    ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(umem_cq(d, uid, mem, 0, mem, 2 * QMLX5_PAGE, &bad), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_cq(d, uid, ro, 0, mem, 2048, &bad), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(umem_cq(d, uid, mem, 0, ro, 2048, &bad), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_cq(d, uid, mem, 128, mem, 2052, &bad), ==,
                    QMLX5_BAD_PARAM);
    /* None of these holds the UMEM. */
    g_assert_cmphex(umem_destroy(d, uid, ro), ==, 0);

    g_assert_cmphex(umem_cq(d, uid, mem, 128, mem, 2048, &cq), ==, 0);
    qmlx5_put32(d, cq.dbr, 0);
    a.scq = &cq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    for (int i = 0; i < 40; i++) {
        qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
        qmlx5_post(qp, &w);
        qmlx5_cq_wait(&cq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
    }
    /* The UMEM stays while the CQ is there. */
    g_assert_cmphex(umem_destroy(d, uid, mem), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    {
        uint8_t in[16] = { }, out[16];

        qmlx5_cmd_head(in, QMLX5_DESTROY_CQ, 0);
        set_uid(in, uid);
        stl_be_p(in + 8, cq.cqn);
        g_assert_cmphex(qmlx5_cmd(d, in, 16, out, 16), ==, 0);
    }
    g_assert_cmphex(umem_destroy(d, other, mem), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_destroy(d, uid, mem), ==, 0);
    qmlx5_stop(d);
}

static uint8_t umem_qp(QMlx5Qp *qp, uint32_t mem, uint64_t at, uint32_t dbr,
                       uint64_t off)
{
    g_autofree uint8_t *in = g_malloc0(8192);
    uint8_t *qpc = MLX5_ADDR(in, create_qp_in, qpc), out[16] = { }, st;

    qmlx5_qp_in(qp, in);
    MLX5_SET64(qpc, qpc, dbr_addr, off);
    MLX5_SET(qpc, qpc, dbr_umem_valid, 1);
    stl_be_p(qpc + 0xe4, dbr);
    MLX5_SET64(in, create_qp_in, wq_umem_offset, at);
    MLX5_SET(in, create_qp_in, wq_umem_id, mem);
    MLX5_SET(in, create_qp_in, wq_umem_valid, 1);
    st = qmlx5_cmd(qp->d, in, MLX5_BYTES(create_qp_in), out, sizeof(out));
    qp->qpn = qmlx5_be32(out + 8) & 0xffffff;
    return st;
}

static void test_umem_qp(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *model = qmlx5_qp_new(d, &a), qp = *model;
    uint32_t bytes = (16u << (a.log_rq + a.log_rq_stride)) +
                     (64u << a.log_sq);
    uint32_t pages = DIV_ROUND_UP(bytes, QMLX5_PAGE);
    uint64_t pa = qmlx5_alloc(d->host, pages * QMLX5_PAGE);
    uint64_t rec = qmlx5_alloc(d->host, QMLX5_PAGE);
    uint64_t data = qmlx5_alloc(d->host, 2 * QMLX5_PAGE);
    uint32_t mem = umem_new(d, 0, pa, pages, 0, false);
    uint32_t dbr = umem_new(d, 0, rec, 1, 256, true);

    qtest_memset(d->qts, rec, 0, QMLX5_PAGE);
    g_assert_cmphex(umem_qp(&qp, NOBODY, 0, dbr, 0), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_qp(&qp, mem, pages * QMLX5_PAGE - bytes + 64, dbr, 0),
                    ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_qp(&qp, mem, 0, mem, 0), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_qp(&qp, mem, 0, dbr, QMLX5_PAGE - 256), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_qp(&qp, mem, 0, dbr, 0), ==, 0);
    qp.rq_buf = pa + (model->rq_buf - model->buf);
    qp.sq_buf = pa + (model->sq_buf - model->buf);
    qp.buf = pa;
    qp.dbr = rec + 256;
    qp.remote_qpn = qp.qpn;
    qmlx5_qp_rts(&qp);
    qmlx5_fill(d, data, 1000, 7);
    qmlx5_recv(&qp, d->lkey, data + QMLX5_PAGE, 1000);
    qmlx5_post_send(&qp, QMLX5_OP_SEND, d->lkey, data, 1000);
    qmlx5_cq_expect(qp.a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(qmlx5_cq_expect(qp.a.rcq, QMLX5_CQE_SEND), ==, 1000);
    qmlx5_expect(d, data + QMLX5_PAGE, 1000, 7);
    g_assert_cmphex(umem_destroy(d, 0, mem), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(umem_destroy(d, 0, dbr), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(&qp), ==, 0);
    g_assert_cmphex(umem_destroy(d, 0, mem), ==, 0);
    g_assert_cmphex(umem_destroy(d, 0, dbr), ==, 0);
    qmlx5_stop(d);
}

/* Dynamically connected transport. */

typedef struct Dc {
    QMlx5 *d;
    QMlx5Srq *srq;
    QMlx5Cq *cq;
    QMlx5Qp *dci;
    QMlx5Eq *eq;
    uint32_t dctn, rkey;
    uint64_t data;
} Dc;

static uint8_t dct_create(Dc *t, uint32_t pd, uint32_t cqn, uint32_t srqn,
                          uint32_t access, uint32_t *dctn)
{
    uint8_t in[MLX5_BYTES(create_dct_in)] = { }, out[16] = { }, st;
    uint8_t *c = MLX5_ADDR(in, create_dct_in, dct_context_entry);

    qmlx5_cmd_head(in, CREATE_DCT, 0);
    MLX5_SET(c, dctc, pd, pd);
    MLX5_SET(c, dctc, cqn, cqn);
    MLX5_SET(c, dctc, srqn_xrqn, srqn);
    MLX5_SET(c, dctc, rre, !!(access & QMLX5_RR));
    MLX5_SET(c, dctc, rwe, !!(access & QMLX5_RW));
    MLX5_SET(c, dctc, rae, !!(access & QMLX5_A));
    MLX5_SET(c, dctc, min_rnr_nak, 1);
    MLX5_SET(c, dctc, mtu, 5);
    MLX5_SET(c, dctc, port, 1);
    MLX5_SET64(c, dctc, dc_access_key, DC_KEY);
    st = qmlx5_cmd(t->d, in, sizeof(in), out, sizeof(out));
    *dctn = qmlx5_be32(out + 8) & 0xffffff;
    return st;
}

static uint8_t dct_cmd(Dc *t, uint16_t op, uint32_t dctn)
{
    return qmlx5_cmd_simple(t->d, op, 0, dctn, 0, NULL);
}

static Dc dc_start(uint32_t streams, uint32_t errored)
{
    Dc t = { .d = qmlx5_start("") };
    QMlx5 *d = t.d;
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    g_autofree uint8_t *in = g_malloc0(8192);
    uint8_t *qpc = MLX5_ADDR(in, create_qp_in, qpc);
    uint32_t len;

    t.eq = qmlx5_eq_new(d, 4, 1, 1ull << EV_DCT_DRAINED | 1ull << EV_DCT_KEY);
    t.srq = qmlx5_srq_new(d, d->pd, 4, 0);
    t.cq = qmlx5_cq_new(d, 5);
    t.data = qmlx5_alloc(d->host, 4 * QMLX5_PAGE);
    t.rkey = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, t.data, 4 * QMLX5_PAGE);
    g_assert_cmphex(dct_create(&t, d->pd, t.cq->cqn, t.srq->srqn, QMLX5_ALL,
                               &t.dctn), ==, 0);
    a.rq_type = 1;
    a.srq = t.srq;
    a.retry = 1;
    a.ack_timeout = 1;
    a.rnr_retry = 0;
    t.dci = qmlx5_qp_new(d, &a);
    g_assert_cmphex(qmlx5_qp_destroy(t.dci), ==, 0);
    t.dci->a.st = DCI;
    len = qmlx5_qp_in(t.dci, in);
    MLX5_SET(qpc, qpc, log_num_dci_stream_channels, streams);
    MLX5_SET(qpc, qpc, log_num_dci_errored_streams, errored);
    t.dci->qpn = create(d, in, len);
    qmlx5_qp_rts(t.dci);
    return t;
}

static void dc_post(Dc *t, uint8_t op, uint16_t stream, uint64_t key,
                    uint32_t rkey, uint32_t len)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, op, QMLX5_F_SIGNALED, 0);
    stw_be_p(w.b + 9, stream);
    qmlx5_wqe_av(&w, t->d->lid, t->dctn, key >> 32);
    stl_be_p(w.b + 20, key);
    if (op != QMLX5_OP_SEND) {
        qmlx5_wqe_raddr(&w, VA + QMLX5_PAGE, rkey);
    }
    qmlx5_wqe_data(&w, t->d->lkey, t->data, len);
    qmlx5_post(t->dci, &w);
}

static void test_dc_traffic(void)
{
    Dc t = dc_start(0, 0);
    uint8_t cqe[64], out[MLX5_BYTES(query_dct_out)] = { }, in[16] = { };
    uint8_t eqe[64];

    qmlx5_fill(t.d, t.data, 2000, 3);
    qmlx5_srq_recv(t.srq, t.d->lkey, t.data + 2 * QMLX5_PAGE, 2000);
    dc_post(&t, QMLX5_OP_SEND, 0, DC_KEY, 0, 2000);
    qmlx5_cq_expect(t.dci->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_wait(t.cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SEND);
    g_assert_cmphex(qmlx5_be32(cqe + 24) & 0xffffff, ==, t.dci->qpn);
    g_assert_cmphex(qmlx5_be32(cqe + 56) & 0xffffff, ==, t.dctn);
    qmlx5_expect(t.d, t.data + 2 * QMLX5_PAGE, 2000, 3);

    dc_post(&t, QMLX5_OP_WRITE, 0, DC_KEY, t.rkey, 1500);
    qmlx5_cq_expect(t.dci->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(t.d, t.data + QMLX5_PAGE, 1500, 3);

    /* A wrong key: no answer; counted, and an event when armed. */
    g_assert_cmphex(dct_cmd(&t, ARM_DCT, t.dctn), ==, 0);
    dc_post(&t, QMLX5_OP_WRITE, 0, DC_KEY + 1, t.rkey, 8);
    qmlx5_clock(t.d, 1000 * 1000 * 1000);
    qmlx5_cq_expect_err(t.dci->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    qmlx5_eq_wait(t.eq, EV_DCT_KEY, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, t.dctn);
    qmlx5_cmd_head(in, QUERY_DCT, 0);
    stl_be_p(in + 8, t.dctn);
    g_assert_cmphex(qmlx5_cmd(t.d, in, sizeof(in), out, sizeof(out)), ==, 0);
    g_assert_cmphex(MLX5_GET(MLX5_ADDR(out, query_dct_out, dct_context_entry),
                             dctc, dc_access_key_violation_count), >, 0);
    qmlx5_qp_revive(t.dci);

    /* A refused access ends the initiator, not the target. */
    dc_post(&t, QMLX5_OP_WRITE, 0, DC_KEY, t.rkey + 1, 8);
    qmlx5_cq_expect_err(t.dci->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    g_assert_cmphex(qmlx5_qp_state(t.dci), ==, QMLX5_ERR);
    qmlx5_qp_revive(t.dci);
    dc_post(&t, QMLX5_OP_WRITE, 0, DC_KEY, t.rkey, 8);
    qmlx5_cq_expect(t.dci->a.scq, QMLX5_CQE_REQ);
    qmlx5_stop(t.d);
}

static void test_dct_life(void)
{
    Dc t = dc_start(0, 0);
    QMlx5 *d = t.d;
    uint32_t n, srqn = t.srq->srqn, cqn = t.cq->cqn;
    uint8_t in[MLX5_BYTES(create_dct_in)] = { }, out[16], eqe[64];

    g_assert_cmphex(dct_create(&t, NOBODY, cqn, srqn, 0, &n), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(dct_create(&t, d->pd, NOBODY, srqn, 0, &n), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(dct_create(&t, d->pd, cqn, NOBODY, 0, &n), ==,
                    QMLX5_BAD_RES);
    qmlx5_cmd_head(in, CREATE_DCT, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, 64, out, sizeof(out)), ==,
                    QMLX5_BAD_INP_LEN);
    /* Its number is no queue pair's for the commands of those. */
    g_assert_cmphex(dct_cmd(&t, QMLX5_2ERR_QP, t.dctn), ==, QMLX5_BAD_RES);
    g_assert_cmphex(dct_cmd(&t, QMLX5_DESTROY_QP, t.dctn), ==, QMLX5_BAD_RES);
    for (uint16_t op = DESTROY_DCT; op <= ARM_DCT; op++) {
        uint8_t big[MLX5_BYTES(query_dct_out)], q[16] = { };

        qmlx5_cmd_head(q, op, 0);
        stl_be_p(q + 8, t.dci->qpn);
        g_assert_cmphex(qmlx5_cmd(d, q, sizeof(q), big, sizeof(big)), ==,
                        QMLX5_BAD_RES);
        /* Another owner. */
        set_uid(q, 5);
        stl_be_p(q + 8, t.dctn);
        g_assert_cmphex(qmlx5_cmd(d, q, sizeof(q), big, sizeof(big)), ==,
                        QMLX5_BAD_RES);
    }
    /* What it rests on stays. */
    g_assert_cmphex(qmlx5_cq_destroy(t.cq), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(dct_cmd(&t, DRAIN_DCT, t.dctn), ==, 0);
    qmlx5_eq_wait(t.eq, EV_DCT_DRAINED, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, t.dctn);
    g_assert_cmphex(dct_cmd(&t, DRAIN_DCT, t.dctn), ==, QMLX5_BAD_RES_STATE);
    dc_post(&t, QMLX5_OP_WRITE, 0, DC_KEY, t.rkey, 8);
    qmlx5_clock(d, 1000 * 1000 * 1000);
    qmlx5_cq_expect_err(t.dci->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    g_assert_cmphex(dct_cmd(&t, DESTROY_DCT, t.dctn), ==, 0);
    g_assert_cmphex(dct_cmd(&t, DESTROY_DCT, t.dctn), ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cq_destroy(t.cq), ==, 0);
    qmlx5_stop(d);
}

/* RTS2RTS with an extended context: @stream may go on. */
static void stream_reset(Dc *t, uint16_t stream)
{
    uint8_t in[0x1d0] = { }, out[16];

    qmlx5_qp_context(t->dci, QMLX5_RTS2RTS_QP, in);
    in[8] |= 0x80;
    stq_be_p(in + 0x108, 1);
    stw_be_p(in + 0x112, stream);
    g_assert_cmphex(qmlx5_cmd(t->d, in, sizeof(in), out, sizeof(out)), ==, 0);
}

static void test_dc_streams(void)
{
    Dc t = dc_start(3, 1);
    QMlx5Cq *cq = t.dci->a.scq;

    dc_post(&t, QMLX5_OP_WRITE, 1, DC_KEY, t.rkey + 1, 8);
    qmlx5_cq_expect_err(cq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);
    g_assert_cmphex(qmlx5_qp_state(t.dci), ==, QMLX5_RTS);
    /* That stream stands, another one goes on. */
    dc_post(&t, QMLX5_OP_WRITE, 1, DC_KEY, t.rkey, 8);
    qmlx5_cq_expect_err(cq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
    dc_post(&t, QMLX5_OP_WRITE, 2, DC_KEY, t.rkey, 8);
    qmlx5_cq_expect(cq, QMLX5_CQE_REQ);
    stream_reset(&t, 1);
    dc_post(&t, QMLX5_OP_WRITE, 1, DC_KEY, t.rkey, 8);
    qmlx5_cq_expect(cq, QMLX5_CQE_REQ);
    /* The second stream in error is one too many. */
    dc_post(&t, QMLX5_OP_WRITE, 1, DC_KEY, t.rkey + 1, 8);
    qmlx5_cq_expect_err(cq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);
    dc_post(&t, QMLX5_OP_WRITE, 2, DC_KEY, t.rkey + 1, 8);
    qmlx5_cq_expect_err(cq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);
    g_assert_cmphex(qmlx5_qp_state(t.dci), ==, QMLX5_ERR);
    qmlx5_stop(t.d);
}

/* Multicast. */

static const uint8_t group[16] = {
    0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 0x01,
};

static uint8_t mcg(QMlx5 *d, uint16_t op, uint32_t qpn, const uint8_t *gid)
{
    uint8_t in[MLX5_BYTES(attach_to_mcg_in)] = { }, out[16];

    qmlx5_cmd_head(in, op, 0);
    MLX5_SET(in, attach_to_mcg_in, qpn, qpn);
    memcpy(MLX5_ADDR(in, attach_to_mcg_in, multicast_gid), gid, 16);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void send_group(QMlx5Qp *qp, const uint8_t *gid, uint64_t data,
                       uint32_t len, uint32_t qkey)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_av(&w, 0xc000, 0xffffff, qkey);
    stl_be_p(w.b + 16 + 28, 1u << 30);      /* with a GRH */
    memcpy(w.b + 16 + 32, gid, 16);
    qmlx5_wqe_data(&w, qp->d->lkey, data, len);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
}

static void test_mcast(void)
{
    QMlx5 *d[2];
    QMlx5Host *h = qmlx5_start_n(d, 2, "");
    QMlx5Qp *qp[4];
    uint64_t buf[4], data;
    uint8_t other[16];

    for (int i = 0; i < 4; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(d[i / 2], QMLX5_UD);

        a.qkey = i == 2 ? 0x999 : 0x111;
        qp[i] = qmlx5_qp_new(d[i / 2], &a);
        qmlx5_qp_rts(qp[i]);
        buf[i] = qmlx5_alloc(h, QMLX5_PAGE);
        g_assert_cmphex(mcg(d[i / 2], ATTACH_TO_MCG, qp[i]->qpn, group), ==,
                        0);
    }
    data = qmlx5_alloc(h, QMLX5_PAGE);
    qmlx5_fill(d[0], data, 300, 9);
    /* Number 2 has another key, number 1 no receive WQE. */
    for (int i = 0; i < 4; i++) {
        if (i != 1) {
            qmlx5_recv(qp[i], d[i / 2]->lkey, buf[i], 1000);
        }
    }
    send_group(qp[0], group, data, 300, 0x111);
    for (int i = 0; i < 4; i++) {
        if (i == 1 || i == 2) {
            qmlx5_cq_none(qp[i]->a.rcq);
            continue;
        }
        g_assert_cmpint(qmlx5_cq_expect(qp[i]->a.rcq, QMLX5_CQE_SEND), ==,
                        340);
        qmlx5_expect(d[0], buf[i] + 40, 300, 9);
        g_assert_cmphex(qmlx5_get32(d[0], buf[i] + 24), ==, 0xff12401b);
    }
    /* Not another group's, not after leaving, not after the end. */
    memcpy(other, group, 16);
    other[15] = 2;
    qmlx5_recv(qp[3], d[1]->lkey, buf[3], 1000);
    send_group(qp[0], other, data, 300, 0x111);
    qmlx5_cq_none(qp[3]->a.rcq);
    g_assert_cmphex(mcg(d[1], DETACH_FROM_MCG, qp[3]->qpn, group), ==, 0);
    g_assert_cmphex(mcg(d[1], DETACH_FROM_MCG, qp[3]->qpn, group), ==,
                    QMLX5_BAD_RES);
    send_group(qp[0], group, data, 300, 0x111);
    qmlx5_cq_none(qp[3]->a.rcq);
    g_assert_cmphex(qmlx5_qp_destroy(qp[1]), ==, 0);
    send_group(qp[0], group, data, 300, 0x111);
    g_assert_cmphex(mcg(d[0], ATTACH_TO_MCG, qp[1]->qpn, group), ==,
                    QMLX5_BAD_RES);
    other[0] = 0xfe;
    g_assert_cmphex(mcg(d[0], ATTACH_TO_MCG, qp[0]->qpn, other), ==,
                    QMLX5_BAD_PARAM);
    qmlx5_free(d[0]);
    qmlx5_free(d[1]);
    qmlx5_host_free(h);
}

/* A sender that does not want to hear itself. */
static void test_mcast_block(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t mem = qmlx5_alloc(d->host, 4 * QMLX5_PAGE);
    QMlx5Qp *qp[2];

    for (int i = 0; i < 2; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_UD);

        a.qkey = 0x111;
        a.block_lb_mc = !i;
        qp[i] = qmlx5_qp_new(d, &a);
        qmlx5_qp_rts(qp[i]);
        g_assert_cmphex(mcg(d, ATTACH_TO_MCG, qp[i]->qpn, group), ==, 0);
        qmlx5_recv(qp[i], d->lkey, mem + 4096, 1000);
        qmlx5_recv(qp[i], d->lkey, mem + 4096, 1000);
    }
    send_group(qp[0], group, mem, 300, 0x111);
    qmlx5_cq_expect(qp[1]->a.rcq, QMLX5_CQE_SEND);
    qmlx5_cq_none(qp[0]->a.rcq);
    send_group(qp[1], group, mem, 300, 0x111);
    qmlx5_cq_expect(qp[1]->a.rcq, QMLX5_CQE_SEND);
    qmlx5_cq_expect(qp[0]->a.rcq, QMLX5_CQE_SEND);
    qmlx5_stop(d);
}

/* Memory keys, receive memory pools and resized CQs in UMEMs */

static uint8_t umem_mkey(QMlx5 *d, uint32_t uid, uint32_t pd, uint32_t mem,
                         uint64_t at, uint64_t len, uint32_t access,
                         uint32_t *key)
{
    uint8_t in[MLX5_BYTES(create_mkey_in)] = { }, out[16] = { }, st;
    uint8_t *mkc = MLX5_ADDR(in, create_mkey_in, memory_key_mkey_entry);
    uint32_t pages = DIV_ROUND_UP(len, QMLX5_PAGE);

    qmlx5_cmd_head(in, QMLX5_CREATE_MKEY, 0);
    set_uid(in, uid);
    MLX5_SET(in, create_mkey_in, mkey_umem_valid, 1);
    stl_be_p(in + 0x64, mem);
    stq_be_p(in + 0x68, at);
    MLX5_SET(mkc, mkc, access_mode_1_0, 1);
    MLX5_SET(mkc, mkc, lr, 1);
    MLX5_SET(mkc, mkc, rr, !!(access & QMLX5_RR));
    MLX5_SET(mkc, mkc, rw, !!(access & QMLX5_RW));
    MLX5_SET(mkc, mkc, lw, !!(access & QMLX5_RW));
    MLX5_SET(mkc, mkc, qpn, 0xffffff);
    MLX5_SET(mkc, mkc, pd, pd);
    MLX5_SET64(mkc, mkc, start_addr, VA);
    MLX5_SET64(mkc, mkc, len, len);
    MLX5_SET(mkc, mkc, translations_octword_size, DIV_ROUND_UP(pages, 2));
    MLX5_SET(mkc, mkc, log_page_size, 12);
    st = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *key = (qmlx5_be32(out + 8) & 0xffffff) << 8;
    return st;
}

static uint32_t pd_by(QMlx5 *d, uint32_t uid)
{
    uint8_t in[16] = { };

    qmlx5_cmd_head(in, QMLX5_ALLOC_PD, 0);
    set_uid(in, uid);
    return create(d, in, sizeof(in));
}

static void test_umem_mkey(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t uid = uctx_new(d), other = uctx_new(d), pd = pd_by(d, uid), key;
    uint64_t pa = qmlx5_alloc(d->host, 4 * QMLX5_PAGE);
    uint64_t src = qmlx5_alloc(d->host, 4 * QMLX5_PAGE);
    uint32_t mem = umem_new(d, uid, pa, 4, 0, true);
    uint32_t ro = umem_new(d, uid, pa, 4, 0, false), theirs;
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    uint8_t in[16] = { };
    QMlx5Qp *qp;

    theirs = umem_new(d, other, pa, 4, 0, true);
    g_assert_cmphex(umem_mkey(d, uid, pd, NOBODY, 0, 4096, QMLX5_RW, &key), ==,
                    QMLX5_NO_RES);
    g_assert_cmphex(umem_mkey(d, uid, pd, theirs, 0, 4096, QMLX5_RW, &key), ==,
                    QMLX5_NO_RES);
    g_assert_cmphex(umem_mkey(d, uid, pd, ro, 0, 4096, QMLX5_RW, &key), ==,
                    QMLX5_NO_RES);
    g_assert_cmphex(umem_mkey(d, uid, pd, mem, 0, 5 * 4096, QMLX5_RW, &key), ==,
                    QMLX5_NO_RES);
    g_assert_cmphex(umem_mkey(d, uid, pd, mem, 100, 4096, QMLX5_RW, &key), ==,
                    QMLX5_NO_RES);
    g_assert_cmphex(umem_mkey(d, uid, d->pd, mem, 0, 4096, QMLX5_RW, &key), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_destroy(d, uid, ro), ==, 0);

    g_assert_cmphex(umem_mkey(d, uid, pd, mem, 4096, 2 * 4096, QMLX5_RW, &key),
                    ==, 0);
    a.pd = pd;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    qmlx5_fill(d, src, 8192, 3);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, qmlx5_mkey_pa(d, pd, QMLX5_ALL), src,
                    8192, key, VA);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(d, pa + 4096, 8192, 3);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, qmlx5_mkey_pa(d, pd, QMLX5_ALL), src, 2,
                    key, VA + 8191);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);

    g_assert_cmphex(umem_destroy(d, uid, mem), ==, QMLX5_BAD_RES_STATE);
    qmlx5_cmd_head(in, QMLX5_DESTROY_MKEY, 0);
    set_uid(in, uid);
    stl_be_p(in + 8, key >> 8);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), NULL, 0), ==, 0);
    g_assert_cmphex(umem_destroy(d, uid, mem), ==, 0);
    qmlx5_stop(d);
}

static uint8_t umem_rmp(QMlx5 *d, uint32_t mem, uint64_t at, uint32_t dbr,
                        uint64_t off, uint32_t *rmpn)
{
    uint8_t in[MLX5_BYTES(create_rmp_in)] = { }, out[16] = { }, st;
    uint8_t *wq = MLX5_ADDR(in, create_rmp_in, ctx__wq);

    qmlx5_cmd_head(in, QMLX5_CREATE_RMP, 0);
    MLX5_SET(MLX5_ADDR(in, create_rmp_in, ctx), rmpc, state, 1);
    MLX5_SET(wq, wq, pd, d->pd);
    MLX5_SET64(wq, wq, dbr_addr, off);
    MLX5_SET(wq, wq, log_wq_stride, 6);
    MLX5_SET(wq, wq, log_wq_sz, 3);
    MLX5_SET(wq, wq, wq_umem_valid, 1);
    MLX5_SET(wq, wq, wq_umem_id, mem);
    MLX5_SET64(wq, wq, wq_umem_offset, at);
    MLX5_SET(wq, wq, dbr_umem_valid, 1);
    MLX5_SET(wq, wq, dbr_umem_id, dbr);
    st = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *rmpn = qmlx5_be32(out + 8) & 0xffffff;
    return st;
}

static void test_umem_rmp(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t pa = qmlx5_alloc(d->host, QMLX5_PAGE);
    uint64_t rec = qmlx5_alloc(d->host, QMLX5_PAGE);
    uint64_t data = qmlx5_alloc(d->host, 2 * QMLX5_PAGE);
    uint32_t mem = umem_new(d, 0, pa, 1, 0, true), bad;
    uint32_t dbr = umem_new(d, 0, rec, 1, 0, true);
    uint32_t ro = umem_new(d, 0, rec, 1, 0, false);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Srq srq = { .d = d, .log_size = 3, .log_stride = 6,
                     .buf = pa + 512, .dbr = rec + 64 };
    QMlx5Qp *qp;

    g_assert_cmphex(umem_rmp(d, NOBODY, 0, dbr, 0, &bad), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_rmp(d, mem, 0, NOBODY, 0, &bad), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_rmp(d, mem, 4096 - 448, dbr, 0, &bad), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(umem_rmp(d, mem, 0, dbr, 4092, &bad), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_rmp(d, mem, 0, ro, 0, &bad), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_destroy(d, 0, ro), ==, 0);

    for (int i = 0; i < 8; i++) {
        uint8_t next[16] = { };

        stw_be_p(next + 2, (i + 1) & 7);
        qmlx5_write(d, srq.buf + i * 64, next, sizeof(next));
    }
    g_assert_cmphex(umem_rmp(d, mem, 512, dbr, 64, &srq.srqn), ==, 0);
    a.rq_type = 1;
    a.srq = &srq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    for (int i = 0; i < 20; i++) {
        qmlx5_fill(d, data, 100, i);
        qmlx5_srq_recv(&srq, d->lkey, data + QMLX5_PAGE, 100);
        qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, data, 100);
        qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND);
        qmlx5_expect(d, data + QMLX5_PAGE, 100, i);
    }
    g_assert_cmphex(umem_destroy(d, 0, mem), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(umem_destroy(d, 0, dbr), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_RMP, 0, srq.srqn, 0,
                                     NULL), ==, 0);
    g_assert_cmphex(umem_destroy(d, 0, mem), ==, 0);
    g_assert_cmphex(umem_destroy(d, 0, dbr), ==, 0);
    qmlx5_stop(d);
}

static uint8_t umem_resize(QMlx5 *d, uint32_t uid, QMlx5Cq *cq, uint32_t mem,
                           uint64_t at, uint8_t log_size)
{
    uint8_t in[MLX5_BYTES(modify_cq_in)] = { };
    uint8_t *cqc = MLX5_ADDR(in, modify_cq_in, cq_context);

    qmlx5_cmd_head(in, QMLX5_MODIFY_CQ, 1);
    set_uid(in, uid);
    MLX5_SET(in, modify_cq_in, cqn, cq->cqn);
    stl_be_p(MLX5_ADDR(in, modify_cq_in,
                       modify_field_select_resize_field_select), 1);
    MLX5_SET(cqc, cqc, log_cq_size, log_size);
    stq_be_p(in + 0x50, at);
    stl_be_p(in + 0x58, mem);
    MLX5_SET(in, modify_cq_in, cq_umem_valid, 1);
    return qmlx5_cmd(d, in, sizeof(in), NULL, 0);
}

static void test_umem_cq_resize(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t uid = uctx_new(d);
    uint64_t pa = qmlx5_alloc(d->host, 4 * QMLX5_PAGE);
    uint32_t mem = umem_new(d, uid, pa, 2, 0, true);
    uint32_t more = umem_new(d, uid, pa + 2 * QMLX5_PAGE, 2, 0, true);
    QMlx5Cq cq = { .buf = pa, .dbr = pa + 4096 };
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    uint8_t cqe[64];
    QMlx5Wqe w;
    QMlx5Qp *qp;

    qtest_memset(d->qts, pa, 0xf1, 4 * QMLX5_PAGE);
    g_assert_cmphex(umem_cq(d, uid, mem, 0, mem, 4096, &cq), ==, 0);
    qmlx5_put32(d, cq.dbr, 0);
    g_assert_cmphex(umem_resize(d, uid, &cq, NOBODY, 0, 5), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(umem_resize(d, uid, &cq, more, 8192 - 64, 5), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(umem_resize(d, 0, &cq, more, 0, 5), ==, QMLX5_BAD_RES);
    g_assert_cmphex(umem_resize(d, uid, &cq, more, 1024, 5), ==, 0);
    /* The last CQE in the old ring sends software to the new one. */
    qmlx5_cq_wait(&cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, 0x5);
    cq.buf = pa + 2 * QMLX5_PAGE + 1024;
    cq.log_size = 5;
    a.scq = &cq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    for (int i = 0; i < 80; i++) {
        qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
        qmlx5_post(qp, &w);
        qmlx5_cq_wait(&cq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
    }
    /* Each holds a UMEM: the record's is the old ring's here. */
    g_assert_cmphex(umem_destroy(d, uid, more), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(umem_destroy(d, uid, mem), ==, QMLX5_BAD_RES_STATE);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/verbs/umem-cq", test_umem_cq);
    qtest_add_func("/mlx5/verbs/umem-qp", test_umem_qp);
    qtest_add_func("/mlx5/verbs/mcast-block", test_mcast_block);
    qtest_add_func("/mlx5/verbs/umem-mkey", test_umem_mkey);
    qtest_add_func("/mlx5/verbs/umem-rmp", test_umem_rmp);
    qtest_add_func("/mlx5/verbs/umem-cq-resize", test_umem_cq_resize);
    qtest_add_func("/mlx5/verbs/dc-traffic", test_dc_traffic);
    qtest_add_func("/mlx5/verbs/dct-life", test_dct_life);
    qtest_add_func("/mlx5/verbs/dc-streams", test_dc_streams);
    qtest_add_func("/mlx5/verbs/multicast", test_mcast);
    return g_test_run();
}
