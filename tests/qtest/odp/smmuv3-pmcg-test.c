/*
 * SMMUv3: performance monitor counter group
 *
 * Registers, events, filters, overflow. Section numbers: Arm IHI 0070,
 * chapter 10.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5
#define COUNTERS 8

#define PMCG (VIRT_SMMU + 0x2000)
enum {
    EVTYPER = 0x400, SVR = 0x600, SMR = 0xa00, CNTENSET = 0xc00,
    CNTENCLR = 0xc20, INTENSET = 0xc40, INTENCLR = 0xc60, OVSCLR = 0xc80,
    OVSSET = 0xcc0, CFGR = 0xe00, CR = 0xe04, CEID0 = 0xe20, CEID1 = 0xe28,
    IRQ_CTRL = 0xe50, IRQ_CTRLACK = 0xe54, PMDEVARCH = 0xfbc,
};
enum {
    TRANSACTION = 1, TLB_MISS, CONFIG_MISS, WALK, CONFIG_ACCESS, ATS_REQUEST,
    TRANSLATED,
};
#define SPAN (1u << 29)
#define SPI 78                      /* of the virt machine */

static uint32_t rd(SmmuTest *t, uint32_t reg)
{
    return qtest_readl(t->qts, PMCG + reg);
}

static void wr(SmmuTest *t, uint32_t reg, uint32_t val)
{
    qtest_writel(t->qts, PMCG + reg, val);
}

static void counter(SmmuTest *t, unsigned n, uint32_t typer, uint32_t smr)
{
    wr(t, EVTYPER + n * 4, typer);
    wr(t, SMR + n * 4, smr);
    wr(t, n * 4, 0);
    wr(t, CNTENSET, 1u << n);
}

typedef struct Stream {
    uint64_t cds, root, page;
} Stream;

/* VA with SSID is mapped; counter n counts event n */
static SmmuTest *start(Stream *st)
{
    SmmuTest *t = smmu_start("ssidsize=8,ats=on,pmcg=on");
    Cd cd = { };
    Ste ste = { .config = 5, .s1cdmax = 3, .s1dss = 2, .eats = 1 };

    st->cds = ste.cd = smmu_pages(t, 1);
    st->root = cd.ttb = smmu_pages(t, 1);
    st->page = smmu_pages(t, 1);
    pt_map(t, st->root, VA, st->page, PTE_RW_EL0);
    cd_write(t, st->cds + SSID * 64, &cd);
    ste_write(t, t->sid, &ste);
    pasid_enable(t);
    for (unsigned n = 1; n < COUNTERS; n++) {
        counter(t, n, n | SPAN, UINT32_MAX);
    }
    wr(t, CR, 1);
    return t;
}

/* 10.5: what there is, reset values, set and clear registers */
static void test_registers(void)
{
    SmmuTest *t = smmu_boot("pmcg=on", NULL);
    static const struct { uint32_t set, clr; } bits[] = {
        { CNTENSET, CNTENCLR }, { INTENSET, INTENCLR }, { OVSSET, OVSCLR },
    };

    g_assert_cmphex(rd(t, CFGR), ==, 31 << 8 | (COUNTERS - 1));
    g_assert_cmphex(rd(t, CEID0), ==, 0x3f);
    g_assert_cmphex(qtest_readq(t->qts, PMCG + CEID1), ==, 0);
    g_assert_cmphex(rd(t, PMDEVARCH), ==, 0x47702a56);
    g_assert_cmphex(rd(t, CR), ==, 0);
    g_assert_cmphex(rd(t, IRQ_CTRL), ==, 0);
    wr(t, IRQ_CTRL, 0xffffffff);
    g_assert_cmphex(rd(t, IRQ_CTRLACK), ==, 1);
    for (int i = 0; i < ARRAY_SIZE(bits); i++) {
        g_assert_cmphex(qtest_readq(t->qts, PMCG + bits[i].set), ==, 0);
        qtest_writeq(t->qts, PMCG + bits[i].set, UINT64_MAX);
        g_assert_cmphex(qtest_readq(t->qts, PMCG + bits[i].clr), ==, 0xff);
        qtest_writeq(t->qts, PMCG + bits[i].clr, 0x1f);
        g_assert_cmphex(qtest_readq(t->qts, PMCG + bits[i].set), ==, 0xe0);
    }
    for (int n = 0; n < COUNTERS; n++) {
        wr(t, n * 4, 0x1000 + n);
        wr(t, EVTYPER + n * 4, 0xffffffff);
        wr(t, SMR + n * 4, 0x2000 + n);
    }
    for (int n = 0; n < COUNTERS; n++) {
        g_assert_cmphex(rd(t, n * 4), ==, 0x1000 + n);
        g_assert_cmphex(rd(t, EVTYPER + n * 4), ==, SPAN | 0xffff);
        g_assert_cmphex(rd(t, SMR + n * 4), ==, 0x2000 + n);
        g_assert_cmphex(rd(t, SVR + n * 4), ==, 0);
    }
    g_assert_cmphex(rd(t, COUNTERS * 4), ==, 0);
    smmu_quit(t);

    /* off: the SMMU's own registers, which are RAZ there */
    t = smmu_boot(NULL, NULL);
    g_assert_cmphex(rd(t, CFGR), ==, 0);
    smmu_quit(t);
}

/* 10.3: each event, counted at its cause */
static void test_events(void)
{
    static const struct {
        const char *name;
        unsigned count[COUNTERS];
    } want[] = {
        /*            -  tr tlb cfg walk acc ats trans */
        { "first",    { 0, 1, 1, 1, 3, 2, 0, 0 } },
        { "hit",      { 0, 2, 1, 1, 3, 2, 0, 0 } },
        { "TLBI",     { 0, 3, 2, 1, 6, 2, 0, 0 } },
        { "CFGI",     { 0, 4, 2, 2, 6, 4, 0, 0 } },
        { "fault",    { 0, 5, 3, 2, 9, 4, 0, 0 } },
        { "ATS",      { 0, 5, 3, 2, 9, 4, 1, 0 } },
        { "ATC hit",  { 0, 6, 3, 2, 9, 4, 1, 1 } },
        { "off",      { 0, 6, 3, 2, 9, 4, 1, 1 } },
    };
    Stream st;
    SmmuTest *t = start(&st);

    for (int i = 0; i < ARRAY_SIZE(want); i++) {
        uint64_t va = VA;
        bool ok = true;

        switch (i) {
        case 2:
            CMD_TLBI_NH_ALL(t);
            break;
        case 3:
            CMD_CFGI_STE(t, t->sid);
            break;
        case 4:
            va += 4096;
            ok = false;
            break;
        case 5:
            ats_enable(t, true);
            qtest_writel(t->qts, t->regs + 0x10, VA);
            qtest_writel(t->qts, t->regs + 0x14, 0);
            qtest_writel(t->qts, t->regs + 0x20, SSID);
            qtest_writel(t->qts, t->regs + 0x24, 1 | 8);
            break;
        case 7:
            wr(t, CR, 0);
            break;
        }
        if (i == 6) {
            g_assert_cmpuint(dma(t, st.page, DMA_TRANSLATED, SSID), ==,
                             DMA_OK);
        } else if (i != 5) {
            g_assert_cmpuint(dma(t, va, DMA_READ, SSID), ==,
                             ok ? DMA_OK : DMA_ERROR);
        }
        for (unsigned n = 1; n < COUNTERS; n++) {
            if (rd(t, n * 4) != want[i].count[n]) {
                g_error("%s: event %u was counted %u times, not %u",
                        want[i].name, n, rd(t, n * 4), want[i].count[n]);
            }
        }
    }
    smmu_quit(t);
}

/* 10.4: filter by StreamID, exact or a span */
static void test_filter(void)
{
    Stream st;
    SmmuTest *t = start(&st);
    struct { uint32_t typer, smr; bool counts; } row[] = {
        { TRANSACTION, t->sid, true },
        { TRANSACTION, t->sid + 1, false },
        { TRANSACTION, UINT32_MAX, false },
        { TRANSACTION | SPAN, UINT32_MAX, true },
        { TRANSACTION | SPAN, UINT32_MAX >> 1, true },
        /* the lowest 0 and what is below: 4, 2 and 1 IDs */
        { TRANSACTION | SPAN, (t->sid & ~3u) | 1, true },
        { TRANSACTION | SPAN, ((t->sid ^ 8) & ~3u) | 1, false },
        { TRANSACTION | SPAN, t->sid & ~1u, true },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        counter(t, i, row[i].typer, row[i].smr);
    }
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        g_assert_cmpuint(rd(t, i * 4), ==, row[i].counts);
    }
    wr(t, CNTENCLR, 1);
    g_assert_cmpuint(dma(t, VA, DMA_READ, SSID), ==, DMA_OK);
    g_assert_cmpuint(rd(t, 0), ==, 1);
    g_assert_cmpuint(rd(t, 3 * 4), ==, 2);
    smmu_quit(t);
}

/* 10.6: overflow status and its interrupt */
static void test_overflow(void)
{
    static const struct { bool inten, irqen; } row[] = {
        { true, true }, { false, true }, { true, false },
    };

    for (int i = 0; i < ARRAY_SIZE(row); i++) {
        bool irq = row[i].inten && row[i].irqen;
        Stream st;
        SmmuTest *t = start(&st);

        smmu_wire_watch(t, SPI);
        wr(t, INTENSET, row[i].inten ? 2 : 0);
        wr(t, IRQ_CTRL, row[i].irqen);
        wr(t, TRANSACTION * 4, 0xfffffffe);
        dma(t, VA, DMA_READ, SSID);
        g_assert_cmphex(rd(t, OVSSET), ==, 0);
        g_assert_false(smmu_wire(t, SPI));
        dma(t, VA, DMA_READ, SSID);
        g_assert_cmphex(rd(t, TRANSACTION * 4), ==, 0);
        g_assert_cmphex(rd(t, OVSSET), ==, 2);
        g_assert_cmpint(smmu_wire(t, SPI), ==, irq);

        /* not again before the status is cleared */
        smmu_wire_clear(t, SPI);
        wr(t, TRANSACTION * 4, 0xffffffff);
        dma(t, VA, DMA_READ, SSID);
        g_assert_false(smmu_wire(t, SPI));
        wr(t, OVSCLR, 2);
        wr(t, TRANSACTION * 4, 0xffffffff);
        dma(t, VA, DMA_READ, SSID);
        g_assert_cmpint(smmu_wire(t, SPI), ==, irq);
        smmu_quit(t);
    }
}

/* 10.4: event 0 are cycles, of no stream; time is what the clock says */
static void test_cycles(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    smmu_wire_watch(t, SPI);
    wr(t, INTENSET, 1);
    wr(t, IRQ_CTRL, 1);
    counter(t, 0, 0, t->sid + 99);
    wr(t, 0, 7);
    qtest_clock_step(t->qts, 1000);
    g_assert_cmpuint(rd(t, 0), ==, 1007);
    g_assert_cmpuint(rd(t, 0), ==, 1007);
    dma(t, VA, DMA_READ, SSID);
    g_assert_cmpuint(rd(t, 0), ==, 1007);

    /* off, by each of the two switches */
    wr(t, CNTENCLR, 1);
    qtest_clock_step(t->qts, 1000);
    g_assert_cmpuint(rd(t, 0), ==, 1007);
    wr(t, CNTENSET, 1);
    wr(t, CR, 0);
    qtest_clock_step(t->qts, 1000);
    g_assert_cmpuint(rd(t, 0), ==, 1007);
    wr(t, CR, 1);
    qtest_clock_step(t->qts, 1);
    g_assert_cmpuint(rd(t, 0), ==, 1008);

    /* nobody looks when it overflows */
    wr(t, 0, 0xffffff00);
    qtest_clock_step(t->qts, 255);
    g_assert_false(smmu_wire(t, SPI));
    qtest_clock_step(t->qts, 1);
    g_assert_true(smmu_wire(t, SPI));
    g_assert_cmphex(rd(t, OVSSET), ==, 1);
    g_assert_cmpuint(rd(t, 0), ==, 0);
    smmu_quit(t);
}

/* Counters, filters and the time of the next overflow go over */
static void test_migration(void)
{
    static const uint32_t regs[] = {
        CNTENSET, INTENSET, OVSSET, CR, IRQ_CTRL,
        EVTYPER + 4, SMR + 4, EVTYPER + 8, SMR + 8, EVTYPER + 12,
        4, 8, 12, 16, 20, 24, 28, 0,
    };
    uint32_t before[ARRAY_SIZE(regs)];
    Stream st;
    SmmuTest *t = start(&st);
    int64_t now;

    smmu_wire_watch(t, SPI);
    wr(t, INTENSET, 5);
    wr(t, IRQ_CTRL, 1);
    wr(t, OVSSET, 8);
    wr(t, SMR + 8, t->sid);
    counter(t, 0, 0, 0);
    qtest_clock_step(t->qts, 5000);
    for (int i = 0; i < 20; i++) {
        dma(t, VA + i % 3 * 4096, DMA_READ, SSID);
    }
    wr(t, 0, 0xffffff00);
    now = qtest_clock_step(t->qts, 55);
    for (int i = 0; i < ARRAY_SIZE(regs); i++) {
        before[i] = rd(t, regs[i]);
    }
    g_assert_cmphex(before[ARRAY_SIZE(regs) - 1], ==, 0xffffff00 + 55);

    smmu_migrate(t, "ssidsize=8,ats=on,pmcg=on");
    /* a qtest's clock starts anew */
    qtest_clock_set(t->qts, now);
    for (int i = 0; i < ARRAY_SIZE(regs); i++) {
        if (rd(t, regs[i]) != before[i]) {
            g_error("register 0x%x is 0x%x, not 0x%x", regs[i],
                    rd(t, regs[i]), before[i]);
        }
    }
    dma(t, VA, DMA_READ, SSID);
    g_assert_cmpuint(rd(t, TRANSACTION * 4), ==, 21);
    qtest_clock_step(t->qts, 200);
    g_assert_false(smmu_wire(t, SPI));
    qtest_clock_step(t->qts, 1);
    g_assert_true(smmu_wire(t, SPI));
    g_assert_cmphex(rd(t, OVSSET), ==, 9);
    g_assert_cmpuint(rd(t, 0), ==, 0);
    smmu_quit(t);
}

static uint64_t qom(SmmuTest *t, const char *name)
{
    QDict *rsp = qtest_qmp(t->qts, "{ 'execute': 'qom-list', 'arguments': "
                           "{ 'path': '/machine/unattached' } }");
    QListEntry *e;
    uint64_t val = UINT64_MAX;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "return"), e) {
        QDict *d = qobject_to(QDict, qlist_entry_obj(e));

        if (!strcmp(qdict_get_str(d, "type"), "child<arm-smmuv3>")) {
            g_autofree char *path = g_strdup_printf("/machine/unattached/%s",
                                                    qdict_get_str(d, "name"));
            QDict *get = qtest_qmp(t->qts, "{ 'execute': 'qom-get', "
                                   "'arguments': { 'path': %s, "
                                   "'property': %s } }", path, name);

            val = qdict_get_int(get, "return");
            qobject_unref(get);
        }
    }
    qobject_unref(rsp);
    return val;
}

/* The model's own totals agree with the counters */
static void test_totals(void)
{
    Stream st;
    SmmuTest *t = start(&st);

    for (int i = 0; i < 100; i++) {
        dma(t, VA + i % 7 * 4096, DMA_READ, SSID);
    }
    g_assert_cmpuint(rd(t, TRANSACTION * 4), ==, 100);
    g_assert_cmpuint(qom(t, "transactions"), ==, 100);
    g_assert_cmpuint(qom(t, "tlb-misses"), ==, rd(t, TLB_MISS * 4));
    g_assert_cmpuint(qom(t, "walk-accesses"), ==, rd(t, WALK * 4));
    g_assert_cmpuint(qom(t, "config-misses"), ==, 1);
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/pmcg/registers", test_registers);
    qtest_add_func("smmuv3/pmcg/events", test_events);
    qtest_add_func("smmuv3/pmcg/filter", test_filter);
    qtest_add_func("smmuv3/pmcg/overflow", test_overflow);
    qtest_add_func("smmuv3/pmcg/cycles", test_cycles);
    qtest_add_func("smmuv3/pmcg/totals", test_totals);
    qtest_add_func("smmuv3/pmcg/migration", test_migration);
    return g_test_run();
}
