/*
 * MMU-500 qtests: registers, a guest with a PCIe exerciser behind the
 * SMMU, and builders for page tables and context banks
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_ODP_MMU500_H
#define TESTS_QTEST_ODP_MMU500_H

#include "../libqtest.h"
#include "hw/registerfields.h"
#include "qemu/bswap.h"

/* arm-mmu500 in the virt machine, with 4K pages and 64 banks */
#ifndef SMMU_BASE
#define SMMU_BASE   0x0b000000ull
#define SMMU_BANKS  64
#define RAM         0x40000000ull
#endif
#define GR0(ofs)    (SMMU_BASE + (ofs))
#define GR1(ofs)    (SMMU_BASE + 0x1000 + (ofs))
#define PM(ofs)     (SMMU_BASE + 0x3000 + (ofs))
#define CB(n, ofs)  (SMMU_BASE + (SMMU_BANKS + (n)) * 0x1000ull + (ofs))

#define CR0            GR0(0x000)
#define   CR0_CLIENTPD (1u << 0)
#define   CR0_GFRE     (1u << 1)
#define   CR0_GFIE     (1u << 2)
#define   CR0_EXIDENABLE (1u << 3)
#define   CR0_GCFGFRE  (1u << 4)
#define   CR0_GCFGFIE  (1u << 5)
#define   CR0_STALLD   (1u << 8)
#define   CR0_GSE      (1u << 9)
#define   CR0_USFCFG   (1u << 10)
#define   CR0_SMCFCFG  (1u << 21)
#define ACR            GR0(0x010)
#define   ACR_CACHE_LOCK (1u << 26)
#define IDR(n)         GR0(0x020 + 4 * (n))
#define GFAR           GR0(0x040)
#define GFSR           GR0(0x048)
#define   GFSR_ICF     (1u << 0)
#define   GFSR_USF     (1u << 1)
#define   GFSR_SMCF    (1u << 2)
#define   GFSR_UCBF    (1u << 3)
#define   GFSR_MULTI   (1u << 31)
#define GFSRRESTORE    GR0(0x04c)
#define GFSYNR0        GR0(0x050)
#define   GFSYNR0_NESTED (1u << 0)
#define   GFSYNR0_WNR  (1u << 1)
#define GFSYNR1        GR0(0x054)
#define TLBIVMID       GR0(0x064)
#define TLBIALLNSNH    GR0(0x068)
#define TLBGSYNC       GR0(0x070)
#define TLBGSTATUS     GR0(0x074)
#define TLBIVMIDS1     GR0(0x0c8)
#define SMR(n)         GR0(0x800 + 4 * (n))
#define   SMR_VALID    (1u << 31)
#define   SMR_MASK(m)  ((uint32_t)(m) << 16)
#define S2CR(n)        GR0(0xc00 + 4 * (n))
#define   S2CR_BANK(n) (n)
#define   S2CR_EXIDVALID (1u << 10)
#define   S2CR_TRANS   (0u << 16)
#define   S2CR_BYPASS  (1u << 16)
#define   S2CR_FAULT   (2u << 16)
#define   S2CR_UNPRIV  (2u << 24)
#define   S2CR_PRIV    (3u << 24)
#define   S2CR_INSN    (3u << 26)
#define PIDR0          GR0(0xfe0)
#define CIDR0          GR0(0xff0)

#define CBAR(n)        GR1(0x000 + 4 * (n))
#define   CBAR_S2      (0u << 16)
#define   CBAR_S1      (1u << 16)
#define   CBAR_S1_S2FAULT (2u << 16)
#define   CBAR_NESTED(s2) (3u << 16 | (s2) << 8)
#define CBFRSYNRA(n)   GR1(0x400 + 4 * (n))
#define CBA2R(n)       GR1(0x800 + 4 * (n))
#define   CBA2R_VA64   1

#define SCTLR(n)       CB(n, 0x000)
#define   SCTLR_M      (1u << 0)
#define   SCTLR_AFE    (1u << 2)
#define   SCTLR_AFFD   (1u << 3)
#define   SCTLR_E      (1u << 4)
#define   SCTLR_CFRE   (1u << 5)
#define   SCTLR_CFIE   (1u << 6)
#define   SCTLR_CFCFG  (1u << 7)
#define   SCTLR_HUPCF  (1u << 8)
#define   SCTLR_WXN    (1u << 9)
#define   SCTLR_ON     (SCTLR_M | SCTLR_CFRE | SCTLR_CFIE)
#define ACTLR(n)       CB(n, 0x004)
#define RESUME(n)      CB(n, 0x008)
#define   RESUME_RETRY 0
#define   RESUME_TERMINATE 1
#define TCR2(n)        CB(n, 0x010)
#define   TCR2_SEP_UPSTREAM (7u << 15)
#define   TCR2_AS      (1u << 4)
#define TTBR0(n)       CB(n, 0x020)
#define TTBR1(n)       CB(n, 0x028)
#define TCR(n)         CB(n, 0x030)
#define   TCR_EPD0     (1u << 7)
#define   TCR_EPD1     (1u << 23)
#define   TCR_EAE      (1u << 31)
#define CONTEXTIDR(n)  CB(n, 0x034)
#define PAR(n)         CB(n, 0x050)
#define FSR(n)         CB(n, 0x058)
#define   FSR_TF       (1u << 1)
#define   FSR_AFF      (1u << 2)
#define   FSR_PF       (1u << 3)
#define   FSR_EF       (1u << 4)
#define   FSR_ASF      (1u << 7)
#define   FSR_FORMAT(f) ((f) << 9)
#define   FSR_AA64     FSR_FORMAT(2u)
#define   FSR_LPAE     FSR_FORMAT(1u)
#define   FSR_SHORT    FSR_FORMAT(0u)
#define   FSR_SS       (1u << 30)
#define   FSR_MULTI    (1u << 31)
#define   FSR_ALL      0x800001feu
#define FSRRESTORE(n)  CB(n, 0x05c)
#define FAR(n)         CB(n, 0x060)
#define FSYNR0(n)      CB(n, 0x068)
#define   FSYNR0_PLVL  3u
#define   FSYNR0_NESTED (1u << 2)
#define   FSYNR0_S1PTWF (1u << 3)
#define   FSYNR0_WNR   (1u << 4)
#define   FSYNR0_PNU   (1u << 5)
#define   FSYNR0_IND   (1u << 6)
#define   FSYNR0_NSATTR (1u << 8)
#define   FSYNR0_PTWF  (1u << 10)
#define   FSYNR0_S1CB(n) ((uint32_t)(n) << 16)
#define IPAFAR(n)      CB(n, 0x070)
#define TLBIVA(n)      CB(n, 0x600)
#define TLBIVAA(n)     CB(n, 0x608)
#define TLBIASID(n)    CB(n, 0x610)
#define TLBIALL(n)     CB(n, 0x618)
#define TLBIVAL(n)     CB(n, 0x620)
#define TLBIVAAL(n)    CB(n, 0x628)
#define TLBIIPAS2(n)   CB(n, 0x630)
#define TLBIIPAS2L(n)  CB(n, 0x638)
#define TLBSYNC(n)     CB(n, 0x7f0)
#define TLBSTATUS(n)   CB(n, 0x7f4)
#define ATS1PR(n)      CB(n, 0x800)
#define ATS1UW(n)      CB(n, 0x818)
#define ATSR(n)        CB(n, 0x8f0)

/* sysbus interrupt outputs in the virt machine */
enum { IRQ_GLOBAL, IRQ_PMU, IRQ_CONTEXT };

/* The PCIe exerciser (docs/specs/pcie-exerciser.md), function 00:01.0 */
#define EX_SID      0x08
#define ECAM        0x4010000000ull
#define EX_CFG(ofs) (ECAM + (EX_SID << 12) + (ofs))
#define EX_REGS     0x10000000ull
#define EX_MEM      0x10100000ull
#define EX_CH(ch, ofs) (EX_REGS + 0x1000 + (ch) * 0x20 + (ofs))
enum { CH_CTL = 0x0, CH_OFFSET = 0x4, CH_ADDR_LO = 0x8, CH_ADDR_HI = 0xc,
       CH_LEN = 0x10, CH_STATUS = 0x14, CH_WAITS = 0x1c };
#define CH_TRIG     1u
#define CH_WRITE    (1u << 4)
#define CH_CANCEL   (1u << 31)
#define EX_XCTL     (EX_REGS + 0x84)
#define XCTL_NOSTALL (1u << 1)

/* What became of a DMA. */
enum { DMA_OK = 0, DMA_ERROR = 2, DMA_PENDING = 100 };

/* Guest memory: data pages below, tables from TABLES on. */
#define PAGE(n)     (RAM + 0x100000 + (n) * 0x1000ull)
#define TABLES      (RAM + 0x800000)

typedef struct Guest {
    QTestState *q;
    uint64_t next_table;
} Guest;

static inline uint32_t rd(Guest *g, uint64_t addr)
{
    return qtest_readl(g->q, addr);
}

static inline void wr(Guest *g, uint64_t addr, uint32_t val)
{
    qtest_writel(g->q, addr, val);
}

static inline uint64_t rd64(Guest *g, uint64_t addr)
{
    return qtest_readq(g->q, addr);
}

static inline void wr64(Guest *g, uint64_t addr, uint64_t val)
{
    qtest_writeq(g->q, addr, val);
}

/* The exerciser, as firmware would set it up */
static inline void guest_setup_pci(Guest *g)
{
    g_assert_cmphex(rd(g, EX_CFG(0)), ==, 0xed0113b5);
    wr(g, EX_CFG(0x10), EX_REGS);
    wr(g, EX_CFG(0x14), EX_MEM);
    qtest_writew(g->q, EX_CFG(0x04), 0x6);  /* memory, bus master */
}

static inline Guest *guest_start_args(const char *props, const char *args)
{
    Guest *g = g_new0(Guest, 1);

    g->q = qtest_initf("-machine virt,iommu=mmu500,gic-version=3 "
                       "-cpu cortex-a57 -m 64 -nic none %s %s "
                       "-device pcie-exerciser,addr=1.0", props, args);
    g->next_table = TABLES;
    qtest_irq_intercept_out_named(g->q, "/machine/mmu500", "sysbus-irq");
    guest_setup_pci(g);
    return g;
}

static inline Guest *guest_start(const char *props)
{
    return guest_start_args(props, "");
}

static inline void guest_stop(Guest *g)
{
    qtest_quit(g->q);
    g_free(g);
}

/* DMA on a channel; DMA_PENDING: it is suspended */
static inline int dma_status(Guest *g, int ch)
{
    if (rd(g, EX_CH(ch, CH_CTL)) & CH_TRIG) {
        return DMA_PENDING;
    }
    return rd(g, EX_CH(ch, CH_STATUS)) & 3;
}

static inline int dma_start(Guest *g, int ch, bool write, uint64_t iova,
                            uint32_t ofs, uint32_t len)
{
    wr(g, EX_CH(ch, CH_STATUS), 4);
    wr(g, EX_CH(ch, CH_OFFSET), ofs);
    wr(g, EX_CH(ch, CH_ADDR_LO), iova);
    wr(g, EX_CH(ch, CH_ADDR_HI), iova >> 32);
    wr(g, EX_CH(ch, CH_LEN), len);
    wr(g, EX_CH(ch, CH_CTL), CH_TRIG | (write ? CH_WRITE : 0));
    return dma_status(g, ch);
}

/* Moves one word; what was read is in *val. */
static inline int dma_read(Guest *g, uint64_t iova, uint32_t *val)
{
    int ret = dma_start(g, 0, false, iova, 0, 4);

    *val = rd(g, EX_MEM);
    return ret;
}

static inline int dma_write(Guest *g, uint64_t iova, uint32_t val)
{
    wr(g, EX_MEM, val);
    return dma_start(g, 0, true, iova, 0, 4);
}

/* The page at @iova is the one at @pa. */
static inline void assert_maps(Guest *g, uint64_t iova, uint64_t pa)
{
    uint32_t token = g_test_rand_int(), val;

    wr(g, pa, token);
    g_assert_cmpint(dma_read(g, iova, &val), ==, DMA_OK);
    g_assert_cmphex(val, ==, token);
    token = ~token;
    g_assert_cmpint(dma_write(g, iova, token), ==, DMA_OK);
    g_assert_cmphex(rd(g, pa), ==, token);
}

static inline void assert_read_maps(Guest *g, uint64_t iova, uint64_t pa)
{
    uint32_t token = g_test_rand_int(), val;

    wr(g, pa, token);
    g_assert_cmpint(dma_read(g, iova, &val), ==, DMA_OK);
    g_assert_cmphex(val, ==, token);
}

static inline void assert_fails(Guest *g, uint64_t iova)
{
    uint32_t val;

    g_assert_cmpint(dma_read(g, iova, &val), ==, DMA_ERROR);
}

static inline uint64_t get_stat(Guest *g, const char *name)
{
    QDict *rsp = qtest_qmp(g->q, "{ 'execute': 'qom-get', 'arguments': "
                           "{ 'path': '/machine/mmu500', "
                           "'property': 'stats' } }");
    uint64_t val = qdict_get_int(qdict_get_qdict(rsp, "return"), name);

    qobject_unref(rsp);
    return val;
}

/* Page tables: long descriptors, in any number of levels */

#define PTE_VALID   1ull
#define PTE_TABLE   3ull
#define PTE_PAGE    3ull
#define PTE_BLOCK   1ull
#define PTE_AF      (1ull << 10)
#define PTE_NG      (1ull << 11)
#define PTE_RO      (1ull << 7)
#define PTE_UNPRIV  (1ull << 6)
#define PTE_XN      (1ull << 54)
#define PTE_PXN     (1ull << 53)
#define PTE_S2R     (1ull << 6)
#define PTE_S2W     (1ull << 7)
#define PTE_APTABLE_RO     (1ull << 62)
#define PTE_APTABLE_NOUNPRIV (1ull << 61)
#define S1_RW       (PTE_AF | PTE_UNPRIV | PTE_NG)
#define S1_RO       (S1_RW | PTE_RO)
#define S2_RW       (PTE_AF | PTE_S2R | PTE_S2W)
#define S2_RO       (PTE_AF | PTE_S2R)

static inline uint64_t table_alloc(Guest *g, uint64_t size)
{
    uint64_t t = ROUND_UP(g->next_table, size);

    qtest_memset(g->q, t, 0, size);
    g->next_table = t + size;
    return t;
}

typedef struct Tables {
    uint64_t root;
    int granule;        /* log2 */
    int start;          /* level of root */
    int inputsize;
} Tables;

static inline Tables tables_new(Guest *g, int granule, int start,
                                int inputsize)
{
    int shift = granule + (3 - start) * (granule - 3);
    uint64_t size = 8ull << (inputsize - shift);

    return (Tables) {
        .root = table_alloc(g, MAX(size, 1ull << granule)),
        .granule = granule, .start = start, .inputsize = inputsize,
    };
}

/* Address of the descriptor for @va at @level; makes the tables above it. */
static inline uint64_t tables_desc(Guest *g, const Tables *t, uint64_t va,
                                   int level)
{
    uint64_t table = t->root;
    int l;

    va &= (1ull << t->inputsize) - 1;
    for (l = t->start;; l++) {
        int shift = t->granule + (3 - l) * (t->granule - 3);
        uint64_t mask = l == t->start ? ~0ull : (1ull << (t->granule - 3)) - 1;
        uint64_t addr = table + ((va >> shift) & mask) * 8;
        uint64_t desc;

        if (l == level) {
            return addr;
        }
        desc = qtest_readq(g->q, addr);
        if (!(desc & 1)) {
            desc = table_alloc(g, 1ull << t->granule) | PTE_TABLE;
            qtest_writeq(g->q, addr, desc);
        }
        table = desc & 0xffffffffffffull & ~((1ull << t->granule) - 1);
    }
}

static inline void tables_map(Guest *g, const Tables *t, uint64_t va,
                              uint64_t pa, uint64_t attrs, int level)
{
    qtest_writeq(g->q, tables_desc(g, t, va, level),
                 pa | attrs | (level == 3 ? PTE_PAGE : PTE_BLOCK));
}

static inline void map(Guest *g, const Tables *t, uint64_t va, uint64_t pa,
                       uint64_t attrs)
{
    tables_map(g, t, va, pa, attrs, 3);
}

static inline void unmap(Guest *g, const Tables *t, uint64_t va)
{
    qtest_writeq(g->q, tables_desc(g, t, va, 3), 0);
}

/* Context banks */

/* Stage 1, AArch64, 4K, 39 bits, TTBR0 only; ASID as given */
static inline Tables bank_s1(Guest *g, int cb, int asid, uint32_t sctlr)
{
    Tables t = tables_new(g, 12, 1, 39);

    wr(g, CBA2R(cb), CBA2R_VA64);
    wr(g, CBAR(cb), CBAR_S1);
    wr(g, TCR2(cb), TCR2_SEP_UPSTREAM | TCR2_AS | 5);
    wr(g, TCR(cb), (64 - 39) | TCR_EPD1);
    wr64(g, TTBR0(cb), t.root | (uint64_t)asid << 48);
    wr(g, SCTLR(cb), sctlr);
    return t;
}

/* Stage 2, AArch64, 4K, 40 bits from level 1 (two tables), VMID as given */
static inline Tables bank_s2(Guest *g, int cb, int vmid, uint32_t sctlr)
{
    Tables t = tables_new(g, 12, 1, 40);

    wr(g, CBA2R(cb), CBA2R_VA64);
    wr(g, CBAR(cb), CBAR_S2 | vmid);
    wr(g, TCR(cb), 1u << 31 | 5u << 16 | 1u << 6 | (64 - 40));
    wr64(g, TTBR0(cb), t.root);
    wr(g, SCTLR(cb), sctlr);
    return t;
}

/* The exerciser's stream to a bank, faults on, other streams fault */
static inline void stream_to(Guest *g, int group, uint32_t s2cr)
{
    wr(g, S2CR(group), s2cr);
    wr(g, SMR(group), SMR_VALID | EX_SID);
    wr(g, CR0, CR0_GFRE | CR0_GFIE | CR0_GCFGFRE | CR0_GCFGFIE | CR0_USFCFG);
}

#endif
