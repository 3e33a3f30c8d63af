/*
 * MMU-500: random work against an oracle, random abuse against nothing
 *
 * The oracle knows mappings, not tables: what each page leads to, with which
 * rights, and which level a missing one is missed at.
 *
 * Whole runs: -m slow, or ODP_LONG in the environment. --seed repeats one.
 *
 * The abuse has a kept corpus (mmu500-corpus.h): seeds of short runs that
 * together reach what can be reached of the register file. ODP_SEEDS="1 2 3"
 * plays others. tests/coverage/run measures and picks.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "mmu500.h"
#include "mmu500-corpus.h"

#define PAGES 64                /* of the window that is played in */
#define FRAMES 128              /* data pages */

static int rounds(int slow)
{
    return g_test_slow() || getenv("ODP_LONG") ? slow : slow / 100;
}

/* Of the run: from --seed, or of the corpus */
static GRand *rng;

static void rng_start(uint32_t seed)
{
    g_clear_pointer(&rng, g_rand_free);
    rng = g_rand_new_with_seed(seed);
}

/* In [0, n) */
static int below(int n)
{
    return g_rand_int_range(rng, 0, n);
}

static uint64_t any64(void)
{
    uint64_t hi = g_rand_int(rng);

    return hi << 32 | g_rand_int(rng);
}

static bool chance(int percent)
{
    return below(100) < percent;
}

typedef struct Entry {
    bool valid, ro, af, unpriv;
    int frame;
} Entry;

typedef enum Mode { S1_4K, S1_64K, S2_4K, LPAE, NESTED, NUM_MODES } Mode;

typedef struct World {
    Guest *g;
    Mode mode;
    Tables t;           /* of the stage that is played with */
    int cb;             /* its bank, also the one that records */
    int shift;
    uint64_t base;      /* of the window */
    bool priv;
    Entry e[PAGES];
    uint32_t data[FRAMES];
} World;

static uint64_t frame_addr(World *w, int frame)
{
    return RAM + 0x1000000 + ((uint64_t)frame << w->shift);
}

static uint64_t page_addr(World *w, int page)
{
    return w->base + ((uint64_t)page << w->shift);
}

static void world_setup(World *w)
{
    static const char *const name[] = {
        "stage 1 4K", "stage 1 64K", "stage 2", "LPAE", "nested",
    };
    Guest *g = w->g;
    int i;

    g_test_message("%s", name[w->mode]);
    w->cb = 3;
    w->shift = 12;
    w->base = 0x5000000;
    switch (w->mode) {
    case S1_4K:
        w->t = bank_s1(g, 3, 3, SCTLR_ON);
        break;
    case S1_64K:
        w->shift = 16;
        bank_s1(g, 3, 3, 0);
        w->t = tables_new(g, 16, 2, 42);
        wr(g, TCR(3), (64 - 42) | 1u << 14 | TCR_EPD1);
        wr64(g, TTBR0(3), w->t.root | 3ull << 48);
        wr(g, SCTLR(3), SCTLR_ON);
        break;
    case S2_4K:
        w->t = bank_s2(g, 3, 0, SCTLR_ON);
        break;
    case LPAE:
        w->t = tables_new(g, 12, 1, 32);
        wr(g, CBA2R(3), 0);
        wr(g, CBAR(3), CBAR_S1);
        wr(g, TCR(3), TCR_EAE | TCR_EPD1);
        wr64(g, TTBR0(3), w->t.root | 3ull << 48);
        wr(g, SCTLR(3), SCTLR_ON);
        break;
    case NESTED: {
        Tables s2 = bank_s2(g, 1, 0, SCTLR_ON);

        for (i = 0; i < 32; i++) {
            tables_map(g, &s2, RAM + i * 0x200000ull, RAM + i * 0x200000ull,
                       S2_RW, 2);
        }
        w->t = bank_s1(g, 3, 3, SCTLR_ON);
        wr(g, CBAR(3), CBAR_NESTED(1));
        break;
    }
    default:
        g_assert_not_reached();
    }
    stream_to(g, 0, S2CR_BANK(3));
    for (i = 0; i < FRAMES; i++) {
        w->data[i] = g_rand_int(rng);
        wr(g, frame_addr(w, i), w->data[i]);
    }
}

static uint64_t entry_desc(World *w, const Entry *e)
{
    uint64_t d = frame_addr(w, e->frame) | PTE_PAGE;

    if (!e->valid) {
        return g_rand_int(rng) & ~1u;
    }
    if (e->af) {
        d |= PTE_AF;
    }
    if (w->mode == S2_4K) {
        return d | PTE_S2R | (e->ro ? 0 : PTE_S2W);
    }
    return d | PTE_NG | (e->ro ? PTE_RO : 0) | (e->unpriv ? PTE_UNPRIV : 0);
}

static void invalidate(World *w, int page)
{
    Guest *g = w->g;
    uint64_t va = page_addr(w, page);

    if (w->mode == S2_4K) {
        switch (below(4)) {
        case 0:
            wr64(g, TLBIIPAS2(3), va >> 12);
            break;
        case 1:
            wr64(g, TLBIIPAS2L(3), va >> 12);
            break;
        case 2:
            wr(g, TLBIVMID, 0);
            break;
        case 3:
            wr(g, TLBIALL(3), 0);
            break;
        }
    } else {
        switch (below(6)) {
        case 0:
        case 1:
            if (w->mode == LPAE) {
                wr(g, TLBIVAL(3), va | 3);
            } else {
                wr64(g, TLBIVAL(3), va >> 12 | 3ull << 48);
            }
            break;
        case 2:
            if (w->mode == LPAE) {
                wr(g, TLBIVA(3), va | 3);
            } else {
                wr64(g, TLBIVA(3), va >> 12 | 3ull << 48);
            }
            break;
        case 3:
            wr(g, TLBIASID(3), 3);
            break;
        case 4:
            wr(g, TLBIALLNSNH, 0);
            break;
        case 5:
            wr(g, TLBIVMIDS1, 0);
            break;
        }
    }
    wr(g, TLBSYNC(3), 0);
}

static void change(World *w)
{
    int page = below(PAGES);
    Entry *e = &w->e[page];

    e->valid = chance(80);
    e->ro = chance(30);
    e->af = chance(90);
    e->unpriv = chance(85);
    e->frame = below(FRAMES);
    wr64(w->g, tables_desc(w->g, &w->t, page_addr(w, page), 3),
         entry_desc(w, e));
    invalidate(w, page);
}

static void access_page(World *w)
{
    Guest *g = w->g;
    int page = below(PAGES);
    const Entry *e = &w->e[page];
    bool write = chance(50);
    uint64_t va = page_addr(w, page);
    uint32_t want = 0, val = g_rand_int(rng), fsr, got = 0;
    int ret;

    if (!e->valid) {
        want = FSR_TF;
    } else if (!e->af) {
        want = FSR_AFF;
    } else if (write && e->ro) {
        want = FSR_PF;
    } else if (w->mode != S2_4K && !e->unpriv && !w->priv) {
        want = FSR_PF;
    }
    ret = write ? dma_write(g, va, val) : dma_read(g, va, &got);
    fsr = rd(g, FSR(3));
    if (want) {
        g_assert_cmpint(ret, ==, DMA_ERROR);
        g_assert_cmphex(fsr, ==,
                        want | (w->mode == LPAE ? FSR_LPAE : FSR_AA64));
        g_assert_cmphex(rd64(g, FAR(3)), ==, va);
        g_assert_cmphex(rd(g, FSYNR0(3)), ==,
                        3 | FSYNR0_NSATTR | (write ? FSYNR0_WNR : 0) |
                        (w->priv ? FSYNR0_PNU : 0));
        g_assert_true(qtest_get_irq(g->q, IRQ_CONTEXT));
        wr(g, FSR(3), fsr);
        g_assert_false(qtest_get_irq(g->q, IRQ_CONTEXT));
        return;
    }
    g_assert_cmpint(ret, ==, DMA_OK);
    g_assert_cmphex(fsr & FSR_ALL, ==, 0);
    if (write) {
        w->data[e->frame] = val;
        g_assert_cmphex(rd(g, frame_addr(w, e->frame)), ==, val);
    } else {
        g_assert_cmphex(got, ==, w->data[e->frame]);
    }
}

static void test_oracle(gconstpointer data)
{
    World w = {
        /* caches of a size that matters */
        .g = guest_start("-global arm-mmu500.utlb-entries=4 "
                         "-global arm-mmu500.mtlb-entries=32 "
                         "-global arm-mmu500.walk-cache-entries=4 "
                         "-global arm-mmu500.ipa-cache-entries=4"),
        .mode = GPOINTER_TO_INT(data),
    };
    int i, n = rounds(20000);

    rng_start(g_test_rand_int());
    world_setup(&w);
    for (i = 0; i < PAGES; i++) {
        change(&w);
    }
    for (i = 0; i < n; i++) {
        if (chance(30)) {
            change(&w);
        } else if (chance(2)) {
            w.priv = !w.priv;
            wr(w.g, S2CR(0), S2CR_BANK(3) | (w.priv ? S2CR_PRIV : 0));
        } else {
            access_page(&w);
        }
    }
    guest_stop(w.g);
}

/* Any register, any value; DMA in between; then it has to work again. */

static uint64_t random_reg(void)
{
    static const uint16_t gr0[] = {
        0x000, 0x004, 0x008, 0x010, 0x020, 0x024, 0x028, 0x02c, 0x03c, 0x040,
        0x044, 0x048, 0x04c, 0x050, 0x054, 0x058, 0x060, 0x064, 0x068, 0x06c,
        0x070, 0x074, 0x078, 0x0c0, 0x0c8, 0x0d8, 0x100, 0x108, 0x110, 0x118,
        0x120, 0x128, 0x130, 0x138, 0x180, 0x184, 0x188, 0xfd0, 0xfe0, 0xfe4,
        0xff0, 0xff4,
    };
    static const uint16_t cb[] = {
        0x000, 0x000, 0x004, 0x008, 0x008, 0x010, 0x020, 0x024, 0x028, 0x02c,
        0x030, 0x034, 0x038, 0x03c, 0x050, 0x054, 0x058, 0x05c, 0x060, 0x064,
        0x068, 0x06c, 0x070, 0x600, 0x604, 0x608, 0x610, 0x618, 0x620, 0x628,
        0x630, 0x638, 0x7f0, 0x7f4, 0x800, 0x808, 0x810, 0x818, 0x8f0,
    };
    static const uint16_t pm[] = {
        0x000, 0x014, 0x400, 0x414, 0x800, 0x804, 0xa00, 0xa04, 0xc00, 0xc20,
        0xc40, 0xc60, 0xc80, 0xcc0, 0xe00, 0xe04, 0xe20, 0xe24, 0xfb8, 0xfcc,
    };
    int n = below(8);

    switch (below(9)) {
    case 0:
        return GR0(gr0[below(ARRAY_SIZE(gr0))]);
    case 1:
        return SMR(n);
    case 2:
        return S2CR(n);
    case 3:
        return chance(45) ? CBAR(n) : chance(80) ? CBA2R(n) : CBFRSYNRA(n);
    case 4:
        return chance(70) ? PM(pm[below(ARRAY_SIZE(pm))])
                          : PM(below(0x400) * 4);
    case 5:
        return SMMU_BASE + below(0x80000 / 4) * 4;
    default:
        return CB(n, cb[below(ARRAY_SIZE(cb))]);
    }
}

static uint64_t random_value(Guest *g)
{
    switch (below(6)) {
    case 0:
        return 0;
    case 1:
        return 1ull << below(64);
    case 2:
        return RAM + 0x800000 + below(64) * 0x1000;
    case 3:
        return below(0x1000);
    case 4:
        return SMR_VALID | EX_SID | SCTLR_M;
    default:
        return any64();
    }
}

static void abuse(bool timing, int n)
{
    g_autofree char *props = g_strdup_printf(
                           "-global arm-mmu500.atos=on "
                           "-global arm-mmu500.exids=on "
                           "-global arm-mmu500.vmid16=on "
                           "-global arm-mmu500.granule-16k=on "
                           "-global arm-mmu500.s2-context-banks=1 "
                           "-global arm-mmu500.tbus=3 "
                           "-global arm-mmu500.prefetch-size=1M%s",
                           timing ? " -global arm-mmu500.timing=on "
                           "-global arm-mmu500.tbu-outstanding=4" : "");
    Guest *g = guest_start(props);
    g_autofree uint64_t *wild = g_new0(uint64_t, 64 * 512);
    Tables t;

    /* tables that point all over, at each other too */
    for (int i = 0; i < 64 * 512; i++) {
        uint64_t d = any64();

        if (chance(60)) {
            d = RAM + 0x800000 + d % 64 * 0x1000 + 0x4c3;
        }
        wild[i] = cpu_to_le64(d);
    }
    qtest_bufwrite(g->q, RAM + 0x800000, wild, 64 * 512 * 8);
    for (int i = 0; i < n; i++) {
        uint64_t reg = random_reg(), val = random_value(g);

        switch (below(10)) {
        case 0:
            rd(g, reg);
            break;
        case 1:
            rd64(g, reg & ~7ull);
            break;
        case 2:
            wr64(g, reg & ~7ull, val);
            break;
        case 3:
        case 4:
            /* not the flash at 0: a write there rebuilds the memory map */
            dma_start(g, below(16), chance(50),
                      (chance(50) ? val : (uint32_t)val) | RAM,
                      0, 1 + below(0x3000));
            break;
        case 5:
            if (timing) {
                qtest_clock_step(g->q, 1 + below(400));
            }
            if (chance(10)) {
                wr(g, EX_CH(below(16), CH_CTL), CH_CANCEL);
            }
            break;
        default:
            wr(g, reg, val);
            break;
        }
    }

    qtest_qmp_assert_success(g->q, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(g->q, "RESET");
    guest_setup_pci(g);
    g->next_table = TABLES;
    t = bank_s1(g, 3, 3, SCTLR_ON);
    stream_to(g, 0, S2CR_BANK(3));
    map(g, &t, 0x5000, PAGE(7), S1_RW);
    if (timing) {
        wr(g, PAGE(7), 0x1234);
        g_assert_cmpint(dma_start(g, 0, false, 0x5000, 0, 4), ==,
                        DMA_PENDING);
        qtest_clock_step(g->q, 10000);
        g_assert_cmpint(dma_status(g, 0), ==, DMA_OK);
        g_assert_cmphex(rd(g, EX_MEM), ==, 0x1234);
    } else {
        assert_maps(g, 0x5000, PAGE(7));
    }
    guest_stop(g);
}

static void test_abuse(const void *timing)
{
    rng_start(g_test_rand_int());
    abuse(timing, rounds(100000));
}

static void corpus_one(uint32_t seed)
{
    g_test_message("seed %u", seed);
    rng_start(seed);
    abuse(seed & 1, CORPUS_ACCESSES);
}

static void test_corpus(void)
{
    const char *own = getenv("ODP_SEEDS");

    if (own) {
        g_auto(GStrv) seeds = g_strsplit(own, " ", 0);

        for (int i = 0; seeds[i]; i++) {
            corpus_one(g_ascii_strtoull(seeds[i], NULL, 0));
        }
        return;
    }
    for (int i = 0; i < ARRAY_SIZE(mmu500_corpus); i++) {
        corpus_one(mmu500_corpus[i]);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_data_func("/mmu500/oracle/s1-4k", GINT_TO_POINTER(S1_4K),
                        test_oracle);
    qtest_add_data_func("/mmu500/oracle/s1-64k", GINT_TO_POINTER(S1_64K),
                        test_oracle);
    qtest_add_data_func("/mmu500/oracle/s2", GINT_TO_POINTER(S2_4K),
                        test_oracle);
    qtest_add_data_func("/mmu500/oracle/lpae", GINT_TO_POINTER(LPAE),
                        test_oracle);
    qtest_add_data_func("/mmu500/oracle/nested", GINT_TO_POINTER(NESTED),
                        test_oracle);
    qtest_add_data_func("/mmu500/abuse", NULL, test_abuse);
    qtest_add_data_func("/mmu500/abuse-timing", GINT_TO_POINTER(true),
                        test_abuse);
    qtest_add_func("/mmu500/corpus", test_corpus);
    return g_test_run();
}
