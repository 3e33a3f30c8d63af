/*
 * QTest: mlx5 HCA moved to another QEMU with page faults pending
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define VA 0x7f1234000000ull

enum {
    N = 64,                       /* faults pending */
    ATOMICS = 16,                 /* of them */
    AFTER = 4,                    /* atomics executed, result not written */
};

static void test_idle(void)
{
    QMlx5Host *h = qmlx5_host(QMLX5_DEVICE);
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    QMlx5Qp *qp;
    uint64_t buf;
    uint32_t all;

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    qp = qmlx5_qp_self(d, QMLX5_RC);
    buf = qmlx5_alloc(h, 65536);
    all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    for (int i = 0; i < 3; i++) {
        qmlx5_fill(d, buf, 5000, i);
        qmlx5_recv(qp, d->lkey, buf + 16384, 64);
        qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, buf, 5000, all, buf + 8192);
        qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(d, buf + 8192, 5000, i);
        qmlx5_move(d);
        /* Rings, doorbells, events and commands go on. */
        qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 64);
        qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND);
        qmlx5_expect(d, buf + 16384, 64, i);
        g_assert_cmphex(qmlx5_mkey_destroy(d, qmlx5_mkey_pa(d, d->pd, 1)), ==,
                        0);
        qmlx5_cq_arm(qp->a.scq, false);
        qmlx5_irq(d, 2);
        qmlx5_post_rdma(qp, QMLX5_OP_READ, all, buf, 64, all, buf + 8192);
        qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        if (!i) {
            g_assert_true(qmlx5_irq(d, 2));
        }
    }
    qmlx5_stop(d);
}

/*
 * 64 queue pairs wait for pages: writes from and to the region, receives,
 * atomics not yet executed and atomics whose result has no page yet.
 */
static void test_faults(void)
{
    QMlx5Host *h = qmlx5_host(QMLX5_DEVICE);
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    QMlx5QpAttr a;
    QMlx5Qp *qp[N];
    QMlx5Fault f[N];
    uint64_t mem, buf, words, mtt[128] = { };
    uint32_t key, all;

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    qmlx5_pf_enable(d, 8);
    key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, 128);
    all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    mem = qmlx5_alloc(h, 128 * QMLX5_PAGE);
    buf = qmlx5_alloc(h, N * QMLX5_PAGE);
    words = qmlx5_alloc(h, QMLX5_PAGE);
    a = qmlx5_qp_attr(d, QMLX5_RC);

    for (int i = 0; i < N; i++) {
        uint64_t va = VA + i * QMLX5_PAGE, b = buf + i * QMLX5_PAGE;

        qp[i] = qmlx5_qp_new(d, &a);
        qmlx5_qp_rts(qp[i]);
        if (i < AFTER) {
            qmlx5_put64_le(d, words + i * 8, 500 + i);
            qmlx5_post_atomic(qp[i], QMLX5_OP_FA, key, va, all, words + i * 8,
                              11, 0);
        } else if (i < ATOMICS) {
            qmlx5_put64_le(d, mem + i * QMLX5_PAGE, 900 + i);
            qmlx5_post_atomic(qp[i], QMLX5_OP_FA, all, b, key, va, 13, 0);
        } else if (i % 3 == 0) {
            qmlx5_fill(d, b, 3000, i);
            qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, all, b, 3000, key, va);
        } else if (i % 3 == 1) {
            qmlx5_fill(d, mem + i * QMLX5_PAGE, 3000, i);
            qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, key, va, 3000, all, b);
        } else {
            qmlx5_fill(d, b, 3000, i);
            qmlx5_recv(qp[i], key, va, 4096);
            qmlx5_post_send(qp[i], QMLX5_OP_SEND, all, b, 3000);
        }
        qmlx5_pf_wait(d, &f[i]);
        g_assert_cmphex(f[i].va, ==, va);
    }
    for (int i = 0; i < AFTER; i++) {
        g_assert_cmpint(qmlx5_get64_le(d, words + i * 8), ==, 511 + i);
    }

    qmlx5_move(d);

    for (int i = 0; i < N; i++) {
        qmlx5_cq_none(qp[i]->a.scq);
    }
    for (int i = 0; i < N; i++) {
        mtt[i] = (mem + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(d, key, 0, mtt, 128);
    for (int i = N - 1; i >= 0; i--) {
        g_assert_cmphex(qmlx5_pf_resume(d, &f[i], false), ==, 0);
    }
    for (int i = 0; i < N; i++) {
        uint64_t b = buf + i * QMLX5_PAGE, page = mem + i * QMLX5_PAGE;

        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
        if (i < AFTER) {
            g_assert_cmpint(qmlx5_get64_le(d, words + i * 8), ==, 511 + i);
            g_assert_cmpint(qmlx5_get64_le(d, page), ==, 500 + i);
        } else if (i < ATOMICS) {
            g_assert_cmpint(qmlx5_get64_le(d, page), ==, 913 + i);
            g_assert_cmpint(qmlx5_get64_le(d, b), ==, 900 + i);
        } else if (i % 3 == 1) {
            qmlx5_expect(d, b, 3000, i);
        } else {
            qmlx5_expect(d, page, 3000, i);
        }
        if (i >= ATOMICS && i % 3 == 2) {
            g_assert_cmpint(qmlx5_cq_expect(qp[i]->a.rcq, QMLX5_CQE_SEND), ==,
                            3000);
        }
        qmlx5_cq_none(qp[i]->a.scq);
    }
    /* Everything still works. */
    qmlx5_post_rdma(qp[0], QMLX5_OP_WRITE, all, buf, 64, key, VA);
    qmlx5_cq_expect(qp[0]->a.scq, QMLX5_CQE_REQ);
    qmlx5_stop(d);
}

/* The event queue was full when the machine moved: the rest comes there. */
static void test_untold_faults(void)
{
    QMlx5Host *h = qmlx5_host(QMLX5_DEVICE);
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    QMlx5Qp *qp[12];
    QMlx5Fault f;
    uint64_t mem, mtt[16] = { };
    uint32_t key;

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    qmlx5_pf_enable(d, 2);
    key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, 16);
    mem = qmlx5_alloc(h, 16 * QMLX5_PAGE);
    for (int i = 0; i < 12; i++) {
        qp[i] = qmlx5_qp_self(d, QMLX5_RC);
        qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, d->lkey, d->vectors, 64, key,
                        VA + i * QMLX5_PAGE);
        mtt[i] = (mem + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_move(d);
    qmlx5_mtt_update(d, key, 0, mtt, 16);
    for (int i = 0; i < 12; i++) {
        qmlx5_pf_wait(d, &f);
        g_assert_cmphex(f.va, ==, VA + i * QMLX5_PAGE);
        g_assert_cmphex(qmlx5_pf_resume(d, &f, false), ==, 0);
    }
    for (int i = 0; i < 12; i++) {
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
    }
    qmlx5_stop(d);
}

/* A receiver that is not ready: the timer goes on at the other end. */
static void test_timers(void)
{
    QMlx5Host *h = qmlx5_host(QMLX5_DEVICE);
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    QMlx5Qp *qp;

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    qp = qmlx5_qp_self(d, QMLX5_RC);
    qmlx5_fill(d, d->vectors + 512, 64, 1);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, d->vectors + 512, 64);
    qmlx5_cq_none(qp->a.scq);
    qmlx5_move(d);
    qmlx5_recv(qp, d->lkey, d->vectors + 1024, 64);
    for (int i = 0; i < 20; i++) {
        qmlx5_clock(d, 1000000);
    }
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND);
    qmlx5_expect(d, d->vectors + 1024, 64, 1);
    qmlx5_stop(d);
}

static uint32_t elem_new(QMlx5 *d, uint8_t type, uint32_t parent, uint32_t max)
{
    uint8_t in[MLX5_BYTES(create_scheduling_element_in)] = { };
    uint8_t out[MLX5_BYTES(create_scheduling_element_out)] = { };
    uint8_t *c = MLX5_ADDR(in, create_scheduling_element_in,
                           scheduling_context);

    qmlx5_cmd_head(in, 0x782, 0);
    MLX5_SET(in, create_scheduling_element_in, scheduling_hierarchy, 3);
    MLX5_SET(c, scheduling_context, element_type, type);
    MLX5_SET(c, scheduling_context, parent_element_id, parent);
    MLX5_SET(c, scheduling_context, max_average_bw, max);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    return MLX5_GET(out, create_scheduling_element_out, scheduling_element_id);
}

/* A queue group's limit holds at the other end, and what waits for it. */
static void test_paced(void)
{
    QMlx5Host *h = qmlx5_host(QMLX5_DEVICE);
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    uint8_t in[0x1d0] = { }, out[16], cqe[64];
    uint32_t leaf, all;
    QMlx5Qp *qp;
    int n = 0;

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    qp = qmlx5_qp_self(d, QMLX5_RC);
    all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    leaf = elem_new(d, 4, elem_new(d, 0, 0, 0), 8);
    qmlx5_qp_context(qp, QMLX5_RTS2RTS_QP, in);
    in[8] |= 0x80;
    stq_be_p(in + 0x108, 2);
    stl_be_p(in + 0x114, leaf);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    for (int i = 0; i < 4; i++) {
        qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, d->vectors, 1000, all,
                        d->vectors + 2048);
    }
    qmlx5_move(d);
    for (int i = 0; i < 8; i++) {
        qmlx5_clock(d, 1000000);
    }
    while (qmlx5_cq_poll(qp->a.scq, cqe)) {
        n++;
    }
    g_assert_cmpint(n, ==, 4);
    /* The group is still held, and lets go. */
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, 0x783, 0);
    MLX5_SET(in, destroy_scheduling_element_in, scheduling_element_id, leaf);
    g_assert_cmphex(qmlx5_cmd(d, in, 64, out, sizeof(out)), ==, 0);
    qmlx5_stop(d);
}

/* A command on flow table @table; what it makes, bits 23:0 of dword 2. */
static uint32_t flow_cmd(QMlx5 *d, uint16_t op, uint8_t *in, uint32_t len,
                         uint32_t table)
{
    uint8_t out[16] = { };

    qmlx5_cmd_head(in, op, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, 7);
    MLX5_SET(in, destroy_flow_table_in, table_id, table);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, sizeof(out)), ==, 0);
    return qmlx5_be32(out + 8) & 0xffffff;
}

/* Flow tables, and the numbers that general objects hold. */
static void test_steering(void)
{
    QMlx5Host *h = qmlx5_host(QMLX5_DEVICE);
    QMlx5 *d = qmlx5_open(h, QMLX5_SLOT);
    uint8_t in[1024] = { }, out[16], *ctx;
    uint32_t table, group, all, rqpn;
    QMlx5Qp *qp;

    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    qp = qmlx5_qp_self(d, QMLX5_RC);
    all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    table = flow_cmd(d, 0x930, in, 64, 0);
    group = flow_cmd(d, 0x933, in, 1024, table);
    memset(in, 0, sizeof(in));
    ctx = MLX5_ADDR(in, set_fte_in, flow_context);
    MLX5_SET(ctx, flow_context, group_id, group);
    MLX5_SET(ctx, flow_context, action, 2);        /* drop */
    flow_cmd(d, 0x936, in, 1024, table);
    memset(in, 0, sizeof(in));
    flow_cmd(d, 0x92f, in, 64, table);             /* root */
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, 0xa00, 0x2c);
    in[12] = 3;
    g_assert_cmphex(qmlx5_cmd(d, in, 32, out, sizeof(out)), ==, 0);
    rqpn = qmlx5_be32(out + 8);

    qmlx5_move(d);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, d->vectors, 8, all,
                    d->vectors + 8);
    qmlx5_cq_none(qp->a.scq);
    memset(in, 0, sizeof(in));
    flow_cmd(d, 0x938, in, 64, table);             /* the entry ends */
    for (int i = 0; i < 20; i++) {
        qmlx5_clock(d, 100 * 1000 * 1000);
    }
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, 0xa03, 0x2c);
    stl_be_p(in + 8, rqpn);
    g_assert_cmphex(qmlx5_cmd(d, in, 16, out, sizeof(out)), ==, 0);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/migrate/idle", test_idle);
    qtest_add_func("/mlx5/migrate/faults", test_faults);
    qtest_add_func("/mlx5/migrate/untold-faults", test_untold_faults);
    qtest_add_func("/mlx5/migrate/timers", test_timers);
    qtest_add_func("/mlx5/migrate/paced", test_paced);
    qtest_add_func("/mlx5/migrate/steering", test_steering);
    return g_test_run();
}
