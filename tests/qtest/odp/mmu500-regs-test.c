/*
 * MMU-500: registers, what they hold and what the ID registers say
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mmu500.h"

static void test_id_registers(void)
{
    Guest *g = guest_start("");

    /* S1TS S2TS NTS SMS ATOSNS, one interrupt, CTTW, 15 SID bits, 128 SMRs */
    g_assert_cmphex(rd(g, IDR(0)), ==, 0x7c015e80);
    g_assert_cmphex(rd(g, IDR(1)), ==, 0x50000040);
    g_assert_cmphex(rd(g, IDR(2)), ==, 0x5555);
    g_assert_cmphex(rd(g, IDR(7)), ==, 0x21);
    g_assert_cmphex(rd(g, PIDR0), ==, 0x81);
    g_assert_cmphex(rd(g, PIDR0 + 4), ==, 0xb4);
    g_assert_cmphex(rd(g, CIDR0 + 12), ==, 0xb1);
    wr(g, IDR(0), 0);
    g_assert_cmphex(rd(g, IDR(0)), ==, 0x7c015e80);
    guest_stop(g);
}

static void test_id_follows_properties(void)
{
    Guest *g = guest_start("-global arm-mmu500.context-banks=16 "
                           "-global arm-mmu500.stream-match-groups=48 "
                           "-global arm-mmu500.aarch32=off "
                           "-global arm-mmu500.atos=on "
                           "-global arm-mmu500.exids=on "
                           "-global arm-mmu500.vmid16=on "
                           "-global arm-mmu500.granule-16k=on "
                           "-global arm-mmu500.stage2=off "
                           "-global arm-mmu500.coherent-walk=off "
                           "-global arm-mmu500.ias=40 "
                           "-global arm-mmu500.oas=44");

    g_assert_cmphex(rd(g, IDR(0)), ==, 0x4b011f30);
    g_assert_cmphex(rd(g, IDR(1)), ==, 0x30000010);
    g_assert_cmphex(rd(g, IDR(2)), ==, 0xf242);
    guest_stop(g);
}

/*
 * The registers that Linux's drivers touch (docs/specs/mmu500.md), in bank 5:
 * what is read after ones and after zeroes were written. Constant where the
 * same; all zero: a command, or RAZ/WI.
 */
static const struct {
    const char *name;
    uint64_t addr;
    uint32_t ones, zeros;
} linux_regs[] = {
    { "sCR0", CR0, 0x3ffffcf7, 0x00200000 },
    { "sACR", ACR, 0x0700071c, 0 },
    { "IDR0", IDR(0), 0x7c015e80, 0x7c015e80 },
    { "IDR1", IDR(1), 0x50000040, 0x50000040 },
    { "IDR2", IDR(2), 0x5555, 0x5555 },
    { "IDR7", IDR(7), 0x21, 0x21 },
    { "sGFSR", GFSR, 0, 0 },
    { "sGFSYNR0", GFSYNR0, 0x7f, 0 },
    { "sGFSYNR1", GFSYNR1, 0xffff, 0 },
    { "sGFSYNR2", GFSYNR1 + 4, 0, 0 },
    { "TLBIVMID", TLBIVMID, 0, 0 },
    { "TLBIALLNSNH", TLBIALLNSNH, 0, 0 },
    { "TLBIALLH", TLBIALLNSNH + 4, 0, 0 },
    { "sTLBGSYNC", TLBGSYNC, 0, 0 },
    { "sTLBGSTATUS", TLBGSTATUS, 0, 0 },
    { "SMR", SMR(100), 0xffff7fff, 0 },
    { "S2CR", S2CR(100), 0x3ffffbff, 0 },
    { "CBAR", CBAR(5), 0x00ffffff, 0 },
    { "CBA2R", CBA2R(5), 0x3, 0 },
    { "CBFRSYNRA", CBFRSYNRA(5), 0xffff, 0 },
    { "SCTLR", SCTLR(5), 0x3fff7fff, 0 },
    { "ACTLR, not locked", ACTLR(5), 0x3, 0 },
    { "RESUME", RESUME(5), 0, 0 },
    { "TCR2", TCR2(5), 0x0003807f, 0 },
    { "TTBR0", TTBR0(5), UINT32_MAX, 0 },
    { "TTBR0, high half", TTBR0(5) + 4, UINT32_MAX, 0 },
    { "TTBR1", TTBR1(5), UINT32_MAX, 0 },
    { "TCR", TCR(5), UINT32_MAX, 0 },
    { "CONTEXTIDR", CONTEXTIDR(5), UINT32_MAX, 0 },
    { "MAIR0", CB(5, 0x38), UINT32_MAX, 0 },
    { "MAIR1", CB(5, 0x3c), UINT32_MAX, 0 },
    { "PAR", PAR(5), UINT32_MAX, 0 },
    { "FSR", FSR(5), 0, 0 },
    { "FAR", FAR(5), UINT32_MAX, 0 },
    { "FAR, high half", FAR(5) + 4, UINT32_MAX, 0 },
    { "FSYNR0", FSYNR0(5), 0x00ff0fff, 0 },
    { "FSYNR1", FSYNR0(5) + 4, 0, 0 },
    { "TLBIVA", TLBIVA(5), 0, 0 },
    { "TLBIASID", TLBIASID(5), 0, 0 },
    { "TLBIVAL", TLBIVAL(5), 0, 0 },
    { "TLBIIPAS2", TLBIIPAS2(5), 0, 0 },
    { "TLBIIPAS2L", TLBIIPAS2L(5), 0, 0 },
    { "TLBSYNC", TLBSYNC(5), 0, 0 },
    { "TLBSTATUS", TLBSTATUS(5), 0, 0 },
    { "ATS1PR", ATS1PR(5), 0, 0 },
    { "ATSR", ATSR(5), 0, 0 },
    /* of Qualcomm's part */
    { "GFX_PRR_CFG_LADDR", GR0(0x6008), 0, 0 },
    { "GFX_PRR_CFG_UADDR", GR0(0x600c), 0, 0 },
    { "TBU_PWR_STATUS", GR0(0x2204), 0, 0 },
    { "STATS_SYNC_INV_TBU_ACK", GR0(0x25dc), 0, 0 },
    { "MMU2QSS_AND_SAFE_WAIT_CNTR", GR0(0x2670), 0, 0 },
};

static void test_linux_registers(void)
{
    Guest *g = guest_start("");

    wr(g, ACR, rd(g, ACR) & ~ACR_CACHE_LOCK);
    for (int i = 0; i < ARRAY_SIZE(linux_regs); i++) {
        g_test_message("%s", linux_regs[i].name);
        wr(g, linux_regs[i].addr, UINT32_MAX);
        g_assert_cmphex(rd(g, linux_regs[i].addr), ==, linux_regs[i].ones);
        wr(g, linux_regs[i].addr, 0);
        g_assert_cmphex(rd(g, linux_regs[i].addr), ==, linux_regs[i].zeros);
    }
    guest_stop(g);
}

static void test_reset_values(void)
{
    Guest *g = guest_start("");
    int i;

    g_assert_cmphex(rd(g, CR0), ==, CR0_CLIENTPD | CR0_SMCFCFG);
    g_assert_true(rd(g, ACR) & ACR_CACHE_LOCK);
    g_assert_cmphex(rd(g, ACTLR(5)), ==, 3);
    wr(g, CR0, CR0_USFCFG);
    wr(g, SMR(3), SMR_VALID | 7);
    wr(g, SCTLR(63), SCTLR_ON);
    wr64(g, TTBR0(63), 0x1122334455667788);
    qtest_qmp_assert_success(g->q, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(g->q, "RESET");
    g_assert_cmphex(rd(g, CR0), ==, CR0_CLIENTPD | CR0_SMCFCFG);
    g_assert_cmphex(rd(g, SMR(3)), ==, 0);
    g_assert_cmphex(rd(g, SCTLR(63)), ==, 0);
    g_assert_cmphex(rd64(g, TTBR0(63)), ==, 0);
    for (i = 0; i < 64; i++) {
        g_assert_cmphex(rd(g, FSR(i)), ==, 0);
    }
    guest_stop(g);
}

/* What a driver writes to find out how wide the fields are */
static void test_smr_readback(void)
{
    Guest *g = guest_start("");

    wr(g, SMR(127), 0x7fff);
    g_assert_cmphex(rd(g, SMR(127)), ==, 0x7fff);
    wr(g, SMR(127), SMR_MASK(0x7fff));
    g_assert_cmphex(rd(g, SMR(127)), ==, 0x7fff0000);
    wr(g, SMR(0), 0xffffffff);
    g_assert_cmphex(rd(g, SMR(0)), ==, 0xffff7fff);
    guest_stop(g);
}

static void test_64bit_registers_in_halves(void)
{
    Guest *g = guest_start("");

    wr(g, TTBR0(2) + 4, 0xaabbccdd);
    wr(g, TTBR0(2), 0x11223344);
    g_assert_cmphex(rd64(g, TTBR0(2)), ==, 0xaabbccdd11223344);
    g_assert_cmphex(rd(g, TTBR0(2) + 4), ==, 0xaabbccdd);
    wr64(g, FAR(2), 0x123456789abcdef0);
    g_assert_cmphex(rd(g, FAR(2)), ==, 0x9abcdef0);
    guest_stop(g);
}

/* GSE, STALLD: the part has no override of banks' fault models. */
static void test_no_global_stall_override(void)
{
    Guest *g = guest_start("");

    wr(g, CR0, CR0_STALLD | CR0_GSE);
    g_assert_cmphex(rd(g, CR0), ==, CR0_SMCFCFG);
    guest_stop(g);
}

static void test_actlr_cache_lock(void)
{
    Guest *g = guest_start("");

    wr(g, ACTLR(0), 0);
    g_assert_cmphex(rd(g, ACTLR(0)), ==, 3);
    wr(g, ACR, rd(g, ACR) & ~ACR_CACHE_LOCK);
    wr(g, ACTLR(0), 1);
    g_assert_cmphex(rd(g, ACTLR(0)), ==, 1);
    guest_stop(g);
}

static void test_sync_is_idle(void)
{
    Guest *g = guest_start("");

    wr(g, TLBGSYNC, 0xffffffff);
    g_assert_cmphex(rd(g, TLBGSTATUS), ==, 0);
    wr(g, TLBSYNC(3), 0xffffffff);
    g_assert_cmphex(rd(g, TLBSTATUS(3)), ==, 0);
    guest_stop(g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mmu500/regs/id", test_id_registers);
    qtest_add_func("/mmu500/regs/id-properties", test_id_follows_properties);
    qtest_add_func("/mmu500/regs/linux", test_linux_registers);
    qtest_add_func("/mmu500/regs/reset", test_reset_values);
    qtest_add_func("/mmu500/regs/smr-readback", test_smr_readback);
    qtest_add_func("/mmu500/regs/halves", test_64bit_registers_in_halves);
    qtest_add_func("/mmu500/regs/34-no-global-stall",
                   test_no_global_stall_override);
    qtest_add_func("/mmu500/regs/cache-lock", test_actlr_cache_lock);
    qtest_add_func("/mmu500/regs/sync", test_sync_is_idle);
    return g_test_run();
}
