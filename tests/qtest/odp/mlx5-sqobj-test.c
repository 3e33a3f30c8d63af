/*
 * QTest: mlx5 send queues of CREATE_SQ, requests out of BlueFlame registers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    SET_PP_RATE_LIMIT = 0x780, CREATE_ELEM = 0x782, DESTROY_ELEM = 0x783,
    CREATE_SQ = 0x904, MODIFY_SQ = 0x905, DESTROY_SQ = 0x906,
    QUERY_SQ = 0x907, CREATE_UCTX = 0xa04,
    RST = 0, RDY = 1, ERR = 3,
    RATE = 1, GROUP = 4,
    LOG_SIZE = 4,
    NOBODY = 0xabcdef,
    BF = 0x800,                   /* registers of a UAR page */
    BF_HALF = 0x100,
    SQ_IN = MLX5_AT(create_sq_in, ctx) + MLX5_AT(sqc, wq) + MLX5_AT(wq, pas),
};

typedef struct SqIn {
    uint8_t b[SQ_IN + 8];
} SqIn;

static uint8_t *sqc_of(SqIn *in)
{
    return MLX5_ADDR(in->b, create_sq_in, ctx);
}

static uint8_t *wq_of(SqIn *in)
{
    return MLX5_ADDR(sqc_of(in), sqc, wq);
}

/* A queue as a QMlx5Qp, so that its helpers post to it. */
static QMlx5Qp sq_memory(QMlx5 *d)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp q = { .d = d, .a = a, .uar = d->uar };

    q.a.scq = qmlx5_cq_new(d, 6);
    q.a.log_sq = LOG_SIZE;
    q.sq_buf = qmlx5_alloc(d->host, QMLX5_PAGE);
    q.dbr = qmlx5_dbr_new(d);
    qtest_memset(d->qts, q.dbr, 0, 8);
    return q;
}

static SqIn sq_in(const QMlx5Qp *q)
{
    SqIn in = { };
    uint8_t *sqc = sqc_of(&in), *wq = wq_of(&in);

    qmlx5_cmd_head(in.b, CREATE_SQ, 0);
    MLX5_SET(sqc, sqc, cqn, q->a.scq->cqn);
    MLX5_SET(sqc, sqc, flush_in_error_en, 1);
    MLX5_SET(wq, wq, wq_type, 1);
    MLX5_SET(wq, wq, log_wq_stride, 6);
    MLX5_SET(wq, wq, log_wq_sz, LOG_SIZE);
    MLX5_SET(wq, wq, uar_page, q->uar);
    MLX5_SET64(wq, wq, dbr_addr, q->dbr);
    stq_be_p(MLX5_ADDR(wq, wq, pas), q->sq_buf);
    return in;
}

static uint8_t sq_create(QMlx5Qp *q, SqIn *in)
{
    uint8_t out[16] = { }, status;

    status = qmlx5_cmd(q->d, in->b, sizeof(in->b), out, sizeof(out));
    q->qpn = qmlx5_be32(out + 8) & 0xffffff;
    return status;
}

static uint8_t sq_modify(QMlx5Qp *q, uint32_t from, uint32_t to, uint64_t mask,
                         uint32_t rate, uint32_t group)
{
    uint8_t in[MLX5_BYTES(modify_sq_in)] = { }, out[16];
    uint8_t *sqc = MLX5_ADDR(in, modify_sq_in, ctx);

    qmlx5_cmd_head(in, MODIFY_SQ, 0);
    MLX5_SET(in, modify_sq_in, sqn, q->qpn);
    MLX5_SET(in, modify_sq_in, sq_state, from);
    MLX5_SET64(in, modify_sq_in, modify_bitmask, mask);
    MLX5_SET(sqc, sqc, state, to);
    MLX5_SET(sqc, sqc, packet_pacing_rate_limit_index, rate);
    MLX5_SET(sqc, sqc, qos_queue_group_id, group);
    return qmlx5_cmd(q->d, in, sizeof(in), out, sizeof(out));
}

static uint8_t sq_destroy(QMlx5 *d, uint32_t sqn)
{
    return qmlx5_cmd_simple(d, DESTROY_SQ, 0, sqn, 0, NULL);
}

static QMlx5Qp sq_new(QMlx5 *d)
{
    QMlx5Qp q = sq_memory(d);
    SqIn in = sq_in(&q);

    g_assert_cmphex(sq_create(&q, &in), ==, 0);
    g_assert_cmphex(sq_modify(&q, RST, RDY, 0, 0, 0), ==, 0);
    return q;
}

static void nop(QMlx5Qp *q)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    qmlx5_post(q, &w);
    qmlx5_cq_expect(q->a.scq, QMLX5_CQE_REQ);
}

static void test_life(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp q = sq_memory(d), rc, *real;
    SqIn good = sq_in(&q), in;
    uint8_t big[SQ_IN + 256] = { }, b[16] = { };
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Wqe w;

    /* Refusals of CREATE. */
    in = good;
    MLX5_SET(wq_of(&in), wq, wq_type, 0);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET(wq_of(&in), wq, log_wq_stride, 5);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET(wq_of(&in), wq, log_wq_sz, 16);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, state, RDY);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, ts_format, 2);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, hairpin, 1);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET64(wq_of(&in), wq, dbr_addr, q.dbr + 2);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_PARAM);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, tis_lst_sz, 1);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, cqn, NOBODY);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    in = good;
    MLX5_SET(wq_of(&in), wq, pd, NOBODY);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    in = good;
    MLX5_SET(wq_of(&in), wq, uar_page, 1);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, packet_pacing_rate_limit_index, 3);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    in = good;
    MLX5_SET(sqc_of(&in), sqc, qos_queue_group_id, 3);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    in = good;
    MLX5_SET(wq_of(&in), wq, wq_umem_valid, 1);
    g_assert_cmphex(sq_create(&q, &in), ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cmd(d, good.b, SQ_IN, big, 16), ==,
                    QMLX5_BAD_INP_LEN);
    g_assert_cmphex(qmlx5_cmd(d, good.b, SQ_IN - 4, big, 16), ==,
                    QMLX5_BAD_INP_LEN);

    g_assert_cmphex(sq_create(&q, &good), ==, 0);
    g_assert_cmphex(qmlx5_cq_destroy(q.a.scq), ==, QMLX5_BAD_RES_STATE);
    qmlx5_cmd_head(b, QUERY_SQ, 0);
    stl_be_p(b + 8, q.qpn);
    g_assert_cmphex(qmlx5_cmd(d, b, 16, big, 64), ==, QMLX5_BAD_OUTP_LEN);
    g_assert_cmphex(qmlx5_cmd(d, b, 16, big, sizeof(big)), ==, 0);
    g_assert_cmphex(MLX5_GET(MLX5_ADDR(big, query_sq_out, sq_context), sqc,
                             cqn), ==, q.a.scq->cqn);

    /* States: the driver must know where it is. */
    g_assert_cmphex(sq_modify(&q, RDY, RDY, 0, 0, 0), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(sq_modify(&q, RST, 2, 0, 0, 0), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(sq_modify(&q, RST, RDY, 2, 0, 0), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(sq_modify(&q, RST, RDY, 0, 0, 0), ==, 0);
    nop(&q);
    g_assert_cmphex(sq_modify(&q, RDY, ERR, 0, 0, 0), ==, 0);
    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    qmlx5_post(&q, &w);
    qmlx5_cq_expect_err(q.a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
    g_assert_cmphex(sq_modify(&q, ERR, RDY, 0, 0, 0), ==,
                    QMLX5_BAD_RES_STATE);
    g_assert_cmphex(sq_modify(&q, ERR, RST, 0, 0, 0), ==, 0);
    q.sq_pi = 0;
    g_assert_cmphex(sq_modify(&q, RST, RDY, 0, 0, 0), ==, 0);
    nop(&q);
    /* It sends nothing. */
    qmlx5_post_send(&q, QMLX5_OP_SEND, d->lkey, d->vectors, 8);
    qmlx5_cq_expect_err(q.a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);

    /* It is no queue pair for the commands of those, and the reverse. */
    rc = q;
    g_assert_cmphex(qmlx5_qp_modify(&rc, QMLX5_2ERR_QP), ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_QP, 0, q.qpn, 0, NULL),
                    ==, QMLX5_BAD_RES);
    real = qmlx5_qp_new(d, &a);
    for (uint16_t op = MODIFY_SQ; op <= QUERY_SQ; op++) {
        uint8_t x[MLX5_BYTES(modify_sq_in)] = { };

        qmlx5_cmd_head(x, op, 0);
        stl_be_p(x + 8, real->qpn);
        g_assert_cmphex(qmlx5_cmd(d, x, sizeof(x), big, sizeof(big)), ==,
                        QMLX5_BAD_RES);
        stw_be_p(x + 2, 9);       /* another owner */
        stl_be_p(x + 8, q.qpn);
        g_assert_cmphex(qmlx5_cmd(d, x, sizeof(x), big, sizeof(big)), ==,
                        QMLX5_BAD_RES);
    }
    g_assert_cmphex(sq_destroy(d, q.qpn), ==, 0);
    g_assert_cmphex(sq_destroy(d, q.qpn), ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cq_destroy(q.a.scq), ==, 0);
    qmlx5_stop(d);
}

/* A rate and a queue group are held while a queue has them. */
static void test_pace(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp q = sq_new(d);
    uint8_t rate[MLX5_BYTES(set_pp_rate_limit_in)] = { }, out[64];
    uint8_t elem[MLX5_BYTES(create_scheduling_element_in)] = { };
    uint8_t *rc = MLX5_ADDR(rate, set_pp_rate_limit_in, ctx);
    uint8_t *ec = MLX5_ADDR(elem, create_scheduling_element_in,
                            scheduling_context);
    uint32_t group, root;

    qmlx5_cmd_head(rate, SET_PP_RATE_LIMIT, 0);
    MLX5_SET(rate, set_pp_rate_limit_in, rate_limit_index, 3);
    MLX5_SET(rc, set_pp_rate_limit_context, rate_limit, 1000);
    g_assert_cmphex(qmlx5_cmd(d, rate, sizeof(rate), out, 16), ==, 0);
    qmlx5_cmd_head(elem, CREATE_ELEM, 0);
    MLX5_SET(elem, create_scheduling_element_in, scheduling_hierarchy, 3);
    g_assert_cmphex(qmlx5_cmd(d, elem, sizeof(elem), out, 64), ==, 0);
    root = MLX5_GET(out, create_scheduling_element_out, scheduling_element_id);
    MLX5_SET(ec, scheduling_context, element_type, 4);
    MLX5_SET(ec, scheduling_context, parent_element_id, root);
    g_assert_cmphex(qmlx5_cmd(d, elem, sizeof(elem), out, 64), ==, 0);
    group = MLX5_GET(out, create_scheduling_element_out,
                     scheduling_element_id);

    g_assert_cmphex(sq_modify(&q, RDY, RDY, RATE, 4, 0), ==, QMLX5_BAD_RES);
    g_assert_cmphex(sq_modify(&q, RDY, RDY, GROUP, 0, root), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(sq_modify(&q, RDY, RDY, RATE | GROUP, 3, group), ==, 0);
    nop(&q);
    MLX5_SET(rc, set_pp_rate_limit_context, rate_limit, 0);
    g_assert_cmphex(qmlx5_cmd(d, rate, sizeof(rate), out, 16), ==,
                    QMLX5_BAD_RES_STATE);
    memset(elem, 0, sizeof(elem));
    qmlx5_cmd_head(elem, DESTROY_ELEM, 0);
    MLX5_SET(elem, destroy_scheduling_element_in, scheduling_element_id,
             group);
    g_assert_cmphex(qmlx5_cmd(d, elem, 64, out, 16), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(sq_destroy(d, q.qpn), ==, 0);
    g_assert_cmphex(qmlx5_cmd(d, rate, sizeof(rate), out, 16), ==, 0);
    g_assert_cmphex(qmlx5_cmd(d, elem, 64, out, 16), ==, 0);
    qmlx5_stop(d);
}

/* BlueFlame. */

/* Writes @len bytes of @w to half @half of the UAR's first register. */
static void bf_write(QMlx5Qp *q, int half, const uint8_t *w, uint32_t len)
{
    uint64_t at = q->d->bar + (uint64_t)q->uar * QMLX5_PAGE + BF +
                  half * BF_HALF;

    for (uint32_t i = 0; i < len; i += 8) {
        qtest_memwrite(q->d->qts, at + i, w + i, 8);
    }
}

/*
 * A NOP that is signaled in the register only, or in memory only; what
 * completes tells which of them was executed.
 */
static void bf_nop(QMlx5Qp *q, int half, bool signal_bf, uint32_t len)
{
    QMlx5Wqe w;

    qmlx5_wqe(&w, QMLX5_OP_NOP, signal_bf ? 0 : QMLX5_F_SIGNALED, 0);
    qmlx5_queue(q, &w);
    qmlx5_put32(q->d, q->dbr + 4, q->sq_pi);
    memset(w.b + w.len, 0, 64);
    w.b[11] ^= QMLX5_F_SIGNALED;
    bf_write(q, half, w.b, len);
    if (len % 64) {
        qmlx5_clock(q->d, 1000 * 1000);
    }
}

static int completed(QMlx5Qp *q)
{
    uint8_t cqe[64];
    int n = 0;

    while (qmlx5_cq_poll(q->a.scq, cqe)) {
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
        n++;
    }
    return n;
}

static void test_blueflame(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp q = sq_new(d), *rc;
    uint8_t *big = qmlx5_pattern(100, 5);
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    uint64_t data = qmlx5_alloc(d->host, QMLX5_PAGE);
    QMlx5Wqe w;

    /* The first is served before it is known that more will follow. */
    bf_nop(&q, 0, true, 64);
    g_assert_cmpint(completed(&q), ==, 0);
    for (int i = 0; i < 40; i++) {
        bf_nop(&q, ~i & 1, true, 64);
        g_assert_cmpint(completed(&q), ==, 1);
    }
    /* A doorbell that is one is served from memory, soon. */
    bf_nop(&q, 0, false, 8);
    g_assert_cmpint(completed(&q), ==, 1);
    /* ... also when the register is left in the middle. */
    bf_nop(&q, 0, true, 64);
    completed(&q);
    bf_nop(&q, 1, false, 40);
    g_assert_cmpint(completed(&q), ==, 1);
    /* ... or continued elsewhere. */
    bf_nop(&q, 0, true, 64);
    completed(&q);
    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    qmlx5_queue(&q, &w);
    qmlx5_put32(d, q.dbr + 4, q.sq_pi);
    bf_write(&q, 0, w.b, 16);
    qtest_memwrite(d->qts, d->bar + (uint64_t)q.uar * QMLX5_PAGE + BF + 56,
                   w.b, 8);
    g_assert_cmpint(completed(&q), ==, 1);

    /* A queue pair's requests come out of memory, once, at the first piece. */
    rc = qmlx5_qp_self(d, QMLX5_RC);
    for (int i = 0; i < 4; i++) {
        qtest_memset(d->qts, data, 0, 100);
        qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_raddr(&w, data, all);
        qmlx5_wqe_inline(&w, big, 60);
        qmlx5_queue(rc, &w);
        qmlx5_put32(d, rc->dbr + 4, rc->sq_pi);
        bf_write(rc, i & 1, w.b, 8);
        g_assert_cmpint(completed(rc), ==, 1);
        qmlx5_expect(d, data, 60, 5);
        bf_write(rc, i & 1, w.b, 128);
        g_assert_cmpint(completed(rc), ==, 0);
    }
    /* Longer than a register: from memory, at once. */
    qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_raddr(&w, data, all);
    for (int i = 0; i < 20; i++) {
        qmlx5_wqe_data(&w, d->lkey, data + 512, 4);
    }
    qmlx5_queue(rc, &w);
    qmlx5_put32(d, rc->dbr + 4, rc->sq_pi);
    bf_write(rc, 0, w.b, 8);
    g_assert_cmpint(completed(rc), ==, 1);
    /* The queue ends while its doorbell waits. */
    bf_nop(&q, 0, true, 64);
    bf_nop(&q, 1, true, 64);
    bf_write(&q, 0, w.b, 8);
    g_assert_cmphex(sq_destroy(d, q.qpn), ==, 0);
    qmlx5_clock(d, 1000 * 1000);
    g_free(big);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/sqobj/life", test_life);
    qtest_add_func("/mlx5/sqobj/pace", test_pace);
    qtest_add_func("/mlx5/sqobj/blueflame", test_blueflame);
    return g_test_run();
}
