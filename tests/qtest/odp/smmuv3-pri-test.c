/*
 * SMMUv3: PCIe Page Request Interface
 *
 * The PRI queue, responses, and the answers that the SMMU gives itself. One
 * test a behaviour; section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5

/* Page requests by hand */
enum {
    PPR_R = 1 << 16, PPR_W = 1 << 17, PPR_LAST = 1 << 18, PPR_PASID = 1 << 19,
    PPR_PRIV = 1 << 20, PPR_EXEC = 1 << 21,
};
/* What the exerciser has heard */
enum { CODE_SUCCESS = 0, CODE_INVALID = 1, CODE_FAILURE = 2 };

#define CR0_ON (CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN)

static SmmuTest *start_cr0(unsigned log2, uint32_t cr0)
{
    SmmuTest *t = smmu_boot("ssidsize=8,ats=on,pri=on,stall-model=stall",
                            NULL);

    smmu_setup_sized(t, 6, log2, cr0);
    pasid_enable(t);
    ats_enable(t, true);
    pri_enable(t, 32);
    return t;
}

static SmmuTest *start(unsigned log2)
{
    return start_cr0(log2, CR0_ON);
}

static void page_request(SmmuTest *t, uint64_t va, uint32_t what,
                         unsigned prgi)
{
    qtest_writel(t->qts, t->regs + 0x10, va);
    qtest_writel(t->qts, t->regs + 0x14, va >> 32);
    qtest_writel(t->qts, t->regs + 0x20, SSID);
    qtest_writel(t->qts, t->regs + 0x90, what | prgi);
    g_assert_cmpint((int32_t)qtest_readl(t->qts, t->regs + 0x94), ==, 0);
    qtest_clock_step(t->qts, 1000);
}

static unsigned responses(SmmuTest *t)
{
    return qtest_readl(t->qts, t->regs + 0x98);
}

static void heard(SmmuTest *t, unsigned count, unsigned prgi, unsigned code,
                  bool pasid)
{
    uint32_t last = qtest_readl(t->qts, t->regs + 0x9c);

    g_assert_cmpuint(responses(t), ==, count);
    g_assert_cmpuint(last & 0x1ff, ==, prgi);
    g_assert_cmpuint(last >> 12 & 3, ==, code);
    g_assert_cmpint(last >> 14 & 1, ==, pasid);
}

static void entry_is(SmmuTest *t, unsigned n, uint64_t lo, uint64_t hi)
{
    g_assert_cmphex(qtest_readq(t->qts, t->priq + n * 16), ==, lo);
    g_assert_cmphex(qtest_readq(t->qts, t->priq + n * 16 + 8), ==, hi);
}

static uint64_t pri_resp_lo(SmmuTest *t, int ssid)
{
    return cmd_ssid(0x41, t->sid, ssid);
}

/* 6.3.1, 6.3.2, 6.3.27 */
static void test_id(void)
{
    SmmuTest *t = start(4);

    g_assert_cmpuint(smmu_r(t, SMMU_IDR0) >> 16 & 1, ==, 1);
    g_assert_cmpuint(smmu_r(t, SMMU_IDR1) >> 11 & 0x1f, ==, 19);
    smmu_wq(t, SMMU_PRIQ_BASE, 0x43210000 | 3);
    g_assert_cmphex(qtest_readq(t->qts, VIRT_SMMU + SMMU_PRIQ_BASE), ==,
                    0x43210003);
    smmu_quit(t);
}

/* 8.1: every field of an entry */
static void test_entry(void)
{
    static const struct {
        uint32_t what;
        uint64_t bits;         /* above the SubstreamID */
    } row[] = {
        { PPR_R | PPR_LAST, 1ull << 60 | 1ull << 62 },
        { PPR_W, 1ull << 61 },
        { PPR_R | PPR_W | PPR_LAST | PPR_PASID,
          1ull << 60 | 1ull << 61 | 1ull << 62 | 1ull << 63 },
        { PPR_R | PPR_PASID | PPR_PRIV, 1ull << 58 | 1ull << 60 | 1ull << 63 },
        { PPR_R | PPR_PASID | PPR_EXEC, 1ull << 59 | 1ull << 60 | 1ull << 63 },
        { PPR_LAST | PPR_PASID, 1ull << 62 | 1ull << 63 },
    };
    SmmuTest *t = start(4);

    for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
        page_request(t, VA + 0x123, row[i].what, 0x1a0 + i);
        g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, i + 1);
        entry_is(t, i, t->sid | row[i].bits |
                 (row[i].what & PPR_PASID ? (uint64_t)SSID << 32 : 0),
                 VA | (0x1a0 + i));
    }
    g_assert_cmpuint(responses(t), ==, 0);
    smmu_quit(t);
}

/* Line 29; 4.6.3 */
static void test_responses(void)
{
    static const unsigned code[] = {
        CODE_FAILURE, CODE_INVALID, CODE_SUCCESS,
    };
    SmmuTest *t = start(4);

    for (unsigned resp = 0; resp < 3; resp++) {
        page_request(t, VA, PPR_R | PPR_LAST | PPR_PASID, 7 + resp);
        smmu_cmd(t, pri_resp_lo(t, SSID), resp << 12 | (7 + resp));
        heard(t, resp + 1, 7 + resp, code[resp], true);
    }
    smmu_cmd_refused(t, pri_resp_lo(t, SSID), 3 << 12, CERROR_ILL);
    g_assert_cmpuint(responses(t), ==, 3);

    page_request(t, VA, PPR_R | PPR_LAST, 0x1ff);
    smmu_cmd(t, pri_resp_lo(t, -1), 2 << 12 | 0x1ff);
    heard(t, 4, 0x1ff, CODE_SUCCESS, false);

    /* to nobody */
    smmu_cmd(t, cmd_ssid(0x41, 0xff00, SSID), 2 << 12);
    g_assert_cmpuint(responses(t), ==, 4);
    smmu_quit(t);
}

/* Line 30: overflow */
static void test_overflow(void)
{
    SmmuTest *t = start(1);

    page_request(t, VA, PPR_R | PPR_LAST, 0);
    page_request(t, VA, PPR_R | PPR_LAST, 1);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, 2);

    /* dropped without a word, answered, and a Stop Marker that is neither */
    page_request(t, VA, PPR_R, 2);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, Q_OVF | 2);
    g_assert_cmpuint(responses(t), ==, 0);
    page_request(t, VA, PPR_R | PPR_LAST, 2);
    heard(t, 1, 2, CODE_SUCCESS, false);
    page_request(t, VA, PPR_LAST | PPR_PASID, 3);
    g_assert_cmpuint(responses(t), ==, 1);

    /* space alone does not let entries in */
    smmu_w(t, SMMU_PRIQ_CONS, 2);
    page_request(t, VA, PPR_R | PPR_LAST, 4);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, Q_OVF | 2);
    heard(t, 2, 4, CODE_SUCCESS, false);

    /* the acknowledgement does */
    smmu_w(t, SMMU_PRIQ_CONS, Q_OVF | 2);
    page_request(t, VA, PPR_R | PPR_LAST, 5);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, Q_OVF | 3);
    g_assert_cmpuint(responses(t), ==, 2);
    smmu_quit(t);
}

/* Line 31: the PASID of an answer of the SMMU's own */
static void test_auto_pasid(void)
{
    static const struct {
        const char *name;
        Ste ste;
        unsigned code;
        bool pasid;
    } row[] = {
        { "PPAR=1", { .config = 4, .ppar = 1 }, CODE_SUCCESS, true },
        { "PPAR=0", { .config = 4 }, CODE_SUCCESS, false },
        { "bad STE", { .invalid = true, .ppar = 1 }, CODE_FAILURE, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = start(0);

        ste_write(t, t->sid, &row[i].ste);
        page_request(t, VA, PPR_R | PPR_LAST, 0);
        page_request(t, VA, PPR_R | PPR_LAST | PPR_PASID, 9);
        heard(t, 1, 9, row[i].code, row[i].pasid);
        smmu_quit(t);
    }
}

/* Line 32: PRI off */
static void test_off(void)
{
    for (int how = 0; how < 3; how++) {
        SmmuTest *t = start_cr0(4, how == 0 ? CR0_ON & ~CR0_PRIQEN :
                                how == 1 ? CR0_ON & ~CR0_SMMUEN : CR0_ON);
        unsigned n = 0;

        if (how == 2) {
            smmu_wq(t, SMMU_PRIQ_BASE, 0x7fff0000 | 4);
            page_request(t, VA, PPR_R | PPR_LAST, 1);
            g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_PRIQ_ABT);
            heard(t, ++n, 1, CODE_FAILURE, false);
            smmu_wq(t, SMMU_PRIQ_BASE, t->priq | 4);
        }
        page_request(t, VA, PPR_R | PPR_LAST | PPR_PASID, 3);
        heard(t, ++n, 3, CODE_FAILURE, false);
        /* each request, not the last of a group alone; no Stop Marker */
        page_request(t, VA, PPR_W | PPR_PASID, 5);
        heard(t, ++n, 5, CODE_FAILURE, false);
        page_request(t, VA, PPR_LAST | PPR_PASID, 6);
        heard(t, n, 5, CODE_FAILURE, false);
        /* without PASID the same bits are a request (8.1) */
        page_request(t, VA, PPR_LAST, 7);
        heard(t, ++n, 7, CODE_FAILURE, false);
        g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, 0);
        if (how == 2) {
            smmu_w(t, SMMU_GERRORN, GERROR_PRIQ_ABT);
            page_request(t, VA, PPR_R | PPR_LAST | PPR_PASID, 4);
            g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, 1);
            g_assert_cmpuint(responses(t), ==, n);
        }
        smmu_quit(t);
    }
}

/* The PRI queue's wire, an edge */
static void test_irq(void)
{
    enum { SPI = 75, IRQ_CTRL_PRI = 2 };
    SmmuTest *t = start(1);

    smmu_wire_watch(t, SPI);
    page_request(t, VA, PPR_R | PPR_LAST, 1);
    g_assert_false(smmu_wire(t, SPI));

    smmu_w(t, SMMU_IRQ_CTRL, IRQ_CTRL_PRI);
    page_request(t, VA, PPR_R | PPR_LAST, 2);
    g_assert_true(smmu_wire(t, SPI));

    /* an overflow is told, but once */
    for (int i = 0; i < 2; i++) {
        smmu_wire_clear(t, SPI);
        page_request(t, VA, PPR_R, 3);
        g_assert_cmpint(smmu_wire(t, SPI), ==, !i);
    }
    smmu_quit(t);
}

/* Line 33: EATS and ATSCHK do not matter to page requests */
static void test_not_gated(void)
{
    SmmuTest *t = start_cr0(4, CR0_ON | CR0_ATSCHK);
    Ste ste = { .config = 0, .eats = 0 };

    ste_write(t, t->sid, &ste);
    page_request(t, VA, PPR_R | PPR_LAST | PPR_PASID, 3);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, 1);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    smmu_quit(t);
}

/*
 * The requester asks by itself: no translation, page request, response,
 * translation; with @resp not Success the access fails.
 */
static void test_requester(void)
{
    for (int resp = 0; resp < 3; resp++) {
        SmmuTest *t = start(4);
        uint64_t cds = smmu_pages(t, 1), page = smmu_pages(t, 1);
        Cd cd = { .ttb = smmu_pages(t, 1) };
        Ste ste = {
            .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2, .eats = 1,
        };
        unsigned prgi;

        cd_write(t, cds + SSID * 64, &cd);
        ste_write(t, t->sid, &ste);
        x_ctl(t, X_ATC | X_PRI);
        g_assert_cmpuint(dma(t, VA + 8, DMA_WRITE, SSID), ==, DMA_BUSY);
        g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, 1);
        prgi = qtest_readq(t->qts, t->priq + 8) & 0x1ff;
        entry_is(t, 0, t->sid | (uint64_t)SSID << 32 | 0xfull << 60,
                 VA | prgi);
        g_assert_cmpuint(smmu_events(t), ==, 0);
        pt_map(t, cd.ttb, VA, page, PTE_RW_EL0);
        smmu_cmd(t, pri_resp_lo(t, SSID), (uint64_t)resp << 12 | prgi);
        g_assert_cmpuint(dma_status(t, 0), ==, resp == 2 ? DMA_OK : DMA_ERROR);
        g_assert_cmpuint(smmu_events(t), ==, 0);
        /* PRI Status: Response Failure */
        g_assert_cmpint(qtest_readw(t->qts, smmu_cfg(t) + CAP_PRI + 6) & 1, ==,
                        resp == 0);
        smmu_quit(t);
    }
}

/* No more requests at once than the guest gave credits; none is lost */
static void test_credits(void)
{
    SmmuTest *t = start(6);
    uint64_t cds = smmu_pages(t, 1);
    Cd cd = { .ttb = smmu_pages(t, 1) };
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2, .eats = 1 };
    unsigned n = 0;

    pri_enable(t, 3);
    cd_write(t, cds + SSID * 64, &cd);
    ste_write(t, t->sid, &ste);
    x_ctl(t, X_ATC | X_PRI);
    for (int i = 0; i < 20; i++) {
        g_assert_cmpuint(dma_start(t, i, VA + i * 4096, 8, DMA_PASID, SSID),
                         ==, DMA_BUSY);
    }
    while (n < (smmu_r(t, SMMU_PRIQ_PROD) & 63)) {
        uint64_t hi = qtest_readq(t->qts, t->priq + n * 16 + 8);

        g_assert_cmpuint((smmu_r(t, SMMU_PRIQ_PROD) & 63) - n, <=, 3);
        g_assert_cmphex(hi & ~0xfffull, ==, VA + n * 4096);
        pt_map(t, cd.ttb, hi & ~0xfffull, smmu_pages(t, 1), PTE_RW_EL0);
        smmu_cmd(t, pri_resp_lo(t, SSID), 2 << 12 | (hi & 0x1ff));
        n++;
    }
    g_assert_cmpuint(n, ==, 20);
    for (int i = 0; i < 20; i++) {
        g_assert_cmpuint(dma_status(t, i), ==, DMA_OK);
    }
    smmu_quit(t);
}

/* PRI or bus master off, FLR with requests out; a late response is ignored */
static void test_ends(void)
{
    for (int how = 0; how < 3; how++) {
        SmmuTest *t = start(4);
        uint64_t cds = smmu_pages(t, 1);
        Cd cd = { .ttb = smmu_pages(t, 1) };
        Ste ste = {
            .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2, .eats = 1,
        };
        unsigned prgi;

        cd_write(t, cds + SSID * 64, &cd);
        ste_write(t, t->sid, &ste);
        x_ctl(t, X_ATC | X_PRI);
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
        prgi = qtest_readq(t->qts, t->priq + 8) & 0x1ff;
        switch (how) {
        case 0:
            pri_enable(t, 0);
            /* goes untranslated, and faults there */
            g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
            g_assert_cmpuint(smmu_events(t), ==, 1);
            break;
        case 1:
            qtest_writew(t->qts, smmu_cfg(t) + 4, 2);
            g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
            break;
        case 2:
            qtest_writew(t->qts, smmu_cfg(t) + 0x80 + 8, 0x8000);
            g_assert_cmphex(qtest_readw(t->qts, smmu_cfg(t) + CAP_PRI + 4),
                            ==, 0);
            g_assert_cmphex(qtest_readw(t->qts, smmu_cfg(t) + CAP_ATS + 6),
                            ==, 0);
            g_assert_cmphex(qtest_readw(t->qts, smmu_cfg(t) + CAP_PASID + 6),
                            ==, 0);
            break;
        }
        smmu_cmd(t, pri_resp_lo(t, SSID), 2 << 12 | prgi);
        CMD_SYNC(t);
        smmu_quit(t);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/pri/id", test_id);
    qtest_add_func("smmuv3/pri/entry", test_entry);
    qtest_add_func("smmuv3/pri/29-responses", test_responses);
    qtest_add_func("smmuv3/pri/30-overflow", test_overflow);
    qtest_add_func("smmuv3/pri/31-auto-pasid", test_auto_pasid);
    qtest_add_func("smmuv3/pri/32-off", test_off);
    qtest_add_func("smmuv3/pri/irq", test_irq);
    qtest_add_func("smmuv3/pri/33-not-gated", test_not_gated);
    qtest_add_func("smmuv3/pri/requester", test_requester);
    qtest_add_func("smmuv3/pri/credits", test_credits);
    qtest_add_func("smmuv3/pri/ends", test_ends);
    return g_test_run();
}
