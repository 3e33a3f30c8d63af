/*
 * Recoverable DMA: between a device whose DMA can wait and an IOMMU that
 * can make it wait
 *
 * QEMU's IOMMUMemoryRegionClass.translate() answers at once. An Arm SMMU may
 * instead suspend ("stall") a transaction, report it to the guest, and later
 * be told to retry or to terminate it. The memory region type of an IOMMU
 * that can do this implements the interface below; a device that knows of it
 * passes a request struct and gets, in place of an answer, a callback later.
 * Devices that know nothing of it keep using dma_memory_rw(): their faulting
 * transactions are terminated.
 *
 * Locking: translate(), cancel() and the completion of an invalidation are
 * called with the BQL held. The resume callback is never called under a
 * lock of the IOMMU, so it may start DMA again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RECOVERABLE_DMA_H
#define HW_RECOVERABLE_DMA_H

#include "qemu/queue.h"
#include "qom/object.h"
#include "system/memory.h"

#define TYPE_RECOVERABLE_DMA "recoverable-dma"
typedef struct RecoverableDMAClass RecoverableDMAClass;
DECLARE_CLASS_CHECKERS(RecoverableDMAClass, RECOVERABLE_DMA,
                       TYPE_RECOVERABLE_DMA)

/* How a translation, or a transaction that was suspended, ended. */
typedef enum RecoverableDMAResult {
    RECOVERABLE_DMA_OK,      /* translated: the IOMMUTLBEntry is filled */
    RECOVERABLE_DMA_STALLED, /* suspended: resume() will be called */
    RECOVERABLE_DMA_ABORT,   /* terminated: the device sees an error */
    RECOVERABLE_DMA_RAZWI,   /* terminated: reads as zero, writes ignored */
    RECOVERABLE_DMA_RETRY,   /* resume() only: look up again from the start */
} RecoverableDMAResult;

typedef struct RecoverableDMAReq RecoverableDMAReq;

/*
 * One access to at most one translation granule. The struct belongs to the
 * device and stands still (is not freed, moved or reused) while it is
 * suspended. The first part is input; the device fills it before every
 * translate(). Zero-initialise the struct once.
 */
struct RecoverableDMAReq {
    hwaddr iova;
    /*
     * IOMMU_RO, IOMMU_WO or both, plus IOMMU_EXEC for an instruction fetch
     * and IOMMU_PRIV for a privileged access.
     */
    IOMMUAccessFlags access;
    uint32_t pasid;     /* PASID or SubstreamID, 20 bits */
    bool pasid_valid;
    bool translated;    /* iova came from an ATS translation */
    bool no_stall;      /* terminate where the access would be suspended */

    /*
     * Called once after translate() returned RECOVERABLE_DMA_STALLED, with
     * RETRY, ABORT or RAZWI, under the BQL, never from within translate().
     * It may run inside the guest's register write that ended the wait, so
     * it does bounded work. After RETRY nothing is known: translate again;
     * the access may fault, or be suspended, again.
     */
    void (*resume)(RecoverableDMAReq *req, RecoverableDMAResult how);
    void *opaque;

    /* Private to the IOMMU while suspended. */
    QTAILQ_ENTRY(RecoverableDMAReq) link;
    void *iommu;
    uint32_t stream;
    uint32_t tag;
    int64_t due;
    uint8_t state;      /* 0: not suspended */
};

typedef struct RecoverableDMAInv RecoverableDMAInv;

/*
 * An invalidation of translations that a device caches (PCIe ATS). The IOMMU
 * owns it; the device calls recoverable_dma_inv_done() exactly once, at once
 * or later, when no access uses a matching translation any more.
 */
struct RecoverableDMAInv {
    hwaddr iova;        /* first byte */
    hwaddr last;        /* last byte */
    uint32_t pasid;
    bool pasid_valid;   /* false: entries with any PASID and with none */
    bool global;        /* with a PASID: entries of every PASID */
    /* Private to the IOMMU. */
    void (*done)(RecoverableDMAInv *inv, bool ok);
    QTAILQ_ENTRY(RecoverableDMAInv) link;
    /* The device's, until it is done. */
    QTAILQ_ENTRY(RecoverableDMAInv) device_link;
};

/* A device's translation cache, as the IOMMU sees it. */
typedef struct RecoverableDMAAtc RecoverableDMAAtc;
struct RecoverableDMAAtc {
    void (*invalidate)(RecoverableDMAAtc *atc, RecoverableDMAInv *inv);
    /*
     * The IOMMU's. While it is not 0 and stays the same, a translated access
     * that went through once goes through again: no need to ask. The device
     * keeps it with the cache's entry.
     */
    uint64_t pass;
};

struct RecoverableDMAClass {
    InterfaceClass parent_class;

    /*
     * Translates one access. On RECOVERABLE_DMA_OK @entry holds target
     * address space, translated address, mask and permissions; the
     * permissions include what @req asked for.
     */
    RecoverableDMAResult (*translate)(IOMMUMemoryRegion *mr,
                                      RecoverableDMAReq *req,
                                      IOMMUTLBEntry *entry);

    /*
     * The device gives up a suspended request: resume() is not called any
     * more and the struct may be freed. What the guest sees stays: a later
     * response to the recorded fault is valid and does nothing.
     */
    void (*cancel)(IOMMUMemoryRegion *mr, RecoverableDMAReq *req);

    /*
     * Attaches (or with NULL detaches) the function's translation cache.
     * Optional: NULL where the IOMMU has no asynchronous invalidation; use
     * IOMMU notifiers then. Detaching completes what is outstanding.
     */
    void (*set_atc)(IOMMUMemoryRegion *mr, RecoverableDMAAtc *atc);
};

/*
 * The IOMMU memory region that @as goes through, or NULL where @as has no
 * IOMMU or one without this interface.
 */
IOMMUMemoryRegion *recoverable_dma_from_as(AddressSpace *as);

/* See RecoverableDMAClass.translate(). @mr: from recoverable_dma_from_as(). */
static inline RecoverableDMAResult
recoverable_dma_translate(IOMMUMemoryRegion *mr, RecoverableDMAReq *req,
                          IOMMUTLBEntry *entry)
{
    return RECOVERABLE_DMA_GET_CLASS(mr)->translate(mr, req, entry);
}

/* Harmless where @req is not suspended. */
static inline void recoverable_dma_cancel(IOMMUMemoryRegion *mr,
                                          RecoverableDMAReq *req)
{
    RECOVERABLE_DMA_GET_CLASS(mr)->cancel(mr, req);
}

/* The device is done with @inv; false: the device timed out on it. */
static inline void recoverable_dma_inv_done(RecoverableDMAInv *inv, bool ok)
{
    inv->done(inv, ok);
}

/*
 * A piece of guest memory held as a host pointer. Hold it within one slice
 * of work and release it before anything waits.
 */
typedef struct RecoverableDMAHold {
    void *host;         /* NULL: nothing is held */
    uint64_t len;       /* bytes held, at most to the granule's end */
    uint64_t page;      /* bytes that the translation covers; 0: 2^64 */
    /* Private. */
    AddressSpace *as;
    hwaddr addr;
    bool is_write;
    bool bounce;        /* host is a buffer of the hold's own */
    MemTxAttrs attrs;   /* of what release writes from that buffer */
} RecoverableDMAHold;

/* The longest hold of what is not RAM */
#define RECOVERABLE_DMA_BOUNCE 4096

/*
 * Translates @req and maps up to @len bytes from it. @as: where @mr is NULL,
 * the address space that the address is in. A target that is not RAM comes
 * as a bounce buffer: reads are done here, writes on release.
 * RECOVERABLE_DMA_OK: @hold is filled, hold->len >= 1. @len is at least 1.
 */
RecoverableDMAResult recoverable_dma_hold(IOMMUMemoryRegion *mr,
                                          AddressSpace *as,
                                          RecoverableDMAReq *req,
                                          uint64_t len,
                                          RecoverableDMAHold *hold);

/* @done: bytes from the start that were accessed (writes: marked dirty). */
void recoverable_dma_release(RecoverableDMAHold *hold, uint64_t done);

#endif
