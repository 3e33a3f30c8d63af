/*
 * MMU-500: transactions that wait in a TBU, and what they cost in virtual
 * time. The clock stands still but for qtest_clock_step().
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "mmu500.h"

#define BANK 3

/* docs/specs/mmu500.md, in ns */
#define T_UTLB 4
#define T_TRIP 8
#define T_TCU  8
#define T_DESC 100
#define T_MTLB (T_UTLB + T_TRIP + T_TCU + T_TRIP)
#define T_WALK(n) (T_MTLB + (n) * T_DESC)

static Guest *timing_start(Tables *t, uint32_t sctlr, const char *props)
{
    g_autofree char *args = g_strdup_printf("-global arm-mmu500.timing=on %s",
                                            props);
    Guest *g = guest_start(args);

    *t = bank_s1(g, BANK, BANK, sctlr);
    stream_to(g, 0, S2CR_BANK(BANK));
    return g;
}

/* Reads a word at @iova on a channel, which takes @ns and ends with @end. */
static void assert_takes(Guest *g, int ch, uint64_t iova, int ns, int end)
{
    g_assert_cmpint(dma_start(g, ch, false, iova, ch * 4, 4), ==,
                    DMA_PENDING);
    qtest_clock_step(g->q, ns - 1);
    g_assert_cmpint(dma_status(g, ch), ==, DMA_PENDING);
    qtest_clock_step(g->q, 1);
    g_assert_cmpint(dma_status(g, ch), ==, end);
}

#define NO_PREFETCH "-global arm-mmu500.prefetch-size=0 "

static void test_costs(void)
{
    Tables t;
    Guest *g = timing_start(&t, SCTLR_ON,
                            NO_PREFETCH "-global arm-mmu500.utlb-entries=2");
    int i;

    for (i = 0; i < 4; i++) {
        map(g, &t, 0x10000 + i * 0x1000, PAGE(i), S1_RW);
        wr(g, PAGE(i), 0x70 + i);
    }
    /* three levels, then the walk cache leaves one; then hits */
    assert_takes(g, 0, 0x10000, T_WALK(3), DMA_OK);
    g_assert_cmphex(rd(g, EX_MEM), ==, 0x70);
    assert_takes(g, 1, 0x11000, T_WALK(1), DMA_OK);
    assert_takes(g, 2, 0x11000, T_UTLB, DMA_OK);
    assert_takes(g, 2, 0x12000, T_WALK(1), DMA_OK);
    assert_takes(g, 2, 0x10000, T_MTLB, DMA_OK);
    g_assert_cmphex(rd(g, EX_MEM + 8), ==, 0x70);
    g_assert_cmpint(get_stat(g, "timed"), ==, 5);
    g_assert_cmpint(get_stat(g, "transactions"), ==, 5);
    g_assert_cmpint(get_stat(g, "utlb-hits"), ==, 1);
    g_assert_cmpint(get_stat(g, "mtlb-hits"), ==, 1);
    g_assert_cmpint(get_stat(g, "walks"), ==, 3);
    g_assert_cmpint(get_stat(g, "descriptors"), ==, 5);
    g_assert_cmpint(get_stat(g, "latency-ns"), ==,
                    T_WALK(3) + 2 * T_WALK(1) + T_UTLB + T_MTLB);
    guest_stop(g);
}

/* A second one to the page waits for the walk of the first, no longer. */
static void test_hit_under_miss(void)
{
    Tables t;
    Guest *g = timing_start(&t, SCTLR_ON, NO_PREFETCH);

    map(g, &t, 0x10000, PAGE(0), S1_RW);
    g_assert_cmpint(dma_start(g, 0, false, 0x10000, 0, 4), ==, DMA_PENDING);
    qtest_clock_step(g->q, 100);
    assert_takes(g, 1, 0x10000, T_WALK(3) - 100, DMA_OK);
    g_assert_cmpint(dma_status(g, 0), ==, DMA_OK);
    guest_stop(g);
}

/* Nobody waits for a prefetch, but for what has not come yet. */
static void test_prefetch(void)
{
    Tables t;
    Guest *g = timing_start(&t, SCTLR_ON,
                            "-global arm-mmu500.prefetch-size=64K");
    int i;

    for (i = 0; i < 32; i++) {
        map(g, &t, 0x100000 + i * 0x1000, PAGE(i), S1_RW);
    }
    assert_takes(g, 0, 0x100000, T_WALK(3), DMA_OK);
    g_assert_cmpint(get_stat(g, "prefetches"), ==, 16);
    /* in the first one's line of descriptors; in the second */
    assert_takes(g, 0, 0x101000, T_MTLB, DMA_OK);
    qtest_clock_step(g->q, 1000);
    assert_takes(g, 0, 0x108000, T_MTLB, DMA_OK);
    g_assert_cmpint(get_stat(g, "prefetch-hits"), ==, 2);
    guest_stop(g);
}

/* A fault is recorded when the walk is done; what went away meanwhile went. */
static void test_faults(void)
{
    Tables t;
    Guest *g = timing_start(&t, SCTLR_ON | SCTLR_CFCFG, NO_PREFETCH);

    map(g, &t, 0x10000, PAGE(0), S1_RW);
    assert_takes(g, 0, 0x10000, T_WALK(3), DMA_OK);

    g_assert_cmpint(dma_start(g, 0, false, 0x20000, 0, 4), ==, DMA_PENDING);
    qtest_clock_step(g->q, T_WALK(1) - 1);
    g_assert_cmphex(rd(g, FSR(BANK)), ==, 0);
    qtest_clock_step(g->q, 1);
    g_assert_cmphex(rd(g, FSR(BANK)), ==, FSR_SS | FSR_TF | FSR_AA64);
    g_assert_cmphex(rd64(g, FAR(BANK)), ==, 0x20000);
    g_assert_cmpint(get_stat(g, "stalls"), ==, 1);
    g_assert_cmpint(get_stat(g, "context-faults"), ==, 1);
    /* a retry takes its time again */
    map(g, &t, 0x20000, PAGE(1), S1_RW);
    wr(g, FSR(BANK), FSR_ALL);
    wr(g, RESUME(BANK), RESUME_RETRY);
    g_assert_cmpint(dma_status(g, 0), ==, DMA_PENDING);
    qtest_clock_step(g->q, T_WALK(1));
    g_assert_cmpint(dma_status(g, 0), ==, DMA_OK);
    g_assert_cmpint(get_stat(g, "retries"), ==, 1);

    /* a hit on arrival that is no more when its time has passed */
    g_assert_cmpint(dma_start(g, 0, false, 0x10000, 0, 4), ==, DMA_PENDING);
    unmap(g, &t, 0x10000);
    wr(g, TLBIASID(BANK), BANK);
    qtest_clock_step(g->q, T_UTLB);
    g_assert_cmphex(rd(g, FSR(BANK)), ==, FSR_SS | FSR_TF | FSR_AA64);
    wr(g, FSR(BANK), FSR_ALL);
    wr(g, RESUME(BANK), RESUME_TERMINATE);
    g_assert_cmpint(dma_status(g, 0), ==, DMA_ERROR);
    guest_stop(g);
}

/* What the device gives up while it waits; reset with what waits. */
static void test_cancel_and_reset(void)
{
    Tables t;
    Guest *g = timing_start(&t, SCTLR_ON,
                            "-global arm-mmu500.tbu-outstanding=2");
    int i;

    map(g, &t, 0x10000, PAGE(0), S1_RW);
    for (i = 0; i < 4; i++) {
        g_assert_cmpint(dma_start(g, i, false, 0x10000, i * 4, 4), ==,
                        DMA_PENDING);
    }
    g_assert_cmpint(get_stat(g, "outstanding-waits"), ==, 2);
    wr(g, EX_CH(0, CH_CTL), CH_CANCEL);     /* takes its time */
    wr(g, EX_CH(3, CH_CTL), CH_CANCEL);     /* at the input */
    g_assert_cmpint(dma_status(g, 0), ==, DMA_ERROR);
    g_assert_cmpint(dma_status(g, 3), ==, DMA_ERROR);
    qtest_clock_step(g->q, 1000);
    g_assert_cmpint(dma_status(g, 1), ==, DMA_OK);
    g_assert_cmpint(dma_status(g, 2), ==, DMA_OK);

    for (i = 0; i < 4; i++) {
        g_assert_cmpint(dma_start(g, i, false, 0x20000, i * 4, 4), ==,
                        DMA_PENDING);
    }
    qtest_system_reset(g->q);
    guest_setup_pci(g);
    qtest_clock_step(g->q, 1000);
    for (i = 0; i < 4; i++) {
        g_assert_cmpint(dma_status(g, i), !=, DMA_PENDING);
    }
    guest_stop(g);
}

/* Without timing: what is stalled is outstanding, the rest waits. */
static void test_outstanding(void)
{
    Guest *g = guest_start("-global arm-mmu500.tbu-outstanding=4");
    Tables t = bank_s1(g, BANK, BANK, SCTLR_ON | SCTLR_CFCFG);
    int i, n = 0;

    stream_to(g, 0, S2CR_BANK(BANK));
    for (i = 0; i < 10; i++) {
        wr(g, EX_MEM + i * 4, 0x50 + i);
        g_assert_cmpint(dma_start(g, i, true, 0x10000 + i * 0x1000, i * 4, 4),
                        ==, DMA_PENDING);
    }
    g_assert_cmpint(get_stat(g, "stalled-peak"), ==, 4);
    g_assert_cmpint(get_stat(g, "outstanding-waits"), ==, 6);
    /* a stalled one that its device gives up makes room */
    wr(g, EX_CH(2, CH_CTL), CH_CANCEL);
    g_assert_cmpint(get_stat(g, "outstanding-peak"), ==, 4);
    g_assert_cmpint(get_stat(g, "stalled-peak"), ==, 4);

    while (rd(g, FSR(BANK)) & FSR_SS) {
        uint64_t far = rd64(g, FAR(BANK));

        i = (far - 0x10000) / 0x1000;
        g_assert_cmpint(i, <, 10);
        map(g, &t, far, PAGE(i), S1_RW);
        wr(g, FSR(BANK), FSR_ALL);
        wr(g, RESUME(BANK), RESUME_RETRY);
        g_assert_cmpint(++n, <=, 10);
    }
    g_assert_cmpint(n, ==, 9);
    for (i = 0; i < 10; i++) {
        g_assert_cmpint(dma_status(g, i), ==, i == 2 ? DMA_ERROR : DMA_OK);
        g_assert_cmphex(rd(g, PAGE(i)), ==, i == 2 ? 0 : 0x50 + i);
    }
    g_assert_cmpint(get_stat(g, "outstanding-peak"), ==, 4);
    guest_stop(g);
}

#define PMEVCNTR(n)  PM(4 * (n))
#define PMEVTYPER(n) PM(0x400 + 4 * (n))
#define PMCGCR(n)    PM(0x800 + 4 * (n))
#define PMCNTENSET   PM(0xc00)
#define PMCR         PM(0xe04)

/*
 * Many misses at one time, then a walk over pages in order, twice. Returns
 * the counters; those of the performance monitors as pm0.., and those of
 * time are left out: every knob is meant to move them.
 */
static QDict *workload(const char *props)
{
    static const uint32_t events[] = { 0x8, 0x80, 0x81, 0x82 };
    Tables t;
    Guest *g = timing_start(&t, SCTLR_ON, props);
    QDict *rsp, *stats;
    const QDictEntry *e, *next;
    int i;

    wr(g, PMCGCR(0), 1u << 11);
    for (i = 0; i < 4; i++) {
        wr(g, PMEVTYPER(i), events[i]);
    }
    wr(g, PMCNTENSET, 0xf);
    wr(g, PMCR, 1);

    for (i = 0; i < 200; i++) {
        map(g, &t, 0x400000 + i * 0x1000, PAGE(i), S1_RW);
    }
    /* each has a table of its own; no walk finds another's pointer */
    for (i = 0; i < 40; i++) {
        map(g, &t, 0x10000000ull + i * 0x200000, PAGE(i), S1_RW);
        wr(g, PAGE(i), i);
    }
    for (i = 0; i < 40; i++) {
        dma_start(g, i, false, 0x10000000ull + i * 0x200000, i * 4, 4);
    }
    qtest_clock_step(g->q, 100000);
    for (i = 0; i < 40; i++) {
        g_assert_cmpint(dma_status(g, i), ==, DMA_OK);
        g_assert_cmphex(rd(g, EX_MEM + i * 4), ==, i);
    }
    for (i = 0; i < 100; i++) {
        dma_start(g, 0, false, 0x400000 + (i % 50) * 0x1000, 0, 4);
        qtest_clock_step(g->q, 10000);
        g_assert_cmpint(dma_status(g, 0), ==, DMA_OK);
    }

    rsp = qtest_qmp(g->q, "{ 'execute': 'qom-get', 'arguments': "
                    "{ 'path': '/machine/mmu500', 'property': 'stats' } }");
    stats = qdict_clone_shallow(qdict_get_qdict(rsp, "return"));
    qobject_unref(rsp);
    for (e = qdict_first(stats); e; e = next) {
        next = qdict_next(stats, e);
        if (g_str_has_suffix(qdict_entry_key(e), "-ns")) {
            qdict_del(stats, qdict_entry_key(e));
        }
    }
    for (i = 0; i < 4; i++) {
        g_autofree char *name = g_strdup_printf("pm%d", i);

        qdict_put_int(stats, name, rd(g, PMEVCNTR(i)));
    }
    guest_stop(g);
    return stats;
}

/* Each knob alone moves its own counters and no others. */
static void test_knobs(void)
{
    static const struct {
        const char *knob;
        const char *own;        /* all of these, and no others */
    } knobs[] = {
        { "utlb-entries=64", "utlb-hits utlb-misses mtlb-hits" },
        { "mtlb-entries=16", "mtlb-hits mtlb-misses walks walk-cache-hits "
          "descriptors pm0" },
        { "walk-cache-entries=0", "walk-cache-hits descriptors" },
        { "prefetch-size=64K", "prefetches prefetch-hits mtlb-hits "
          "mtlb-misses walks walk-cache-hits descriptors pm0" },
        { "tbu-queue-depth=32", "queue-peak queue-waits pm2" },
        { "ptw-parallelism=16", "walks-peak walk-waits pm3" },
        { "tbu-outstanding=32", "outstanding-peak outstanding-waits pm1" },
    };
    /* What hides a knob is out of the way. */
    const char *base = NO_PREFETCH;
    QDict *without = workload(base);
    unsigned i;

    g_assert_cmpint(qdict_get_int(without, "queue-peak"), ==, 16);
    g_assert_cmpint(qdict_get_int(without, "walks-peak"), ==, 8);
    g_assert_cmpint(qdict_get_int(without, "outstanding-peak"), ==, 40);
    for (i = 0; i < ARRAY_SIZE(knobs); i++) {
        g_autofree char *props =
            g_strdup_printf("%s-global arm-mmu500.%s", base, knobs[i].knob);
        g_auto(GStrv) own = g_strsplit(knobs[i].own, " ", 0);
        QDict *with = workload(props);
        const QDictEntry *e;

        for (e = qdict_first(without); e; e = qdict_next(without, e)) {
            const char *name = qdict_entry_key(e);
            int64_t a = qdict_get_int(without, name);
            int64_t b = qdict_get_int(with, name);
            bool mine = g_strv_contains((const char *const *)own, name);

            if (mine ? a == b : a != b) {
                g_test_message("%s: %s %" PRId64 " -> %" PRId64,
                               knobs[i].knob, name, a, b);
                g_test_fail();
            }
        }
        qobject_unref(with);
    }
    qobject_unref(without);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mmu500/timing/costs", test_costs);
    qtest_add_func("/mmu500/timing/hit-under-miss", test_hit_under_miss);
    qtest_add_func("/mmu500/timing/prefetch", test_prefetch);
    qtest_add_func("/mmu500/timing/faults", test_faults);
    qtest_add_func("/mmu500/timing/cancel", test_cancel_and_reset);
    qtest_add_func("/mmu500/timing/outstanding", test_outstanding);
    qtest_add_func("/mmu500/timing/knobs", test_knobs);
    return g_test_run();
}
