/*
 * Arm SMMUv3: PCIe Page Request Interface
 *
 * The PRI queue, CMD_PRI_RESP and the answers that the SMMU gives itself
 * where a request cannot be queued. IHI 0070, 3.9.1.4, 4.6, 8 and 13.7.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "hw/arm/smmuv3.h"
#include "hw/pci/pci_bus.h"
#include "../smmu-internal.h"
#include "smmuv3-ext.h"
#include "trace.h"

/* CMD_PRI_RESP.Resp */
enum {
    RESP_FAILURE = 0,
    RESP_INVALID = 1,
    RESP_SUCCESS = 2,
};

/* Who hears a function's responses for one PASID, or for none */
struct SMMUv3PRINotifier {
    SMMUDevice *sdev;
    uint32_t pasid;       /* PCI_NO_PASID: responses without PASID */
    IOMMUPRINotifier *n;
    QLIST_ENTRY(SMMUv3PRINotifier) next;
};

/* A response on its way to a function */
struct SMMUv3PRIAnswer {
    SMMUDevice *sdev;
    uint32_t pasid;
    IOMMUPRIResponse resp;
    QTAILQ_ENTRY(SMMUv3PRIAnswer) next;
};

static void answer(SMMUv3State *s, SMMUDevice *sdev, uint32_t pasid,
                   uint16_t prgi, IOMMUPRIResponseCode code)
{
    SMMUv3PRIAnswer *an = g_new0(SMMUv3PRIAnswer, 1);

    an->sdev = sdev;
    an->pasid = pasid;
    an->resp.prgi = prgi;
    an->resp.response_code = code;
    QTAILQ_INSERT_TAIL(&s->feat.pri_answers, an, next);
}

SMMUCmdError smmuv3_pri_resp(SMMUv3State *s, Cmd *cmd)
{
    static const IOMMUPRIResponseCode code[] = {
        [RESP_FAILURE] = IOMMU_PRI_RESP_FAILURE,
        [RESP_INVALID] = IOMMU_PRI_RESP_INVALID_REQUEST,
        [RESP_SUCCESS] = IOMMU_PRI_RESP_SUCCESS,
    };
    SMMUDevice *sdev;

    if (!s->feat.pri || CMD_SSEC(cmd) || CMD_RESP(cmd) > RESP_SUCCESS) {
        return SMMU_CERROR_ILL;
    }
    trace_smmuv3_pri_resp(CMD_SID(cmd), CMD_SSV(cmd), CMD_SSID(cmd),
                          CMD_PRGI(cmd), CMD_RESP(cmd));
    if (!smmu_enabled(s)) {
        return SMMU_CERROR_NONE;
    }
    sdev = smmu_find_sdev(ARM_SMMU(s), CMD_SID(cmd));
    if (sdev) {
        answer(s, sdev, CMD_SSV(cmd) ? CMD_SSID(cmd) : PCI_NO_PASID,
               CMD_PRGI(cmd), code[CMD_RESP(cmd)]);
    }
    return SMMU_CERROR_NONE;
}

/* Delivers the oldest response. Locked; drops the lock to do so. */
bool smmuv3_pri_deliver(SMMUv3State *s)
{
    SMMUv3PRIAnswer *an = QTAILQ_FIRST(&s->feat.pri_answers);
    SMMUv3PRINotifier *pn;

    if (!an) {
        return false;
    }
    QTAILQ_REMOVE(&s->feat.pri_answers, an, next);
    QLIST_FOREACH(pn, &s->feat.pri_notifiers, next) {
        if (pn->sdev == an->sdev && pn->pasid == an->pasid) {
            IOMMUPRINotifier *n = pn->n;

            qemu_mutex_unlock(&s->mutex);
            n->notify(n, &an->resp);
            qemu_mutex_lock(&s->mutex);
            break;
        }
    }
    g_free(an);
    return true;
}

/*
 * With what PASID the SMMU answers itself: IDR3.PPS is 0, so STE.PPAR says
 * whether the response carries the request's. False: the STE is unreadable
 * and the answer is a failure without PASID.
 */
static bool auto_pasid(SMMUv3State *s, uint32_t sid, uint32_t *pasid)
{
    SMMUEventInfo event = { .inval_ste_allowed = true };
    STE ste;

    if (*pasid == PCI_NO_PASID) {
        return true;
    }
    if (smmu_find_ste(s, sid, &ste, &event) || !STE_VALID(&ste)) {
        *pasid = PCI_NO_PASID;
        return false;
    }
    if (!STE_PPAR(&ste)) {
        *pasid = PCI_NO_PASID;
    }
    return true;
}

/*
 * PRIQ_IRQ_CFG2.LO: only the last request of a group interrupts, also one that
 * an overflow discards. Else each entry does, and the overflow once.
 */
static void interrupt(SMMUv3State *s, bool lpig, bool told)
{
    bool last_only = extract32(s->feat.priq_irq_cfg2, 31, 1);

    if (last_only ? lpig : told) {
        smmuv3_trigger_irq(s, SMMU_IRQ_PRIQ, 0);
    }
}

int smmuv3_pri_request(PCIBus *bus, void *opaque, int devfn, uint32_t pasid,
                       bool priv_req, bool exec_req, hwaddr addr, bool lpig,
                       uint16_t prgi, bool is_read, bool is_write)
{
    AddressSpace *as = smmu_find_add_as(bus, opaque, devfn);
    SMMUDevice *sdev = container_of(as, SMMUDevice, as);
    SMMUv3State *s = sdev->smmu;
    SMMUQueue *q = &s->priq;
    uint32_t sid = smmu_get_sid(sdev);
    bool ssv = pasid != PCI_NO_PASID;
    bool stop_marker = ssv && lpig && !is_read && !is_write;
    IOMMUPRIResponseCode code;
    uint64_t ent[2];

    qemu_mutex_lock(&s->mutex);
    s->feat.n_page_req++;
    trace_smmuv3_pri_request(sid, pasid, addr, prgi, lpig);

    if (!smmu_enabled(s) || !FIELD_EX32(s->cr[0], CR0, PRIQEN) ||
        FIELD_EX32(s->gerror ^ s->gerrorn, GERROR, PRIQ_ABT_ERR)) {
        /* PRI is off: each request is refused, Last or not, without PASID */
        goto refuse;
    }

    if (smmuv3_q_full(q) || smmuv3_q_overflown(q)) {
        bool first = !smmuv3_q_overflown(q);

        if (first) {
            q->prod ^= Q_OVERFLOW;
            trace_smmuv3_pri_overflow(q->prod, q->cons);
        }
        interrupt(s, lpig, first);
        if (!lpig) {
            goto out; /* dropped: the last of the group is answered */
        }
        if (stop_marker) {
            goto out;
        }
        code = auto_pasid(s, sid, &pasid) ? IOMMU_PRI_RESP_SUCCESS
                                          : IOMMU_PRI_RESP_FAILURE;
        goto auto_answer;
    }

    ent[0] = cpu_to_le64(sid | (uint64_t)(ssv ? pasid : 0) << 32 |
                         (uint64_t)(ssv && priv_req) << 58 |
                         (uint64_t)(ssv && exec_req) << 59 |
                         (uint64_t)is_read << 60 | (uint64_t)is_write << 61 |
                         (uint64_t)lpig << 62 | (uint64_t)ssv << 63);
    ent[1] = cpu_to_le64((addr & ~(hwaddr)0xfff) |
                         (prgi & PCI_PRI_PRGI_MASK));
    if (dma_memory_write(&address_space_memory, Q_PROD_ENTRY(q), ent,
                         sizeof(ent), SMMU_STRUCT_ATTRS)) {
        smmuv3_trigger_irq(s, SMMU_IRQ_GERROR, R_GERROR_PRIQ_ABT_ERR_MASK);
        goto refuse;
    }
    queue_prod_incr(q);
    interrupt(s, lpig, true);
    goto out;

refuse:
    if (stop_marker) {
        goto out;
    }
    pasid = PCI_NO_PASID;
    code = IOMMU_PRI_RESP_FAILURE;
auto_answer:
    s->feat.n_page_auto++;
    trace_smmuv3_pri_auto(sid, prgi, code);
    answer(s, sdev, pasid, prgi & PCI_PRI_PRGI_MASK, code);
    /* not from within the device's request */
    qemu_bh_schedule(s->feat.bh);
out:
    qemu_mutex_unlock(&s->mutex);
    return 0;
}

void smmuv3_pri_register(PCIBus *bus, void *opaque, int devfn, uint32_t pasid,
                         IOMMUPRINotifier *notifier)
{
    AddressSpace *as = smmu_find_add_as(bus, opaque, devfn);
    SMMUDevice *sdev = container_of(as, SMMUDevice, as);
    SMMUv3State *s = sdev->smmu;
    SMMUv3PRINotifier *pn;

    smmuv3_pri_unregister(bus, opaque, devfn, pasid);
    pn = g_new0(SMMUv3PRINotifier, 1);
    pn->sdev = sdev;
    pn->pasid = pasid;
    pn->n = notifier;
    qemu_mutex_lock(&s->mutex);
    QLIST_INSERT_HEAD(&s->feat.pri_notifiers, pn, next);
    qemu_mutex_unlock(&s->mutex);
}

void smmuv3_pri_unregister(PCIBus *bus, void *opaque, int devfn,
                           uint32_t pasid)
{
    AddressSpace *as = smmu_find_add_as(bus, opaque, devfn);
    SMMUDevice *sdev = container_of(as, SMMUDevice, as);
    SMMUv3State *s = sdev->smmu;
    SMMUv3PRINotifier *pn, *next;

    qemu_mutex_lock(&s->mutex);
    QLIST_FOREACH_SAFE(pn, &s->feat.pri_notifiers, next, next) {
        if (pn->sdev == sdev && pn->pasid == pasid) {
            QLIST_REMOVE(pn, next);
            g_free(pn);
        }
    }
    qemu_mutex_unlock(&s->mutex);
}

void smmuv3_pri_reset(SMMUv3State *s)
{
    SMMUv3PRIAnswer *an;

    while ((an = QTAILQ_FIRST(&s->feat.pri_answers))) {
        QTAILQ_REMOVE(&s->feat.pri_answers, an, next);
        g_free(an);
    }
    s->feat.priq_irq_cfg0 = 0;
    s->feat.priq_irq_cfg1 = 0;
    s->feat.priq_irq_cfg2 = 0;
}
