/*
 * Recoverable DMA: the interface type and the host pointer helper
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "system/dma.h"
#include "hw/pci/pcie_requester.h"
#include "hw/recoverable-dma.h"

IOMMUMemoryRegion *recoverable_dma_from_as(AddressSpace *as)
{
    IOMMUMemoryRegion *mr = memory_region_get_iommu(as->root);

    return mr && object_dynamic_cast(OBJECT(mr), TYPE_RECOVERABLE_DMA) ? mr
                                                                      : NULL;
}

/* Points @hold at @len bytes of @as or fewer. */
static bool hold_memory(AddressSpace *as, hwaddr addr, hwaddr len,
                        bool is_write, RecoverableDMAHold *hold)
{
    MemTxAttrs attrs = MEMTXATTRS_UNSPECIFIED;
    MemoryRegion *mr;
    hwaddr xlat;

    hold->as = as;
    hold->is_write = is_write;
    hold->bounce = false;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(as, addr, &xlat, &len, is_write, attrs);
    hold->len = len;
    if (memory_access_is_direct(mr, is_write, attrs)) {
        memory_region_ref(mr);
        hold->host = (uint8_t *)memory_region_get_ram_ptr(mr) + xlat;
        return true;
    }

    /* A device, or nothing: through a buffer that belongs to the hold */
    hold->len = MIN(len, RECOVERABLE_DMA_BOUNCE);
    if (!address_space_access_valid(as, addr, hold->len, is_write, attrs)) {
        return false;
    }
    hold->host = g_malloc0(hold->len);
    hold->bounce = true;
    hold->addr = addr;
    hold->attrs = attrs;
    if (!is_write &&
        address_space_read(as, addr, attrs, hold->host, hold->len)) {
        g_free(hold->host);
        hold->host = NULL;
        return false;
    }
    return true;
}

RecoverableDMAResult recoverable_dma_hold(IOMMUMemoryRegion *mr,
                                          AddressSpace *as,
                                          RecoverableDMAReq *req,
                                          uint64_t len,
                                          RecoverableDMAHold *hold)
{
    IOMMUAccessFlags need = req->access & IOMMU_RW;
    hwaddr addr = req->iova;

    hold->host = NULL;
    hold->page = 0;
    if (mr) {
        IOMMUTLBEntry entry;
        hwaddr left;
        RecoverableDMAResult result = recoverable_dma_translate(mr, req,
                                                                &entry);

        if (result != RECOVERABLE_DMA_OK) {
            return result;
        }
        if ((entry.perm & need) != need) {
            return RECOVERABLE_DMA_ABORT;
        }
        addr = (entry.translated_addr & ~entry.addr_mask) |
               (req->iova & entry.addr_mask);
        /* bytes after the first to the end of the granule */
        left = entry.addr_mask - (req->iova & entry.addr_mask);
        if (len - 1 > left) {
            len = left + 1;
        }
        as = entry.target_as;
        hold->page = entry.addr_mask + 1;
    }
    return hold_memory(as, addr, len, req->access & IOMMU_WO, hold)
           ? RECOVERABLE_DMA_OK : RECOVERABLE_DMA_ABORT;
}

void recoverable_dma_release(RecoverableDMAHold *hold, uint64_t done)
{
    if (!hold->host) {
        return;
    }
    done = MIN(done, hold->len);
    if (!hold->bounce) {
        address_space_unmap(hold->as, hold->host, hold->len, hold->is_write,
                            done);
    } else {
        if (hold->is_write && done) {
            /* a posted write: nobody hears of an error */
            address_space_write(hold->as, hold->addr, hold->attrs, hold->host,
                                done);
        }
        g_free(hold->host);
    }
    hold->host = NULL;
}

static const TypeInfo recoverable_dma_info = {
    .name = TYPE_RECOVERABLE_DMA,
    .parent = TYPE_INTERFACE,
    .class_size = sizeof(RecoverableDMAClass),
};

static const TypeInfo pcie_stallable_info = {
    .name = INTERFACE_PCIE_STALLABLE,
    .parent = TYPE_INTERFACE,
};

static void recoverable_dma_register_types(void)
{
    type_register_static(&recoverable_dma_info);
    type_register_static(&pcie_stallable_info);
}

type_init(recoverable_dma_register_types)
