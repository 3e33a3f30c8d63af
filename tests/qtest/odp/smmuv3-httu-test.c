/*
 * SMMUv3: hardware update of the access flag and of dirty state
 *
 * One test a behaviour; section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define IPA 0x23456000ull
#define SSID 5

/* Descriptors, without their address; PTE_RO is dirty state in stage 1 */
#define CLEAN   (PTE_RW_EL0 | PTE_RO | PTE_DBM)
#define DIRTY   (PTE_RW_EL0 | PTE_DBM)
#define S2_CLEAN ((S2_RW & ~S2_W) | PTE_DBM)
#define S2_DIRTY (S2_RW | PTE_DBM)
#define NO_AF(x) ((x) & ~(uint64_t)PTE_AF)

typedef struct Stream {
    uint64_t cds, root, page;
    Ste ste;
    Cd cd;
} Stream;

static SmmuTest *start(const char *httu, Stream *st, uint64_t attrs, Cd cd)
{
    g_autofree char *opts = g_strdup_printf(
        "ssidsize=8,ats=on,stage=nested%s%s", httu ? ",httu=" : "",
        httu ?: "");
    SmmuTest *t = smmu_start(opts);

    st->cds = smmu_pages(t, 1);
    st->root = smmu_pages(t, 1);
    st->page = smmu_pages(t, 1);
    st->cd = cd;
    st->cd.ttb = st->root;
    cd_write(t, st->cds + SSID * 64, &st->cd);
    pt_map(t, st->root, VA, st->page, attrs);
    st->ste = (Ste) {
        .config = 5, .cd = st->cds, .s1cdmax = 3, .s1dss = 2, .eats = 1,
    };
    ste_write(t, t->sid, &st->ste);
    pasid_enable(t);
    return t;
}

/* Stage 1 descriptor of VA */
static uint64_t pte(SmmuTest *t, Stream *st)
{
    return qtest_readq(t->qts, pt_slot(t, st->root, VA));
}

static void event(SmmuTest *t, const char *name, SmmuEvent want)
{
    want.sid = t->sid;
    want.ssv = true;
    want.ssid = SSID;
    smmu_expect_event(t, name, &want);
}

/* 6.3.1 and the legality of HA, HD in 5.4, S2HA, S2HD in 5.2 */
static void test_legal(void)
{
    static const struct { const char *name; unsigned idr; } opt[] = {
        { NULL, 0 }, { "none", 0 }, { "a", 1 }, { "ad", 2 },
    };

    for (int i = 0; i < ARRAY_SIZE(opt); i++) {
        for (int want = 1; want < 4; want++) {
            bool ha = want & 1, hd = want & 2;
            bool legal = opt[i].idr >= (hd ? 2 : 1);
            Stream st;
            SmmuTest *t = start(opt[i].name, &st, PTE_RW_EL0,
                                (Cd) { .ha = ha, .hd = hd });

            g_assert_cmpuint(smmu_r(t, SMMU_IDR0) >> 6 & 3, ==, opt[i].idr);
            g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==,
                             legal ? DMA_OK : DMA_ERROR);
            if (!legal) {
                event(t, "CD", (SmmuEvent) { .type = C_BAD_CD });
            }
            st.cd.ha = st.cd.hd = false;
            cd_write(t, st.cds + SSID * 64, &st.cd);
            st.ste = (Ste) {
                .config = 6, .s2ttb = smmu_pages(t, 1), .s2t0sz = 25,
                .s2sl0 = 1, .s2ps = 4, .s2ha = ha, .s2hd = hd,
            };
            ste_write(t, t->sid, &st.ste);
            CMD_CFGI_STE(t, t->sid);
            pt_map(t, st.ste.s2ttb, VA, st.page, S2_RW);
            g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==,
                             legal ? DMA_OK : DMA_ERROR);
            if (!legal) {
                smmu_expect_event(t, "STE", &(SmmuEvent) {
                    .type = C_BAD_STE, .sid = t->sid,
                });
            }
            smmu_quit(t);
        }
    }
}

/* 3.13.1, 3.13.2: what one access does to a descriptor */
static void test_stage1(void)
{
    static const struct {
        const char *name;
        const char *httu;
        Cd cd;
        uint64_t attrs;
        uint32_t access;
        bool ok;
        uint64_t after;
    } row[] = {
        { "HA sets AF", "a", { .ha = 1 }, NO_AF(PTE_RW_EL0), DMA_READ, true,
          PTE_RW_EL0 },
        { "HA sets AF on a write", "ad", { .ha = 1 }, NO_AF(PTE_RW_EL0),
          DMA_WRITE, true, PTE_RW_EL0 },
        { "HA before AFFD", "a", { .ha = 1, .affd = 1 }, NO_AF(PTE_RW_EL0),
          DMA_READ, true, PTE_RW_EL0 },
        { "AFFD alone leaves AF", "a", { .affd = 1 }, NO_AF(PTE_RW_EL0),
          DMA_READ, true, NO_AF(PTE_RW_EL0) },
        { "no HA faults", "ad", { }, NO_AF(PTE_RW_EL0), DMA_READ, false,
          NO_AF(PTE_RW_EL0) },
        { "HD alone is nothing", "ad", { .hd = 1 }, CLEAN, DMA_WRITE, false,
          CLEAN },
        { "HA does not make dirty", "ad", { .ha = 1 }, CLEAN, DMA_WRITE,
          false, CLEAN },
        { "a write makes dirty", "ad", { .ha = 1, .hd = 1 }, CLEAN, DMA_WRITE,
          true, DIRTY },
        { "a read does not", "ad", { .ha = 1, .hd = 1 }, CLEAN, DMA_READ,
          true, CLEAN },
        { "both at once", "ad", { .ha = 1, .hd = 1 }, NO_AF(CLEAN), DMA_WRITE,
          true, DIRTY },
        { "read-only is not clean", "ad", { .ha = 1, .hd = 1 },
          PTE_RW_EL0 | PTE_RO, DMA_WRITE, false, PTE_RW_EL0 | PTE_RO },
        { "EL1's page stays clean", "ad", { .ha = 1, .hd = 1 },
          CLEAN & ~(uint64_t)PTE_EL0, DMA_WRITE, false,
          CLEAN & ~(uint64_t)PTE_EL0 },
        { "EL1 makes it dirty", "ad", { .ha = 1, .hd = 1 },
          CLEAN & ~(uint64_t)PTE_EL0, DMA_WRITE | DMA_PRIV, true,
          DIRTY & ~(uint64_t)PTE_EL0 },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        Stream st;
        SmmuTest *t = start(row[i].httu, &st, row[i].attrs, row[i].cd);

        g_test_message("%s", row[i].name);
        qtest_writeq(t->qts, st.page, 0x1234);
        g_assert_cmpuint(dma(t, VA, row[i].access, SSID), ==,
                         row[i].ok ? DMA_OK : DMA_ERROR);
        if (!row[i].ok) {
            event(t, row[i].name, (SmmuEvent) {
                .type = row[i].attrs & PTE_AF ? F_PERMISSION : F_ACCESS,
                .class = CLASS_IN, .addr = VA,
                .rnw = !(row[i].access & DMA_WRITE),
                .pnu = !!(row[i].access & DMA_PRIV),
            });
        }
        g_assert_cmphex(pte(t, &st), ==, st.page | row[i].after);
        g_assert_cmpuint(smmu_events(t), ==, 0);
        smmu_quit(t);
    }
}

/* The cached clean translation does not let a write through unseen */
static void test_read_then_write(void)
{
    Stream st;
    SmmuTest *t = start("ad", &st, CLEAN, (Cd) { .ha = 1, .hd = 1 });

    for (int i = 0; i < 3; i++) {
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
        g_assert_cmphex(pte(t, &st), ==, st.page | CLEAN);
    }
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
    g_assert_cmphex(pte(t, &st), ==, st.page | DIRTY);
    /* software cleans it; after the invalidation the next write shows */
    pt_map(t, st.root, VA, st.page, CLEAN);
    CMD_TLBI_NH_ALL(t);
    CMD_SYNC(t);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
    g_assert_cmphex(pte(t, &st), ==, st.page | DIRTY);
    smmu_quit(t);
}

/* A block descriptor, and APTable that forbids writing what is below */
static void test_block_and_table(void)
{
    Stream st;
    SmmuTest *t = start("ad", &st, CLEAN, (Cd) { .ha = 1, .hd = 1 });
    uint64_t l2 = qtest_readq(t->qts, st.root + (VA >> 30) * 8) &
                  0xfffffffff000ull;
    uint64_t slot = l2 + (VA >> 21 & 0x1ff) * 8;
    uint64_t table = qtest_readq(t->qts, slot);
    uint64_t block = (VIRT_RAM + 0x1000000) | (NO_AF(CLEAN) & ~2ull);

    qtest_writeq(t->qts, slot, table | 1ull << 62);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_ERROR);
    event(t, "APTable", (SmmuEvent) {
        .type = F_PERMISSION, .class = CLASS_IN, .addr = VA,
    });
    g_assert_cmphex(qtest_readq(t->qts, (table & 0xfffffffff000ull) +
                                (VA >> 12 & 0x1ff) * 8), ==,
                    st.page | CLEAN);

    qtest_writeq(t->qts, slot, block);
    CMD_TLBI_NH_ALL(t);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, slot), ==,
                    (block | PTE_AF) & ~(uint64_t)PTE_RO);
    smmu_quit(t);
}

/* 3.13: stage 2 alone */
static void test_stage2(void)
{
    static const struct {
        const char *name;
        bool ha, hd;
        uint64_t attrs;
        uint32_t access;
        bool ok;
        uint64_t after;
    } row[] = {
        { "AF", true, false, NO_AF(S2_RW), DMA_READ, true, S2_RW },
        { "no AF", false, false, NO_AF(S2_RW), DMA_READ, false,
          NO_AF(S2_RW) },
        { "dirty", true, true, NO_AF(S2_CLEAN), DMA_WRITE, true, S2_DIRTY },
        { "clean", true, true, NO_AF(S2_CLEAN), DMA_READ, true, S2_CLEAN },
        { "HA alone", true, false, S2_CLEAN, DMA_WRITE, false, S2_CLEAN },
        { "HD alone", false, true, S2_CLEAN, DMA_WRITE, false, S2_CLEAN },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        Stream st;
        SmmuTest *t = start("ad", &st, PTE_RW_EL0, (Cd) { });
        uint64_t s2 = smmu_pages(t, 1);
        uint64_t slot = pt_slot(t, s2, IPA);

        g_test_message("%s", row[i].name);
        st.ste = (Ste) {
            .config = 6, .s2ttb = s2, .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4,
            .s2r = true, .s2ha = row[i].ha, .s2hd = row[i].hd,
        };
        ste_write(t, t->sid, &st.ste);
        qtest_writeq(t->qts, slot, st.page | row[i].attrs);
        g_assert_cmpuint(dma(t, IPA, row[i].access, -1), ==,
                         row[i].ok ? DMA_OK : DMA_ERROR);
        if (!row[i].ok) {
            smmu_expect_event(t, row[i].name, &(SmmuEvent) {
                .type = row[i].attrs & PTE_AF ? F_PERMISSION : F_ACCESS,
                .class = CLASS_IN, .addr = IPA, .addr2 = IPA, .s2 = true,
                .rnw = !(row[i].access & DMA_WRITE), .sid = t->sid,
            });
        }
        g_assert_cmphex(qtest_readq(t->qts, slot), ==,
                        st.page | row[i].after);
        smmu_quit(t);
    }
}

/*
 * Nested: the walker's write of a stage 1 descriptor is a write through
 * stage 2. It needs the right, sets dirty state there, and where it has none
 * the fault is stage 2's, of class TT.
 */
static void test_nested(void)
{
    enum { WRITABLE, READ_ONLY, CLEAN_TABLE, BAD_OUTPUT, N };

    for (int how = 0; how < N; how++) {
        Stream st;
        SmmuTest *t = start("ad", &st, CLEAN, (Cd) { .ha = 1, .hd = 1 });
        uint64_t s2 = smmu_pages(t, 1), slot = pt_slot(t, st.root, VA);
        uint64_t table = slot & ~0xfffull, tslot = pt_slot(t, s2, table);

        /* stage 2 is the identity, but for the page: IPA -> page */
        pt_map(t, st.root, VA, IPA, CLEAN);
        for (uint64_t p = VIRT_RAM + 0x200000; p < t->next; p += 4096) {
            pt_map(t, s2, p, p, S2_RW);
        }
        pt_map(t, s2, IPA, st.page, how == BAD_OUTPUT ? S2_RW & ~S2_W
                                                     : S2_RW);
        if (how == READ_ONLY) {
            qtest_writeq(t->qts, tslot, table | (S2_RW & ~S2_W));
        } else if (how == CLEAN_TABLE) {
            qtest_writeq(t->qts, tslot, table | S2_CLEAN);
        }
        st.ste.config = 7;
        st.ste.s2ttb = s2;
        st.ste.s2t0sz = 25;
        st.ste.s2sl0 = 1;
        st.ste.s2ps = 4;
        st.ste.s2r = st.ste.s2ha = st.ste.s2hd = true;
        ste_write(t, t->sid, &st.ste);

        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
        g_assert_cmphex(qtest_readq(t->qts, slot), ==, IPA | CLEAN);
        g_assert_cmpuint(dma(t, VA, DMA_WRITE, SSID), ==,
                         how == WRITABLE || how == CLEAN_TABLE ? DMA_OK
                                                               : DMA_ERROR);
        switch (how) {
        case READ_ONLY:
            event(t, "table", (SmmuEvent) {
                .type = F_PERMISSION, .class = CLASS_TT, .addr = VA,
                .addr2 = table, .s2 = true,
            });
            break;
        case BAD_OUTPUT:
            event(t, "output", (SmmuEvent) {
                .type = F_PERMISSION, .class = CLASS_IN, .addr = VA,
                .addr2 = IPA, .s2 = true,
            });
            break;
        case CLEAN_TABLE:
            g_assert_cmphex(qtest_readq(t->qts, tslot), ==, table | S2_DIRTY);
            break;
        }
        g_assert_cmphex(qtest_readq(t->qts, slot), ==,
                        IPA | (how == WRITABLE || how == CLEAN_TABLE
                               ? DIRTY : CLEAN));
        g_assert_cmpuint(smmu_events(t), ==, 0);
        smmu_quit(t);
    }
}

enum { TR_NW = 4, TR_PASID = 8, PERM_W = 2, PERM_R = 4 };

/* 3.13.6: a translation request that is not NW makes a clean page dirty */
static void test_ats(void)
{
    static const struct {
        const char *name;
        uint64_t attrs;
        uint32_t ctl;
        unsigned perm;
        uint64_t after;
    } row[] = {
        { "dirty", NO_AF(CLEAN), 0, PERM_R | PERM_W, DIRTY },
        { "NW", NO_AF(CLEAN), TR_NW, PERM_R, CLEAN },
        { "read-only", PTE_RW_EL0 | PTE_RO, 0, PERM_R, PTE_RW_EL0 | PTE_RO },
        { "EL1", CLEAN & ~(uint64_t)PTE_EL0, 0, 0,
          CLEAN & ~(uint64_t)PTE_EL0 },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        Stream st;
        SmmuTest *t = start("ad", &st, row[i].attrs,
                            (Cd) { .ha = 1, .hd = 1 });

        g_test_message("%s", row[i].name);
        ats_enable(t, true);
        qtest_writel(t->qts, t->regs + 0x10, VA);
        qtest_writel(t->qts, t->regs + 0x14, 0);
        qtest_writel(t->qts, t->regs + 0x20, SSID);
        qtest_writel(t->qts, t->regs + 0x24, 1 | TR_PASID | row[i].ctl);
        g_assert_cmpint((int32_t)qtest_readl(t->qts, t->regs + 0x8c), ==, 0);
        g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0x38) & 7 &
                         (PERM_R | PERM_W), ==, row[i].perm);
        g_assert_cmphex(pte(t, &st), ==, st.page | row[i].after);
        g_assert_cmpuint(smmu_events(t), ==, 0);
        smmu_quit(t);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/httu/legal", test_legal);
    qtest_add_func("smmuv3/httu/stage1", test_stage1);
    qtest_add_func("smmuv3/httu/read-then-write", test_read_then_write);
    qtest_add_func("smmuv3/httu/block-and-table", test_block_and_table);
    qtest_add_func("smmuv3/httu/stage2", test_stage2);
    qtest_add_func("smmuv3/httu/nested", test_nested);
    qtest_add_func("smmuv3/httu/ats", test_ats);
    return g_test_run();
}
