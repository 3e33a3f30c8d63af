/*
 * PCIe requester: address translation cache
 *
 * Direct-mapped, one entry a 4KB page: a lookup is one comparison, an
 * invalidation of a few pages touches a few entries, and a guest cannot make
 * it grow. Entries come from ATS translation requests only.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "requester-internal.h"
#include "trace.h"

#define ATC_BITS 10
#define ATC_SIZE (1u << ATC_BITS)
#define ATC_PAGE 4096ull

struct PCIeAtc {
    PCIeRequester *r;
    RecoverableDMAAtc iface;
    PCIeAtcEntry entry[ATC_SIZE];
    hwaddr widest;           /* no entry's translation has a larger mask */
    unsigned blocked;
    QTAILQ_HEAD(, RecoverableDMAInv) waiting;  /* answered on unblock */
    uint64_t generation;     /* counts invalidations */
};

static PCIeAtcEntry *atc_slot(struct PCIeAtc *atc, hwaddr page, uint32_t pasid)
{
    uint64_t key = page / ATC_PAGE + pasid * 0x9e3779b97f4a7c15ull;

    return &atc->entry[(key * 0x9e3779b97f4a7c15ull) >> (64 - ATC_BITS)];
}

/*
 * An entry stands for all from its page to the end of the translation, so an
 * invalidation of any part of that ends it.
 */
static void atc_invalidate(PCIeRequester *r, bool pasid_valid, uint32_t pasid,
                           hwaddr first, hwaddr last)
{
    struct PCIeAtc *atc = r->atc;
    hwaddr from;

    r->n_atc_inv++;
    atc->generation++;
    trace_pcie_atc_inv(r->dev->name, pasid_valid, pasid, first, last);
    first &= ~(ATC_PAGE - 1);
    from = first & ~atc->widest;
    if (pasid_valid && last - from < ATC_SIZE / 2 * ATC_PAGE) {
        for (hwaddr page = from; ; page += ATC_PAGE) {
            PCIeAtcEntry *e = atc_slot(atc, page, pasid);

            if (e->page == page && e->pasid == pasid &&
                page + e->left >= first) {
                e->perm = 0;
            }
            if (last - page < ATC_PAGE) {
                break;
            }
        }
    } else {
        atc->widest = 0;
        for (unsigned i = 0; i < ATC_SIZE; i++) {
            PCIeAtcEntry *e = &atc->entry[i];

            if (e->page + e->left >= first && e->page <= last &&
                (!pasid_valid || e->pasid == pasid)) {
                e->perm = 0;
            } else if (e->perm) {
                atc->widest |= e->mask;
            }
        }
    }
    if (r->invalidated) {
        r->invalidated(r, pasid_valid, pasid, first, last);
    }
}

static void atc_iface_invalidate(RecoverableDMAAtc *iface,
                                 RecoverableDMAInv *inv)
{
    struct PCIeAtc *atc = container_of(iface, struct PCIeAtc, iface);

    atc_invalidate(atc->r, inv->pasid_valid && !inv->global, inv->pasid,
                   inv->iova, inv->last);
    if (atc->blocked) {
        QTAILQ_INSERT_TAIL(&atc->waiting, inv, device_link);
    } else {
        recoverable_dma_inv_done(inv, !atc->r->fail_inv);
    }
}

/* Invalidation by IOMMU notifier: the notifier belongs to one PASID. */
static void atc_notify(IOMMUNotifier *n, IOMMUTLBEntry *entry)
{
    PCIePasid *p = container_of(n, PCIePasid, inv);

    if (entry->perm == IOMMU_NONE) {
        atc_invalidate(p->r, true, p->pasid, entry->iova,
                       entry->iova | entry->addr_mask);
    }
}

void pcie_requester_block_inv(PCIeRequester *r)
{
    r->atc->blocked++;
}

void pcie_requester_unblock_inv(PCIeRequester *r)
{
    struct PCIeAtc *atc = r->atc;
    RecoverableDMAInv *inv;

    assert(atc->blocked);
    if (--atc->blocked) {
        return;
    }
    while ((inv = QTAILQ_FIRST(&atc->waiting))) {
        QTAILQ_REMOVE(&atc->waiting, inv, device_link);
        recoverable_dma_inv_done(inv, !r->fail_inv);
    }
}

/*
 * Where invalidations come by notifier: before the first translation of
 * @pasid, so that none is missed.
 */
static bool atc_listen(PCIeRequester *r, uint32_t pasid)
{
    PCIePasid *p;

    if (r->mr) {
        return true;
    }
    p = pcie_requester_pasid(r, pasid);
    if (!p->inv_registered) {
        pci_iommu_init_iotlb_notifier(r->dev, &p->inv, atc_notify, p);
        p->inv_registered = !pci_iommu_register_iotlb_notifier(r->dev, pasid,
                                                               &p->inv);
    }
    return p->inv_registered;
}

/*
 * A translation request. A PASID that means nothing leaves nothing behind: a
 * guest can name a million of them.
 */
static ssize_t atc_ask(PCIeRequester *r, uint32_t pasid, bool priv, bool exec,
                       hwaddr page, bool no_write, IOMMUTLBEntry *tlb)
{
    bool known = r->mr || g_hash_table_contains(r->pasids,
                                                GUINT_TO_POINTER(pasid));
    uint32_t errors = 0;
    ssize_t n;

    if (!atc_listen(r, pasid)) {
        return -EPERM;
    }
    n = pci_ats_request_translation(r->dev, pasid, priv, exec, page, ATC_PAGE,
                                    no_write, tlb, 1, &errors);
    trace_pcie_atc_request(r->dev->name, pasid, page, n,
                           n == 1 ? tlb->perm : 0);
    if (n < 0 && !known) {
        g_hash_table_remove(r->pasids, GUINT_TO_POINTER(pasid));
    }
    return n;
}

PCIeAtcResult pcie_atc_translate(PCIeRequester *r, PCIeRequest *req,
                                 hwaddr addr, IOMMUAccessFlags access,
                                 PCIeAtcEntry *out)
{
    uint32_t pasid = pcie_request_pasid(req);
    hwaddr page = addr & ~(ATC_PAGE - 1);
    PCIeAtcEntry *e = atc_slot(r->atc, page, pasid);
    IOMMUTLBEntry tlb;
    ssize_t n;

    if (e->perm && e->page == page && e->pasid == pasid &&
        e->priv == req->priv && !(access & ~e->perm)) {
        r->n_atc_hit++;
        *out = *e;
        return ATC_OK;
    }
    r->n_atc_miss++;

    n = atc_ask(r, pasid, req->priv, req->exec, page, !(access & IOMMU_WO),
                &tlb);
    if (n == -EIO) {
        return ATC_ERROR;
    }
    if (n != 1) {
        return ATC_REFUSED;
    }
    if (!(tlb.perm & IOMMU_RW)) {
        return ATC_NO_ACCESS;
    }
    if (tlb.perm & IOMMU_UNTRANSLATED_ONLY) {
        return ATC_REFUSED;
    }
    e->page = page;
    e->pasid = pasid;
    e->priv = req->priv;
    e->perm = tlb.perm & (IOMMU_RW | IOMMU_EXEC);
    e->out = (tlb.translated_addr & ~tlb.addr_mask) | (page & tlb.addr_mask);
    e->left = tlb.addr_mask - (page & tlb.addr_mask);
    e->mask = tlb.addr_mask;
    r->atc->widest |= e->mask;
    e->as = tlb.target_as;
    e->passed = 0;
    if (access & ~e->perm) {
        return ATC_NO_ACCESS;
    }
    *out = *e;
    return ATC_OK;
}

bool pcie_requester_probe(PCIeRequester *r, uint32_t pasid)
{
    IOMMUTLBEntry tlb;

    return atc_ask(r, pasid, false, false, 0, true, &tlb) >= 0;
}

bool pcie_atc_needs_check(PCIeRequester *r, const PCIeAtcEntry *e)
{
    return !e->passed || e->passed != r->atc->iface.pass;
}

void pcie_atc_checked(PCIeRequester *r, const PCIeAtcEntry *e)
{
    PCIeAtcEntry *slot = atc_slot(r->atc, e->page, e->pasid);

    if (slot->perm && slot->page == e->page && slot->pasid == e->pasid &&
        slot->out == e->out) {
        slot->passed = r->atc->iface.pass;
    }
}

void pcie_atc_flush(PCIeRequester *r)
{
    for (unsigned i = 0; i < ATC_SIZE; i++) {
        r->atc->entry[i].perm = 0;
    }
}

void pcie_atc_init(PCIeRequester *r)
{
    r->atc = g_new0(struct PCIeAtc, 1);
    r->atc->r = r;
    r->atc->iface.invalidate = atc_iface_invalidate;
    QTAILQ_INIT(&r->atc->waiting);
    if (r->mr && RECOVERABLE_DMA_GET_CLASS(r->mr)->set_atc) {
        RECOVERABLE_DMA_GET_CLASS(r->mr)->set_atc(r->mr, &r->atc->iface);
    }
}

void pcie_atc_exit(PCIeRequester *r)
{
    if (r->mr && RECOVERABLE_DMA_GET_CLASS(r->mr)->set_atc) {
        RECOVERABLE_DMA_GET_CLASS(r->mr)->set_atc(r->mr, NULL);
    }
    g_free(r->atc);
    r->atc = NULL;
}
