/*
 * SMMUv3: PCIe Address Translation Service
 *
 * Translation requests, translated transactions, ATC invalidation. One test
 * a behaviour; section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5

/* What the exerciser's ATS request came to */
enum { ATS_OK = 0, ATS_UR = -EOPNOTSUPP, ATS_CA = -EIO };
enum { TR_PRIV = 2, TR_NW = 4, TR_PASID = 8, TR_EXEC = 16 };
enum { PERM_X = 1, PERM_W = 2, PERM_R = 4 };

typedef struct Stream {
    uint64_t cds, root, page;
    Ste ste;
    Cd cd;
} Stream;

/* SSID has VA mapped to page; STE with EATS=1 */
static void stream(SmmuTest *t, Stream *st)
{
    st->cds = smmu_pages(t, 1);
    st->root = smmu_pages(t, 1);
    st->page = smmu_pages(t, 1);
    st->cd = (Cd) { .ttb = st->root, .asid = 3 };
    pt_map(t, st->root, VA, st->page, PTE_RW_EL0);
    cd_write(t, st->cds + SSID * 64, &st->cd);
    cd_write(t, st->cds, &st->cd);
    st->ste = (Ste) {
        .config = 5, .cd = st->cds, .s1cdmax = 3, .s1dss = 2, .eats = 1,
    };
    ste_write(t, t->sid, &st->ste);
    pasid_enable(t);
    ats_enable(t, true);
}

static SmmuTest *start(Stream *st)
{
    SmmuTest *t = smmu_start("ssidsize=8,ats=on,stall-model=stall");

    stream(t, st);
    return t;
}

static int ats_request(SmmuTest *t, uint64_t va, uint32_t ctl, int pasid)
{
    qtest_writel(t->qts, t->regs + 0x10, va);
    qtest_writel(t->qts, t->regs + 0x14, va >> 32);
    qtest_writel(t->qts, t->regs + 0x20, pasid < 0 ? 0 : pasid);
    qtest_writel(t->qts, t->regs + 0x24, 1 | ctl | (pasid < 0 ? 0 : TR_PASID));
    return (int32_t)qtest_readl(t->qts, t->regs + 0x8c);
}

static uint64_t ats_addr(SmmuTest *t)
{
    return qtest_readq(t->qts, t->regs + 0x28);
}

static uint64_t ats_size(SmmuTest *t)
{
    return qtest_readq(t->qts, t->regs + 0x30);
}

static unsigned ats_perm(SmmuTest *t)
{
    return qtest_readl(t->qts, t->regs + 0x38) & 7;
}

static bool atc_valid(SmmuTest *t)
{
    return qtest_readl(t->qts, t->regs + 0x24) >> 8 & 1;
}

static uint64_t cmd_atc_inv_lo(uint32_t sid, int ssid, bool global)
{
    return cmd_ssid(0x40, sid, ssid) | (uint64_t)global << 9;
}

#define CMD_ATC_INV(t, sid, ssid, g, va, size) \
    smmu_cmd(t, cmd_atc_inv_lo(sid, ssid, g), (va) | (size))

/* 6.3.1 */
static void test_id(void)
{
    SmmuTest *t = smmu_start("ats=on");

    g_assert_cmpuint(smmu_r(t, SMMU_IDR0) >> 10 & 3, ==, 1);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_ATSCHK);
    g_assert_cmphex(smmu_r(t, SMMU_CR0ACK), ==, CR0_SMMUEN | CR0_ATSCHK);
    smmu_quit(t);
}

/* 3.9.1: a translation, used and cached */
static void test_translate(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    smmu_w(t, SMMU_CR0,
           CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_ATSCHK);
    qtest_writeq(t->qts, st.page + 0x18, 0xc0ffee);
    g_assert_cmpint(ats_request(t, VA, 0, SSID), ==, ATS_OK);
    g_assert_cmphex(ats_addr(t), ==, st.page);
    g_assert_cmphex(ats_size(t), ==, 4096);
    g_assert_cmphex(ats_perm(t), ==, PERM_R | PERM_W);
    g_assert_cmpuint(dma(t, VA + 0x18, DMA_READ | DMA_USE_ATC, SSID), ==,
                     DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0xc0ffee);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    smmu_quit(t);
}

/* 3.9.1: the requester's own cache serves what it has translated once */
static void test_requester_cache(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    uint32_t miss;

    smmu_w(t, SMMU_CR0,
           CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_ATSCHK);
    x_ctl(t, X_ATC);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
    miss = qtest_readl(t->qts, t->regs + 0xac);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
    g_assert_cmpuint(dma(t, VA + 8, DMA_READ, SSID), ==, DMA_OK);
    g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0xac), ==, miss);
    g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0xa8), ==, 2);

    /* unmapped but not invalidated it is still there, then not */
    pt_unmap(t, st.root, VA);
    CMD_TLBI_ALL(t);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
    CMD_ATC_INV(t, t->sid, SSID, false, VA, 0);
    CMD_SYNC(t);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_ERROR);
    smmu_expect_event(t, "untranslated", &(SmmuEvent) {
        .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = SSID,
        .rnw = true, .class = CLASS_IN, .addr = VA,
    });
    smmu_quit(t);
}

/*
 * A translation of 2 MiB serves from the page that was asked for to its end:
 * it goes when any part of that is invalidated.
 */
static void test_requester_cache_block(void)
{
    static const struct {
        const char *name;
        int64_t at;            /* invalidated, from VA */
        unsigned size;
        bool hit;
    } row[] = {
        { "its page", 0, 0, true },
        { "the next page", 0x1000, 0, true },
        { "64KB, further on", 0x10000, 4, true },
        { "its last page", 0xba000, 0, true },
        { "the next 2MB", 0xbb000, 9, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        uint64_t block = VIRT_RAM + 0x1000000, slot;
        Stream st;
        SmmuTest *t = start(&st);

        g_test_message("%s", row[i].name);
        slot = qtest_readq(t->qts, st.root + (VA >> 30) * 8) & 0xfffffffff000;
        slot += (VA >> 21 & 0x1ff) * 8;
        qtest_writeq(t->qts, slot, block | (PTE_RW_EL0 & ~2ull));
        CMD_TLBI_ALL(t);
        smmu_w(t, SMMU_CR0,
               CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_ATSCHK);
        x_ctl(t, X_ATC);
        qtest_writeq(t->qts, block + 0x145000, 0xc0ffee);
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
        g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0xc0ffee);

        qtest_writeq(t->qts, slot, 0);
        CMD_TLBI_ALL(t);
        CMD_ATC_INV(t, t->sid, SSID, false, VA + row[i].at, row[i].size);
        CMD_SYNC(t);
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==,
                         row[i].hit ? DMA_ERROR : DMA_OK);
        smmu_quit(t);
    }
}

/* Lines 19 to 22: every kind of answer, and what is recorded of it */
static void test_requests(void)
{
    static const struct {
        const char *name;
        Ste ste;               /* cd is filled in */
        bool smmu_off, atschk, rec, recinv;
        int pasid;
        uint64_t pte;          /* 0: as mapped; 1: none */
        uint32_t ctl;
        int result;
        unsigned perm;
        uint8_t event;
        bool identity;
    } row[] = {
        { "SMMUEN=0", { .config = 5, .eats = 1 }, .smmu_off = true,
          .pasid = -1, .result = ATS_UR, .event = F_BAD_ATS_TREQ },
        { "Config=4", { .config = 4, .eats = 1 }, .pasid = -1,
          .result = ATS_UR, .event = F_BAD_ATS_TREQ },
        { "EATS=0", { .config = 5, .s1cdmax = 3, .s1dss = 2 }, .pasid = SSID,
          .result = ATS_UR, .event = F_BAD_ATS_TREQ },
        { "EATS=3", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 3 },
          .pasid = SSID, .result = ATS_UR, .event = F_BAD_ATS_TREQ },
        { "Config=0", { .config = 0, .eats = 1 }, .pasid = -1,
          .result = ATS_UR },
        { "bad STE", { .invalid = true }, .pasid = -1, .result = ATS_CA },
        { "bad STE, REC_CFG_ATS", { .invalid = true }, .rec = true,
          .pasid = -1, .result = ATS_CA, .event = C_BAD_STE },
        { "bad CD, REC_CFG_ATS",
          { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 }, .rec = true,
          .pasid = 6, .result = ATS_CA, .event = C_BAD_CD },
        { "bad SSID", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = 8, .result = ATS_CA },
        { "no translation",
          { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .pte = 1, .result = ATS_OK },
        { "access flag", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .pte = PTE_PAGE | PTE_EL0, .result = ATS_OK },
        { "address size", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .pte = PTE_RW_EL0 | 1ull << 45, .result = ATS_OK },
        { "read only", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .pte = PTE_RW_EL0 | PTE_RO, .result = ATS_OK,
          .perm = PERM_R },
        { "not for EL0", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .pte = PTE_PAGE | PTE_AF, .result = ATS_OK },
        { "EL1", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .pte = PTE_PAGE | PTE_AF, .ctl = TR_PRIV,
          .result = ATS_OK, .perm = PERM_R | PERM_W },
        { "no write", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .ctl = TR_NW, .result = ATS_OK, .perm = PERM_R },
        { "execute", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .ctl = TR_EXEC, .result = ATS_OK,
          .perm = PERM_R | PERM_W | PERM_X },
        { "UXN", { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 },
          .pasid = SSID, .ctl = TR_EXEC, .pte = PTE_RW_EL0 | PTE_UXN,
          .result = ATS_OK, .perm = PERM_R | PERM_W },
        { "S1DSS bypass", { .config = 5, .s1cdmax = 3, .s1dss = 1, .eats = 1 },
          .pasid = -1, .result = ATS_OK, .perm = PERM_R | PERM_W,
          .identity = true },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_boot("ssidsize=8,ats=on,stall-model=stall", NULL);
        Stream st;
        Ste ste = row[i].ste;
        int pasid = row[i].pasid;
        uint32_t cr0 = CR0_EVENTQEN | CR0_CMDQEN |
                       (row[i].smmu_off ? 0 : CR0_SMMUEN) |
                       (row[i].atschk ? CR0_ATSCHK : 0);

        g_test_message("%s", row[i].name);
        smmu_setup_sized(t, 6, 4, cr0);
        stream(t, &st);
        st.cd.s = true; /* a translation request never stalls */
        cd_write(t, st.cds + SSID * 64, &st.cd);
        smmu_w(t, SMMU_CR2, (row[i].rec ? CR2_REC_CFG_ATS : 0) |
               (row[i].recinv ? CR2_RECINVSID : 0));
        ste.cd = st.cds;
        ste_write(t, t->sid, &ste);
        if (row[i].pte) {
            qtest_writeq(t->qts, pt_slot(t, st.root, VA),
                         row[i].pte == 1 ? 0 :
                         row[i].pte >> 45 & 1 ? row[i].pte :
                         row[i].pte | st.page);
        }
        g_assert_cmpint(ats_request(t, VA, row[i].ctl, pasid), ==,
                        row[i].result);
        if (row[i].result == ATS_OK) {
            g_assert_cmphex(ats_perm(t), ==, row[i].perm);
            g_assert_cmphex(ats_size(t), ==, 4096);
            if (row[i].perm) {
                g_assert_cmphex(ats_addr(t), ==,
                                row[i].identity ? VA : st.page);
            }
        }
        if (row[i].event) {
            smmu_expect_event(t, row[i].name, &(SmmuEvent) {
                .type = row[i].event, .sid = t->sid, .ssv = pasid >= 0,
                .ssid = pasid < 0 ? 0 : pasid,
                .addr = row[i].event == F_BAD_ATS_TREQ ? VA : 0,
            });
        } else {
            g_assert_cmpuint(smmu_events(t), ==, 0);
        }
        smmu_quit(t);
    }
}

/* Line 20: C_BAD_STREAMID needs RECINVSID too */
static void test_bad_streamid(void)
{
    for (int recinv = 0; recinv < 2; recinv++) {
        Stream st;
        SmmuTest *t = start(&st);

        smmu_w(t, SMMU_STRTAB_BASE_CFG, 2);
        CMD_CFGI_ALL(t);
        smmu_w(t, SMMU_CR2, CR2_REC_CFG_ATS | (recinv ? CR2_RECINVSID : 0));
        g_assert_cmpint(ats_request(t, VA, 0, -1), ==, ATS_CA);
        g_assert_cmpuint(smmu_events(t), ==, recinv);
        smmu_quit(t);
    }
}

/* Line 23: what a translated transaction may do */
static void test_translated(void)
{
    static const struct {
        const char *name;
        Ste ste;
        bool smmu_off, atschk;
        bool ok;
        uint8_t event;
    } row[] = {
        { "SMMUEN=0", { .config = 5, .eats = 1 }, true, true, false,
          F_TRANSL_FORBIDDEN },
        { "no ATSCHK", { .config = 5 }, false, false, true },
        { "no ATSCHK, Config=0", { .config = 0 }, false, false, true },
        { "EATS=1", { .config = 5, .eats = 1 }, false, true, true },
        { "EATS=0", { .config = 5 }, false, true, false, F_TRANSL_FORBIDDEN },
        { "Config=4", { .config = 4, .eats = 1 }, false, true, false,
          F_TRANSL_FORBIDDEN },
        { "Config=0", { .config = 0, .eats = 1 }, false, true, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_boot("ssidsize=8,ats=on", NULL);
        Stream st;
        Ste ste = row[i].ste;

        smmu_setup_sized(t, 6, 4, CR0_EVENTQEN | CR0_CMDQEN |
                         (row[i].smmu_off ? 0 : CR0_SMMUEN) |
                         (row[i].atschk ? CR0_ATSCHK : 0));
        stream(t, &st);
        ste.cd = st.cds;
        ste_write(t, t->sid, &ste);
        g_test_message("%s", row[i].name);
        g_assert_cmpuint(dma(t, st.page + 0x40, DMA_WRITE | DMA_TRANSLATED,
                             -1), ==, row[i].ok ? DMA_OK : DMA_ERROR);
        if (row[i].event) {
            smmu_expect_event(t, row[i].name, &(SmmuEvent) {
                .type = row[i].event, .sid = t->sid,
                .addr = st.page + 0x40,
            });
        } else {
            g_assert_cmpuint(smmu_events(t), ==, 0);
        }
        smmu_quit(t);
    }
}

/* Both stages; s2 maps all that is needed, and @ipa to @pa. */
static void nested(SmmuTest *t, Stream *st, uint64_t ipa, uint64_t pa)
{
    uint64_t s2 = smmu_pages(t, 1);
    uint64_t l2, l3;

    stream(t, st);
    pt_map(t, st->root, VA, ipa, PTE_RW_EL0);
    l2 = qtest_readq(t->qts, st->root + (VA >> 30) * 8) & 0xfffffffff000ull;
    l3 = qtest_readq(t->qts, l2 + (VA >> 21 & 511) * 8) & 0xfffffffff000ull;
    pt_map(t, s2, st->cds, st->cds, S2_RW);
    pt_map(t, s2, st->root, st->root, S2_RW);
    pt_map(t, s2, l2, l2, S2_RW);
    pt_map(t, s2, l3, l3, S2_RW);
    if (pa) {
        pt_map(t, s2, ipa, pa, S2_RW);
    }
    st->ste.config = 7;
    st->ste.s2ttb = s2;
    st->ste.s2t0sz = 25;
    st->ste.s2sl0 = 1;
    st->ste.s2ps = 4;
    st->ste.s2r = true;
}

/* Line 24: split stage ATS */
static void test_split_stage(void)
{
    SmmuTest *t = smmu_start("ssidsize=8,ats=on");
    uint64_t page = smmu_pages(t, 1), ipa = 0x55555000;
    Stream st;

    nested(t, &st, ipa, page);
    st.ste.eats = 2;
    ste_write(t, t->sid, &st.ste);

    /* without the check of what comes back it is not there */
    g_assert_cmpint(ats_request(t, VA, 0, SSID), ==, ATS_UR);
    smmu_expect_event(t, "ATSCHK=0", &(SmmuEvent) {
        .type = F_BAD_ATS_TREQ, .sid = t->sid, .ssv = true, .ssid = SSID,
        .addr = VA,
    });

    smmu_w(t, SMMU_CR0,
           CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_ATSCHK);
    g_assert_cmpint(ats_request(t, VA, 0, SSID), ==, ATS_OK);
    g_assert_cmphex(ats_addr(t), ==, ipa);
    g_assert_cmphex(ats_perm(t), ==, PERM_R | PERM_W);

    qtest_writeq(t->qts, page + 8, 0x5151);
    g_assert_cmpuint(dma(t, VA + 8, DMA_READ | DMA_USE_ATC, SSID), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0x5151);
    g_assert_cmpuint(smmu_events(t), ==, 0);

    /* stage 2 of what comes back is checked and told */
    g_assert_cmpuint(dma(t, 0x66666000, DMA_WRITE | DMA_TRANSLATED, SSID), ==,
                     DMA_ERROR);
    smmu_expect_event(t, "stage 2", &(SmmuEvent) {
        .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = SSID,
        .s2 = true, .class = CLASS_IN, .addr = 0x66666000,
        .addr2 = 0x66666000,
    });
    smmu_quit(t);
}

/* Lines 24 and 25: which EATS is legal with what */
static void test_eats_legality(void)
{
    static const struct {
        const char *name;
        int config, eats;
        bool s2s, legal;
    } row[] = {
        { "1, nested", 7, 1, false, true },
        { "1, nested, S2S", 7, 1, true, false },
        { "2, nested", 7, 2, false, true },
        { "2, nested, S2S", 7, 2, true, false },
        { "2, stage 1", 5, 2, false, false },
        { "1, stage 1", 5, 1, false, true },
        { "0, nested, S2S", 7, 0, true, true },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_start("ssidsize=8,ats=on,stall-model=stall");
        Stream st;

        nested(t, &st, 0x55555000, smmu_pages(t, 1));
        if (row[i].config == 5) {
            pt_map(t, st.root, VA, st.page, PTE_RW_EL0);
        }
        st.ste.config = row[i].config;
        st.ste.eats = row[i].eats;
        st.ste.s2s = row[i].s2s;
        ste_write(t, t->sid, &st.ste);
        g_test_message("%s", row[i].name);
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==,
                         row[i].legal ? DMA_OK : DMA_ERROR);
        if (!row[i].legal) {
            smmu_expect_event(t, row[i].name, &(SmmuEvent) {
                .type = C_BAD_STE, .sid = t->sid, .ssv = true, .ssid = SSID,
            });
        }
        smmu_quit(t);
    }
}

/* Line 26: what an invalidation reaches */
static void test_atc_inv(void)
{
    static const struct {
        const char *name;
        int entry;             /* PASID of the cached translation, or -1 */
        int ssid;
        bool global;
        uint64_t addr;
        unsigned size;
        int sid;               /* added to the stream's */
        bool hit;
    } row[] = {
        { "page", SSID, SSID, false, VA, 0, 0, true },
        { "next page", SSID, SSID, false, VA + 0x1000, 0, 0, false },
        { "other SSID", SSID, SSID + 1, false, VA, 0, 0, false },
        { "other SSID, global", SSID, SSID + 1, true, VA, 0, 0, true },
        { "no SSID", SSID, -1, false, VA, 0, 0, true },
        { "no SSID, no PASID", -1, -1, false, VA, 0, 0, true },
        { "SSID, no PASID", -1, SSID, false, VA, 0, 0, false },
        { "2MB", SSID, SSID, false, VA & ~0x1fffffull, 9, 0, true },
        { "another 2MB", SSID, SSID, false, (VA & ~0x1fffffull) + 0x200000, 9,
          0, false },
        { "all", SSID, SSID, false, 0, 52, 0, true },
        { "other stream", SSID, -1, false, 0, 52, 8, false },
        { "no device", SSID, -1, false, 0, 52, 0x100, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        Stream st;
        SmmuTest *t = start(&st);

        g_test_message("%s", row[i].name);
        g_assert_cmpint(ats_request(t, VA, 0, row[i].entry), ==, ATS_OK);
        g_assert_true(atc_valid(t));
        CMD_ATC_INV(t, t->sid + row[i].sid, row[i].ssid, row[i].global,
                    row[i].addr, row[i].size);
        CMD_SYNC(t);
        g_assert_cmpint(atc_valid(t), ==, !row[i].hit);
        smmu_quit(t);
    }
}

/* Line 26: ignored while the SMMU is off; illegal without ATS: fixes-test */
static void test_atc_inv_smmu_off(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    g_assert_cmpint(ats_request(t, VA, 0, SSID), ==, ATS_OK);
    smmu_w(t, SMMU_CR0, CR0_EVENTQEN | CR0_CMDQEN);
    CMD_ATC_INV(t, t->sid, -1, false, 0, 52);
    CMD_SYNC(t);
    g_assert_true(atc_valid(t));
    smmu_quit(t);
}

/* Line 28: SYNC waits for accesses that use the translation */
static void test_sync_waits(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    g_assert_cmpint(ats_request(t, VA, 0, SSID), ==, ATS_OK);
    x_ctl(t, X_INV_HOLD);
    smmu_cmd(t, cmd_atc_inv_lo(t->sid, SSID, false), VA);
    smmu_cmd_raw(t, 0x46, 0);
    g_assert_false(smmu_cmdq_idle(t));
    /* what comes behind the SYNC waits too */
    smmu_cmd_raw(t, 0x04, 31);
    g_assert_false(smmu_cmdq_idle(t));
    /* the SMMU goes on translating meanwhile */
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
    x_ctl(t, 0);
    qtest_clock_step(t->qts, 1000000);
    g_assert_true(smmu_cmdq_idle(t));
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, 0);
    smmu_quit(t);
}

/*
 * What ATSCHK checks is asked once for an entry of the cache, and again after
 * configuration was invalidated; the entry itself stays.
 */
static void test_atc_hit_checked(void)
{
    for (int how = 0; how < 4; how++) {
        Stream st;
        SmmuTest *t = start(&st);
        SmmuEvent want = {
            .type = F_TRANSL_FORBIDDEN, .sid = t->sid, .ssv = true,
            .ssid = SSID, .addr = st.page,
        };

        smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN |
               (how == 3 ? 0 : CR0_ATSCHK));
        x_ctl(t, X_ATC);
        for (int i = 0; i < 3; i++) {
            g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
        }
        switch (how) {
        case 0:
            st.ste.eats = 0;
            ste_write(t, t->sid, &st.ste);
            CMD_CFGI_STE(t, t->sid);
            CMD_SYNC(t);
            break;
        case 1:
            st.ste.config = 4;
            ste_write(t, t->sid, &st.ste);
            CMD_CFGI_ALL(t);
            CMD_SYNC(t);
            break;
        case 2:
            smmu_w(t, SMMU_CR0, CR0_EVENTQEN | CR0_CMDQEN);
            break;
        case 3:
            st.ste.eats = 0;
            ste_write(t, t->sid, &st.ste);
            CMD_CFGI_STE(t, t->sid);
            CMD_SYNC(t);
            g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
            smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN |
                   CR0_ATSCHK);
            break;
        }
        g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_ERROR);
        if (how == 1) {
            /* with a SubstreamID Config=4 is an error of its own */
            want.type = C_BAD_SUBSTREAMID;
            want.addr = 0;
        }
        if (how != 2) {
            smmu_expect_event(t, "ATC hit", &want);
        }
        smmu_quit(t);
    }
}

/* Line 27: a timeout is told by the next SYNC, which software repeats */
static void test_timeout(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    uint32_t cons;

    x_ctl(t, X_INV_FAIL);
    smmu_cmd(t, cmd_atc_inv_lo(t->sid, SSID, false), VA);
    cons = smmu_r(t, SMMU_CMDQ_CONS) & q_mask(t->cmdq_log2);
    smmu_cmd_raw(t, 0x46, 0);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_CMDQ);
    g_assert_cmpuint(smmu_cmd_error(t), ==, CERROR_ATC_INV_SYNC);
    g_assert_cmphex(smmu_r(t, SMMU_CMDQ_CONS) & q_mask(t->cmdq_log2), ==,
                    cons);
    /* acknowledged, the same SYNC completes */
    x_ctl(t, 0);
    smmu_w(t, SMMU_GERRORN, GERROR_CMDQ);
    g_assert_true(smmu_cmdq_idle(t));
    CMD_SYNC(t);
    smmu_quit(t);
}

/* A device that never completes: the SYNC fails at the deadline, once */
static void test_no_completion(void)
{
    Stream st;
    SmmuTest *t = smmu_start("ssidsize=8,ats=on,atc-inv-timeout=50");

    stream(t, &st);
    for (int i = 0; i < 2; i++) {
        x_ctl(t, X_INV_HOLD);
        smmu_cmd(t, cmd_atc_inv_lo(t->sid, SSID, false), VA);
        qtest_clock_step(t->qts, 30 * 1000 * 1000);
        smmu_cmd(t, cmd_atc_inv_lo(t->sid, SSID, false), VA);
        smmu_cmd_raw(t, 0x46, 0);
        g_assert_false(smmu_cmdq_idle(t));
        /* the first one's deadline, then the second one's */
        qtest_clock_step(t->qts, 25 * 1000 * 1000);
        g_assert_false(smmu_cmdq_idle(t));
        g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, smmu_r(t, SMMU_GERRORN));
        qtest_clock_step(t->qts, 30 * 1000 * 1000);
        g_assert_cmphex(smmu_r(t, SMMU_GERROR) ^ smmu_r(t, SMMU_GERRORN), ==,
                        GERROR_CMDQ);
        g_assert_cmpuint(smmu_cmd_error(t), ==, CERROR_ATC_INV_SYNC);
        smmu_w(t, SMMU_GERRORN, smmu_r(t, SMMU_GERROR));
        g_assert_true(smmu_cmdq_idle(t));
        /* completions that come too late are nobody's */
        x_ctl(t, 0);
        qtest_clock_step(t->qts, 1000000);
        CMD_SYNC(t);
    }
    smmu_quit(t);
}

/* Reset of the device while a SYNC waits for it: the queue goes on */
static void test_reset_while_parked(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    x_ctl(t, X_INV_HOLD);
    smmu_cmd(t, cmd_atc_inv_lo(t->sid, SSID, false), VA);
    smmu_cmd_raw(t, 0x46, 0);
    g_assert_false(smmu_cmdq_idle(t));
    qtest_writew(t->qts, smmu_cfg(t) + 0x80 + 8, 0x8000); /* FLR */
    qtest_clock_step(t->qts, 1000000);
    g_assert_true(smmu_cmdq_idle(t));
    smmu_quit(t);
}

/* ATS off in the function: no requests, the cache is empty */
static void test_function_off(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    x_ctl(t, X_ATC);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
    ats_enable(t, false);
    g_assert_cmpint(ats_request(t, VA, 0, SSID), ==, -EPERM);
    pt_unmap(t, st.root, VA);
    CMD_TLBI_ALL(t);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_ERROR);
    smmu_quit(t);
}

/* A read-only answer to a write goes untranslated, where it can stall */
static void test_fallback(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    SmmuEvent e, want;

    st.cd.s = true;
    cd_write(t, st.cds + SSID * 64, &st.cd);
    pt_map(t, st.root, VA, st.page, PTE_RW_EL0 | PTE_RO);
    x_ctl(t, X_ATC);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_BUSY);
    smmu_pop_event(t, &e);
    want = (SmmuEvent) {
        .type = F_PERMISSION, .sid = t->sid, .ssv = true, .ssid = SSID,
        .stall = true, .stag = e.stag, .class = CLASS_IN, .addr = VA,
    };
    smmu_event_is("write", &e, &want);
    pt_map(t, st.root, VA, st.page, PTE_RW_EL0);
    CMD_TLBI_ALL(t);
    CMD_ATC_INV(t, t->sid, SSID, false, VA, 0);
    CMD_SYNC(t);
    CMD_RESUME(t, t->sid, e.stag, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/ats/id", test_id);
    qtest_add_func("smmuv3/ats/translate", test_translate);
    qtest_add_func("smmuv3/ats/requester-cache", test_requester_cache);
    qtest_add_func("smmuv3/ats/requester-cache-block",
                   test_requester_cache_block);
    qtest_add_func("smmuv3/ats/19-22-requests", test_requests);
    qtest_add_func("smmuv3/ats/20-bad-streamid", test_bad_streamid);
    qtest_add_func("smmuv3/ats/23-translated", test_translated);
    qtest_add_func("smmuv3/ats/24-split-stage", test_split_stage);
    qtest_add_func("smmuv3/ats/24-25-eats-legality", test_eats_legality);
    qtest_add_func("smmuv3/ats/26-atc-inv", test_atc_inv);
    qtest_add_func("smmuv3/ats/26-atc-inv-smmu-off", test_atc_inv_smmu_off);
    qtest_add_func("smmuv3/ats/23-atc-hit-checked", test_atc_hit_checked);
    qtest_add_func("smmuv3/ats/27-timeout", test_timeout);
    qtest_add_func("smmuv3/ats/27-no-completion", test_no_completion);
    qtest_add_func("smmuv3/ats/28-sync-waits", test_sync_waits);
    qtest_add_func("smmuv3/ats/reset-while-parked", test_reset_while_parked);
    qtest_add_func("smmuv3/ats/function-off", test_function_off);
    qtest_add_func("smmuv3/ats/fallback", test_fallback);
    return g_test_run();
}
