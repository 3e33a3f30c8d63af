/*
 * MMU-500: migration
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "mmu500-internal.h"

static const VMStateDescription vmstate_bank = {
    .name = "arm-mmu500/bank",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cbar, MMU500ContextBank),
        VMSTATE_UINT32(cba2r, MMU500ContextBank),
        VMSTATE_UINT32(cbfrsynra, MMU500ContextBank),
        VMSTATE_UINT32(sctlr, MMU500ContextBank),
        VMSTATE_UINT32(actlr, MMU500ContextBank),
        VMSTATE_UINT32(tcr2, MMU500ContextBank),
        VMSTATE_UINT32(tcr, MMU500ContextBank),
        VMSTATE_UINT32(contextidr, MMU500ContextBank),
        VMSTATE_UINT32_ARRAY(mair, MMU500ContextBank, 2),
        VMSTATE_UINT32(fsr, MMU500ContextBank),
        VMSTATE_UINT32(fsynr0, MMU500ContextBank),
        VMSTATE_UINT32(fsynr1, MMU500ContextBank),
        VMSTATE_UINT64_ARRAY(ttbr, MMU500ContextBank, 2),
        VMSTATE_UINT64(par, MMU500ContextBank),
        VMSTATE_UINT64(far, MMU500ContextBank),
        VMSTATE_UINT64(ipafar, MMU500ContextBank),
        VMSTATE_UINT32(cmd_hi, MMU500ContextBank),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_pmu = {
    .name = "arm-mmu500/pmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_ARRAY(counter, MMU500PMUGroup, MMU500_PMU_COUNTERS),
        VMSTATE_UINT32_ARRAY(evtyper, MMU500PMUGroup, MMU500_PMU_COUNTERS),
        VMSTATE_UINT32(cgcr, MMU500PMUGroup),
        VMSTATE_UINT32(cgsmr, MMU500PMUGroup),
        VMSTATE_END_OF_LIST()
    }
};

/*
 * The caches start empty. A stalled transaction comes back when its device
 * issues it again.
 */
static int mmu500_post_load(void *opaque, int version_id)
{
    MMU500State *s = opaque;
    unsigned i;

    QEMU_LOCK_GUARD(&s->lock);
    for (i = 0; i < s->num_cb; i++) {
        s->cb[i].stall_orphan = FIELD_EX32(s->cb[i].fsr, FSR, SS) &&
                                QTAILQ_EMPTY(&s->cb[i].stalled);
    }
    mmu500_tlb_flush(s);
    mmu500_tbu_reset(s);
    s->stream_gen++;
    return 0;
}

const VMStateDescription vmstate_mmu500 = {
    .name = "arm-mmu500",
    .version_id = 1,
    .minimum_version_id = 1,
    .priority = MIG_PRI_IOMMU,
    .post_load = mmu500_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_EQUAL(num_cb, MMU500State,
                             "context-banks differs from the source's"),
        VMSTATE_UINT32_EQUAL(num_smrg, MMU500State,
                             "stream-match-groups differs from the source's"),
        VMSTATE_UINT32_EQUAL(num_tbu, MMU500State,
                             "tbus differs from the source's"),
        VMSTATE_UINT32(cr0, MMU500State),
        VMSTATE_UINT32(cr2, MMU500State),
        VMSTATE_UINT32(acr, MMU500State),
        VMSTATE_UINT64(gfar, MMU500State),
        VMSTATE_UINT32(gfsr, MMU500State),
        VMSTATE_UINT32(gfsynr0, MMU500State),
        VMSTATE_UINT32(gfsynr1, MMU500State),
        VMSTATE_UINT32(gfsynr2, MMU500State),
        VMSTATE_UINT64(gpar, MMU500State),
        VMSTATE_UINT32(gcmd_hi, MMU500State),
        VMSTATE_UINT32_ARRAY(smr, MMU500State, MMU500_MAX_SMRG),
        VMSTATE_UINT32_ARRAY(s2cr, MMU500State, MMU500_MAX_SMRG),
        VMSTATE_STRUCT_VARRAY_UINT32(cb, MMU500State, num_cb, 1, vmstate_bank,
                                     MMU500ContextBank),
        VMSTATE_STRUCT_VARRAY_UINT32(pmu, MMU500State, num_tbu, 1,
                                     vmstate_pmu, MMU500PMUGroup),
        VMSTATE_UINT32(pmcr, MMU500State),
        VMSTATE_UINT32_ARRAY(pmcnten, MMU500State,
                             MMU500_MAX_TBU * MMU500_PMU_COUNTERS / 32),
        VMSTATE_UINT32_ARRAY(pminten, MMU500State,
                             MMU500_MAX_TBU * MMU500_PMU_COUNTERS / 32),
        VMSTATE_UINT32_ARRAY(pmovs, MMU500State,
                             MMU500_MAX_TBU * MMU500_PMU_COUNTERS / 32),
        VMSTATE_END_OF_LIST()
    }
};
