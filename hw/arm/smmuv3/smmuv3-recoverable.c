/*
 * Arm SMMUv3: the recoverable DMA interface of its memory regions
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/arm/smmuv3.h"
#include "smmuv3-ext.h"

static RecoverableDMAResult smmuv3_recov_translate(IOMMUMemoryRegion *mr,
                                                  RecoverableDMAReq *req,
                                                  IOMMUTLBEntry *entry)
{
    SMMUDevice *sdev = container_of(mr, SMMUDevice, iommu);
    SMMUv3State *s = sdev->smmu;
    RecoverableDMAResult result = RECOVERABLE_DMA_ABORT;
    SMMUv3Access a = {
        .sdev = sdev,
        .sid = smmu_get_sid(sdev),
        .addr = req->iova,
        .flag = req->access,
        .type = req->translated ? SMMUV3_TRANSLATED : SMMUV3_UNTRANSLATED,
        .ssid = req->pasid_valid ? req->pasid : 0,
        .ssv = req->pasid_valid,
    };
    SMMUv3Answer ans;

    qemu_mutex_lock(&s->mutex);
    smmuv3_access(s, &a, &ans);
    smmuv3_trace_answer(&a, &ans);
    switch (ans.status) {
    case SMMU_TRANS_SUCCESS:
    case SMMU_TRANS_DISABLE:
    case SMMU_TRANS_BYPASS:
        *entry = ans.entry;
        /* a fetch from what is executable and not readable is a read here */
        entry->perm |= req->access & IOMMU_RW;
        result = RECOVERABLE_DMA_OK;
        break;
    case SMMU_TRANS_ABORT:
        break;
    case SMMU_TRANS_ERROR:
        if (ans.event.can_stall && !req->no_stall) {
            smmuv3_stall_submit(s, &a, &ans, req);
            result = RECOVERABLE_DMA_STALLED;
        } else {
            smmuv3_record_answer(s, &a, &ans);
        }
        break;
    }
    qemu_mutex_unlock(&s->mutex);
    return result;
}

static void smmuv3_recov_cancel(IOMMUMemoryRegion *mr, RecoverableDMAReq *req)
{
    SMMUDevice *sdev = container_of(mr, SMMUDevice, iommu);
    SMMUv3State *s = sdev->smmu;

    qemu_mutex_lock(&s->mutex);
    smmuv3_stall_cancel(s, req);
    qemu_mutex_unlock(&s->mutex);
}

static void smmuv3_recov_set_atc(IOMMUMemoryRegion *mr, RecoverableDMAAtc *atc)
{
    SMMUDevice *sdev = container_of(mr, SMMUDevice, iommu);
    SMMUv3State *s = sdev->smmu;

    qemu_mutex_lock(&s->mutex);
    smmuv3_ats_set_atc(s, sdev, atc);
    qemu_mutex_unlock(&s->mutex);
}

void smmuv3_recoverable_class_init(RecoverableDMAClass *rc)
{
    rc->translate = smmuv3_recov_translate;
    rc->cancel = smmuv3_recov_cancel;
    rc->set_atc = smmuv3_recov_set_atc;
}
