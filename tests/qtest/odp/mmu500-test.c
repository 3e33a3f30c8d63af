/*
 * MMU-500: stream mapping, stage 1 and 2, faults, TLB upkeep
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "mmu500.h"

/* Stream mapping */

static void test_clientpd_bypasses(void)
{
    Guest *g = guest_start("");

    wr(g, SMR(0), SMR_VALID | EX_SID);
    wr(g, S2CR(0), S2CR_FAULT);
    assert_maps(g, PAGE(1), PAGE(1));
    guest_stop(g);
}

static void test_unmatched_stream(void)
{
    Guest *g = guest_start("");

    wr(g, CR0, CR0_GCFGFRE | CR0_GCFGFIE);
    assert_maps(g, PAGE(1), PAGE(1));

    wr(g, CR0, CR0_GCFGFRE | CR0_GCFGFIE | CR0_USFCFG);
    assert_fails(g, PAGE(1));
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_USF);
    g_assert_cmphex(rd(g, GFSYNR1), ==, EX_SID);
    g_assert_cmphex(rd64(g, GFAR), ==, PAGE(1));
    g_assert_true(qtest_get_irq(g->q, IRQ_GLOBAL));

    /* a second one only sets MULTI */
    g_assert_cmpint(dma_write(g, PAGE(2), 0), ==, DMA_ERROR);
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_USF | GFSR_MULTI);
    g_assert_cmphex(rd64(g, GFAR), ==, PAGE(1));

    wr(g, GFSR, 0xffffffff);
    g_assert_cmphex(rd(g, GFSR), ==, 0);
    g_assert_false(qtest_get_irq(g->q, IRQ_GLOBAL));

    g_assert_cmpint(dma_write(g, PAGE(2), 0), ==, DMA_ERROR);
    g_assert_true(rd(g, GFSYNR0) & GFSYNR0_WNR);
    guest_stop(g);
}

/* Without GCFGFRE the master sees zeroes, not an error. */
static void test_global_fault_unreported(void)
{
    Guest *g = guest_start("");
    uint32_t val;

    wr(g, CR0, CR0_USFCFG);
    wr(g, PAGE(1), 0x12345678);
    g_assert_cmpint(dma_read(g, PAGE(1), &val), ==, DMA_OK);
    g_assert_cmphex(val, ==, 0);
    g_assert_cmpint(dma_write(g, PAGE(1), 0xdead), ==, DMA_OK);
    g_assert_cmphex(rd(g, PAGE(1)), ==, 0x12345678);
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_USF | GFSR_MULTI);
    g_assert_false(qtest_get_irq(g->q, IRQ_GLOBAL));
    guest_stop(g);
}

static void test_gfsr_restore(void)
{
    Guest *g = guest_start("");

    wr(g, CR0, CR0_GCFGFIE);
    wr(g, GFSRRESTORE, GFSR_SMCF);
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_SMCF);
    g_assert_true(qtest_get_irq(g->q, IRQ_GLOBAL));
    wr(g, FSRRESTORE(1), FSR_TF | FSR_SS);
    g_assert_cmphex(rd(g, FSR(1)), ==, FSR_TF);
    guest_stop(g);
}

/* What two groups make of the exerciser's StreamID, which is 0x0008 */
typedef struct StreamCase {
    const char *name;
    uint32_t smr[2], s2cr[2];
    uint32_t gfsr;              /* 0: it passes */
} StreamCase;

static const StreamCase stream_cases[] = {
    { "exact", { SMR_VALID | 0x0008 }, { S2CR_BYPASS }, 0 },
    { "invalid", { 0x0008 }, { S2CR_BYPASS }, GFSR_USF },
    { "other", { SMR_VALID | 0x0009 }, { S2CR_BYPASS }, GFSR_USF },
    { "other-high-bit", { SMR_VALID | 0x4008 }, { S2CR_BYPASS }, GFSR_USF },
    { "mask", { SMR_VALID | SMR_MASK(0x7ff) | 0x0700 }, { S2CR_BYPASS }, 0 },
    { "mask-too-small", { SMR_VALID | SMR_MASK(0x7f7) | 0x0700 },
      { S2CR_BYPASS }, GFSR_USF },
    { "mask-without-value", { SMR_VALID | SMR_MASK(0x7fff) },
      { S2CR_BYPASS }, 0 },
    { "mask-high-bit", { SMR_VALID | SMR_MASK(0x4000) | 0x0008 },
      { S2CR_BYPASS }, 0 },
    { "fault", { SMR_VALID | 0x0008 }, { S2CR_FAULT }, GFSR_ICF },
    { "no-such-bank", { SMR_VALID | 0x0008 }, { S2CR_BANK(64) }, GFSR_UCBF },
    { "second-group", { SMR_VALID | 0x0009, SMR_VALID | 0x0008 },
      { S2CR_FAULT, S2CR_BYPASS }, 0 },
    { "conflict", { SMR_VALID | 0x0008, SMR_VALID | SMR_MASK(0xff) },
      { S2CR_BYPASS, S2CR_BYPASS }, GFSR_SMCF },
    { "conflict-of-equals", { SMR_VALID | 0x0008, SMR_VALID | 0x0008 },
      { S2CR_BYPASS, S2CR_BYPASS }, GFSR_SMCF },
    { "conflict-with-fault", { SMR_VALID | 0x0008, SMR_VALID | 0x0008 },
      { S2CR_BYPASS, S2CR_FAULT }, GFSR_SMCF },
    { "overlap-elsewhere", { SMR_VALID | SMR_MASK(0x00ff) | 0x0000,
                             SMR_VALID | SMR_MASK(0x00f0) | 0x0001 },
      { S2CR_BYPASS, S2CR_FAULT }, 0 },
    { "overlap-invalid", { SMR_VALID | 0x0008, SMR_MASK(0x7fff) },
      { S2CR_BYPASS, S2CR_FAULT }, 0 },
};

/* One after another, so that what was remembered must be forgotten. */
static void test_stream_match(void)
{
    static const int group[2] = { 0, 127 };
    Guest *g = guest_start("");

    wr(g, CR0, CR0_GCFGFRE | CR0_GCFGFIE | CR0_USFCFG);
    for (int i = 0; i < ARRAY_SIZE(stream_cases); i++) {
        const StreamCase *c = &stream_cases[i];

        g_test_message("%s", c->name);
        for (int n = 0; n < 2; n++) {
            wr(g, S2CR(group[n]), c->s2cr[n]);
            wr(g, SMR(group[n]), c->smr[n]);
        }
        if (c->gfsr) {
            assert_fails(g, PAGE(1));
            g_assert_cmphex(rd(g, GFSYNR1), ==, EX_SID);
        } else {
            assert_maps(g, PAGE(1), PAGE(1));
        }
        g_assert_cmphex(rd(g, GFSR), ==, c->gfsr);
        g_assert_cmpint(qtest_get_irq(g->q, IRQ_GLOBAL), ==, !!c->gfsr);
        wr(g, GFSR, 0xffffffff);
    }
    /* any value and mask */
    wr(g, SMR(127), 0);
    wr(g, S2CR(0), S2CR_BYPASS);
    for (int i = 0; i < 500; i++) {
        uint32_t id = g_test_rand_int() & 0x7fff;
        uint32_t mask = g_test_rand_int() & 0x7fff;
        uint32_t val;

        wr(g, SMR(0), SMR_VALID | SMR_MASK(mask) | id);
        g_assert_cmpint(dma_read(g, PAGE(1), &val), ==,
                        (id ^ EX_SID) & ~mask ? DMA_ERROR : DMA_OK);
        id &= mask;
        wr(g, SMR(0), SMR_VALID | SMR_MASK(mask) | id | (EX_SID & ~mask));
        g_assert_cmpint(dma_read(g, PAGE(1), &val), ==, DMA_OK);
    }
    guest_stop(g);
}

static void test_exids(void)
{
    Guest *g = guest_start("-global arm-mmu500.exids=on");

    stream_to(g, 0, S2CR_BYPASS);
    wr(g, CR0, rd(g, CR0) | CR0_EXIDENABLE);
    /* SMR.VALID is an address bit now; S2CR has the valid bit */
    wr(g, SMR(0), SMR_MASK(0x8000) | EX_SID);
    g_assert_cmphex(rd(g, SMR(0)), ==, 0x80000008);
    assert_fails(g, PAGE(1));
    wr(g, S2CR(0), S2CR_BYPASS | S2CR_EXIDVALID);
    assert_maps(g, PAGE(1), PAGE(1));
    guest_stop(g);
}

static void test_cbar_stage2_fault(void)
{
    Guest *g = guest_start("");

    stream_to(g, 0, S2CR_BANK(2));
    bank_s1(g, 2, 2, SCTLR_ON);
    wr(g, CBAR(2), CBAR_S1_S2FAULT);
    assert_fails(g, PAGE(1));
    g_assert_cmphex(rd(g, GFSR), ==, GFSR_ICF);
    guest_stop(g);
}

static void test_disabled_bank_bypasses(void)
{
    Guest *g = guest_start("");

    stream_to(g, 0, S2CR_BANK(2));
    bank_s1(g, 2, 2, SCTLR_CFRE);
    assert_maps(g, PAGE(1), PAGE(1));
    guest_stop(g);
}

/* Stage 1, AArch64 */

static void test_s1_page(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    map(g, &t, 0x7ffffff000, PAGE(9), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    assert_maps(g, 0x5ff0, PAGE(7) + 0xff0);
    assert_maps(g, 0x7ffffff000, PAGE(9));
    guest_stop(g);
}

/* One transfer over pages that do not lie together */
static void test_s1_across_pages(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    uint32_t i;

    stream_to(g, 0, S2CR_BANK(3));
    for (i = 0; i < 4; i++) {
        map(g, &t, 0x10000 + i * 0x1000, PAGE(40 - 3 * i), S1_RW);
        qtest_memset(g->q, PAGE(40 - 3 * i), 0x10 + i, 0x1000);
    }
    g_assert_cmpint(dma_start(g, 0, false, 0x10800, 0, 0x3000), ==, DMA_OK);
    g_assert_cmphex(qtest_readb(g->q, EX_MEM), ==, 0x10);
    g_assert_cmphex(qtest_readb(g->q, EX_MEM + 0x800), ==, 0x11);
    g_assert_cmphex(qtest_readb(g->q, EX_MEM + 0x17ff), ==, 0x11);
    g_assert_cmphex(qtest_readb(g->q, EX_MEM + 0x1800), ==, 0x12);
    g_assert_cmphex(qtest_readb(g->q, EX_MEM + 0x2fff), ==, 0x13);
    guest_stop(g);
}

static void test_s1_blocks(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    tables_map(g, &t, 0x200000, RAM, S1_RW, 2);
    tables_map(g, &t, 0x40000000, RAM, S1_RW, 1);
    assert_maps(g, 0x200000 + 0x101234, RAM + 0x101234);
    assert_maps(g, 0x40000000 + 0x301000, RAM + 0x301000);
    guest_stop(g);
}

static void test_s1_granule_64k(void)
{
    Guest *g = guest_start("");
    Tables t = tables_new(g, 16, 2, 42);

    stream_to(g, 0, S2CR_BANK(3));
    bank_s1(g, 3, 3, 0);
    wr(g, TCR(3), (64 - 42) | 1u << 14 | TCR_EPD1);
    wr64(g, TTBR0(3), t.root | 3ull << 48);
    wr(g, SCTLR(3), SCTLR_ON);
    map(g, &t, 0x30000, RAM + 0x110000, S1_RW);
    assert_maps(g, 0x34560, RAM + 0x114560);
    tables_map(g, &t, 0x20000000, RAM, S1_RW, 2);
    assert_maps(g, 0x20123400, RAM + 0x123400);
    guest_stop(g);
}

static void test_s1_granule_16k(void)
{
    Guest *g = guest_start("-global arm-mmu500.granule-16k=on");
    Tables t = tables_new(g, 14, 1, 47);

    stream_to(g, 0, S2CR_BANK(3));
    bank_s1(g, 3, 3, 0);
    wr(g, TCR(3), (64 - 47) | 2u << 14 | TCR_EPD1);
    wr64(g, TTBR0(3), t.root | 3ull << 48);
    wr(g, SCTLR(3), SCTLR_ON);
    map(g, &t, 0x8000, RAM + 0x110000, S1_RW);
    assert_maps(g, 0xb120, RAM + 0x113120);
    guest_stop(g);
}

/* The upper range: bit 48 of the bus is the sign of the address. */
static void test_s1_ttbr1(void)
{
    Guest *g = guest_start("");
    Tables t = tables_new(g, 12, 0, 48), t1 = tables_new(g, 12, 0, 48);

    stream_to(g, 0, S2CR_BANK(3));
    bank_s1(g, 3, 3, 0);
    wr(g, TCR(3), 16 | 16u << 16 | 2u << 30);
    wr64(g, TTBR0(3), t.root | 3ull << 48);
    wr64(g, TTBR1(3), t1.root);
    wr(g, SCTLR(3), SCTLR_ON);
    map(g, &t, 0x5000, PAGE(1), S1_RW);
    map(g, &t1, 0xffff000000005000, PAGE(2), S1_RW);
    assert_maps(g, 0x5000, PAGE(1));
    assert_maps(g, 0xffff000000005000, PAGE(2));
    assert_maps(g, 0x1000000005000, PAGE(2));
    /* beyond the bus */
    assert_fails(g, 0x2000000005000);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    guest_stop(g);
}

static void test_s1_big_endian_tables(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON | SCTLR_E);
    uint64_t l2 = table_alloc(g, 4096), l3 = table_alloc(g, 4096);

    stream_to(g, 0, S2CR_BANK(3));
    wr64(g, t.root, bswap64(l2 | PTE_TABLE));
    wr64(g, l2, bswap64(l3 | PTE_TABLE));
    wr64(g, l3 + 8, bswap64(PAGE(4) | S1_RW | PTE_PAGE));
    assert_maps(g, 0x1000, PAGE(4));
    guest_stop(g);
}

/* Syndromes */


static void assert_context_fault(Guest *g, int cb, uint64_t iova,
                                 uint32_t fsr, uint32_t fsynr0)
{
    g_assert_cmphex(rd(g, FSR(cb)), ==, fsr);
    g_assert_cmphex(rd64(g, FAR(cb)), ==, iova);
    g_assert_cmphex(rd(g, FSYNR0(cb)), ==, fsynr0 | FSYNR0_NSATTR);
    g_assert_cmphex(rd(g, CBFRSYNRA(cb)), ==, EX_SID);
    g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));
    wr(g, FSR(cb), FSR_ALL);
    g_assert_false(qtest_get_irq(g->q, IRQ_CONTEXT));
    g_assert_cmphex(rd(g, FSR(cb)) & FSR_ALL, ==, 0);
}

static void test_fault_translation(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);

    /* levels 3, 2, 1, and no table at all */
    assert_fails(g, 0x6008);
    assert_context_fault(g, 3, 0x6008, FSR_TF | FSR_AA64, 3);
    g_assert_cmpint(dma_write(g, 0x6008, 1), ==, DMA_ERROR);
    assert_context_fault(g, 3, 0x6008, FSR_TF | FSR_AA64, 3 | FSYNR0_WNR);
    assert_fails(g, 0x200000);
    assert_context_fault(g, 3, 0x200000, FSR_TF | FSR_AA64, 2);
    assert_fails(g, 0x40000000);
    assert_context_fault(g, 3, 0x40000000, FSR_TF | FSR_AA64, 1);
    assert_fails(g, 0x8000000000);
    assert_context_fault(g, 3, 0x8000000000, FSR_TF | FSR_AA64, 0);

    /* EPD0 */
    wr(g, TCR(3), rd(g, TCR(3)) | TCR_EPD0);
    wr(g, TLBIASID(3), 3);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_TF | FSR_AA64, 0);
    guest_stop(g);
}

static void test_fault_permission(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    uint64_t desc;

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RO);
    assert_read_maps(g, 0x5000, PAGE(7));
    g_assert_cmpint(dma_write(g, 0x5000, 1), ==, DMA_ERROR);
    assert_context_fault(g, 3, 0x5000, FSR_PF | FSR_AA64, 3 | FSYNR0_WNR);

    /* rights that grow are seen although the old ones were cached */
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));

    /* a table takes the right to write away */
    wr(g, TLBIASID(3), 3);
    desc = tables_desc(g, &t, 0x5000, 2);
    wr64(g, desc, rd64(g, desc) | PTE_APTABLE_RO);
    g_assert_cmpint(dma_write(g, 0x5000, 1), ==, DMA_ERROR);
    assert_context_fault(g, 3, 0x5000, FSR_PF | FSR_AA64, 3 | FSYNR0_WNR);
    guest_stop(g);
}

/* PCI functions are unprivileged; S2CR can say otherwise. */
static void test_fault_privilege(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW & ~PTE_UNPRIV);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_PF | FSR_AA64, 3);
    wr(g, S2CR(0), S2CR_BANK(3) | S2CR_PRIV);
    assert_maps(g, 0x5000, PAGE(7));
    assert_fails(g, 0x6000);
    assert_context_fault(g, 3, 0x6000, FSR_TF | FSR_AA64, 3 | FSYNR0_PNU);
    guest_stop(g);
}

static void test_fault_instruction(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3) | S2CR_INSN);
    map(g, &t, 0x5000, PAGE(7), S1_RW | PTE_XN);
    map(g, &t, 0x6000, PAGE(8), S1_RW | PTE_PXN);
    map(g, &t, 0x7000, PAGE(9), S1_RO);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_PF | FSR_AA64, 3 | FSYNR0_IND);
    assert_read_maps(g, 0x6000, PAGE(8));
    /* writes are never instruction fetches */
    g_assert_cmpint(dma_write(g, 0x5000, 1), ==, DMA_OK);
    /* WXN */
    wr(g, SCTLR(3), SCTLR_ON | SCTLR_WXN);
    wr(g, TLBIASID(3), 3);
    assert_fails(g, 0x6000);
    assert_context_fault(g, 3, 0x6000, FSR_PF | FSR_AA64, 3 | FSYNR0_IND);
    assert_read_maps(g, 0x7000, PAGE(9));
    guest_stop(g);
}

static void test_fault_access_flag(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RO & ~PTE_AF);
    /* before permission */
    g_assert_cmpint(dma_write(g, 0x5000, 1), ==, DMA_ERROR);
    assert_context_fault(g, 3, 0x5000, FSR_AFF | FSR_AA64, 3 | FSYNR0_WNR);
    wr(g, SCTLR(3), SCTLR_ON | SCTLR_AFFD);
    assert_read_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

static void test_fault_address_size(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    uint64_t desc;

    stream_to(g, 0, S2CR_BANK(3));
    wr(g, TCR2(3), (rd(g, TCR2(3)) & ~7u) | 2);    /* 40 bits */
    map(g, &t, 0x5000, 1ull << 40, S1_RW);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_ASF | FSR_AA64, 3);
    /* a table beyond */
    desc = tables_desc(g, &t, 0x5000, 2);
    wr64(g, desc, 1ull << 41 | PTE_TABLE);
    wr(g, TLBIASID(3), 3);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_ASF | FSR_AA64, 2);
    /* the root */
    wr64(g, TTBR0(3), 1ull << 42 | 3ull << 48);
    wr(g, TLBIASID(3), 3);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_ASF | FSR_AA64, 0);
    guest_stop(g);
}

/* A table where nothing is, and one in the SMMU's own registers */
static void test_fault_external(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    uint64_t desc = tables_desc(g, &t, 0x5000, 2);

    stream_to(g, 0, S2CR_BANK(3));
    wr64(g, desc, 0x8000000000 | PTE_TABLE);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_EF | FSR_AA64, 3 | FSYNR0_PTWF);
    wr64(g, desc, SMMU_BASE | PTE_TABLE);
    wr(g, TLBIASID(3), 3);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 3, 0x5000, FSR_EF | FSR_AA64, 3 | FSYNR0_PTWF);
    guest_stop(g);
}

static void test_fault_multi(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON | SCTLR_HUPCF);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_fails(g, 0x6000);
    assert_fails(g, 0x200000);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64 | FSR_MULTI);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x6000);
    g_assert_cmphex(rd(g, FSYNR0(3)) & FSYNR0_PLVL, ==, 3);
    /* HUPCF: others pass */
    assert_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

/* Without HUPCF nothing passes until the fault is cleared. */
static void test_hupcf_terminate(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    assert_fails(g, 0x6000);
    assert_fails(g, 0x5000);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x6000);
    wr(g, FSR(3), FSR_ALL);
    assert_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

static void test_cfre_off_reads_zero(void)
{
    Guest *g = guest_start("");
    uint32_t val;

    bank_s1(g, 3, 3, SCTLR_M | SCTLR_CFIE);
    stream_to(g, 0, S2CR_BANK(3));
    wr(g, EX_MEM, 0xffffffff);
    g_assert_cmpint(dma_read(g, 0x6000, &val), ==, DMA_OK);
    g_assert_cmphex(val, ==, 0);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    guest_stop(g);
}

static void test_cfie_off_is_silent(void)
{
    Guest *g = guest_start("");

    bank_s1(g, 3, 3, SCTLR_M | SCTLR_CFRE);
    stream_to(g, 0, S2CR_BANK(3));
    assert_fails(g, 0x6000);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    g_assert_false(qtest_get_irq(g->q, IRQ_CONTEXT));
    wr(g, SCTLR(3), SCTLR_ON);
    g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));
    guest_stop(g);
}

/* TLB upkeep: an entry stays until an operation matches it */

typedef struct TLBCase {
    const char *name;
    uint64_t reg;
    uint64_t val;
    bool is64;
    bool hits;
} TLBCase;

#define VA_OP(va, asid) ((va) >> 12 | (uint64_t)(asid) << 48)

static const TLBCase tlb_cases[] = {
    { "va", TLBIVA(3), VA_OP(0x5000, 3), true, true },
    { "va-other-page", TLBIVA(3), VA_OP(0x6000, 3), true, false },
    { "va-other-asid", TLBIVA(3), VA_OP(0x5000, 4), true, false },
    { "vaa", TLBIVAA(3), VA_OP(0x5000, 9), true, true },
    { "val", TLBIVAL(3), VA_OP(0x5000, 3), true, true },
    { "val-other-page", TLBIVAL(3), VA_OP(0x4000, 3), true, false },
    { "vaal", TLBIVAAL(3), VA_OP(0x5000, 0), true, true },
    { "asid", TLBIASID(3), 3, false, true },
    { "asid-other", TLBIASID(3), 5, false, false },
    { "all", TLBIALL(3), 0, false, true },
    { "vmid", TLBIVMID, 0, false, true },
    { "vmid-other", TLBIVMID, 1, false, false },
    { "vmids1", TLBIVMIDS1, 0, false, true },
    { "allnsnh", TLBIALLNSNH, 0, false, true },
    /* another bank of the same VMID */
    { "va-other-bank", TLBIVA(9), VA_OP(0x5000, 3), true, true },
};

static void test_tlb_op(gconstpointer data)
{
    const TLBCase *c = data;
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    wr(g, CBA2R(9), CBA2R_VA64);
    wr(g, CBAR(9), CBAR_S1);
    wr(g, TCR2(9), TCR2_AS);
    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    map(g, &t, 0x5000, PAGE(8), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    if (c->is64) {
        wr64(g, c->reg, c->val);
    } else {
        wr(g, c->reg, c->val);
    }
    assert_maps(g, 0x5000, c->hits ? PAGE(8) : PAGE(7));
    guest_stop(g);
}

/* TLBIVA in two halves, as a 32-bit bus writes it */
static void test_tlb_op_in_halves(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 0x1234, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    map(g, &t, 0x5000, PAGE(8), S1_RW);
    wr(g, TLBIVA(3) + 4, 0x12340000);
    assert_maps(g, 0x5000, PAGE(7));
    wr(g, TLBIVA(3), 5);
    assert_maps(g, 0x5000, PAGE(8));
    guest_stop(g);
}

/* Global entries: an operation by ASID leaves them */
static void test_tlb_global(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW & ~PTE_NG);
    assert_maps(g, 0x5000, PAGE(7));
    map(g, &t, 0x5000, PAGE(8), S1_RW & ~PTE_NG);
    wr(g, TLBIASID(3), 3);
    assert_maps(g, 0x5000, PAGE(7));
    wr64(g, TLBIVA(3), VA_OP(0x5000, 77));
    assert_maps(g, 0x5000, PAGE(8));
    guest_stop(g);
}

/* Leaf operations keep pointers to tables; the others take them along. */
static void test_tlb_walk_cache(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    uint64_t l3 = table_alloc(g, 4096);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    /* another last-level table */
    wr64(g, l3 + 5 * 8, PAGE(8) | S1_RW | PTE_PAGE);
    wr64(g, tables_desc(g, &t, 0x5000, 2), l3 | PTE_TABLE);
    wr64(g, TLBIVAL(3), VA_OP(0x5000, 3));
    assert_maps(g, 0x5000, PAGE(7));
    wr64(g, TLBIVA(3), VA_OP(0x5000, 3));
    assert_maps(g, 0x5000, PAGE(8));
    g_assert_cmpint(get_stat(g, "walk-cache-hits"), >, 0);
    guest_stop(g);
}

/* An operation by address finds blocks, too. */
static void test_tlb_block(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    tables_map(g, &t, 0x200000, RAM, S1_RW, 2);
    assert_maps(g, 0x200000 + 0x101000, RAM + 0x101000);
    tables_map(g, &t, 0x200000, RAM + 0x200000, S1_RW, 2);
    assert_maps(g, 0x200000 + 0x101000, RAM + 0x101000);
    wr64(g, TLBIVAL(3), VA_OP(0x3ff000, 3));
    assert_maps(g, 0x200000 + 0x101000, RAM + 0x301000);
    guest_stop(g);
}

/* More pages than any TLB has entries, twice */
static void test_tlb_capacity(void)
{
    Guest *g = guest_start("-global arm-mmu500.mtlb-entries=64 "
                           "-global arm-mmu500.utlb-entries=4 "
                           "-global arm-mmu500.walk-cache-entries=8");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);
    int i, n;

    stream_to(g, 0, S2CR_BANK(3));
    for (i = 0; i < 300; i++) {
        map(g, &t, 0x100000 + i * 0x1000, PAGE(i * 7 % 300), S1_RW);
    }
    for (n = 0; n < 2; n++) {
        for (i = 0; i < 300; i++) {
            assert_maps(g, 0x100000 + i * 0x1000, PAGE(i * 7 % 300));
        }
    }
    guest_stop(g);
}

static void test_tlb_none(void)
{
    Guest *g = guest_start("-global arm-mmu500.mtlb-entries=0 "
                           "-global arm-mmu500.utlb-entries=0 "
                           "-global arm-mmu500.walk-cache-entries=0 "
                           "-global arm-mmu500.ipa-cache-entries=0");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    map(g, &t, 0x5000, PAGE(8), S1_RW);
    assert_maps(g, 0x5000, PAGE(8));
    g_assert_cmpint(get_stat(g, "utlb-hits"), ==, 0);
    g_assert_cmpint(get_stat(g, "mtlb-hits"), ==, 0);
    guest_stop(g);
}

/* ASIDs keep two banks of one VMID apart. */
static void test_asids(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s1(g, 3, 3, SCTLR_ON), u = bank_s1(g, 4, 4, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    map(g, &u, 0x5000, PAGE(8), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    wr(g, S2CR(0), S2CR_BANK(4));
    assert_maps(g, 0x5000, PAGE(8));
    wr(g, S2CR(0), S2CR_BANK(3));
    assert_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

/* Stage 2 */

static void test_s2_page(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s2(g, 1, 2, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(1));
    map(g, &t, 0x5000, PAGE(7), S2_RW);
    /* the second of two concatenated tables */
    map(g, &t, 0x8000005000, PAGE(8), S2_RW);
    assert_maps(g, 0x5000, PAGE(7));
    assert_maps(g, 0x8000005000, PAGE(8));

    map(g, &t, 0x5000, PAGE(9), S2_RW);
    assert_maps(g, 0x5000, PAGE(7));
    wr64(g, TLBIIPAS2L(1), 0x4);
    assert_maps(g, 0x5000, PAGE(7));
    wr64(g, TLBIIPAS2L(1), 0x5);
    assert_maps(g, 0x5000, PAGE(9));
    map(g, &t, 0x5000, PAGE(7), S2_RW);
    wr(g, TLBIVMID, 2);
    assert_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

static void test_s2_faults(void)
{
    Guest *g = guest_start("");
    Tables t = bank_s2(g, 1, 2, SCTLR_ON);

    stream_to(g, 0, S2CR_BANK(1));
    map(g, &t, 0x5000, PAGE(7), S2_RO);
    map(g, &t, 0x7000, PAGE(7), PTE_AF | PTE_S2W);
    map(g, &t, 0x8000, PAGE(7), S2_RW & ~PTE_AF);
    assert_fails(g, 0x6000);
    g_assert_cmphex(rd64(g, IPAFAR(1)), ==, 0x6000);
    assert_context_fault(g, 1, 0x6000, FSR_TF | FSR_AA64, 3);
    g_assert_cmpint(dma_write(g, 0x5000, 1), ==, DMA_ERROR);
    assert_context_fault(g, 1, 0x5000, FSR_PF | FSR_AA64, 3 | FSYNR0_WNR);
    assert_fails(g, 0x7000);
    assert_context_fault(g, 1, 0x7000, FSR_PF | FSR_AA64, 3);
    g_assert_cmpint(dma_write(g, 0x7000, 1), ==, DMA_OK);
    assert_fails(g, 0x8000);
    assert_context_fault(g, 1, 0x8000, FSR_AFF | FSR_AA64, 3);
    assert_fails(g, 1ull << 40);
    assert_context_fault(g, 1, 1ull << 40, FSR_TF | FSR_AA64, 0);
    /* SL0 = 3 is reserved; nothing but a fault comes of it */
    wr(g, TCR(1), rd(g, TCR(1)) | 3u << 6);
    wr(g, TLBIVMID, 2);
    assert_fails(g, 0x5000);
    assert_context_fault(g, 1, 0x5000, FSR_TF | FSR_AA64, 0);
    guest_stop(g);
}

/* Banks that can do stage 2 only */
static void test_s2_only_banks(void)
{
    Guest *g = guest_start("-global arm-mmu500.s2-context-banks=2");

    g_assert_cmphex(extract32(rd(g, IDR(1)), 16, 8), ==, 2);
    wr(g, CBAR(1), CBAR_S1);
    g_assert_cmphex(rd(g, CBAR(1)), ==, CBAR_S2);
    wr(g, CBAR(2), CBAR_S1);
    g_assert_cmphex(rd(g, CBAR(2)), ==, CBAR_S1);
    guest_stop(g);
}

int main(int argc, char **argv)
{
    size_t i;

    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mmu500/regs/restore", test_gfsr_restore);
    qtest_add_func("/mmu500/stream/clientpd", test_clientpd_bypasses);
    qtest_add_func("/mmu500/stream/unmatched", test_unmatched_stream);
    qtest_add_func("/mmu500/stream/unreported", test_global_fault_unreported);
    qtest_add_func("/mmu500/stream/match", test_stream_match);
    qtest_add_func("/mmu500/stream/exids", test_exids);
    qtest_add_func("/mmu500/bank/stage2-fault", test_cbar_stage2_fault);
    qtest_add_func("/mmu500/bank/disabled", test_disabled_bank_bypasses);
    qtest_add_func("/mmu500/s1/page", test_s1_page);
    qtest_add_func("/mmu500/s1/across-pages", test_s1_across_pages);
    qtest_add_func("/mmu500/s1/blocks", test_s1_blocks);
    qtest_add_func("/mmu500/s1/64k", test_s1_granule_64k);
    qtest_add_func("/mmu500/s1/16k", test_s1_granule_16k);
    qtest_add_func("/mmu500/s1/ttbr1", test_s1_ttbr1);
    qtest_add_func("/mmu500/s1/big-endian", test_s1_big_endian_tables);
    qtest_add_func("/mmu500/fault/translation", test_fault_translation);
    qtest_add_func("/mmu500/fault/permission", test_fault_permission);
    qtest_add_func("/mmu500/fault/privilege", test_fault_privilege);
    qtest_add_func("/mmu500/fault/instruction", test_fault_instruction);
    qtest_add_func("/mmu500/fault/access-flag", test_fault_access_flag);
    qtest_add_func("/mmu500/fault/address-size", test_fault_address_size);
    qtest_add_func("/mmu500/fault/external", test_fault_external);
    qtest_add_func("/mmu500/fault/34-multi", test_fault_multi);
    qtest_add_func("/mmu500/fault/hupcf", test_hupcf_terminate);
    qtest_add_func("/mmu500/fault/cfre-off", test_cfre_off_reads_zero);
    qtest_add_func("/mmu500/fault/cfie-off", test_cfie_off_is_silent);
    for (i = 0; i < ARRAY_SIZE(tlb_cases); i++) {
        g_autofree char *path = g_strdup_printf("/mmu500/tlb/%s",
                                                tlb_cases[i].name);

        qtest_add_data_func(path, &tlb_cases[i], test_tlb_op);
    }
    qtest_add_func("/mmu500/tlb/halves", test_tlb_op_in_halves);
    qtest_add_func("/mmu500/tlb/global", test_tlb_global);
    qtest_add_func("/mmu500/tlb/walk-cache", test_tlb_walk_cache);
    qtest_add_func("/mmu500/tlb/block", test_tlb_block);
    qtest_add_func("/mmu500/tlb/capacity", test_tlb_capacity);
    qtest_add_func("/mmu500/tlb/none", test_tlb_none);
    qtest_add_func("/mmu500/tlb/asids", test_asids);
    qtest_add_func("/mmu500/s2/page", test_s2_page);
    qtest_add_func("/mmu500/s2/faults", test_s2_faults);
    qtest_add_func("/mmu500/s2/only-banks", test_s2_only_banks);
    return g_test_run();
}
