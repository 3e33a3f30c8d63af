/*
 * PCIe requester and recoverable DMA without an IOMMU
 *
 * What the requester does by itself: plain DMA, what it refuses, what it may
 * not ask. What becomes of waits is in the tests of the IOMMUs that cause
 * them; the exerciser is the function.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define NOWHERE 0x7fff0000ull       /* no memory and no device */
enum { STATUS_PERM = -EPERM, STATUS_NODEV = -ENODEV };

static SmmuTest *start(const char *dev)
{
    SmmuTest *t = g_new0(SmmuTest, 1);
    g_autofree char *args = g_strdup_printf(
        "-machine virt,highmem=off,gic-version=3 -cpu max -m 512 "
        "-display none -nic none -device pcie-exerciser,addr=4%s", dev);

    t->qts = qtest_init(args);
    t->next = VIRT_RAM + 0x200000;
    smmu_find_exerciser(t, 0);
    return t;
}

/* Both ways, across pages, to the end of memory, and where nothing is */
static void test_plain(void)
{
    SmmuTest *t = start("");
    uint64_t from = smmu_pages(t, 4), to = smmu_pages(t, 4);
    g_autofree uint8_t *a = g_malloc(0x3000), *b = g_malloc0(0x3000);

    for (unsigned i = 0; i < 0x3000; i++) {
        a[i] = i * 7 + (i >> 8);
    }
    qtest_memwrite(t->qts, from + 0x123, a, 0x3000);
    g_assert_cmpuint(dma_start(t, 0, from + 0x123, 0x3000, DMA_READ, 0), ==,
                     DMA_OK);
    g_assert_cmpuint(dma_start(t, 0, to + 0xffd, 0x3000, DMA_WRITE, 0), ==,
                     DMA_OK);
    qtest_memread(t->qts, to + 0xffd, b, 0x3000);
    g_assert_cmpint(memcmp(a, b, 0x3000), ==, 0);
    g_assert_cmphex(qtest_readb(t->qts, to + 0xffc), ==, 0);
    g_assert_cmphex(qtest_readb(t->qts, to + 0x3ffd), ==, 0);

    g_assert_cmpuint(dma_start(t, 0, NOWHERE, 8, DMA_READ, 0), ==, DMA_ERROR);
    g_assert_cmpuint(dma_start(t, 0, NOWHERE, 8, DMA_WRITE, 0), ==,
                     DMA_ERROR);
    g_assert_cmpuint(dma_start(t, 0, VIRT_RAM + 0x20000000 - 8, 16, DMA_READ,
                               0), ==, DMA_ERROR);
    g_assert_cmpuint(dma_start(t, 0, from, 0, DMA_READ, 0), ==, DMA_OK);
    /* beyond the device's own memory */
    qtest_writel(t->qts, ch_reg(t, 0, 4), 0xffff8);
    qtest_writel(t->qts, ch_reg(t, 0, 0x10), 16);
    qtest_writel(t->qts, ch_reg(t, 0, 0), 1);
    g_assert_cmpuint(dma_status(t, 0), ==, DMA_RANGE);
    /* to itself: the buffer is moved within itself */
    g_assert_cmpuint(dma_start(t, 0, t->mem + 8, 64, DMA_WRITE, 0), ==,
                     DMA_OK);
    smmu_quit(t);
}

/* A function that may not send sends nothing */
static void test_refused(void)
{
    SmmuTest *t = start("");
    uint64_t page = smmu_pages(t, 1);

    qtest_writew(t->qts, smmu_cfg(t) + 4, 2);
    g_assert_cmpuint(dma(t, page, DMA_READ, -1), ==, DMA_ERROR);
    qtest_writew(t->qts, smmu_cfg(t) + 4, 6);
    g_assert_cmpuint(dma(t, page, DMA_READ, -1), ==, DMA_OK);

    /* a PASID that is not enabled, and one that nobody understands */
    g_assert_cmpuint(dma(t, page, DMA_READ, 5), ==, DMA_ERROR);
    pasid_enable(t);
    g_assert_cmpuint(dma(t, page, DMA_READ, 5), ==, DMA_ERROR);
    g_assert_cmpuint(dma(t, page, DMA_READ, 0x100000), ==, DMA_ERROR);
    g_assert_cmpuint(dma(t, page, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0xa0), ==, 0);
    smmu_quit(t);
}

static int32_t translation(SmmuTest *t, uint64_t addr)
{
    qtest_writel(t->qts, t->regs + 0x10, addr);
    qtest_writel(t->qts, t->regs + 0x14, 0);
    qtest_writel(t->qts, t->regs + 0x24, 1);
    g_assert_cmphex(qtest_readl(t->qts, t->regs + 0x24) & 0x180, ==, 0);
    return qtest_readl(t->qts, t->regs + 0x8c);
}

static int32_t page_request(SmmuTest *t, uint64_t addr)
{
    qtest_writel(t->qts, t->regs + 0x10, addr);
    qtest_writel(t->qts, t->regs + 0x90, 1 << 16 | 1 << 18 | 3);
    return qtest_readl(t->qts, t->regs + 0x94);
}

/* ATS and PRI: off they ask nobody; on there is nobody, and DMA goes on */
static void test_nobody_to_ask(void)
{
    SmmuTest *t = start("");
    uint64_t page = smmu_pages(t, 1);

    g_assert_cmpint(translation(t, page), ==, STATUS_PERM);
    g_assert_cmpint(page_request(t, page), ==, STATUS_PERM);
    ats_enable(t, true);
    pri_enable(t, 4);
    g_assert_cmpint(translation(t, page), ==, STATUS_NODEV);
    g_assert_cmpint(page_request(t, page), ==, STATUS_NODEV);
    g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0x98), ==, 0);

    qtest_writeq(t->qts, page, 0x600d);
    x_ctl(t, X_ATC | X_PRI);
    g_assert_cmpuint(dma(t, page, DMA_READ, -1), ==, DMA_OK);
    g_assert_cmphex(qtest_readq(t->qts, t->mem), ==, 0x600d);
    smmu_quit(t);
}

/* What a function has is what its properties say, and a reset forgets it */
static void test_capabilities(void)
{
    static const struct { const char *opts; unsigned ids[3]; } row[] = {
        { "", { 0x1b, 0x0f, 0x13 } },
        { ",pasid-bits=0", { 0x0f, 0x13, 0 } },
        { ",ats=off", { 0x1b, 0x13, 0 } },
        { ",pri=off,pasid-bits=0,ats=off", { 0, 0, 0 } },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        SmmuTest *t = start(row[i].opts);
        uint32_t at = 0x100, head = qtest_readl(t->qts, smmu_cfg(t) + at);

        for (int n = 0; n < 3 && row[i].ids[n]; n++) {
            g_assert_cmphex(head & 0xffff, ==, row[i].ids[n]);
            at = head >> 20;
            head = at ? qtest_readl(t->qts, smmu_cfg(t) + at) : 0;
        }
        g_assert_cmphex(head & 0xffff, ==, 0);
        if (i == 0) {
            pasid_enable(t);
            ats_enable(t, true);
            pri_enable(t, 7);
            qtest_system_reset(t->qts);
            g_assert_cmphex(qtest_readw(t->qts, smmu_cfg(t) + CAP_PASID + 6),
                            ==, 0);
            g_assert_cmphex(qtest_readw(t->qts, smmu_cfg(t) + CAP_ATS + 6),
                            ==, 0);
            g_assert_cmphex(qtest_readw(t->qts, smmu_cfg(t) + CAP_PRI + 4),
                            ==, 0);
            g_assert_cmphex(qtest_readl(t->qts, smmu_cfg(t) + CAP_PRI + 12),
                            ==, 0);
        }
        smmu_quit(t);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("requester/plain", test_plain);
    qtest_add_func("requester/refused", test_refused);
    qtest_add_func("requester/nobody-to-ask", test_nobody_to_ask);
    qtest_add_func("requester/capabilities", test_capabilities);
    return g_test_run();
}
