/*
 * MMU-500: stalled transactions
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "mmu500.h"

#define SCTLR_STALL (SCTLR_ON | SCTLR_CFCFG)

/* The usual start: bank 3 stalls, nothing is mapped */
static Guest *stall_start(Tables *t, uint32_t sctlr)
{
    Guest *g = guest_start("");

    *t = bank_s1(g, 3, 3, sctlr);
    stream_to(g, 0, S2CR_BANK(3));
    return g;
}

static int channel_write(Guest *g, int ch, uint64_t iova)
{
    wr(g, EX_MEM + ch * 4, 0x1000 + ch);
    return dma_start(g, ch, true, iova, ch * 4, 4);
}

/* FSR.SS holds the line up until RESUME, whatever is written to FSR. */
static void test_irq_is_level(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x5000);
    g_assert_cmphex(rd(g, FSYNR0(3)), ==, 1 | FSYNR0_WNR | FSYNR0_NSATTR);
    g_assert_cmphex(rd(g, CBFRSYNRA(3)), ==, EX_SID);
    g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));

    wr(g, FSR(3), 0xffffffff);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_AA64);
    g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));
    g_assert_cmpint(dma_status(g, 1), ==, DMA_PENDING);

    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_false(rd(g, FSR(3)) & FSR_SS);
    g_assert_false(qtest_get_irq(g->q, IRQ_CONTEXT));
    g_assert_cmpint(dma_status(g, 1), ==, DMA_ERROR);
    guest_stop(g);
}

static void test_retry(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    /* nothing moves by itself */
    wr(g, TLBIASID(3), 3);
    wr(g, TLBSYNC(3), 0);
    g_assert_cmphex(rd(g, TLBSTATUS(3)), ==, 0);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_PENDING);
    wr(g, FSR(3), rd(g, FSR(3)));
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    g_assert_cmphex(rd(g, PAGE(7)), ==, 0x1001);
    g_assert_cmpint(get_stat(g, "stalls"), ==, 1);
    g_assert_cmpint(get_stat(g, "retries"), ==, 1);
    g_assert_cmpint(get_stat(g, "terminations"), ==, 0);
    guest_stop(g);
}

/* A retry that finds nothing faults again, with a record of its own. */
static void test_retry_faults_again(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);
    int i;

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    for (i = 0; i < 10; i++) {
        wr(g, FSR(3), rd(g, FSR(3)));
        wr(g, RESUME(3), RESUME_RETRY);
        g_assert_cmpint(dma_status(g, 1), ==, DMA_PENDING);
        g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
        g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));
    }
    g_assert_cmpint(rd(g, EX_CH(1, CH_WAITS)), ==, 11);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    wr(g, FSR(3), rd(g, FSR(3)));
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    guest_stop(g);
}

/* RESUME before FSR is cleared: the retry's fault shows as MULTI. */
static void test_resume_before_clear(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmphex(rd(g, FSR(3)), ==,
                    FSR_SS | FSR_MULTI | FSR_TF | FSR_AA64);
    wr(g, FSR(3), FSR_ALL);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    g_assert_cmphex(rd(g, FSR(3)) & ~FSR_AA64, ==, 0);
    guest_stop(g);
}

/* RESUME where nothing is stalled */
static void test_resume_without_stall(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_ON);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_ERROR);
    wr(g, RESUME(3), RESUME_RETRY);
    wr(g, RESUME(3), RESUME_TERMINATE);
    wr(g, RESUME(63), RESUME_RETRY);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    g_assert_cmpint(get_stat(g, "retries"), ==, 0);
    guest_stop(g);
}

/* Others wait behind the recorded one, mapped or not, and go on in order. */
static void test_held_behind(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    map(g, &t, 0x6000, PAGE(8), S1_RW);
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 2, 0x6000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 3, 0x7000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x5000);
    g_assert_cmpint(get_stat(g, "held"), ==, 2);

    /* the recorded one alone is terminated; the next to fault is recorded */
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_ERROR);
    g_assert_cmpint(dma_status(g, 2), ==, DMA_OK);
    g_assert_cmphex(rd(g, PAGE(8)), ==, 0x1002);
    g_assert_cmpint(dma_status(g, 3), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x7000);

    map(g, &t, 0x7000, PAGE(9), S1_RW);
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 3), ==, DMA_OK);
    g_assert_cmphex(rd(g, PAGE(9)), ==, 0x1003);
    guest_stop(g);
}

/* HUPCF: hits pass a stalled transaction; further faults set MULTI. */
static void test_hupcf(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL | SCTLR_HUPCF);

    map(g, &t, 0x6000, PAGE(8), S1_RW);
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 2, 0x6000), ==, DMA_OK);
    g_assert_cmpint(channel_write(g, 3, 0x7000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==,
                    FSR_SS | FSR_MULTI | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x5000);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    /* the other was looked up again and is the recorded one now */
    g_assert_cmpint(dma_status(g, 3), ==, DMA_PENDING);
    g_assert_cmphex(rd64(g, FAR(3)), ==, 0x7000);
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 3), ==, DMA_ERROR);
    guest_stop(g);
}

/* CFCFG counts when a transaction faults, also while one is stalled. */
static void test_cfcfg_resampled(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    wr(g, SCTLR(3), SCTLR_ON);
    /* held no more: terminated behind the outstanding one */
    g_assert_cmpint(channel_write(g, 2, 0x6000), ==, DMA_ERROR);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_PENDING);
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_ERROR);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    guest_stop(g);
}

/*
 * Terminated with CFRE off: the interface says RAZ/WI, which a PCIe function
 * takes as a refusal. Nothing reaches memory.
 */
static void test_terminate_razwi(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL & ~SCTLR_CFRE);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    wr(g, PAGE(7), 0x12345678);
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 1), !=, DMA_PENDING);
    g_assert_cmphex(rd(g, PAGE(7)), ==, 0x12345678);
    g_assert_cmpint(get_stat(g, "terminations"), ==, 1);
    guest_stop(g);
}

/* Other banks do not wait. */
static void test_banks_are_apart(void)
{
    Tables t, u;
    Guest *g = stall_start(&t, SCTLR_STALL);

    u = bank_s1(g, 4, 4, SCTLR_ON);
    map(g, &u, 0x5000, PAGE(8), S1_RW);
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    wr(g, S2CR(0), S2CR_BANK(4));
    assert_maps(g, 0x5000, PAGE(8));
    /* a retry follows the stream to where it goes now */
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    g_assert_cmphex(rd(g, PAGE(8)), ==, 0x1001);
    guest_stop(g);
}

/* What a device that cannot wait gets: a fault without SS */
static void test_device_cannot_stall(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    wr(g, EX_XCTL, XCTL_NOSTALL);
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_ERROR);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_TF | FSR_AA64);
    guest_stop(g);
}

/* Permission, access flag, stage 2: all context faults stall. */
static void test_all_faults_stall(void)
{
    Tables t, u;
    Guest *g = stall_start(&t, SCTLR_STALL);

    map(g, &t, 0x5000, PAGE(7), S1_RO);
    map(g, &t, 0x6000, PAGE(7), S1_RW & ~PTE_AF);
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_PF | FSR_AA64);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);

    g_assert_cmpint(channel_write(g, 1, 0x6000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_AFF | FSR_AA64);
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_ERROR);

    u = bank_s2(g, 5, 5, SCTLR_STALL);
    wr(g, S2CR(0), S2CR_BANK(5));
    g_assert_cmpint(channel_write(g, 1, 0x9000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(5)), ==, FSR_SS | FSR_TF | FSR_AA64);
    map(g, &u, 0x9000, PAGE(9), S2_RW);
    wr(g, FSR(5), FSR_ALL);
    wr(g, RESUME(5), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    guest_stop(g);
}

/* Nested: stage 1 stalls in its bank, stage 2 in its own. */
static void test_nested(void)
{
    Tables t, u;
    Guest *g = guest_start("");
    uint64_t desc;
    int i;

    u = bank_s2(g, 1, 2, SCTLR_STALL);
    for (i = 0; i < 16; i++) {
        tables_map(g, &u, RAM + i * 0x200000ull, RAM + i * 0x200000ull,
                   S2_RW, 2);
    }
    t = bank_s1(g, 3, 3, SCTLR_STALL);
    wr(g, CBAR(3), CBAR_NESTED(1) | 2);
    stream_to(g, 0, S2CR_BANK(3));

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
    map(g, &t, 0x5000, 0x9000, S1_RW);      /* an IPA that has no page yet */
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_RETRY);

    g_assert_cmpint(dma_status(g, 1), ==, DMA_PENDING);
    g_assert_cmphex(rd(g, FSR(3)) & ~FSR_AA64, ==, 0);
    g_assert_cmphex(rd(g, FSR(1)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(1)), ==, 0x5000);
    g_assert_cmphex(rd64(g, IPAFAR(1)), ==, 0x9000);
    /* RESUME in the other bank does nothing */
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_PENDING);
    desc = PAGE(7);
    map(g, &u, 0x9000, desc, S2_RW);
    wr(g, FSR(1), FSR_ALL);
    wr(g, RESUME(1), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    g_assert_cmphex(rd(g, PAGE(7)), ==, 0x1001);
    guest_stop(g);
}

/* The device gives the recorded transaction up. */
static void test_cancel(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 2, 0x6000), ==, DMA_PENDING);
    wr(g, EX_CH(1, CH_CTL), CH_CANCEL);
    /* the guest sees no difference: what waits behind still does */
    g_assert_cmphex(rd(g, FSR(3)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));
    g_assert_cmpint(dma_status(g, 2), ==, DMA_PENDING);
    map(g, &t, 0x6000, PAGE(8), S1_RW);
    wr(g, FSR(3), FSR_ALL);
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 2), ==, DMA_OK);
    /* and one that was held */
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 2, 0x7000), ==, DMA_PENDING);
    wr(g, EX_CH(2, CH_CTL), CH_CANCEL);
    wr(g, RESUME(3), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_ERROR);
    guest_stop(g);
}

static void test_many(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);
    int i, n = 0;

    for (i = 0; i < 256; i++) {
        g_assert_cmpint(channel_write(g, i, 0x100000 + i * 0x1000), ==,
                        DMA_PENDING);
    }
    g_assert_cmpint(get_stat(g, "stalled-peak"), ==, 256);
    /* a fault handler: maps the page that FAR names */
    while (rd(g, FSR(3)) & FSR_SS) {
        uint64_t far = rd64(g, FAR(3));

        i = (far - 0x100000) / 0x1000;
        g_assert_cmpint(i, <, 256);
        map(g, &t, far, PAGE(i), S1_RW);
        wr(g, FSR(3), FSR_ALL);
        wr(g, RESUME(3), RESUME_RETRY);
        n++;
        g_assert_cmpint(n, <=, 256);
    }
    g_assert_cmpint(n, ==, 256);
    for (i = 0; i < 256; i++) {
        g_assert_cmpint(dma_status(g, i), ==, DMA_OK);
        g_assert_cmphex(rd(g, PAGE(i)), ==, 0x1000 + i);
    }
    g_assert_cmpint(get_stat(g, "stalls"), ==, 256);
    guest_stop(g);
}

/* A transfer over four pages of which none is there */
static void test_long_transfer(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);
    int i;

    for (i = 0; i < 4; i++) {
        qtest_memset(g->q, EX_MEM + i * 0x1000, 0x20 + i, 0x1000);
    }
    g_assert_cmpint(dma_start(g, 1, true, 0x10000, 0, 0x4000), ==,
                    DMA_PENDING);
    for (i = 0; i < 4; i++) {
        g_assert_cmphex(rd64(g, FAR(3)), ==, 0x10000 + i * 0x1000);
        map(g, &t, 0x10000 + i * 0x1000, PAGE(20 - 2 * i), S1_RW);
        wr(g, FSR(3), FSR_ALL);
        wr(g, RESUME(3), RESUME_RETRY);
    }
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    for (i = 0; i < 4; i++) {
        g_assert_cmphex(qtest_readb(g->q, PAGE(20 - 2 * i)), ==, 0x20 + i);
        g_assert_cmphex(qtest_readb(g->q, PAGE(20 - 2 * i) + 0xfff), ==,
                        0x20 + i);
    }
    guest_stop(g);
}

static void test_reset(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 2, 0x6000), ==, DMA_PENDING);
    qtest_qmp_assert_success(g->q, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(g->q, "RESET");
    g_assert_false(qtest_get_irq(g->q, IRQ_CONTEXT));
    g_assert_cmphex(rd(g, FSR(3)), ==, 0);

    guest_setup_pci(g);
    g->next_table = TABLES;
    t = bank_s1(g, 3, 3, SCTLR_STALL);
    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    assert_maps(g, 0x5000, PAGE(7));
    guest_stop(g);
}

/* Bus mastering ends while a transaction waits; so does the function. */
static void test_bus_master_off(void)
{
    Tables t;
    Guest *g = stall_start(&t, SCTLR_STALL);

    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    qtest_writew(g->q, EX_CFG(0x04), 0x2);
    wr(g, RESUME(3), RESUME_RETRY);
    g_assert_false(rd(g, FSR(3)) & FSR_SS);
    qtest_writew(g->q, EX_CFG(0x04), 0x6);
    map(g, &t, 0x6000, PAGE(7), S1_RW);
    wr(g, FSR(3), FSR_ALL);
    assert_maps(g, 0x6000, PAGE(7));
    guest_stop(g);
}

/* A stalled transaction's device writes RESUME itself, by DMA. */
static void test_resume_by_dma(void)
{
    Tables t, u;
    Guest *g = stall_start(&t, SCTLR_STALL);

    u = bank_s1(g, 4, 4, SCTLR_ON);
    map(g, &u, 0x5000, CB(3, 0), S1_RW);
    g_assert_cmpint(channel_write(g, 1, 0x5000), ==, DMA_PENDING);
    g_assert_cmpint(channel_write(g, 2, 0x6000), ==, DMA_PENDING);
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    map(g, &t, 0x6000, PAGE(8), S1_RW);
    wr(g, FSR(3), FSR_ALL);
    wr(g, S2CR(0), S2CR_BANK(4));
    wr(g, EX_MEM, RESUME_RETRY);
    g_assert_cmpint(dma_start(g, 0, true, 0x5008, 0, 4), ==, DMA_OK);
    g_assert_false(rd(g, FSR(3)) & FSR_SS);
    g_assert_cmpint(dma_status(g, 1), !=, DMA_PENDING);
    g_assert_cmpint(dma_status(g, 2), !=, DMA_PENDING);
    guest_stop(g);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mmu500/stall/34-irq-is-level", test_irq_is_level);
    qtest_add_func("/mmu500/stall/retry", test_retry);
    qtest_add_func("/mmu500/stall/retry-faults", test_retry_faults_again);
    qtest_add_func("/mmu500/stall/34-resume-first", test_resume_before_clear);
    qtest_add_func("/mmu500/stall/34-resume-nothing",
                   test_resume_without_stall);
    qtest_add_func("/mmu500/stall/held", test_held_behind);
    qtest_add_func("/mmu500/stall/34-hupcf", test_hupcf);
    qtest_add_func("/mmu500/stall/cfcfg", test_cfcfg_resampled);
    qtest_add_func("/mmu500/stall/razwi", test_terminate_razwi);
    qtest_add_func("/mmu500/stall/banks", test_banks_are_apart);
    qtest_add_func("/mmu500/stall/cannot", test_device_cannot_stall);
    qtest_add_func("/mmu500/stall/all-faults", test_all_faults_stall);
    qtest_add_func("/mmu500/stall/nested", test_nested);
    qtest_add_func("/mmu500/stall/cancel", test_cancel);
    qtest_add_func("/mmu500/stall/many", test_many);
    qtest_add_func("/mmu500/stall/long", test_long_transfer);
    qtest_add_func("/mmu500/stall/reset", test_reset);
    qtest_add_func("/mmu500/stall/bus-master", test_bus_master_off);
    qtest_add_func("/mmu500/stall/resume-by-dma", test_resume_by_dma);
    return g_test_run();
}
