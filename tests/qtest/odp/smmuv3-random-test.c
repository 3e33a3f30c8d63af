/*
 * SMMUv3: random configuration, invalidation and access against an oracle
 *
 * The oracle (smmuv3-oracle.h) says which outcomes a transaction may have
 * while structures have been changed and not invalidated; one of them has to
 * be what was seen, with every field of the event. After an invalidation
 * only the value in memory is left.
 *
 * A sequence stays with few structures, and a third of its steps are made to
 * hit a cache that is out of date: the same access before and after a change
 * on its way and an invalidation that covers it.
 *
 * ODP_SEED repeats a run; ODP_LONG=1 makes 10,000 sequences.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-oracle.h"

#define STEPS 24
#define POISON 0xd1d1d1d1d1d1d1d1ull

typedef struct World {
    SmmuTest *t;
    GRand *rand;
    bool ril;                   /* IDR3.RIL */
    uint64_t cds, l1, l1bad, root[ROOTS], s2;
    uint64_t s1slot[ROOTS][PAGES], s2slot[PAGES];
    Known k;
    GString *log;
    /* most of a sequence is about these: changes meet their invalidation */
    unsigned focus_cd, focus_root, focus_page;
} World;

static unsigned pick(World *w, unsigned n)
{
    return g_rand_int_range(w->rand, 0, n);
}

static bool chance(World *w, unsigned percent)
{
    return pick(w, 100) < percent;
}

static unsigned about(World *w, unsigned focus, unsigned n)
{
    return chance(w, 75) ? focus : pick(w, n);
}

static void G_GNUC_PRINTF(2, 3) note(World *w, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    g_string_append_vprintf(w->log, format, ap);
    va_end(ap);
    g_string_append_c(w->log, '\n');
}

/* -- invalidations -------------------------------------------------------- */

enum {
    INV_CFGI_ALL, INV_CFGI_STE, INV_CFGI_RANGE, INV_CFGI_CD, INV_CFGI_CD_ALL,
    INV_NH_ALL, INV_NH_ASID, INV_NH_VA, INV_NH_VAA, INV_NH_RANGE,
    INV_S12_VMALL, INV_S2_IPA, INV_NSNH_ALL, INVS
};

static uint64_t tlbi_lo(unsigned op, unsigned vmid, unsigned asid)
{
    return op | (uint64_t)vmid << 32 | (uint64_t)asid << 48;
}

static void invalidate(World *w, unsigned how, unsigned vmid, unsigned root,
                       unsigned page, unsigned cd)
{
    static const char *const name[INVS] = {
        "CFGI_ALL", "CFGI_STE", "CFGI_STE_RANGE", "CFGI_CD", "CFGI_CD_ALL",
        "NH_ALL", "NH_ASID", "NH_VA", "NH_VAA", "NH_VA range", "S12_VMALL",
        "S2_IPA", "NSNH_ALL",
    };
    SmmuTest *t = w->t;
    Known *k = &w->k;
    bool leaf = chance(w, 50);
    unsigned n = 0;

    if (how == INV_NH_RANGE && !w->ril) {
        how = INV_NH_VA;
    }
    note(w, "%s vmid %u root %u page %u cd %u", name[how], vmid, root, page,
         cd);
    switch (how) {
    case INV_CFGI_ALL:
        CMD_CFGI_ALL(t);
        forget_config(k, true, -1);
        break;
    case INV_CFGI_STE:
        CMD_CFGI_STE(t, t->sid);
        forget_config(k, true, -1);
        break;
    case INV_CFGI_RANGE:
        /* 2^(Range+1) streams; lower bits of the StreamID do not matter */
        n = pick(w, 5);
        smmu_cmd(t, 0x04 | (uint64_t)(t->sid ^ pick(w, 2u << n)) << 32, n);
        forget_config(k, true, -1);
        break;
    case INV_CFGI_CD:
        CMD_CFGI_CD(t, t->sid, cd);
        forget_config(k, false, cd);
        break;
    case INV_CFGI_CD_ALL:
        CMD_CFGI_CD_ALL(t, t->sid);
        forget_config(k, false, -1);
        break;
    case INV_NH_ALL:
        smmu_cmd(t, tlbi_lo(0x10, vmid, 0), 0);
        forget_s1(k, vmid, -1, -1);
        break;
    case INV_NH_ASID:
        smmu_cmd(t, tlbi_lo(0x11, vmid, root + 1), 0);
        forget_s1(k, vmid, root, -1);
        break;
    case INV_NH_VA:
        smmu_cmd(t, tlbi_lo(0x12, vmid, root + 1), k->page[page] | leaf);
        forget_s1(k, vmid, root, page);
        break;
    case INV_NH_VAA:
        smmu_cmd(t, tlbi_lo(0x13, vmid, 0), k->page[page] | leaf);
        forget_s1(k, vmid, -1, page);
        break;
    case INV_NH_RANGE:
        /* TG=4KB, SCALE=0: NUM+1 pages */
        n = pick(w, PAGES - page);
        smmu_cmd(t, tlbi_lo(0x12, vmid, root + 1) | n << 12,
                 k->page[page] | 1 << 10 | leaf);
        for (unsigned i = 0; i <= n; i++) {
            forget_s1(k, vmid, root, page + i);
        }
        break;
    case INV_S12_VMALL:
        smmu_cmd(t, tlbi_lo(0x28, vmid, 0), 0);
        forget_s12(k, vmid);
        break;
    case INV_S2_IPA:
        smmu_cmd(t, tlbi_lo(0x2a, vmid, 0), k->page[page] | leaf);
        forget_ipa(k, vmid, page);
        break;
    case INV_NSNH_ALL:
        CMD_TLBI_ALL(t);
        for (vmid = 1; vmid < VMIDS; vmid++) {
            forget_s12(k, vmid);
        }
        break;
    }
    CMD_SYNC(t);
}

static void invalidate_some(World *w)
{
    unsigned vmid = chance(w, 75) ? ste_vmid(LAST(&w->k.ste))
                                  : 1 + pick(w, VMIDS - 1);

    invalidate(w, pick(w, INVS), vmid, about(w, w->focus_root, ROOTS),
               about(w, w->focus_page, PAGES), about(w, w->focus_cd, CDS));
}

/* -- changes -------------------------------------------------------------- */

static SteVal random_ste(World *w)
{
    static const unsigned config[] = { 0, 1, 4, 5, 5, 5, 5, 6, 6, 7, 7, 7, 7 };
    static const unsigned dss[] = { 0, 1, 1, 2, 2, 3 };

    return (SteVal) {
        .v = chance(w, 96), .config = config[pick(w, ARRAY_SIZE(config))],
        .cdmax = chance(w, 4) ? SSIDSIZE + 1 : chance(w, 20) ? 0
                 : chance(w, 60) ? SSIDSIZE : 1 + pick(w, SSIDSIZE),
        .dss = dss[pick(w, ARRAY_SIZE(dss))], .fmt = pick(w, 2),
        .l1bad = chance(w, 10), .stalld = chance(w, 10),
        .s2r = chance(w, 70), .s2s = chance(w, 20), .eats = chance(w, 25),
    };
}

static void write_ste(World *w)
{
    const SteVal *v = LAST(&w->k.ste);
    Ste ste = {
        .invalid = !v->v, .config = v->config, .s1cdmax = v->cdmax,
        .s1dss = v->dss, .s1fmt = v->cdmax ? v->fmt : 0, .eats = v->eats,
        .s1stalld = v->stalld, .s2ttb = w->s2, .s2t0sz = 25, .s2sl0 = 1,
        .s2ps = 4, .s2r = v->s2r, .s2s = v->s2s, .s2vmid = ste_vmid(v),
        .s2affd = vmid_s2affd(ste_vmid(v)),
    };

    ste.cd = ste.s1fmt ? v->l1bad ? w->l1bad : w->l1 : w->cds;
    ste_write(w->t, w->t->sid, &ste);
    note(w, "ste v%d config %u cdmax %u dss %u fmt %u%s stalld %d s2r %d "
         "s2s %d eats %u", v->v, v->config, v->cdmax, v->dss, v->fmt,
         v->l1bad ? " bad" : "", v->stalld, v->s2r, v->s2s, v->eats);
}

static CdVal random_cd(World *w)
{
    return (CdVal) {
        .v = chance(w, 94), .s = chance(w, 25), .r = chance(w, 75),
        .a = chance(w, 96), .root = about(w, w->focus_root, ROOTS),
    };
}

static void write_cd(World *w, unsigned i)
{
    const CdVal *v = LAST(&w->k.cd[i]);
    Cd cd = {
        .invalid = !v->v, .ttb = w->root[v->root], .asid = v->root + 1,
        .s = v->s, .no_r = !v->r, .no_a = !v->a,
        .affd = root_affd(v->root), .wxn = root_wxn_pan(v->root),
        .pan = root_wxn_pan(v->root),
    };

    cd_write(w->t, w->cds + i * 64, &cd);
    note(w, "cd[%u] v%d root %u s%d r%d a%d", i, v->v, v->root, v->s, v->r,
         v->a);
}

static Desc random_desc(World *w)
{
    return (Desc) {
        .v = chance(w, 85), .af = chance(w, 90), .el0 = chance(w, 75),
        .ro = chance(w, 30), .uxn = chance(w, 30), .pxn = chance(w, 30),
        .r = chance(w, 90), .w = chance(w, 75), .xn = chance(w, 25),
        .out = pick(w, PAGES),
    };
}

static void write_s1(World *w, unsigned root, unsigned page)
{
    const Desc *d = LAST(s1_set(&w->k, VMID_S1, root, page));

    for (unsigned r = 0; r < ROOTS; r++) {
        if (r == root || page == GLOBAL) {
            qtest_writeq(w->t->qts, w->s1slot[r][page], w->k.page[d->out] |
                         (d->v ? PTE_PAGE : 0) | (d->el0 ? PTE_EL0 : 0) |
                         (d->ro ? PTE_RO : 0) | (d->af ? PTE_AF : 0) |
                         (d->uxn ? PTE_UXN : 0) | (d->pxn ? PTE_PXN : 0) |
                         (page == GLOBAL ? 0 : PTE_NG));
        }
    }
    note(w, "s1[%u][%u] v%d af%d el0%d ro%d uxn%d pxn%d ->%u", root, page,
         d->v, d->af, d->el0, d->ro, d->uxn, d->pxn, d->out);
}

static void write_s2(World *w, unsigned page)
{
    const Desc *d = LAST(&w->k.s2[VMID_S2][page]);

    qtest_writeq(w->t->qts, w->s2slot[page], w->k.page[d->out] |
                 (d->v ? PTE_PAGE : 0) | (d->r ? S2_R : 0) |
                 (d->w ? S2_W : 0) | (d->af ? PTE_AF : 0) |
                 (d->xn ? S2_XN : 0));
    note(w, "s2[%u] v%d af%d r%d w%d xn%d ->%u", page, d->v, d->af, d->r,
         d->w, d->xn, d->out);
}

static void change_ste(World *w)
{
    if (w->k.ste.n == VERSIONS) {
        invalidate(w, INV_CFGI_STE, 0, 0, 0, 0);
    }
    w->k.ste.val[w->k.ste.n++] = random_ste(w);
    write_ste(w);
}

static void change_cd(World *w, unsigned i)
{
    if (w->k.cd[i].n == VERSIONS) {
        invalidate(w, INV_CFGI_CD, 0, 0, 0, i);
    }
    w->k.cd[i].val[w->k.cd[i].n++] = random_cd(w);
    write_cd(w, i);
}

static void change_s1(World *w, unsigned root, unsigned page)
{
    for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
        if (s1_set(&w->k, vmid, root, page)->n == VERSIONS) {
            invalidate(w, INV_NH_VA, vmid, root, page, 0);
        }
    }
    push_s1(&w->k, root, page, random_desc(w));
    write_s1(w, root, page);
}

static void change_s2(World *w, unsigned page)
{
    for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
        if (w->k.s2[vmid][page].n == VERSIONS) {
            invalidate(w, INV_S12_VMALL, vmid, 0, 0, 0);
        }
    }
    push_s2(&w->k, page, random_desc(w));
    write_s2(w, page);
}

static void change_some(World *w)
{
    switch (pick(w, 8)) {
    case 0:
        change_ste(w);
        break;
    case 1:
    case 2:
        change_cd(w, about(w, w->focus_cd, CDS));
        break;
    case 3:
    case 4:
    case 5:
        change_s1(w, about(w, w->focus_root, ROOTS),
                  about(w, w->focus_page, PAGES));
        break;
    default:
        change_s2(w, about(w, w->focus_page, PAGES));
        break;
    }
}

/* -- accesses ------------------------------------------------------------- */

static uint64_t content(unsigned page, unsigned offset)
{
    return 0x5eed000000000000ull | page << 16 | offset;
}

static bool same(const Known *k, const Outcome *o, void *opaque)
{
    const Outcome *got = opaque;

    if (o->status != got->status || o->has_event != got->has_event ||
        (o->status == DMA_OK && o->out != got->out)) {
        return false;
    }
#define SAME(f) (o->event.f == got->event.f)
    return !o->has_event ||
           (SAME(type) && SAME(sid) && SAME(ssv) && SAME(ssid) &&
            SAME(stall) && SAME(pnu) && SAME(ind) && SAME(rnw) && SAME(s2) &&
            SAME(class) && SAME(addr) && SAME(addr2));
#undef SAME
}

static bool describe(const Known *k, const Outcome *o, void *opaque)
{
    g_printerr("#   permitted: status %u page %d event 0x%x ssv %d ssid %u "
               "s2 %d stall %d pnu %d ind %d rnw %d addr 0x%" PRIx64
               " 0x%" PRIx64 "\n", o->status, o->out,
               o->has_event ? o->event.type : 0, o->event.ssv, o->event.ssid,
               o->event.s2, o->event.stall, o->event.pnu, o->event.ind,
               o->event.rnw, o->event.addr, o->event.addr2);
    return false;
}

/* Does @a, or looks at what became of it; *stag of an event */
static void run(World *w, const Access *a, Outcome *o, uint16_t *stag,
                bool resumed)
{
    SmmuTest *t = w->t;
    uint32_t ctl = (a->write ? DMA_WRITE : DMA_READ) |
                   (a->priv ? DMA_PRIV : 0) | (a->inst ? DMA_INST : 0);

    memset(o, 0, sizeof(*o));
    o->out = -1;
    if (resumed) {
        o->status = dma_status(t, 0);
    } else {
        qtest_writeq(t->qts, t->mem, POISON);
        o->status = dma(t, in_addr(&w->k, a), ctl, a->ssid);
    }
    for (unsigned p = 0; p < PAGES; p++) {
        uint64_t at = w->k.page[p] + a->offset;

        if (a->write) {
            if (qtest_readq(t->qts, at) == POISON) {
                /* in one place, and only if it is said to be done */
                g_assert_cmpint(o->out, ==, -1);
                g_assert_cmpuint(o->status, ==, DMA_OK);
                o->out = p;
                qtest_writeq(t->qts, at, content(p, a->offset));
            }
        } else if (o->status == DMA_OK &&
                   qtest_readq(t->qts, t->mem) == content(p, a->offset)) {
            o->out = p;
        }
    }
    o->has_event = smmu_events(t);
    if (o->has_event) {
        smmu_pop_event(t, &o->event);
        *stag = o->event.stag;
        o->event.stag = 0;
    }
}

static void access_it(World *w, const Access *a)
{
    SmmuTest *t = w->t;
    uint16_t stag = 0;
    Outcome got;
    bool again = false;

    do {
        run(w, a, &got, &stag, again);
        if (smmu_events(t) || !outcomes(&w->k, a, same, &got)) {
            g_printerr("%s# access ssid %d page %u+0x%x write %d priv %d "
                       "inst %d%s\n# got:\n", w->log->str, a->ssid, a->page,
                       a->offset, a->write, a->priv, a->inst,
                       again ? " (retried)" : "");
            describe(&w->k, &got, NULL);
            g_printerr("# permitted:\n");
            outcomes(&w->k, a, describe, NULL);
            g_error("no combination explains the outcome");
        }
        note(w, "access ssid %d page %u write %d priv %d inst %d: %u",
             a->ssid, a->page, a->write, a->priv, a->inst, got.status);
        again = false;
        if (got.status == DMA_BUSY) {
            switch (pick(w, 4)) {
            case 0:
                CMD_RESUME(t, t->sid, stag, RESUME_ABORT);
                break;
            case 1:
                CMD_STALL_TERM(t, t->sid);
                break;
            default:
                /* an answer to another STAG does nothing */
                CMD_RESUME(t, t->sid, (uint16_t)(stag + 1), RESUME_ABORT);
                change_some(w);
                CMD_RESUME(t, t->sid, stag, RESUME_RETRY);
                again = true;
                break;
            }
            if (!again) {
                g_assert_cmpuint(dma_status(t, 0), ==, DMA_ERROR);
            }
        }
    } while (again);
}

static Access random_access(World *w)
{
    Access a = {
        .ssid = chance(w, 20) ? -1 : about(w, w->focus_cd, CDS + 1),
        .page = chance(w, 4) ? PAGES : about(w, w->focus_page, PAGES),
        .offset = pick(w, 2) * 0x10, .write = chance(w, 40),
    };

    if (a.ssid >= 0) {
        a.priv = chance(w, 25);
        a.inst = !a.write && chance(w, 25);
    }
    return a;
}

/* The same access before and after a change on its way, invalidated or not */
static void meet(World *w)
{
    static const unsigned ste_inv[] = {
        INV_CFGI_ALL, INV_CFGI_STE, INV_CFGI_RANGE };
    static const unsigned cd_inv[] = {
        INV_CFGI_CD, INV_CFGI_CD, INV_CFGI_CD_ALL, INV_CFGI_CD_ALL,
        INV_CFGI_STE, INV_CFGI_RANGE, INV_CFGI_ALL };
    static const unsigned s1_inv[] = {
        INV_NH_ALL, INV_NH_ASID, INV_NH_ASID, INV_NH_VA, INV_NH_VAA,
        INV_NH_RANGE, INV_S12_VMALL, INV_NSNH_ALL };
    static const unsigned s2_inv[] = {
        INV_S12_VMALL, INV_S12_VMALL, INV_S2_IPA, INV_NSNH_ALL };
    Access a = random_access(w);
    unsigned page = MIN(a.page, PAGES - 1);
    unsigned cd = MIN(MAX(a.ssid, 0), CDS - 1);
    unsigned root, vmid, how;

    access_it(w, &a);
    root = LAST(&w->k.cd[cd])->root;
    vmid = ste_vmid(LAST(&w->k.ste));
    switch (pick(w, 7)) {
    case 0:
        change_ste(w);
        invalidate(w, ste_inv[pick(w, ARRAY_SIZE(ste_inv))], vmid, root, page,
                   cd);
        break;
    case 1:
        change_cd(w, cd);
        invalidate(w, cd_inv[pick(w, ARRAY_SIZE(cd_inv))], vmid, root, page,
                   cd);
        break;
    case 2:
    case 3:
        change_s1(w, root, page);
        invalidate(w, s1_inv[pick(w, ARRAY_SIZE(s1_inv))], vmid, root, page,
                   cd);
        break;
    case 4:
        if (vmid == VMID_NESTED) {
            page = LAST(s1_set(&w->k, vmid, root, page))->out;
        }
        change_s2(w, page);
        how = s2_inv[pick(w, ARRAY_SIZE(s2_inv))];
        invalidate(w, how, vmid, root, page, cd);
        if (how == INV_S2_IPA) {
            invalidate(w, INV_NH_ALL, vmid, root, page, cd);
        }
        break;
    case 5:
        /* another address space, the same page */
        if (a.ssid >= 0) {
            a.ssid = pick(w, CDS);
        }
        break;
    case 6:
        /* other rights, the same page */
        a.write = !a.write;
        a.inst = false;
        a.priv = a.ssid >= 0 && pick(w, 2);
        break;
    }
    access_it(w, &a);
}

static void sequence(World *w)
{
    SmmuTest *t = w->t;

    w->focus_cd = chance(w, 25) ? 0 : pick(w, CDS);
    w->focus_root = pick(w, ROOTS);
    w->focus_page = pick(w, PAGES);
    w->k.ste.n = 1;
    w->k.ste.val[0] = random_ste(w);
    write_ste(w);
    for (unsigned i = 0; i < CDS; i++) {
        w->k.cd[i].n = 1;
        w->k.cd[i].val[0] = random_cd(w);
        write_cd(w, i);
    }
    for (unsigned p = 0; p < PAGES; p++) {
        Desc d = random_desc(w);

        w->k.ipa_gone[p] = false;
        for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
            w->k.s2[vmid][p].n = 1;
            w->k.s2[vmid][p].val[0] = d;
        }
        write_s2(w, p);
        for (unsigned r = 0; r < ROOTS; r++) {
            d = random_desc(w);
            for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
                s1_set(&w->k, vmid, r, p)->n = 1;
                s1_set(&w->k, vmid, r, p)->val[0] = d;
            }
            write_s1(w, r, p);
        }
    }
    CMD_CFGI_ALL(t);
    CMD_TLBI_ALL(t);
    CMD_SYNC(t);
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned what = pick(w, 12);

        if (what < 2) {
            change_some(w);
        } else if (what < 4) {
            invalidate_some(w);
        } else if (what < 8) {
            meet(w);
        } else {
            Access a = random_access(w);

            access_it(w, &a);
        }
    }
}

static void test_random(void)
{
    const char *env = g_getenv("ODP_SEED");
    uint32_t seed = env ? g_ascii_strtoull(env, NULL, 0) : g_random_int();
    unsigned n = g_getenv("ODP_LONG") ? 10000 : 100;
    World *w = g_new0(World, 1);
    Known *k = &w->k;
    SmmuTest *t;

    g_test_message("ODP_SEED=0x%x, %u sequences", seed, n);
    g_printerr("# ODP_SEED=0x%x, %u sequences\n", seed, n);
    w->rand = g_rand_new_with_seed(seed);
    w->log = g_string_new(NULL);
    t = w->t = smmu_start("stage=nested,ssidsize=4,stall-model=stall,ats=on");
    pasid_enable(t);
    k->sid = t->sid;
    k->term_model = smmu_r(t, SMMU_IDR0) >> 26 & 1;
    w->ril = smmu_r(t, SMMU_IDR3) >> 10 & 1;

    w->cds = smmu_pages(t, 1);
    w->l1 = smmu_pages(t, 1);
    w->l1bad = smmu_pages(t, 1);
    qtest_writeq(t->qts, w->l1, w->cds | 1);
    w->s2 = smmu_pages(t, 1);
    k->page[0] = smmu_pages(t, PAGES);
    for (unsigned p = 0; p < PAGES; p++) {
        k->page[p] = k->page[0] + p * 4096;
        for (unsigned o = 0; o < 0x20; o += 0x10) {
            qtest_writeq(t->qts, k->page[p] + o, content(p, o));
        }
    }
    for (unsigned r = 0; r < ROOTS; r++) {
        w->root[r] = smmu_pages(t, 1);
        for (unsigned p = 0; p < PAGES; p++) {
            w->s1slot[r][p] = pt_slot(t, w->root[r], k->page[p]);
        }
    }
    for (unsigned p = 0; p < PAGES; p++) {
        w->s2slot[p] = pt_slot(t, w->s2, k->page[p]);
    }
    /* the tables themselves, and those of stage 2 on the way */
    for (uint64_t a = VIRT_RAM + 0x200000; a < t->next; a += 4096) {
        if (!qtest_readq(t->qts, pt_slot(t, w->s2, a))) {
            pt_map(t, w->s2, a, a, S2_RW);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        g_string_printf(w->log, "sequence %u\n", i);
        sequence(w);
    }
    g_string_free(w->log, true);
    g_rand_free(w->rand);
    g_free(w);
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/random", test_random);
    return g_test_run();
}
