/*
 * PCIe requester: one access on its way to memory
 *
 * Which way an access takes: ATC and ATS where the guest enabled them, a
 * page request where a translation lacks the rights and PRI is on, else an
 * untranslated request, which the IOMMU may suspend.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "requester-internal.h"
#include "trace.h"

/* After as many granted page requests an access goes untranslated. */
#define PRI_TRIES 3

PCIePasid *pcie_requester_pasid(PCIeRequester *r, uint32_t pasid)
{
    PCIePasid *p = g_hash_table_lookup(r->pasids, GUINT_TO_POINTER(pasid));

    if (!p) {
        p = g_new0(PCIePasid, 1);
        p->r = r;
        p->pasid = pasid;
        g_hash_table_insert(r->pasids, GUINT_TO_POINTER(pasid), p);
    }
    return p;
}

static void pasid_free(gpointer value)
{
    PCIePasid *p = value;

    if (p->inv_registered) {
        pci_iommu_unregister_iotlb_notifier(p->r->dev, p->pasid, &p->inv);
    }
    if (p->pri_registered) {
        pci_pri_unregister_notifier(p->r->dev, p->pasid);
    }
    g_free(p);
}

void pcie_request_detach(PCIeRequester *r, PCIeRequest *req)
{
    switch (req->state) {
    case REQUEST_STALLED:
        recoverable_dma_cancel(r->mr, &req->dma);
        QTAILQ_REMOVE(&r->pending, req, link);
        break;
    case REQUEST_ASKED:
        pcie_pri_forget(r, req);
        QTAILQ_REMOVE(&r->pending, req, link);
        break;
    case REQUEST_QUEUED:
        QTAILQ_REMOVE(&r->pri_queue, req, link);
        break;
    default:
        break;
    }
    req->state = REQUEST_IDLE;
    req->tries = 0;
}

void pcie_requester_cancel(PCIeRequester *r, PCIeRequest *req)
{
    pcie_request_detach(r, req);
}

static void dma_resume(RecoverableDMAReq *dma, RecoverableDMAResult how)
{
    PCIeRequest *req = dma->opaque;
    PCIeRequester *r = req->r;

    QTAILQ_REMOVE(&r->pending, req, link);
    req->state = REQUEST_IDLE;
    trace_pcie_requester_resume(r->dev->name, dma->iova, how);
    req->ready(req, how == RECOVERABLE_DMA_RETRY);
}

/* Who writes: what takes MSIs goes by it. */
static MemTxAttrs attrs_of(PCIeRequester *r)
{
    return (MemTxAttrs) { .requester_id = pci_requester_id(r->dev) };
}

/* May this function send this request at all? */
static bool may_send(PCIeRequester *r, const PCIeRequest *req)
{
    PCIDevice *d = r->dev;

    if (!d->is_master || pcie_requester_in_d3(r)) {
        return false;
    }
    if (!req->pasid_valid) {
        return true;
    }
    if (!pcie_pasid_enabled(d)) {
        return false;
    }
    return req->pasid < (1u << extract32(
        pci_get_word(d->config + d->exp.pasid_cap + PCI_PASID_CAP),
        PCI_PASID_CAP_WIDTH_SHIFT, 5));
}

bool pcie_requester_in_d3(PCIeRequester *r)
{
    PCIDevice *d = r->dev;

    return d->pm_cap &&
           (pci_get_word(d->config + d->pm_cap + PCI_PM_CTRL) &
            PCI_PM_CTRL_STATE_MASK) != 0;
}

PCIeRequesterResult pcie_requester_hold(PCIeRequester *r, PCIeRequest *req,
                                        uint64_t addr, uint64_t len,
                                        bool is_write,
                                        RecoverableDMAHold *hold)
{
    IOMMUAccessFlags access = is_write ? IOMMU_WO : IOMMU_RO;
    RecoverableDMAReq *dma = &req->dma;
    AddressSpace *as = pci_get_address_space(r->dev);
    IOMMUMemoryRegion *mr = r->mr;
    bool cached = false;
    PCIeAtcEntry e;

    hold->host = NULL;
    assert(req->state == REQUEST_IDLE);
    if (!len || !may_send(r, req)) {
        return PCIE_REQUESTER_FAULT;
    }
    req->r = r;
    req->pri_failed = false;
    dma->translated = req->translated;

    if (!req->no_atc && !req->translated && pcie_ats_enabled(r->dev)) {
        IOMMUAccessFlags want = access;

        if (req->exec && !is_write) {
            want |= IOMMU_EXEC;
        }
        switch (pcie_atc_translate(r, req, addr, want, &e)) {
        case ATC_OK:
            req->tries = 0;
            len = MIN(len - 1, e.left - (addr - e.page)) + 1;
            addr = e.out + (addr - e.page);
            as = e.as;
            dma->translated = true;
            cached = true;
            if (!pcie_atc_needs_check(r, &e)) {
                mr = NULL;
            }
            break;
        case ATC_NO_ACCESS:
            if (!req->no_stall && !req->no_pri && req->tries < PRI_TRIES &&
                pcie_pri_ask(r, req, addr, access)) {
                req->tries++;
                return PCIE_REQUESTER_PENDING;
            }
            if (req->pri_failed) {
                req->tries = 0;
                return PCIE_REQUESTER_FAULT;
            }
            break;
        case ATC_REFUSED:
            break;
        case ATC_ERROR:
            req->tries = 0;
            return PCIE_REQUESTER_FAULT;
        }
    }

    dma->iova = addr;
    dma->access = access | (req->exec ? IOMMU_EXEC : 0) |
                  (req->priv ? IOMMU_PRIV : 0);
    dma->pasid = req->pasid;
    dma->pasid_valid = req->pasid_valid;
    dma->no_stall = req->no_stall;
    dma->resume = dma_resume;
    dma->opaque = req;

    if (!r->mr && req->pasid_valid && !dma->translated) {
        /* this IOMMU takes PASIDs in translation requests only */
        req->tries = 0;
        return PCIE_REQUESTER_FAULT;
    }
    switch (recoverable_dma_hold(mr, as, dma, len, hold)) {
    case RECOVERABLE_DMA_OK:
        req->tries = 0;
        if (cached) {
            if (mr) {
                pcie_atc_checked(r, &e);
            }
            hold->page = e.mask + 1;
        }
        if (hold->bounce) {
            hold->attrs = attrs_of(r);
        }
        return PCIE_REQUESTER_OK;
    case RECOVERABLE_DMA_STALLED:
        r->n_stall++;
        req->state = REQUEST_STALLED;
        QTAILQ_INSERT_TAIL(&r->pending, req, link);
        trace_pcie_requester_stall(r->dev->name, pcie_request_pasid(req), addr);
        return PCIE_REQUESTER_PENDING;
    default:
        req->tries = 0;
        return PCIE_REQUESTER_FAULT;
    }
}

PCIeRequesterResult pcie_requester_rw(PCIeRequester *r, PCIeRequest *req,
                                      uint64_t addr, void *buf, uint64_t len,
                                      bool is_write, uint64_t *done)
{
    RecoverableDMAHold hold;
    PCIeRequesterResult result;

    if (!r->mr && !req->pasid_valid && !pcie_ats_enabled(r->dev) && !*done) {
        /* plain DMA, as pci_dma_rw() does it */
        if (!len || !may_send(r, req) ||
            address_space_rw(pci_get_address_space(r->dev), addr,
                             attrs_of(r), buf, len, is_write)) {
            return len ? PCIE_REQUESTER_FAULT : PCIE_REQUESTER_OK;
        }
        *done = len;
        return PCIE_REQUESTER_OK;
    }
    while (*done < len) {
        uint8_t *p = (uint8_t *)buf + *done;

        result = pcie_requester_hold(r, req, addr + *done, len - *done,
                                     is_write, &hold);
        if (result != PCIE_REQUESTER_OK) {
            return result;
        }
        /* the guest may point a device at its own memory BAR */
        if (is_write) {
            memmove(hold.host, p, hold.len);
        } else {
            memmove(p, hold.host, hold.len);
        }
        *done += hold.len;
        pcie_requester_release(&hold, hold.len);
    }
    return PCIE_REQUESTER_OK;
}

/* Ends every wait with ready(false). */
static void fail_all(PCIeRequester *r)
{
    PCIeRequest *req;

    while ((req = QTAILQ_FIRST(&r->pri_queue)) ||
           (req = QTAILQ_FIRST(&r->pending))) {
        pcie_request_detach(r, req);
        req->ready(req, false);
    }
}

void pcie_requester_config_write(PCIeRequester *r, uint32_t addr, int len)
{
    bool ats = pcie_ats_enabled(r->dev), pri = pcie_pri_enabled(r->dev);

    if (ats != r->was_ats) {
        r->was_ats = ats;
        pcie_atc_flush(r);
    }
    if (pri != r->was_pri) {
        r->was_pri = pri;
        pcie_pri_enable_changed(r);
    }
    if (!r->dev->is_master || pcie_requester_in_d3(r)) {
        fail_all(r);
    }
}

/* QEMU's PCI core leaves the extended capabilities' controls alone. */
static void clear_enables(PCIDevice *d)
{
    PCIExpressDevice *exp = &d->exp;

    if (exp->ats_cap) {
        pci_set_word(d->config + exp->ats_cap + PCI_ATS_CTRL, 0);
    }
    if (exp->pasid_cap) {
        pci_set_word(d->config + exp->pasid_cap + PCI_PASID_CTRL, 0);
    }
    if (exp->pri_cap) {
        uint8_t *pri = d->config + exp->pri_cap;

        pci_set_word(pri + PCI_PRI_CTRL, 0);
        pci_set_long(pri + PCI_PRI_ALLOC_REQ, 0);
        pci_set_word(pri + PCI_PRI_STATUS,
                     (pci_get_word(pri + PCI_PRI_STATUS) &
                      PCI_PRI_STATUS_PASID) | PCI_PRI_STATUS_STOPPED);
    }
}

void pcie_requester_reset(PCIeRequester *r)
{
    PCIeRequest *req;

    while ((req = QTAILQ_FIRST(&r->pri_queue)) ||
           (req = QTAILQ_FIRST(&r->pending))) {
        pcie_request_detach(r, req);
    }
    pcie_atc_flush(r);
    clear_enables(r->dev);
    r->was_ats = false;
    if (r->was_pri) {
        r->was_pri = false;
        pcie_pri_requester_exit(r);
        pcie_pri_requester_init(r);
    }
}

void pcie_requester_init_caps(PCIDevice *dev, const PCIeRequesterCaps *c)
{
    if (c->pasid) {
        pcie_pasid_init(dev, c->pasid, c->pasid_bits, c->exec, c->priv);
    }
    if (c->ats) {
        pcie_ats_init(dev, c->ats, true);
    }
    if (c->pri) {
        pcie_pri_init(dev, c->pri, c->page_requests, c->prg_response_pasid);
    }
    if (c->acs) {
        pcie_acs_init(dev, c->acs);
    }
}

void pcie_requester_init(PCIeRequester *r, PCIDevice *dev)
{
    r->dev = dev;
    r->mr = recoverable_dma_from_as(pci_device_iommu_address_space(dev));
    QTAILQ_INIT(&r->pending);
    QTAILQ_INIT(&r->pri_queue);
    r->pasids = g_hash_table_new_full(NULL, NULL, NULL, pasid_free);
    if (dev->exp.pri_cap) {
        /* changes at run time: no reason to refuse a migration */
        pci_word_test_and_clear_mask(dev->cmask + dev->exp.pri_cap +
                                     PCI_PRI_STATUS, PCI_PRI_STATUS_STOPPED);
    }
    pcie_atc_init(r);
    pcie_pri_requester_init(r);
}

void pcie_requester_exit(PCIeRequester *r)
{
    if (!r->dev) {
        return;
    }
    pcie_requester_reset(r);
    pcie_pri_requester_exit(r);
    pcie_atc_exit(r);
    g_hash_table_destroy(r->pasids);
    r->dev = NULL;
}
