/*
 * PCIe requester: the DMA side of a PCIe function
 *
 * One per function. It carries PASIDs, uses an address translation cache
 * when the guest has enabled ATS, asks for pages when it has enabled PRI,
 * and otherwise sends untranslated requests, which an IOMMU may suspend.
 * With no IOMMU, or one without include/hw/recoverable-dma.h, it does plain
 * DMA in the function's address space.
 *
 * Everything runs in the main loop under the BQL.
 *
 *     pcie_requester_hold() -> OK       use hold.host, then _release()
 *                           -> PENDING  ready() comes later; hold() again
 *                           -> FAULT    refused; the request is free
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_PCI_PCIE_REQUESTER_H
#define HW_PCI_PCIE_REQUESTER_H

#include "hw/pci/pci_device.h"
#include "hw/recoverable-dma.h"

/*
 * A PCI device class lists this interface (it has no methods) where all DMA
 * of the function can wait: machines then describe it as able to stall.
 */
#define INTERFACE_PCIE_STALLABLE "pcie-stallable"

typedef struct PCIeRequester PCIeRequester;
typedef struct PCIeRequest PCIeRequest;

typedef enum PCIeRequesterResult {
    PCIE_REQUESTER_OK,
    PCIE_REQUESTER_PENDING,
    PCIE_REQUESTER_FAULT,
} PCIeRequesterResult;

/*
 * One suspendable access at a time; embed one in every operation that can
 * wait (a plain struct: no stack is kept). Zero-initialise, set the first
 * part once or before each hold(). It stands still while pending.
 */
struct PCIeRequest {
    uint32_t pasid;       /* used where pasid_valid and PASID is enabled */
    bool pasid_valid;
    bool priv;            /* privileged mode requested (needs a PASID) */
    bool exec;            /* execute requested (needs a PASID) */
    bool no_atc;          /* send untranslated even where ATS is enabled */
    bool no_pri;          /* do not ask for pages even where PRI is enabled */
    bool no_stall;        /* never PENDING: a fault is final (probe, flush) */
    bool translated;      /* the address is a translated one already */

    /*
     * After PENDING, once: @ok says whether a retry makes sense. True: call
     * hold() again. False: the access was refused. Not called from within
     * hold(). May start, cancel or free any request, this one too.
     */
    void (*ready)(PCIeRequest *req, bool ok);
    void *opaque;

    /* Private. */
    RecoverableDMAReq dma;
    PCIeRequester *r;
    uint8_t state;
    uint16_t prgi;
    uint8_t tries;
    bool pri_failed;      /* the page request failed at once */
    QTAILQ_ENTRY(PCIeRequest) link;
};

/* One per PCIDevice; lives in the device's state struct. */
struct PCIeRequester {
    PCIDevice *dev;
    IOMMUMemoryRegion *mr;  /* the IOMMU that can suspend; may be NULL */

    /*
     * Optional, set before init: an invalidation has emptied the cache and
     * is answered when this returns. @pasid_valid false: all PASIDs.
     */
    void (*invalidated)(PCIeRequester *r, bool pasid_valid, uint32_t pasid,
                        hwaddr first, hwaddr last);

    bool fail_inv;        /* answer invalidations as timed out (test devices) */

    /* Counters, for traces and QOM properties. */
    uint64_t n_stall, n_atc_hit, n_atc_miss, n_atc_inv, n_page_req;

    /* Private. */
    QTAILQ_HEAD(, PCIeRequest) pending;   /* suspended or asked for a page */
    QTAILQ_HEAD(, PCIeRequest) pri_queue; /* waits for credit to ask */
    struct PCIeAtc *atc;
    struct PCIePri *pri;
    GHashTable *pasids;                   /* notifiers by PASID */
    bool was_ats, was_pri;
};

/*
 * What a function has in its extended configuration space: offsets of the
 * capabilities, 0 for those that it does not have.
 */
typedef struct PCIeRequesterCaps {
    uint16_t pasid, ats, pri, acs;
    uint8_t pasid_bits;       /* Max PASID Width */
    bool exec, priv;          /* the PASID capability's permission bits */
    uint32_t page_requests;   /* Outstanding Page Request Capacity */
    bool prg_response_pasid;  /* responses to requests with a PASID have it */
} PCIeRequesterCaps;

/*
 * Adds them; call it from realize after the PCI Express capability, before
 * pcie_requester_init(). ATS is page-aligned; ACS is what a function of a
 * multi-function device needs to be a group of its own.
 */
void pcie_requester_init_caps(PCIDevice *dev, const PCIeRequesterCaps *caps);

/*
 * Call init from the device's realize after its capabilities are in place,
 * exit from its unrealize. exit cancels what is pending without calling
 * ready().
 */
void pcie_requester_init(PCIeRequester *r, PCIDevice *dev);
void pcie_requester_exit(PCIeRequester *r);

/*
 * Function-level or bus reset: every pending request is cancelled without
 * ready(), the ATC is emptied, late responses are ignored, and the ATS, PASID
 * and PRI capabilities are disabled. Call it from the device's reset.
 */
void pcie_requester_reset(PCIeRequester *r);

/*
 * Call from the device's config_write after pci_default_write_config(): acts
 * on changes of bus master, ATS, PRI and PASID enables. Where bus master went
 * off, or D3 was entered, pending requests get ready(false).
 */
void pcie_requester_config_write(PCIeRequester *r, uint32_t addr, int len);

/* The function is in D1 to D3: it sends nothing. */
bool pcie_requester_in_d3(PCIeRequester *r);

/*
 * Holds up to @len bytes at @addr for reading or writing. hold->len comes
 * back clipped to what is contiguous: loop for more. An atomic takes a write
 * hold and works on the host pointer.
 */
PCIeRequesterResult pcie_requester_hold(PCIeRequester *r, PCIeRequest *req,
                                        uint64_t addr, uint64_t len,
                                        bool is_write,
                                        RecoverableDMAHold *hold);

static inline void pcie_requester_release(RecoverableDMAHold *hold,
                                          uint64_t done)
{
    recoverable_dma_release(hold, done);
}

/*
 * Between block and unblock translated accesses are under way: an ATC
 * invalidation still empties the cache at once but is answered only after
 * the unblock. Needed only where a hold outlives one slice of work. Nests.
 */
void pcie_requester_block_inv(PCIeRequester *r);
void pcie_requester_unblock_inv(PCIeRequester *r);

/* Gives a pending request up; ready() will not come. Harmless otherwise. */
void pcie_requester_cancel(PCIeRequester *r, PCIeRequest *req);

/* A pending request waits for a page request's response, not for a stall. */
bool pcie_request_asks_page(const PCIeRequest *req);
/* Page request groups that a response is owed for. */
uint32_t pcie_requester_prg_pending(const PCIeRequester *r);

/*
 * Sends a translation request, whose answer is not cached: true where the
 * IOMMU has a translation table for @pasid, whatever is mapped in it. From
 * then on invalidations of @pasid are heard. May be called from
 * invalidated().
 */
bool pcie_requester_probe(PCIeRequester *r, uint32_t pasid);

/*
 * Copies between @buf and guest memory; *@done says how far it is and is
 * where a later call goes on. OK: all @len bytes done. PENDING: ready() will
 * come; call again with the same arguments. FAULT: *@done bytes were done.
 */
PCIeRequesterResult pcie_requester_rw(PCIeRequester *r, PCIeRequest *req,
                                      uint64_t addr, void *buf, uint64_t len,
                                      bool is_write, uint64_t *done);

/*
 * Migration: a field of the device's state, after the PCI device's own. What
 * is pending does not move: the device issues it again.
 */
extern const VMStateDescription vmstate_pcie_requester;

#endif
