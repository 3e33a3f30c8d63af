/*
 * SMMUv3: random configuration, invalidation and access against an oracle
 *
 * The oracle is a few functions written from Arm IHI 0070: what a
 * transaction comes to under an STE, a CD, a stage 1 and a stage 2
 * descriptor. Where a structure was changed and not invalidated since, the
 * SMMU may use each value that it has had (3.21.2; descriptors without
 * valid bit or access flag are never cached): one of the combinations has
 * to explain what was seen, with every field of the event. After an
 * invalidation only the value in memory is left.
 *
 * ODP_SEED repeats a run; ODP_LONG=1 makes 10,000 sequences of 100.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define SSIDSIZE 4
#define CDS 16
#define ROOTS 3
#define PAGES 4           /* input pages, and what they can map to */
#define VERSIONS 3
#define STEPS 24
#define FAR (1ull << 40)  /* beyond the 39 bits of the tables */

/* VMIDs: stage 1, nested, stage 2. Each root has an ASID of its own. */
enum { VMID_S1 = 1, VMID_NESTED, VMID_S2, VMIDS };

typedef struct Desc {
    bool v, af, el0, ro, uxn;   /* stage 1 */
    bool r, w;                  /* stage 2 */
    unsigned out;
} Desc;

typedef struct CdVal {
    bool v, s, r;
    unsigned root;
} CdVal;

typedef struct SteVal {
    bool v, l1bad, stalld, s2r;
    unsigned config, cdmax, dss, fmt, eats;
} SteVal;

/* The values that may be in use; the last one is in memory */
#define SET(type) struct { type val[VERSIONS]; unsigned n; }

typedef struct World {
    SmmuTest *t;
    GRand *rand;
    uint64_t page[PAGES], cds, l1, l1bad, root[ROOTS], s2;
    uint64_t s1slot[ROOTS][PAGES], s2slot[PAGES];
    SET(SteVal) ste;
    SET(CdVal) cd[CDS];
    SET(Desc) s1[VMIDS][ROOTS][PAGES];
    SET(Desc) s2d[VMIDS][PAGES];
    GString *log;
    /* most of a sequence is about these: changes meet their invalidation */
    unsigned focus_cd, focus_root, focus_page;
} World;

typedef struct Access {
    int ssid;             /* -1: none */
    unsigned page;        /* PAGES: FAR */
    unsigned offset;
    bool write, priv, inst;
} Access;

typedef struct Outcome {
    unsigned status;
    int out;              /* page, or -1 */
    bool has_event;
    SmmuEvent event;
} Outcome;

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

/* -- the oracle ----------------------------------------------------------- */

static uint64_t in_addr(const World *w, const Access *a)
{
    return (a->page < PAGES ? w->page[a->page] : FAR) + a->offset;
}

static Outcome pass(int out)
{
    return (Outcome) { .status = DMA_OK, .out = out };
}

static Outcome refuse(const World *w, const Access *a, unsigned type)
{
    Outcome o = { .status = DMA_ERROR, .out = -1, .has_event = type };

    o.event.type = type;
    o.event.sid = w->t->sid;
    o.event.ssv = a->ssid >= 0;
    o.event.ssid = MAX(a->ssid, 0);
    return o;
}

static Outcome fault(const World *w, const Access *a, unsigned type, bool s2,
                     uint64_t ipa, bool record, bool stall)
{
    Outcome o = refuse(w, a, record || stall ? type : 0);

    if (stall) {
        o.status = DMA_BUSY;
        o.event.stall = true;
    }
    o.event.class = CLASS_IN;
    o.event.addr = in_addr(w, a);
    o.event.rnw = !a->write;
    o.event.pnu = a->priv;
    o.event.ind = a->inst && !a->write;
    o.event.s2 = s2;
    o.event.addr2 = s2 ? ipa & ~0xfffull : 0;
    return o;
}

static bool s1_allows(const Desc *d, const Access *a)
{
    if (a->write) {
        return !d->ro && (d->el0 || a->priv);
    }
    if (a->inst) {
        /* PXN is 0; what EL0 can write EL1 does not execute */
        return a->priv ? !(d->el0 && !d->ro) : !d->uxn;
    }
    return d->el0 || a->priv;
}

static Outcome stage2(const World *w, const Access *a, const SteVal *ste,
                      unsigned page, const Desc *d)
{
    uint64_t ipa = page < PAGES ? w->page[page] : FAR;
    unsigned type = 0;

    if (page >= PAGES || !d->v) {
        type = F_TRANSLATION;
    } else if (!d->af) {
        type = F_ACCESS;
    } else if (a->write ? !d->w : !a->inst && !d->r) {
        type = F_PERMISSION;
    }
    return type ? fault(w, a, type, true, ipa, ste->s2r, false)
                : pass(d->out);
}

/* Which CD: -1 none (bypass stage 1), -2 an error in *o */
static int find_cd(const World *w, const Access *a, const SteVal *ste,
                   Outcome *o)
{
    if (!ste->v || ste->cdmax > SSIDSIZE) {
        *o = refuse(w, a, C_BAD_STE);
        return -2;
    }
    if (ste->cdmax == 0) {
        if (a->ssid >= 0) {
            *o = refuse(w, a, C_BAD_SUBSTREAMID);
            return -2;
        }
        return 0;
    }
    if (a->ssid < 0) {
        if (ste->dss == 1) {
            return -1;
        }
        if (ste->dss != 2) {
            *o = refuse(w, a, F_STREAM_DISABLED);
            return -2;
        }
    } else if (a->ssid >= 1 << ste->cdmax) {
        *o = refuse(w, a, C_BAD_SUBSTREAMID);
        return -2;
    } else if (a->ssid == 0 && ste->dss == 2) {
        *o = refuse(w, a, F_STREAM_DISABLED);
        return -2;
    }
    if (ste->fmt && ste->l1bad) {
        *o = refuse(w, a, C_BAD_SUBSTREAMID);
        return -2;
    }
    return MAX(a->ssid, 0);
}

typedef bool Visit(World *w, const Outcome *o, void *opaque);

/* Calls @visit with every permitted outcome until it says true. */
static bool outcomes(World *w, const Access *a, Visit *visit, void *opaque)
{
    for (unsigned i = 0; i < w->ste.n; i++) {
        const SteVal *ste = &w->ste.val[i];
        unsigned vmid = ste->config == 5 ? VMID_S1 :
                        ste->config == 7 ? VMID_NESTED : VMID_S2;
        Outcome o;
        int cd;

        if (ste->v && ste->config == 0) {
            o = refuse(w, a, 0);
            cd = -2;
        } else if (ste->v && (ste->config == 4 || ste->config == 6) &&
                   a->ssid >= 0) {
            o = refuse(w, a, C_BAD_SUBSTREAMID);
            cd = -2;
        } else if (ste->v && (ste->config == 4 || ste->config == 6)) {
            cd = -1;
        } else {
            cd = find_cd(w, a, ste, &o);
        }
        if (cd == -2) {
            if (visit(w, &o, opaque)) {
                return true;
            }
            continue;
        }
        if (cd == -1 && (ste->config == 4 || ste->config == 5)) {
            o = a->page < PAGES ? pass(a->page) : refuse(w, a, 0);
            if (visit(w, &o, opaque)) {
                return true;
            }
            continue;
        }
        if (cd == -1) {
            unsigned n = a->page < PAGES ? w->s2d[vmid][a->page].n : 1;

            for (unsigned k = 0; k < n; k++) {
                o = stage2(w, a, ste, a->page, a->page < PAGES
                           ? &w->s2d[vmid][a->page].val[k] : NULL);
                if (visit(w, &o, opaque)) {
                    return true;
                }
            }
            continue;
        }
        for (unsigned j = 0; j < w->cd[cd].n; j++) {
            const CdVal *c = &w->cd[cd].val[j];
            unsigned n = a->page < PAGES ? w->s1[vmid][c->root][a->page].n : 1;

            for (unsigned k = 0; k < n; k++) {
                const Desc *d = a->page < PAGES
                    ? &w->s1[vmid][c->root][a->page].val[k] : NULL;
                unsigned type = 0;

                if (!c->v || (c->s && ste->stalld)) {
                    o = refuse(w, a, C_BAD_CD);
                } else {
                    if (!d || !d->v) {
                        type = F_TRANSLATION;
                    } else if (!d->af) {
                        type = F_ACCESS;
                    } else if (!s1_allows(d, a)) {
                        type = F_PERMISSION;
                    }
                    if (type) {
                        o = fault(w, a, type, false, 0, c->r, c->s);
                    } else if (ste->config == 5) {
                        o = pass(d->out);
                    } else {
                        for (unsigned l = 0; l < w->s2d[vmid][d->out].n; l++) {
                            o = stage2(w, a, ste, d->out,
                                       &w->s2d[vmid][d->out].val[l]);
                            if (visit(w, &o, opaque)) {
                                return true;
                            }
                        }
                        continue;
                    }
                }
                if (visit(w, &o, opaque)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* -- changes -------------------------------------------------------------- */

/* Only the value in memory is left. */
#define COLLAPSE(set) do { \
        (set)->val[0] = (set)->val[(set)->n - 1]; \
        (set)->n = 1; \
    } while (0)

static void collapse_config(World *w, bool ste, int cd)
{
    if (ste) {
        COLLAPSE(&w->ste);
    }
    for (int i = 0; i < CDS; i++) {
        if (cd < 0 || cd == i) {
            COLLAPSE(&w->cd[i]);
        }
    }
}

static void collapse_s1(World *w, unsigned vmid, int root, int page)
{
    for (int r = 0; r < ROOTS; r++) {
        for (int p = 0; p < PAGES; p++) {
            if ((root < 0 || root == r) && (page < 0 || page == p)) {
                COLLAPSE(&w->s1[vmid][r][p]);
            }
        }
    }
}

static void collapse_s2(World *w, unsigned vmid)
{
    for (int p = 0; p < PAGES; p++) {
        COLLAPSE(&w->s2d[vmid][p]);
    }
}

static void write_ste(World *w)
{
    const SteVal *v = &w->ste.val[w->ste.n - 1];
    Ste ste = {
        .invalid = !v->v, .config = v->config, .s1cdmax = v->cdmax,
        .s1dss = v->dss, .s1fmt = v->cdmax ? v->fmt : 0, .eats = v->eats,
        .s1stalld = v->stalld, .s2ttb = w->s2, .s2t0sz = 25, .s2sl0 = 1,
        .s2ps = 4, .s2r = v->s2r,
        .s2vmid = v->config == 5 ? VMID_S1 :
                  v->config == 7 ? VMID_NESTED : VMID_S2,
    };

    ste.cd = ste.s1fmt ? v->l1bad ? w->l1bad : w->l1 : w->cds;
    ste_write(w->t, w->t->sid, &ste);
}

static SteVal random_ste(World *w)
{
    static const unsigned config[] = { 0, 4, 5, 5, 5, 5, 6, 7, 7, 7 };

    return (SteVal) {
        .v = chance(w, 95), .config = config[pick(w, ARRAY_SIZE(config))],
        .cdmax = chance(w, 5) ? SSIDSIZE + 1 : chance(w, 20) ? 0
                 : 1 + pick(w, SSIDSIZE),
        .dss = pick(w, 4), .fmt = pick(w, 2), .l1bad = chance(w, 10),
        .stalld = chance(w, 10), .s2r = chance(w, 70), .eats = pick(w, 2),
    };
}

static void write_cd(World *w, unsigned i)
{
    const CdVal *v = &w->cd[i].val[w->cd[i].n - 1];
    Cd cd = {
        .invalid = !v->v, .ttb = w->root[v->root], .asid = v->root + 1,
        .s = v->s, .no_r = !v->r,
    };

    cd_write(w->t, w->cds + i * 64, &cd);
}

static CdVal random_cd(World *w)
{
    return (CdVal) {
        .v = chance(w, 92), .s = chance(w, 25), .r = chance(w, 75),
        .root = about(w, w->focus_root, ROOTS),
    };
}

static Desc random_desc(World *w)
{
    return (Desc) {
        .v = chance(w, 80), .af = chance(w, 90), .el0 = chance(w, 75),
        .ro = chance(w, 30), .uxn = chance(w, 30), .r = chance(w, 90),
        .w = chance(w, 70), .out = pick(w, PAGES),
    };
}

static void write_s1(World *w, unsigned root, unsigned page, const Desc *d)
{
    qtest_writeq(w->t->qts, w->s1slot[root][page], w->page[d->out] |
                 (d->v ? 3 : 0) | (d->el0 ? PTE_EL0 : 0) |
                 (d->ro ? PTE_RO : 0) | (d->af ? PTE_AF : 0) |
                 (d->uxn ? PTE_UXN : 0));
}

static void write_s2(World *w, unsigned page, const Desc *d)
{
    qtest_writeq(w->t->qts, w->s2slot[page], w->page[d->out] |
                 (d->v ? 3 : 0) | (d->r ? S2_R : 0) | (d->w ? S2_W : 0) |
                 (d->af ? PTE_AF : 0));
}

/* A value that was never cached is forgotten when it is replaced. */
#define PUSH_DESC(set, d) do { \
        if (!(set)->val[(set)->n - 1].v || !(set)->val[(set)->n - 1].af) { \
            (set)->n--; \
        } \
        (set)->val[(set)->n++] = (d); \
    } while (0)

static void set_s1(World *w, unsigned root, unsigned page, Desc d)
{
    g_string_append_printf(w->log, "s1[%u][%u] v%d af%d el0%d ro%d uxn%d "
                           "->%u\n", root, page, d.v, d.af, d.el0, d.ro,
                           d.uxn, d.out);
    for (int vmid = 1; vmid < VMIDS; vmid++) {
        PUSH_DESC(&w->s1[vmid][root][page], d);
    }
    write_s1(w, root, page, &d);
}

static uint64_t tlbi_lo(unsigned op, unsigned vmid, unsigned asid)
{
    return op | (uint64_t)vmid << 32 | (uint64_t)asid << 48;
}

static void invalidate(World *w)
{
    SmmuTest *t = w->t;
    unsigned config = w->ste.val[w->ste.n - 1].config, how = pick(w, 10);
    unsigned vmid = about(w, config == 5 ? 0 : config == 7 ? 1 : 2,
                          VMIDS - 1) + 1;
    unsigned root = about(w, w->focus_root, ROOTS);
    unsigned page = about(w, w->focus_page, PAGES);
    unsigned cd = about(w, w->focus_cd, CDS);

    g_string_append_printf(w->log, "invalidate %u vmid %u root %u page %u "
                           "cd %u\n", how, vmid, root, page, cd);
    switch (how) {
    case 0:
        CMD_CFGI_ALL(t);
        collapse_config(w, true, -1);
        break;
    case 1:
        CMD_CFGI_STE(t, t->sid);
        collapse_config(w, true, -1);
        break;
    case 2:
        CMD_CFGI_CD(t, t->sid, cd);
        collapse_config(w, false, cd);
        break;
    case 3:
        CMD_CFGI_CD_ALL(t, t->sid);
        collapse_config(w, false, -1);
        break;
    case 4:
        smmu_cmd(t, tlbi_lo(0x10, vmid, 0), 0);            /* NH_ALL */
        collapse_s1(w, vmid, -1, -1);
        break;
    case 5:
        smmu_cmd(t, tlbi_lo(0x11, vmid, root + 1), 0);     /* NH_ASID */
        collapse_s1(w, vmid, root, -1);
        break;
    case 6:
        smmu_cmd(t, tlbi_lo(0x12, vmid, root + 1), w->page[page]); /* NH_VA */
        collapse_s1(w, vmid, root, page);
        break;
    case 7:
        smmu_cmd(t, tlbi_lo(0x13, vmid, 0), w->page[page]); /* NH_VAA */
        collapse_s1(w, vmid, -1, page);
        break;
    case 8:
        smmu_cmd(t, tlbi_lo(0x28, vmid, 0), 0);            /* S12_VMALL */
        collapse_s1(w, vmid, -1, -1);
        collapse_s2(w, vmid);
        break;
    case 9:
        CMD_TLBI_ALL(t);                                   /* NSNH_ALL */
        for (vmid = 1; vmid < VMIDS; vmid++) {
            collapse_s1(w, vmid, -1, -1);
            collapse_s2(w, vmid);
        }
        break;
    }
    CMD_SYNC(t);
}

static void change(World *w)
{
    unsigned i, r, p;
    Desc d;

    switch (pick(w, 8)) {
    case 0:
        if (w->ste.n == VERSIONS) {
            CMD_CFGI_STE(w->t, w->t->sid);
            collapse_config(w, true, -1);
        }
        w->ste.val[w->ste.n++] = random_ste(w);
        write_ste(w);
        g_string_append_printf(w->log, "ste config %u cdmax %u dss %u\n",
                               w->ste.val[w->ste.n - 1].config,
                               w->ste.val[w->ste.n - 1].cdmax,
                               w->ste.val[w->ste.n - 1].dss);
        break;
    case 1:
    case 2:
        i = about(w, w->focus_cd, CDS);
        if (w->cd[i].n == VERSIONS) {
            CMD_CFGI_CD(w->t, w->t->sid, i);
            collapse_config(w, false, i);
        }
        w->cd[i].val[w->cd[i].n++] = random_cd(w);
        write_cd(w, i);
        g_string_append_printf(w->log, "cd[%u] v%d root %u s%d r%d\n", i,
                               w->cd[i].val[w->cd[i].n - 1].v,
                               w->cd[i].val[w->cd[i].n - 1].root,
                               w->cd[i].val[w->cd[i].n - 1].s,
                               w->cd[i].val[w->cd[i].n - 1].r);
        break;
    case 3:
    case 4:
    case 5:
        r = about(w, w->focus_root, ROOTS);
        p = about(w, w->focus_page, PAGES);
        for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
            if (w->s1[vmid][r][p].n == VERSIONS) {
                smmu_cmd(w->t, tlbi_lo(0x12, vmid, r + 1), w->page[p]);
                collapse_s1(w, vmid, r, p);
            }
        }
        set_s1(w, r, p, random_desc(w));
        break;
    default:
        p = about(w, w->focus_page, PAGES);
        d = random_desc(w);
        for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
            if (w->s2d[vmid][p].n == VERSIONS) {
                smmu_cmd(w->t, tlbi_lo(0x28, vmid, 0), 0);
                collapse_s1(w, vmid, -1, -1);
                collapse_s2(w, vmid);
            }
            PUSH_DESC(&w->s2d[vmid][p], d);
        }
        write_s2(w, p, &d);
        g_string_append_printf(w->log, "s2[%u] v%d af%d r%d w%d ->%u\n", p,
                               d.v, d.af, d.r, d.w, d.out);
        break;
    }
}

/* -- accesses ------------------------------------------------------------- */

static uint64_t content(unsigned page, unsigned offset)
{
    return 0x5eed000000000000ull | page << 16 | offset;
}

static bool same(World *w, const Outcome *o, void *opaque)
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

static bool describe(World *w, const Outcome *o, void *opaque)
{
    g_printerr("#   permitted: status %u page %d event 0x%x s2 %d stall %d "
               "addr 0x%" PRIx64 " 0x%" PRIx64 "\n", o->status, o->out,
               o->has_event ? o->event.type : 0, o->event.s2, o->event.stall,
               o->event.addr, o->event.addr2);
    return false;
}

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
        if (a->write) {
            qtest_writeq(t->qts, t->mem, 0xd1d1d1d1d1d1d1d1ull);
        }
        o->status = dma(t, in_addr(w, a), ctl, a->ssid);
    }
    if (o->status == DMA_OK) {
        for (unsigned p = 0; p < PAGES; p++) {
            uint64_t at = w->page[p] + a->offset;

            if (a->write) {
                if (qtest_readq(t->qts, at) == 0xd1d1d1d1d1d1d1d1ull) {
                    g_assert_cmpint(o->out, ==, -1);
                    o->out = p;
                    qtest_writeq(t->qts, at, content(p, a->offset));
                }
            } else if (qtest_readq(t->qts, t->mem) == content(p, a->offset)) {
                o->out = p;
            }
        }
    }
    o->has_event = smmu_events(t);
    if (o->has_event) {
        smmu_pop_event(t, &o->event);
        *stag = o->event.stag;
        o->event.stag = 0;
    }
}

static void access_once(World *w)
{
    SmmuTest *t = w->t;
    Access a = {
        .ssid = chance(w, 25) ? -1 : about(w, w->focus_cd, CDS + 1),
        .page = chance(w, 4) ? PAGES : about(w, w->focus_page, PAGES),
        .offset = pick(w, 2) * 0x10, .write = chance(w, 40),
    };
    uint16_t stag = 0;
    Outcome got;
    bool again = false;

    if (a.ssid >= 0) {
        a.priv = chance(w, 20);
        a.inst = !a.write && chance(w, 20);
    }
    do {
        run(w, &a, &got, &stag, again);
        if (smmu_events(t) || !outcomes(w, &a, same, &got)) {
            g_printerr("%s# access ssid %d page %u+0x%x write %d priv %d "
                       "inst %d%s\n# got:", w->log->str, a.ssid, a.page,
                       a.offset, a.write, a.priv, a.inst,
                       again ? " (retried)" : "");
            describe(w, &got, NULL);
            outcomes(w, &a, describe, NULL);
            g_error("no combination explains the outcome");
        }
        g_string_append_printf(w->log, "access ssid %d page %u write %d "
                               "priv %d inst %d: %u\n", a.ssid, a.page,
                               a.write, a.priv, a.inst, got.status);
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
                change(w);
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

static void sequence(World *w)
{
    SmmuTest *t = w->t;

    g_string_truncate(w->log, 0);
    w->focus_cd = chance(w, 25) ? 0 : pick(w, CDS);
    w->focus_root = pick(w, ROOTS);
    w->focus_page = pick(w, PAGES);
    w->ste.n = 1;
    w->ste.val[0] = random_ste(w);
    write_ste(w);
    for (unsigned i = 0; i < CDS; i++) {
        w->cd[i].n = 1;
        w->cd[i].val[0] = random_cd(w);
        write_cd(w, i);
    }
    for (unsigned p = 0; p < PAGES; p++) {
        Desc d = random_desc(w);

        for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
            w->s2d[vmid][p].n = 1;
            w->s2d[vmid][p].val[0] = d;
        }
        write_s2(w, p, &d);
        for (unsigned r = 0; r < ROOTS; r++) {
            d = random_desc(w);
            for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
                w->s1[vmid][r][p].n = 1;
                w->s1[vmid][r][p].val[0] = d;
            }
            write_s1(w, r, p, &d);
        }
    }
    CMD_CFGI_ALL(t);
    CMD_TLBI_ALL(t);
    CMD_SYNC(t);
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned what = pick(w, 10);

        if (what < 2) {
            change(w);
        } else if (what < 4) {
            invalidate(w);
        } else {
            access_once(w);
        }
    }
}

static void test_random(void)
{
    const char *env = g_getenv("ODP_SEED");
    uint32_t seed = env ? g_ascii_strtoull(env, NULL, 0) : g_random_int();
    unsigned n = g_getenv("ODP_LONG") ? 10000 : 100;
    World *w = g_new0(World, 1);
    SmmuTest *t;

    g_test_message("ODP_SEED=0x%x, %u sequences", seed, n);
    g_printerr("# ODP_SEED=0x%x, %u sequences\n", seed, n);
    w->rand = g_rand_new_with_seed(seed);
    w->log = g_string_new(NULL);
    t = w->t = smmu_start("stage=nested,ssidsize=4,stall-model=stall,ats=on");
    pasid_enable(t);

    w->cds = smmu_pages(t, 1);
    w->l1 = smmu_pages(t, 1);
    w->l1bad = smmu_pages(t, 1);
    qtest_writeq(t->qts, w->l1, w->cds | 1);
    w->s2 = smmu_pages(t, 1);
    for (unsigned p = 0; p < PAGES; p++) {
        w->page[p] = smmu_pages(t, 1);
        for (unsigned o = 0; o < 0x20; o += 0x10) {
            qtest_writeq(t->qts, w->page[p] + o, content(p, o));
        }
    }
    for (unsigned r = 0; r < ROOTS; r++) {
        w->root[r] = smmu_pages(t, 1);
        for (unsigned p = 0; p < PAGES; p++) {
            w->s1slot[r][p] = pt_slot(t, w->root[r], w->page[p]);
        }
    }
    for (unsigned p = 0; p < PAGES; p++) {
        w->s2slot[p] = pt_slot(t, w->s2, w->page[p]);
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
