/*
 * PCIe requester: between its parts
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_PCI_REQUESTER_INTERNAL_H
#define HW_PCI_REQUESTER_INTERNAL_H

#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie_requester.h"

/* PCIeRequest.state */
enum {
    REQUEST_IDLE,
    REQUEST_STALLED,     /* the IOMMU holds it; in pending */
    REQUEST_ASKED,       /* a page request is out; in pending */
    REQUEST_QUEUED,      /* waits for a page request credit; in pri_queue */
};

/* What the requester keeps for each PASID, and for none (PCI_NO_PASID) */
typedef struct PCIePasid {
    PCIeRequester *r;
    uint32_t pasid;
    IOMMUNotifier inv;       /* where invalidations come by notifier */
    IOMMUPRINotifier pri;
    bool inv_registered, pri_registered;
} PCIePasid;

PCIePasid *pcie_requester_pasid(PCIeRequester *r, uint32_t pasid);

static inline uint32_t pcie_request_pasid(const PCIeRequest *req)
{
    return req->pasid_valid ? req->pasid : PCI_NO_PASID;
}

/* Takes @req out of whatever it waits in; it is idle then. */
void pcie_request_detach(PCIeRequester *r, PCIeRequest *req);

/* ATC */
typedef struct PCIeAtcEntry {
    hwaddr page;         /* iova of the 4KB page */
    uint32_t pasid;
    bool priv;
    uint8_t perm;        /* RO, WO, EXEC; 0: empty */
    hwaddr out;          /* where the page is */
    hwaddr left;         /* bytes from @page to the translation's end, - 1 */
    hwaddr mask;         /* of the translation */
    AddressSpace *as;
    uint64_t passed;     /* RecoverableDMAAtc.pass when it was last used */
} PCIeAtcEntry;

typedef enum PCIeAtcResult {
    ATC_OK,
    ATC_NO_ACCESS,       /* translated, but without the rights */
    ATC_REFUSED,         /* no translation service for this request */
    ATC_ERROR,           /* the completer aborted */
} PCIeAtcResult;

void pcie_atc_init(PCIeRequester *r);
void pcie_atc_exit(PCIeRequester *r);
void pcie_atc_flush(PCIeRequester *r);
/* Looks up, and on a miss asks the translation agent. */
PCIeAtcResult pcie_atc_translate(PCIeRequester *r, PCIeRequest *req,
                                 hwaddr addr, IOMMUAccessFlags access,
                                 PCIeAtcEntry *e);

/* Needs an access with @e the IOMMU's check? */
bool pcie_atc_needs_check(PCIeRequester *r, const PCIeAtcEntry *e);
/* The check let an access with @e through. */
void pcie_atc_checked(PCIeRequester *r, const PCIeAtcEntry *e);

/* PRI */
void pcie_pri_requester_init(PCIeRequester *r);
void pcie_pri_requester_exit(PCIeRequester *r);
/* Asks for the page of @addr; false: there is no page request service. */
bool pcie_pri_ask(PCIeRequester *r, PCIeRequest *req, hwaddr addr,
                  IOMMUAccessFlags access);
void pcie_pri_forget(PCIeRequester *r, PCIeRequest *req);
/* The guest turned PRI on or off. */
void pcie_pri_enable_changed(PCIeRequester *r);

#endif
