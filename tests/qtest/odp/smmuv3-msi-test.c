/*
 * SMMUv3: message signalled interrupts
 *
 * Of each queue, of GERROR and of CMD_SYNC; what configures them; writes that
 * abort, and such as a hostile guest sends to registers. Section numbers: Arm
 * IHI 0070.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define NOWHERE 0x7fff0000ull       /* no memory and no device */
#define CR0_ON (CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN | CR0_PRIQEN)

enum { SMMU_IRQ_CTRLACK = 0x54 };
enum { IRQ_GERROR = 1, IRQ_PRI = 2, IRQ_EVENTQ = 4, IRQ_ALL = 7 };
enum {
    GERROR_MSI_CMDQ = 1 << 4, GERROR_MSI_EVENTQ = 1 << 5,
    GERROR_MSI_PRIQ = 1 << 6, GERROR_MSI_GERROR = 1 << 7,
};
enum { PPR_R = 1 << 16, PPR_LAST = 1 << 18 };
#define LO (1u << 31)

/* Of each source: its CFG0, its enable, its error; and the wire's SPI */
typedef struct Source {
    const char *name;
    uint32_t cfg, irqen, error;
    unsigned spi;
    void (*cause)(SmmuTest *t);
} Source;

static void cause_event(SmmuTest *t)
{
    Ste bad = { .invalid = true };

    ste_write(t, t->sid, &bad);
    CMD_CFGI_ALL(t);
    g_assert_cmpuint(dma(t, VA, DMA_READ, -1), ==, DMA_ERROR);
}

static void cause_page_request(SmmuTest *t)
{
    qtest_writel(t->qts, t->regs + 0x10, VA);
    qtest_writel(t->qts, t->regs + 0x14, 0);
    qtest_writel(t->qts, t->regs + 0x90, PPR_R | PPR_LAST);
}

static void cause_gerror(SmmuTest *t)
{
    smmu_cmd_raw(t, 0xff, 0);
}

static const Source source[] = {
    { "eventq", 0xb0, IRQ_EVENTQ, GERROR_MSI_EVENTQ, 74, cause_event },
    { "priq", 0xd0, IRQ_PRI, GERROR_MSI_PRIQ, 75, cause_page_request },
    { "gerror", 0x68, IRQ_GERROR, GERROR_MSI_GERROR, 77, cause_gerror },
};

static SmmuTest *start(const char *opts)
{
    SmmuTest *t = smmu_boot(opts, NULL);

    smmu_setup_sized(t, 6, 4, CR0_ON);
    ats_enable(t, true);
    pri_enable(t, 32);
    return t;
}

static void watch_wires(SmmuTest *t)
{
    for (unsigned spi = 74; spi < 78; spi++) {
        smmu_wire_watch(t, spi);
    }
}

/* 6.3.1; 6.3.20 and others: RES0 without MSIs, read-only while enabled */
static void test_registers(void)
{
    for (int on = 0; on < 2; on++) {
        SmmuTest *t = start(on ? "ats=on,pri=on,msi=on" : "ats=on,pri=on");

        g_assert_cmpuint(smmu_r(t, SMMU_IDR0) >> 13 & 1, ==, on);
        for (int i = 0; i < ARRAY_SIZE(source); i++) {
            uint32_t cfg = source[i].cfg;

            smmu_wq(t, cfg, 0x87654320);
            smmu_w(t, cfg + 8, 0x11);
            smmu_w(t, cfg + 12, 0x22);
            smmu_w(t, cfg + 4, 0x1);
            g_assert_cmphex(qtest_readq(t->qts, VIRT_SMMU + cfg), ==,
                            on ? 0x187654320ull : 0);
            g_assert_cmphex(smmu_r(t, cfg + 8), ==, on ? 0x11 : 0);
            g_assert_cmphex(smmu_r(t, cfg + 12), ==, on ? 0x22 : 0);

            smmu_w(t, SMMU_IRQ_CTRL, source[i].irqen);
            smmu_wq(t, cfg, 0x4440);
            smmu_w(t, cfg + 8, 0x33);
            smmu_w(t, cfg + 12, 0x33);
            g_assert_cmphex(smmu_r(t, cfg), ==, on ? 0x87654320 : 0);
            g_assert_cmphex(smmu_r(t, cfg + 8), ==, on ? 0x11 : 0);
            g_assert_cmphex(smmu_r(t, cfg + 12), ==, on ? 0x22 : 0);
            smmu_w(t, SMMU_IRQ_CTRL, 0);
        }
        smmu_quit(t);
    }
}

/*
 * 3.18.2: an MSI where there is an address, the wire where there is none, and
 * nothing where it is disabled
 */
static void test_sources(void)
{
    enum { WIRE, MSI, DISABLED, HOWS };

    for (int i = 0; i < ARRAY_SIZE(source); i++) {
        for (int how = 0; how < HOWS; how++) {
            SmmuTest *t = start("ats=on,pri=on,msi=on");
            uint64_t to = smmu_pages(t, 1) + 0x48;

            watch_wires(t);
            smmu_wq(t, source[i].cfg, how == WIRE ? 0 : to);
            smmu_w(t, source[i].cfg + 8, 0xabcd0000 + i);
            smmu_w(t, SMMU_IRQ_CTRL, how == DISABLED ? 0 : IRQ_ALL);
            source[i].cause(t);
            qtest_clock_step(t->qts, 1000);
            g_assert_cmphex(qtest_readq(t->qts, to), ==,
                            how == MSI ? 0xabcd0000 + i : 0);
            g_assert_cmpint(smmu_wire(t, source[i].spi), ==, how == WIRE);
            smmu_quit(t);
        }
    }
}

/* 4.7.3: CMD_SYNC says where and what; CONS is past it by then */
static void test_sync(void)
{
    SmmuTest *t = start("ats=on,pri=on,msi=on");
    uint64_t to = smmu_pages(t, 1);

    watch_wires(t);
    for (int i = 0; i < 3; i++) {
        smmu_cmd(t, 0x46 | 1 << 12 | (0x5000ull + i) << 32, to + i * 4);
    }
    for (int i = 0; i < 3; i++) {
        g_assert_cmphex(qtest_readl(t->qts, to + i * 4), ==, 0x5000 + i);
    }
    g_assert_false(smmu_wire(t, 76));

    /* as Linux polls: into the command itself */
    qtest_memset(t->qts, to, 0, 16);
    smmu_cmd(t, 0x46 | 1 << 12 | 0x77ull << 32, t->cmdq + 3 * 16);
    g_assert_cmphex(qtest_readq(t->qts, t->cmdq + 3 * 16), ==,
                    0x7700000077ull);

    /* CS=SEV or none: no MSI */
    smmu_cmd(t, 0x46 | 2 << 12 | 0x88ull << 32, to);
    smmu_cmd(t, 0x46 | 0x88ull << 32, to);
    g_assert_cmphex(qtest_readl(t->qts, to), ==, 0);
    g_assert_false(smmu_wire(t, 76));

    /* several at once: each has its own */
    for (unsigned i = 0; i < 8; i++) {
        uint64_t e = t->cmdq + (6 + i) * 16;

        qtest_writeq(t->qts, e, 0x46 | 1 << 12 | (0x100ull + i) << 32);
        qtest_writeq(t->qts, e + 8, to + 0x100 + i * 8);
    }
    smmu_w(t, SMMU_CMDQ_PROD, 14);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmphex(qtest_readl(t->qts, to + 0x100 + i * 8), ==,
                        0x100 + i);
    }

    /* without an address, the wire */
    smmu_cmd(t, 0x46 | 1 << 12 | 0x99ull << 32, 0);
    g_assert_true(smmu_wire(t, 76));
    smmu_quit(t);

    /* without MSIs the fields are ignored */
    t = start("ats=on,pri=on");
    to = smmu_pages(t, 1);
    watch_wires(t);
    smmu_cmd(t, 0x46 | 1 << 12 | 0x99ull << 32, to);
    g_assert_cmphex(qtest_readl(t->qts, to), ==, 0);
    g_assert_true(smmu_wire(t, 76));
    smmu_quit(t);
}

/* A CMD_SYNC that waits for an invalidation sends when that is complete */
static void test_sync_parked(void)
{
    SmmuTest *t = start("ats=on,pri=on,msi=on");
    uint64_t to = smmu_pages(t, 1);

    x_ctl(t, X_INV_HOLD);
    smmu_cmd(t, 0x40 | (uint64_t)t->sid << 32, 52);
    smmu_cmd_raw(t, 0x46 | 1 << 12 | 0x99ull << 32, to);
    qtest_clock_step(t->qts, 1000);
    g_assert_cmphex(qtest_readl(t->qts, to), ==, 0);
    x_ctl(t, 0);
    qtest_clock_step(t->qts, 1000);
    g_assert_cmphex(qtest_readl(t->qts, to), ==, 0x99);
    g_assert_true(smmu_cmdq_idle(t));
    smmu_quit(t);
}

/* 6.3.36: LO; entries, and what an overflow discards */
static void test_last_only(void)
{
    static const struct {
        uint32_t what;
        bool irq[2];            /* LO=0, LO=1 */
    } row[] = {
        { PPR_R, { true, false } },
        { PPR_R | PPR_LAST, { true, true } },
        /* the queue is full */
        { PPR_R, { true, false } },
        { PPR_R, { false, false } },
        { PPR_R | PPR_LAST, { false, true } },
    };

    for (int lo = 0; lo < 2; lo++) {
        SmmuTest *t = smmu_boot("ats=on,pri=on,msi=on", NULL);
        uint64_t to = smmu_pages(t, 1);

        smmu_setup_sized(t, 6, 1, CR0_ON);
        ats_enable(t, true);
        pri_enable(t, 32);
        smmu_wq(t, 0xd0, to);
        smmu_w(t, 0xd8, 1);
        smmu_w(t, 0xdc, lo ? LO : 0);
        smmu_w(t, SMMU_IRQ_CTRL, IRQ_PRI);
        for (int i = 0; i < ARRAY_SIZE(row); i++) {
            qtest_writel(t->qts, to, 0);
            qtest_writel(t->qts, t->regs + 0x90, row[i].what | i);
            qtest_clock_step(t->qts, 1000);
            if (qtest_readl(t->qts, to) != row[i].irq[lo]) {
                g_error("LO=%d, request %d", lo, i);
            }
        }
        smmu_quit(t);
    }
}

/* 6.3.19: a write that aborts is told in GERROR, and nothing goes on */
static void test_abort(void)
{
    static const uint64_t where[] = { NOWHERE, VIRT_SMMU + SMMU_CMDQ_PROD };

    for (int w = 0; w < ARRAY_SIZE(where); w++) {
        for (int i = 0; i < ARRAY_SIZE(source); i++) {
            SmmuTest *t = start("ats=on,pri=on,msi=on");
            uint32_t prod = smmu_r(t, SMMU_CMDQ_PROD);

            smmu_wq(t, source[i].cfg, where[w]);
            smmu_w(t, source[i].cfg + 8, 0x30);
            smmu_w(t, SMMU_IRQ_CTRL, IRQ_ALL);
            source[i].cause(t);
            qtest_clock_step(t->qts, 1000);
            g_assert_cmphex(smmu_r(t, SMMU_GERROR) & ~GERROR_CMDQ, ==,
                            source[i].error);
            g_assert_cmphex(smmu_r(t, SMMU_CMDQ_PROD), !=, prod + 0x30);
            /* again only after it was acknowledged */
            smmu_w(t, SMMU_GERRORN, smmu_r(t, SMMU_GERROR));
            smmu_quit(t);
        }
        {
            SmmuTest *t = start("ats=on,pri=on,msi=on");

            smmu_cmd(t, 0x46 | 1 << 12 | 0x30ull << 32, where[w]);
            g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, GERROR_MSI_CMDQ);
            CMD_SYNC(t);
            smmu_quit(t);
        }
    }
}

/*
 * A guest makes the SMMU's interrupt start what causes the interrupt: the
 * exerciser's doorbell. It ends with the event queue full, and QEMU answers.
 */
static void test_circle(void)
{
    SmmuTest *t = start("ats=on,pri=on,msi=on");
    Ste bad = { .invalid = true };

    ste_write(t, t->sid, &bad);
    CMD_CFGI_ALL(t);
    smmu_wq(t, 0xb0, ch_reg(t, 0, 0));
    smmu_w(t, 0xb8, DMA_READ | 1);
    smmu_w(t, SMMU_IRQ_CTRL, IRQ_ALL);
    dma(t, VA, DMA_READ, -1);
    for (int i = 0; i < 200; i++) {
        qtest_clock_step(t->qts, 1000);
    }
    g_assert_cmpuint(smmu_events(t), ==, 64);
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, 0);
    CMD_SYNC(t);
    smmu_quit(t);
}

/* The device tree says where to: <&its 7>, or a GICv2m frame without more */
static void test_device_tree(void)
{
    static const struct { const char *opts; unsigned bytes; } row[] = {
        { "gic-version=3,smmuv3.msi=on", 8 },
        { "gic-version=2,smmuv3.msi=on", 4 },
        { "gic-version=3", 0 },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        g_autofree char *args = g_strdup_printf(
            "-machine virt,iommu=smmuv3,%s -cpu max -m 256 -nic none "
            "-display none", row[i].opts);
        QTestState *qts = qtest_init(args);
        g_autofree uint8_t *dtb = NULL;
        uint32_t head[10], prop[3];
        const uint8_t *at, *end;
        unsigned found = 0;

        qtest_memread(qts, VIRT_RAM, head, sizeof(head));
        for (int n = 0; n < ARRAY_SIZE(head); n++) {
            head[n] = be32_to_cpu(head[n]);
        }
        g_assert_cmphex(head[0], ==, 0xd00dfeed);
        dtb = g_malloc0(head[1]);
        qtest_memread(qts, VIRT_RAM + head[2], dtb + head[2], head[9]);
        qtest_memread(qts, VIRT_RAM + head[3], dtb + head[3], head[8]);
        at = dtb + head[2];
        end = at + head[9];
        for (; at + 20 <= end; at += 4) {
            const char *name;

            /* a property: 3, length, name */
            memcpy(prop, at, sizeof(prop));
            if (be32_to_cpu(prop[0]) != 3 || be32_to_cpu(prop[1]) > 8 ||
                be32_to_cpu(prop[2]) >= head[8]) {
                continue;
            }
            name = (char *)dtb + head[3] + be32_to_cpu(prop[2]);
            if (!strcmp(name, "msi-parent")) {
                found = be32_to_cpu(prop[1]);
                g_assert_cmpuint(ldl_be_p(at + 12), !=, 0);
                if (found == 8) {
                    g_assert_cmpuint(ldl_be_p(at + 16), ==, 7);
                }
            }
        }
        g_assert_cmpuint(found, ==, row[i].bytes);
        qtest_quit(qts);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/msi/registers", test_registers);
    qtest_add_func("smmuv3/msi/sources", test_sources);
    qtest_add_func("smmuv3/msi/sync", test_sync);
    qtest_add_func("smmuv3/msi/sync-parked", test_sync_parked);
    qtest_add_func("smmuv3/msi/last-only", test_last_only);
    qtest_add_func("smmuv3/msi/abort", test_abort);
    qtest_add_func("smmuv3/msi/circle", test_circle);
    qtest_add_func("smmuv3/msi/device-tree", test_device_tree);
    return g_test_run();
}
