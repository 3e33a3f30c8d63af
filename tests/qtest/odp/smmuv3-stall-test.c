/*
 * SMMUv3: stalling faults
 *
 * One test a behaviour; section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5

typedef struct Stream {
    uint64_t cds, root, page;
    Ste ste;
    Cd cd;
} Stream;

/* Substream SSID with an empty address space; CD.S as @s. */
static void stream(SmmuTest *t, Stream *st, bool s)
{
    st->cds = smmu_pages(t, 1);
    st->root = smmu_pages(t, 1);
    st->page = smmu_pages(t, 1);
    st->cd = (Cd) { .ttb = st->root, .asid = 3, .s = s };
    cd_write(t, st->cds + SSID * 64, &st->cd);
    cd_write(t, st->cds, &st->cd);
    st->ste = (Ste) {
        .config = 5, .cd = st->cds, .s1cdmax = 3, .s1dss = 2,
    };
    ste_write(t, t->sid, &st->ste);
    pasid_enable(t);
}

static SmmuTest *start(Stream *st)
{
    SmmuTest *t = smmu_start("ssidsize=8,stall-model=stall");

    stream(t, st, true);
    return t;
}

/* The oldest event is a stall of @va; returns its STAG. */
static uint16_t pop_stall(SmmuTest *t, const char *name, uint64_t va, bool rnw)
{
    SmmuEvent e, want;

    smmu_pop_event(t, &e);
    want = (SmmuEvent) {
        .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = SSID,
        .stall = true, .stag = e.stag, .rnw = rnw, .class = CLASS_IN,
        .addr = va,
    };
    smmu_event_is(name, &e, &want);
    return e.stag;
}

/* 6.3.1, 6.3.6 */
static void test_id(void)
{
    static const struct { const char *opt; unsigned model, max; } m[] = {
        { "stall-model=none", 1, 0 },
        { "stall-model=stall", 0, 4096 },
        { "stall-model=forced", 2, 4096 },
        { "stall-model=stall,stall-max=7", 0, 7 },
    };

    for (int i = 0; i < ARRAY_SIZE(m); i++) {
        SmmuTest *t = smmu_start(m[i].opt);

        g_assert_cmpuint(smmu_r(t, SMMU_IDR0) >> 24 & 3, ==, m[i].model);
        g_assert_cmpuint(smmu_r(t, SMMU_IDR5) >> 16, ==, m[i].max);
        smmu_quit(t);
    }
}

/* Line 1; 5.2, 5.4: which configurations are legal in which model */
static void test_legality(void)
{
    static const struct {
        const char *model;
        int stage;
        bool s, stalld;
        uint8_t event;         /* 0: legal */
    } row[] = {
        { "none", 1, true, false, C_BAD_CD },
        { "none", 1, false, false, 0 },
        { "none", 1, false, true, C_BAD_STE },
        { "stall", 1, true, false, 0 },
        { "stall", 1, false, false, 0 },
        { "stall", 1, false, true, 0 },
        { "stall", 1, true, true, C_BAD_CD },
        { "forced", 1, false, false, C_BAD_CD },
        { "forced", 1, true, false, 0 },
        { "forced", 1, true, true, C_BAD_STE },
        { "none", 2, true, false, C_BAD_STE },
        { "none", 2, false, false, 0 },
        { "stall", 2, true, false, 0 },
        { "stall", 2, false, false, 0 },
        { "forced", 2, false, false, C_BAD_STE },
        { "forced", 2, true, false, 0 },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        g_autofree char *opt = g_strdup_printf("stall-model=%s",
                                               row[i].model);
        g_autofree char *name = g_strdup_printf("case %d", i);
        SmmuTest *t = smmu_start(opt);
        uint64_t root = smmu_pages(t, 1), cds = smmu_pages(t, 1);
        Cd cd = { .ttb = root, .s = row[i].s };
        Ste ste = {
            .config = row[i].stage == 1 ? 5 : 6, .cd = cds, .s2ttb = root,
            .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4, .s2s = row[i].s,
            .s1stalld = row[i].stalld,
        };

        pt_map(t, root, VA, smmu_pages(t, 1),
               row[i].stage == 1 ? PTE_RW_EL0 : S2_RW);
        cd_write(t, cds, &cd);
        ste_write(t, t->sid, &ste);
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==,
                         row[i].event ? DMA_ERROR : DMA_OK);
        if (row[i].event) {
            smmu_expect_event(t, name, &(SmmuEvent) {
                .type = row[i].event, .sid = t->sid,
            });
        } else {
            g_assert_cmpuint(smmu_events(t), ==, 0);
        }
        smmu_quit(t);
    }
}

/* 3.12.2: the story: stall, map, RESUME retry, the data is there */
static void test_retry(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    uint16_t stag;

    qtest_writeq(t->qts, st.page, 0xfeedull);
    g_assert_cmpuint(dma(t, VA + 8, DMA_READ, SSID), ==, DMA_BUSY);
    stag = pop_stall(t, "read", VA + 8, true);
    qtest_writeq(t->qts, st.page + 8, 0xbeefull);
    pt_map(t, st.root, VA, st.page, PTE_RW_EL0);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    CMD_RESUME(t, t->sid, stag, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0xbeef);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    smmu_quit(t);
}

/* A transfer over several absent pages stalls on each and goes on */
static void test_retry_many_pages(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    g_assert_cmpuint(dma_start(t, 0, VA + 4000, 9000, DMA_WRITE | DMA_PASID,
                               SSID), ==, DMA_BUSY);
    for (int n = 0; n < 4; n++) {
        uint64_t va = n ? VA + n * 4096 : VA + 4000;
        uint16_t stag = pop_stall(t, "page", va, false);

        pt_map(t, st.root, VA + n * 4096, smmu_pages(t, 1), PTE_RW_EL0);
        CMD_RESUME(t, t->sid, stag, RESUME_RETRY);
        if (n == 3) {
            break;
        }
        g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    }
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
    g_assert_cmpuint(qtest_readl(t->qts, ch_reg(t, 0, 0x1c)), ==, 4);
    smmu_quit(t);
}

/* Lines 2 and 6: R is ignored with S, never merged; Ab is ignored */
static void test_terminate(void)
{
    static const int how[] = { RESUME_TERM, RESUME_ABORT };

    for (int i = 0; i < ARRAY_SIZE(how); i++) {
        Stream st;
        SmmuTest *t = start(&st);
        uint16_t stag[3];

        st.cd.no_r = true;
        cd_write(t, st.cds + SSID * 64, &st.cd);
        for (int n = 0; n < 3; n++) {
            g_assert_cmpuint(dma_start(t, n, VA, 8, DMA_PASID, SSID), ==,
                             DMA_BUSY);
        }
        g_assert_cmpuint(smmu_events(t), ==, 3);
        for (int n = 0; n < 3; n++) {
            stag[n] = pop_stall(t, "same page", VA, true);
        }
        g_assert_true(stag[0] != stag[1] && stag[1] != stag[2] &&
                      stag[0] != stag[2]);
        for (int n = 0; n < 3; n++) {
            CMD_RESUME(t, t->sid, stag[n], how[i]);
            g_assert_cmpuint(dma_status(t, n), ==, DMA_ERROR);
        }
        g_assert_cmpuint(smmu_events(t), ==, 0);
        smmu_quit(t);
    }
}

/* Line 3: which faults stall */
static void test_which_faults(void)
{
    static const struct {
        const char *name;
        uint64_t pte;          /* 0: not mapped */
        uint8_t event;
        bool stall, eabt;
    } row[] = {
        { "translation", 0, F_TRANSLATION, true },
        { "access flag", PTE_PAGE | PTE_EL0 | 0x40001000, F_ACCESS, true },
        { "permission", PTE_RW_EL0 | PTE_RO | 0x40001000, F_PERMISSION, true },
        { "address size", PTE_RW_EL0 | 1ull << 44, F_ADDR_SIZE, true },
        { "walk abort", 0, F_WALK_EABT, false, true },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        Stream st;
        SmmuTest *t = start(&st);
        uint64_t slot = pt_slot(t, st.root, VA);
        SmmuEvent e, want;

        qtest_writeq(t->qts, slot, row[i].pte);
        if (row[i].eabt) {
            qtest_writeq(t->qts, st.root + (VA >> 30) * 8,
                         0x7fff0000 | PTE_TABLE);
        }
        g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==,
                         row[i].stall ? DMA_BUSY : DMA_ERROR);
        g_assert_cmpuint(smmu_events(t), ==, 1);
        smmu_pop_event(t, &e);
        want = (SmmuEvent) {
            .type = row[i].event, .sid = t->sid, .ssv = true, .ssid = SSID,
            .stall = row[i].stall, .stag = row[i].stall ? e.stag : 0,
            .class = row[i].eabt ? CLASS_TT : CLASS_IN, .addr = VA,
            .addr2 = row[i].eabt ? 0x7fff0000 + (VA >> 21 & 0x1ff) * 8 : 0,
        };
        smmu_event_is(row[i].name, &e, &want);
        smmu_quit(t);
    }
}

/* Line 4: RESUME of another stream or STAG does nothing and is no error */
static void test_resume_mismatch(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    uint16_t stag;

    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    stag = pop_stall(t, "stall", VA, true);
    CMD_RESUME(t, t->sid + 1, stag, RESUME_ABORT);
    CMD_RESUME(t, t->sid, (uint16_t)(stag + 1), RESUME_ABORT);
    CMD_RESUME(t, t->sid, 0xffff, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    CMD_RESUME(t, t->sid, stag, RESUME_ABORT);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
    /* a second one finds nothing */
    CMD_RESUME(t, t->sid, stag, RESUME_ABORT);
    smmu_quit(t);
}

/* Line 5: the retry is a new transaction under the new configuration */
static void test_retry_reconfigured(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    uint16_t stag, stag2;

    /* still absent: a new record with a new STAG */
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    stag = pop_stall(t, "first", VA, true);
    CMD_RESUME(t, t->sid, stag, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    stag2 = pop_stall(t, "second", VA, true);
    g_assert_cmphex(stag, !=, stag2);

    /* the CD is gone */
    qtest_memset(t->qts, st.cds + SSID * 64, 0, 64);
    CMD_CFGI_CD(t, t->sid, SSID);
    CMD_RESUME(t, t->sid, stag2, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
    smmu_expect_event(t, "CD gone", &(SmmuEvent) {
        .type = C_BAD_CD, .sid = t->sid, .ssv = true, .ssid = SSID,
    });

    /* S=0 by now: terminated and recorded as such */
    cd_write(t, st.cds + SSID * 64, &st.cd);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    stag = pop_stall(t, "third", VA, true);
    st.cd.s = false;
    cd_write(t, st.cds + SSID * 64, &st.cd);
    CMD_CFGI_CD(t, t->sid, SSID);
    CMD_RESUME(t, t->sid, stag, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
    smmu_expect_event(t, "S=0", &(SmmuEvent) {
        .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = SSID,
        .rnw = true, .class = CLASS_IN, .addr = VA,
    });
    smmu_quit(t);
}

/*
 * Line 7: a STAG stays in use until a response, also when the device has
 * given the transaction up; with STALL_MAX of 2 a third one waits.
 */
static void test_stag_life(void)
{
    Stream st;
    SmmuTest *t = smmu_start("ssidsize=8,stall-model=stall,stall-max=2");
    uint16_t stag[2];

    stream(t, &st, true);
    for (int n = 0; n < 3; n++) {
        g_assert_cmpuint(dma_start(t, n, VA + n * 4096, 8, DMA_PASID, SSID),
                         ==, DMA_BUSY);
    }
    g_assert_cmpuint(smmu_events(t), ==, 2);
    stag[0] = pop_stall(t, "first", VA, true);
    stag[1] = pop_stall(t, "second", VA + 4096, true);

    /* the device cancels the first: its STAG is not free */
    qtest_writel(t->qts, ch_reg(t, 0, 0), 1u << 31);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
    g_assert_cmpuint(smmu_events(t), ==, 0);

    CMD_RESUME(t, t->sid, stag[0], RESUME_RETRY);
    g_assert_cmpuint(smmu_events(t), ==, 1);
    g_assert_cmphex(pop_stall(t, "third", VA + 8192, true), !=, stag[1]);
    smmu_quit(t);
}

/* Line 7: SMMUEN=0 ends all stalls and frees their STAGs */
static void test_smmu_off(void)
{
    Stream st;
    SmmuTest *t = smmu_start("ssidsize=8,stall-model=stall,stall-max=1");

    stream(t, &st, true);
    for (int n = 0; n < 3; n++) {
        g_assert_cmpuint(dma_start(t, n, VA, 8, DMA_PASID, SSID), ==,
                         DMA_BUSY);
    }
    smmu_w(t, SMMU_CR0, CR0_EVENTQEN | CR0_CMDQEN);
    for (int n = 0; n < 3; n++) {
        g_assert_cmpuint(dma_status(t, n), ==, DMA_ERROR);
    }
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    pop_stall(t, "before", VA, true);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    pop_stall(t, "after", VA, true);
    smmu_quit(t);
}

/* Line 8 */
static void test_illegal_in_model_none(void)
{
    SmmuTest *t = smmu_start("stall-model=none");

    smmu_cmd_refused(t, cmd_resume_lo(t->sid, RESUME_RETRY), 0, CERROR_ILL);
    smmu_cmd_refused(t, 0x45 | (uint64_t)t->sid << 32, 0, CERROR_ILL);
    smmu_quit(t);
}

/* Lines 9 and 11; 7.4, 3.12.2 */
static void test_eventq_full(void)
{
    Stream st;
    SmmuTest *t = smmu_boot("ssidsize=8,stall-model=stall", NULL);
    SmmuEvent e;
    uint16_t stag;

    smmu_setup_sized(t, 1, 4, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    stream(t, &st, true);
    for (int n = 0; n < 4; n++) {
        g_assert_cmpuint(dma_start(t, n, VA + n * 4096, 8, DMA_PASID, SSID),
                         ==, DMA_BUSY);
    }
    /* two records, two that wait: no overflow */
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, 2);

    /* a fault that does not stall is lost and is one overflow */
    g_assert_cmpuint(dma_start(t, 9, VA, 8, DMA_PASID, 0xff), ==, DMA_ERROR);
    g_assert_cmpuint(dma_start(t, 9, VA, 8, DMA_PASID, 0xff), ==, DMA_ERROR);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, Q_OVF | 2);

    /* space: the waiting ones are recorded, in order, acknowledged or not */
    stag = pop_stall(t, "first", VA, true);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, Q_OVF | 3);
    pop_stall(t, "second", VA + 4096, true);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, Q_OVF | 0);
    pop_stall(t, "third", VA + 8192, true);
    smmu_pop_event(t, &e);
    g_assert_cmphex(e.addr, ==, VA + 3 * 4096);
    g_assert_true(e.stall);
    CMD_RESUME(t, t->sid, stag, RESUME_ABORT);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
    smmu_quit(t);
}

/* Line 10 */
static void test_eventq_off(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    g_assert_cmpuint(dma_start(t, 1, VA, 8, DMA_PASID, 0xff), ==, DMA_ERROR);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, 0);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN | CR0_EVENTQEN);
    g_assert_cmpuint(smmu_events(t), ==, 1);
    pop_stall(t, "late", VA, true);
    smmu_quit(t);
}

/* Line 12: no stale record after an invalidation */
static void test_unrecorded_retried(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    qtest_writeq(t->qts, st.page, 0xabcd);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    pt_map(t, st.root, VA, st.page, PTE_RW_EL0);
    CMD_TLBI_ALL(t);
    CMD_SYNC(t);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN | CR0_EVENTQEN);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0xabcd);

    /* the same with the CD: what would have stalled is an error by now */
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN);
    g_assert_cmpuint(dma(t, VA + 0x5000, DMA_READ, SSID), ==, DMA_BUSY);
    qtest_memset(t->qts, st.cds + SSID * 64, 0, 64);
    CMD_CFGI_CD(t, t->sid, SSID);
    CMD_SYNC(t);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN | CR0_EVENTQEN);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
    smmu_expect_event(t, "C_BAD_CD", &(SmmuEvent) {
        .type = C_BAD_CD, .sid = t->sid, .ssv = true, .ssid = SSID,
    });
    smmu_quit(t);
}

/* Line 13: all of the stream, recorded or not, and no other stream's */
static void test_stall_term(void)
{
    Stream st;
    SmmuTest *t = smmu_boot("ssidsize=8,stall-model=stall", NULL);

    smmu_setup_sized(t, 1, 4, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    stream(t, &st, true);
    for (int n = 0; n < 4; n++) {
        g_assert_cmpuint(dma_start(t, n, VA + n * 4096, 8, DMA_PASID, SSID),
                         ==, DMA_BUSY);
    }
    CMD_STALL_TERM(t, t->sid + 1);
    for (int n = 0; n < 4; n++) {
        g_assert_cmpuint(dma_status(t, n), ==, DMA_BUSY);
    }
    CMD_STALL_TERM(t, t->sid);
    for (int n = 0; n < 4; n++) {
        g_assert_cmpuint(dma_status(t, n), ==, DMA_ERROR);
    }
    smmu_quit(t);
}

/* Line 14: each stage stalls by its own bit; stage 2 with CLASS */
static void test_nested(void)
{
    static const struct {
        const char *name;
        bool s, s2s;
        int where;             /* 0 stage 1 leaf, 1 IPA, 2 table, 3 CD */
        bool stall;
    } row[] = {
        { "s1 fault, S", true, false, 0, true },
        { "s1 fault, S2S", false, true, 0, false },
        { "IPA fault, S", true, false, 1, false },
        { "IPA fault, S2S", false, true, 1, true },
        { "table fault, S2S", false, true, 2, true },
        { "table fault, S", true, false, 2, false },
        { "CD fault, S2S", false, true, 3, true },
        { "CD fault, S", true, false, 3, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_start("ssidsize=8,stall-model=stall");
        uint64_t s2 = smmu_pages(t, 1), cds = smmu_pages(t, 1);
        uint64_t root = smmu_pages(t, 1), page = smmu_pages(t, 1), leaf, l2;
        Cd cd = { .ttb = root, .s = row[i].s };
        Ste ste = {
            .config = 7, .cd = cds, .s1cdmax = 3, .s2ttb = s2, .s2t0sz = 25,
            .s2sl0 = 1, .s2ps = 4, .s2r = true, .s2s = row[i].s2s,
        };
        int where = row[i].where;
        SmmuEvent e, want;

        cd_write(t, cds + SSID * 64, &cd);
        pt_map(t, root, VA, page, PTE_RW_EL0);
        leaf = pt_slot(t, root, VA);
        l2 = qtest_readq(t->qts, root + (VA >> 30) * 8) & 0xfffffffff000ull;
        if (where == 0) {
            qtest_writeq(t->qts, leaf, 0);
        }
        if (where != 3) {
            pt_map(t, s2, cds, cds, S2_RW);
        }
        pt_map(t, s2, root, root, S2_RW);
        if (where != 2) {
            pt_map(t, s2, l2, l2, S2_RW);
        }
        pt_map(t, s2, leaf & ~0xfffull, leaf & ~0xfffull, S2_RW);
        ste_write(t, t->sid, &ste);
        pasid_enable(t);
        g_test_message("%s", row[i].name);
        g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==,
                         row[i].stall ? DMA_BUSY : DMA_ERROR);
        g_assert_cmpuint(smmu_events(t), ==, 1);
        smmu_pop_event(t, &e);
        want = (SmmuEvent) {
            .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = SSID,
            .stall = row[i].stall, .stag = row[i].stall ? e.stag : 0,
            .s2 = where > 0, .addr = VA,
            .class = where == 3 ? CLASS_CD : where == 2 ? CLASS_TT : CLASS_IN,
            .addr2 = where == 0 ? 0 : where == 1 ? page :
                     where == 2 ? l2 : cds,
        };
        smmu_event_is(row[i].name, &e, &want);
        if (row[i].stall) {
            /* mended and resumed it goes through */
            pt_map(t, s2, page, page, S2_RW);
            pt_map(t, s2, l2, l2, S2_RW);
            pt_map(t, s2, cds, cds, S2_RW);
            qtest_writeq(t->qts, leaf, page | PTE_RW_EL0);
            CMD_RESUME(t, t->sid, e.stag, RESUME_RETRY);
            g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
        }
        smmu_quit(t);
    }
}

/* Line 15: SYNC does not wait for a stalled transaction */
static void test_sync_does_not_wait(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    CMD_SYNC(t);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    smmu_quit(t);
}

/* 3.12: a device that cannot wait is terminated, Stall=0 */
static void test_unaware(void)
{
    for (int forced = 0; forced < 2; forced++) {
        Stream st;
        SmmuTest *t = smmu_start(forced ? "ssidsize=8,stall-model=forced"
                                        : "ssidsize=8,stall-model=stall");

        stream(t, &st, true);
        x_ctl(t, X_NOSTALL);
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_ERROR);
        smmu_expect_event(t, "no stall", &(SmmuEvent) {
            .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = SSID,
            .rnw = true, .class = CLASS_IN, .addr = VA,
        });
        smmu_quit(t);
    }
}

/* Bus master off, FLR, unplug of the device, machine reset while stalled */
static void test_ends(void)
{
    for (int how = 0; how < 4; how++) {
        Stream st;
        SmmuTest *t = start(&st);
        uint16_t stag;

        for (int n = 0; n < 2; n++) {
            g_assert_cmpuint(dma_start(t, n, VA, 8, DMA_PASID, SSID), ==,
                             DMA_BUSY);
        }
        stag = pop_stall(t, "first", VA, true);
        switch (how) {
        case 0:
            qtest_writew(t->qts, smmu_cfg(t) + 4, 2);
            g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
            g_assert_cmpuint(dma_status(t, 1), ==, DMA_ERROR);
            break;
        case 1:
            qtest_writew(t->qts, smmu_cfg(t) + 0x80 + 8, 0x8000);
            g_assert_cmpuint(qtest_readw(t->qts, smmu_cfg(t) + 4) & 4, ==, 0);
            break;
        case 2:
            pt_map(t, st.root, VA, st.page, PTE_RW_EL0);
            CMD_STALL_TERM(t, t->sid);
            break;
        case 3:
            qtest_system_reset(t->qts);
            smmu_quit(t);
            continue;
        }
        /* a response to what is gone */
        CMD_RESUME(t, t->sid, stag, RESUME_RETRY);
        CMD_SYNC(t);
        smmu_quit(t);
    }
}

/* Many more stalls than STAGs and queue entries: none lost, none twice */
static void test_flood(void)
{
    Stream st;
    SmmuTest *t = smmu_boot("ssidsize=8,stall-model=stall,stall-max=16", NULL);
    unsigned seen = 0;

    smmu_setup_sized(t, 2, 4, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    stream(t, &st, true);
    for (int n = 0; n < 256; n++) {
        g_assert_cmpuint(dma_start(t, n, VA + n * 4096, 8, DMA_PASID, SSID),
                         ==, DMA_BUSY);
    }
    while (smmu_events(t)) {
        SmmuEvent e;

        smmu_pop_event(t, &e);
        g_assert_true(e.stall);
        g_assert_cmphex(e.addr, ==, VA + seen * 4096);
        seen++;
        CMD_RESUME(t, t->sid, e.stag, RESUME_ABORT);
    }
    g_assert_cmpuint(seen, ==, 256);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD) & Q_OVF, ==, 0);
    for (int n = 0; n < 256; n++) {
        g_assert_cmpuint(dma_status(t, n), ==, DMA_ERROR);
    }
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/stall/id", test_id);
    qtest_add_func("smmuv3/stall/01-legality", test_legality);
    qtest_add_func("smmuv3/stall/retry", test_retry);
    qtest_add_func("smmuv3/stall/retry-many-pages", test_retry_many_pages);
    qtest_add_func("smmuv3/stall/02-06-terminate", test_terminate);
    qtest_add_func("smmuv3/stall/03-which-faults", test_which_faults);
    qtest_add_func("smmuv3/stall/04-resume-mismatch", test_resume_mismatch);
    qtest_add_func("smmuv3/stall/05-retry-reconfigured",
                   test_retry_reconfigured);
    qtest_add_func("smmuv3/stall/07-stag-life", test_stag_life);
    qtest_add_func("smmuv3/stall/07-smmu-off", test_smmu_off);
    qtest_add_func("smmuv3/stall/08-illegal-in-model-none",
                   test_illegal_in_model_none);
    qtest_add_func("smmuv3/stall/09-11-eventq-full", test_eventq_full);
    qtest_add_func("smmuv3/stall/10-eventq-off", test_eventq_off);
    qtest_add_func("smmuv3/stall/12-unrecorded-retried",
                   test_unrecorded_retried);
    qtest_add_func("smmuv3/stall/13-stall-term", test_stall_term);
    qtest_add_func("smmuv3/stall/14-nested", test_nested);
    qtest_add_func("smmuv3/stall/15-sync-does-not-wait",
                   test_sync_does_not_wait);
    qtest_add_func("smmuv3/stall/unaware-device", test_unaware);
    qtest_add_func("smmuv3/stall/ends", test_ends);
    qtest_add_func("smmuv3/stall/flood", test_flood);
    return g_test_run();
}
