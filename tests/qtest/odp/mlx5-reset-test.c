/*
 * QTest: mlx5 HCA reset, taken away or cut off in mid-traffic; properties
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "mlx5-driver.h"

#define VA 0x7f1234000000ull

/* Traffic of every kind under way: bytes, faults, RNR, armed queues. */
static void make_traffic(QMlx5 *d)
{
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL), key;
    uint64_t buf = qmlx5_alloc(d->host, 4 << 20);
    QMlx5Fault f;

    if (!d->pf_eq) {
        qmlx5_pf_enable(d, 8);
    }
    key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, 64);
    for (int i = 0; i < 8; i++) {
        QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);

        qmlx5_cq_arm(qp->a.scq, false);
        qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, buf, 64, key,
                        VA + i * QMLX5_PAGE);
        qmlx5_pf_wait(d, &f);
    }
    for (int i = 0; i < 3; i++) {
        QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);

        qmlx5_post_send(qp, QMLX5_OP_SEND, all, buf, 64);     /* RNR */
        qp = qmlx5_qp_self(d, QMLX5_RC);
        for (int n = 0; n < 8; n++) {
            qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, buf, 2 << 20, all,
                            buf + (2 << 20));
        }
    }
}

/* After a reset nothing of the old life may write to memory any more. */
static void quiet(QMlx5 *d)
{
    uint64_t from = d->cmdq, len = d->host->next - from;
    g_autofree uint8_t *before = g_malloc(len), *after = g_malloc(len);

    qmlx5_settle(d);
    qmlx5_read(d, from, before, len);
    for (int i = 0; i < 10; i++) {
        qmlx5_clock(d, 100 * 1000 * 1000);
    }
    qmlx5_read(d, from, after, len);
    g_assert_true(!memcmp(before, after, len));
}

static void forget(QMlx5 *d)
{
    d->umr_qp = NULL;
    d->umr_cq = NULL;
    d->pf_eq = NULL;
}

static void works(QMlx5 *d)
{
    QMlx5Qp *qp;
    uint64_t buf = qmlx5_alloc(d->host, 8192);
    uint32_t all;

    forget(d);
    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    qp = qmlx5_qp_self(d, QMLX5_RC);
    qmlx5_fill(d, buf, 4000, 3);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, buf, 4000, all, buf + 4096);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(d, buf + 4096, 4000, 3);
}

static void flr(QMlx5 *d)
{
    uint8_t cap = qpci_find_capability(d->pdev, PCI_CAP_ID_EXP, 0);
    uint16_t v;

    g_assert_cmpint(cap, !=, 0);
    v = qpci_config_readw(d->pdev, cap + PCI_EXP_DEVCTL);
    qpci_config_writew(d->pdev, cap + PCI_EXP_DEVCTL,
                       v | PCI_EXP_DEVCTL_BCR_FLR);
}

/* BARs lose their address in any reset. */
static void remap(QMlx5 *d)
{
    qpci_config_writel(d->pdev, PCI_BASE_ADDRESS_0, d->bar);
    qpci_config_writel(d->pdev, PCI_BASE_ADDRESS_1, d->bar >> 32);
    qpci_config_writew(d->pdev, PCI_COMMAND,
                       PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

static void test_system_reset(void)
{
    QMlx5 *d = qmlx5_start("");

    for (int i = 0; i < 3; i++) {
        make_traffic(d);
        qtest_system_reset(d->qts);
        remap(d);
        quiet(d);
        works(d);
    }
    qmlx5_stop(d);
}

static void test_flr(void)
{
    QMlx5 *d = qmlx5_start("");

    for (int i = 0; i < 3; i++) {
        make_traffic(d);
        flr(d);
        remap(d);
        quiet(d);
        works(d);
    }
    qmlx5_stop(d);
}

static void test_teardown(void)
{
    QMlx5 *d = qmlx5_start("");

    for (int i = 0; i < 3; i++) {
        make_traffic(d);
        g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_TEARDOWN_HCA, 0, 0, 0, NULL),
                        ==, 0);
        quiet(d);
        g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DISABLE_HCA, 0, 0, 0, NULL),
                        ==, 0);
        works(d);
    }
    qmlx5_stop(d);
}

/* Health: what the init segment says of what a user makes the firmware say */

enum { ISEG_CMDQ_L = 0x14, ISEG_SEVERITY = 0x238, ISEG_SYND = 0x23c,
       ISEG_COUNTER = 0x1010 };

static uint32_t iseg(QMlx5 *d, uint32_t off)
{
    return bswap32(qtest_readl(d->qts, d->bar + off));
}

static bool set_health(QMlx5 *d, int syndrome)
{
    QDict *r = qtest_qmp(d->qts, "{ 'execute': 'qom-set', 'arguments': "
                         "{ 'path': '/machine/peripheral/hca0', "
                         "'property': 'health-syndrome', 'value': %d } }",
                         syndrome);
    bool ok = qdict_haskey(r, "return");

    qobject_unref(r);
    return ok;
}

static bool counts(QMlx5 *d)
{
    uint32_t before = iseg(d, ISEG_COUNTER);

    qmlx5_clock(d, 100 * 1000 * 1000);
    return iseg(d, ISEG_COUNTER) != before;
}

static void test_health_fatal(void)
{
    static const int syndromes[] = { 0x1, 0x7, 0x8, 0xc, 0x13 };
    QMlx5 *d = qmlx5_start("");

    for (int i = 0; i < ARRAY_SIZE(syndromes); i++) {
        uint32_t value;

        make_traffic(d);
        g_assert_cmphex(iseg(d, ISEG_SYND), ==, 0);
        g_assert_cmphex(iseg(d, ISEG_SEVERITY), ==, 0);
        g_assert_true(counts(d));
        g_assert_true(set_health(d, syndromes[i]));
        g_assert_cmphex(iseg(d, ISEG_SYND), ==, syndromes[i] << 16);
        /* Reset wanted, severity valid: error. */
        g_assert_cmphex(iseg(d, ISEG_SEVERITY), ==, 0x8b000000);
        g_assert_false(counts(d));
        qmlx5_cmd_ring(d, 1);
        quiet(d);
        /* Not by wishing. */
        g_assert_false(set_health(d, 0));
        g_assert_false(set_health(d, 0x10));
        g_assert_cmphex(iseg(d, ISEG_SYND), ==, syndromes[i] << 16);

        if (i & 1) {
            flr(d);
            remap(d);
        } else {
            value = (iseg(d, ISEG_CMDQ_L) & ~0xfffu) | 7 << 8;
            qtest_writel(d->qts, d->bar + ISEG_CMDQ_L, bswap32(value));
        }
        /* Disabled until a driver comes. */
        g_assert_cmphex(iseg(d, ISEG_CMDQ_L) >> 8 & 7, ==, 1);
        g_assert_cmphex(iseg(d, ISEG_SYND), ==, 0);
        works(d);
    }
    qmlx5_stop(d);
}

/* Too warm: it says so and works on. */
static void test_health_warning(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    uint64_t buf = qmlx5_alloc(d->host, 8192);

    g_assert_true(set_health(d, 0x10));
    g_assert_cmphex(iseg(d, ISEG_SYND), ==, 0x10 << 16);
    g_assert_cmphex(iseg(d, ISEG_SEVERITY), ==, 0x0c000000);
    g_assert_true(counts(d));
    qmlx5_fill(d, buf, 4000, 3);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, buf, 4000, all, buf + 4096);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(d, buf + 4096, 4000, 3);
    /* These are none. */
    g_assert_false(set_health(d, 0x2));
    g_assert_false(set_health(d, 0x11));
    g_assert_false(set_health(d, 0x14));
    g_assert_cmphex(iseg(d, ISEG_SYND), ==, 0x10 << 16);
    g_assert_true(set_health(d, 0));
    g_assert_cmphex(iseg(d, ISEG_SYND), ==, 0);
    qmlx5_stop(d);
}

/* No bus mastering: no access to memory, and no crash. */
static void test_bus_master_off(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);

    make_traffic(d);
    qmlx5_settle(d);
    qpci_config_writew(d->pdev, PCI_COMMAND, PCI_COMMAND_MEMORY);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, d->lkey, d->vectors, 64, d->lkey,
                    d->vectors);
    qmlx5_cmd_ring(d, 1);
    quiet(d);
    qpci_config_writew(d->pdev, PCI_COMMAND,
                       PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
    flr(d);
    remap(d);
    works(d);
    qmlx5_stop(d);
}

/* Pulled out of a root port; the guest answers by switching the slot off. */
static void port_write(QMlx5Host *h, uint32_t off, uint64_t v, int size)
{
    uint64_t at = h->gbus.ecam_alloc_ptr + (QPCI_DEVFN(3, 0) << 12) + off;

    if (size == 2) {
        qtest_writew(h->qts, at, v);
    } else {
        qtest_writel(h->qts, at, v);
    }
}

static void test_device_del(void)
{
    QMlx5Host *h = qmlx5_host("-device pcie-root-port,id=rp,addr=0x3 "
                              "-device mlx5-hca,id=hca0,bus=rp");
    QPCIDevice *port = qpci_device_find(&h->gbus.bus, QPCI_DEVFN(3, 0));
    uint64_t root = h->gbus.ecam_alloc_ptr;
    uint8_t exp;
    QMlx5 *d;

    g_assert_nonnull(port);
    exp = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);
    /* Bus 1 behind it, all of the window that libqos hands out. */
    port_write(h, PCI_PRIMARY_BUS, 0x00010100, 4);
    port_write(h, PCI_MEMORY_BASE, 0x2ef01000, 4);
    port_write(h, PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    h->gbus.ecam_alloc_ptr = root + (1 << 20);
    d = qmlx5_open(h, 0);
    qmlx5_enable_pci(d);
    qmlx5_cmdq_init(d);
    qmlx5_bring_up(d);
    make_traffic(d);
    h->gbus.ecam_alloc_ptr = root;

    qtest_qmp_assert_success(h->qts, "{ 'execute': 'device_del', "
                             "'arguments': { 'id': 'hca0' } }");
    /* Power and both indicators off. */
    port_write(h, exp + PCI_EXP_SLTCTL, 0x07c0, 2);
    qtest_qmp_eventwait(h->qts, "DEVICE_DELETED");
    for (int i = 0; i < 20; i++) {
        qtest_clock_step(h->qts, 100 * 1000 * 1000);
    }
    g_free(port);
    qmlx5_stop(d);
}

/* One of two on a fabric is reset: the other's operations end. */
static void test_peer_reset(void)
{
    QMlx5 *d[2];
    QMlx5Host *h = qmlx5_start_n(d, 2, "");
    QMlx5Qp *qp[2];
    QMlx5Fault f;
    uint32_t key;

    qmlx5_pf_enable(d[1], 6);
    key = qmlx5_mkey_odp(d[1], QMLX5_ALL, VA, 8);
    for (int i = 0; i < 2; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(d[i], QMLX5_RC);

        a.ack_timeout = 8;
        qp[i] = qmlx5_qp_new(d[i], &a);
    }
    qmlx5_qp_connect(qp[0], qp[1]);
    qmlx5_qp_rts(qp[0]);
    qmlx5_qp_rts(qp[1]);
    qmlx5_post_rdma(qp[0], QMLX5_OP_WRITE, d[0]->lkey, d[0]->vectors, 64, key,
                    VA);
    qmlx5_pf_wait(d[1], &f);
    flr(d[1]);
    for (int i = 0; i < 20; i++) {
        qmlx5_clock(d[0], 3000000);
    }
    qmlx5_cq_expect_err(qp[0]->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    qmlx5_free(d[1]);
    qmlx5_free(d[0]);
    qmlx5_host_free(h);
}

/* Wrong properties: one line that names the property and what to write */

/* Lines that QEMU printed; a sanitizer's own notes begin with "==". */
static int lines_of_error(const char *err)
{
    g_auto(GStrv) lines = g_strsplit(err, "\n", -1);
    int n = 0;

    for (int i = 0; lines[i]; i++) {
        n += *lines[i] && !g_str_has_prefix(lines[i], "==");
    }
    return n;
}

static void bad_property(const char *args, const char *property,
                         const char *fix)
{
    g_autofree char *err = NULL;
    g_auto(GStrv) argv = NULL;
    g_autofree char *line = g_strdup_printf(
        "%s -machine virt -nodefaults -display none -accel qtest %s",
        qtest_qemu_binary(NULL), args);
    int status = 0;

    g_assert_true(g_shell_parse_argv(line, NULL, &argv, NULL));
    g_assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL,
                               NULL, NULL, NULL, &err, &status, NULL));
    g_test_message("%s: %s", args, err);
    g_assert_cmpint(status, !=, 0);
    g_assert_nonnull(strstr(err, property));
    g_assert_nonnull(strstr(err, fix));
    g_assert_cmpint(lines_of_error(err), ==, 1);
}

static void test_properties(void)
{
    bad_property("-device mlx5-hca,link=eth", "link=eth", "link=ib");
    bad_property("-device mlx5-hca,link=token-ring", "link=token-ring",
                 "link=ib");
    bad_property("-device mlx5-hca,odp=maybe", "odp=maybe", "odp=memory");
    bad_property("-device mlx5-hca,num-vectors=1", "num-vectors=1",
                 "num-vectors=2");
    bad_property("-device mlx5-hca,num-vectors=5000", "num-vectors=5000",
                 "num-vectors=");
    bad_property("-device pcie-pci-bridge,id=b -device mlx5-hca,bus=b,addr=1",
                 "mlx5-hca", "bus=pcie.0");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/reset/system", test_system_reset);
    qtest_add_func("/mlx5/reset/flr", test_flr);
    qtest_add_func("/mlx5/reset/teardown", test_teardown);
    qtest_add_func("/mlx5/reset/health-fatal", test_health_fatal);
    qtest_add_func("/mlx5/reset/health-warning", test_health_warning);
    qtest_add_func("/mlx5/reset/bus-master-off", test_bus_master_off);
    qtest_add_func("/mlx5/reset/peer", test_peer_reset);
    qtest_add_func("/mlx5/reset/properties", test_properties);
    if (qtest_has_device("pcie-root-port")) {
        qtest_add_func("/mlx5/reset/device-del", test_device_del);
    }
    return g_test_run();
}
