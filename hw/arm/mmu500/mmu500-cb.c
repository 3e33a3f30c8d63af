/*
 * MMU-500: translation context banks
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mmu500-internal.h"
#include "trace.h"

/* The regime of a bank; false: its format is not one that exists. */
bool mmu500_regime(const MMU500State *s, int cb, MMU500Regime *r)
{
    const MMU500ContextBank *bank = &s->cb[cb];
    bool a1 = FIELD_EX32(bank->tcr, TCR, A1);

    r->cb = cb;
    r->s2cb = -1;
    r->vmid = mmu500_cb_vmid(s, cb);
    r->asid = 0;
    r->stage1 = !mmu500_cb_is_s2(s, cb);
    if (!r->stage1) {
        return s->stage2;
    }

    if (mmu500_cb_va64(s, cb)) {
        r->asid = bank->ttbr[a1] >> 48;
        if (!FIELD_EX32(bank->tcr2, TCR2, AS)) {
            r->asid &= 0xff;
        }
    } else if (FIELD_EX32(bank->tcr, TCR, EAE)) {
        r->asid = extract64(bank->ttbr[a1], 48, 8);
    } else {
        r->asid = bank->contextidr & 0xff;
    }
    if (FIELD_EX32(bank->cbar, CBAR0, TYPE) == CBAR_TYPE_S1_S2) {
        int s2cb = FIELD_EX32(bank->cbar, CBAR0, CBNDX);

        if (!s->nested || s2cb >= s->num_cb || !mmu500_cb_is_s2(s, s2cb)) {
            return false;
        }
        if (FIELD_EX32(s->cb[s2cb].sctlr, SCTLR, M)) {
            r->s2cb = s2cb;
        }
    }
    return s->stage1;
}

static void sctlr_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    trace_mmu500_cb_write(cb, "SCTLR", val);
    s->cb[cb].sctlr = val & 0x3fff7fff;
    s->unmap_pending = true;
}

static void actlr_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    if (!FIELD_EX32(s->acr, ACR, CACHE_LOCK)) {
        s->cb[cb].actlr = val & (R_ACTLR_CMTLB_MASK | R_ACTLR_CPRE_MASK);
    }
}

static void resume_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    mmu500_stall_resume(s, cb, FIELD_EX32(val, RESUME, TNR));
}

static void fsr_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    /* SS is a state, not an event: only RESUME ends it. */
    s->cb[cb].fsr &= ~(val & FSR_W1C);
}

static void fsrrestore_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    s->cb[cb].fsr = (val & (FSR_W1C | R_FSR_FORMAT_MASK)) |
                    (s->cb[cb].fsr & R_FSR_SS_MASK);
}

/* TLB operations act on the bank's VMID. */

static MMU500Inv tlbi_va(MMU500State *s, int cb, uint64_t val)
{
    MMU500Inv inv = {
        .match_vmid = true, .vmid = mmu500_cb_vmid(s, cb),
        .match_va = true, .match_asid = true, .stage1_only = true,
    };

    if (mmu500_cb_va64(s, cb)) {
        inv.va = sextract64(val << 12, 0, 56);
        inv.asid = val >> 48;
        if (!FIELD_EX32(s->cb[cb].tcr2, TCR2, AS)) {
            inv.asid &= 0xff;
        }
    } else {
        inv.va = val & 0xfffff000;
        inv.asid = val & 0xff;
    }
    return inv;
}

static void tlbi_va_write(MMU500State *s, int cb, uint64_t val, bool asid,
                          bool leaf, const char *name)
{
    MMU500Inv inv = tlbi_va(s, cb, val);

    inv.match_asid = asid;
    inv.leaf_only = leaf;
    trace_mmu500_tlbi(name, cb, inv.vmid, inv.asid, inv.va);
    mmu500_tlb_inv(s, &inv);
}

static void tlbiva_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    tlbi_va_write(s, cb, val, true, false, "VA");
}

static void tlbivaa_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    tlbi_va_write(s, cb, val, false, false, "VAA");
}

static void tlbival_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    tlbi_va_write(s, cb, val, true, true, "VAL");
}

static void tlbivaal_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    tlbi_va_write(s, cb, val, false, true, "VAAL");
}

static void tlbiasid_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    MMU500Inv inv = {
        .match_vmid = true, .vmid = mmu500_cb_vmid(s, cb),
        .match_asid = true, .asid = val, .stage1_only = true,
    };

    if (!mmu500_cb_va64(s, cb) || !FIELD_EX32(s->cb[cb].tcr2, TCR2, AS)) {
        inv.asid &= 0xff;
    }
    trace_mmu500_tlbi("ASID", cb, inv.vmid, inv.asid, 0);
    mmu500_tlb_inv(s, &inv);
}

static void tlbiall_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    MMU500Inv inv = { .match_vmid = true, .vmid = mmu500_cb_vmid(s, cb) };

    inv.stage1_only = !mmu500_cb_is_s2(s, cb);
    trace_mmu500_tlbi("CBALL", cb, inv.vmid, 0, 0);
    mmu500_tlb_inv(s, &inv);
}

static void tlbiipas2(MMU500State *s, int cb, uint64_t val, bool leaf)
{
    MMU500Inv inv = {
        .match_vmid = true, .vmid = mmu500_cb_vmid(s, cb),
        .match_va = true, .va = extract64(val, 0, 36) << 12,
        .stage2_only = true, .leaf_only = leaf,
    };

    trace_mmu500_tlbi("IPAS2", cb, inv.vmid, 0, inv.va);
    mmu500_tlb_inv(s, &inv);
}

static void tlbiipas2_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    tlbiipas2(s, cb, val, false);
}

static void tlbiipas2l_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    tlbiipas2(s, cb, val, true);
}

/* ATS1PR, PW, UR, UW: stage 1 only, and only where the ID says so. */
static void ats1_write(MMU500State *s, int cb, int idx, uint64_t val)
{
    MMU500Txn txn = {
        .va = val & ~0xfffull, .ato = true,
        .write = idx & 1, .priv = !(idx & 2),
    };
    MMU500ContextBank *bank = &s->cb[cb];
    MMU500Trans t;
    MMU500Fault f;

    if (!s->atos || mmu500_cb_is_s2(s, cb)) {
        return;
    }
    if (!FIELD_EX32(bank->sctlr, SCTLR, M)) {
        bank->par = txn.va & 0xfffffffff000ull;
        return;
    }
    if (mmu500_translate_cb(s, cb, &txn, &t, &f, true)) {
        bank->par = (t.pa | (txn.va & t.mask)) & 0xfffffffff000ull;
    } else {
        bank->par = R_PAR_F_MASK | f.type |
                    (uint64_t)f.level << R_PAR_PLVL_SHIFT |
                    (uint64_t)f.stage2 << R_PAR_STAGE_SHIFT;
    }
}

#define BANK(field, mask) \
    .stored = true, .ofs = offsetof(MMU500ContextBank, field), .wmask = (mask)

static const MMU500Reg cb_regs[] = {
    { "SCTLR", A_SCTLR, 1, 4, BANK(sctlr, 0), .write = sctlr_write },
    { "ACTLR", A_ACTLR, 1, 4, BANK(actlr, 0), .write = actlr_write },
    { "RESUME", A_RESUME, 1, 4, .write = resume_write },
    { "TCR2", A_TCR2, 1, 4, BANK(tcr2, 0x0003807f) },
    { "TTBR0", A_TTBR0, 1, 8, BANK(ttbr[0], UINT64_MAX) },
    { "TTBR1", A_TTBR1, 1, 8, BANK(ttbr[1], UINT64_MAX) },
    { "TCR", A_TCR, 1, 4, BANK(tcr, UINT32_MAX) },
    { "CONTEXTIDR", A_CONTEXTIDR, 1, 4, BANK(contextidr, UINT32_MAX) },
    { "MAIR0", A_MAIR0, 1, 4, BANK(mair[0], UINT32_MAX) },
    { "MAIR1", A_MAIR1, 1, 4, BANK(mair[1], UINT32_MAX) },
    { "PAR", A_PAR, 1, 8, BANK(par, UINT64_MAX) },
    { "FSR", A_FSR, 1, 4, BANK(fsr, 0), .write = fsr_write },
    { "FSRRESTORE", A_FSRRESTORE, 1, 4, .write = fsrrestore_write },
    { "FAR", A_FAR, 1, 8, BANK(far, UINT64_MAX) },
    { "FSYNR0", A_FSYNR0, 1, 4, BANK(fsynr0, 0x00ff0fff) },
    { "FSYNR1", A_FSYNR1, 1, 4, BANK(fsynr1, 0) },
    { "IPAFAR", A_IPAFAR, 1, 8, BANK(ipafar, UINT64_MAX) },
    { "TLBIVA", A_TLBIVA, 1, 8, .write = tlbiva_write },
    { "TLBIVAA", A_TLBIVAA, 1, 8, .write = tlbivaa_write },
    { "TLBIASID", A_TLBIASID, 1, 4, .write = tlbiasid_write },
    { "TLBIALL", A_TLBIALL, 1, 4, .write = tlbiall_write },
    { "TLBIVAL", A_TLBIVAL, 1, 8, .write = tlbival_write },
    { "TLBIVAAL", A_TLBIVAAL, 1, 8, .write = tlbivaal_write },
    { "TLBIIPAS2", A_TLBIIPAS2, 1, 8, .write = tlbiipas2_write },
    { "TLBIIPAS2L", A_TLBIIPAS2L, 1, 8, .write = tlbiipas2l_write },
    { "TLBSYNC", A_TLBSYNC, 1, 4 },             /* complete at once */
    { "TLBSTATUS", A_TLBSTATUS, 1, 4 },
    { "ATS1", A_ATS1PR, 4, 8, .write = ats1_write },
    { "ATSR", A_ATSR, 1, 4 },
};

MMU500RegPage mmu500_cbregs = { cb_regs, ARRAY_SIZE(cb_regs) };
