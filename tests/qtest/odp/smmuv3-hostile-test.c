/*
 * SMMUv3: tables, queues and answers as only a hostile guest writes them
 *
 * What the architecture says of each, recorded, and nothing lost. Tables
 * with fields out of range have their tests where the feature has
 * (docs/specs/smmuv3.md lists them). Section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define NOWHERE 0x7fff0000ull       /* no memory and no device */
#define VA 0x12345000ull
#define SSID 5
/* the VA whose index is 5 at each level, for tables that map themselves */
#define SELF 5
#define SELF_VA ((uint64_t)SELF << 30 | SELF << 21 | SELF << 12)

static SmmuTest *start(void)
{
    SmmuTest *t = smmu_start("stage=nested,ssidsize=8,ats=on,pri=on,"
                             "stall-model=stall");

    pasid_enable(t);
    return t;
}

static void refused(SmmuTest *t, const char *name, SmmuEvent want)
{
    want.sid = t->sid;
    want.ssv = true;
    want.ssid = SSID;
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_ERROR);
    smmu_expect_event(t, name, &want);
}

static void stream_table(SmmuTest *t, uint64_t base, uint32_t cfg)
{
    uint32_t cr0 = smmu_r(t, SMMU_CR0);

    smmu_w(t, SMMU_CR0, cr0 & ~CR0_SMMUEN);
    smmu_wq(t, SMMU_STRTAB_BASE, base);
    smmu_w(t, SMMU_STRTAB_BASE_CFG, cfg);
    smmu_w(t, SMMU_CR0, cr0);
    CMD_CFGI_ALL(t);
    CMD_SYNC(t);
}

/* 7.3.4, 7.3.11, 7.3.12: each level's fetch, with its address */
static void test_tables_unmapped(void)
{
    enum { TWO_LEVEL = 8 | 6 << 6 | 1 << 16 };
    SmmuTest *t = start();
    uint64_t l1 = smmu_pages(t, 1), l2 = smmu_pages(t, 1);
    uint64_t cds = smmu_pages(t, 1);
    Cd cd = { .ttb = NOWHERE };
    Ste ste = { .config = 5, .cd = NOWHERE, .s1cdmax = 3, .s1dss = 2 };
    uint64_t strtab = t->strtab;

    stream_table(t, NOWHERE, 8);
    refused(t, "stream table", (SmmuEvent) {
        .type = F_STE_FETCH, .addr2 = NOWHERE + t->sid * 64 });

    stream_table(t, NOWHERE, TWO_LEVEL);
    refused(t, "L1STD", (SmmuEvent) {
        .type = F_STE_FETCH, .addr2 = NOWHERE + (t->sid >> 6) * 8 });

    qtest_writeq(t->qts, l1 + (t->sid >> 6) * 8, NOWHERE | 7);
    stream_table(t, l1, TWO_LEVEL);
    refused(t, "STE by L1STD", (SmmuEvent) {
        .type = F_STE_FETCH, .addr2 = NOWHERE + (t->sid & 63) * 64 });

    qtest_writeq(t->qts, l1 + (t->sid >> 6) * 8, l2 | 7);
    t->strtab = l2 - (t->sid & ~63u) * 64;
    ste_write(t, t->sid, &ste);
    stream_table(t, l1, TWO_LEVEL);
    refused(t, "CD", (SmmuEvent) {
        .type = F_CD_FETCH, .addr2 = NOWHERE + SSID * 64 });

    ste.s1fmt = 1;
    ste.s1cdmax = 8;
    ste_write(t, t->sid, &ste);
    CMD_CFGI_STE(t, t->sid);
    refused(t, "L1CD", (SmmuEvent) {
        .type = F_CD_FETCH, .addr2 = NOWHERE });

    t->strtab = strtab;
    stream_table(t, strtab, 8);
    ste = (Ste) { .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2 };
    cd_write(t, cds + SSID * 64, &cd);
    ste_write(t, t->sid, &ste);
    CMD_CFGI_ALL(t);
    refused(t, "stage 1 table", (SmmuEvent) {
        .type = F_WALK_EABT, .rnw = true, .class = CLASS_TT, .addr = VA,
        .addr2 = NOWHERE + (VA >> 30) * 8 });
    smmu_quit(t);
}

/* 7.3.12: the same of stage 2 */
static void test_s2_table_unmapped(void)
{
    SmmuTest *t = start();
    Ste ste = {
        .config = 6, .s2ttb = NOWHERE, .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4,
        .s2r = true,
    };
    SmmuEvent e;

    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    g_assert_cmpuint(smmu_events(t), ==, 1);
    smmu_pop_event(t, &e);
    g_assert_cmpuint(e.type, ==, F_WALK_EABT);
    g_assert_true(e.s2);
    g_assert_cmphex(e.addr, ==, VA);
    g_assert_cmphex(e.addr2, ==, NOWHERE + (VA >> 30) * 8);
    smmu_quit(t);
}

/* Tables that refer to themselves end, as what they are at each level */
static void test_tables_self(void)
{
    SmmuTest *t = start();
    uint64_t root = smmu_pages(t, 1), cds = smmu_pages(t, 1);
    uint64_t l1 = smmu_pages(t, 1);
    Cd cd = { .ttb = root };
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2 };
    uint64_t desc;

    /* a translation table: table, table, page */
    cd_write(t, cds + SSID * 64, &cd);
    ste_write(t, t->sid, &ste);
    qtest_writeq(t->qts, root + SELF * 8, root | PTE_TABLE);
    g_assert_cmpuint(dma(t, SELF_VA, DMA_READ, SSID), ==, DMA_ERROR);
    smmu_expect_event(t, "stage 1, no AF", &(SmmuEvent) {
        .type = F_ACCESS, .sid = t->sid, .ssv = true, .ssid = SSID,
        .rnw = true, .class = CLASS_IN, .addr = SELF_VA });
    desc = root | PTE_RW_EL0;
    qtest_writeq(t->qts, root + SELF * 8, desc);
    g_assert_cmpuint(dma(t, SELF_VA + SELF * 8, DMA_READ, SSID), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, desc);

    /* stage 2, and stage 1 through it at the same addresses */
    desc = root | S2_RW;
    qtest_writeq(t->qts, root + SELF * 8, desc);
    ste = (Ste) {
        .config = 6, .s2ttb = root, .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4,
        .s2r = true,
    };
    ste_write(t, t->sid, &ste);
    CMD_CFGI_ALL(t);
    g_assert_cmpuint(dma(t, SELF_VA + SELF * 8, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, desc);
    ste.config = 7;
    ste.cd = SELF_VA;           /* the CD is the table, no CD at all */
    ste_write(t, t->sid, &ste);
    CMD_CFGI_ALL(t);
    g_assert_cmpuint(dma(t, SELF_VA, DMA_READ, -1), ==, DMA_ERROR);
    smmu_expect_event(t, "nested", &(SmmuEvent) {
        .type = C_BAD_CD, .sid = t->sid });

    /* a CD table whose first level is its second */
    ste = (Ste) {
        .config = 5, .cd = l1, .s1cdmax = 8, .s1fmt = 1, .s1dss = 2,
    };
    qtest_writeq(t->qts, l1, l1 | 1);
    ste_write(t, t->sid, &ste);
    CMD_CFGI_ALL(t);
    refused(t, "CD table", (SmmuEvent) { .type = C_BAD_CD });

    /* a stream table likewise */
    qtest_writeq(t->qts, l1, l1 | 7);
    stream_table(t, l1, 8 | 6 << 6 | 1 << 16);
    refused(t, "stream table", (SmmuEvent) { .type = C_BAD_STE });
    smmu_quit(t);
}

/* 6.3.26, 6.3.28: LOG2SIZE beyond IDR1 and indexes beyond LOG2SIZE */
static void test_queue_size(void)
{
    SmmuTest *t = start();
    Ste bad = { .invalid = true };

    /* sizes are cut to what IDR1 has: the first entry is the first */
    smmu_w(t, SMMU_CR0, 0);
    smmu_wq(t, SMMU_CMDQ_BASE, t->cmdq | 31);
    smmu_wq(t, SMMU_EVENTQ_BASE, t->eventq | 31);
    smmu_wq(t, SMMU_PRIQ_BASE, t->priq | 31);
    smmu_w(t, SMMU_CMDQ_PROD, 0);
    smmu_w(t, SMMU_CMDQ_CONS, 0);
    smmu_w(t, SMMU_EVENTQ_PROD, 0);
    smmu_w(t, SMMU_EVENTQ_CONS, 0);
    smmu_w(t, SMMU_CR0,
           CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN);
    t->cmdq_log2 = t->eventq_log2 = 19;
    ste_write(t, t->sid, &bad);
    CMD_SYNC(t);
    g_assert_cmphex(smmu_r(t, SMMU_CMDQ_CONS), ==, 1);
    refused(t, "event queue", (SmmuEvent) { .type = C_BAD_STE });
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, 1);

    /* a producer far beyond what was written: the first zero is illegal */
    qtest_memset(t->qts, t->cmdq + 16, 0, 4080);
    smmu_w(t, SMMU_CMDQ_PROD, 0x7fffffff);
    g_assert_cmpuint(smmu_cmd_error(t), ==, CERROR_ILL);
    g_assert_cmphex(smmu_r(t, SMMU_CMDQ_CONS) & 0xfffff, ==, 1);

    /* a consumer that is nowhere near the producer: full or not, no more */
    smmu_w(t, SMMU_EVENTQ_CONS, 0x7ff01234);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_ERROR);

    /* size 0: one entry */
    smmu_w(t, SMMU_CR0, 0);
    smmu_w(t, SMMU_GERRORN, smmu_r(t, SMMU_GERROR));
    smmu_wq(t, SMMU_CMDQ_BASE, t->cmdq);
    smmu_wq(t, SMMU_EVENTQ_BASE, t->eventq);
    smmu_w(t, SMMU_CMDQ_PROD, 0);
    smmu_w(t, SMMU_CMDQ_CONS, 0);
    smmu_w(t, SMMU_EVENTQ_PROD, 0);
    smmu_w(t, SMMU_EVENTQ_CONS, 0);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    t->cmdq_log2 = t->eventq_log2 = 0;
    for (int i = 0; i < 3; i++) {
        CMD_SYNC(t);
        refused(t, "one entry", (SmmuEvent) { .type = C_BAD_STE });
    }
    smmu_quit(t);
}

/* 7.1, 7.2, 8: queues where nothing is */
static void test_queue_address(void)
{
    static const uint64_t where[] = { NOWHERE, VIRT_SMMU, 0xfffffffff000ull };

    for (int i = 0; i < ARRAY_SIZE(where); i++) {
        SmmuTest *t = start();
        Ste bad = { .invalid = true };
        uint32_t on = CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN;

        ste_write(t, t->sid, &bad);
        smmu_w(t, SMMU_CR0, 0);
        smmu_wq(t, SMMU_EVENTQ_BASE, where[i] | 4);
        smmu_wq(t, SMMU_PRIQ_BASE, where[i] | 4);
        smmu_w(t, SMMU_CR0, on);
        pri_enable(t, 4);
        ats_enable(t, true);
        g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_ERROR);
        g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_EVENTQ_ABT);
        qtest_writel(t->qts, t->regs + 0x90, 1 << 16 | 1 << 18 | 7);
        qtest_clock_step(t->qts, 1000);
        g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==,
                        GERROR_EVENTQ_ABT | GERROR_PRIQ_ABT);
        /* and is answered all the same: a failure */
        g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0x98), ==, 1);
        g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0x9c) >> 12 & 3, ==,
                         2);

        smmu_w(t, SMMU_CR0, on & ~CR0_CMDQEN);
        smmu_wq(t, SMMU_CMDQ_BASE, where[i] | 4);
        smmu_w(t, SMMU_CMDQ_PROD, 1);
        smmu_w(t, SMMU_CMDQ_CONS, 0);
        smmu_w(t, SMMU_CR0, on);
        g_assert_cmphex(smmu_r(t, SMMU_GERROR) & GERROR_CMDQ, ==,
                        GERROR_CMDQ);
        g_assert_cmpuint(smmu_cmd_error(t), ==, CERROR_ABT);
        smmu_quit(t);
    }
}

/* 4.6: answers to what was never asked are valid and do nothing */
static void test_answers_for_nothing(void)
{
    SmmuTest *t = start();
    Ste bypass = { .config = 4 };
    static const uint32_t sids[] = { 0x20, 0x21, 0xff, 0xffff, 0xffffffff };

    for (int i = 0; i < ARRAY_SIZE(sids); i++) {
        for (unsigned stag = 0; stag < 0x10000; stag += 0x3333) {
            CMD_RESUME(t, sids[i], stag, RESUME_RETRY);
            CMD_RESUME(t, sids[i], stag, RESUME_ABORT);
            CMD_RESUME(t, sids[i], stag, RESUME_TERM);
        }
        CMD_STALL_TERM(t, sids[i]);
        for (unsigned resp = 0; resp < 3; resp++) {
            smmu_cmd(t, cmd_ssid(0x41, sids[i], 0xfffff), resp << 12 | 0x1ff);
            smmu_cmd(t, cmd_ssid(0x41, sids[i], -1), resp << 12);
        }
        smmu_cmd(t, cmd_ssid(0x40, sids[i], 0xfffff), 52);
        CMD_SYNC(t);
    }
    g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0x98), ==, 0);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    ste_write(t, t->sid, &bypass);
    CMD_CFGI_ALL(t);
    g_assert_cmpuint(dma(t, t->strtab, DMA_READ, -1), ==, DMA_OK);
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/hostile/tables-unmapped", test_tables_unmapped);
    qtest_add_func("smmuv3/hostile/s2-table-unmapped",
                   test_s2_table_unmapped);
    qtest_add_func("smmuv3/hostile/tables-self", test_tables_self);
    qtest_add_func("smmuv3/hostile/queue-size", test_queue_size);
    qtest_add_func("smmuv3/hostile/queue-address", test_queue_address);
    qtest_add_func("smmuv3/hostile/answers-for-nothing",
                   test_answers_for_nothing);
    return g_test_run();
}
