/*
 * MMU-500: long-descriptor table walks, AArch64 and AArch32
 *
 * Why this is not smmu_ptw(): a fault must report its level, whether it was
 * a table access and which rights were missing for which privilege; tables
 * grant rights hierarchically; AArch32 has formats of its own; and the walk
 * cache and the IPA cache sit between two table accesses.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "system/address-spaces.h"
#include "system/dma.h"
#include "mmu500-internal.h"
#include "trace.h"

/* The walk of one table tree, after the control registers are decoded. */
typedef struct WalkParams {
    uint64_t ttb;
    unsigned inputsize;         /* bits that the tables resolve */
    unsigned granule;           /* log2 */
    unsigned start_level;
    unsigned outsize;           /* bits of an output address */
    bool affd;
    bool stage1;
} WalkParams;

/* Accumulated hierarchical attributes, as in descriptor bits 63:59. */
enum {
    HATTR_PXN = 1 << 0,
    HATTR_XN = 1 << 1,
    HATTR_NO_UNPRIV = 1 << 2,
    HATTR_NO_WRITE = 1 << 3,
};

static const uint8_t size_bits[] = { 32, 36, 40, 42, 44, 48 };

unsigned mmu500_size_to_bits(unsigned code)
{
    return size_bits[MIN(code, ARRAY_SIZE(size_bits) - 1)];
}

unsigned mmu500_bits_to_size(unsigned bits)
{
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(size_bits) - 1; i++) {
        if (bits <= size_bits[i]) {
            break;
        }
    }
    return i;
}

bool mmu500_read_desc(MMU500State *s, int cb, int s2cb, uint64_t addr,
                      int size, uint64_t *desc, MMU500Fault *f)
{
    /*
     * Tables are in memory. A table access to a device, this one included,
     * would run the device's code under the lock: answer as a bus error.
     */
    const MemTxAttrs attrs = { .memory = 1 };
    bool be = FIELD_EX32(s->cb[cb].sctlr, SCTLR, E);
    union { uint64_t q; uint32_t l; } buf;
    MMU500Trans t2;

    if (s2cb >= 0) {
        uint64_t ipa = addr;
        MMU500Fault f2;

        if (!mmu500_translate_ipa(s, s2cb, ipa, &t2, &f2)) {
            *f = f2;
            f->s1cb = cb;
            f->s1ptw = true;
            return false;
        }
        if (!(t2.prot & PROT_PR)) {
            *f = (MMU500Fault) {
                .type = FAULT_PERMISSION, .cb = s2cb, .s1cb = cb,
                .stage2 = true, .s1ptw = true, .level = t2.level, .ipa = ipa,
            };
            return false;
        }
        addr = t2.pa | (ipa & t2.mask);
    }

    s->stats.descriptors++;
    if (dma_memory_read(&address_space_memory, addr, &buf, size, attrs)) {
        f->type = FAULT_EXTERNAL;
        f->ptwf = true;
        return false;
    }
    if (size == 4) {
        *desc = be ? be32_to_cpu(buf.l) : le32_to_cpu(buf.l);
    } else {
        *desc = be ? be64_to_cpu(buf.q) : le64_to_cpu(buf.q);
    }
    return true;
}

static uint8_t prot_s1(const MMU500ContextBank *bank, bool va64, uint64_t desc,
                       uint8_t hattr)
{
    bool unpriv = extract64(desc, 6, 1) && !(hattr & HATTR_NO_UNPRIV);
    bool write = !extract64(desc, 7, 1) && !(hattr & HATTR_NO_WRITE);
    bool xn = extract64(desc, 54, 1) || (hattr & HATTR_XN);
    bool pxn = extract64(desc, 53, 1) || (hattr & HATTR_PXN);
    bool wxn = FIELD_EX32(bank->sctlr, SCTLR, WXN) && write;
    bool uwxn = FIELD_EX32(bank->sctlr, SCTLR, UWXN) && write && unpriv;
    uint8_t prot = PROT_PR;

    if (write) {
        prot |= PROT_PW;
    }
    if (unpriv) {
        prot |= PROT_UR | (write ? PROT_UW : 0);
    }
    if (va64) {
        /* AArch64: XN is for unprivileged accesses, PXN for the others */
        if (!xn && !wxn) {
            prot |= PROT_UX;
        }
        if (!pxn && !wxn && !(write && unpriv)) {
            prot |= PROT_PX;
        }
    } else {
        if (!xn && !wxn && unpriv) {
            prot |= PROT_UX;
        }
        if (!xn && !pxn && !wxn && !uwxn) {
            prot |= PROT_PX;
        }
    }
    return prot;
}

static uint8_t prot_s2(uint64_t desc)
{
    uint8_t prot = 0;

    if (extract64(desc, 6, 1)) {
        prot |= PROT_UR | PROT_PR;
        if (!extract64(desc, 54, 1)) {
            prot |= PROT_UX | PROT_PX;
        }
    }
    if (extract64(desc, 7, 1)) {
        prot |= PROT_UW | PROT_PW;
    }
    return prot;
}

static bool block_allowed(unsigned level, unsigned granule)
{
    return level == 2 || (level == 1 && granule == 12);
}

/* @r: as the regime of the walk's own stage; nested tables go by r->s2cb */
static bool walk_long(MMU500State *s, const MMU500Regime *r,
                      const WalkParams *p, uint64_t va, MMU500Trans *t,
                      MMU500Fault *f)
{
    const MMU500ContextBank *bank = &s->cb[r->cb];
    unsigned stride = p->granule - 3;
    unsigned level = p->start_level;
    unsigned shift = p->granule + (3 - level) * stride;
    uint64_t in = va & MAKE_64BIT_MASK(0, p->inputsize);
    unsigned index_bits = p->inputsize - shift;
    uint64_t table = p->ttb & ~MAKE_64BIT_MASK(0, index_bits + 3);
    uint8_t hattr = 0;
    bool use_wc = p->stage1 ? FIELD_EX32(s->acr, ACR, S1WC2EN)
                            : FIELD_EX32(s->acr, ACR, S2WC2EN);
    MMU500WalkEntry *wc = use_wc ? mmu500_wc_lookup(s, r, p->stage1, va) : NULL;

    if (wc && wc->level > level && wc->level <= 3) {
        s->stats.walk_cache_hits++;
        level = wc->level;
        table = wc->table;
        hattr = wc->attrs;
        shift = p->granule + (3 - level) * stride;
        index_bits = stride;
    } else if (table >> p->outsize) {
        f->type = FAULT_ADDR_SIZE;
        f->level = 0;
        return false;
    }

    for (;;) {
        uint64_t addr = table + extract64(in, shift, index_bits) * 8;
        uint64_t desc, oa;

        f->level = level;
        if (!mmu500_read_desc(s, r->cb, r->s2cb, addr, 8, &desc, f)) {
            if (!f->s1ptw) {
                f->level = level;
            }
            return false;
        }
        trace_mmu500_descriptor(r->cb, p->stage1 ? 1 : 2, level, va, addr,
                                desc);

        if (!(desc & 1) || (level == 3 && !(desc & 2)) ||
            (level < 3 && !(desc & 2) && !block_allowed(level, p->granule))) {
            f->type = FAULT_TRANSLATION;
            return false;
        }

        if (level < 3 && (desc & 2)) {
            oa = desc & MAKE_64BIT_MASK(p->granule, 48 - p->granule);
            if (oa >> p->outsize) {
                f->type = FAULT_ADDR_SIZE;
                return false;
            }
            if (p->stage1) {
                hattr |= extract64(desc, 59, 1) ? HATTR_PXN : 0;
                hattr |= extract64(desc, 60, 1) ? HATTR_XN : 0;
                hattr |= extract64(desc, 61, 1) ? HATTR_NO_UNPRIV : 0;
                hattr |= extract64(desc, 62, 1) ? HATTR_NO_WRITE : 0;
            }
            table = oa;
            level++;
            if (use_wc && level == 3) {
                MMU500WalkEntry e = {
                    .mask = MAKE_64BIT_MASK(0, shift),
                    .va = va & ~MAKE_64BIT_MASK(0, shift),
                    .table = table, .vmid = r->vmid, .asid = r->asid,
                    .level = level, .attrs = hattr, .valid = true,
                    .stage1 = p->stage1,
                };

                mmu500_wc_insert(s, &e);
            }
            shift -= stride;
            index_bits = stride;
            continue;
        }

        /* leaf */
        oa = desc & MAKE_64BIT_MASK(shift, 48 - shift);
        if (oa >> p->outsize) {
            f->type = FAULT_ADDR_SIZE;
            return false;
        }
        if (!extract64(desc, 10, 1) && !p->affd) {
            f->type = FAULT_ACCESS;
            return false;
        }
        t->mask = MAKE_64BIT_MASK(0, shift);
        t->va = va & ~t->mask;
        t->pa = oa;
        t->level = level;
        t->stage1 = p->stage1;
        t->vmid = r->vmid;
        t->asid = r->asid;
        if (p->stage1) {
            t->global = !extract64(desc, 11, 1);
            t->prot = prot_s1(bank, mmu500_cb_va64(s, r->cb), desc, hattr);
        } else {
            t->prot = prot_s2(desc);
        }
        return true;
    }
}

/* log2 of the granule from TGx; @tg1: TCR.TG1 has an encoding of its own */
static unsigned granule_shift(MMU500State *s, unsigned tg, bool tg1)
{
    static const uint8_t tg0_shift[] = { 12, 16, 14, 12 };
    static const uint8_t tg1_shift[] = { 12, 14, 12, 16 };
    unsigned shift = tg1 ? tg1_shift[tg] : tg0_shift[tg];

    /* reserved or not implemented: behaves as 4K */
    return shift == 14 && !s->granule_16k ? 12 : shift;
}

static unsigned start_level(unsigned inputsize, unsigned granule)
{
    return 4 - DIV_ROUND_UP(inputsize - granule, granule - 3);
}

static bool params_s1_aa64(MMU500State *s, int cb, uint64_t va, WalkParams *p)
{
    const MMU500ContextBank *bank = &s->cb[cb];
    bool upper = extract64(va, 55, 1);
    bool tbi = upper ? FIELD_EX32(bank->tcr2, TCR2, TBI1)
                     : FIELD_EX32(bank->tcr2, TCR2, TBI0);
    unsigned tsz = upper ? FIELD_EX32(bank->tcr, TCR, T1SZ)
                         : FIELD_EX32(bank->tcr, TCR, T0SZ);
    unsigned top = tbi ? 56 : 64;
    int64_t rest;

    if (upper ? FIELD_EX32(bank->tcr, TCR, EPD1)
              : FIELD_EX32(bank->tcr, TCR, EPD0)) {
        return false;
    }
    p->inputsize = 64 - MIN(MAX(tsz, 16), 39);
    rest = sextract64(va, p->inputsize, top - p->inputsize);
    if (rest != (upper ? -1 : 0)) {
        return false;
    }
    p->ttb = extract64(bank->ttbr[upper], 0, 48);
    p->granule = upper
        ? granule_shift(s, FIELD_EX32(bank->tcr, TCR, TG1), true)
        : granule_shift(s, FIELD_EX32(bank->tcr, TCR, TG0), false);
    p->start_level = start_level(p->inputsize, p->granule);
    p->outsize = MIN(mmu500_size_to_bits(FIELD_EX32(bank->tcr2, TCR2,
                                                    PASIZE)), s->ias);
    return true;
}

static bool params_s1_lpae(MMU500State *s, int cb, uint64_t va, WalkParams *p)
{
    const MMU500ContextBank *bank = &s->cb[cb];
    unsigned t0sz = extract32(bank->tcr, 0, 3);
    unsigned t1sz = extract32(bank->tcr, 16, 3);
    bool in0 = !t0sz || !extract64(va, 32 - t0sz, t0sz);
    bool in1 = t1sz ? sextract64(va, 32 - t1sz, t1sz) == -1 : !in0;
    bool upper;

    if (in1 && (t0sz || t1sz)) {
        upper = true;
    } else if (in0) {
        upper = false;
    } else {
        return false;
    }
    if (upper ? FIELD_EX32(bank->tcr, TCR, EPD1)
              : FIELD_EX32(bank->tcr, TCR, EPD0)) {
        return false;
    }
    p->inputsize = 32 - (upper ? t1sz : t0sz);
    p->ttb = extract64(bank->ttbr[upper], 0, 40);
    p->granule = 12;
    p->start_level = start_level(p->inputsize, 12);
    p->outsize = MIN(40, s->ias);
    return true;
}

bool mmu500_walk_s1(MMU500State *s, const MMU500Regime *r, uint64_t va,
                    MMU500Trans *t, MMU500Fault *f)
{
    WalkParams p = { .stage1 = true };
    bool ok;

    p.affd = FIELD_EX32(s->cb[r->cb].sctlr, SCTLR, AFFD);
    if (mmu500_cb_va64(s, r->cb)) {
        ok = params_s1_aa64(s, r->cb, va, &p);
    } else if (FIELD_EX32(s->cb[r->cb].tcr, TCR, EAE)) {
        ok = params_s1_lpae(s, r->cb, va, &p);
    } else {
        return mmu500_walk_short(s, r, va, t, f);
    }
    if (!ok) {
        f->type = FAULT_TRANSLATION;
        f->level = mmu500_cb_va64(s, r->cb) ? 0 : 1;
        return false;
    }
    return walk_long(s, r, &p, va, t, f);
}

bool mmu500_walk_s2(MMU500State *s, int cb, uint64_t ipa, MMU500Trans *t,
                    MMU500Fault *f)
{
    const MMU500ContextBank *bank = &s->cb[cb];
    bool va64 = mmu500_cb_va64(s, cb);
    MMU500Regime r = {
        .cb = cb, .s2cb = -1, .vmid = mmu500_cb_vmid(s, cb),
    };
    WalkParams p = { .affd = FIELD_EX32(bank->sctlr, SCTLR, AFFD) };
    unsigned sl0 = FIELD_EX32(bank->tcr, TCR, SL0);
    unsigned bits, lowest;
    bool ok;

    *f = (MMU500Fault) {
        .cb = cb, .s1cb = -1, .stage2 = true, .ipa = ipa,
    };
    if (va64) {
        unsigned tsz = FIELD_EX32(bank->tcr, TCR, T0SZ);

        p.inputsize = 64 - MIN(MAX(tsz, 16), 39);
        p.granule = granule_shift(s, FIELD_EX32(bank->tcr, TCR, TG0), false);
        p.outsize = MIN(mmu500_size_to_bits(FIELD_EX32(bank->tcr, TCR, PS)),
                        s->oas);
        ok = sl0 < 3;
        p.start_level = ok ? (p.granule == 12 ? 2 : 3) - sl0 : 0;
    } else {
        p.inputsize = 32 - sextract32(bank->tcr, 0, 4);
        p.granule = 12;
        p.outsize = MIN(40, s->oas);
        ok = sl0 < 2;
        p.start_level = 2 - sl0;
    }
    p.ttb = extract64(bank->ttbr[0], 0, va64 ? 48 : 40);

    /*
     * The first table resolves at least one bit and at most what sixteen
     * concatenated tables do.
     */
    if (ok) {
        lowest = p.granule + (3 - p.start_level) * (p.granule - 3);
        ok = p.inputsize > lowest;
        bits = p.inputsize - lowest;
        ok = ok && bits <= p.granule - 3 + 4;
    }
    if (!ok || ipa >> p.inputsize) {
        f->type = FAULT_TRANSLATION;
        f->level = va64 ? 0 : 1;
        return false;
    }
    return walk_long(s, &r, &p, ipa, t, f);
}
