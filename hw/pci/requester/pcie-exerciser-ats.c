/*
 * PCIe exerciser: translation requests and page requests by hand
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_bus.h"
#include "pcie-exerciser.h"

void exerciser_ats_clear(PCIeExerciser *e)
{
    e->ats_addr = 0;
    e->ats_size = 0;
    e->ats_perm = 0;
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, OK, 0);
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, CACHEABLE, 0);
}

void exerciser_ats_request(PCIeExerciser *e)
{
    bool pasid_en = FIELD_EX32(e->ats_ctl, ATS_CTL, PASID);
    bool priv = FIELD_EX32(e->ats_ctl, ATS_CTL, PRIV);
    uint64_t page = e->ch[0].addr & ~0xfffull;
    IOMMUTLBEntry tlb = {};
    uint32_t errors;
    int n;

    exerciser_ats_clear(e);
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, INVALIDATED, 0);
    n = pci_ats_request_translation(&e->parent_obj,
                                    pasid_en ? e->ch[0].pasid : PCI_NO_PASID,
                                    priv,
                                    FIELD_EX32(e->ats_ctl, ATS_CTL, EXEC),
                                    page, 4096,
                                    FIELD_EX32(e->ats_ctl, ATS_CTL, NW),
                                    &tlb, 1, &errors);
    e->ats_result = n < 0 ? n : 0;
    if (n != 1) {
        return;
    }
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, OK, 1);
    e->ats_size = tlb.addr_mask + 1;
    e->ats_addr = tlb.translated_addr & ~tlb.addr_mask;
    e->atc_in = e->ch[0].addr & ~tlb.addr_mask;
    e->atc_pasid = e->ch[0].pasid;
    e->atc_pasid_valid = pasid_en;
    e->ats_perm = FIELD_DP32(0, ATS_PERM, X, !!(tlb.perm & IOMMU_EXEC));
    e->ats_perm = FIELD_DP32(e->ats_perm, ATS_PERM, W,
                             !!(tlb.perm & IOMMU_WO));
    e->ats_perm = FIELD_DP32(e->ats_perm, ATS_PERM, R,
                             !!(tlb.perm & IOMMU_RO));
    if (priv) {
        e->ats_perm = FIELD_DP32(e->ats_perm, ATS_PERM, XPRIV,
                                 !!(tlb.perm & IOMMU_EXEC));
        e->ats_perm = FIELD_DP32(e->ats_perm, ATS_PERM, WPRIV,
                                 !!(tlb.perm & IOMMU_WO));
        e->ats_perm = FIELD_DP32(e->ats_perm, ATS_PERM, RPRIV,
                                 !!(tlb.perm & IOMMU_RO));
    }
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, CACHEABLE,
                            !!(tlb.perm & IOMMU_RW));
}

void exerciser_invalidated(PCIeRequester *r, bool pasid_valid, uint32_t pasid,
                           hwaddr first, hwaddr last)
{
    PCIeExerciser *e = container_of(r, PCIeExerciser, r);

    e->inv_count++;
    if (FIELD_EX32(e->ats_ctl, ATS_CTL, CACHEABLE) &&
        first <= e->atc_in + (e->ats_size - 1) && last >= e->atc_in &&
        (!pasid_valid || (e->atc_pasid_valid && e->atc_pasid == pasid))) {
        exerciser_ats_clear(e);
        e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, INVALIDATED, 1);
    }
}

static void prg_response(PCIeExerciser *e, IOMMUPRIResponse *resp, bool pasid)
{
    e->prg_count++;
    e->prg_last = FIELD_DP32(0, X_PRG_LAST, PRGI, resp->prgi);
    e->prg_last = FIELD_DP32(e->prg_last, X_PRG_LAST, CODE,
                             resp->response_code);
    e->prg_last = FIELD_DP32(e->prg_last, X_PRG_LAST, PASID, pasid);
}

static void prg_notify(IOMMUPRINotifier *n, IOMMUPRIResponse *resp)
{
    prg_response(container_of(n, PCIeExerciser, pri), resp, false);
}

static void prg_notify_pasid(IOMMUPRINotifier *n, IOMMUPRIResponse *resp)
{
    prg_response(container_of(n, PCIeExerciser, pri_pasid), resp, true);
}

void exerciser_page_request(PCIeExerciser *e, uint32_t v)
{
    PCIDevice *d = &e->parent_obj;
    bool pasid_en = FIELD_EX32(v, X_PPR, PASID);
    uint32_t pasid = pasid_en ? e->ch[0].pasid : PCI_NO_PASID;

    /* by hand: answers come here, not to the requester */
    e->pri.notify = prg_notify;
    e->pri_registered |= !pci_pri_register_notifier(d, PCI_NO_PASID, &e->pri);
    if (pasid_en) {
        if (e->pri_pasid_registered && e->pri_pasid_num != pasid) {
            pci_pri_unregister_notifier(d, e->pri_pasid_num);
        }
        e->pri_pasid.notify = prg_notify_pasid;
        e->pri_pasid_registered = !pci_pri_register_notifier(d, pasid,
                                                             &e->pri_pasid);
        e->pri_pasid_num = pasid;
    }
    e->ppr_result = pci_pri_request_page(d, pasid, FIELD_EX32(v, X_PPR, PRIV),
                                         FIELD_EX32(v, X_PPR, EXEC),
                                         e->ch[0].addr,
                                         FIELD_EX32(v, X_PPR, LAST),
                                         FIELD_EX32(v, X_PPR, PRGI),
                                         FIELD_EX32(v, X_PPR, R),
                                         FIELD_EX32(v, X_PPR, W));
}
