/*
 * SMMUv3: SubstreamIDs
 *
 * Which CD a transaction uses and which event an illegal choice makes. One
 * test a behaviour; section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define MARK(ssid) (0x1122334400000000ull | (ssid))

/* Address space @ssid: VA holds MARK(ssid), readable and writable by EL0. */
static void make_cd(SmmuTest *t, uint64_t cdaddr, unsigned ssid)
{
    uint64_t page = smmu_pages(t, 1);
    Cd cd = { .ttb = smmu_pages(t, 1), .asid = ssid + 1 };

    pt_map(t, cd.ttb, VA, page, PTE_RW_EL0);
    qtest_writeq(t->qts, page, MARK(ssid));
    cd_write(t, cdaddr, &cd);
}

/* The DMA arrives in the address space @ssid. */
static void lands_in(SmmuTest *t, int pasid, unsigned ssid)
{
    g_assert_cmpuint(dma(t, VA, DMA_READ, pasid), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, MARK(ssid));
    g_assert_cmpuint(smmu_events(t), ==, 0);
}

static SmmuTest *start(const char *opts)
{
    SmmuTest *t = smmu_start(opts);

    pasid_enable(t);
    return t;
}

/* 6.3.2, 6.3.1: SSIDSIZE and CD2L are what the property says */
static void test_id(void)
{
    for (unsigned n = 0; n <= 20; n += 5) {
        g_autofree char *opt = g_strdup_printf("ssidsize=%u", n);
        SmmuTest *t = smmu_start(opt);

        g_assert_cmpuint(smmu_r(t, SMMU_IDR1) >> 6 & 0x1f, ==, n);
        g_assert_cmpuint(smmu_r(t, SMMU_IDR0) >> 19 & 1, ==, n > 0);
        smmu_quit(t);
    }
}

/* 5.3: linear table */
static void test_linear(void)
{
    SmmuTest *t = start("ssidsize=20");
    uint64_t cds = smmu_pages(t, 1);
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 5, .s1dss = 2 };
    static const unsigned ssid[] = { 1, 2, 17, 31 };

    for (int i = 0; i < ARRAY_SIZE(ssid); i++) {
        make_cd(t, cds + ssid[i] * 64, ssid[i]);
    }
    make_cd(t, cds, 0);
    ste_write(t, t->sid, &ste);
    for (int i = 0; i < ARRAY_SIZE(ssid); i++) {
        lands_in(t, ssid[i], ssid[i]);
    }
    lands_in(t, -1, 0);
    smmu_quit(t);
}

/* 5.3: two levels, leaves of 4KB and of 64KB */
static void test_two_level(void)
{
    static const unsigned ssid[] = { 1, 63, 64, 1023, 1024, 0xfffff };

    for (unsigned fmt = 1; fmt <= 2; fmt++) {
        SmmuTest *t = start("ssidsize=20");
        unsigned split = fmt == 1 ? 6 : 10;
        uint64_t l1 = smmu_pages(t, fmt == 1 ? 32 : 2);
        Ste ste = {
            .config = 5, .cd = l1, .s1fmt = fmt, .s1cdmax = 20, .s1dss = 2,
        };

        for (int i = 0; i < ARRAY_SIZE(ssid); i++) {
            uint64_t slot = l1 + (ssid[i] >> split) * 8;
            uint64_t l2 = qtest_readq(t->qts, slot) & ~1ull;

            if (!l2) {
                l2 = smmu_pages(t, fmt == 1 ? 1 : 16);
                qtest_writeq(t->qts, slot, l2 | 1);
            }
            make_cd(t, l2 + (ssid[i] & ((1 << split) - 1)) * 64, ssid[i]);
        }
        ste_write(t, t->sid, &ste);
        for (int i = 0; i < ARRAY_SIZE(ssid); i++) {
            lands_in(t, ssid[i], ssid[i]);
        }
        smmu_quit(t);
    }
}

/* 16 and 17: what is refused, and how it is told */
static void test_refused(void)
{
    static const struct {
        const char *name;
        Ste ste;
        int pasid;
        uint8_t event;
    } row[] = {
        { "SSV, bypass STE", { .config = 4 }, 1, C_BAD_SUBSTREAMID },
        { "SSV, stage 2 only", { .config = 6 }, 3, C_BAD_SUBSTREAMID },
        { "SSV, S1CDMAX=0", { .config = 5 }, 1, C_BAD_SUBSTREAMID },
        { "SSV 0, S1CDMAX=0", { .config = 5 }, 0, C_BAD_SUBSTREAMID },
        { "SSID = 2^S1CDMAX", { .config = 5, .s1cdmax = 2 }, 4,
          C_BAD_SUBSTREAMID },
        { "SSID = 0xfffff", { .config = 5, .s1cdmax = 2 }, 0xfffff,
          C_BAD_SUBSTREAMID },
        { "S1DSS=0, no SSID", { .config = 5, .s1cdmax = 2, .s1dss = 0 }, -1,
          F_STREAM_DISABLED },
        { "S1DSS=3, no SSID", { .config = 5, .s1cdmax = 2, .s1dss = 3 }, -1,
          F_STREAM_DISABLED },
        { "S1DSS=2, SSID 0", { .config = 5, .s1cdmax = 2, .s1dss = 2 }, 0,
          F_STREAM_DISABLED },
        { "S1CDMAX > SSIDSIZE", { .config = 5, .s1cdmax = 11 }, 1, C_BAD_STE },
        { "S1FMT=3", { .config = 5, .s1cdmax = 2, .s1fmt = 3 }, 1, C_BAD_STE },
        { "invalid L1CD", { .config = 5, .s1cdmax = 10, .s1fmt = 1 }, 1,
          C_BAD_SUBSTREAMID },
        { "invalid CD", { .config = 5, .s1cdmax = 2 }, 3, C_BAD_CD },
        { "invalid STE", { .invalid = true }, 3, C_BAD_STE },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = start("ssidsize=10");
        Ste ste = row[i].ste;
        int pasid = row[i].pasid;

        ste.cd = smmu_pages(t, 4);
        ste.s2ttb = smmu_pages(t, 1);
        ste.s2t0sz = 25;
        ste.s2sl0 = 1;
        ste.s2ps = 4;
        make_cd(t, ste.cd + 64, 1);
        if (ste.s1fmt) {
            qtest_writeq(t->qts, ste.cd, 0);
        }
        ste_write(t, t->sid, &ste);
        g_assert_cmpuint(dma(t, VA, DMA_READ, pasid), ==, DMA_ERROR);
        smmu_expect_event(t, row[i].name, &(SmmuEvent) {
            .type = row[i].event, .sid = t->sid, .ssv = pasid >= 0,
            .ssid = pasid < 0 ? 0 : pasid,
        });
        smmu_quit(t);
    }
}

/* 6.3.1: without CD2L (SSIDSIZE=0) nothing of it exists */
static void test_without_feature(void)
{
    SmmuTest *t = start(NULL);
    Ste ste = { .config = 5, .s1cdmax = 1, .cd = smmu_pages(t, 1) };

    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    smmu_expect_event(t, "S1CDMAX=1", &(SmmuEvent) {
        .type = C_BAD_STE, .sid = t->sid,
    });
    smmu_quit(t);
}

/* 5.2: S1DSS=1 is bypass of stage 1, and no CD is fetched */
static void test_s1dss_bypass(void)
{
    SmmuTest *t = start("ssidsize=4");
    uint64_t page = smmu_pages(t, 1), cds = smmu_pages(t, 1);
    Ste ste = { .config = 5, .s1cdmax = 2, .s1dss = 1, .cd = 0x7fff0000 };

    qtest_writeq(t->qts, page, MARK(9));
    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, page, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, MARK(9));
    g_assert_cmpuint(smmu_events(t), ==, 0);

    /* and SSID 0 is an SSID like others */
    ste.cd = cds;
    make_cd(t, cds, 0);
    ste_write(t, t->sid, &ste);
    CMD_CFGI_STE(t, t->sid);
    lands_in(t, 0, 0);

    /* both stages: stage 2 remains */
    ste.config = 7;
    ste.s2ttb = smmu_pages(t, 1);
    ste.s2t0sz = 25;
    ste.s2sl0 = 1;
    ste.s2ps = 4;
    ste.s2r = true;
    pt_map(t, ste.s2ttb, VA, page, S2_RW);
    ste_write(t, t->sid, &ste);
    CMD_CFGI_STE(t, t->sid);
    lands_in(t, -1, 9);
    smmu_quit(t);
}

/* 4.3: an invalidation reaches what it names and nothing else */
static void test_exact_invalidation(void)
{
    SmmuTest *t = start("ssidsize=4");
    uint64_t cds = smmu_pages(t, 1);
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2 };

    for (unsigned n = 0; n < 4; n++) {
        make_cd(t, cds + n * 64, n);
    }
    ste_write(t, t->sid, &ste);
    lands_in(t, 1, 1);
    lands_in(t, 2, 2);
    lands_in(t, -1, 0);

    /* CDs are cached: zeroed ones still serve */
    qtest_memset(t->qts, cds, 0, 4 * 64);
    lands_in(t, 1, 1);
    CMD_CFGI_CD(t, t->sid, 1);
    g_assert_cmpuint(dma(t, VA, DMA_READ, 1), ==, DMA_ERROR);
    smmu_expect_event(t, "CFGI_CD", &(SmmuEvent) {
        .type = C_BAD_CD, .sid = t->sid, .ssv = true, .ssid = 1,
    });
    lands_in(t, 2, 2);
    lands_in(t, -1, 0);

    /* another stream's */
    CMD_CFGI_CD_ALL(t, t->sid + 8);
    lands_in(t, 2, 2);

    CMD_CFGI_CD(t, t->sid, 0);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    smmu_expect_event(t, "CFGI_CD 0", &(SmmuEvent) {
        .type = C_BAD_CD, .sid = t->sid,
    });
    lands_in(t, 2, 2);

    CMD_CFGI_CD_ALL(t, t->sid);
    g_assert_cmpuint(dma(t, VA, DMA_READ, 2), ==, DMA_ERROR);
    smmu_expect_event(t, "CFGI_CD_ALL", &(SmmuEvent) {
        .type = C_BAD_CD, .sid = t->sid, .ssv = true, .ssid = 2,
    });
    smmu_quit(t);
}

/* 4.4: TLBI by ASID leaves the other address spaces' entries */
static void test_tlbi_asid(void)
{
    SmmuTest *t = start("ssidsize=4");
    uint64_t cds = smmu_pages(t, 1), other = smmu_pages(t, 1);
    uint64_t slot[4];
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 2, .s1dss = 2 };

    qtest_writeq(t->qts, other, MARK(7));
    for (unsigned n = 1; n < 4; n++) {
        Cd cd = { .ttb = smmu_pages(t, 1), .asid = n + 1 };
        uint64_t page = smmu_pages(t, 1);

        pt_map(t, cd.ttb, VA, page, PTE_RW_EL0);
        slot[n] = pt_slot(t, cd.ttb, VA);
        qtest_writeq(t->qts, page, MARK(n));
        cd_write(t, cds + n * 64, &cd);
    }
    ste_write(t, t->sid, &ste);
    lands_in(t, 1, 1);
    lands_in(t, 2, 2);
    for (unsigned n = 1; n < 3; n++) {
        qtest_writeq(t->qts, slot[n], other | PTE_RW_EL0);
    }
    CMD_TLBI_ASID(t, 2);
    CMD_SYNC(t);
    lands_in(t, 1, 7);
    lands_in(t, 2, 2);
    smmu_quit(t);
}

/* 7.3.13: a fault's record carries SSV and SubstreamID */
static void test_fault_record(void)
{
    SmmuTest *t = start("ssidsize=20");
    uint64_t cds = smmu_pages(t, 1);
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 5 };

    make_cd(t, cds + 21 * 64, 21);
    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA + 0x5008, DMA_WRITE, 21), ==, DMA_ERROR);
    smmu_expect_event(t, "write", &(SmmuEvent) {
        .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = 21,
        .class = CLASS_IN, .addr = VA + 0x5008,
    });
    smmu_quit(t);
}

/* Nested: CD and L1CD are at IPAs, stage 2 faults on them have CLASS=CD */
static void test_nested_cd_fault(void)
{
    for (int fmt = 0; fmt < 2; fmt++) {
        SmmuTest *t = start("ssidsize=10");
        Ste ste = {
            .config = 7, .cd = 0x10000, .s1cdmax = 8, .s1fmt = fmt,
            .s2ttb = smmu_pages(t, 1), .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4,
            .s2r = true,
        };

        ste_write(t, t->sid, &ste);
        g_assert_cmpuint(dma(t, VA, DMA_WRITE, 65), ==, DMA_ERROR);
        smmu_expect_event(t, fmt ? "L1CD" : "CD", &(SmmuEvent) {
            .type = F_TRANSLATION, .sid = t->sid, .ssv = true, .ssid = 65,
            .s2 = true, .class = CLASS_CD, .addr = VA,
            .addr2 = fmt ? 0x10000 : 0x11000, /* the page */
        });
        smmu_quit(t);
    }
}

/* Tables in unmapped memory and tables that refer to themselves */
static void test_hostile_tables(void)
{
    SmmuTest *t = start("ssidsize=20");
    Ste ste = { .config = 5, .cd = 0x7fff0000, .s1cdmax = 20, .s1fmt = 2 };
    uint64_t l1 = smmu_pages(t, 2);

    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, 0xfffff), ==, DMA_ERROR);
    smmu_expect_event(t, "L1CD unmapped", &(SmmuEvent) {
        .type = F_CD_FETCH, .sid = t->sid, .ssv = true, .ssid = 0xfffff,
        .addr2 = 0x7fff0000 + 0x3ff * 8,
    });

    /* an L1CD that points into the SMMU's registers */
    ste.cd = l1;
    qtest_writeq(t->qts, l1, (VIRT_SMMU & ~0xffffull) | 1);
    ste_write(t, t->sid, &ste);
    CMD_CFGI_STE(t, t->sid);
    g_assert_cmpuint(dma(t, VA, DMA_READ, 3), ==, DMA_ERROR);
    smmu_expect_event(t, "CD in registers", &(SmmuEvent) {
        .type = F_CD_FETCH, .sid = t->sid, .ssv = true, .ssid = 3,
        .addr2 = (VIRT_SMMU & ~0xffffull) + 3 * 64,
    });
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/substream/id", test_id);
    qtest_add_func("smmuv3/substream/linear", test_linear);
    qtest_add_func("smmuv3/substream/two-level", test_two_level);
    qtest_add_func("smmuv3/substream/16-18-refused", test_refused);
    qtest_add_func("smmuv3/substream/without-feature", test_without_feature);
    qtest_add_func("smmuv3/substream/s1dss-bypass", test_s1dss_bypass);
    qtest_add_func("smmuv3/substream/exact-invalidation",
                   test_exact_invalidation);
    qtest_add_func("smmuv3/substream/tlbi-asid", test_tlbi_asid);
    qtest_add_func("smmuv3/substream/fault-record", test_fault_record);
    qtest_add_func("smmuv3/substream/nested-cd-fault", test_nested_cd_fault);
    qtest_add_func("smmuv3/substream/hostile-tables", test_hostile_tables);
    return g_test_run();
}
