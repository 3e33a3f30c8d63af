/*
 * MMU-500: what becomes of one transaction
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mmu500-internal.h"
#include "trace.h"

bool mmu500_prot_allows(uint8_t prot, const MMU500Txn *txn)
{
    uint8_t need;

    if (txn->write) {
        need = PROT_UW;
    } else if (txn->insn) {
        need = PROT_UX;
    } else {
        need = PROT_UR;
    }
    return prot & (txn->priv ? need << 3 : need);
}

/*
 * The address that stage 1 sees. The bus carries UBS bits; TCR2.SEP says
 * from which of them the address is sign-extended.
 */
static bool mmu500_input_va(MMU500State *s, int cb, uint64_t *va)
{
    static const uint8_t sep_bit[] = { 31, 35, 39, 41, 43, 47, 47, 0 };
    unsigned ubs = s->ias == 48 ? 49 : s->ias;
    unsigned sep = FIELD_EX32(s->cb[cb].tcr2, TCR2, SEP);
    int64_t upper;

    if (!mmu500_cb_va64(s, cb)) {
        return *va <= UINT32_MAX;
    }
    upper = sextract64(*va, ubs - 1, 64 - (ubs - 1));
    if (upper != 0 && upper != -1 && *va >> ubs) {
        return false;
    }
    *va = sextract64(*va, 0, sep == 7 ? ubs : sep_bit[sep] + 1);
    return true;
}

bool mmu500_translate_ipa(MMU500State *s, int s2cb, uint64_t ipa,
                          MMU500Trans *t, MMU500Fault *f)
{
    MMU500Trans *hit = NULL;
    bool cached = FIELD_EX32(s->acr, ACR, IPA2PA_CEN);

    if (cached) {
        hit = mmu500_ipa_lookup(s, mmu500_cb_vmid(s, s2cb), ipa);
    }
    if (hit) {
        s->stats.ipa_cache_hits++;
        *t = *hit;
        return true;
    }
    s->stats.ipa_cache_misses++;
    memset(t, 0, sizeof(*t));
    if (!mmu500_walk_s2(s, s2cb, ipa, t, f)) {
        return false;
    }
    t->valid = true;
    if (cached) {
        mmu500_ipa_insert(s, t);
    }
    return true;
}

/*
 * Both stages of a regime. A refusal of stage 1 comes before anything that
 * stage 2 has to say about the output. No @txn: rights are not checked.
 */
static bool mmu500_walk(MMU500State *s, const MMU500Regime *r, uint64_t va,
                        const MMU500Txn *txn, MMU500Trans *t, MMU500Fault *f)
{
    MMU500Trans t2;
    uint64_t ipa;

    memset(t, 0, sizeof(*t));
    *f = (MMU500Fault) { .cb = r->cb, .s1cb = -1 };
    if (!r->stage1) {
        if (!mmu500_walk_s2(s, r->cb, va, t, f)) {
            return false;
        }
        if (txn && !mmu500_prot_allows(t->prot, txn)) {
            f->type = FAULT_PERMISSION;
            f->stage2 = true;
            f->level = t->level;
            f->ipa = va;
            return false;
        }
        t->valid = true;
        return true;
    }

    if (!mmu500_walk_s1(s, r, va, t, f)) {
        return false;
    }
    if (txn && !mmu500_prot_allows(t->prot, txn)) {
        f->type = FAULT_PERMISSION;
        f->level = t->level;
        return false;
    }
    t->valid = true;
    if (r->s2cb < 0) {
        return true;
    }

    ipa = t->pa | (va & t->mask);
    if (!mmu500_translate_ipa(s, r->s2cb, ipa, &t2, f)) {
        f->s1cb = r->cb;
        return false;
    }
    if (txn && !mmu500_prot_allows(t2.prot, txn)) {
        *f = (MMU500Fault) {
            .type = FAULT_PERMISSION, .cb = r->s2cb, .s1cb = r->cb,
            .stage2 = true, .level = t2.level, .ipa = ipa,
        };
        return false;
    }
    t->mask &= t2.mask;
    t->va = va & ~t->mask;
    t->pa = (t2.pa | (ipa & t2.mask)) & ~t->mask;
    t->prot &= t2.prot;
    return true;
}

/*
 * Loads the translations that follow, within one table, up to
 * prefetch-size. Their walks find the table in the walk cache.
 */
static void mmu500_prefetch(MMU500State *s, const MMU500Regime *r,
                            const MMU500Txn *txn, const MMU500Trans *t)
{
    uint64_t size = t->mask + 1;
    uint64_t left = s->prefetch_size / size;
    uint64_t va = t->va;
    unsigned budget = 64;       /* whatever the property says */

    if (!FIELD_EX32(s->cb[r->cb].actlr, ACTLR, CPRE) ||
        !FIELD_EX32(s->cb[r->cb].actlr, ACTLR, CMTLB)) {
        return;
    }
    while (left-- && budget--) {
        uint64_t descriptors = s->stats.descriptors;
        MMU500Trans next;
        MMU500Fault f;

        va += size;
        if (!(va & (size * 512 - 1)) || mmu500_mtlb_lookup(s, r, va)) {
            break;
        }
        if (!mmu500_walk(s, r, va, NULL, &next, &f)) {
            break;
        }
        next.prefetched = true;
        s->stats.prefetches++;
        mmu500_time_prefetch(s, txn, s->stats.descriptors - descriptors,
                             &next);
        mmu500_mtlb_insert(s, &next);
    }
}

bool mmu500_translate_cb(MMU500State *s, int cb, const MMU500Txn *txn,
                         MMU500Trans *t, MMU500Fault *f, bool s1_only)
{
    MMU500Regime r;
    MMU500Trans *hit;
    uint64_t va = txn->va;
    uint64_t descriptors = s->stats.descriptors;
    bool ok;

    *f = (MMU500Fault) { .cb = cb, .s1cb = -1 };
    if (!mmu500_regime(s, cb, &r)) {
        f->type = FAULT_TRANSLATION;
        return false;
    }
    if (s1_only) {
        r.s2cb = -1;
    }
    if (r.stage1) {
        if (!mmu500_input_va(s, cb, &va)) {
            f->type = FAULT_TRANSLATION;
            return false;
        }
    } else if (va >> s->ias) {
        f->type = FAULT_TRANSLATION;
        f->stage2 = true;
        f->ipa = va;
        return false;
    }

    if (txn->ato || txn->probe) {
        return mmu500_walk(s, &r, va, txn, t, f);
    }

    hit = mmu500_utlb_lookup(s, txn->tbu, &r, va);
    if (hit && mmu500_prot_allows(hit->prot, txn)) {
        s->stats.utlb_hits++;
        mmu500_time_utlb_hit(s, txn, hit);
        *t = *hit;
        return true;
    }
    s->stats.utlb_misses++;
    hit = mmu500_mtlb_lookup(s, &r, va);
    /* Entries may go at any time, so a refusal always comes from a walk. */
    if (hit && mmu500_prot_allows(hit->prot, txn)) {
        s->stats.mtlb_hits++;
        if (hit->prefetched) {
            hit->prefetched = false;
            s->stats.prefetch_hits++;
        }
        *t = *hit;
        mmu500_time_mtlb_hit(s, txn, t);
        mmu500_utlb_insert(s, txn->tbu, t);
        return true;
    }
    s->stats.mtlb_misses++;

    s->stats.walks++;
    ok = mmu500_walk(s, &r, va, txn, t, f);
    mmu500_time_walk(s, txn, s->stats.descriptors - descriptors, t);
    if (!ok) {
        return false;
    }
    mmu500_pmu_event(s, txn, PMU_EVENT_TLB_ALLOC);
    mmu500_pmu_event(s, txn, txn->write ? PMU_EVENT_TLB_WR : PMU_EVENT_TLB_RD);
    if (FIELD_EX32(s->cb[cb].actlr, ACTLR, CMTLB)) {
        mmu500_mtlb_insert(s, t);
    }
    mmu500_utlb_insert(s, txn->tbu, t);
    mmu500_prefetch(s, &r, txn, t);
    return true;
}

static MMU500Outcome mmu500_bypass(MMU500State *s, const MMU500Txn *txn,
                                   MMU500Result *res)
{
    if (!txn->probe) {
        s->stats.bypassed++;
    }
    res->mask = MAKE_64BIT_MASK(0, 30);
    res->pa = txn->va & ~res->mask;
    res->prot = PROT_ALL;
    return OUTCOME_OK;
}

static MMU500Outcome mmu500_translate_bank(MMU500State *s,
                                           const MMU500Txn *txn, int cb,
                                           MMU500Result *res)
{
    MMU500ContextBank *bank = &s->cb[cb];
    unsigned type = FIELD_EX32(bank->cbar, CBAR0, TYPE);
    int s2cb = -1;
    MMU500Outcome out;
    MMU500Trans t;
    MMU500Fault f;

    switch (type) {
    case CBAR_TYPE_S1_S2_FAULT:
        return mmu500_global_fault(s, txn, R_GFSR_ICF_MASK, false);
    case CBAR_TYPE_S1_S2:
        s2cb = FIELD_EX32(bank->cbar, CBAR0, CBNDX);
        if (!s->nested) {
            return mmu500_global_fault(s, txn, R_GFSR_ICF_MASK, true);
        }
        if (s2cb >= s->num_cb) {
            return mmu500_global_fault(s, txn, R_GFSR_UCBF_MASK, true);
        }
        if (!mmu500_cb_is_s2(s, s2cb)) {
            return mmu500_global_fault(s, txn, R_GFSR_ICF_MASK, true);
        }
        break;
    }

    out = mmu500_previous_fault(s, txn, cb, res);
    if (out == OUTCOME_OK && s2cb >= 0) {
        out = mmu500_previous_fault(s, txn, s2cb, res);
    }
    if (out != OUTCOME_OK) {
        return out;
    }

    if (!FIELD_EX32(bank->sctlr, SCTLR, M)) {
        if (s2cb < 0 || !FIELD_EX32(s->cb[s2cb].sctlr, SCTLR, M)) {
            return mmu500_bypass(s, txn, res);
        }
        cb = s2cb;              /* stage 1 is off, stage 2 is on */
    }

    if (!mmu500_translate_cb(s, cb, txn, &t, &f, false)) {
        return mmu500_context_fault(s, txn, &f, res);
    }
    res->mask = t.mask;
    res->pa = t.pa;
    res->prot = t.prot;
    return OUTCOME_OK;
}

/* From the stream to a bank; OUTCOME_OK with txn->cb < 0: bypass */
static MMU500Outcome mmu500_map_stream(MMU500State *s, MMU500Txn *txn)
{
    uint32_t s2cr;
    int match;
    uint32_t cb;

    match = mmu500_stream_lookup(s, txn);
    if (match == STREAM_CONFLICT) {
        return mmu500_global_fault(s, txn, R_GFSR_SMCF_MASK, false);
    }
    if (match == STREAM_NONE) {
        if (FIELD_EX32(s->cr0, CR0, USFCFG)) {
            return mmu500_global_fault(s, txn, R_GFSR_USF_MASK, false);
        }
        return OUTCOME_OK;
    }

    s2cr = s->s2cr[match];
    switch (FIELD_EX32(s2cr, S2CR0, PRIVCFG)) {
    case S2CR_PRIVCFG_UNPRIV:
        txn->priv = false;
        break;
    case S2CR_PRIVCFG_PRIV:
        txn->priv = true;
        break;
    }
    if (!txn->write) {
        switch (FIELD_EX32(s2cr, S2CR0, INSTCFG)) {
        case S2CR_INSTCFG_DATA:
            txn->insn = false;
            break;
        case S2CR_INSTCFG_INSN:
            txn->insn = true;
            break;
        }
    }

    switch (FIELD_EX32(s2cr, S2CR0, TYPE)) {
    case S2CR_TYPE_BYPASS:
        return OUTCOME_OK;
    case S2CR_TYPE_TRANSLATE:
        break;
    default:
        return mmu500_global_fault(s, txn, R_GFSR_ICF_MASK, false);
    }

    cb = FIELD_EX32(s2cr, S2CR0, CBNDX);
    if (cb >= s->num_cb) {
        return mmu500_global_fault(s, txn, R_GFSR_UCBF_MASK, false);
    }
    txn->cb = cb;
    return OUTCOME_OK;
}

MMU500Outcome mmu500_translate(MMU500State *s, MMU500Txn *txn,
                               MMU500Result *res)
{
    MMU500Outcome out = OUTCOME_OK;

    memset(res, 0, sizeof(*res));
    txn->cb = -1;
    if (!FIELD_EX32(s->cr0, CR0, CLIENTPD)) {
        out = mmu500_map_stream(s, txn);
    }
    if (!txn->probe) {
        s->stats.transactions++;
        mmu500_pmu_event(s, txn, PMU_EVENT_ACCESS);
        mmu500_pmu_event(s, txn, txn->write ? PMU_EVENT_ACCESS_WR
                                            : PMU_EVENT_ACCESS_RD);
    }
    if (out != OUTCOME_OK) {
        return out;
    }
    return txn->cb < 0 ? mmu500_bypass(s, txn, res)
                       : mmu500_translate_bank(s, txn, txn->cb, res);
}
