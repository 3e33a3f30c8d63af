/*
 * MMU-500: the register space and its global pages
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "mmu500-internal.h"
#include "trace.h"

uint64_t mmu500_mmio_size(MMU500State *s)
{
    /* global space and context space, each as large as the other */
    return 2 * (uint64_t)s->page_size * pow2ceil(MAX(s->num_cb, 4));
}

/* Pages of the global space; the context banks come after them. */
static unsigned num_pages(const MMU500State *s)
{
    return pow2ceil(MAX(s->num_cb, 4));
}

uint32_t mmu500_idr(const MMU500State *s, int n)
{
    uint32_t v = 0;

    switch (n) {
    case 0:
        v = FIELD_DP32(v, IDR0, NUMSMRG, s->num_smrg);
        v = FIELD_DP32(v, IDR0, EXIDS, s->exids);
        v = FIELD_DP32(v, IDR0, NUMSIDB, MMU500_SIDB);
        v = FIELD_DP32(v, IDR0, CTTW, s->coherent_walk);
        v = FIELD_DP32(v, IDR0, NUMIRPT, 1);
        v = FIELD_DP32(v, IDR0, PTFS_NO_AARCH32S, !s->aarch32);
        v = FIELD_DP32(v, IDR0, PTFS_NO_AARCH32, !s->aarch32);
        v = FIELD_DP32(v, IDR0, ATOSNS, !s->atos);
        v = FIELD_DP32(v, IDR0, SMS, 1);
        v = FIELD_DP32(v, IDR0, NTS, s->nested);
        v = FIELD_DP32(v, IDR0, S2TS, s->stage2);
        v = FIELD_DP32(v, IDR0, S1TS, s->stage1);
        break;
    case 1:
        v = FIELD_DP32(v, IDR1, NUMCB, s->num_cb);
        v = FIELD_DP32(v, IDR1, NUMS2CB, s->num_s2cb);
        v = FIELD_DP32(v, IDR1, NUMPAGENDXB, ctz32(num_pages(s)) - 1);
        v = FIELD_DP32(v, IDR1, PAGESIZE, s->page_size == 65536);
        break;
    case 2:
        v = FIELD_DP32(v, IDR2, IAS, mmu500_bits_to_size(s->ias));
        v = FIELD_DP32(v, IDR2, OAS, mmu500_bits_to_size(s->oas));
        v = FIELD_DP32(v, IDR2, UBS, mmu500_bits_to_size(s->ias));
        v = FIELD_DP32(v, IDR2, PTFSV8_4K, 1);
        v = FIELD_DP32(v, IDR2, PTFSV8_16K, s->granule_16k);
        v = FIELD_DP32(v, IDR2, PTFSV8_64K, 1);
        v = FIELD_DP32(v, IDR2, VMID16S, s->vmid16);
        break;
    case 7:
        v = FIELD_DP32(v, IDR7, MAJOR, 2);
        v = FIELD_DP32(v, IDR7, MINOR, 1);
        break;
    }
    return v;
}

static uint64_t idr_read(MMU500State *s, int page, int idx)
{
    return mmu500_idr(s, idx);
}

static void cr0_write(MMU500State *s, int page, int idx, uint64_t val)
{
    /*
     * The part has no fault model override (STALLD, GSE), always faults on
     * a match conflict, and without EXIDS or VMID16 no switch for them.
     */
    uint32_t ro = R_CR0_STALLD_MASK | R_CR0_GSE_MASK | R_CR0_SMCFCFG_MASK;

    if (!s->exids) {
        ro |= R_CR0_EXIDENABLE_MASK;
    }
    if (!s->vmid16) {
        ro |= R_CR0_VMID16EN_MASK;
    }
    trace_mmu500_cr0(s->cr0, val);
    s->cr0 = (val & ~ro & ~(1u << 30)) | (s->cr0 & ro);
    s->stream_gen++;
    s->unmap_pending = true;
}

static void gfsr_write(MMU500State *s, int page, int idx, uint64_t val)
{
    s->gfsr &= ~val;
}

static void gfsrrestore_write(MMU500State *s, int page, int idx, uint64_t val)
{
    s->gfsr = val & (GFSR_CONFIG | GFSR_CLIENT | R_GFSR_MULTI_MASK);
}

static void tlbivmid_write(MMU500State *s, int page, int idx, uint64_t val)
{
    MMU500Inv inv = { .match_vmid = true, .vmid = val };

    trace_mmu500_tlbi("VMID", 0, val, 0, 0);
    mmu500_tlb_inv(s, &inv);
}

static void tlbivmids1_write(MMU500State *s, int page, int idx, uint64_t val)
{
    MMU500Inv inv = { .match_vmid = true, .vmid = val, .stage1_only = true };

    trace_mmu500_tlbi("VMIDS1", 0, val, 0, 0);
    mmu500_tlb_inv(s, &inv);
}

/* Hypervisor entries are not told apart, so TLBIALLH takes all as well. */
static void tlbiall_write(MMU500State *s, int page, int idx, uint64_t val)
{
    trace_mmu500_tlbi("ALL", 0, 0, 0, 0);
    s->stats.tlb_invalidations++;
    mmu500_tlb_flush(s);
}

static void tlbivah_write(MMU500State *s, int page, int idx, uint64_t val)
{
    MMU500Inv inv = {
        .match_va = true, .va = val & ~0xfffull, .stage1_only = true,
    };

    mmu500_tlb_inv(s, &inv);
}

static void tlbivah64_write(MMU500State *s, int page, int idx, uint64_t val)
{
    MMU500Inv inv = {
        .match_va = true, .va = sextract64(val << 12, 0, 56),
        .stage1_only = true,
    };

    mmu500_tlb_inv(s, &inv);
}

static void gats_write(MMU500State *s, int page, int idx, uint64_t val);

static uint64_t smr_read(MMU500State *s, int page, int idx)
{
    return idx < s->num_smrg ? s->smr[idx] : 0;
}

static void smr_write(MMU500State *s, int page, int idx, uint64_t val)
{
    uint32_t mask = FIELD_EX32(s->cr0, CR0, EXIDENABLE)
        ? UINT32_MAX
        : R_SMR0_ID_MASK | R_SMR0_MASK_MASK | R_SMR0_VALID_MASK;

    if (idx < s->num_smrg) {
        trace_mmu500_smr(idx, val);
        s->smr[idx] = val & mask;
        s->stream_gen++;
        s->unmap_pending = true;
    }
}

static uint64_t s2cr_read(MMU500State *s, int page, int idx)
{
    return idx < s->num_smrg ? s->s2cr[idx] : 0;
}

static void s2cr_write(MMU500State *s, int page, int idx, uint64_t val)
{
    uint32_t mask = 0x3fffffff;

    if (!s->exids) {
        mask &= ~R_S2CR0_EXIDVALID_MASK;
    }
    if (idx < s->num_smrg) {
        trace_mmu500_s2cr(idx, val);
        s->s2cr[idx] = val & mask;
        s->stream_gen++;
        s->unmap_pending = true;
    }
}

static uint64_t pidr4_read(MMU500State *s, int page, int idx)
{
    static const uint8_t id[] = { 0x04, 0, 0, 0 };

    return id[idx];
}

static uint64_t pidr0_read(MMU500State *s, int page, int idx)
{
    static const uint8_t id[] = { 0x81, 0xb4, 0x3b, 0x00 };

    return id[idx];
}

static uint64_t cidr_read(MMU500State *s, int page, int idx)
{
    static const uint8_t id[] = { 0x0d, 0xf0, 0x05, 0xb1 };

    return id[idx];
}

#define GLOBAL(field, mask) \
    .stored = true, .ofs = offsetof(MMU500State, field), .wmask = (mask)

static const MMU500Reg gr0_regs[] = {
    { "CR0", A_CR0, 1, 4, GLOBAL(cr0, 0), .write = cr0_write },
    { "SCR1", A_SCR1, 1, 4 },                   /* Secure only */
    { "CR2", A_CR2, 1, 4, GLOBAL(cr2, R_CR2_BPVMID_MASK) },
    { "ACR", A_ACR, 1, 4, GLOBAL(acr, MMU500_ACR_MASK) },
    { "IDR", A_IDR0, 8, 4, .read = idr_read },
    { "GFAR", A_GFAR, 1, 8, GLOBAL(gfar, UINT64_MAX) },
    { "GFSR", A_GFSR, 1, 4, GLOBAL(gfsr, 0), .write = gfsr_write },
    { "GFSRRESTORE", A_GFSRRESTORE, 1, 4, .write = gfsrrestore_write },
    { "GFSYNR0", A_GFSYNR0, 1, 4, GLOBAL(gfsynr0, 0x7f) },
    { "GFSYNR1", A_GFSYNR1, 1, 4, GLOBAL(gfsynr1, 0xffff) },
    { "GFSYNR2", A_GFSYNR2, 1, 4, GLOBAL(gfsynr2, 0) },
    { "STLBIALL", A_STLBIALL, 1, 4 },           /* Secure only */
    { "TLBIVMID", A_TLBIVMID, 1, 4, .write = tlbivmid_write },
    { "TLBIALLNSNH", A_TLBIALLNSNH, 1, 4, .write = tlbiall_write },
    { "TLBIALLH", A_TLBIALLH, 1, 4, .write = tlbiall_write },
    { "TLBGSYNC", A_TLBGSYNC, 1, 4 },           /* complete at once */
    { "TLBGSTATUS", A_TLBGSTATUS, 1, 4 },
    { "TLBIVAH", A_TLBIVAH, 1, 4, .write = tlbivah_write },
    { "TLBIVALH64", A_TLBIVALH64, 1, 8, .write = tlbivah64_write },
    { "TLBIVMIDS1", A_TLBIVMIDS1, 1, 4, .write = tlbivmids1_write },
    { "TLBIVAH64", A_TLBIVAH64, 1, 8, .write = tlbivah64_write },
    { "GATS", A_GATS1UR, 8, 8, .write = gats_write },
    { "GPAR", A_GPAR, 1, 8, GLOBAL(gpar, UINT64_MAX) },
    { "GATSR", A_GATSR, 1, 4 },
    { "SMR", A_SMR0, MMU500_MAX_SMRG, 4,
      .read = smr_read, .write = smr_write },
    { "S2CR", A_S2CR0, MMU500_MAX_SMRG, 4,
      .read = s2cr_read, .write = s2cr_write },
    { "PIDR4", A_PIDR4, 4, 4, .read = pidr4_read },
    { "PIDR0", A_PIDR0, 4, 4, .read = pidr0_read },
    { "CIDR0", A_CIDR0, 4, 4, .read = cidr_read },
};

MMU500RegPage mmu500_gr0 = { gr0_regs, ARRAY_SIZE(gr0_regs) };

/*
 * GATS1xx and GATS12xx: the operand carries the context bank in its low
 * bits and asks for an unprivileged (even index pairs) read or write.
 */
static void gats_write(MMU500State *s, int page, int idx, uint64_t val)
{
    uint32_t cb = val & 0xff;
    MMU500Txn txn = {
        .va = val & ~0xfffull, .ato = true,
        .write = idx & 1, .priv = idx & 2,
    };
    MMU500Trans t;
    MMU500Fault f;

    if (!s->atos) {
        return;
    }
    if (cb >= s->num_cb) {
        s->gpar = R_PAR_F_MASK;
        return;
    }
    if (mmu500_translate_cb(s, cb, &txn, &t, &f, !(idx & 4))) {
        s->gpar = ((t.pa | (txn.va & t.mask)) & 0xfffffffff000ull);
    } else {
        s->gpar = R_PAR_F_MASK | f.type |
                  (uint64_t)f.level << R_PAR_PLVL_SHIFT |
                  (uint64_t)f.stage2 << R_PAR_STAGE_SHIFT;
    }
}

/* Global address space 1 */

static uint64_t cbar_read(MMU500State *s, int page, int idx)
{
    return idx < s->num_cb ? s->cb[idx].cbar : 0;
}

static void cbar_write(MMU500State *s, int page, int idx, uint64_t val)
{
    /* IRPTNDX is SMMUv1's: a bank has an interrupt of its own here */
    uint32_t v = val & 0x00ffffff;

    if (idx >= s->num_cb) {
        return;
    }
    if (idx < s->num_s2cb) {
        v = FIELD_DP32(v, CBAR0, TYPE, CBAR_TYPE_S2);
    }
    trace_mmu500_cb_write(idx, "CBAR", v);
    s->cb[idx].cbar = v;
}

static uint64_t cbfrsynra_read(MMU500State *s, int page, int idx)
{
    return idx < s->num_cb ? s->cb[idx].cbfrsynra : 0;
}

static void cbfrsynra_write(MMU500State *s, int page, int idx, uint64_t val)
{
    if (idx < s->num_cb) {
        s->cb[idx].cbfrsynra = val & 0xffff;
    }
}

static uint64_t cba2r_read(MMU500State *s, int page, int idx)
{
    return idx < s->num_cb ? s->cb[idx].cba2r : 0;
}

static void cba2r_write(MMU500State *s, int page, int idx, uint64_t val)
{
    uint32_t mask = R_CBA2R0_VA64_MASK | R_CBA2R0_MONC_MASK;

    if (s->vmid16) {
        mask |= R_CBA2R0_VMID16_MASK;
    }
    if (idx < s->num_cb) {
        trace_mmu500_cb_write(idx, "CBA2R", val);
        s->cb[idx].cba2r = val & mask;
    }
}

static const MMU500Reg gr1_regs[] = {
    { "CBAR", A_CBAR0, MMU500_MAX_CB, 4,
      .read = cbar_read, .write = cbar_write },
    { "CBFRSYNRA", A_CBFRSYNRA0, MMU500_MAX_CB, 4,
      .read = cbfrsynra_read, .write = cbfrsynra_write },
    { "CBA2R", A_CBA2R0, MMU500_MAX_CB, 4,
      .read = cba2r_read, .write = cba2r_write },
};

MMU500RegPage mmu500_gr1 = { gr1_regs, ARRAY_SIZE(gr1_regs) };

void mmu500_regs_reset(MMU500State *s)
{
    unsigned i;

    s->cr0 = R_CR0_CLIENTPD_MASK | R_CR0_SMCFCFG_MASK;
    s->cr2 = 0;
    s->acr = MMU500_ACR_RESET;
    s->gfar = 0;
    s->gfsr = 0;
    s->gfsynr0 = 0;
    s->gfsynr1 = 0;
    s->gfsynr2 = 0;
    s->gpar = 0;
    s->gcmd_hi = 0;
    memset(s->smr, 0, sizeof(s->smr));
    memset(s->s2cr, 0, sizeof(s->s2cr));
    for (i = 0; i < MMU500_MAX_CB; i++) {
        MMU500ContextBank *bank = &s->cb[i];

        /* The queues are empty: mmu500_stall_abort_all() comes first. */
        memset(bank, 0, offsetof(MMU500ContextBank, stalled));
        bank->actlr = MMU500_ACTLR_RESET;
    }
    mmu500_pmu_reset(s);
    s->stream_gen++;
    s->unmap_pending = true;
}

/* Access */

void mmu500_regpage_init(MMU500RegPage *page)
{
    size_t i, n, w;

    for (i = 0; i < page->num; i++) {
        const MMU500Reg *r = &page->regs[i];

        for (n = 0; n < MAX(r->count, 1); n++) {
            for (w = 0; w < r->size; w += 4) {
                page->map[(r->addr + n * r->size + w) / 4] = i + 1;
            }
        }
    }
}

/* Which page, and which bank where it is one; NULL: RAZ/WI */
static MMU500RegPage *find_page(MMU500State *s, hwaddr addr, int *cb,
                                void **base)
{
    unsigned page = addr / s->page_size;

    *cb = -1;
    *base = s;
    if (addr % s->page_size >= 0x1000) {
        return NULL;
    }
    switch (page) {
    case MMU500_PAGE_GR0:
        return &mmu500_gr0;
    case MMU500_PAGE_GR1:
        return &mmu500_gr1;
    case MMU500_PAGE_PM:
        return &mmu500_pmregs;
    }
    if (page >= num_pages(s) && page - num_pages(s) < s->num_cb) {
        *cb = page - num_pages(s);
        *base = &s->cb[*cb];
        return &mmu500_cbregs;
    }
    return NULL;
}

static const MMU500Reg *find_reg(MMU500RegPage *page, unsigned ofs, int *idx)
{
    const MMU500Reg *r;
    unsigned n = page->map[ofs / 4];

    if (!n) {
        return NULL;
    }
    r = &page->regs[n - 1];
    *idx = (ofs - r->addr) / r->size;
    return r;
}

static uint64_t reg_value(MMU500State *s, const MMU500Reg *r, void *base,
                          int cb, int idx)
{
    if (r->read) {
        return r->read(s, cb, idx);
    }
    if (!r->stored) {
        return 0;
    }
    return r->size == 8 ? *(uint64_t *)(base + r->ofs)
                        : *(uint32_t *)(base + r->ofs);
}

static MemTxResult mmu500_mmio_read(void *opaque, hwaddr addr, uint64_t *data,
                                    unsigned size, MemTxAttrs attrs)
{
    MMU500State *s = opaque;
    void *base;
    int cb, idx;
    MMU500RegPage *page = find_page(s, addr, &cb, &base);
    const MMU500Reg *r = page ? find_reg(page, addr & 0xfff, &idx) : NULL;
    uint64_t val = 0;

    QEMU_LOCK_GUARD(&s->lock);
    if (!r) {
        qemu_log_mask(LOG_UNIMP,
                      "%s: read of 0x%" HWADDR_PRIx ": no register\n",
                      TYPE_ARM_MMU500, addr);
    } else {
        val = reg_value(s, r, base, cb, idx);
        if (r->size == 8 && size == 4) {
            val = addr & 4 ? val >> 32 : (uint32_t)val;
        } else if (r->size == 4 && size == 8) {
            const MMU500Reg *hi = find_reg(page, (addr & 0xfff) + 4, &idx);

            if (hi && hi->size == 4) {
                val |= reg_value(s, hi, base, cb, idx) << 32;
            }
        }
    }
    trace_mmu500_mmio_read(addr, size, r ? r->name : "-", val);
    *data = val;
    return MEMTX_OK;
}

static void reg_write(MMU500State *s, const MMU500Reg *r, void *base, int cb,
                      int idx, uint64_t val)
{
    if (r->write) {
        r->write(s, cb, idx, val);
    } else if (r->stored && r->size == 8) {
        uint64_t *field = base + r->ofs;

        *field = (*field & ~r->wmask) | (val & r->wmask);
    } else if (r->stored) {
        uint32_t *field = base + r->ofs;

        *field = (*field & ~r->wmask) | (val & r->wmask);
    }
}

/*
 * Half of a 64-bit register. A stored one changes that half. A command takes
 * the upper half along when the lower is written; in a bank of AArch32
 * format the lower half is all there is.
 */
static void reg_write_half(MMU500State *s, const MMU500Reg *r, void *base,
                           int cb, int idx, bool upper, uint32_t val)
{
    uint32_t *hi = cb < 0 ? &s->gcmd_hi : &s->cb[cb].cmd_hi;
    uint64_t old;

    if (r->stored) {
        old = reg_value(s, r, base, cb, idx);
        reg_write(s, r, base, cb, idx,
                  upper ? deposit64(old, 32, 32, val)
                        : deposit64(old, 0, 32, val));
    } else if (upper) {
        *hi = val;
    } else {
        reg_write(s, r, base, cb, idx, val | (uint64_t)*hi << 32);
        *hi = 0;
    }
}

static MemTxResult mmu500_mmio_write(void *opaque, hwaddr addr, uint64_t val,
                                     unsigned size, MemTxAttrs attrs)
{
    MMU500State *s = opaque;
    void *base;
    int cb, idx;
    MMU500RegPage *page = find_page(s, addr, &cb, &base);
    const MMU500Reg *r = page ? find_reg(page, addr & 0xfff, &idx) : NULL;

    trace_mmu500_mmio_write(addr, size, r ? r->name : "-", val);
    if (!r) {
        qemu_log_mask(LOG_UNIMP, "%s: write of 0x%" HWADDR_PRIx
                      ": no register\n", TYPE_ARM_MMU500, addr);
        return MEMTX_OK;
    }

    qemu_mutex_lock(&s->lock);
    if (r->size == size) {
        reg_write(s, r, base, cb, idx, val);
    } else if (r->size == 8) {
        reg_write_half(s, r, base, cb, idx, addr & 4, val);
    } else {
        const MMU500Reg *hi;

        reg_write(s, r, base, cb, idx, (uint32_t)val);
        hi = find_reg(page, (addr & 0xfff) + 4, &idx);
        if (hi && hi->size == 4) {
            reg_write(s, hi, base, cb, idx, val >> 32);
        }
    }
    qemu_mutex_unlock(&s->lock);

    mmu500_notify_unmap(s);
    mmu500_stall_run(s);
    mmu500_update_irqs(s);
    return MEMTX_OK;
}

const MemoryRegionOps mmu500_mmio_ops = {
    .read_with_attrs = mmu500_mmio_read,
    .write_with_attrs = mmu500_mmio_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 8 },
};
