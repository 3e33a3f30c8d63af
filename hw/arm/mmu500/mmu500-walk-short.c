/*
 * MMU-500: AArch32 short-descriptor table walks
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mmu500-internal.h"
#include "trace.h"

/* AP[2:0] without SCTLR.AFE; domains behave as client domains. */
static const uint8_t ap_prot[8] = {
    0,
    PROT_PR | PROT_PW,
    PROT_PR | PROT_PW | PROT_UR,
    PROT_PR | PROT_PW | PROT_UR | PROT_UW,
    0,
    PROT_PR,
    PROT_PR | PROT_UR,
    PROT_PR | PROT_UR,
};

static void short_leaf(const MMU500ContextBank *bank, const MMU500Regime *r,
                       MMU500Trans *t, unsigned ap, bool xn, bool pxn,
                       bool global)
{
    bool wxn = FIELD_EX32(bank->sctlr, SCTLR, WXN);
    bool uwxn = FIELD_EX32(bank->sctlr, SCTLR, UWXN);

    if (FIELD_EX32(bank->sctlr, SCTLR, AFE)) {
        ap |= 1;                /* AP[0] is the access flag */
    }
    t->prot = ap_prot[ap];
    if (!xn && (t->prot & PROT_UR) && !(wxn && (t->prot & PROT_UW))) {
        t->prot |= PROT_UX;
    }
    if (!xn && !pxn && (t->prot & PROT_PR) &&
        !(wxn && (t->prot & PROT_PW)) && !(uwxn && (t->prot & PROT_UW))) {
        t->prot |= PROT_PX;
    }
    t->stage1 = true;
    t->global = global;
    t->vmid = r->vmid;
    t->asid = r->asid;
}

static unsigned section_ap(uint32_t desc)
{
    return extract32(desc, 10, 2) | extract32(desc, 15, 1) << 2;
}

static unsigned page_ap(uint32_t desc)
{
    return extract32(desc, 4, 2) | extract32(desc, 9, 1) << 2;
}

bool mmu500_walk_short(MMU500State *s, const MMU500Regime *r, uint32_t va,
                       MMU500Trans *t, MMU500Fault *f)
{
    const MMU500ContextBank *bank = &s->cb[r->cb];
    unsigned n = FIELD_EX32(bank->tcr, TCR, N);
    bool upper = n && extract32(va, 32 - n, n);
    bool afe = FIELD_EX32(bank->sctlr, SCTLR, AFE) &&
               !FIELD_EX32(bank->sctlr, SCTLR, AFFD);
    uint32_t table, index_bits;
    uint64_t desc;
    bool pxn;

    f->level = 1;
    if (upper ? FIELD_EX32(bank->tcr, TCR, PD1)
              : FIELD_EX32(bank->tcr, TCR, PD0)) {
        f->type = FAULT_TRANSLATION;
        return false;
    }
    index_bits = upper ? 12 : 12 - n;
    table = bank->ttbr[upper] & ~MAKE_64BIT_MASK(0, index_bits + 2);

    if (!mmu500_read_desc(s, r->cb, r->s2cb,
                          table + extract32(va, 20, index_bits) * 4, 4,
                          &desc, f)) {
        return false;
    }
    trace_mmu500_descriptor(r->cb, 1, 1, va, table, desc);

    switch (desc & 3) {
    case 0:
        f->type = FAULT_TRANSLATION;
        return false;
    case 1:
        break;
    default:
        if (afe && !extract32(desc, 10, 1)) {
            f->type = FAULT_ACCESS;
            return false;
        }
        if (extract32(desc, 18, 1)) {
            t->mask = MAKE_64BIT_MASK(0, 24);
            t->pa = (desc & 0xff000000) |
                    (uint64_t)extract32(desc, 20, 4) << 32 |
                    (uint64_t)extract32(desc, 5, 4) << 36;
        } else {
            t->mask = MAKE_64BIT_MASK(0, 20);
            t->pa = desc & 0xfff00000;
        }
        if (t->pa >> MIN(40, s->ias)) {
            f->type = FAULT_ADDR_SIZE;
            return false;
        }
        t->va = va & ~t->mask;
        t->level = 1;
        short_leaf(bank, r, t, section_ap(desc), extract32(desc, 4, 1),
                   desc & 1, !extract32(desc, 17, 1));
        return true;
    }

    pxn = extract32(desc, 2, 1);
    table = desc & ~0x3ffu;
    f->level = 2;
    if (!mmu500_read_desc(s, r->cb, r->s2cb, table + extract32(va, 12, 8) * 4,
                          4, &desc, f)) {
        return false;
    }
    trace_mmu500_descriptor(r->cb, 1, 2, va, table, desc);
    if (!(desc & 3)) {
        f->type = FAULT_TRANSLATION;
        return false;
    }
    if (afe && !extract32(desc, 4, 1)) {
        f->type = FAULT_ACCESS;
        return false;
    }
    t->mask = (desc & 2) ? 0xfff : 0xffff;
    t->pa = desc & 0xffffffff & ~t->mask;
    t->va = va & ~t->mask;
    t->level = 2;
    short_leaf(bank, r, t, page_ap(desc),
               (desc & 2) ? desc & 1 : extract32(desc, 15, 1), pxn,
               !extract32(desc, 11, 1));
    return true;
}
