/*
 * QTest: mlx5 counter sets of queue pairs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum { MSEC = 1000 * 1000 };

typedef struct Pair {
    QMlx5Host *h;
    QMlx5 *d[2];
    QMlx5Qp *qp[2];
    uint32_t set[2], key;
    uint64_t buf;
} Pair;

static uint32_t set_new(QMlx5 *d)
{
    uint8_t out[16];

    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ALLOC_Q_COUNTER, 0, 0, 0, out),
                    ==, 0);
    return MLX5_GET(out, alloc_q_counter_out, counter_set_id);
}

static void query(QMlx5 *d, uint32_t set, bool clear,
                  uint8_t out[MLX5_BYTES(query_q_counter_out)])
{
    uint8_t in[32] = { };

    qmlx5_cmd_head(in, QMLX5_QUERY_Q_COUNTER, 0);
    MLX5_SET(in, query_q_counter_in, counter_set_id, set);
    MLX5_SET(in, query_q_counter_in, clear, clear);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out,
                              MLX5_BYTES(query_q_counter_out)), ==, 0);
}

static uint32_t count(Pair *p, int i, uint32_t at)
{
    uint8_t out[MLX5_BYTES(query_q_counter_out)];

    query(p->d[i], p->set[i], false, out);
    return qmlx5_be32(out + at);
}

/* Field @f of set @i. */
#define COUNT(p, i, f) count(p, i, MLX5_OFF_query_q_counter_out_##f / 8)

static Pair pair(void)
{
    Pair p;

    p.h = qmlx5_start_n(p.d, 2, "");
    for (int i = 0; i < 2; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(p.d[i], QMLX5_RC);

        p.set[i] = set_new(p.d[i]);
        a.counter_set = p.set[i];
        a.retry = 1;
        a.ack_timeout = 1;
        a.rnr_retry = 1;
        p.qp[i] = qmlx5_qp_new(p.d[i], &a);
    }
    qmlx5_qp_connect(p.qp[0], p.qp[1]);
    qmlx5_qp_rts(p.qp[0]);
    qmlx5_qp_rts(p.qp[1]);
    p.buf = qmlx5_alloc(p.h, QMLX5_PAGE);
    p.key = qmlx5_mkey_pa(p.d[1], p.d[1]->pd, QMLX5_ALL);
    return p;
}

static void unpair(Pair *p)
{
    qmlx5_free(p->d[0]);
    qmlx5_free(p->d[1]);
    qmlx5_host_free(p->h);
}

static void revive(Pair *p)
{
    for (int i = 0; i < 2; i++) {
        qmlx5_qp_revive(p->qp[i]);
    }
}

static void pass(Pair *p)
{
    for (int i = 0; i < 6; i++) {
        qmlx5_clock(p->d[0], MSEC);
    }
}

static void post(Pair *p, uint8_t op, uint32_t key)
{
    if (op == QMLX5_OP_FA) {
        qmlx5_post_atomic(p->qp[0], op, p->d[0]->lkey, p->buf, key,
                          p->buf + 8, 1, 0);
    } else {
        qmlx5_post_rdma(p->qp[0], op, p->d[0]->lkey, p->buf, 8, key,
                        p->buf + 8);
    }
}

static void test_requests(void)
{
    Pair p = pair();
    uint8_t out[MLX5_BYTES(query_q_counter_out)];

    for (int i = 0; i < 6; i++) {
        post(&p, i < 3 ? QMLX5_OP_WRITE : i < 5 ? QMLX5_OP_READ : QMLX5_OP_FA,
             p.key);
        qmlx5_cq_expect(p.qp[0]->a.scq, QMLX5_CQE_REQ);
    }
    g_assert_cmpint(COUNT(&p, 1, rx_write_requests), ==, 3);
    g_assert_cmpint(COUNT(&p, 1, rx_read_requests), ==, 2);
    g_assert_cmpint(COUNT(&p, 1, rx_atomic_requests), ==, 1);
    g_assert_cmpint(COUNT(&p, 0, rx_write_requests), ==, 0);
    query(p.d[1], p.set[1], true, out);
    g_assert_cmpint(COUNT(&p, 1, rx_write_requests), ==, 0);
    unpair(&p);
}

static void test_errors(void)
{
    Pair p = pair();

    /* A wrong key. */
    post(&p, QMLX5_OP_WRITE, p.key + 1);
    qmlx5_cq_expect_err(p.qp[0]->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    g_assert_cmpint(COUNT(&p, 0, req_cqe_error), ==, 1);
    g_assert_cmpint(COUNT(&p, 0, req_remote_access_errors), ==, 1);
    g_assert_cmpint(COUNT(&p, 1, resp_remote_access_errors), ==, 1);
    post(&p, QMLX5_OP_WRITE, p.key);
    qmlx5_cq_expect_err(p.qp[0]->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
    g_assert_cmpint(COUNT(&p, 0, req_cqe_flush_error), ==, 1);
    revive(&p);

    /* Nobody answers. */
    g_assert_cmphex(qmlx5_qp_modify(p.qp[1], QMLX5_2RST_QP), ==, 0);
    post(&p, QMLX5_OP_WRITE, p.key);
    pass(&p);
    qmlx5_cq_expect_err(p.qp[0]->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    g_assert_cmpint(COUNT(&p, 0, local_ack_timeout_err), ==, 2);
    g_assert_cmpint(COUNT(&p, 0, req_transport_retries_exceeded), ==, 1);
    revive(&p);

    /* No receive WQE. */
    qmlx5_post_send(p.qp[0], QMLX5_OP_SEND, p.d[0]->lkey, p.buf, 8);
    pass(&p);
    qmlx5_cq_expect_err(p.qp[0]->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_RNR_RETRY);
    g_assert_cmpint(COUNT(&p, 1, out_of_buffer), ==, 2);
    g_assert_cmpint(COUNT(&p, 0, rnr_nak_retry_err), ==, 2);
    g_assert_cmpint(COUNT(&p, 0, req_rnr_retries_exceeded), ==, 1);
    revive(&p);

    /* One that is too small. */
    qmlx5_recv(p.qp[1], p.d[1]->lkey, p.buf, 4);
    qmlx5_post_send(p.qp[0], QMLX5_OP_SEND, p.d[0]->lkey, p.buf, 8);
    qmlx5_cq_expect_err(p.qp[0]->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_INVAL);
    g_assert_cmpint(COUNT(&p, 1, resp_local_length_error), ==, 1);
    g_assert_cmpint(COUNT(&p, 1, resp_cqe_error), ==, 1);
    g_assert_cmpint(COUNT(&p, 0, req_remote_invalid_request), ==, 1);
    unpair(&p);
}

/* RTS2RTS moves a queue pair to another set, as `rdma statistic` does. */
static void test_move(void)
{
    Pair p = pair();
    uint8_t in[512] = { }, out[16], cap[4096];
    uint8_t *qpc = MLX5_ADDR(in, rst2init_qp_in, qpc);

    qmlx5_query_cap(p.d[1], 0, true, cap);
    g_assert_cmpint(MLX5_GET(cap, cmd_hca_cap, rts2rts_qp_counters_set_id),
                    ==, 1);
    post(&p, QMLX5_OP_WRITE, p.key);
    qmlx5_cq_expect(p.qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(COUNT(&p, 1, rx_write_requests), ==, 1);
    p.set[1] = set_new(p.d[1]);
    qmlx5_cmd_head(in, QMLX5_RTS2RTS_QP, 0);
    MLX5_SET(in, rst2init_qp_in, qpn, p.qp[1]->qpn);
    MLX5_SET(in, rst2init_qp_in, opt_param_mask, 1 << 25);
    MLX5_SET(qpc, qpc, counter_set_id, p.set[1]);
    g_assert_cmphex(qmlx5_cmd(p.d[1], in, sizeof(in), out, sizeof(out)), ==,
                    0);
    post(&p, QMLX5_OP_WRITE, p.key);
    qmlx5_cq_expect(p.qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(COUNT(&p, 1, rx_write_requests), ==, 1);
    unpair(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/count/requests", test_requests);
    qtest_add_func("/mlx5/count/errors", test_errors);
    qtest_add_func("/mlx5/count/move", test_move);
    return g_test_run();
}
