/*
 * SMMUv3 in the virt machine: description to the guest, migration
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5

/* Is @name a property name in the device tree at the start of RAM? */
static bool dtb_has(SmmuTest *t, const char *name)
{
    uint32_t head[9];
    g_autofree char *strings = NULL;
    size_t len;

    qtest_memread(t->qts, VIRT_RAM, head, sizeof(head));
    g_assert_cmphex(GUINT32_FROM_BE(head[0]), ==, 0xd00dfeed);
    len = GUINT32_FROM_BE(head[8]);
    strings = g_malloc(len);
    qtest_memread(t->qts, VIRT_RAM + GUINT32_FROM_BE(head[3]), strings, len);
    return memmem(strings, len, name, strlen(name) + 1);
}

static void test_device_tree(void)
{
    static const struct { const char *opts; bool ats, stall; } row[] = {
        { NULL, false, false },
        { "ats=on", true, false },
        { "stall-model=stall", false, true },
        { "stall-model=forced,ssidsize=8", false, false },
        { "ats=on,pri=on,stall-model=stall", true, true },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_boot(row[i].opts, NULL);

        g_assert_cmpint(dtb_has(t, "ats-supported"), ==, row[i].ats);
        g_assert_cmpint(dtb_has(t, "dma-can-stall"), ==, row[i].stall);
        g_assert_true(dtb_has(t, "iommu-map"));
        smmu_quit(t);
    }
}

/*
 * Under ACPI a function that can stall has a _DSD in the DSDT, also behind a
 * root port; without the property nothing says so.
 */
static void test_dsdt(void)
{
    static const struct { const char *opts; unsigned devices; } row[] = {
        { "ats=on", 0 },
        { "stall-model=forced", 0 },
        { "stall-model=stall", 2 },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = smmu_boot_raw(row[i].opts, "addr=4 "
                                    "-device pcie-root-port,id=rp,addr=3 "
                                    "-device pcie-exerciser,bus=rp");
        size_t size;
        g_autofree uint8_t *tables = fw_cfg_file(t->qts, "etc/acpi/tables",
                                                 &size);
        const uint8_t *at = tables;
        unsigned n = 0;

        g_assert_cmpint(memcmp(tables, "DSDT", 4), ==, 0);
        while ((at = memmem(at, tables + size - at, "dma-can-stall", 14))) {
            at++;
            n++;
        }
        g_assert_cmpuint(n, ==, row[i].devices);
        smmu_quit(t);
    }
}

/*
 * The same properties at each place where a user would set them; without
 * them ID registers are those of QEMU 10.2.2.
 */
static void test_properties(void)
{
    enum { PLATFORM_BUS = 0x0c000000 };
    static const struct { const char *args; uint64_t smmu; bool on; } row[] = {
        { "-machine virt,iommu=smmuv3,smmuv3.ssidsize=20,smmuv3.ats=on,"
          "smmuv3.pri=on,smmuv3.stall-model=forced,smmuv3.stall-max=77,"
          "smmuv3.oas=48,smmuv3.httu=ad", VIRT_SMMU, true },
        { "-machine virt,iommu=smmuv3 -global arm-smmuv3.ssidsize=20 "
          "-global arm-smmuv3.ats=on -global arm-smmuv3.pri=on "
          "-global arm-smmuv3.stall-model=forced "
          "-global arm-smmuv3.stall-max=77 -global arm-smmuv3.oas=48 "
          "-global arm-smmuv3.httu=ad", VIRT_SMMU, true },
        { "-machine virt -device arm-smmuv3,primary-bus=pcie.0,ssidsize=20,"
          "ats=on,pri=on,stall-model=forced,stall-max=77,oas=48,httu=ad",
          PLATFORM_BUS, true },
        { "-machine virt,iommu=smmuv3", VIRT_SMMU, false },
        { "-machine virt -device arm-smmuv3,primary-bus=pcie.0",
          PLATFORM_BUS, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        g_autofree char *args = g_strdup_printf("%s -cpu max -m 256 -nic none "
                                                "-display none", row[i].args);
        QTestState *qts = qtest_init(args);
        uint32_t idr0 = qtest_readl(qts, row[i].smmu + SMMU_IDR0);
        uint32_t idr1 = qtest_readl(qts, row[i].smmu + SMMU_IDR1);
        uint32_t idr5 = qtest_readl(qts, row[i].smmu + SMMU_IDR5);
        uint32_t bits = 3 << 6 | 1 << 10 | 1 << 16 | 1 << 19 | 3 << 24;

        g_assert_cmphex(idr0 & bits, ==, row[i].on
                        ? 2 << 6 | 1 << 10 | 1 << 16 | 1 << 19 | 2 << 24
                        : 1 << 24);
        g_assert_cmphex(idr1 & 0xffff, ==, row[i].on
                        ? 20 << 6 | 19 << 11 | (idr1 & 0x3f)
                        : (idr1 & 0x3f));
        g_assert_cmphex(idr5 & 0xffff0007, ==, row[i].on ? 77 << 16 | 5 : 4);
        qtest_quit(qts);
    }
}

/* Registers and queues go over; what is stalled is issued again. */
static void test_migration(void)
{
    const char *opts = "ssidsize=8,ats=on,pri=on,stall-model=stall,msi=on";
    SmmuTest *t = smmu_start(opts);
    uint64_t cds = smmu_pages(t, 1), root = smmu_pages(t, 1);
    uint64_t page = smmu_pages(t, 1);
    Cd cd = { .ttb = root, .s = true };
    Ste ste = { .config = 5, .cd = cds, .s1cdmax = 3, .s1dss = 2, .eats = 1 };
    SmmuEvent e, e2;

    smmu_w(t, SMMU_CR0, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN);
    smmu_w(t, SMMU_PRIQ_IRQ_CFG1, 0x1357);
    smmu_wq(t, SMMU_EVENTQ_IRQ_CFG0, page + 0x40);
    smmu_w(t, SMMU_EVENTQ_IRQ_CFG0 + 8, 0x2468);
    smmu_w(t, SMMU_IRQ_CTRL, 4);
    smmu_w(t, SMMU_PRIQ_CONS, 5);
    cd_write(t, cds + SSID * 64, &cd);
    ste_write(t, t->sid, &ste);
    pasid_enable(t);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_BUSY);
    smmu_pop_event(t, &e);
    g_assert_true(e.stall);

    smmu_migrate(t, opts);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_IRQ_CFG1), ==, 0x1357);
    g_assert_cmphex(smmu_r(t, SMMU_PRIQ_CONS), ==, 5);
    g_assert_cmphex(smmu_r(t, SMMU_CR0), ==,
                    CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN);

    /* issued again, with a STAG that is not the one that is still owed */
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    smmu_pop_event(t, &e2);
    g_assert_true(e2.stall);
    g_assert_cmphex(e2.addr, ==, VA);
    g_assert_cmphex(e2.stag, !=, e.stag);

    /* the answer to the old one is valid and does nothing */
    CMD_RESUME(t, t->sid, e.stag, RESUME_ABORT);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_BUSY);
    pt_map(t, root, VA, page, PTE_RW_EL0);
    qtest_writeq(t->qts, page, 0x600d);
    CMD_RESUME(t, t->sid, e2.stag, RESUME_RETRY);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0x600d);
    smmu_quit(t);
}

/* A CMD_SYNC that waits for an invalidation goes on at the destination. */
static void test_migration_parked(void)
{
    const char *opts = "ssidsize=8,ats=on";
    SmmuTest *t = smmu_start(opts);

    x_ctl(t, X_INV_HOLD);
    smmu_cmd(t, 0x40 | (uint64_t)t->sid << 32, 52);
    smmu_cmd_raw(t, 0x46, 0);
    g_assert_false(smmu_cmdq_idle(t));
    smmu_migrate(t, opts);
    qtest_clock_step(t->qts, 1000000);
    g_assert_true(smmu_cmdq_idle(t));
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/machine/properties", test_properties);
    qtest_add_func("smmuv3/machine/device-tree", test_device_tree);
    qtest_add_func("smmuv3/machine/dsdt", test_dsdt);
    qtest_add_func("smmuv3/machine/migration", test_migration);
    qtest_add_func("smmuv3/machine/migration-parked", test_migration_parked);
    return g_test_run();
}
