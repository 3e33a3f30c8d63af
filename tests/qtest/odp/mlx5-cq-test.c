/*
 * QTest: mlx5 completion queues
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

/* A self-connected QP whose send completions go to @cq. */
static QMlx5Qp *qp_on(QMlx5 *d, QMlx5Cq *cq)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp;

    a.scq = cq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    return qp;
}

static void nop(QMlx5Qp *qp)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    qmlx5_post(qp, &w);
}

static void query(QMlx5Cq *cq, uint8_t *cqc)
{
    uint8_t in[16] = { }, out[MLX5_BYTES(query_cq_out)] = { };

    qmlx5_cmd_head(in, QMLX5_QUERY_CQ, 0);
    stl_be_p(in + 8, cq->cqn);
    g_assert_cmphex(qmlx5_cmd(cq->d, in, sizeof(in), out, sizeof(out)), ==, 0);
    memcpy(cqc, MLX5_ADDR(out, query_cq_out, cq_context), MLX5_BYTES(cqc));
}

static void test_owner(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 3);
    QMlx5Qp *qp = qp_on(d, cq);
    uint8_t cqe[64];

    for (uint16_t i = 0; i < 8 * 5 + 3; i++) {
        qmlx5_cq_none(cq);
        nop(qp);
        qmlx5_cq_wait(cq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
        g_assert_cmphex(lduw_be_p(cqe + 60), ==, i);
        g_assert_cmphex(qmlx5_be32(cqe + 56) & 0xffffff, ==, qp->qpn);
        /* cqe_version 1: the user index. */
        g_assert_cmphex(qmlx5_be32(cqe + 32) & 0xffffff, ==, 0xabc000);
    }
    qmlx5_stop(d);
}

static void test_burst(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 3);
    QMlx5Qp *qp = qp_on(d, cq);
    uint8_t cqe[64];
    uint16_t next = 0;

    for (int round = 0; round < 9; round++) {
        QMlx5Wqe w;

        for (int i = 0; i < 7; i++) {
            qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
            qmlx5_queue(qp, &w);
        }
        qmlx5_ring(qp);
        for (int i = 0; i < 7; i++) {
            qmlx5_cq_wait(cq, cqe);
            g_assert_cmphex(lduw_be_p(cqe + 60), ==, next++);
        }
        qmlx5_cq_none(cq);
    }
    qmlx5_stop(d);
}

static void test_unsignaled(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 3);
    QMlx5Qp *qp = qp_on(d, cq);
    QMlx5Wqe w;
    uint8_t cqe[64];

    for (int i = 0; i < 40; i++) {
        qmlx5_wqe(&w, QMLX5_OP_NOP, i == 39 ? QMLX5_F_SIGNALED : 0, 0);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
    qmlx5_cq_wait(cq, cqe);
    g_assert_cmphex(lduw_be_p(cqe + 60), ==, 39);
    qmlx5_cq_none(cq);
    qmlx5_stop(d);
}

static void test_128_bytes(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq cq = { .d = d, .uar = d->uar, .log_size = 4,
                   .buf = qmlx5_alloc(d->host, 4096),
                   .dbr = qmlx5_dbr_new(d) };
    uint8_t in[4096] = { }, out[16], cqe[64];
    uint32_t len = qmlx5_cq_in(&cq, in, d->comp_eq->eqn);
    QMlx5Qp *qp;

    qtest_memset(d->qts, cq.buf, 0xf1, 4096);
    MLX5_SET(MLX5_ADDR(in, create_cq_in, cq_context), cqc, cqe_sz, 1);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    cq.cqn = qmlx5_be32(out + 8) & 0xffffff;
    qp = qp_on(d, &cq);
    for (uint32_t i = 0; i < 20; i++) {
        nop(qp);
        qmlx5_settle(d);
        qmlx5_read(d, cq.buf + (i & 15) * 128 + 64, cqe, 64);
        g_assert_cmphex(cqe[63], ==, i >> 4 & 1);
        g_assert_cmphex(lduw_be_p(cqe + 60), ==, i);
        qmlx5_put32(d, cq.dbr, i + 1);
    }
    qmlx5_stop(d);
}

static void expect_event(QMlx5 *d, QMlx5Cq *cq)
{
    uint8_t eqe[64];

    qmlx5_eq_wait(d->comp_eq, QMLX5_EV_COMP, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, cq->cqn);
    qmlx5_eq_update(d->comp_eq, true);
}

static void test_arm(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 4);
    QMlx5Qp *qp = qp_on(d, cq);
    uint8_t cqe[64];

    nop(qp);
    qmlx5_cq_wait(cq, cqe);
    qmlx5_eq_none(d->comp_eq);        /* never armed */

    qmlx5_cq_arm(cq, false);
    qmlx5_eq_none(d->comp_eq);        /* nothing new */
    nop(qp);
    expect_event(d, cq);
    g_assert_true(qmlx5_irq(d, 2));
    nop(qp);
    qmlx5_eq_none(d->comp_eq);        /* once */

    /* Two are not consumed: arming tells at once. */
    qmlx5_cq_arm(cq, false);
    expect_event(d, cq);
    qmlx5_cq_wait(cq, cqe);
    qmlx5_cq_wait(cq, cqe);
    qmlx5_cq_arm(cq, false);
    qmlx5_eq_none(d->comp_eq);
    nop(qp);
    expect_event(d, cq);
    qmlx5_stop(d);
}

static void test_arm_solicited(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint64_t buf = qmlx5_alloc(d->host, 4096);
    QMlx5Wqe w;
    uint8_t cqe[64];

    for (int i = 0; i < 4; i++) {
        qmlx5_recv(qp, d->lkey, buf, 64);
    }
    qmlx5_cq_arm(qp->a.rcq, true);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf + 1024, 8);
    qmlx5_cq_wait(qp->a.rcq, cqe);
    qmlx5_eq_none(d->comp_eq);
    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED | QMLX5_F_SOLICITED, 0);
    qmlx5_wqe_data(&w, d->lkey, buf + 1024, 8);
    qmlx5_post(qp, &w);
    expect_event(d, qp->a.rcq);
    qmlx5_cq_wait(qp->a.rcq, cqe);

    /* An error counts as solicited. */
    qmlx5_cq_arm(qp->a.rcq, true);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf + 1024, 100);
    expect_event(d, qp->a.rcq);
    qmlx5_cq_expect_err(qp->a.rcq, QMLX5_CQE_RESP_ERR, QMLX5_SYN_LOCAL_LENGTH);
    qmlx5_stop(d);
}

static void test_overrun(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 2);
    QMlx5Qp *qp = qp_on(d, cq);
    QMlx5Wqe w;
    uint8_t eqe[64], cqe[64], cqc[MLX5_BYTES(cqc)];

    for (int i = 0; i < 5; i++) {
        qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_CQ_ERROR, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 32) & 0xffffff, ==, cq->cqn);
    g_assert_cmphex(eqe[32 + 11], ==, 1);     /* overrun */
    query(cq, cqc);
    g_assert_cmphex(MLX5_GET(cqc, cqc, status), ==, 9);
    g_assert_cmphex(qmlx5_qp_state(qp), ==, QMLX5_ERR);
    /* The four that fit are whole. */
    for (int i = 0; i < 4; i++) {
        qmlx5_cq_wait(cq, cqe);
        g_assert_cmphex(lduw_be_p(cqe + 60), ==, i);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
    }
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(qmlx5_cq_destroy(cq), ==, 0);
    qmlx5_stop(d);
}

static void test_ignore_overrun(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq cq = { .d = d, .uar = d->uar, .log_size = 2,
                   .buf = qmlx5_alloc(d->host, 4096),
                   .dbr = qmlx5_dbr_new(d) };
    uint8_t in[4096] = { }, out[16], cqe[64];
    uint32_t len = qmlx5_cq_in(&cq, in, d->comp_eq->eqn);
    QMlx5Qp *qp;

    MLX5_SET(MLX5_ADDR(in, create_cq_in, cq_context), cqc, oi, 1);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    cq.cqn = qmlx5_be32(out + 8) & 0xffffff;
    qp = qp_on(d, &cq);
    for (int i = 0; i < 11; i++) {
        nop(qp);
    }
    qmlx5_settle(d);
    g_assert_cmphex(qmlx5_qp_state(qp), ==, QMLX5_RTS);
    qmlx5_read(d, cq.buf + (10 & 3) * 64, cqe, 64);
    g_assert_cmphex(lduw_be_p(cqe + 60), ==, 10);
    qmlx5_stop(d);
}

static void test_unwritable(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq cq = { .d = d, .uar = d->uar, .log_size = 4, .buf = QMLX5_NOWHERE,
                   .dbr = qmlx5_dbr_new(d) };
    uint8_t in[4096] = { }, out[16], eqe[64];
    uint32_t len = qmlx5_cq_in(&cq, in, d->comp_eq->eqn);
    QMlx5Qp *qp;

    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    cq.cqn = qmlx5_be32(out + 8) & 0xffffff;
    qp = qp_on(d, &cq);
    nop(qp);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_CQ_ERROR, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 32) & 0xffffff, ==, cq.cqn);
    g_assert_cmphex(qmlx5_qp_state(qp), ==, QMLX5_ERR);
    qmlx5_stop(d);
}

static void test_doorbells(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 4);
    QMlx5Qp *qp = qp_on(d, cq);
    uint32_t own = cq->uar;
    uint8_t cqc[MLX5_BYTES(cqc)];

    /* From another UAR page, or for a CQ that does not exist: not heard. */
    cq->uar = qmlx5_uar_new(d);
    qmlx5_cq_arm(cq, false);
    cq->uar++;
    qmlx5_cq_arm(cq, false);
    cq->uar = own;
    cq->cqn ^= 0x10000;
    qmlx5_cq_arm(cq, false);
    cq->cqn ^= 0x10000;
    query(cq, cqc);
    g_assert_cmphex(MLX5_GET(cqc, cqc, st), ==, 0xa);
    nop(qp);
    qmlx5_eq_none(d->comp_eq);
    qmlx5_stop(d);
}

static void test_bad_create(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq cq = { .d = d, .uar = d->uar, .log_size = 4,
                   .buf = qmlx5_alloc(d->host, 4096),
                   .dbr = qmlx5_dbr_new(d) };
    uint8_t in[4096] = { }, out[16];
    uint8_t *cqc = MLX5_ADDR(in, create_cq_in, cq_context);
    uint32_t len = qmlx5_cq_in(&cq, in, d->comp_eq->eqn);

    MLX5_SET(cqc, cqc, log_cq_size, 31);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_PARAM);
    MLX5_SET(cqc, cqc, log_cq_size, 4);
    MLX5_SET(cqc, cqc, c_eqn_or_apu_element, 0x3e);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_RES);
    MLX5_SET(cqc, cqc, c_eqn_or_apu_element, 0xffffff);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_RES);
    MLX5_SET(cqc, cqc, c_eqn_or_apu_element, d->comp_eq->eqn);
    MLX5_SET(cqc, cqc, log_cq_size, 8);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), !=, 0);
    MLX5_SET(cqc, cqc, log_cq_size, 4);
    MLX5_SET(cqc, cqc, page_offset, 60);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), !=, 0);
    MLX5_SET(cqc, cqc, page_offset, 0);
    MLX5_SET64(cqc, cqc, dbr_addr, cq.dbr + 2);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_PARAM);
    MLX5_SET64(cqc, cqc, dbr_addr, cq.dbr);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    qmlx5_stop(d);
}

static void test_destroy(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq = qmlx5_cq_new(d, 4);
    QMlx5Qp *qp = qp_on(d, cq);

    g_assert_cmphex(qmlx5_cq_destroy(cq), ==, QMLX5_BAD_RES_STATE);
    nop(qp);
    qmlx5_cq_expect(cq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(qmlx5_cq_destroy(cq), ==, 0);
    g_assert_cmphex(qmlx5_cq_destroy(cq), ==, QMLX5_BAD_RES);
    qmlx5_cq_arm(cq, false);
    qmlx5_stop(d);
}

/* Compressed completions */

static uint8_t comp_create(QMlx5 *d, uint8_t format, uint8_t layout,
                           uint8_t log_size, QMlx5Cq **out)
{
    g_autofree uint8_t *in = NULL;
    uint32_t len;
    QMlx5Cq *cq = qmlx5_cq_prepare(d, log_size, &in, &len);
    uint8_t *cqc = MLX5_ADDR(in, create_cq_in, cq_context);
    uint8_t reply[16] = { }, st;

    MLX5_SET(cqc, cqc, cqe_comp_en, 1);
    MLX5_SET(cqc, cqc, mini_cqe_res_format, format);
    MLX5_SET(cqc, cqc, cqe_compression_layout, layout);
    st = qmlx5_cmd(d, in, len, reply, sizeof(reply));
    cq->cqn = qmlx5_be32(reply + 8) & 0xffffff;
    *out = cq;
    return st;
}

/* A queue pair connected to itself that receives in @cq. */
static QMlx5Qp *comp_qp(QMlx5 *d, QMlx5Cq *cq)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp;

    a.rcq = cq;
    a.log_rq = 6;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    return qp;
}

/* @n sends with one doorbell, of first, first + 1, ... bytes. */
static void comp_burst(QMlx5Qp *qp, unsigned n, uint32_t first, uint64_t mem)
{
    QMlx5Wqe w;

    for (unsigned i = 0; i < n; i++) {
        qmlx5_recv(qp, qp->d->lkey, mem + 4096, 1024);
        qmlx5_wqe(&w, QMLX5_OP_SEND, 0, 0);
        qmlx5_wqe_data(&w, qp->d->lkey, mem, first + i);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
}

/* Takes @n completions as a driver does, whatever way they come in. */
static void comp_expect(QMlx5Cq *cq, unsigned n, uint32_t bytes,
                        uint16_t index, bool stride, bool compressed)
{
    uint32_t mask = (1u << cq->log_size) - 1;
    uint8_t title[64], mini[64];

    while (n) {
        uint32_t at = cq->ci, count = 1;

        while (!qmlx5_cq_peek(cq, title)) {
            qmlx5_settle(cq->d);
        }
        g_assert_cmphex(qmlx5_cqe_op(title), ==, QMLX5_CQE_SEND);
        g_assert_cmphex(lduw_be_p(title + 60), ==, index);
        if ((title[63] >> 2 & 3) == 3) {
            g_assert_true(compressed);
            count = qmlx5_be32(title + 44);
            g_assert_cmpint(count, >, 1);
            g_assert_cmpint(count, <=, n);
        } else {
            g_assert_cmpint(title[63] >> 2 & 3, ==, 0);
            g_assert_cmpint(qmlx5_be32(title + 44), ==, bytes);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (count > 1) {
                uint32_t slot = at + (i < 8 ? 1 : i & ~7);

                qmlx5_read(cq->d, cq->buf + (slot & mask) * 64, mini, 64);
                g_assert_cmpint(qmlx5_be32(mini + (i & 7) * 8 + 4), ==,
                                bytes + i);
                g_assert_cmpint(lduw_be_p(mini + (i & 7) * 8 + 2), ==,
                                stride ? (uint16_t)(index + i) : 0);
            }
        }
        /* Software writes the owner bits of the slots. */
        for (uint32_t i = 0; i < count; i++) {
            uint8_t b = 0xf0 | ((at + i) >> cq->log_size & 1);

            qmlx5_write(cq->d, cq->buf + ((at + i) & mask) * 64 + 63, &b, 1);
        }
        cq->ci += count;
        qmlx5_put32(cq->d, cq->dbr, cq->ci & 0xffffff);
        n -= count;
        bytes += count;
        index += count;
    }
}

static void test_compressed(void)
{
    static const uint8_t formats[] = { 0, 1, 3 };
    QMlx5 *d = qmlx5_start("");
    uint64_t mem = qmlx5_alloc(d->host, 8192);

    for (unsigned f = 0; f < ARRAY_SIZE(formats); f++) {
        bool stride = formats[f] == 3;
        uint16_t index = 0;
        QMlx5Cq *cq;
        QMlx5Qp *qp;

        g_assert_cmphex(comp_create(d, formats[f], 0, 6, &cq), ==, 0);
        qp = comp_qp(d, cq);
        /* Round the ring, sessions across its end. */
        for (unsigned n = 1; n < 20; n++) {
            comp_burst(qp, n, 100, mem);
            comp_expect(cq, n, 100, index, stride, n > 1);
            index += n;
        }
        qmlx5_cq_none(cq);
    }
    qmlx5_stop(d);
}

/* What has an immediate value, or is an error, ends a session. */
static void test_compressed_mixed(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t mem = qmlx5_alloc(d->host, 8192);
    uint8_t cqe[64], eqe[64];
    QMlx5Wqe w;
    QMlx5Cq *cq;
    QMlx5Qp *qp;

    g_assert_cmphex(comp_create(d, 3, 0, 6, &cq), ==, 0);
    qp = comp_qp(d, cq);
    qmlx5_cq_arm(cq, false);
    for (int i = 0; i < 5; i++) {
        qmlx5_recv(qp, d->lkey, mem + 4096, 1024);
        qmlx5_wqe(&w, i == 2 ? QMLX5_OP_SEND_IMM : QMLX5_OP_SEND, 0, 0);
        qmlx5_wqe_data(&w, d->lkey, mem, 10 + i);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
    /* One event for all. */
    qmlx5_eq_wait(d->comp_eq, QMLX5_EV_COMP, eqe);
    comp_expect(cq, 2, 10, 0, true, true);
    qmlx5_cq_wait(cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SEND_IMM);
    comp_expect(cq, 2, 13, 3, true, true);
    qmlx5_eq_none(d->comp_eq);

    /* More than a receive buffer takes: the error comes after what was well. */
    comp_burst(qp, 3, 20, mem);
    qmlx5_recv(qp, d->lkey, mem + 4096, 16);
    comp_expect(cq, 3, 20, 5, true, true);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, mem, 100);
    qmlx5_cq_expect_err(cq, QMLX5_CQE_RESP_ERR, QMLX5_SYN_LOCAL_LENGTH);
    qmlx5_stop(d);
}

static void test_compressed_overrun(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t mem = qmlx5_alloc(d->host, 8192);
    uint8_t eqe[64];
    QMlx5Cq *cq;
    QMlx5Qp *qp;

    g_assert_cmphex(comp_create(d, 3, 0, 3, &cq), ==, 0);
    qp = comp_qp(d, cq);
    comp_burst(qp, 9, 20, mem);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_CQ_ERROR, eqe);
    /* The eight that had room are there. */
    comp_expect(cq, 8, 20, 0, true, true);
    qmlx5_stop(d);
}

static void test_compressed_refused(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *cq;

    g_assert_cmphex(comp_create(d, 2, 0, 3, &cq), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(comp_create(d, 0, 1, 3, &cq), ==, QMLX5_BAD_PARAM);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/cq/owner", test_owner);
    qtest_add_func("/mlx5/cq/burst", test_burst);
    qtest_add_func("/mlx5/cq/unsignaled", test_unsignaled);
    qtest_add_func("/mlx5/cq/128-bytes", test_128_bytes);
    qtest_add_func("/mlx5/cq/arm", test_arm);
    qtest_add_func("/mlx5/cq/arm-solicited", test_arm_solicited);
    qtest_add_func("/mlx5/cq/overrun", test_overrun);
    qtest_add_func("/mlx5/cq/ignore-overrun", test_ignore_overrun);
    qtest_add_func("/mlx5/cq/unwritable", test_unwritable);
    qtest_add_func("/mlx5/cq/doorbells", test_doorbells);
    qtest_add_func("/mlx5/cq/bad-create", test_bad_create);
    qtest_add_func("/mlx5/cq/destroy", test_destroy);
    qtest_add_func("/mlx5/cq/compressed", test_compressed);
    qtest_add_func("/mlx5/cq/compressed-mixed", test_compressed_mixed);
    qtest_add_func("/mlx5/cq/compressed-overrun", test_compressed_overrun);
    qtest_add_func("/mlx5/cq/compressed-refused", test_compressed_refused);
    return g_test_run();
}
