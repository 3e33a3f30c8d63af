/*
 * MMU-500: nested translation, AArch32 formats, address translation
 * operations, performance monitors, migration
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "mmu500.h"

/* Nested: IPAs of RAM are identical, others as the test maps them. */
static Guest *nested_start(Tables *s1, Tables *s2)
{
    Guest *g = guest_start("");
    int i;

    *s2 = bank_s2(g, 1, 2, SCTLR_ON);
    for (i = 0; i < 16; i++) {
        tables_map(g, s2, RAM + i * 0x200000ull, RAM + i * 0x200000ull,
                   S2_RW, 2);
    }
    *s1 = bank_s1(g, 3, 3, SCTLR_ON);
    wr(g, CBAR(3), CBAR_NESTED(1) | 2);
    stream_to(g, 0, S2CR_BANK(3));
    return g;
}

static void assert_s2_fault(Guest *g, uint64_t va, uint64_t ipa, uint32_t fsr,
                            uint32_t fsynr0)
{
    g_assert_cmphex(rd(g, FSR(1)), ==, fsr | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(1)), ==, va);
    g_assert_cmphex(rd64(g, IPAFAR(1)), ==, ipa);
    g_assert_cmphex(rd(g, FSYNR0(1)), ==, fsynr0 | FSYNR0_NSATTR |
                    FSYNR0_NESTED | FSYNR0_S1CB(3));
    g_assert_cmphex(rd(g, CBFRSYNRA(1)), ==, EX_SID);
    /* the other bank has nothing to say */
    g_assert_cmphex(rd(g, FSR(3)) & FSR_ALL, ==, 0);
    wr(g, FSR(1), FSR_ALL);
}

static void test_nested_page(void)
{
    Tables t, u;
    Guest *g = nested_start(&t, &u);

    map(g, &t, 0x5000, 0x9000, S1_RW);
    map(g, &u, 0x9000, PAGE(7), S2_RW);
    assert_maps(g, 0x5000, PAGE(7));
    /* a stage 1 block over stage 2 pages: each page on its own */
    tables_map(g, &t, 0x200000, 0x400000, S1_RW, 2);
    map(g, &u, 0x401000, PAGE(20), S2_RW);
    map(g, &u, 0x402000, PAGE(10), S2_RW);
    assert_maps(g, 0x201000, PAGE(20));
    assert_maps(g, 0x202000, PAGE(10));
    guest_stop(g);
}

static void test_nested_faults(void)
{
    Tables t, u;
    Guest *g = nested_start(&t, &u);

    /* stage 1 has nothing */
    assert_fails(g, 0x5000);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    g_assert_cmphex(rd(g, FSR(1)), ==, 0);
    wr(g, FSR(3), FSR_ALL);

    /* stage 2 has nothing */
    map(g, &t, 0x5000, 0x9000, S1_RW);
    assert_fails(g, 0x5678);
    assert_s2_fault(g, 0x5678, 0x9678, FSR_TF, 1);
    map(g, &u, 0x9000, PAGE(7), S2_RO);
    assert_read_maps(g, 0x5000, PAGE(7));
    g_assert_cmpint(dma_write(g, 0x5000, 1), ==, DMA_ERROR);
    assert_s2_fault(g, 0x5000, 0x9000, FSR_PF, 3 | FSYNR0_WNR);

    /* stage 1 refuses before stage 2 is asked */
    map(g, &t, 0x6000, 0xa000, S1_RO);
    g_assert_cmpint(dma_write(g, 0x6000, 1), ==, DMA_ERROR);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_PF | FSR_AA64);
    g_assert_cmphex(rd(g, FSR(1)) & FSR_ALL, ==, 0);
    guest_stop(g);
}

/* Stage 1 tables are at IPAs. */
static void test_nested_table_fault(void)
{
    Tables t, u;
    Guest *g = nested_start(&t, &u);
    uint64_t desc = tables_desc(g, &t, 0x5000, 2);

    wr64(g, desc, 0x123000 | PTE_TABLE);
    assert_fails(g, 0x5000);
    assert_s2_fault(g, 0x5000, 0x123028, FSR_TF, 1 | FSYNR0_S1PTWF);
    /* there, but not for reading */
    map(g, &u, 0x123000, PAGE(30), PTE_AF | PTE_S2W);
    assert_fails(g, 0x5000);
    assert_s2_fault(g, 0x5000, 0x123028, FSR_PF, 3 | FSYNR0_S1PTWF);
    map(g, &u, 0x123000, PAGE(30), S2_RO);
    wr(g, TLBIVMID, 2);
    wr64(g, PAGE(30) + 0x28, PAGE(7) | S1_RW | PTE_PAGE);
    assert_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

/* By IPA: stage 2's cache goes, the combined entry needs VMIDS1 as well. */
static void test_nested_invalidation(void)
{
    Tables t, u;
    Guest *g = nested_start(&t, &u);

    map(g, &t, 0x5000, 0x9000, S1_RW);
    map(g, &u, 0x9000, PAGE(7), S2_RW);
    assert_maps(g, 0x5000, PAGE(7));
    map(g, &u, 0x9000, PAGE(8), S2_RW);
    wr64(g, TLBIIPAS2(1), 0x9);
    wr(g, TLBIVMIDS1, 2);
    assert_maps(g, 0x5000, PAGE(8));
    g_assert_cmpint(get_stat(g, "ipa-cache-hits"), >, 0);
    guest_stop(g);
}

static void test_nested_stage1_off(void)
{
    Tables t, u;
    Guest *g = nested_start(&t, &u);

    wr(g, SCTLR(3), 0);
    map(g, &u, 0x9000, PAGE(7), S2_RW);
    assert_maps(g, 0x9000, PAGE(7));
    wr(g, SCTLR(1), 0);
    assert_maps(g, PAGE(9), PAGE(9));
    guest_stop(g);
}

static void test_nested_misconfigured(void)
{
    Tables t, u;
    Guest *g = nested_start(&t, &u);

    /* the stage 2 bank is a stage 1 bank, itself, or none */
    wr(g, CBAR(1), CBAR_S1);
    assert_fails(g, 0x5000);
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_ICF);
    g_assert_true(rd(g, GFSYNR0) & GFSYNR0_NESTED);
    wr(g, GFSR, 0xffffffff);
    wr(g, CBAR(3), CBAR_NESTED(3));
    assert_fails(g, 0x5000);
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_ICF);
    wr(g, GFSR, 0xffffffff);
    wr(g, CBAR(3), CBAR_NESTED(200));
    assert_fails(g, 0x5000);
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_UCBF);
    guest_stop(g);
}

/* AArch32 */

static void assert_fault(Guest *g, int cb, uint64_t iova, uint32_t fsr,
                         uint32_t fsynr0)
{
    g_assert_cmphex(rd(g, FSR(cb)), ==, fsr);
    g_assert_cmphex(rd64(g, FAR(cb)), ==, iova);
    g_assert_cmphex(rd(g, FSYNR0(cb)), ==, fsynr0 | FSYNR0_NSATTR);
    wr(g, FSR(cb), FSR_ALL);
}

static void test_lpae_s1(void)
{
    Guest *g = guest_start("");
    Tables t = tables_new(g, 12, 1, 32), t1 = tables_new(g, 12, 1, 31);

    stream_to(g, 0, S2CR_BANK(3));
    wr(g, CBA2R(3), 0);
    wr(g, CBAR(3), CBAR_S1);
    wr(g, TCR(3), TCR_EAE | TCR_EPD1);
    wr64(g, TTBR0(3), t.root | 3ull << 48);
    wr(g, SCTLR(3), SCTLR_ON);
    map(g, &t, 0x80005000, PAGE(7), S1_RW);
    assert_maps(g, 0x80005000, PAGE(7));
    assert_fails(g, 0x6000);
    assert_fault(g, 3, 0x6000, FSR_TF | FSR_LPAE, 1);
    assert_fails(g, 0x180005000);
    assert_fault(g, 3, 0x180005000, FSR_TF | FSR_LPAE, 0);
    /* a TLB operation takes 32 bits */
    map(g, &t, 0x80005000, PAGE(8), S1_RW);
    assert_maps(g, 0x80005000, PAGE(7));
    wr(g, TLBIVA(3), 0x80005000 | 3);
    assert_maps(g, 0x80005000, PAGE(8));

    /* the upper half by TTBR1 */
    wr(g, TCR(3), TCR_EAE | 1 | 1u << 16);
    wr64(g, TTBR1(3), t1.root);
    wr(g, TLBIASID(3), 3);
    map(g, &t1, 0x80005000, PAGE(9), S1_RW);
    assert_maps(g, 0x80005000, PAGE(9));
    guest_stop(g);
}

static void test_lpae_s2(void)
{
    Guest *g = guest_start("");
    Tables t = tables_new(g, 12, 1, 40);

    stream_to(g, 0, S2CR_BANK(3));
    wr(g, CBA2R(3), 0);
    wr(g, CBAR(3), CBAR_S2 | 5);
    /* T0SZ = -8: 40 bits; from level 1 */
    wr(g, TCR(3), TCR_EAE | 1u << 6 | 0x18);
    wr64(g, TTBR0(3), t.root);
    wr(g, SCTLR(3), SCTLR_ON);
    map(g, &t, 0x8000005000, PAGE(7), S2_RW);
    assert_maps(g, 0x8000005000, PAGE(7));
    assert_fails(g, 0x8000006000);
    assert_fault(g, 3, 0x8000006000, FSR_TF | FSR_LPAE, 3);
    guest_stop(g);
}

static Guest *short_start(uint64_t *l1, uint32_t sctlr, uint32_t tcr)
{
    Guest *g = guest_start("");

    *l1 = table_alloc(g, 16384);
    stream_to(g, 0, S2CR_BANK(3));
    wr(g, CBA2R(3), 0);
    wr(g, CBAR(3), CBAR_S1);
    wr(g, TCR(3), tcr);
    wr(g, CONTEXTIDR(3), 3);
    wr(g, TTBR0(3), *l1);
    wr(g, SCTLR(3), sctlr);
    return g;
}

#define SHORT_RW (3u << 10)
#define SMALL_RW (3u << 4)

static void test_short(void)
{
    uint64_t l1, l2;
    Guest *g = short_start(&l1, SCTLR_ON, 0);
    int i;

    l2 = table_alloc(g, 4096);
    wr(g, l1 + 4, l2 | 1);
    wr(g, l2 + 5 * 4, PAGE(7) | SMALL_RW | 2);
    assert_maps(g, 0x105000, PAGE(7));
    /* large page: sixteen equal entries */
    for (i = 16; i < 32; i++) {
        wr(g, l2 + i * 4, (RAM + 0x110000) | SMALL_RW | 1);
    }
    assert_maps(g, 0x11a000, RAM + 0x11a000);
    /* section and supersection */
    wr(g, l1 + 8, (RAM + 0x100000) | SHORT_RW | 2);
    assert_maps(g, 0x201234, RAM + 0x101234);
    for (i = 0x100; i < 0x110; i++) {
        wr(g, l1 + i * 4, RAM | 1u << 18 | SHORT_RW | 2);
    }
    assert_maps(g, 0x10123450, RAM + 0x123450);

    assert_fails(g, 0x106000);
    assert_fault(g, 3, 0x106000, FSR_TF | FSR_SHORT, 2);
    assert_fails(g, 0x300000);
    assert_fault(g, 3, 0x300000, FSR_TF | FSR_SHORT, 1);
    guest_stop(g);
}

/* AP[2:0], read and write by unprivileged and privileged masters */
static void test_short_permissions(void)
{
    static const struct {
        uint8_t ap;
        bool ur, uw, pr, pw;
    } c[] = {
        { 0, false, false, false, false },
        { 1, false, false, true, true },
        { 2, true, false, true, true },
        { 3, true, true, true, true },
        { 5, false, false, true, false },
        { 6, true, false, true, false },
        { 7, true, false, true, false },
    };
    uint64_t l1;
    Guest *g = short_start(&l1, SCTLR_ON | SCTLR_HUPCF, 0);
    uint32_t val;
    int i, priv;

    for (i = 0; i < ARRAY_SIZE(c); i++) {
        wr(g, l1 + 8, (RAM + 0x100000) | 2 | (c[i].ap & 3) << 10 |
           (c[i].ap >> 2) << 15);
        for (priv = 0; priv < 2; priv++) {
            wr(g, S2CR(0), S2CR_BANK(3) | (priv ? S2CR_PRIV : 0));
            wr(g, TLBIALL(3), 0);
            g_assert_cmpint(dma_read(g, 0x200000, &val), ==,
                            (priv ? c[i].pr : c[i].ur) ? DMA_OK : DMA_ERROR);
            g_assert_cmpint(dma_write(g, 0x200000, 1), ==,
                            (priv ? c[i].pw : c[i].uw) ? DMA_OK : DMA_ERROR);
        }
    }
    guest_stop(g);
}

static void test_short_afe(void)
{
    uint64_t l1;
    Guest *g = short_start(&l1, SCTLR_ON | SCTLR_AFE, 0);

    wr(g, l1 + 8, (RAM + 0x100000) | 2 | 2u << 10);
    assert_fails(g, 0x200000);
    assert_fault(g, 3, 0x200000, FSR_AFF | FSR_SHORT, 1);
    wr(g, l1 + 8, (RAM + 0x100000) | 2 | 3u << 10);
    assert_maps(g, 0x200000, RAM + 0x100000);
    guest_stop(g);
}

/* TTBCR.N splits the range; PD1 turns the upper part off. */
static void test_short_ttbr1(void)
{
    uint64_t l1, up;
    Guest *g = short_start(&l1, SCTLR_ON, 1);

    up = table_alloc(g, 16384);
    wr(g, TTBR1(3), up);
    wr(g, l1 + 8, (RAM + 0x100000) | SHORT_RW | 2);
    wr(g, up + 0x802 * 4, (RAM + 0x200000) | SHORT_RW | 2);
    assert_maps(g, 0x200000, RAM + 0x100000);
    assert_maps(g, 0x80200000, RAM + 0x200000);
    wr(g, TCR(3), 1 | 1u << 5);
    wr(g, TLBIALL(3), 0);
    assert_fails(g, 0x80200000);
    assert_fault(g, 3, 0x80200000, FSR_TF | FSR_SHORT, 1);
    guest_stop(g);
}

/* Address translation operations */

static void test_atos_absent(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    map(g, &t, 0x5000, PAGE(7), S1_RW);
    wr64(g, ATS1PR(3), 0x5000);
    g_assert_cmphex(rd64(g, PAR(3)), ==, 0);
    guest_stop(g);
}

static void test_atos(void)
{
    Guest *g = guest_start("-global arm-mmu500.atos=on");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    map(g, &t, 0x5000, PAGE(7), S1_RO);
    wr64(g, ATS1PR(3), 0x5000);
    g_assert_cmphex(rd(g, ATSR(3)), ==, 0);
    g_assert_cmphex(rd64(g, PAR(3)), ==, PAGE(7));
    wr64(g, ATS1UW(3), 0x5000);
    g_assert_cmphex(rd64(g, PAR(3)) & 0xff, ==, 1 | FSR_PF);
    wr64(g, ATS1PR(3), 0x6000);
    g_assert_cmphex(rd64(g, PAR(3)) & 0xff, ==, 1 | FSR_TF);
    /* an operation is not a fault */
    g_assert_cmphex(rd(g, FSR(3)), ==, 0);
    guest_stop(g);
}

/* Performance monitors */

#define PMEVCNTR(n)   PM(4 * (n))
#define PMEVTYPER(n)  PM(0x400 + 4 * (n))
#define PMCGCR(n)     PM(0x800 + 4 * (n))
#define   PMCGCR_E    (1u << 11)
#define   PMCGCR_BY_SID (1u << 8)
#define   PMCGCR_BY_BANK (2u << 8)
#define PMCGSMR(n)    PM(0xa00 + 4 * (n))
#define PMCNTENSET    PM(0xc00)
#define PMINTENSET    PM(0xc40)
#define PMOVSCLR      PM(0xc80)
#define PMCFGR        PM(0xe00)
#define PMCR          PM(0xe04)

static void test_pmu(void)
{
    Guest *g = guest_start("-global arm-mmu500.tbus=2 "
                           "-global arm-mmu500.pci-tbu=1 "
                           "-global arm-mmu500.prefetch-size=0");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    int i;

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    g_assert_cmphex(rd(g, PMCFGR), ==, 0x01001f07);
    g_assert_cmphex(rd(g, PMCGCR(1)), ==, 0x04010000);

    wr(g, PMCGCR(1), PMCGCR_E);
    wr(g, PMEVTYPER(4), 0x10);      /* accesses */
    wr(g, PMEVTYPER(5), 0x12);      /* writes */
    wr(g, PMEVTYPER(6), 0x08);      /* refills */
    wr(g, PMEVTYPER(0), 0x10);      /* of the other TBU */
    wr(g, PMCNTENSET, 0xff);
    wr(g, PMCR, 1);
    for (i = 0; i < 3; i++) {
        assert_maps(g, 0x5000, PAGE(7));
    }
    g_assert_cmpint(rd(g, PMEVCNTR(4)), ==, 6);
    g_assert_cmpint(rd(g, PMEVCNTR(5)), ==, 3);
    g_assert_cmpint(rd(g, PMEVCNTR(6)), ==, 1);
    g_assert_cmpint(rd(g, PMEVCNTR(0)), ==, 0);

    /* filters */
    wr(g, PMCR, 1 | 2);
    g_assert_cmpint(rd(g, PMEVCNTR(4)), ==, 0);
    wr(g, PMCGSMR(1), EX_SID + 1);
    wr(g, PMCGCR(1), PMCGCR_E | PMCGCR_BY_SID);
    assert_maps(g, 0x5000, PAGE(7));
    g_assert_cmpint(rd(g, PMEVCNTR(4)), ==, 0);
    wr(g, PMCGCR(1), PMCGCR_E | PMCGCR_BY_BANK | 3);
    assert_maps(g, 0x5000, PAGE(7));
    g_assert_cmpint(rd(g, PMEVCNTR(4)), ==, 2);

    /* overflow */
    wr(g, PMINTENSET, 1u << 4);
    wr(g, PMEVCNTR(4), 0xffffffff);
    g_assert_false(qtest_get_irq(g->q, IRQ_PMU));
    assert_maps(g, 0x5000, PAGE(7));
    g_assert_cmpint(rd(g, PMEVCNTR(4)), ==, 1);
    g_assert_true(qtest_get_irq(g->q, IRQ_PMU));
    wr(g, PMOVSCLR, 1u << 4);
    g_assert_false(qtest_get_irq(g->q, IRQ_PMU));
    guest_stop(g);
}

/* Each knob moves its own counters. */

static uint64_t misses(const char *props, bool sequential, const char *stat)
{
    g_autofree char *all = g_strdup_printf("-global arm-mmu500.mtlb-entries="
                                           "64 %s", props);
    Guest *g = guest_start(all);
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    uint64_t val;
    int i, n;

    stream_to(g, 0, S2CR_BANK(3));
    for (i = 0; i < 256; i++) {
        map(g, &t, 0x200000 + i * 0x1000, PAGE(i), S1_RW);
    }
    for (n = 0; n < 256; n++) {
        uint32_t unused;

        i = sequential ? n : n * 97 % 256;
        g_assert_cmpint(dma_read(g, 0x200000 + i * 0x1000, &unused), ==,
                        DMA_OK);
    }
    val = get_stat(g, stat);
    guest_stop(g);
    return val;
}

static void test_prefetch(void)
{
    const char *off = "-global arm-mmu500.prefetch-size=0";
    const char *on = "-global arm-mmu500.prefetch-size=64K";

    g_assert_cmpint(misses(off, true, "mtlb-misses"), ==, 256);
    g_assert_cmpint(misses(off, true, "prefetches"), ==, 0);
    g_assert_cmpint(misses(on, true, "mtlb-misses"), <, 32);
    /* a stride that prefetched pages are gone before */
    g_assert_cmpint(misses(on, false, "prefetch-hits"), <, 128);
}

static void test_walk_cache_size(void)
{
    g_assert_cmpint(misses("-global arm-mmu500.prefetch-size=0 "
                           "-global arm-mmu500.walk-cache-entries=0",
                           true, "descriptors"), ==, 3 * 256);
    g_assert_cmpint(misses("-global arm-mmu500.prefetch-size=0", true,
                           "descriptors"), ==, 2 + 256);
}

/* Migration */

static void test_migration(void)
{
    g_autofree char *dir = g_dir_make_tmp("mmu500-XXXXXX", NULL);
    g_autofree char *file = g_strdup_printf("%s/state", dir);
    g_autofree char *uri = g_strdup_printf("file:%s", file);
    g_autofree char *in = g_strdup_printf("-incoming %s", uri);
    Guest *g = guest_start(""), *h;
    Tables t = bank_s1(g, 3, 3, SCTLR_ON | SCTLR_CFCFG);
    uint32_t val;
    int i;

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    for (i = 0; i < 64; i++) {
        wr(g, EX_MEM + i * 4, 0x1000 + i);
        g_assert_cmpint(dma_start(g, i, true, 0x100000 + i * 0x1000, i * 4,
                                  4), ==, DMA_PENDING);
    }
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x100000);
    qtest_qmp_assert_success(g->q, "{ 'execute': 'migrate', 'arguments': "
                             "{ 'uri': %s } }", uri);
    for (;;) {
        QDict *rsp = qtest_qmp(g->q, "{ 'execute': 'query-migrate' }");
        QDict *ret = qdict_get_qdict(rsp, "return");
        const char *status = qdict_get_try_str(ret, "status");
        bool done = g_strcmp0(status, "completed") == 0;

        g_assert_cmpstr(status, !=, "failed");
        qobject_unref(rsp);
        if (done) {
            break;
        }
        g_usleep(10000);
    }

    h = g_new0(Guest, 1);
    h->q = qtest_initf("-machine virt,iommu=mmu500,gic-version=3 "
                       "-cpu cortex-a57 -m 64 -nic none "
                       "-device pcie-exerciser,addr=1.0 %s", in);
    qtest_qmp_eventwait(h->q, "RESUME");
    h->next_table = g->next_table;
    g_assert_cmphex(rd(h, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(h, FAR(3)), ==, 0x100000);
    /* what waits is the device's; the one that FAR names is the head */
    i = 0;
    while (rd(h, FSR(3)) & FSR_SS) {
        uint64_t far = rd64(h, FAR(3));

        g_assert_cmphex(far, >=, 0x100000);
        g_assert_cmphex(far, <, 0x140000);
        map(h, &t, far, PAGE(far / 0x1000 - 0x100 + 100), S1_RW);
        wr(h, FSR(3), FSR_ALL);
        wr(h, RESUME(3), RESUME_RETRY);
        g_assert_cmpint(i++, <, 64);
    }
    g_assert_cmpint(i, ==, 64);
    for (i = 0; i < 64; i++) {
        g_assert_cmpint(dma_status(h, i), ==, DMA_OK);
        g_assert_cmphex(rd(h, PAGE(100 + i)), ==, 0x1000 + i);
    }
    g_assert_cmpint(dma_read(h, 0x5000, &val), ==, DMA_OK);
    guest_stop(h);
    guest_stop(g);
    unlink(file);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mmu500/nested/page", test_nested_page);
    qtest_add_func("/mmu500/nested/faults", test_nested_faults);
    qtest_add_func("/mmu500/nested/table-fault", test_nested_table_fault);
    qtest_add_func("/mmu500/nested/invalidation", test_nested_invalidation);
    qtest_add_func("/mmu500/nested/stage1-off", test_nested_stage1_off);
    qtest_add_func("/mmu500/nested/misconfigured", test_nested_misconfigured);
    qtest_add_func("/mmu500/lpae/stage1", test_lpae_s1);
    qtest_add_func("/mmu500/lpae/stage2", test_lpae_s2);
    qtest_add_func("/mmu500/short/sizes", test_short);
    qtest_add_func("/mmu500/short/permissions", test_short_permissions);
    qtest_add_func("/mmu500/short/afe", test_short_afe);
    qtest_add_func("/mmu500/short/ttbr1", test_short_ttbr1);
    qtest_add_func("/mmu500/atos/absent", test_atos_absent);
    qtest_add_func("/mmu500/atos/present", test_atos);
    qtest_add_func("/mmu500/pmu", test_pmu);
    qtest_add_func("/mmu500/knobs/prefetch", test_prefetch);
    qtest_add_func("/mmu500/knobs/walk-cache", test_walk_cache_size);
    qtest_add_func("/mmu500/migration", test_migration);
    return g_test_run();
}
