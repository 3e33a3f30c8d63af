/*
 * QTest: mlx5 device memory, keys on it and its atomic operations
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum { INCREMENT, TEST_AND_SET };

static uint64_t bar_start(QMlx5 *d, uint32_t *size)
{
    uint8_t cap[4096];

    qmlx5_query_cap(d, 0xf, true, cap);
    *size = MLX5_GET(cap, device_mem_cap, memic_bar_size);
    return MLX5_GET64(cap, device_mem_cap, memic_bar_start_addr);
}

static uint8_t alloc_in(QMlx5 *d, uint64_t from, uint32_t range, uint32_t size,
                        uint32_t log_align, uint64_t *at)
{
    uint8_t in[MLX5_BYTES(alloc_memic_in)] = { };
    uint8_t out[MLX5_BYTES(alloc_memic_out)] = { }, st;

    qmlx5_cmd_head(in, QMLX5_ALLOC_MEMIC, 0);
    MLX5_SET64(in, alloc_memic_in, range_start_addr, from);
    MLX5_SET(in, alloc_memic_in, range_size, range);
    MLX5_SET(in, alloc_memic_in, memic_size, size);
    MLX5_SET(in, alloc_memic_in, log_memic_addr_alignment, log_align);
    st = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *at = MLX5_GET64(out, alloc_memic_out, memic_start_addr);
    return st;
}

static uint64_t alloc(QMlx5 *d, uint32_t size)
{
    uint32_t all;
    uint64_t start = bar_start(d, &all), at;

    g_assert_cmphex(alloc_in(d, start, all, size, 0, &at), ==, 0);
    return at;
}

static uint8_t dealloc(QMlx5 *d, uint64_t at, uint32_t size)
{
    uint8_t in[MLX5_BYTES(dealloc_memic_in)] = { };

    qmlx5_cmd_head(in, QMLX5_DEALLOC_MEMIC, 0);
    MLX5_SET64(in, dealloc_memic_in, memic_start_addr, at);
    MLX5_SET(in, dealloc_memic_in, memic_size, size);
    return qmlx5_cmd(d, in, sizeof(in), NULL, 0);
}

static uint8_t modify(QMlx5 *d, unsigned op, uint64_t at, bool end,
                      uint64_t *op_at)
{
    uint8_t in[MLX5_BYTES(modify_memic_in)] = { };
    uint8_t out[MLX5_BYTES(modify_memic_out)] = { }, st;

    qmlx5_cmd_head(in, QMLX5_MODIFY_MEMIC, end);
    MLX5_SET(in, modify_memic_in, memic_operation_type, op);
    MLX5_SET64(in, modify_memic_in, memic_start_addr, at);
    st = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *op_at = MLX5_GET64(out, modify_memic_out, memic_operation_addr);
    return st;
}

static void test_alloc(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t all;
    uint64_t start = bar_start(d, &all), at, other;

    g_assert_cmphex(alloc_in(d, start, all, 0, 0, &at), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(alloc_in(d, start - 4096, 4096, 64, 0, &at), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(alloc_in(d, start + 8, 4096, 64, 0, &at), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(alloc_in(d, start, all + 64, 64, 0, &at), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(alloc_in(d, start, 4096, 8192, 0, &at), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(alloc_in(d, start, all, 64, 13, &at), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(alloc_in(d, start, 4096, 4096, 0, &at), ==, 0);
    g_assert_cmphex(at, ==, start);
    g_assert_cmphex(alloc_in(d, start, 4096, 64, 0, &other), ==, QMLX5_NO_RES);
    g_assert_cmphex(alloc_in(d, start, 8192, 64, 0, &other), ==, 0);
    g_assert_cmphex(other, ==, start + 4096);

    g_assert_cmphex(dealloc(d, at, 2048), ==, QMLX5_BAD_RES);
    g_assert_cmphex(dealloc(d, at, 4096 + 64), ==, QMLX5_BAD_RES);
    g_assert_cmphex(dealloc(d, at + 64, 64), ==, QMLX5_BAD_RES);
    g_assert_cmphex(dealloc(d, at, 0), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(dealloc(d, start + all, 64), ==, QMLX5_BAD_PARAM);
    qtest_writeq(d->qts, d->bar + at, 0x1122334455667788ull);
    g_assert_cmphex(dealloc(d, at, 4096), ==, 0);
    g_assert_cmphex(dealloc(d, at, 4096), ==, QMLX5_BAD_RES);
    /* The next owner does not see it. */
    g_assert_cmphex(qtest_readq(d->qts, d->bar + at), ==, 0);
    g_assert_cmphex(dealloc(d, other, 64), ==, 0);
    qmlx5_stop(d);
}

/* A key on it: RDMA and atomics reach what the CPU sees in the BAR. */
static void test_key(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint64_t mem = qmlx5_alloc(d->host, 4096), at = alloc(d, 4096);
    QMlx5MkeyAttr a = { .mode = 5, .pd = d->pd, .access = QMLX5_ALL,
                        .va = at, .len = 4096 };
    uint32_t key = qmlx5_mkey_new(d, &a), bad;

    qmlx5_fill(d, mem, 4096, 7);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, d->lkey, mem, 4096, key, 0);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(d, d->bar + at, 4096, 7);
    qtest_writeq(d->qts, d->bar + at + 8, 5);
    qmlx5_post_atomic(qp, QMLX5_OP_FA, d->lkey, mem, key, 8, 3, 0);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_get64_le(d, mem), ==, 5);
    g_assert_cmphex(qtest_readq(d->qts, d->bar + at + 8), ==, 8);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, d->lkey, mem, 64, key, 4096 - 63);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);

    a.va = at - (64 << 20);
    g_assert_cmphex(qmlx5_mkey_cmd(d, &a, &bad), ==, QMLX5_BAD_PARAM);
    qmlx5_stop(d);
}

static void test_operations(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t at = alloc(d, 128), inc, tas, win;

    g_assert_cmphex(modify(d, INCREMENT, at, false, &inc), ==, 0);
    g_assert_cmphex(modify(d, TEST_AND_SET, at, false, &tas), ==, 0);
    g_assert_cmphex(inc, !=, tas);
    for (unsigned log = 0; log < 4; log++) {
        uint64_t mem = d->bar + at + 64 + 8 * log;

        qtest_writeq(d->qts, mem, 0xf0);
        for (unsigned i = 0; i < 2; i++) {
            win = d->bar + inc + 64 + 8 * log;
            switch (log) {
            case 0:
                qtest_writeb(d->qts, win, 0x09);
                break;
            case 1:
                qtest_writew(d->qts, win, 0x09);
                break;
            case 2:
                qtest_writel(d->qts, win, 0x09);
                break;
            default:
                qtest_writeq(d->qts, win, 0x09);
                break;
            }
        }
        /* One byte has no carry into the next. */
        g_assert_cmphex(qtest_readq(d->qts, mem), ==, log ? 0x102 : 0x02);
        win = d->bar + tas + 64 + 8 * log;
        switch (log) {
        case 0:
            g_assert_cmphex(qtest_readb(d->qts, win), ==, 0x02);
            break;
        case 1:
            g_assert_cmphex(qtest_readw(d->qts, win), ==, 0x102);
            break;
        case 2:
            g_assert_cmphex(qtest_readl(d->qts, win), ==, 0x102);
            break;
        default:
            g_assert_cmphex(qtest_readq(d->qts, win), ==, 0x102);
            break;
        }
        g_assert_cmphex(qtest_readq(d->qts, mem), ==, 1);
    }
    /* The other direction does nothing. */
    g_assert_cmphex(qtest_readb(d->qts, d->bar + inc + 64), ==, 0);
    qtest_writeb(d->qts, d->bar + tas + 64, 0x55);
    g_assert_cmphex(qtest_readb(d->qts, d->bar + at + 64), ==, 1);
    /* Behind the allocation. */
    qtest_writeb(d->qts, d->bar + inc + 128, 0x11);
    g_assert_cmphex(qtest_readl(d->qts, d->bar + at + 64), ==, 1);
    g_assert_cmphex(qtest_readb(d->qts, d->bar + at + 128), ==, 0);
    qmlx5_stop(d);
}

static void test_operation_commands(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t all;
    uint64_t start = bar_start(d, &all), at = alloc(d, 128), x, y;
    uint8_t in[16] = { };

    g_assert_cmphex(modify(d, 2, at, false, &x), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(modify(d, INCREMENT, at + 8, false, &x), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(modify(d, INCREMENT, start + all, false, &x), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(modify(d, INCREMENT, at + 64, false, &x), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(modify(d, INCREMENT, at, true, &x), ==,
                    QMLX5_BAD_RES_STATE);
    qmlx5_cmd_head(in, QMLX5_MODIFY_MEMIC, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), NULL, 0), ==,
                    QMLX5_BAD_INP_LEN);

    g_assert_cmphex(modify(d, INCREMENT, at, false, &x), ==, 0);
    g_assert_cmphex(modify(d, INCREMENT, at, false, &y), ==,
                    QMLX5_BAD_RES_STATE);
    /* Memory that is operated on stays. */
    g_assert_cmphex(dealloc(d, at, 128), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(modify(d, INCREMENT, at, true, &y), ==, 0);
    qtest_writeb(d->qts, d->bar + x, 1);
    g_assert_cmphex(qtest_readb(d->qts, d->bar + at), ==, 0);
    g_assert_cmphex(dealloc(d, at, 128), ==, 0);
    g_assert_cmphex(modify(d, INCREMENT, at, false, &y), ==, QMLX5_BAD_RES);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/memic/alloc", test_alloc);
    qtest_add_func("/mlx5/memic/key", test_key);
    qtest_add_func("/mlx5/memic/operations", test_operations);
    qtest_add_func("/mlx5/memic/operation-commands", test_operation_commands);
    return g_test_run();
}
