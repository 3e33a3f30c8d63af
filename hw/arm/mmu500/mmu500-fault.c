/*
 * MMU-500: fault syndromes and interrupts (IHI 0062 chapter 3)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "hw/irq.h"
#include "mmu500-internal.h"
#include "trace.h"

static MMU500Outcome terminate(const MMU500ContextBank *bank)
{
    return FIELD_EX32(bank->sctlr, SCTLR, CFRE) ? OUTCOME_ABORT
                                                : OUTCOME_RAZWI;
}

static uint32_t fsr_format(const MMU500State *s, int cb)
{
    if (mmu500_cb_va64(s, cb)) {
        return FSR_FORMAT_AA64;
    }
    if (mmu500_cb_is_s2(s, cb) || FIELD_EX32(s->cb[cb].tcr, TCR, EAE)) {
        return FSR_FORMAT_LPAE;
    }
    return FSR_FORMAT_SHORT;
}

static void record(MMU500State *s, const MMU500Txn *txn, const MMU500Fault *f)
{
    MMU500ContextBank *bank = &s->cb[f->cb];
    uint32_t fsynr0 = 0;

    bank->fsr = f->type;
    bank->fsr = FIELD_DP32(bank->fsr, FSR, FORMAT, fsr_format(s, f->cb));

    fsynr0 = FIELD_DP32(fsynr0, FSYNR0, PLVL, f->level);
    fsynr0 = FIELD_DP32(fsynr0, FSYNR0, WNR, txn->write);
    fsynr0 = FIELD_DP32(fsynr0, FSYNR0, PNU, txn->priv);
    fsynr0 = FIELD_DP32(fsynr0, FSYNR0, IND, txn->insn && !txn->write);
    fsynr0 = FIELD_DP32(fsynr0, FSYNR0, NSATTR, 1);
    fsynr0 = FIELD_DP32(fsynr0, FSYNR0, PTWF, f->ptwf);
    if (f->stage2) {
        fsynr0 = FIELD_DP32(fsynr0, FSYNR0, NESTED, f->s1cb >= 0);
        fsynr0 = FIELD_DP32(fsynr0, FSYNR0, S1PTWF, f->s1ptw);
        if (f->s1cb >= 0) {
            fsynr0 = FIELD_DP32(fsynr0, FSYNR0, S1CBNDX, f->s1cb);
        }
        bank->ipafar = f->ipa;
    }
    bank->fsynr0 = fsynr0;
    bank->fsynr1 = 0;
    bank->far = txn->va;
    bank->cbfrsynra = txn->sid & 0xffff;
}

MMU500Outcome mmu500_context_fault(MMU500State *s, const MMU500Txn *txn,
                                   const MMU500Fault *f, MMU500Result *res)
{
    MMU500ContextBank *bank = &s->cb[f->cb];
    bool stall = txn->can_stall && FIELD_EX32(bank->sctlr, SCTLR, CFCFG);

    if (txn->probe || txn->cost) {
        return OUTCOME_ABORT;
    }
    s->stats.context_faults++;
    trace_mmu500_context_fault(f->cb, txn->sid, txn->va, f->type, f->level,
                               txn->write, stall);

    if (bank->fsr & (FSR_W1C | R_FSR_SS_MASK)) {
        /* The first fault keeps the syndrome. */
        bank->fsr = FIELD_DP32(bank->fsr, FSR, MULTI, 1);
        res->recorded = false;
        if (stall && !FIELD_EX32(bank->fsr, FSR, SS)) {
            /* Somebody must be able to resume it. */
            bank->fsr = FIELD_DP32(bank->fsr, FSR, SS, 1);
            res->recorded = true;
        }
    } else {
        record(s, txn, f);
        bank->fsr = FIELD_DP32(bank->fsr, FSR, SS, stall);
        res->recorded = stall;
    }
    if (stall) {
        res->stall_cb = f->cb;
        return OUTCOME_STALL;
    }
    return terminate(bank);
}

/*
 * Hit under previous context fault. With HUPCF clear, nothing passes while a
 * fault is outstanding: stalled ones queue up, others are terminated.
 */
MMU500Outcome mmu500_previous_fault(MMU500State *s, const MMU500Txn *txn,
                                    int cb, MMU500Result *res)
{
    MMU500ContextBank *bank = &s->cb[cb];

    if (txn->probe || FIELD_EX32(bank->sctlr, SCTLR, HUPCF) ||
        !FIELD_EX32(bank->sctlr, SCTLR, M)) {
        return OUTCOME_OK;
    }
    if (txn->cost) {
        return bank->fsr & (FSR_W1C | R_FSR_SS_MASK) ? OUTCOME_ABORT
                                                     : OUTCOME_OK;
    }
    if (FIELD_EX32(bank->fsr, FSR, SS)) {
        if (bank->stall_orphan && bank->far == txn->va &&
            FIELD_EX32(bank->fsynr0, FSYNR0, WNR) == txn->write &&
            bank->cbfrsynra == (txn->sid & 0xffff) && txn->can_stall) {
            /* re-issued after migration: the one the guest knows about */
            bank->stall_orphan = false;
            res->stall_cb = cb;
            res->recorded = true;
            return OUTCOME_STALL;
        }
        if (txn->can_stall && FIELD_EX32(bank->sctlr, SCTLR, CFCFG)) {
            res->stall_cb = cb;
            res->recorded = false;
            s->stats.held++;
            return OUTCOME_STALL;
        }
        return terminate(bank);
    }
    if ((bank->fsr & FSR_W1C) && !FIELD_EX32(bank->sctlr, SCTLR, CFCFG)) {
        return terminate(bank);
    }
    return OUTCOME_OK;
}

MMU500Outcome mmu500_global_fault(MMU500State *s, const MMU500Txn *txn,
                                  uint32_t gfsr_bit, bool nested)
{
    bool report = gfsr_bit & GFSR_CONFIG ? FIELD_EX32(s->cr0, CR0, GCFGFRE)
                                         : FIELD_EX32(s->cr0, CR0, GFRE);

    if (txn->probe || txn->ato || txn->cost) {
        return OUTCOME_ABORT;
    }
    s->stats.global_faults++;
    trace_mmu500_global_fault(gfsr_bit, txn->sid, txn->va, txn->write);
    if (s->gfsr) {
        s->gfsr = FIELD_DP32(s->gfsr, GFSR, MULTI, 1);
    } else {
        uint32_t syn = 0;

        syn = FIELD_DP32(syn, GFSYNR0, NESTED, nested);
        syn = FIELD_DP32(syn, GFSYNR0, WNR, txn->write);
        syn = FIELD_DP32(syn, GFSYNR0, PNU, txn->priv);
        syn = FIELD_DP32(syn, GFSYNR0, IND, txn->insn && !txn->write);
        syn = FIELD_DP32(syn, GFSYNR0, NSATTR, 1);
        s->gfsr = gfsr_bit;
        s->gfsynr0 = syn;
        s->gfsynr1 = txn->sid & 0xffff;
        s->gfsynr2 = 0;
        s->gfar = txn->va;
    }
    return report ? OUTCOME_ABORT : OUTCOME_RAZWI;
}

static bool cb_irq(const MMU500ContextBank *bank)
{
    return FIELD_EX32(bank->sctlr, SCTLR, CFIE) &&
           (bank->fsr & (FSR_W1C | R_FSR_SS_MASK));
}

void mmu500_update_irqs(MMU500State *s)
{
    DECLARE_BITMAP(lines, MMU500_MAX_CB) = { 0 };
    bool global, pmu;
    unsigned i;

    if (!bql_locked()) {
        /* a device in an I/O thread: the main loop raises the lines */
        qemu_bh_schedule(s->irq_bh);
        return;
    }

    WITH_QEMU_LOCK_GUARD(&s->lock) {
        for (i = 0; i < s->num_cb; i++) {
            if (cb_irq(&s->cb[i])) {
                set_bit(i % s->num_context_irqs, lines);
            }
        }
        global = (FIELD_EX32(s->cr0, CR0, GCFGFIE) &&
                  (s->gfsr & (GFSR_CONFIG | R_GFSR_MULTI_MASK))) ||
                 (FIELD_EX32(s->cr0, CR0, GFIE) &&
                  (s->gfsr & (GFSR_CLIENT | R_GFSR_MULTI_MASK)));
        pmu = mmu500_pmu_irq(s);
    }
    for (i = 0; i < s->num_context_irqs; i++) {
        qemu_set_irq(s->irq_context[i], test_bit(i, lines));
    }
    qemu_set_irq(s->irq_global, global);
    qemu_set_irq(s->irq_pmu, pmu);
}
