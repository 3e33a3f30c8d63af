/*
 * intel-iommu: page requests
 *
 * What the property announces, page requests and responses with PASIDs, the
 * wait descriptor's page request drain, and faults of translation requests. The
 * PCIe exerciser is the endpoint. Section numbers: VT-d specification 4.1.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "libqtest.h"
#include "hw/i386/intel_iommu_internal.h"

#define VTD "-device intel-iommu,x-scalable-mode=on,x-flts=on," \
            "x-pasid-mode=on,device-iotlb=on,aw-bits=48,intremap=on"

enum {
    ECAM = 0xb0000000, BAR0 = 0xc0000000, BAR1 = 0xc0100000, DEVFN = 4 << 3,
    ROOT = 0x100000, CONTEXT = 0x101000, PASID_DIR = 0x102000,
    PASID_TABLE = 0x103000, TABLES = 0x110000, EMPTY = 0x118000,
    IRT = 0x11a000,
    IQ = 0x120000, PRQ = 0x130000, STATUS = 0x140000, PAGE = 0x200000,
    VA = 0x40201000, PASID = 5, SID = DEVFN,
};

/* Extended capabilities of the exerciser, in its order */
enum { CAP_PASID, CAP_ATS, CAP_PRI };

/* Registers of the exerciser */
enum {
    CHANNEL = 0x1000, X_CTL = 0x84, X_N_PAGE_REQ = 0xa4,
    X_CTL_PRI = 1 << 0, X_CTL_ATC = 1 << 2,
};

typedef struct Vtd {
    QTestState *qts;
    unsigned tail;       /* of the invalidation queue */
    unsigned head;       /* of the page request queue */
    uint32_t waits;
} Vtd;

static uint64_t vtd_r(Vtd *t, unsigned reg)
{
    return qtest_readq(t->qts, Q35_HOST_BRIDGE_IOMMU_ADDR + reg);
}

static uint32_t vtd_r32(Vtd *t, unsigned reg)
{
    return qtest_readl(t->qts, Q35_HOST_BRIDGE_IOMMU_ADDR + reg);
}

static void vtd_w(Vtd *t, unsigned reg, uint64_t val)
{
    qtest_writeq(t->qts, Q35_HOST_BRIDGE_IOMMU_ADDR + reg, val);
}

static void vtd_w32(Vtd *t, unsigned reg, uint32_t val)
{
    qtest_writel(t->qts, Q35_HOST_BRIDGE_IOMMU_ADDR + reg, val);
}

/* Of the host bridge, by port: there the ECAM is switched on. */
static void cfg_w(Vtd *t, unsigned reg, uint32_t val)
{
    qtest_outl(t->qts, 0xcf8, 0x80000000 | reg);
    qtest_outl(t->qts, 0xcfc, val);
}

static uint64_t ecam(unsigned reg)
{
    return ECAM + (DEVFN << 12) + reg;
}

static unsigned ext_cap(Vtd *t, unsigned index)
{
    unsigned at = 0x100;

    while (index--) {
        at = qtest_readl(t->qts, ecam(at)) >> 20;
    }
    return at;
}

/* 9.4: one descriptor, 256 bits */
static void iq_post(Vtd *t, uint64_t lo, uint64_t hi)
{
    uint64_t at = IQ + t->tail * 32;

    qtest_writeq(t->qts, at, lo);
    qtest_writeq(t->qts, at + 8, hi);
    qtest_writeq(t->qts, at + 16, 0);
    qtest_writeq(t->qts, at + 24, 0);
    t->tail = (t->tail + 1) % 128;
    vtd_w32(t, DMAR_IQT_REG, t->tail << 5);
}

/* 6.5.2.11: a wait descriptor; whether it was processed */
static bool iq_wait(Vtd *t, uint64_t flags)
{
    t->waits++;
    iq_post(t, (uint64_t)t->waits << 32 | flags | VTD_INV_DESC_WAIT_SW |
            VTD_INV_DESC_WAIT, STATUS);
    return qtest_readl(t->qts, STATUS) == t->waits;
}

static void iq_page_response(Vtd *t, uint32_t pasid, unsigned prgi,
                             unsigned code)
{
    iq_post(t, (uint64_t)pasid << 32 | (uint64_t)SID << 16 | code << 12 |
            1 << 4 | VTD_INV_DESC_PGRESP, prgi << 3);
}

static Vtd *start(const char *more)
{
    Vtd *t = g_new0(Vtd, 1);

    t->qts = qtest_initf("-machine q35,kernel-irqchip=split -m 128M " VTD
                         "%s -nodefaults "
                         "-device pcie-exerciser,addr=4", more);
    return t;
}

static void end(Vtd *t)
{
    qtest_quit(t->qts);
    g_free(t);
}

static void set_page(Vtd *t, uint64_t va, uint64_t pte)
{
    qtest_writeq(t->qts, TABLES + 0x3000 + (va >> 12 & 0x1ff) * 8, pte);
}

/* Tables, queues, the endpoint's BARs and capabilities. */
static Vtd *setup(void)
{
    Vtd *t = start(",x-pri=on");
    uint64_t table = VTD_FL_P | VTD_FL_RW | VTD_FL_US | VTD_FL_A;
    /* first stage, 48 bits */
    uint64_t entry = VTD_SM_PASID_ENTRY_FLT | 2 << 2 | 1;

    cfg_w(t, 0x64, 0);
    cfg_w(t, 0x60, ECAM | 1);
    qtest_writel(t->qts, ecam(0x10), BAR0);
    qtest_writel(t->qts, ecam(0x14), BAR1);
    qtest_writew(t->qts, ecam(0x04), 6);

    /* 9.1 to 9.7 */
    qtest_writeq(t->qts, ROOT, CONTEXT | 1);
    qtest_writeq(t->qts, CONTEXT + DEVFN * 32, PASID_DIR |
                 VTD_SM_CONTEXT_ENTRY_PRE | 1 << 3 | 1 << 2 | 1);
    qtest_writeq(t->qts, PASID_DIR, PASID_TABLE | 1);
    qtest_writeq(t->qts, PASID_TABLE + PASID * 64, entry);
    qtest_writeq(t->qts, PASID_TABLE + PASID * 64 + 8, 7);
    qtest_writeq(t->qts, PASID_TABLE + PASID * 64 + 16, TABLES);
    /* RID_PASID, an address space with nothing in it */
    qtest_writeq(t->qts, PASID_TABLE, entry);
    qtest_writeq(t->qts, PASID_TABLE + 8, 6);
    qtest_writeq(t->qts, PASID_TABLE + 16, EMPTY);
    for (unsigned i = 0; i < 3; i++) {
        qtest_writeq(t->qts, TABLES + i * 0x1000 +
                     ((uint64_t)VA >> (39 - 9 * i) & 0x1ff) * 8,
                     (TABLES + (i + 1) * 0x1000) | table);
    }

    vtd_w(t, DMAR_RTADDR_REG, ROOT | VTD_RTADDR_SMT);
    vtd_w32(t, DMAR_GCMD_REG, VTD_GCMD_SRTP);
    vtd_w(t, DMAR_IQA_REG, IQ | VTD_IQA_DW_MASK);
    vtd_w32(t, DMAR_GCMD_REG, VTD_GCMD_QIE);
    vtd_w(t, DMAR_PQA_REG, PRQ);
    vtd_w(t, DMAR_PQH_REG, 0);
    vtd_w(t, DMAR_PQT_REG, 0);
    vtd_w32(t, DMAR_GCMD_REG, VTD_GCMD_QIE | VTD_GCMD_TE);
    g_assert_cmphex(vtd_r32(t, DMAR_GSTS_REG) & (VTD_GSTS_TES | VTD_GSTS_QIES),
                    ==, VTD_GSTS_TES | VTD_GSTS_QIES);

    qtest_writew(t->qts, ecam(ext_cap(t, CAP_PASID) + 6), 1);
    qtest_writew(t->qts, ecam(ext_cap(t, CAP_ATS) + 6), 1 << 15);
    qtest_writel(t->qts, ecam(ext_cap(t, CAP_PRI) + 12), 32);
    qtest_writew(t->qts, ecam(ext_cap(t, CAP_PRI) + 4), 1);
    qtest_writel(t->qts, BAR0 + X_CTL, X_CTL_PRI | X_CTL_ATC);
    return t;
}

static void dma_start_pasid(Vtd *t, uint32_t pasid, uint64_t va, bool write)
{
    uint64_t ch = BAR0 + CHANNEL;

    qtest_writel(t->qts, ch + 4, 0);
    qtest_writel(t->qts, ch + 8, va);
    qtest_writel(t->qts, ch + 12, va >> 32);
    qtest_writel(t->qts, ch + 16, 8);
    qtest_writel(t->qts, ch + 20, 4);
    qtest_writel(t->qts, ch + 24, pasid);
    qtest_writel(t->qts, ch, 1 | write << 4 | 1 << 6);
    qtest_clock_step(t->qts, 1000);
}

static void dma_start(Vtd *t, uint64_t va, bool write)
{
    dma_start_pasid(t, PASID, va, write);
}

static bool dma_waits(Vtd *t)
{
    qtest_clock_step(t->qts, 1000);
    return qtest_readl(t->qts, BAR0 + CHANNEL) & 1;
}

static unsigned dma_status(Vtd *t)
{
    g_assert(!dma_waits(t));
    return qtest_readl(t->qts, BAR0 + CHANNEL + 20) & 3;
}

/* The next page request; its PRG index */
static unsigned page_request(Vtd *t, uint64_t va, bool write)
{
    uint64_t at = PRQ + t->head * 32, lo, hi;

    g_assert_cmphex(vtd_r(t, DMAR_PQT_REG), ==, (t->head + 1) * 32);
    g_assert_cmphex(vtd_r32(t, DMAR_PRS_REG) & 3, ==, VTD_PR_STATUS_PPR);
    lo = qtest_readq(t->qts, at);
    hi = qtest_readq(t->qts, at + 8);
    /* 7.4.1.1 */
    g_assert_cmphex(lo, ==, (uint64_t)PASID << 32 | (uint64_t)SID << 16 |
                    1 << 8 | 1);
    g_assert_cmphex(hi & ~0xff8ull, ==, va | 1 << 2 | write << 1 | 1);
    t->head++;
    vtd_w(t, DMAR_PQH_REG, t->head * 32);
    vtd_w32(t, DMAR_PRS_REG, VTD_PR_STATUS_PPR);
    return hi >> 3 & 0x1ff;
}

static void no_faults(Vtd *t)
{
    g_assert_cmphex(vtd_r32(t, DMAR_FSTS_REG), ==, 0);
}

static uint64_t leaf(bool write)
{
    return PAGE | VTD_FL_P | VTD_FL_US | VTD_FL_A |
           (write ? VTD_FL_RW | VTD_FL_D : 0);
}

/* 11.4.3 */
static void test_announced(void)
{
    uint64_t bits = VTD_ECAP_PRS | VTD_ECAP_PDS | VTD_ECAP_C | VTD_ECAP_SMPWC;
    Vtd *t = start("");

    g_assert_cmphex(vtd_r(t, DMAR_ECAP_REG) & bits, ==, 0);
    end(t);
    t = start(",x-pri=on");
    g_assert_cmphex(vtd_r(t, DMAR_ECAP_REG) & bits, ==, bits);
    end(t);
}

static void test_refused(void)
{
    g_autofree char *said = NULL;
    g_autofree char *cmd = g_strdup_printf(
        "%s -machine q35 -display none -device intel-iommu,x-pri=on",
        getenv("QTEST_QEMU_BINARY"));
    int status;

    g_assert(g_spawn_command_line_sync(cmd, NULL, &said, &status, NULL));
    g_assert_cmpint(status, !=, 0);
    g_assert(strstr(said, "x-pri=on needs x-scalable-mode=on, x-flts=on, "
                    "x-pasid-mode=on and device-iotlb=on"));
}

/* 6.5.2.11: PD is reserved without ECAP.PDS */
static void test_drain(void)
{
    Vtd *t = setup();

    g_assert(iq_wait(t, 0));
    g_assert(iq_wait(t, VTD_INV_DESC_WAIT_PD));
    g_assert(iq_wait(t, VTD_INV_DESC_WAIT_PD | VTD_INV_DESC_WAIT_FN));
    no_faults(t);
    g_assert(!iq_wait(t, 1 << 8));
    end(t);
}

/* A page that is missing, one that may not be written, one that never comes */
static void test_served(void)
{
    Vtd *t = setup();

    qtest_writeq(t->qts, BAR1, 0x1122334455667788);
    dma_start(t, VA, true);
    g_assert(dma_waits(t));
    no_faults(t);
    set_page(t, VA, leaf(true));
    iq_page_response(t, PASID, page_request(t, VA, true), 0);
    g_assert_cmpuint(dma_status(t), ==, 0);
    g_assert_cmphex(qtest_readq(t->qts, PAGE), ==, 0x1122334455667788);

    /* The first answer is cached by the endpoint: no further request. */
    dma_start(t, VA, true);
    g_assert_cmpuint(dma_status(t), ==, 0);
    g_assert_cmpuint(qtest_readl(t->qts, BAR0 + X_N_PAGE_REQ), ==, 1);

    set_page(t, VA + 0x1000, leaf(false));
    dma_start(t, VA + 0x1000, false);
    g_assert_cmpuint(dma_status(t), ==, 0);
    dma_start(t, VA + 0x1000, true);
    g_assert(dma_waits(t));
    set_page(t, VA + 0x1000, leaf(true));
    iq_page_response(t, PASID, page_request(t, VA + 0x1000, true), 0);
    g_assert_cmpuint(dma_status(t), ==, 0);

    dma_start(t, VA + 0x2000, false);
    g_assert(dma_waits(t));
    iq_page_response(t, PASID, page_request(t, VA + 0x2000, false), 1);
    g_assert_cmpuint(dma_status(t), !=, 0);
    no_faults(t);
    end(t);
}

/* A response to nobody, to another PASID and twice */
static void test_stray_response(void)
{
    Vtd *t = setup();
    unsigned prgi;

    iq_page_response(t, PASID, 3, 0);
    iq_page_response(t, 77, 3, 0);
    dma_start(t, VA, true);
    prgi = page_request(t, VA, true);
    iq_page_response(t, PASID + 1, prgi, 0);
    g_assert(dma_waits(t));
    set_page(t, VA, leaf(true));
    iq_page_response(t, PASID, prgi, 0);
    g_assert_cmpuint(dma_status(t), ==, 0);
    iq_page_response(t, PASID, prgi, 0);
    g_assert(iq_wait(t, 0));
    end(t);
}

/* 7.1: an untranslated access that misses is still recorded */
static void test_untranslated_fault(void)
{
    Vtd *t = setup();

    qtest_writew(t->qts, ecam(ext_cap(t, CAP_ATS) + 6), 0);
    qtest_writel(t->qts, BAR0 + X_CTL, 0);
    qtest_writel(t->qts, BAR0 + CHANNEL + 24, 0);
    /* without PASID */
    qtest_writel(t->qts, BAR0 + CHANNEL + 8, VA);
    qtest_writel(t->qts, BAR0 + CHANNEL + 12, 0);
    qtest_writel(t->qts, BAR0 + CHANNEL + 16, 8);
    qtest_writel(t->qts, BAR0 + CHANNEL, 1);
    qtest_clock_step(t->qts, 1000);
    g_assert_cmphex(vtd_r32(t, DMAR_FSTS_REG) & 2, ==, 2);
    end(t);
}

static unsigned address_spaces(Vtd *t)
{
    g_autofree char *text = qtest_hmp(t->qts, "info mtree");
    unsigned n = 0;

    for (char *at = text; (at = strstr(at, "vtd-root")); at++) {
        n++;
    }
    return n;
}

/* PASIDs that no table can hold cost nothing; the others at most one each. */
static void test_many_pasids(void)
{
    Vtd *t = setup();
    unsigned before = address_spaces(t);

    for (uint32_t pasid = 256; pasid < 1 << 20; pasid += 251) {
        dma_start_pasid(t, pasid, VA, false);
        g_assert_cmpuint(dma_status(t), !=, 0);
    }
    g_assert_cmpuint(address_spaces(t), ==, before);
    for (uint32_t pasid = 1; pasid < 256; pasid++) {
        if (pasid != PASID) {
            dma_start_pasid(t, pasid, VA, false);
            g_assert_cmpuint(dma_status(t), !=, 0);
        }
    }
    g_assert_cmpuint(address_spaces(t), <=, before + 255);
    end(t);
}

/* The exerciser writes an MSI; the reason why it was stopped, 0: it was not. */
static unsigned msi(Vtd *t, uint32_t addr, uint32_t data)
{
    uint64_t ch = BAR0 + CHANNEL, fault;

    qtest_writel(t->qts, BAR1, data);
    qtest_writel(t->qts, ch + 4, 0);
    qtest_writel(t->qts, ch + 8, addr);
    qtest_writel(t->qts, ch + 12, 0);
    qtest_writel(t->qts, ch + 16, 4);
    qtest_writel(t->qts, ch + 20, 4);
    /* without PASID, memory from the device */
    qtest_writel(t->qts, ch, 1 | 1 << 4);
    qtest_clock_step(t->qts, 1000);
    g_assert(!dma_waits(t));
    fault = vtd_r(t, DMAR_FRCD_REG_0_2);
    if (!(fault & VTD_FRCD_F)) {
        g_assert_cmphex(vtd_r32(t, DMAR_FSTS_REG) & VTD_FSTS_PPF, ==, 0);
        return 0;
    }
    g_assert_cmphex(fault & VTD_FRCD_SID_MASK, ==, SID);
    vtd_w(t, DMAR_FRCD_REG_0_2, VTD_FRCD_F);
    return fault >> 32 & 0xff;
}

/* 5.1.5 */
static uint32_t remappable(unsigned index)
{
    return 0xfee00000 | index << 5 | 1 << 4;
}

/* 9.9: present, vector 0x40 + index; the source ID is compared */
static void set_irte(Vtd *t, unsigned index, uint16_t sid)
{
    qtest_writeq(t->qts, IRT + index * 16, (0x40 + index) << 16 | 1);
    qtest_writeq(t->qts, IRT + index * 16 + 8, 1 << 18 | sid);
}

/* 5.1.4, 5.1.5: MSIs of its own, of another function, of nobody. */
static void test_msi(void)
{
    Vtd *t = setup();
    uint32_t on = VTD_GCMD_QIE | VTD_GCMD_TE;

    qtest_writew(t->qts, ecam(ext_cap(t, CAP_ATS) + 6), 0);
    qtest_writel(t->qts, BAR0 + X_CTL, 0);
    /* Without remapping whatever is written passes. */
    g_assert_cmphex(msi(t, 0xfee00000, 0x55), ==, 0);

    set_irte(t, 3, SID);
    set_irte(t, 4, SID + 8);
    vtd_w(t, DMAR_IRTA_REG, IRT | 7);
    vtd_w32(t, DMAR_GCMD_REG, on | VTD_GCMD_SIRTP);
    vtd_w32(t, DMAR_GCMD_REG, on | VTD_GCMD_IRE);
    g_assert_cmphex(msi(t, remappable(3), 0), ==, 0);
    g_assert_cmphex(msi(t, remappable(4), 0), ==, VTD_FR_IR_SID_ERR);
    g_assert_cmphex(msi(t, remappable(5), 0), ==, VTD_FR_IR_ENTRY_P);
    g_assert_cmphex(msi(t, remappable(300), 0), ==, VTD_FR_IR_INDEX_OVER);
    g_assert_cmphex(msi(t, 0xfee00000, 0x55), ==, VTD_FR_IR_REQ_COMPAT);

    /* Interrupts of the old format can be let through, but not with EIME. */
    vtd_w32(t, DMAR_GCMD_REG, on | VTD_GCMD_IRE | VTD_GCMD_CFI);
    g_assert_cmphex(vtd_r32(t, DMAR_GSTS_REG) & VTD_GSTS_CFIS, !=, 0);
    g_assert_cmphex(msi(t, 0xfee00000, 0x55), ==, 0);
    g_assert_cmphex(msi(t, remappable(4), 0), ==, VTD_FR_IR_SID_ERR);
    vtd_w32(t, DMAR_GCMD_REG, on | VTD_GCMD_IRE);
    g_assert_cmphex(msi(t, 0xfee00000, 0x55), ==, VTD_FR_IR_REQ_COMPAT);
    end(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/intel-pri/announced", test_announced);
    qtest_add_func("/intel-pri/refused", test_refused);
    qtest_add_func("/intel-pri/drain", test_drain);
    qtest_add_func("/intel-pri/served", test_served);
    qtest_add_func("/intel-pri/stray-response", test_stray_response);
    qtest_add_func("/intel-pri/untranslated-fault", test_untranslated_fault);
    qtest_add_func("/intel-pri/many-pasids", test_many_pasids);
    qtest_add_func("/intel-pri/msi", test_msi);
    return g_test_run();
}
