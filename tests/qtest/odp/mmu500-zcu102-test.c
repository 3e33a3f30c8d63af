/*
 * MMU-500 in the xlnx-zcu102 machine: ZDMA behind it
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"

#define SMMU_BASE  0xfd800000ull
#define SMMU_BANKS 16
#define RAM        0ull
#include "mmu500.h"

/* Channels of the two ZDMAs, in simple mode */
#define GDMA(ch)      (0xfd500000ull + (ch) * 0x10000)
#define ADMA(ch)      (0xffa80000ull + (ch) * 0x10000)
#define ZDMA_ISR      0x100
#define ZDMA_SRC      0x128
#define ZDMA_DST      0x138
#define ZDMA_CTRL2    0x200
#define GDMA_SID(ch)  (0x14e8 + (ch))
#define ADMA_SID(ch)  (0x868 + (ch))

static Guest *zcu102_start(const char *args)
{
    Guest *g = g_new0(Guest, 1);

    g->q = qtest_initf("-machine xlnx-zcu102%s -nic none", args);
    g->next_table = TABLES;
    return g;
}

static void copy(Guest *g, uint64_t chan, uint64_t src, uint64_t dst,
                 uint32_t len)
{
    wr(g, chan + ZDMA_SRC, src);
    wr(g, chan + ZDMA_SRC + 4, src >> 32);
    wr(g, chan + ZDMA_SRC + 8, len);
    wr(g, chan + ZDMA_DST, dst);
    wr(g, chan + ZDMA_DST + 4, dst >> 32);
    wr(g, chan + ZDMA_DST + 8, len);
    wr(g, chan + ZDMA_CTRL2, 1);
}

static void test_absent(void)
{
    Guest *g = zcu102_start("");

    qtest_memset(g->q, PAGE(1), 0x5a, 4096);
    copy(g, GDMA(0), PAGE(1), PAGE(2), 4096);
    g_assert_cmphex(rd(g, PAGE(2)), ==, 0x5a5a5a5a);
    guest_stop(g);
}

static void test_id(void)
{
    Guest *g = zcu102_start(",smmu=on");

    g_assert_cmphex(rd(g, IDR(0)), ==, 0x7c015e30);
    g_assert_cmphex(rd(g, IDR(1)), ==, 0x30000010);
    g_assert_cmphex(rd(g, IDR(2)), ==, 0x5555);
    guest_stop(g);
}

static void test_bypass(void)
{
    Guest *g = zcu102_start(",smmu=on");

    qtest_memset(g->q, PAGE(1), 0x5a, 4096);
    copy(g, GDMA(0), PAGE(1), PAGE(2), 4096);
    g_assert_cmphex(rd(g, PAGE(2)), ==, 0x5a5a5a5a);
    guest_stop(g);
}

/* Two channels, two banks: each sees its own pages. */
static void test_translate(void)
{
    Guest *g = zcu102_start(",smmu=on");
    Tables t = bank_s1(g, 0, 0, SCTLR_ON), u = bank_s1(g, 1, 1, SCTLR_ON);

    wr(g, S2CR(0), S2CR_BANK(0));
    wr(g, SMR(0), SMR_VALID | GDMA_SID(3));
    wr(g, S2CR(1), S2CR_BANK(1));
    wr(g, SMR(1), SMR_VALID | ADMA_SID(2));
    wr(g, CR0, CR0_GFRE | CR0_GFIE | CR0_GCFGFRE | CR0_GCFGFIE | CR0_USFCFG);
    map(g, &t, 0x10000, PAGE(1), S1_RO);
    map(g, &t, 0x11000, PAGE(2), S1_RW);
    map(g, &u, 0x10000, PAGE(3), S1_RO);
    map(g, &u, 0x11000, PAGE(4), S1_RW);
    qtest_memset(g->q, PAGE(1), 0x11, 4096);
    qtest_memset(g->q, PAGE(3), 0x33, 4096);
    copy(g, GDMA(3), 0x10000, 0x11000, 4096);
    copy(g, ADMA(2), 0x10000, 0x11000, 4096);
    g_assert_cmphex(rd(g, PAGE(2) + 0xffc), ==, 0x11111111);
    g_assert_cmphex(rd(g, PAGE(4) + 0xffc), ==, 0x33333333);

    /* a channel that has no stream, and a page that is not there */
    copy(g, GDMA(0), 0x10000, 0x11000, 4096);
    g_assert_cmphex(rd(g, GFSR) & GFSR_USF, ==, GFSR_USF);
    g_assert_cmphex(rd(g, GFSYNR1), ==, GDMA_SID(0));
    copy(g, GDMA(3), 0x12000, 0x11000, 64);
    g_assert_cmphex(rd(g, FSR(0)) & ~FSR_MULTI, ==, FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(0)), ==, 0x12000);
    g_assert_cmphex(rd(g, CBFRSYNRA(0)), ==, GDMA_SID(3));
    guest_stop(g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mmu500/zcu102/absent", test_absent);
    qtest_add_func("/mmu500/zcu102/id", test_id);
    qtest_add_func("/mmu500/zcu102/bypass", test_bypass);
    qtest_add_func("/mmu500/zcu102/translate", test_translate);
    return g_test_run();
}
