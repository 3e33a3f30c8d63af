/*
 * Arm SMMUv3: hardware update of translation tables (HTTU)
 *
 * Which updates a CD or an STE may ask for, and the write of a descriptor's
 * access flag and dirty state. CPUs walk and write the same tables, so the
 * write is one compare-and-swap. IHI 0070, 3.13, 5.2 and 5.4.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "system/address-spaces.h"
#include "hw/arm/smmuv3.h"
#include "../smmu-internal.h"
#include "smmuv3-ext.h"
#include "trace.h"

bool smmuv3_httu_legal(SMMUv3State *s, bool ha, bool hd)
{
    return (!ha || s->feat.httu >= SMMUV3_HTTU_ACCESS) &&
           (!hd || s->feat.httu >= SMMUV3_HTTU_DIRTY);
}

SMMUPTEUpdate smmu_update_pte(dma_addr_t addr, uint64_t old, uint64_t new)
{
    AddressSpace *as = &address_space_memory;
    hwaddr xlat, len = sizeof(new);
    uint64_t *p, seen, expect = cpu_to_le64(old);
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(as, addr, &xlat, &len, true,
                                 SMMU_STRUCT_ATTRS);
    if (len < sizeof(new) ||
        !memory_access_is_direct(mr, true, SMMU_STRUCT_ATTRS)) {
        return SMMU_PTE_NO_RAM;
    }
    /* RAM: a pointer into it, no copy; the walk read the descriptor aligned */
    p = address_space_map(as, addr, &len, true, SMMU_STRUCT_ATTRS);
    if (!p) {
        return SMMU_PTE_NO_RAM;
    }
    seen = qatomic_cmpxchg__nocheck(p, expect, cpu_to_le64(new));
    address_space_unmap(as, p, len, true, seen == expect ? len : 0);
    trace_smmuv3_httu(addr, old, new, seen == expect);
    return seen == expect ? SMMU_PTE_UPDATED : SMMU_PTE_CHANGED;
}
