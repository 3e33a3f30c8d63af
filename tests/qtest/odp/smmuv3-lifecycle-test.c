/*
 * SMMUv3: reset, unplug and SMMUEN=0 with work outstanding
 *
 * Each of what can be outstanding (stalled transactions, recorded or not, a
 * page request, a CMD_SYNC that waits for an ATC invalidation) meets each of
 * the three. Section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5
#define CR0_ON (CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN)

typedef struct Life {
    SmmuTest *t;
    uint64_t root;
    uint16_t stag;
    unsigned prgi;
} Life;

static uint64_t port(unsigned off)
{
    return ecam(0, 3 << 3, off);
}

/* Everything that a reset forgets: root port, BARs, capabilities, SMMU */
static void bring_up(Life *l)
{
    SmmuTest *t = l->t;
    uint64_t cds = smmu_pages(t, 1), bars = VIRT_MMIO + 0x400000;
    Cd cd = { .asid = 3, .s = true };
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2, .eats = 1 };

    qtest_writel(t->qts, port(PCI_PRIMARY_BUS), 0x00010100);
    qtest_writel(t->qts, port(PCI_MEMORY_BASE),
                 ((bars + 0x300000) & 0xfff00000) | bars >> 16);
    qtest_writew(t->qts, port(PCI_COMMAND), 6);
    smmu_find_exerciser(t, 1);
    t->regs = bars;
    t->mem = bars + 0x100000;
    qtest_writel(t->qts, smmu_cfg(t) + PCI_BASE_ADDRESS_0, t->regs);
    qtest_writel(t->qts, smmu_cfg(t) + PCI_BASE_ADDRESS_1, t->mem);
    qtest_writel(t->qts, smmu_cfg(t) + PCI_BASE_ADDRESS_2, bars + 0x200000);

    smmu_setup_sized(t, 4, 4, 0);
    t->strtab = smmu_pages(t, 8);       /* bus 1, too */
    smmu_wq(t, SMMU_STRTAB_BASE, t->strtab);
    smmu_w(t, SMMU_STRTAB_BASE_CFG, 9);
    smmu_w(t, SMMU_CR0, CR0_ON);

    l->root = cd.ttb = smmu_pages(t, 1);
    cd_write(t, cds + SSID * 64, &cd);
    ste_write(t, t->sid, &ste);
    CMD_CFGI_ALL(t);
    CMD_SYNC(t);
    pasid_enable(t);
    ats_enable(t, true);
    pri_enable(t, 32);
}

/* The SMMU and the function do all that they did before. */
static void works(Life *l)
{
    SmmuTest *t = l->t;
    uint64_t page = smmu_pages(t, 1);
    SmmuEvent e;
    unsigned prod;

    CMD_TLBI_ALL(t);
    CMD_SYNC(t);
    qtest_writeq(t->qts, page + 8, 0x600d);
    pt_map(t, l->root, VA, page, PTE_RW_EL0);
    x_ctl(t, 0);
    g_assert_cmpuint(dma(t, VA + 8, DMA_READ, SSID), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0x600d);

    g_assert_cmpuint(smmu_events(t), ==, 0);
    g_assert_cmpuint(dma(t, VA + 0x9000, DMA_READ, SSID), ==, DMA_BUSY);
    smmu_pop_event(t, &e);
    g_assert_cmpuint(e.type, ==, F_TRANSLATION);
    g_assert_cmphex(e.addr, ==, VA + 0x9000);
    CMD_RESUME(t, t->sid, e.stag, RESUME_ABORT);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);

    prod = smmu_r(t, SMMU_PRIQ_PROD);
    x_ctl(t, X_ATC | X_PRI);
    g_assert_cmpuint(dma(t, VA + 0xa000, DMA_READ, SSID), ==, DMA_BUSY);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_PROD), ==, prod + 1);
    pt_map(t, l->root, VA + 0xa000, page, PTE_RW_EL0);
    smmu_cmd(t, cmd_ssid(0x41, t->sid, SSID), 2 << 12 |
             (qtest_readq(t->qts, t->priq + prod * 16 + 8) & 0x1ff));
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);

    smmu_cmd(t, 0x40 | (uint64_t)t->sid << 32, 52);
    CMD_SYNC(t);
    /* the deadline of an old invalidation is nothing to this one */
    qtest_clock_step(t->qts, 61 * 1000000000ll);
    CMD_SYNC(t);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, smmu_r(t, SMMU_GERRORN));
    g_assert_cmpuint(smmu_events(t), ==, 0);
}

/* -- what is outstanding -------------------------------------------------- */

static void stalled(Life *l)
{
    SmmuEvent e;

    for (int n = 0; n < 2; n++) {
        g_assert_cmpuint(dma_start(l->t, n, VA, 8, DMA_PASID, SSID), ==,
                         DMA_BUSY);
    }
    smmu_pop_event(l->t, &e);
    g_assert_true(e.stall);
    l->stag = e.stag;
}

static void unrecorded(Life *l)
{
    smmu_w(l->t, SMMU_CR0, CR0_ON & ~CR0_EVENTQEN);
    for (int n = 0; n < 2; n++) {
        g_assert_cmpuint(dma_start(l->t, n, VA, 8, DMA_PASID, SSID), ==,
                         DMA_BUSY);
    }
    g_assert_cmpuint(smmu_events(l->t), ==, 0);
}

static void page_request(Life *l)
{
    x_ctl(l->t, X_ATC | X_PRI);
    g_assert_cmpuint(dma(l->t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    g_assert_cmphex(smmu_r(l->t, SMMU_PRIQ_PROD), ==, 1);
    l->prgi = qtest_readq(l->t->qts, l->t->priq + 8) & 0x1ff;
}

static void parked(Life *l)
{
    x_ctl(l->t, X_INV_HOLD);
    smmu_cmd(l->t, 0x40 | (uint64_t)l->t->sid << 32, 52);
    smmu_cmd_raw(l->t, 0x46, 0);
    g_assert_false(smmu_cmdq_idle(l->t));
}

/* Nothing is outstanding; the next CMD_SYNC would tell (4.5.1) */
static void failed(Life *l)
{
    x_ctl(l->t, X_INV_FAIL);
    smmu_cmd(l->t, 0x40 | (uint64_t)l->t->sid << 32, 52);
}

typedef struct What {
    const char *name;
    void (*make)(Life *l);
} What;

static const What what[] = {
    { "stalled", stalled },
    { "unrecorded", unrecorded },
    { "page-request", page_request },
    { "invalidation", parked },
};

static const What what_failed = { "failed-invalidation", failed };

/* Answers to what is gone: valid commands that do nothing (4.6) */
static void late_answers(Life *l, uint32_t sid)
{
    CMD_RESUME(l->t, sid, l->stag, RESUME_RETRY);
    CMD_RESUME(l->t, sid, l->stag, RESUME_ABORT);
    CMD_STALL_TERM(l->t, sid);
    smmu_cmd(l->t, cmd_ssid(0x41, sid, SSID), 2 << 12 | l->prgi);
    smmu_cmd(l->t, 0x40 | (uint64_t)sid << 32, 52);
    CMD_SYNC(l->t);
}

static void start(Life *l, const What *w)
{
    l->t = smmu_boot_raw("ssidsize=8,ats=on,pri=on,stall-model=stall",
                         "addr=5 -device pcie-root-port,id=rp,addr=3 "
                         "-device pcie-exerciser,id=x,bus=rp");
    bring_up(l);
    w->make(l);
}

/* 3.11: after reset nothing is left, invalidations on their way included */
static void test_reset(const void *opaque)
{
    Life l = { 0 };

    start(&l, opaque);
    qtest_system_reset(l.t->qts);
    g_assert_cmphex(smmu_r(l.t, SMMU_CR0), ==, 0);
    g_assert_cmphex(smmu_r(l.t, SMMU_EVENTQ_PROD), ==, 0);
    g_assert_cmphex(smmu_r(l.t, SMMU_PRIQ_PROD), ==, 0);
    bring_up(&l);
    late_answers(&l, l.t->sid);
    works(&l);
    smmu_quit(l.t);
}

/* 6.3.9.6: SMMUEN=0 ends stalls; page requests and SYNC find their answer */
static void test_smmu_off(const void *opaque)
{
    const What *w = opaque;
    Life l = { 0 };
    SmmuTest *t;

    start(&l, w);
    t = l.t;
    smmu_w(t, SMMU_CR0, CR0_ON & ~CR0_SMMUEN);
    if (w->make == stalled || w->make == unrecorded) {
        g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
        g_assert_cmpuint(dma_status(t, 1), ==, DMA_ERROR);
    }
    if (w->make == parked) {
        x_ctl(t, 0);
        qtest_clock_step(t->qts, 1000000);
        g_assert_true(smmu_cmdq_idle(t));
    }
    smmu_w(t, SMMU_CR0, CR0_ON);
    if (w->make == stalled) {
        SmmuEvent e;

        /* the other one's record was written before */
        smmu_pop_event(t, &e);
        g_assert_true(e.stall);
    }
    if (w->make == page_request) {
        uint64_t page = smmu_pages(t, 1);

        pt_map(t, l.root, VA, page, PTE_RW_EL0);
        smmu_cmd(t, cmd_ssid(0x41, t->sid, SSID), 2 << 12 | l.prgi);
        g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
        smmu_cmd(t, 0x40 | (uint64_t)t->sid << 32, 52);
    }
    late_answers(&l, t->sid);
    works(&l);
    smmu_quit(t);
}

/* The function is pulled; the one next to it does not notice */
static void test_unplug(const void *opaque)
{
    const What *w = opaque;
    Life l = { 0 };
    SmmuTest *t;
    uint32_t gone;
    Ste ste = { .config = 4 };
    uint8_t exp;

    start(&l, w);
    t = l.t;
    gone = t->sid;
    qtest_qmp_assert_success(t->qts, "{ 'execute': 'device_del', "
                             "'arguments': { 'id': 'x' } }");
    /* the guest switches the slot off: power and both indicators */
    exp = qtest_readb(t->qts, port(PCI_CAPABILITY_LIST));
    while (qtest_readb(t->qts, port(exp)) != PCI_CAP_ID_EXP) {
        exp = qtest_readb(t->qts, port(exp + 1));
        g_assert_cmpuint(exp, !=, 0);
    }
    qtest_writew(t->qts, port(exp + PCI_EXP_SLTCTL), 0x07c0);
    qtest_qmp_eventwait(t->qts, "DEVICE_DELETED");
    g_assert_cmphex(qtest_readl(t->qts, smmu_cfg(t)), ==, 0xffffffff);
    qtest_clock_step(t->qts, 1000000);
    g_assert_true(smmu_cmdq_idle(t));
    smmu_w(t, SMMU_CR0, CR0_ON);
    late_answers(&l, gone);

    while (smmu_events(t)) {
        SmmuEvent e;

        /* of the second stall, from before */
        smmu_pop_event(t, &e);
        g_assert_true(w->make == stalled && e.stall);
        g_assert_cmphex(e.sid, ==, gone);
    }
    smmu_find_exerciser(t, 0);
    g_assert_cmphex(t->sid, !=, gone);
    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, t->strtab, DMA_READ, -1), ==, DMA_OK);
    CMD_SYNC(t);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, smmu_r(t, SMMU_GERRORN));
    smmu_quit(t);
}

/* A guest gives two buses each other's number: StreamIDs follow */
static void test_renumbered(void)
{
    Life l = { 0 };
    SmmuTest *t;
    Ste ste = { .config = 4 }, bad = { .invalid = true };
    uint64_t other = ecam(0, 6 << 3, PCI_PRIMARY_BUS);

    t = l.t = smmu_boot_raw("ats=on,pri=on,ssidsize=8,stall-model=stall",
                            "addr=5 "
                            "-device pcie-root-port,id=rp,addr=3,chassis=1 "
                            "-device pcie-exerciser,bus=rp "
                            "-device pcie-root-port,id=rq,addr=6,chassis=2 "
                            "-device pcie-exerciser,bus=rq");
    qtest_writel(t->qts, other, 0x00020200);
    bring_up(&l);
    smmu_w(t, SMMU_CR0, 0);
    t->strtab = smmu_pages(t, 16);      /* bus 2, too */
    smmu_wq(t, SMMU_STRTAB_BASE, t->strtab);
    smmu_w(t, SMMU_STRTAB_BASE_CFG, 10);
    smmu_w(t, SMMU_CR0, CR0_ON);
    ste_write(t, 0x100, &ste);
    CMD_CFGI_STE(t, 0x100);
    CMD_CFGI_STE(t, 0x200);
    g_assert_cmpuint(dma(t, t->strtab, DMA_READ, -1), ==, DMA_OK);

    qtest_writel(t->qts, other, 0x00010100);
    qtest_writel(t->qts, port(PCI_PRIMARY_BUS), 0x00020200);
    ste_write(t, 0x100, &bad);
    ste_write(t, 0x200, &ste);
    CMD_CFGI_ALL(t);
    g_assert_cmpuint(dma(t, t->strtab, DMA_READ, -1), ==, DMA_OK);
    ste_write(t, 0x200, &bad);
    CMD_CFGI_STE(t, 0x200);
    g_assert_cmpuint(dma(t, t->strtab, DMA_READ, -1), ==, DMA_ERROR);
    smmu_expect_event(t, "renumbered", &(SmmuEvent) {
        .type = C_BAD_STE, .sid = 0x200 });
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int i = 0; i < ARRAY_SIZE(what); i++) {
        g_autofree char *reset = g_strdup_printf("smmuv3/reset/%s",
                                                 what[i].name);
        g_autofree char *off = g_strdup_printf("smmuv3/smmu-off/%s",
                                               what[i].name);
        g_autofree char *unplug = g_strdup_printf("smmuv3/unplug/%s",
                                                  what[i].name);

        qtest_add_data_func(reset, &what[i], test_reset);
        qtest_add_data_func(off, &what[i], test_smmu_off);
        qtest_add_data_func(unplug, &what[i], test_unplug);
    }
    qtest_add_data_func("smmuv3/reset/failed-invalidation", &what_failed,
                        test_reset);
    qtest_add_func("smmuv3/renumbered", test_renumbered);
    return g_test_run();
}
