/*
 * MMU-500: translation caches (DDI 0517 section 2.4)
 *
 * Each TBU has a fully associative micro TLB. The TCU has a four-way macro
 * TLB, a four-way cache of pointers to last-level tables and a four-way
 * cache of stage 2 translations. None of it is visible but by counters and
 * by missing invalidations.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "mmu500-internal.h"
#include "trace.h"

#define WAYS 4

typedef struct TransCache {
    MMU500Trans *e;
    uint32_t sets;              /* power of two, or 0: no cache */
    uint32_t next;              /* way to replace */
    uint64_t sizes;             /* bit n: an entry of 2^n bytes was inserted */
} TransCache;

typedef struct WalkCache {
    MMU500WalkEntry *e;
    uint32_t sets;
    uint32_t next;
    uint64_t sizes;
} WalkCache;

typedef struct MicroTLB {
    MMU500Trans *e;
    uint32_t next;
    uint32_t last;              /* the last hit: tried first */
} MicroTLB;

struct MMU500TLB {
    MicroTLB micro[MMU500_MAX_TBU];
    uint32_t micro_entries;
    uint32_t num_micro;
    TransCache macro;
    TransCache ipa;
    WalkCache walk;
};

static uint32_t num_sets(uint32_t entries)
{
    return entries < WAYS ? 0 : pow2floor(entries / WAYS);
}

void mmu500_tlb_init(MMU500State *s)
{
    MMU500TLB *tlb = g_new0(MMU500TLB, 1);
    unsigned i;

    tlb->micro_entries = s->utlb_entries;
    tlb->num_micro = s->num_tbu;
    for (i = 0; i < tlb->num_micro; i++) {
        tlb->micro[i].e = g_new0(MMU500Trans, tlb->micro_entries);
    }
    tlb->macro.sets = num_sets(s->mtlb_entries);
    tlb->macro.e = g_new0(MMU500Trans, tlb->macro.sets * WAYS);
    tlb->ipa.sets = num_sets(s->ipa_entries);
    tlb->ipa.e = g_new0(MMU500Trans, tlb->ipa.sets * WAYS);
    tlb->walk.sets = num_sets(s->wc_entries);
    tlb->walk.e = g_new0(MMU500WalkEntry, tlb->walk.sets * WAYS);
    s->tlb = tlb;
}

void mmu500_tlb_free(MMU500State *s)
{
    unsigned i;

    for (i = 0; i < s->tlb->num_micro; i++) {
        g_free(s->tlb->micro[i].e);
    }
    g_free(s->tlb->macro.e);
    g_free(s->tlb->ipa.e);
    g_free(s->tlb->walk.e);
    g_free(s->tlb);
    s->tlb = NULL;
}

void mmu500_tlb_flush(MMU500State *s)
{
    MMU500TLB *tlb = s->tlb;
    unsigned i;

    for (i = 0; i < tlb->num_micro; i++) {
        memset(tlb->micro[i].e, 0,
               sizeof(MMU500Trans) * tlb->micro_entries);
    }
    memset(tlb->macro.e, 0, sizeof(MMU500Trans) * tlb->macro.sets * WAYS);
    memset(tlb->ipa.e, 0, sizeof(MMU500Trans) * tlb->ipa.sets * WAYS);
    memset(tlb->walk.e, 0, sizeof(MMU500WalkEntry) * tlb->walk.sets * WAYS);
    tlb->macro.sizes = 0;
    tlb->ipa.sizes = 0;
    tlb->walk.sizes = 0;
    s->unmap_pending = true;
}

static inline bool trans_match(const MMU500Trans *t, const MMU500Regime *r,
                               uint64_t va)
{
    return t->valid && (va & ~t->mask) == t->va && t->vmid == r->vmid &&
           t->stage1 == r->stage1 &&
           (!r->stage1 || t->global || t->asid == r->asid);
}

/* The set of an address; ASIDs stay out, as global entries have none. */
static uint32_t set_index(uint32_t sets, uint64_t va, unsigned shift,
                          uint16_t vmid)
{
    uint64_t n = va >> shift;

    n ^= n >> 11;
    n ^= vmid * 0x9e5u;
    return n & (sets - 1);
}

static MMU500Trans *cache_lookup(TransCache *c, const MMU500Regime *r,
                                 uint64_t va)
{
    uint64_t sizes = c->sizes;

    while (sizes) {
        unsigned shift = ctz64(sizes);
        MMU500Trans *set = &c->e[set_index(c->sets, va, shift, r->vmid) * WAYS];
        unsigned i;

        sizes &= sizes - 1;
        for (i = 0; i < WAYS; i++) {
            if (trans_match(&set[i], r, va) &&
                set[i].mask == MAKE_64BIT_MASK(0, shift)) {
                return &set[i];
            }
        }
    }
    return NULL;
}

static void cache_insert(TransCache *c, const MMU500Trans *t)
{
    unsigned shift = ctpop64(t->mask);
    MMU500Trans *set, *victim = NULL;
    unsigned i;

    if (!c->sets) {
        return;
    }
    set = &c->e[set_index(c->sets, t->va, shift, t->vmid) * WAYS];
    for (i = 0; i < WAYS; i++) {
        if (set[i].valid && set[i].va == t->va && set[i].mask == t->mask &&
            set[i].vmid == t->vmid && set[i].asid == t->asid &&
            set[i].stage1 == t->stage1) {
            victim = &set[i];
            break;
        }
        if (!set[i].valid && !victim) {
            victim = &set[i];
        }
    }
    if (!victim) {
        victim = &set[c->next++ % WAYS];
    }
    *victim = *t;
    victim->valid = true;
    c->sizes |= 1ull << shift;
}

MMU500Trans *mmu500_utlb_lookup(MMU500State *s, uint32_t tbu,
                                const MMU500Regime *r, uint64_t va)
{
    MicroTLB *m = &s->tlb->micro[tbu];
    unsigned i;

    if (!s->tlb->micro_entries) {
        return NULL;
    }
    if (trans_match(&m->e[m->last], r, va)) {
        return &m->e[m->last];
    }
    for (i = 0; i < s->tlb->micro_entries; i++) {
        if (trans_match(&m->e[i], r, va)) {
            m->last = i;
            return &m->e[i];
        }
    }
    return NULL;
}

void mmu500_utlb_insert(MMU500State *s, uint32_t tbu, const MMU500Trans *t)
{
    MicroTLB *m = &s->tlb->micro[tbu];
    uint32_t i;

    if (!s->tlb->micro_entries) {
        return;
    }
    /* One translation once: a refused entry is replaced, not shadowed. */
    for (i = 0; i < s->tlb->micro_entries; i++) {
        MMU500Trans *e = &m->e[i];

        if (e->valid && e->va == t->va && e->mask == t->mask &&
            e->vmid == t->vmid && e->stage1 == t->stage1 &&
            e->asid == t->asid) {
            break;
        }
    }
    if (i == s->tlb->micro_entries) {
        i = m->next;
        m->next = (m->next + 1) % s->tlb->micro_entries;
    }
    m->e[i] = *t;
    m->e[i].valid = true;
    m->last = i;
}

MMU500Trans *mmu500_mtlb_lookup(MMU500State *s, const MMU500Regime *r,
                                uint64_t va)
{
    return cache_lookup(&s->tlb->macro, r, va);
}

void mmu500_mtlb_insert(MMU500State *s, const MMU500Trans *t)
{
    cache_insert(&s->tlb->macro, t);
}

MMU500Trans *mmu500_ipa_lookup(MMU500State *s, uint16_t vmid, uint64_t ipa)
{
    MMU500Regime r = { .vmid = vmid };

    return cache_lookup(&s->tlb->ipa, &r, ipa);
}

void mmu500_ipa_insert(MMU500State *s, const MMU500Trans *t)
{
    cache_insert(&s->tlb->ipa, t);
}

MMU500WalkEntry *mmu500_wc_lookup(MMU500State *s, const MMU500Regime *r,
                                  bool stage1, uint64_t va)
{
    WalkCache *c = &s->tlb->walk;
    uint64_t sizes = c->sizes;

    while (sizes) {
        unsigned shift = ctz64(sizes);
        MMU500WalkEntry *set =
            &c->e[set_index(c->sets, va, shift, r->vmid) * WAYS];
        unsigned i;

        sizes &= sizes - 1;
        for (i = 0; i < WAYS; i++) {
            MMU500WalkEntry *e = &set[i];

            if (e->valid && (va & ~e->mask) == e->va && e->vmid == r->vmid &&
                e->stage1 == stage1 && (!stage1 || e->asid == r->asid) &&
                e->mask == MAKE_64BIT_MASK(0, shift)) {
                return e;
            }
        }
    }
    return NULL;
}

void mmu500_wc_insert(MMU500State *s, const MMU500WalkEntry *e)
{
    WalkCache *c = &s->tlb->walk;
    unsigned shift = ctpop64(e->mask);
    MMU500WalkEntry *set;
    unsigned i;

    if (!c->sets) {
        return;
    }
    set = &c->e[set_index(c->sets, e->va, shift, e->vmid) * WAYS];
    for (i = 0; i < WAYS; i++) {
        if (!set[i].valid) {
            break;
        }
    }
    if (i == WAYS) {
        i = c->next++ % WAYS;
    }
    set[i] = *e;
    c->sizes |= 1ull << shift;
}

static bool inv_trans(MMU500Trans *t, const MMU500Inv *inv)
{
    return t->valid &&
           !(inv->stage1_only && !t->stage1) &&
           !(inv->stage2_only && t->stage1) &&
           !(inv->match_vmid && t->vmid != inv->vmid) &&
           !(inv->match_asid && t->stage1 &&
             /* global entries fall to a match by address only */
             (t->global ? !inv->match_va : t->asid != inv->asid)) &&
           !(inv->match_va && (inv->va & ~t->mask) != t->va);
}

static void inv_array(MMU500Trans *e, size_t n, const MMU500Inv *inv)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (inv_trans(&e[i], inv)) {
            e[i].valid = false;
        }
    }
}

static void inv_cache(TransCache *c, const MMU500Inv *inv)
{
    uint64_t sizes = c->sizes;

    if (!inv->match_va || !inv->match_vmid) {
        inv_array(c->e, c->sets * WAYS, inv);
        return;
    }
    while (sizes) {
        unsigned shift = ctz64(sizes);

        sizes &= sizes - 1;
        inv_array(&c->e[set_index(c->sets, inv->va, shift, inv->vmid) * WAYS],
                  WAYS, inv);
    }
}

void mmu500_tlb_inv(MMU500State *s, const MMU500Inv *inv)
{
    MMU500TLB *tlb = s->tlb;
    size_t i;

    s->stats.tlb_invalidations++;
    s->unmap_pending = true;
    for (i = 0; i < tlb->num_micro; i++) {
        inv_array(tlb->micro[i].e, tlb->micro_entries, inv);
    }
    inv_cache(&tlb->macro, inv);
    if (!inv->stage1_only) {
        inv_cache(&tlb->ipa, inv);
    }
    if (inv->leaf_only) {
        return;
    }
    for (i = 0; i < tlb->walk.sets * WAYS; i++) {
        MMU500WalkEntry *e = &tlb->walk.e[i];

        if (e->valid &&
            !(inv->stage1_only && !e->stage1) &&
            !(inv->stage2_only && e->stage1) &&
            !(inv->match_vmid && e->vmid != inv->vmid) &&
            !(inv->match_asid && e->stage1 && e->asid != inv->asid) &&
            !(inv->match_va && (inv->va & ~e->mask) != e->va)) {
            e->valid = false;
        }
    }
}
