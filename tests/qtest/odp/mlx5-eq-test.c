/*
 * QTest: mlx5 event queues
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "mlx5-driver.h"

static uint8_t gen_eqe(QMlx5Eq *eq, uint8_t type, uint32_t tag)
{
    uint8_t in[MLX5_BYTES(gen_eqe_in)] = { };
    uint8_t *eqe = in + MLX5_AT(gen_eqe_in, eqe);

    qmlx5_cmd_head(in, QMLX5_GEN_EQE, 0);
    MLX5_SET(in, gen_eqe_in, eq_number, eq->eqn);
    eqe[1] = type;
    stl_be_p(eqe + 32, tag);
    stl_be_p(eqe + 56, ~tag);
    return qmlx5_cmd(eq->d, in, sizeof(in), NULL, 0);
}

static void query(QMlx5Eq *eq, uint8_t *eqc)
{
    uint8_t in[16] = { }, out[MLX5_BYTES(query_eq_out)] = { };

    qmlx5_cmd_head(in, QMLX5_QUERY_EQ, 0);
    stl_be_p(in + 8, eq->eqn);
    g_assert_cmphex(qmlx5_cmd(eq->d, in, sizeof(in), out, sizeof(out)), ==, 0);
    memcpy(eqc, MLX5_ADDR(out, query_eq_out, eq_context_entry),
           MLX5_BYTES(eqc));
}

static void test_owner(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 3, 4, 0);
    uint8_t eqe[64];

    for (uint32_t i = 0; i < 8 * 5 + 3; i++) {
        qmlx5_eq_none(eq);
        g_assert_cmphex(gen_eqe(eq, 0x77, 0x2bcd0000 + i), ==, 0);
        qmlx5_eq_wait(eq, 0x77, eqe);
        g_assert_cmphex(qmlx5_be32(eqe + 32), ==, 0x2bcd0000 + i);
        g_assert_cmphex(qmlx5_be32(eqe + 56), ==, ~(0x2bcd0000 + i));
        qmlx5_eq_update(eq, false);
    }
    qmlx5_stop(d);
}

static void test_burst(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 3, 4, 0);
    uint8_t eqe[64];
    uint32_t tag = 0, next = 0;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 6; i++) {
            g_assert_cmphex(gen_eqe(eq, 0x70, tag++), ==, 0);
        }
        for (int i = 0; i < 6; i++) {
            qmlx5_eq_wait(eq, 0x70, eqe);
            g_assert_cmphex(qmlx5_be32(eqe + 32), ==, next++);
        }
        qmlx5_eq_none(eq);
        qmlx5_eq_update(eq, false);
    }
    qmlx5_stop(d);
}

static void test_interrupt(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 4, 5, 0);
    uint8_t eqe[64];

    g_assert_false(qmlx5_irq(d, 5));
    g_assert_cmphex(gen_eqe(eq, 0x70, 1), ==, 0);
    g_assert_true(qmlx5_irq(d, 5));
    /* One interrupt an arm. */
    g_assert_cmphex(gen_eqe(eq, 0x70, 2), ==, 0);
    g_assert_false(qmlx5_irq(d, 5));
    qmlx5_eq_wait(eq, 0x70, eqe);
    /* Consumed one of two without arming, then armed: one is waiting. */
    qmlx5_eq_update(eq, false);
    g_assert_false(qmlx5_irq(d, 5));
    qmlx5_eq_update(eq, true);
    g_assert_true(qmlx5_irq(d, 5));
    qmlx5_eq_wait(eq, 0x70, eqe);
    qmlx5_eq_update(eq, true);
    g_assert_false(qmlx5_irq(d, 5));
    g_assert_cmphex(gen_eqe(eq, 0x70, 3), ==, 0);
    g_assert_true(qmlx5_irq(d, 5));
    for (unsigned v = 4; v < QMLX5_VECTORS; v++) {
        g_assert_false(qmlx5_irq(d, v));
    }
    qmlx5_stop(d);
}

static void test_masked_vector(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 4, 5, 0);
    uint8_t cap = qpci_find_capability(d->pdev, PCI_CAP_ID_MSIX, 0);
    uint32_t table = qpci_config_readl(d->pdev, cap + PCI_MSIX_TABLE) & ~7;
    uint32_t pba = qpci_config_readl(d->pdev, cap + PCI_MSIX_PBA) & ~7;
    uint64_t ctrl = d->bar + table + 5 * PCI_MSIX_ENTRY_SIZE + 12;

    qtest_writel(d->qts, ctrl, PCI_MSIX_ENTRY_CTRL_MASKBIT);
    g_assert_cmphex(gen_eqe(eq, 0x70, 1), ==, 0);
    g_assert_false(qmlx5_irq(d, 5));
    g_assert_cmphex(qtest_readl(d->qts, d->bar + pba) & 1 << 5, ==, 1 << 5);
    qtest_writel(d->qts, ctrl, 0);
    g_assert_true(qmlx5_irq(d, 5));
    qmlx5_stop(d);
}

static void test_full(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 2, 4, 0);
    uint8_t eqe[64], eqc[MLX5_BYTES(eqc)];

    for (uint32_t i = 0; i < 4; i++) {
        g_assert_cmphex(gen_eqe(eq, 0x70, i), ==, 0);
    }
    g_assert_cmphex(gen_eqe(eq, 0x70, 99), !=, 0);
    query(eq, eqc);
    g_assert_cmphex(MLX5_GET(eqc, eqc, status), ==, 9);
    /* What was there before is whole. */
    for (uint32_t i = 0; i < 4; i++) {
        qmlx5_eq_wait(eq, 0x70, eqe);
        g_assert_cmphex(qmlx5_be32(eqe + 32), ==, i);
    }
    qmlx5_eq_none(eq);
    qmlx5_eq_update(eq, false);
    g_assert_cmphex(gen_eqe(eq, 0x70, 100), ==, 0);
    qmlx5_eq_wait(eq, 0x70, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 32), ==, 100);
    qmlx5_stop(d);
}

static void test_doorbells(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 3, 5, 0);
    uint32_t uar2 = qmlx5_uar_new(d), own = eq->uar;
    uint8_t eqe[64], eqc[MLX5_BYTES(eqc)];

    g_assert_cmphex(gen_eqe(eq, 0x70, 1), ==, 0);
    g_assert_true(qmlx5_irq(d, 5));
    qmlx5_eq_wait(eq, 0x70, eqe);
    /* Of another UAR page: not heard. */
    eq->uar = uar2;
    qmlx5_eq_update(eq, true);
    query(eq, eqc);
    g_assert_cmphex(MLX5_GET(eqc, eqc, consumer_counter), ==, 0);
    /* Of a UAR page that was not allocated, of an EQ that does not exist. */
    eq->uar = uar2 + 1;
    qmlx5_eq_update(eq, true);
    eq->uar = own;
    qmlx5_bar_write(d, (uint64_t)own * QMLX5_PAGE + 0x40, 0x3e000000);
    query(eq, eqc);
    g_assert_cmphex(MLX5_GET(eqc, eqc, consumer_counter), ==, 0);
    /* A consumer index ahead of the producer: no event is made of it. */
    qmlx5_bar_write(d, (uint64_t)own * QMLX5_PAGE + 0x40, eq->eqn << 24 | 77);
    qmlx5_settle(d);
    qmlx5_eq_update(eq, true);
    query(eq, eqc);
    g_assert_cmphex(MLX5_GET(eqc, eqc, consumer_counter), ==, 1);
    g_assert_cmphex(gen_eqe(eq, 0x70, 2), ==, 0);
    qmlx5_eq_wait(eq, 0x70, eqe);
    qmlx5_stop(d);
}

static void test_bad_create(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq eq = { .d = d, .uar = d->uar, .vector = 1, .log_size = 4,
                   .buf = qmlx5_alloc(d->host, 4096) };
    uint8_t in[4096] = { }, out[16];
    uint8_t *eqc = MLX5_ADDR(in, create_eq_in, eq_context_entry);
    uint32_t len = qmlx5_eq_in(&eq, in, 0);

    MLX5_SET(eqc, eqc, log_eq_size, 31);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_PARAM);
    MLX5_SET(eqc, eqc, log_eq_size, 4);
    MLX5_SET(eqc, eqc, intr, 0xfff);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_PARAM);
    MLX5_SET(eqc, eqc, intr, 1);
    MLX5_SET(eqc, eqc, uar_page, 0xfffff);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_RES);
    MLX5_SET(eqc, eqc, uar_page, d->uar);
    /* One page of list, needs two. */
    MLX5_SET(eqc, eqc, log_eq_size, 7);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), !=, 0);
    MLX5_SET(eqc, eqc, log_eq_size, 4);
    /* Pages far too large for any list, and an offset beyond the page. */
    MLX5_SET(eqc, eqc, page_offset, 63);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), !=, 0);
    MLX5_SET(eqc, eqc, page_offset, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    qmlx5_stop(d);
}

static void test_unwritable(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq eq = { .d = d, .uar = d->uar, .vector = 1, .log_size = 4,
                   .buf = QMLX5_NOWHERE };
    uint8_t in[4096] = { }, out[16], eqc[MLX5_BYTES(eqc)];
    uint32_t len = qmlx5_eq_in(&eq, in, 0);

    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    eq.eqn = out[11];
    g_assert_cmphex(gen_eqe(&eq, 0x70, 1), !=, 0);
    query(&eq, eqc);
    g_assert_cmphex(MLX5_GET(eqc, eqc, status), ==, 0xa);
    g_assert_cmphex(qmlx5_eq_destroy(&eq), ==, 0);
    qmlx5_stop(d);
}

static void test_destroy(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 3, 4, 0);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Wqe w;
    QMlx5Cq *cq;
    QMlx5Qp *qp;

    g_assert_cmphex(qmlx5_eq_destroy(eq), ==, 0);
    g_assert_cmphex(qmlx5_eq_destroy(eq), ==, QMLX5_BAD_RES);
    g_assert_cmphex(gen_eqe(eq, 0x70, 1), ==, QMLX5_BAD_RES);
    qmlx5_eq_update(eq, true);
    /* One that a CQ reports to: refused, or the CQ's events go nowhere. */
    cq = qmlx5_cq_new(d, 4);
    qmlx5_eq_destroy(d->comp_eq);
    a.scq = a.rcq = cq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    qmlx5_cq_arm(cq, false);
    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect(cq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(qmlx5_cq_destroy(cq), ==, 0);
    qmlx5_stop(d);
}

static void test_many(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[4096] = { }, out[16], st;
    QMlx5Eq eq = { .d = d, .uar = d->uar, .vector = 1, .log_size = 4,
                   .buf = qmlx5_alloc(d->host, 4096) };
    uint32_t len = qmlx5_eq_in(&eq, in, 0);
    int n;

    /* Until there are no more, which is a status. */
    for (n = 0; n < 300; n++) {
        st = qmlx5_cmd(d, in, len, out, 16);
        if (st) {
            break;
        }
    }
    g_assert_cmpint(n, >=, 8);
    g_assert_cmpint(n, <, 300);
    g_assert_cmphex(st, ==, QMLX5_NO_RES);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/eq/owner", test_owner);
    qtest_add_func("/mlx5/eq/burst", test_burst);
    qtest_add_func("/mlx5/eq/interrupt", test_interrupt);
    qtest_add_func("/mlx5/eq/masked-vector", test_masked_vector);
    qtest_add_func("/mlx5/eq/full", test_full);
    qtest_add_func("/mlx5/eq/doorbells", test_doorbells);
    qtest_add_func("/mlx5/eq/bad-create", test_bad_create);
    qtest_add_func("/mlx5/eq/unwritable", test_unwritable);
    qtest_add_func("/mlx5/eq/destroy", test_destroy);
    qtest_add_func("/mlx5/eq/many", test_many);
    return g_test_run();
}
