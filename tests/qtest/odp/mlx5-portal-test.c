/*
 * QTest: SVA portals, every rule of docs/specs/mlx5-sva-portal.md
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-sva.h"

#define VA SVA_VA
#define NO_ATS ",x-portal-no-ats=on"

static void write_to(Sva *s, QMlx5Qp *qp, uint32_t key)
{
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, s->buf, 64, key, VA);
}

/* A write by @key is refused as remote access. */
static void denied(Sva *s, QMlx5Qp *qp, uint32_t key)
{
    write_to(s, qp, key);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(qp);
}

static void granted(Sva *s, QMlx5Qp *qp, uint32_t key)
{
    write_to(s, qp, key);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
}

static void test_registers(void)
{
    Sva *s = sva_start(SVA_STALL, NO_ATS);

    for (int i = 0; i < SVA_PORTALS; i++) {
        QPCIDevice *d = s->portal[i];

        g_assert_cmphex(qpci_config_readl(d, 0), ==, 0x7f5a15b3);
        g_assert_cmphex(qpci_config_readl(d, 8), ==, 0x08800001);
        g_assert_cmphex(qpci_find_capability(d, PCI_CAP_ID_MSI, 0), ==, 0);
        g_assert_cmphex(qpci_find_capability(d, PCI_CAP_ID_MSIX, 0), ==, 0);
        g_assert_cmphex(qtest_readw(s->t.qts, sva_ecam(s, i, SVA_CAP_PASID)),
                        ==, 0x1b);
        g_assert_cmphex(qtest_readw(s->t.qts, sva_ecam(s, i, SVA_CAP_ATS)),
                        ==, 0xf);
        g_assert_cmphex(qtest_readw(s->t.qts, sva_ecam(s, i, SVA_CAP_PRI)),
                        ==, 0x13);
        /* memory, 32 bits, not prefetchable, 64 KiB */
        g_assert_cmphex(qpci_config_readl(d, 0x10) & 0xffff, ==, 0);
        g_assert_cmphex(sva_r(s, i, SVA_MAGIC), ==, 0x50415653);
        g_assert_cmphex(sva_r(s, i, SVA_VERSION), ==, 0x00010000);
        g_assert_cmphex(sva_r(s, i, SVA_CAP), ==,
                        20 | 1 << 8 | 12 << 16 | (i + 1) << 24);
        /* latched, master, PASID, HCA */
        g_assert_cmphex(sva_r(s, i, SVA_STATUS), ==, 0x2b);
        /* nothing there */
        sva_w(s, i, 0x1000, 0x12345678);
        g_assert_cmphex(sva_r(s, i, 0x1000), ==, 0);
    }
    sva_w(s, 0, SVA_KEY_START, 0x11111111);
    sva_w(s, 0, SVA_KEY_START + 4, 0x22222222);
    g_assert_cmphex(qpci_io_readq(s->portal[0], s->bar[0], SVA_KEY_START), ==,
                    0x2222222211111111ull);
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_LENGTH,
                   0x4444444433333333ull);
    g_assert_cmphex(sva_r(s, 0, SVA_KEY_LENGTH), ==, 0x33333333);
    g_assert_cmphex(sva_r(s, 0, SVA_KEY_LENGTH + 4), ==, 0x44444444);
    sva_w(s, 0, SVA_CONTROL, 1);
    g_assert_cmphex(sva_r(s, 0, SVA_KEY_START), ==, 0);
    g_assert_cmphex(sva_r(s, 0, SVA_KEY_LENGTH), ==, 0);
    g_assert_cmphex(sva_r(s, 0, SVA_REG_PASID), ==, 0);
    g_assert_cmphex(sva_r(s, 1, SVA_REG_PASID), ==,
                    (SVA_PASID + 1) | SVA_VALID);
    sva_stop(s);
}

/* Each result, and that no key comes with it */
static void test_results(void)
{
    Sva *s = sva_start(SVA_ATS, "");
    uint32_t key, pd = s->d->pd;
    static const uint32_t bad_access[] = { 2, 8, 1 << 4, 1u << 31, 1 << 6 };

    g_assert_cmpint(sva_command(s, 0, 0), ==, SVA_R_BAD_COMMAND);
    g_assert_cmpint(sva_command(s, 0, 77), ==, SVA_R_BAD_COMMAND);
    g_assert_cmpint(sva_make(s, 0, 0, 0, &key), ==, SVA_R_BAD_PD);
    g_assert_cmpint(sva_make(s, 0, 0xffffff, 0, &key), ==, SVA_R_BAD_PD);
    for (int i = 0; i < ARRAY_SIZE(bad_access); i++) {
        g_assert_cmpint(sva_make(s, 0, pd, bad_access[i], &key), ==,
                        SVA_R_BAD_ACCESS);
    }
    sva_w(s, 0, SVA_KEY_START, 4096);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_BAD_RANGE);
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_LENGTH, -4095ull);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_BAD_RANGE);
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_LENGTH, -4096ull);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_OK);
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_START, 0);
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_LENGTH, 0);

    /* keys of others, of nobody, with another variant */
    g_assert_cmpint(sva_destroy(s, 1, key), ==, SVA_R_BAD_KEY);
    g_assert_cmpint(sva_destroy(s, 0, key ^ 1), ==, SVA_R_BAD_KEY);
    g_assert_cmpint(sva_destroy(s, 0, s->all), ==, SVA_R_BAD_KEY);
    g_assert_cmpint(sva_destroy(s, 0, 0), ==, SVA_R_BAD_KEY);
    g_assert_cmpint(sva_command(s, 0, SVA_QUERY), ==, SVA_R_BAD_KEY);
    g_assert_cmpint(sva_destroy(s, 0, key), ==, SVA_R_OK);
    g_assert_cmpint(sva_destroy(s, 0, key), ==, SVA_R_BAD_KEY);

    /* the latch */
    g_assert_cmpint(sva_latch(s, 0, SVA_PASID), ==, SVA_R_OK);
    g_assert_cmpint(sva_latch(s, 0, SVA_PASID + 1), ==, SVA_R_LATCHED);
    sva_w(s, 0, SVA_CONTROL, 1);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_NO_PASID);
    g_assert_cmpint(sva_latch(s, 0, 0), ==, SVA_R_BAD_PASID);
    g_assert_cmpint(sva_latch(s, 0, 1 << 20), ==, SVA_R_BAD_PASID);
    sva_w(s, 0, SVA_REG_PASID, SVA_PASID);
    g_assert_cmpint(sva_r(s, 0, SVA_RESULT), ==, SVA_R_BAD_PASID);
    /* one that the IOMMU does not know */
    g_assert_cmpint(sva_latch(s, 0, SVA_PASID + 1), ==, SVA_R_OK);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_UNBOUND);
    sva_w(s, 0, SVA_CONTROL, 1);
    g_assert_cmpint(sva_latch(s, 0, SVA_PASID), ==, SVA_R_OK);

    sva_pasid(s, 0, false);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_PASID_OFF);
    sva_pasid(s, 0, true);
    sva_ats(s, 0, false);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_ATS_OFF);
    sva_ats(s, 0, true);
    sva_master(s, 0, false);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_NO_MASTER);
    sva_master(s, 0, true);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_OK);

    sva_flr(s->d->pdev);
    g_assert_cmpint(sva_make(s, 0, pd, 0, &key), ==, SVA_R_HCA_DOWN);
    g_assert_cmphex(sva_r(s, 0, SVA_STATUS) & 1 << 5, ==, 0);
    sva_stop(s);
}

/* Rights and bounds are those that the key was made with. */
static void test_rights(void)
{
    Sva *s = sva_start(SVA_STALL, NO_ATS);
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key, other = qmlx5_pd_new(s->d);

    sva_map(s, 0, VA);
    sva_map(s, 0, VA + 4096);
    for (uint32_t access = 0; access <= SVA_ALL; access++) {
        if (access & 0xa && !(access & 1)) {
            continue;
        }
        g_assert_cmpint(sva_make(s, 0, s->d->pd, access, &key), ==, SVA_R_OK);
        if (access & 2) {
            granted(s, qp, key);
        } else {
            denied(s, qp, key);
        }
        qmlx5_post_rdma(qp, QMLX5_OP_READ, s->all, s->buf, 64, key, VA);
        if (access & 4) {
            qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        } else {
            qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR,
                                QMLX5_SYN_REMOTE_ACCESS);
            qmlx5_qp_revive(qp);
        }
        qmlx5_post_atomic(qp, QMLX5_OP_FA, s->all, s->buf, key, VA, 1, 0);
        if (access & 8) {
            qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        } else {
            qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR,
                                QMLX5_SYN_REMOTE_ACCESS);
            qmlx5_qp_revive(qp);
        }
        /* local reading always, local writing by right */
        qmlx5_post_rdma(qp, QMLX5_OP_WRITE, key, VA, 64, s->all, s->buf);
        qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        qmlx5_post_rdma(qp, QMLX5_OP_READ, key, VA, 64, s->all, s->buf);
        if (access & 1) {
            qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
        } else {
            qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR,
                                QMLX5_SYN_LOCAL_PROT);
            qmlx5_qp_revive(qp);
        }
        g_assert_cmpint(sva_destroy(s, 0, key), ==, SVA_R_OK);
    }
    /* another protection domain */
    g_assert_cmpint(sva_make(s, 0, other, SVA_ALL, &key), ==, SVA_R_OK);
    denied(s, qp, key);
    /* a range */
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_START, VA + 32);
    qpci_io_writeq(s->portal[0], s->bar[0], SVA_KEY_LENGTH, 64);
    g_assert_cmpint(sva_make(s, 0, s->d->pd, SVA_ALL, &key), ==, SVA_R_OK);
    denied(s, qp, key);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, s->buf, 64, key, VA + 32);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, s->buf, 65, key, VA + 32);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(qp);
    /* nothing of the other portal's process is there */
    key = sva_key(s, 1);
    sva_stop(s);
}

/* Two processes at one address: each key reaches its own page. */
static void test_two(void)
{
    Sva *s = sva_start(SVA_ATS, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint64_t page[2] = { sva_map(s, 0, VA), sva_map(s, 1, VA) };
    uint32_t key[2] = { sva_key(s, 0), sva_key(s, 1) };

    for (int i = 0; i < 2; i++) {
        qmlx5_fill(s->d, s->buf, 64, 10 + i);
        granted(s, qp, key[i]);
    }
    qmlx5_expect(s->d, page[0], 64, 10);
    qmlx5_expect(s->d, page[1], 64, 11);
    sva_unmap(s, 1, VA);
    granted(s, qp, key[0]);
    denied(s, qp, key[1]);
    sva_stop(s);
}

/* What ends keys */
enum {
    END_DESTROY, END_RESET, END_FLR, END_MASTER, END_D3, END_PASID, END_ATS,
    END_HCA_FLR, END_TEARDOWN, END_UNBIND, ENDS,
};

static void end_keys(Sva *s, int how, uint32_t key)
{
    uint8_t out[16], pm;

    switch (how) {
    case END_DESTROY:
        g_assert_cmpint(sva_destroy(s, 0, key), ==, SVA_R_OK);
        break;
    case END_RESET:
        sva_w(s, 0, SVA_CONTROL, 1);
        break;
    case END_FLR:
        sva_flr(s->portal[0]);
        qpci_device_enable(s->portal[0]);
        qpci_config_writel(s->portal[0], 0x10, s->bar[0].addr);
        sva_pasid(s, 0, true);
        sva_ats(s, 0, true);
        break;
    case END_MASTER:
        sva_master(s, 0, false);
        sva_master(s, 0, true);
        break;
    case END_D3:
        pm = qpci_find_capability(s->portal[0], PCI_CAP_ID_PM, 0);
        qpci_config_writew(s->portal[0], pm + PCI_PM_CTRL, 3);
        qpci_config_writew(s->portal[0], pm + PCI_PM_CTRL, 0);
        break;
    case END_PASID:
        sva_pasid(s, 0, false);
        sva_pasid(s, 0, true);
        break;
    case END_ATS:
        sva_ats(s, 0, false);
        sva_ats(s, 0, true);
        break;
    case END_HCA_FLR:
        sva_flr(s->d->pdev);
        break;
    case END_TEARDOWN:
        g_assert_cmpint(qmlx5_cmd_simple(s->d, QMLX5_TEARDOWN_HCA, 0, 0, 0,
                                         out), ==, QMLX5_OK);
        break;
    case END_UNBIND:
        /* as Linux: the context descriptor first, then the invalidation */
        s->cd[0].invalid = true;
        cd_write(&s->t, s->cds[0] + SVA_PASID * 64, &s->cd[0]);
        CMD_CFGI_CD(&s->t, sva_sid(0), SVA_PASID);
        CMD_SYNC(&s->t);
        g_assert_cmphex(sva_r(s, 0, SVA_NKEYS), ==, 1);
        sva_atc_inv_all(s, 0);
        g_assert_cmphex(sva_r(s, 0, SVA_STATUS) & SVA_UNBOUND, !=, 0);
        break;
    }
}

/* Each of them, with an access that waits and without */
static void test_ends(void)
{
    for (int i = 0; i < ENDS * 2; i++) {
        int how = i / 2;
        bool waits = i & 1, hca = how == END_HCA_FLR || how == END_TEARDOWN;
        Sva *s = sva_start(SVA_ATS | SVA_STALL, "");
        QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
        uint32_t key = sva_key(s, 0), key1 = sva_key(s, 1), again;

        if (waits) {
            write_to(s, qp, key);
            qmlx5_cq_none(qp->a.scq);
            g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, 1);
        } else {
            sva_map(s, 0, VA);
            granted(s, qp, key);
        }
        end_keys(s, how, key);
        g_assert_cmpuint(sva_r(s, 0, SVA_NKEYS), ==, 0);
        g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, 0);
        if (hca) {
            g_assert_cmpuint(sva_r(s, 1, SVA_NKEYS), ==, 0);
            g_assert_cmpint(sva_make(s, 0, s->d->pd, 0, &again), !=, SVA_R_OK);
            sva_stop(s);
            continue;
        }
        if (waits) {
            qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR,
                                QMLX5_SYN_REMOTE_ACCESS);
            qmlx5_qp_revive(qp);
            /* the kernel's late answer is to nobody */
            CMD_RESUME(&s->t, sva_sid(0), sva_pop_stall(s, 0, VA, false),
                       RESUME_RETRY);
            sva_map(s, 0, VA);
        }
        denied(s, qp, key);
        g_assert_cmpuint(sva_r(s, 1, SVA_NKEYS), ==, 1);
        sva_map(s, 1, VA);
        granted(s, qp, key1);
        if (how == END_UNBIND) {
            g_assert_cmpint(sva_make(s, 0, s->d->pd, 0, &again), ==,
                            SVA_R_UNBOUND);
            s->cd[0].invalid = false;
            cd_write(&s->t, s->cds[0] + SVA_PASID * 64, &s->cd[0]);
            CMD_CFGI_CD(&s->t, sva_sid(0), SVA_PASID);
            CMD_SYNC(&s->t);
            /* the PASID's next process: the old keys stay dead */
            denied(s, qp, key);
            g_assert_cmpint(sva_make(s, 0, s->d->pd, 0, &again), ==,
                            SVA_R_UNBOUND);
            sva_w(s, 0, SVA_CONTROL, 1);
        }
        g_assert_cmpint(sva_latch(s, 0, SVA_PASID), ==, SVA_R_OK);
        again = sva_key(s, 0);
        g_assert_cmphex(again, !=, key);
        granted(s, qp, again);
        denied(s, qp, key);
        sva_stop(s);
    }
}

/* A whole-PASID invalidation while the process lives ends nothing. */
static void test_flush(void)
{
    Sva *s = sva_start(SVA_ATS, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);

    sva_map(s, 0, VA);
    granted(s, qp, key);
    sva_atc_inv_all(s, 0);
    granted(s, qp, key);
    g_assert_cmphex(sva_r(s, 0, SVA_STATUS) & SVA_UNBOUND, ==, 0);
    g_assert_cmpuint(sva_count(s, 0, SVA_ATC_MISSES), ==, 2);
    sva_stop(s);
}

static void test_dealloc_pd(void)
{
    Sva *s = sva_start(SVA_STALL, NO_ATS);
    uint32_t pd = qmlx5_pd_new(s->d), key, keep = sva_key(s, 0);
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint8_t out[16];

    for (int i = 0; i < SVA_PORTALS; i++) {
        g_assert_cmpint(sva_make(s, i, pd, SVA_ALL, &key), ==, SVA_R_OK);
    }
    g_assert_cmpint(qmlx5_cmd_simple(s->d, QMLX5_DEALLOC_PD, 0, pd, 0, out),
                    ==, QMLX5_OK);
    g_assert_cmpuint(sva_r(s, 0, SVA_NKEYS), ==, 1);
    g_assert_cmpuint(sva_r(s, 1, SVA_NKEYS), ==, 0);
    g_assert_cmpint(sva_destroy(s, 1, key), ==, SVA_R_BAD_KEY);
    sva_map(s, 0, VA);
    granted(s, qp, keep);
    sva_stop(s);
}

/* Numbers come back late, and with another variant. */
static void test_recycling(void)
{
    enum { ROUNDS = 9000 };
    Sva *s = sva_start(SVA_STALL, NO_ATS);
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) last = g_hash_table_new(NULL, NULL);
    uint32_t key, first = 0;

    sva_map(s, 0, VA);
    sva_w(s, 0, SVA_KEY_PD, s->d->pd);
    sva_w(s, 0, SVA_KEY_ACCESS, SVA_ALL);
    for (int i = 0; i < ROUNDS; i++) {
        gpointer was;

        g_assert_cmpint(sva_command(s, 0, SVA_MAKE), ==, SVA_R_OK);
        key = sva_r(s, 0, SVA_KEY);
        first = first ?: key;
        g_assert_true(g_hash_table_add(seen, GUINT_TO_POINTER(key)));
        was = g_hash_table_lookup(last, GUINT_TO_POINTER(key >> 8));
        g_assert_true(!was || i + 1 - GPOINTER_TO_INT(was) > 4096);
        g_hash_table_insert(last, GUINT_TO_POINTER(key >> 8),
                            GINT_TO_POINTER(i + 1));
        g_assert_cmpint(sva_command(s, 0, SVA_DESTROY), ==, SVA_R_OK);
        if (i % 1000 == 0) {
            denied(s, qp, first);
            denied(s, qp, key);
        }
    }
    sva_stop(s);
}

static void test_many(void)
{
    Sva *s = sva_start(SVA_STALL, NO_ATS);
    uint32_t key;

    sva_w(s, 0, SVA_KEY_PD, s->d->pd);
    for (int i = 0; i < 4096; i++) {
        g_assert_cmpint(sva_command(s, 0, SVA_MAKE), ==, SVA_R_OK);
    }
    g_assert_cmpint(sva_command(s, 0, SVA_MAKE), ==, SVA_R_NO_RESOURCES);
    g_assert_cmphex(sva_r(s, 0, SVA_KEY), ==, 0);
    g_assert_cmpuint(sva_r(s, 0, SVA_NKEYS), ==, 4096);
    key = sva_key(s, 1);
    sva_w(s, 0, SVA_CONTROL, 1);
    g_assert_cmpuint(sva_r(s, 0, SVA_NKEYS), ==, 0);
    g_assert_cmpuint(sva_r(s, 1, SVA_NKEYS), ==, 1);
    g_assert_cmpint(sva_destroy(s, 1, key), ==, SVA_R_OK);
    sva_stop(s);
}

/* A key without PASID: the portal's stream alone */
static void test_no_pasid(void)
{
    Sva *s = sva_start(0, NO_ATS ",x-portal-no-pasid=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint64_t page = smmu_pages(&s->t, 1);
    uint32_t key;

    g_assert_cmphex(sva_r(s, 0, SVA_CAP) >> 9 & 1, ==, 1);
    g_assert_cmpint(sva_make(s, 0, s->d->pd, SVA_ALL | 1u << 31, &key), ==,
                    SVA_R_OK);
    denied(s, qp, key);           /* STE.S1DSS: no stream without PASID */
    ste_write(&s->t, sva_sid(0), &(Ste) {
        .config = 5, .cd = s->cds[0], .s1cdmax = 4, .s1dss = 2,
    });
    cd_write(&s->t, s->cds[0], &s->cd[0]);
    CMD_CFGI_STE(&s->t, sva_sid(0));
    CMD_SYNC(&s->t);
    pt_map(&s->t, s->root[0], VA, page, PTE_RW_EL0);
    qmlx5_fill(s->d, s->buf, 64, 5);
    granted(s, qp, key);
    qmlx5_expect(s->d, page, 64, 5);
    /* with the PASID off it lives on */
    sva_pasid(s, 0, false);
    g_assert_cmpuint(sva_r(s, 0, SVA_NKEYS), ==, 1);
    granted(s, qp, key);
    sva_stop(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5-portal/registers", test_registers);
    qtest_add_func("/mlx5-portal/results", test_results);
    qtest_add_func("/mlx5-portal/rights", test_rights);
    qtest_add_func("/mlx5-portal/two", test_two);
    qtest_add_func("/mlx5-portal/ends", test_ends);
    qtest_add_func("/mlx5-portal/flush", test_flush);
    qtest_add_func("/mlx5-portal/dealloc-pd", test_dealloc_pd);
    qtest_add_func("/mlx5-portal/recycling", test_recycling);
    qtest_add_func("/mlx5-portal/many", test_many);
    qtest_add_func("/mlx5-portal/no-pasid", test_no_pasid);
    return g_test_run();
}
