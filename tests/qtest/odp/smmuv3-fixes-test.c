/*
 * SMMUv3: behaviours of the base model, each behind one fix of the series
 *
 * Section numbers: Arm IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull

/* A stage 1 stream with one page of RAM mapped at VA; returns the root. */
static uint64_t stage1(SmmuTest *t, Ste *ste, Cd *cd, uint64_t attrs)
{
    uint64_t cdaddr = smmu_pages(t, 1);

    cd->ttb = smmu_pages(t, 1);
    pt_map(t, cd->ttb, VA, smmu_pages(t, 1), attrs);
    cd_write(t, cdaddr, cd);
    ste->config = 5;
    ste->cd = cdaddr;
    ste_write(t, t->sid, ste);
    return cd->ttb;
}

/* 5.2: stage 1 fields of a stage 2 STE are ignored */
static void test_s1_fields_with_stage2(void)
{
    SmmuTest *t = smmu_start(NULL);
    uint64_t root = smmu_pages(t, 1);
    Ste ste = {
        .config = 6, .s1stalld = 1, .s1cdmax = 3, .s2ttb = root,
        .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4, .s2r = true,
    };

    pt_map(t, root, VA, smmu_pages(t, 1), S2_RW);
    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    smmu_quit(t);
}

/* 5.2: S2AA64=0 is ILLEGAL in an SMMU with AArch64 tables only */
static void test_s2aa64_0(void)
{
    SmmuTest *t = smmu_start(NULL);
    Ste ste = {
        .config = 6, .s2aa32 = true, .s2ttb = smmu_pages(t, 1),
        .s2t0sz = 25, .s2sl0 = 1, .s2ps = 4,
    };

    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    smmu_expect_event(t, "S2AA64=0",
                      &(SmmuEvent) { .type = C_BAD_STE, .sid = t->sid });
    smmu_quit(t);
}

/* 5.4: IPS 6 and 7 are capped to OAS */
static void test_ips(void)
{
    for (unsigned ips = 5; ips <= 7; ips++) {
        SmmuTest *t = smmu_start(NULL);
        Ste ste = { 0 };
        Cd cd = { .ips = ips };

        stage1(t, &ste, &cd, PTE_RW_EL0);
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
        smmu_quit(t);
    }
}

/* 6.3.24: FMT goes back to linear */
static void test_fmt_linear_again(void)
{
    SmmuTest *t = smmu_boot(NULL, NULL);
    Ste ste = { .config = 4 };

    smmu_w(t, SMMU_STRTAB_BASE_CFG, 8 | 6 << 6 | 1 << 16);
    smmu_setup(t);
    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VIRT_RAM, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    smmu_quit(t);
}

/* 7.3.11: FetchAddr of F_CD_FETCH */
static void test_cd_fetch_address(void)
{
    SmmuTest *t = smmu_start(NULL);
    Ste ste = { .config = 5, .cd = 0x7fff0000 };

    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    smmu_expect_event(t, "F_CD_FETCH",
                      &(SmmuEvent) { .type = F_CD_FETCH, .sid = t->sid,
                                     .addr2 = 0x7fff0000 });
    smmu_quit(t);
}

/* 3.4.3: each half of the address space has its TBI bit */
static void test_tbi(void)
{
    SmmuTest *t = smmu_start(NULL);
    uint64_t cdaddr = smmu_pages(t, 1), page = smmu_pages(t, 1);
    Cd cd = {
        .tbi0 = true, .ttb = smmu_pages(t, 1), .ttb1 = smmu_pages(t, 1),
    };
    Ste ste = { .config = 5, .cd = cdaddr };

    pt_map(t, cd.ttb, VA, page, PTE_RW_EL0);
    pt_map(t, cd.ttb1, VA, page, PTE_RW_EL0);
    cd_write(t, cdaddr, &cd);
    ste_write(t, t->sid, &ste);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(dma(t, 0x5aull << 56 | VA, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(dma(t, ~0ull << 39 | VA, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(smmu_events(t), ==, 0);
    /* TBI1 is off */
    g_assert_cmpuint(dma(t, (~0ull << 39 | VA) ^ 0x5aull << 56, DMA_READ, -1),
                     ==, DMA_ERROR);
    g_assert_cmpuint(smmu_events(t), ==, 1);
    smmu_quit(t);
}

/* 7.4: a full queue loses events and toggles OVFLG once */
static void test_eventq_overflow(void)
{
    SmmuTest *t = smmu_boot(NULL, NULL);
    Ste ste = { .invalid = true };
    SmmuEvent e;

    smmu_setup_sized(t, 1, 4, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    ste_write(t, t->sid, &ste);
    for (int i = 0; i < 6; i++) { /* an even number is lost */
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    }
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, Q_OVF | 2);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, 0);

    /* an overflow that is not acknowledged keeps no event out */
    smmu_pop_event(t, &e);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, Q_OVF | 3);

    /* acknowledged, the next loss toggles it back */
    smmu_w(t, SMMU_EVENTQ_CONS, Q_OVF | 1);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, 3);
    smmu_quit(t);
}

/* 7.2: an event that cannot be written is EVENTQ_ABT_ERR */
static void test_eventq_abort(void)
{
    SmmuTest *t = smmu_start(NULL);
    Ste ste = { .invalid = true };

    ste_write(t, t->sid, &ste);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN);
    smmu_wq(t, SMMU_EVENTQ_BASE, 0x7fff0000 | 6);
    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_CMDQEN | CR0_EVENTQEN);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_EVENTQ_ABT);
    g_assert_cmphex(smmu_r(t, SMMU_EVENTQ_PROD), ==, 0);
    smmu_quit(t);
}

/* A queue at the SMMU's own registers: external abort, and no deadlock */
static void test_queue_in_registers(void)
{
    SmmuTest *t = smmu_start(NULL);
    Ste ste = { .invalid = true };

    ste_write(t, t->sid, &ste);
    smmu_wq(t, SMMU_EVENTQ_BASE, VIRT_SMMU + 0x80);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_EVENTQ_ABT);
    smmu_w(t, SMMU_GERRORN, GERROR_EVENTQ_ABT);

    smmu_wq(t, SMMU_CMDQ_BASE, VIRT_SMMU);
    smmu_w(t, SMMU_CMDQ_PROD, 1);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_EVENTQ_ABT |
                    GERROR_CMDQ);
    g_assert_cmpuint(smmu_cmd_error(t), ==, CERROR_ABT);
    smmu_quit(t);
}

/* 3.9, 5.4, Armv8-A D8.4: who may do what */
static void test_permissions(void)
{
    static const struct {
        const char *name;
        uint64_t attrs;
        uint32_t ctl;
        bool pasid, ok;
        Cd cd;
    } row[] = {
        { "EL0 reads EL0 page", PTE_RW_EL0, DMA_READ, false, true },
        { "EL0 writes EL0 page", PTE_RW_EL0, DMA_WRITE, false, true },
        { "EL0 reads EL1 page", PTE_PAGE | PTE_AF, DMA_READ, false, false },
        { "EL0 writes EL1 page", PTE_PAGE | PTE_AF, DMA_WRITE, false, false },
        { "EL0 reads RO page", PTE_RW_EL0 | PTE_RO, DMA_READ, false, true },
        { "EL0 writes RO page", PTE_RW_EL0 | PTE_RO, DMA_WRITE, false, false },
        { "EL0 access flag", PTE_PAGE | PTE_EL0, DMA_READ, false, false },
        { "EL1 reads EL1 page", PTE_PAGE | PTE_AF, DMA_READ | DMA_PRIV, true,
          true },
        { "EL1 writes EL1 page", PTE_PAGE | PTE_AF, DMA_WRITE | DMA_PRIV, true,
          true },
        { "EL1 writes RO page", PTE_PAGE | PTE_AF | PTE_RO,
          DMA_WRITE | DMA_PRIV, true, false },
        { "EL1 reads EL0 page", PTE_RW_EL0, DMA_READ | DMA_PRIV, true, true },
        { "EL1 reads EL0 page, PAN", PTE_RW_EL0, DMA_READ | DMA_PRIV, true,
          false, { .pan = true } },
        { "EL0 fetches", PTE_RW_EL0, DMA_READ | DMA_INST, true, true },
        { "EL0 fetches UXN", PTE_RW_EL0 | PTE_UXN, DMA_READ | DMA_INST, true,
          false },
        { "EL0 fetches writable, WXN", PTE_RW_EL0, DMA_READ | DMA_INST, true,
          false, { .wxn = true } },
        { "EL0 fetches RO, WXN", PTE_RW_EL0 | PTE_RO, DMA_READ | DMA_INST,
          true, true, { .wxn = true } },
        { "EL1 fetches", PTE_PAGE | PTE_AF | PTE_RO,
          DMA_READ | DMA_INST | DMA_PRIV, true, true },
        { "EL1 fetches PXN", PTE_PAGE | PTE_AF | PTE_RO | PTE_PXN,
          DMA_READ | DMA_INST | DMA_PRIV, true, false },
        { "EL1 fetches EL0-writable", PTE_RW_EL0,
          DMA_READ | DMA_INST | DMA_PRIV, true, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_start("ssidsize=4");
        Ste ste = { .s1cdmax = 1, .s1dss = 2 };
        Cd cd = row[i].cd;
        bool wr = row[i].ctl & DMA_WRITE;
        bool inst = row[i].ctl & DMA_INST;
        unsigned ssid = row[i].pasid ? 1 : 0;

        stage1(t, &ste, &cd, row[i].attrs);
        cd_write(t, ste.cd + 64, &cd);
        pasid_enable(t);
        g_assert_cmpuint(dma(t, VA, row[i].ctl, row[i].pasid ? 1 : -1), ==,
                         row[i].ok ? DMA_OK : DMA_ERROR);
        if (row[i].ok) {
            g_assert_cmpuint(smmu_events(t), ==, 0);
        } else {
            smmu_expect_event(t, row[i].name, &(SmmuEvent) {
                .type = row[i].attrs & PTE_AF ? F_PERMISSION : F_ACCESS,
                .sid = t->sid, .ssv = row[i].pasid, .ssid = ssid,
                .rnw = !wr, .ind = inst, .pnu = !!(row[i].ctl & DMA_PRIV),
                .class = CLASS_IN, .addr = VA,
            });
        }
        smmu_quit(t);
    }
}

/* A page becomes writable: the TLB's old entry does not deny the write */
static void test_permission_rewalk(void)
{
    SmmuTest *t = smmu_start(NULL);
    Ste ste = { 0 };
    Cd cd = { 0 };
    uint64_t slot = pt_slot(t, stage1(t, &ste, &cd, PTE_RW_EL0 | PTE_RO), VA);

    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, -1), ==, DMA_ERROR);
    qtest_writeq(t->qts, slot, qtest_readq(t->qts, slot) & ~(uint64_t)PTE_RO);
    g_assert_cmpuint(dma(t, VA, DMA_WRITE, -1), ==, DMA_OK);
    smmu_quit(t);
}

/* A denied page of a table that APTable restricts, and HAD undoing it */
static void test_hierarchical(void)
{
    for (int had = 0; had < 2; had++) {
        SmmuTest *t = smmu_start(NULL);
        Ste ste = { 0 };
        Cd cd = { .had = had };
        uint64_t root = stage1(t, &ste, &cd, PTE_RW_EL0);
        uint64_t l1 = root + (VA >> 30) * 8;

        /* APTable[1]: no writes below */
        qtest_writeq(t->qts, l1, qtest_readq(t->qts, l1) | 2ull << 61);
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
        g_assert_cmpuint(dma(t, VA, DMA_WRITE, -1), ==,
                         had ? DMA_OK : DMA_ERROR);
        /* nothing there comes before no permission */
        g_assert_cmpuint(smmu_events(t), ==, !had);
        smmu_quit(t);
    }
}

/* 6.3.6: OAS is a property, ID register and behaviour */
static void test_oas(void)
{
    static const struct { unsigned bits, field; } oas[] = {
        { 32, 0 }, { 36, 1 }, { 40, 2 }, { 42, 3 }, { 44, 4 }, { 48, 5 },
        { 52, 6 },
    };

    for (int i = 0; i < ARRAY_SIZE(oas); i++) {
        g_autofree char *opt = g_strdup_printf("oas=%u", oas[i].bits);
        SmmuTest *t = smmu_start(opt);
        Ste ste = { 0 };
        Cd cd = { .ips = 5 };
        uint64_t root = stage1(t, &ste, &cd, PTE_RW_EL0);

        g_assert_cmphex(smmu_r(t, SMMU_IDR5) & 7, ==, oas[i].field);
        if (oas[i].bits < 48) {
            pt_map(t, root, VA, 1ull << oas[i].bits, PTE_RW_EL0);
            CMD_TLBI_ALL(t);
            g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
            smmu_expect_event(t, opt, &(SmmuEvent) {
                .type = F_ADDR_SIZE, .sid = t->sid, .rnw = true,
                .class = CLASS_IN, .addr = VA,
            });
        }
        smmu_quit(t);
    }
}

/* 6.3.12: invalid StreamIDs are recorded where CR2.RECINVSID is set */
static void test_recinvsid(void)
{
    for (int rec = 0; rec < 2; rec++) {
        SmmuTest *t = smmu_start(NULL);

        smmu_w(t, SMMU_STRTAB_BASE_CFG, 2);
        smmu_w(t, SMMU_CR2, rec ? CR2_RECINVSID : 0);
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
        if (rec) {
            smmu_expect_event(t, "RECINVSID", &(SmmuEvent) {
                .type = C_BAD_STREAMID, .sid = t->sid,
            });
        } else {
            g_assert_cmpuint(smmu_events(t), ==, 0);
        }
        smmu_quit(t);
    }
}

/* 4.1.3: commands of features that are not there are illegal */
static void test_illegal_commands(void)
{
    static const uint64_t ops[] = { 0x40, 0x41, 0x44, 0x45 };
    SmmuTest *t = smmu_start(NULL);

    for (int i = 0; i < ARRAY_SIZE(ops); i++) {
        smmu_cmd_refused(t, ops[i], 0, CERROR_ILL);
    }
    smmu_quit(t);
}

/* 6.3.4, 4.4: without range invalidation the fields of a range do nothing */
static void test_ril(void)
{
    for (int ril = 0; ril < 2; ril++) {
        SmmuTest *t = smmu_start(ril ? "ril=on" : "ril=off");
        uint64_t other = smmu_pages(t, 1);
        Ste ste = { 0 };
        Cd cd = { .asid = 7 };
        uint64_t root = stage1(t, &ste, &cd, PTE_RW_EL0 | PTE_NG);

        g_assert_cmphex(smmu_r(t, SMMU_IDR3) >> 10 & 1, ==, ril);
        qtest_writeq(t->qts, other, 0x600d);
        pt_map(t, root, VA + 4096, smmu_pages(t, 1), PTE_RW_EL0 | PTE_NG);
        for (int n = 0; n < 2; n++) {
            g_assert_cmpuint(dma(t, VA + n * 4096, DMA_READ, -1), ==, DMA_OK);
            pt_map(t, root, VA + n * 4096, other, PTE_RW_EL0 | PTE_NG);
        }
        /* NH_VA, 4KB, two pages, level 3 */
        smmu_cmd(t, 0x12 | 1 << 12 | 7ull << 48, VA | 1 << 10 | 3 << 8);
        CMD_SYNC(t);
        for (int n = 0; n < 2; n++) {
            g_assert_cmpuint(dma(t, VA + n * 4096, DMA_READ, -1), ==, DMA_OK);
            g_assert_cmphex(qtest_readq(t->qts, t->mem), ==,
                            n == 0 || ril ? 0x600d : 0);
        }
        smmu_quit(t);
    }
}

/* 4.4: a global entry is every ASID's for an invalidation by address */
static void test_global_entry(void)
{
    for (int range = 0; range < 2; range++) {
        SmmuTest *t = smmu_start(NULL);
        uint64_t other = smmu_pages(t, 1);
        Ste ste = { 0 };
        Cd cd = { .asid = 7 };
        uint64_t root = stage1(t, &ste, &cd, PTE_RW_EL0);

        qtest_writeq(t->qts, other, 0x600d);
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
        pt_map(t, root, VA, other, PTE_RW_EL0);
        smmu_cmd(t, 0x12 | 8ull << 48, VA | (range ? 1 << 10 | 3 << 8 : 0));
        CMD_SYNC(t);
        g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
        g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0x600d);
        smmu_quit(t);
    }
}

/*
 * What was given to somebody who keeps it is unmapped by what invalidates it:
 * a global page by any ASID, all of a VMID by TLBI_NH_ALL, which a machine with
 * both stages did not tell of at all
 */
static void test_notifiers(void)
{
    SmmuTest *t = smmu_start(NULL);
    Ste ste = { 0 };
    Cd cd = { .asid = 7 };
    uint64_t root = stage1(t, &ste, &cd, PTE_RW_EL0 | PTE_NG);
    unsigned n = 0;
    struct { uint64_t lo, hi; bool heard; } row[] = {
        { 0x12 | 7ull << 48, VA, true },
        { 0x12 | 8ull << 48, VA, false },
        { 0x13, VA, true },
        { 0x11 | 7ull << 48, 0, true },
        { 0x10, 0, true },
        /* from here on the page is global */
        { 0x12 | 8ull << 48, VA, true },
        { 0x10, 0, true },
        /* nobody has it any more */
        { 0x12 | 8ull << 48, VA, false },
        { 0x30, 0, true },
    };

    x_ctl(t, X_NOTIFIER);
    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        if (i == 5) {
            pt_map(t, root, VA, smmu_pages(t, 1), PTE_RW_EL0);
        }
        if (i <= 5) {
            g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_OK);
        }
        smmu_cmd(t, row[i].lo, row[i].hi);
        n += row[i].heard;
        if (qtest_readl(t->qts, t->regs + 0xb0) != n) {
            g_error("row %d: %u notifications, not %u", i,
                    qtest_readl(t->qts, t->regs + 0xb0), n);
        }
        if (row[i].heard && row[i].hi) {
            g_assert_cmphex(qtest_readl(t->qts, t->regs + 0xb4), ==, VA);
        }
    }
    smmu_quit(t);
}

/* With the features off the ID registers are those of QEMU 10.2 */
static void test_id_registers_unchanged(void)
{
    SmmuTest *t = smmu_start(NULL);

    g_assert_cmphex(smmu_r(t, SMMU_IDR0), ==, 0x0d44101b);
    g_assert_cmphex(smmu_r(t, SMMU_IDR1), ==, 0x02730010);
    g_assert_cmphex(smmu_r(t, SMMU_IDR3), ==, 0x00001414);
    g_assert_cmphex(smmu_r(t, SMMU_IDR5), ==, 0x00000074);
    g_assert_cmphex(smmu_r(t, SMMU_AIDR), ==, 1);
    smmu_w(t, SMMU_PRIQ_BASE, 0x1234);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_BASE), ==, 0);
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/fixes/s1-fields-with-stage2",
                   test_s1_fields_with_stage2);
    qtest_add_func("smmuv3/fixes/s2aa64-0", test_s2aa64_0);
    qtest_add_func("smmuv3/fixes/ips", test_ips);
    qtest_add_func("smmuv3/fixes/fmt-linear-again", test_fmt_linear_again);
    qtest_add_func("smmuv3/fixes/cd-fetch-address", test_cd_fetch_address);
    qtest_add_func("smmuv3/fixes/tbi", test_tbi);
    qtest_add_func("smmuv3/fixes/eventq-overflow", test_eventq_overflow);
    qtest_add_func("smmuv3/fixes/eventq-abort", test_eventq_abort);
    qtest_add_func("smmuv3/fixes/queue-in-registers", test_queue_in_registers);
    qtest_add_func("smmuv3/fixes/permissions", test_permissions);
    qtest_add_func("smmuv3/fixes/permission-rewalk", test_permission_rewalk);
    qtest_add_func("smmuv3/fixes/hierarchical", test_hierarchical);
    qtest_add_func("smmuv3/fixes/oas", test_oas);
    qtest_add_func("smmuv3/fixes/recinvsid", test_recinvsid);
    qtest_add_func("smmuv3/fixes/illegal-commands", test_illegal_commands);
    qtest_add_func("smmuv3/fixes/ril", test_ril);
    qtest_add_func("smmuv3/fixes/global-entry", test_global_entry);
    qtest_add_func("smmuv3/fixes/notifiers", test_notifiers);
    qtest_add_func("smmuv3/fixes/id-registers", test_id_registers_unchanged);
    return g_test_run();
}
