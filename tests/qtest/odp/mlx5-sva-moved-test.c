/*
 * QTest: 64 accesses that wait, by each fault path, when the machine moves,
 * the device resets or is pulled out
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "mlx5-sva.h"

enum { N = 64 };

#define VA(i) (SVA_VA + (i) * 4096ull)

static const struct {
    const char *name;
    unsigned how;
    const char *props;
} path[] = {
    { "stall", SVA_STALL, ",x-portal-no-ats=on" },
    { "ats-stall", SVA_ATS | SVA_STALL, "" },
    { "pri", SVA_ATS | SVA_PRI, "" },
};

/* One queue pair each: what is written depends on its number. */
static void begin(Sva *s, QMlx5Qp **qp, uint32_t key)
{
    QMlx5QpAttr a = qmlx5_qp_attr(s->d, QMLX5_RC);

    for (int i = 0; i < N; i++) {
        qp[i] = qmlx5_qp_new(s->d, &a);
        qmlx5_qp_rts(qp[i]);
        qmlx5_fill(s->d, s->buf + i * 512, 512, i);
        if (i & 1) {
            qmlx5_recv(qp[i], key, VA(i), 512);
            qmlx5_post_send(qp[i], QMLX5_OP_SEND, s->all, s->buf + i * 512,
                            512);
        } else {
            qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, s->all, s->buf + i * 512,
                            512, key, VA(i));
        }
    }
    qmlx5_settle(s->d);
    g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, N);
}

/* Takes what the N accesses have asked for; maps and answers, or keeps @tag. */
static void answer(Sva *s, uint64_t *page, bool pri, bool serve, uint16_t *tag)
{
    struct {
        uint64_t va;
        uint16_t tag;
    } asked[N];
    bool seen[N] = { };

    for (int i = 0; i < N; i++) {
        uint64_t va;
        unsigned n;

        if (pri) {
            uint32_t cons = smmu_r(&s->t, SMMU_PRIQ_CONS);
            uint64_t at = s->t.priq + (cons & (q_mask(7) >> 1)) * 16;

            va = qtest_readq(s->t.qts, at + 8) & ~0xfffull;
            asked[i].tag = sva_pop_request(s, 0, va);
        } else {
            SmmuEvent e;

            smmu_pop_event(&s->t, &e);
            g_assert_cmphex(e.type, ==, F_TRANSLATION);
            g_assert_true(e.stall);
            va = e.addr;
            asked[i].tag = e.stag;
        }
        n = (va - SVA_VA) / 4096;
        g_assert_cmpuint(n, <, N);
        g_assert_false(seen[n]);
        seen[n] = true;
        asked[i].va = va;
        if (tag) {
            tag[i] = asked[i].tag;
        }
    }
    for (int i = 0; serve && i < N; i++) {
        page[(asked[i].va - SVA_VA) / 4096] = sva_map(s, 0, asked[i].va);
        if (pri) {
            sva_respond(s, 0, asked[i].tag, 2);
        } else {
            CMD_RESUME(&s->t, sva_sid(0), asked[i].tag, RESUME_RETRY);
        }
    }
}

/* Accesses of all queue pairs that have waited or wait */
static unsigned qp_waits(Sva *s)
{
    QDict *r = qtest_qmp_assert_success_ref(
        s->t.qts, "{ 'execute': 'qom-get', 'arguments': { 'path': %s, "
        "'property': 'fault-counters' } }", "/machine/peripheral/hca0");
    unsigned n = 0;
    QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(r, "qps"), e) {
        QDict *qp = qobject_to(QDict, qlist_entry_obj(e));

        n += qdict_get_int(qp, "stalls") + qdict_get_int(qp, "page-requests");
    }
    qobject_unref(r);
    return n;
}

static void test_moved(gconstpointer opaque)
{
    int p = GPOINTER_TO_INT(opaque);
    Sva *s = sva_start(path[p].how, path[p].props);
    bool pri = path[p].how & SVA_PRI;
    uint32_t key = sva_key(s, 0), key1 = sva_key(s, 1);
    QMlx5Qp *qp[N];
    uint64_t page[N];
    uint16_t tag[N];

    begin(s, qp, key);
    answer(s, page, pri, false, tag);
    g_assert_cmpuint(qp_waits(s), ==, N);
    sva_migrate(s, path[p].props);
    qmlx5_settle(s->d);
    g_assert_cmpuint(qp_waits(s), ==, 2 * N);
    g_assert_cmphex(sva_r(s, 0, SVA_REG_PASID), ==, SVA_PASID | SVA_VALID);
    g_assert_cmpuint(sva_r(s, 0, SVA_NKEYS), ==, 1);
    g_assert_cmpuint(sva_r(s, 1, SVA_NKEYS), ==, 1);
    g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, N);
    g_assert_cmpuint(sva_count(s, 0, pri ? SVA_PAGE_REQUESTS : SVA_STALLS), ==,
                     2 * N);
    if (pri) {
        /* Credits of the source's requests; their failures hit nobody. */
        g_assert_cmpuint(sva_count(s, 0, SVA_PRGS), ==, N);
        for (int i = 0; i < N; i++) {
            sva_respond(s, 0, tag[i], 0);
        }
        g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, N);
        g_assert_cmpuint(sva_count(s, 0, SVA_DENIED), ==, 0);
    }
    answer(s, page, pri, true, NULL);
    for (int i = 0; i < N; i++) {
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
        if (i & 1) {
            qmlx5_cq_expect(qp[i]->a.rcq, QMLX5_CQE_SEND);
        }
        qmlx5_expect(s->d, page[i], 512, i);
    }
    g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, 0);
    /* the keys go on, and new ones are new */
    qmlx5_post_rdma(qp[0], QMLX5_OP_READ, s->all, s->buf, 64, key, VA(0));
    qmlx5_cq_expect(qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(sva_key(s, 0), !=, key);
    g_assert_cmpint(sva_destroy(s, 1, key1), ==, SVA_R_OK);
    sva_stop(s);
}

/* Resets and ends with all of them waiting; the IOMMU's answers come late. */
static void test_reset(gconstpointer opaque)
{
    int p = GPOINTER_TO_INT(opaque);

    for (int how = 0; how < 5; how++) {
        Sva *s = sva_start(path[p].how, path[p].props);
        QMlx5Qp *qp[N];
        uint64_t page[N];

        begin(s, qp, sva_key(s, 0));
        switch (how) {
        case 0:
            sva_flr(s->portal[0]);
            break;
        case 1:
            sva_flr(s->d->pdev);
            break;
        case 2:
            qtest_system_reset(s->t.qts);
            break;
        case 3:
            for (int i = 0; i < N; i++) {
                g_assert_cmpint(qmlx5_qp_destroy(qp[i]), ==, QMLX5_OK);
            }
            break;
        case 4:
            sva_w(s, 0, SVA_CONTROL, 1);
            break;
        }
        qmlx5_settle(s->d);
        if (how != 0 && how != 2) { /* else the BAR is gone */
            g_assert_cmpuint(sva_count(s, 0, SVA_PENDING), ==, 0);
        }
        if (how == 0 || how == 4) {
            for (int i = 0; i < N; i++) {
                qmlx5_cq_expect_err(qp[i]->a.scq, QMLX5_CQE_REQ_ERR,
                                    i & 1 ? QMLX5_SYN_REMOTE_OP
                                          : QMLX5_SYN_REMOTE_ACCESS);
            }
        }
        if (how != 2) {
            answer(s, page, path[p].how & SVA_PRI, true, NULL);
        }
        sva_stop(s);
    }
}

/* The HCA is pulled out with all of them waiting; answers come late. */
static void test_unplug(gconstpointer opaque)
{
    int p = GPOINTER_TO_INT(opaque);
    Sva *s = sva_start(path[p].how | SVA_PORT, path[p].props);
    QMlx5Qp *qp[N];
    uint64_t page[N];

    begin(s, qp, sva_key(s, 0));
    sva_unplug(s);
    answer(s, page, path[p].how & SVA_PRI, true, NULL);
    for (int i = 0; i < 20; i++) {
        qtest_clock_step(s->t.qts, 100 * 1000 * 1000);
    }
    CMD_CFGI_ALL(&s->t);
    CMD_SYNC(&s->t);
    sva_stop(s);
}

/* The machine ends with all of them waiting. */
static void test_quit(gconstpointer opaque)
{
    int p = GPOINTER_TO_INT(opaque);
    Sva *s = sva_start(path[p].how, path[p].props);
    QMlx5Qp *qp[N];

    begin(s, qp, sva_key(s, 0));
    sva_stop(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int i = 0; i < ARRAY_SIZE(path); i++) {
        g_autofree char *moved = g_strdup_printf("/mlx5-sva/moved/%s",
                                                 path[i].name);
        g_autofree char *reset = g_strdup_printf("/mlx5-sva/reset/%s",
                                                 path[i].name);
        g_autofree char *quit = g_strdup_printf("/mlx5-sva/quit/%s",
                                                path[i].name);

        if (qtest_has_device("pcie-root-port")) {
            g_autofree char *unplug = g_strdup_printf("/mlx5-sva/unplug/%s",
                                                      path[i].name);

            qtest_add_data_func(unplug, GINT_TO_POINTER(i), test_unplug);
        }
        qtest_add_data_func(moved, GINT_TO_POINTER(i), test_moved);
        qtest_add_data_func(reset, GINT_TO_POINTER(i), test_reset);
        qtest_add_data_func(quit, GINT_TO_POINTER(i), test_quit);
    }
    return g_test_run();
}
