/*
 * QTest: keys of SVA portals in traffic, by every fault path
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "mlx5-sva.h"

#define VA SVA_VA

/* The four ways in which an operation reaches memory by a portal's key */
enum { WRITE_TO, WRITE_FROM, RECEIVE, ATOMIC, WAYS };

static void post(Sva *s, QMlx5Qp *qp, int way, uint32_t key, uint64_t va)
{
    switch (way) {
    case WRITE_TO:
        qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, s->buf, 64, key, va);
        break;
    case WRITE_FROM:
        qmlx5_post_rdma(qp, QMLX5_OP_WRITE, key, va, 64, s->all,
                        s->buf + 4096);
        break;
    case RECEIVE:
        qmlx5_recv(qp, key, va, 64);
        qmlx5_post_send(qp, QMLX5_OP_SEND, s->all, s->buf, 64);
        break;
    default:
        qmlx5_post_atomic(qp, QMLX5_OP_FA, s->all, s->buf + 8192, key, va, 7,
                          0);
        break;
    }
}

/* What memory must hold after it. @page: the page at va. */
static void check(Sva *s, QMlx5Qp *qp, int way, uint64_t page)
{
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    switch (way) {
    case RECEIVE:
        g_assert_cmpuint(qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND), ==, 64);
        /* fall through */
    case WRITE_TO:
        qmlx5_expect(s->d, page, 64, 1);
        break;
    case WRITE_FROM:
        qmlx5_expect(s->d, s->buf + 4096, 64, 2);
        break;
    default:
        g_assert_cmpuint(qmlx5_get64_le(s->d, page), ==, 107);
        g_assert_cmpuint(qmlx5_get64_le(s->d, s->buf + 8192), ==, 100);
        break;
    }
}

static void fill(Sva *s, int way, uint64_t page)
{
    qmlx5_fill(s->d, s->buf, 64, 1);
    if (way == WRITE_FROM) {
        qmlx5_fill(s->d, page, 64, 2);
    } else if (way == ATOMIC) {
        qmlx5_put64_le(s->d, page, 100);
    }
}

/* The completions of an access that was refused */
static void refused(Sva *s, QMlx5Qp *qp, int way)
{
    static const uint8_t syndrome[WAYS] = {
        QMLX5_SYN_REMOTE_ACCESS, QMLX5_SYN_LOCAL_PROT, QMLX5_SYN_REMOTE_OP,
        QMLX5_SYN_REMOTE_ACCESS,
    };

    if (way == RECEIVE) {
        qmlx5_cq_expect_err(qp->a.rcq, QMLX5_CQE_RESP_ERR,
                            QMLX5_SYN_LOCAL_PROT);
    }
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, syndrome[way]);
    qmlx5_qp_revive(qp);
}

static void counters(Sva *s, unsigned p, uint64_t stalls, uint64_t requests,
                     uint64_t resolved, uint64_t denied, uint64_t pending)
{
    g_assert_cmpuint(sva_count(s, p, SVA_STALLS), ==, stalls);
    g_assert_cmpuint(sva_count(s, p, SVA_PAGE_REQUESTS), ==, requests);
    g_assert_cmpuint(sva_count(s, p, SVA_RESOLVED), ==, resolved);
    g_assert_cmpuint(sva_count(s, p, SVA_DENIED), ==, denied);
    g_assert_cmpuint(sva_count(s, p, SVA_PENDING), ==, pending);
}

/* Everything mapped: a key like any other, on both sides */
static void test_mapped(void)
{
    Sva *s = sva_start(SVA_STALL, ",x-portal-no-ats=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);

    for (int way = 0; way < WAYS; way++) {
        uint64_t page = sva_map(s, 0, VA + way * 4096);

        fill(s, way, page);
        post(s, qp, way, key, VA + way * 4096);
        check(s, qp, way, page);
    }
    g_assert_cmpuint(smmu_events(&s->t), ==, 0);
    counters(s, 0, 0, 0, 0, 0, 0);
    sva_stop(s);
}

/* Absent pages: the operation waits, others go on, RESUME lets it go on */
static void test_stall(void)
{
    Sva *s = sva_start(SVA_STALL, ",x-portal-no-ats=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    QMlx5Qp *other = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);
    uint64_t sum = 0;

    for (int way = 0; way < WAYS; way++) {
        uint64_t va = VA + way * 4096, page;
        uint16_t stag;

        fill(s, way, s->buf + 32768);
        post(s, qp, way, key, va);
        stag = sva_pop_stall(s, 0, va, way == WRITE_FROM);
        counters(s, 0, way + 1, 0, way, 0, 1);
        qmlx5_cq_none(qp->a.scq);

        qmlx5_post_rdma(other, QMLX5_OP_WRITE, s->all, s->buf, 64, s->all,
                        s->buf + 4096);
        qmlx5_cq_expect(other->a.scq, QMLX5_CQE_REQ);
        g_assert_cmpuint(smmu_events(&s->t), ==, 0);

        page = sva_map(s, 0, va);
        fill(s, way, page);
        qmlx5_clock(s->d, 3000);
        CMD_RESUME(&s->t, sva_sid(0), stag, RESUME_RETRY);
        check(s, qp, way, page);
        counters(s, 0, way + 1, 0, way + 1, 0, 0);
    }
    for (int i = 0; i < 16; i++) {
        sum += sva_count(s, 0, SVA_HISTOGRAM + i * 8);
    }
    g_assert_cmpuint(sum, ==, WAYS);
    g_assert_cmpuint(sva_count(s, 0, SVA_LATENCY_SUM), >=, WAYS * 3000);
    g_assert_cmpuint(sva_count(s, 0, SVA_SMALL), ==, WAYS);
    g_assert_cmpuint(sva_count(s, 0, SVA_LARGE), ==, 0);
    g_assert_cmpuint(sva_count(s, 1, SVA_STALLS), ==, 0);
    /* the key has counted the same */
    sva_w(s, 0, SVA_KEY, key);
    g_assert_cmpint(sva_command(s, 0, SVA_QUERY), ==, SVA_R_OK);
    g_assert_cmpuint(qpci_io_readq(s->portal[0], s->bar[0], SVA_KEY_COUNTERS +
                                   SVA_RESOLVED), ==, WAYS);
    sva_stop(s);
}

/* RESUME with abort: error completions, and that is all */
static void test_terminate(void)
{
    Sva *s = sva_start(SVA_STALL, ",x-portal-no-ats=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);

    for (int way = 0; way < WAYS; way++) {
        post(s, qp, way, key, VA);
        CMD_RESUME(&s->t, sva_sid(0),
                   sva_pop_stall(s, 0, VA, way == WRITE_FROM), RESUME_ABORT);
        refused(s, qp, way);
        counters(s, 0, way + 1, 0, 0, way + 1, 0);
    }
    sva_stop(s);
}

/* Without stall: refused at once */
static void test_no_stall(void)
{
    Sva *s = sva_start(0, ",x-portal-no-ats=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);

    for (int way = 0; way < WAYS; way++) {
        post(s, qp, way, key, VA);
        refused(s, qp, way);
        counters(s, 0, 0, 0, 0, way + 1, 0);
    }
    sva_stop(s);
}

/* A translation is used until it is invalidated */
static void test_ats(void)
{
    Sva *s = sva_start(SVA_ATS, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);
    uint64_t page = sva_map(s, 0, VA), inv;

    for (int i = 0; i < 3; i++) {
        fill(s, WRITE_TO, page);
        post(s, qp, WRITE_TO, key, VA);
        check(s, qp, WRITE_TO, page);
        g_assert_cmpuint(sva_count(s, 0, SVA_ATC_MISSES), ==, 1);
        g_assert_cmpuint(sva_count(s, 0, SVA_ATC_HITS), ==, i);
    }
    inv = sva_count(s, 0, SVA_ATC_INVS);
    sva_unmap(s, 0, VA);
    g_assert_cmpuint(sva_count(s, 0, SVA_ATC_INVS), ==, inv + 1);
    qmlx5_fill(s->d, page, 64, 3);
    for (int way = 0; way < WAYS; way++) {
        post(s, qp, way, key, VA);
        refused(s, qp, way);
    }
    qmlx5_expect(s->d, page, 64, 3);
    g_assert_cmpuint(sva_count(s, 0, SVA_ATC_MISSES), ==, 1 + WAYS);
    sva_stop(s);
}

/* No rights in the translation: untranslated, which stalls */
static void test_ats_stall(void)
{
    Sva *s = sva_start(SVA_ATS | SVA_STALL, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);

    for (int way = 0; way < WAYS; way++) {
        uint64_t va = VA + way * 4096, page;
        uint16_t stag;

        post(s, qp, way, key, va);
        stag = sva_pop_stall(s, 0, va, way == WRITE_FROM);
        page = sva_map(s, 0, va);
        fill(s, way, page);
        CMD_RESUME(&s->t, sva_sid(0), stag, RESUME_RETRY);
        check(s, qp, way, page);
        counters(s, 0, way + 1, 0, way + 1, 0, 0);
    }
    sva_stop(s);
}

/* Page requests, granted, refused and invalid */
static void test_pri(void)
{
    Sva *s = sva_start(SVA_ATS | SVA_PRI, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0);

    for (int way = 0; way < WAYS; way++) {
        uint64_t va = VA + way * 4096, page;
        uint16_t prgi;

        for (int code = 0; code < 2; code++) {
            post(s, qp, way, key, va);
            qmlx5_cq_none(qp->a.scq);
            g_assert_cmpuint(sva_count(s, 0, SVA_PRGS), ==, 1);
            sva_respond(s, 0, sva_pop_request(s, 0, va), code);
            refused(s, qp, way);
            if (!code) {
                /* Response Failure: the function has stopped asking */
                sva_pri(s, 0, 0);
                sva_pri(s, 0, 64);
            }
        }
        post(s, qp, way, key, va);
        prgi = sva_pop_request(s, 0, va);
        page = sva_map(s, 0, va);
        fill(s, way, page);
        sva_respond(s, 0, prgi, 2);
        check(s, qp, way, page);
        g_assert_cmpuint(sva_count(s, 0, SVA_PRGS), ==, 0);
        counters(s, 0, 0, 3 * (way + 1), way + 1, 2 * (way + 1), 0);
    }
    g_assert_cmpuint(smmu_events(&s->t), ==, 0);
    sva_stop(s);
}

/* Many pages in one operation: a fault each, bytes in their places */
static void test_long(void)
{
    enum { PAGES = 20 };
    Sva *s = sva_start(SVA_STALL, ",x-portal-no-ats=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint32_t key = sva_key(s, 0), len = PAGES * 4096 - 4000;
    uint64_t page[PAGES];
    g_autofree uint8_t *want = qmlx5_pattern(len, 9);
    uint64_t src = qmlx5_alloc(s->h, len);

    qmlx5_fill(s->d, src, len, 9);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, src, len, key, VA + 100);
    for (int i = 0; i < PAGES; i++) {
        uint16_t stag = sva_pop_stall(s, 0, VA + (i ? i * 4096 : 100), false);

        page[i] = sva_map(s, 0, VA + i * 4096);
        CMD_RESUME(&s->t, sva_sid(0), stag, RESUME_RETRY);
    }
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    for (int i = 0; i < PAGES; i++) {
        uint32_t from = i ? i * 4096 - 100 : 0;
        uint32_t n = MIN(len - from, i ? 4096 : 3996);
        g_autofree uint8_t *got = g_malloc(n);

        qmlx5_read(s->d, page[i] + (i ? 0 : 100), got, n);
        g_assert_cmpmem(got, n, want + from, n);
    }
    counters(s, 0, PAGES, 0, PAGES, 0, 0);
    sva_stop(s);
}

/* The first of a list of "fault-counters" */
static uint64_t qom_counter(Sva *s, const char *list, const char *name)
{
    QDict *rsp = qtest_qmp(s->t.qts, "{ 'execute': 'qom-get', 'arguments': "
                           "{ 'path': '/machine/peripheral/hca0', "
                           "'property': 'fault-counters' } }");
    QList *l = qdict_get_qlist(qdict_get_qdict(rsp, "return"), list);
    uint64_t n = qdict_get_int(qobject_to(QDict, qlist_peek(l)), name);

    qobject_unref(rsp);
    return n;
}

/* The HCA's own payload waits, too, where software lets its stream stall. */
static void test_function_0(void)
{
    const uint32_t sid = QMLX5_SLOT << 3;
    const uint64_t va = 0x80000000ull;
    Sva *s = sva_start(SVA_STALL, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    QMlx5Qp *other = qmlx5_qp_self(s->d, QMLX5_RC);
    uint64_t cds = smmu_pages(&s->t, 1), root = smmu_pages(&s->t, 1), page;
    SmmuEvent e;

    /* all of RAM by a block of 1 GiB, nothing else */
    qtest_writeq(s->t.qts, root + 8, VIRT_RAM | PTE_AF | PTE_EL0 | PTE_V);
    cd_write(&s->t, cds, &(Cd) { .ttb = root, .asid = 9, .s = true });
    ste_write(&s->t, sid, &(Ste) { .config = 5, .cd = cds });
    CMD_CFGI_STE(&s->t, sid);
    CMD_SYNC(&s->t);

    qmlx5_fill(s->d, s->buf, 64, 1);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, s->buf, 64, s->all, va);
    smmu_pop_event(&s->t, &e);
    g_assert_cmphex(e.type, ==, F_TRANSLATION);
    g_assert_true(e.stall && !e.ssv && !e.rnw);
    g_assert_cmphex(e.sid, ==, sid);
    g_assert_cmphex(e.addr, ==, va);
    qmlx5_cq_none(qp->a.scq);
    qmlx5_post_rdma(other, QMLX5_OP_WRITE, s->all, s->buf, 64, s->all,
                    s->buf + 4096);
    qmlx5_cq_expect(other->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpuint(qom_counter(s, "functions", "pending"), ==, 1);

    page = smmu_pages(&s->t, 1);
    pt_map(&s->t, root, va, page, PTE_RW_EL0);
    CMD_RESUME(&s->t, sid, e.stag, RESUME_RETRY);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(s->d, page, 64, 1);
    g_assert_cmpuint(qom_counter(s, "functions", "stalls"), ==, 1);
    g_assert_cmpuint(qom_counter(s, "functions", "resolved"), ==, 1);
    g_assert_cmpuint(qom_counter(s, "qps", "resolved"), ==, 1);
    g_assert_cmpuint(qom_counter(s, "qps", "qpn"), ==, qp->qpn);
    g_assert_cmpuint(qom_counter(s, "keys", "key"), ==, s->all);

    /* what cannot wait is terminated: here the send queue's doorbell record */
    qtest_writeq(s->t.qts, root + 8, 0);
    CMD_TLBI_ALL(&s->t);
    CMD_SYNC(&s->t);
    qmlx5_post_rdma(other, QMLX5_OP_WRITE, s->all, s->buf, 64, s->all,
                    s->buf + 4096);
    g_assert_cmpuint(smmu_events(&s->t), >, 0);
    while (smmu_events(&s->t)) {
        smmu_pop_event(&s->t, &e);
        g_assert_false(e.stall);
    }
    g_assert_cmpuint(qom_counter(s, "functions", "stalls"), ==, 1);
    sva_stop(s);
}

/*
 * mlx5's own keys with translated requests (mlx5_ib: a dma-buf with relaxed
 * ordering), through function 0's ATC.
 */
static void test_ats_key(void)
{
    const uint32_t sid = QMLX5_SLOT << 3;
    const uint64_t va = 0x80000000ull;
    Sva *s = sva_start(SVA_ATS | SVA_STALL, ",ats=on");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    uint64_t cds = smmu_pages(&s->t, 1), root = smmu_pages(&s->t, 1);
    uint64_t page = smmu_pages(&s->t, 1), list[2] = { va };
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = s->d->pd, .access = QMLX5_ALL, .va = 0x5000,
        .len = 4096, .log_page = 12, .entries = 1, .list = list, .nlist = 1,
        .ats = true,
    };
    unsigned at = 0x100, hits;
    uint8_t cap[4096];
    uint32_t key;

    qmlx5_query_cap(s->d, 0, true, cap);
    g_assert_cmpuint(MLX5_GET(cap, cmd_hca_cap, ats), ==, 1);

    /* function 0 is the one before portal 0 */
    while ((qtest_readl(s->t.qts, sva_ecam(s, -1, at)) & 0xffff) !=
           PCI_EXT_CAP_ID_ATS) {
        at = qtest_readl(s->t.qts, sva_ecam(s, -1, at)) >> 20;
        g_assert_cmphex(at, !=, 0);
    }
    qtest_writeq(s->t.qts, root + 8, VIRT_RAM | PTE_AF | PTE_EL0 | PTE_V);
    pt_map(&s->t, root, va, page, PTE_RW_EL0);
    cd_write(&s->t, cds, &(Cd) { .ttb = root, .asid = 9, .s = true });
    ste_write(&s->t, sid, &(Ste) { .config = 5, .cd = cds, .eats = 1 });
    CMD_CFGI_STE(&s->t, sid);
    CMD_SYNC(&s->t);
    qtest_writew(s->t.qts, sva_ecam(s, -1, at + PCI_ATS_CTRL),
                 PCI_ATS_CTRL_ENABLE);

    key = qmlx5_mkey_new(s->d, &a);
    qmlx5_fill(s->d, s->buf, 64, 1);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, s->all, s->buf, 64, key, 0x5040);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(s->d, page + 0x40, 64, 1);
    hits = qom_counter(s, "functions", "atc-hits");
    g_assert_cmpuint(qom_counter(s, "functions", "atc-misses"), >, 0);
    qmlx5_post_rdma(qp, QMLX5_OP_READ, s->all, s->buf + 4096, 64, key, 0x5040);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(s->d, s->buf + 4096, 64, 1);
    g_assert_cmpuint(qom_counter(s, "functions", "atc-hits"), >, hits);
    g_assert_cmpuint(smmu_events(&s->t), ==, 0);
    sva_stop(s);

    s = sva_start(SVA_ATS, "");
    qmlx5_query_cap(s->d, 0, true, cap);
    g_assert_cmpuint(MLX5_GET(cap, cmd_hca_cap, ats), ==, 0);
    sva_stop(s);
}

/* A text property of the machine's SMMU */
static char *smmu_property(Sva *s, const char *property)
{
    QDict *rsp = qtest_qmp(s->t.qts, "{ 'execute': 'qom-list', 'arguments': "
                           "{ 'path': '/machine/unattached' } }");
    g_autofree char *path = NULL;
    QListEntry *e;
    char *text;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "return"), e) {
        QDict *child = qobject_to(QDict, qlist_entry_obj(e));

        if (!strcmp(qdict_get_str(child, "type"), "child<arm-smmuv3>")) {
            path = g_strdup_printf("/machine/unattached/%s",
                                   qdict_get_str(child, "name"));
        }
    }
    qobject_unref(rsp);
    g_assert_nonnull(path);
    rsp = qtest_qmp(s->t.qts, "{ 'execute': 'qom-get', 'arguments': "
                    "{ 'path': %s, 'property': %s } }", path, property);
    text = g_strdup(qdict_get_str(rsp, "return"));
    qobject_unref(rsp);
    return text;
}

/*
 * Software that gives two streams one table of context descriptors has made
 * one tenant of two: a portal may latch the other's PASID, as on hardware.
 * The SMMU's property "streams" tells of it.
 */
static void test_shared_cds(void)
{
    Sva *s = sva_start(SVA_ATS | SVA_STALL, "");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC);
    g_autofree char *before = NULL, *after = NULL, *stalls = NULL;
    g_autofree char *words = g_strdup_printf(
        "SHARED with stream 0x%x\nstream 0x%x: stage 1, CD table 0x%" PRIx64
        " for 4 substream bits, ATS, SHARED with stream 0x%x\n", sva_sid(1),
        sva_sid(1), s->cds[0], sva_sid(0));
    uint64_t page = sva_map(s, 0, VA);
    uint32_t key;
    SmmuEvent e;

    before = smmu_property(s, "streams");
    g_assert_null(strstr(before, "SHARED"));
    g_assert_nonnull(strstr(before, "passes through"));
    sva_w(s, 1, SVA_CONTROL, 1);
    g_assert_cmpint(sva_latch(s, 1, SVA_PASID), ==, SVA_R_OK);
    g_assert_cmpint(sva_make(s, 1, s->d->pd, SVA_ALL, &key), ==,
                    SVA_R_UNBOUND);

    ste_write(&s->t, sva_sid(1), &(Ste) {
        .config = 5, .cd = s->cds[0], .s1cdmax = 4, .eats = 1,
    });
    CMD_CFGI_STE(&s->t, sva_sid(1));
    CMD_SYNC(&s->t);
    sva_w(s, 1, SVA_CONTROL, 1);
    g_assert_cmpint(sva_latch(s, 1, SVA_PASID), ==, SVA_R_OK);
    key = sva_key(s, 1);
    fill(s, WRITE_TO, page);
    post(s, qp, WRITE_TO, key, VA);
    check(s, qp, WRITE_TO, page);
    after = smmu_property(s, "streams");
    if (!strstr(after, words)) {
        g_test_message("%s", after);
        g_test_fail();
    }

    post(s, qp, WRITE_TO, key, VA + 4096);
    smmu_pop_event(&s->t, &e);
    g_assert_cmphex(e.sid, ==, sva_sid(1));
    g_assert_cmphex(e.ssid, ==, SVA_PASID);
    g_assert_true(e.stall);
    stalls = smmu_property(s, "stalls");
    g_free(words);
    words = g_strdup_printf("stream 0x%x: STAG 0x%x\n", sva_sid(1), e.stag);
    g_assert_cmpstr(stalls, ==, words);
    CMD_RESUME(&s->t, sva_sid(1), e.stag, RESUME_ABORT);
    refused(s, qp, WRITE_TO);
    g_free(stalls);
    stalls = smmu_property(s, "stalls");
    g_assert_cmpstr(stalls, ==, "");
    sva_stop(s);
}

/* fault-retries, max-faults-per-key, max-faults-per-pasid */
static void test_limits(void)
{
    Sva *s = sva_start(SVA_STALL, ",x-portal-no-ats=on,fault-retries=2");
    QMlx5Qp *qp = qmlx5_qp_self(s->d, QMLX5_RC), *two;
    uint32_t key = sva_key(s, 0), key2;

    post(s, qp, WRITE_TO, key, VA);
    for (int i = 0; i < 3; i++) {
        CMD_RESUME(&s->t, sva_sid(0), sva_pop_stall(s, 0, VA, false),
                   RESUME_RETRY);
    }
    refused(s, qp, WRITE_TO);
    counters(s, 0, 3, 0, 0, 1, 0);
    g_assert_cmpuint(sva_count(s, 0, SVA_OVER_LIMIT), ==, 1);
    sva_stop(s);

    for (int by_pasid = 0; by_pasid < 2; by_pasid++) {
        s = sva_start(SVA_STALL, by_pasid
                      ? ",x-portal-no-ats=on,max-faults-per-pasid=1"
                      : ",x-portal-no-ats=on,max-faults-per-key=1");
        qp = qmlx5_qp_self(s->d, QMLX5_RC);
        two = qmlx5_qp_self(s->d, QMLX5_RC);
        key = sva_key(s, 0);
        key2 = sva_key(s, 0);
        post(s, qp, WRITE_TO, key, VA);
        post(s, two, WRITE_TO, key, VA + 4096);
        refused(s, two, WRITE_TO);
        g_assert_cmpuint(sva_count(s, 0, SVA_OVER_LIMIT), ==, 1);
        post(s, two, WRITE_TO, key2, VA + 4096);
        if (by_pasid) {
            refused(s, two, WRITE_TO);
        } else {
            qmlx5_cq_none(two->a.scq);
        }
        /* another process is free of that */
        post(s, by_pasid ? two : qmlx5_qp_self(s->d, QMLX5_RC), WRITE_TO,
             sva_key(s, 1), VA);
        counters(s, 1, 1, 0, 0, 0, 1);
        sva_stop(s);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5-sva/mapped", test_mapped);
    qtest_add_func("/mlx5-sva/stall", test_stall);
    qtest_add_func("/mlx5-sva/terminate", test_terminate);
    qtest_add_func("/mlx5-sva/no-stall", test_no_stall);
    qtest_add_func("/mlx5-sva/ats", test_ats);
    qtest_add_func("/mlx5-sva/ats-stall", test_ats_stall);
    qtest_add_func("/mlx5-sva/pri", test_pri);
    qtest_add_func("/mlx5-sva/long", test_long);
    qtest_add_func("/mlx5-sva/limits", test_limits);
    qtest_add_func("/mlx5-sva/function-0", test_function_0);
    qtest_add_func("/mlx5-sva/shared-cds", test_shared_cds);
    qtest_add_func("/mlx5-sva/ats-key", test_ats_key);
    return g_test_run();
}
