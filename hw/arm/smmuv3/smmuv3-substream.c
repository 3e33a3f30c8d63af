/*
 * Arm SMMUv3: SubstreamIDs
 *
 * Which context descriptor a transaction uses: linear and two-level tables,
 * STE.S1DSS, and the legality of the STE fields that say so. IHI 0070, 3.3.2,
 * 5.2 and 5.3.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "hw/arm/smmuv3.h"
#include "../smmu-internal.h"
#include "smmuv3-ext.h"

enum {
    S1DSS_TERMINATE = 0,
    S1DSS_BYPASS = 1,
    S1DSS_SSID0 = 2,
};

enum {
    S1FMT_LINEAR = 0,
    S1FMT_4K_L2 = 1,
    S1FMT_64K_L2 = 2,
};

#define L1CD_VALID(desc)  ((desc) & 1)
#define L1CD_L2PTR(desc)  ((desc) & MAKE_64BIT_MASK(12, 40))

bool smmuv3_ste_s1_legal(SMMUv3State *s, STE *ste)
{
    if (STE_S1STALLD(ste) && s->feat.stall_model != SMMUV3_STALL_OPTIONAL) {
        qemu_log_mask(LOG_GUEST_ERROR, "SMMUv3 S1STALLD is for a stall model "
                      "that CD.S can choose\n");
        return false;
    }
    if (STE_S1CDMAX(ste) == 0) {
        return true;
    }
    if (STE_S1CDMAX(ste) > s->feat.ssidsize) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "SMMUv3 S1CDMAX=%d is more than SSIDSIZE=%d\n",
                      STE_S1CDMAX(ste), s->feat.ssidsize);
        return false;
    }
    if (STE_S1FMT(ste) > (FIELD_EX32(s->idr[0], IDR0, CD2L) ? S1FMT_64K_L2
                                                           : S1FMT_LINEAR)) {
        qemu_log_mask(LOG_GUEST_ERROR, "SMMUv3 S1FMT=%d is not supported\n",
                      STE_S1FMT(ste));
        return false;
    }
    return true;
}

/* The CD of @ssid in a two-level table; fills @event on an error. */
static SMMUv3CDChoice find_cd_2lvl(SMMUv3State *s, STE *ste,
                                   SMMUTransCfg *cfg, uint32_t ssid,
                                   dma_addr_t *addr, SMMUEventInfo *event)
{
    int split = STE_S1FMT(ste) == S1FMT_4K_L2 ? 6 : 10;
    dma_addr_t l1 = STE_CTXPTR(ste) + (ssid >> split) * sizeof(uint64_t);
    uint64_t desc;

    if (smmuv3_cd_ipa_to_pa(s, cfg, &l1, event)) {
        return SMMUV3_CD_ERROR;
    }
    smmu_count(&s->smmu_state, SMMU_EVENT_CONFIG_ACCESS);
    if (ldq_le_dma(&address_space_memory, l1, &desc, SMMU_STRUCT_ATTRS)) {
        event->type = SMMU_EVT_F_CD_FETCH;
        event->u.f_cd_fetch.addr = l1;
        return SMMUV3_CD_ERROR;
    }
    if (!L1CD_VALID(desc)) {
        event->type = SMMU_EVT_C_BAD_SUBSTREAMID;
        return SMMUV3_CD_ERROR;
    }
    *addr = L1CD_L2PTR(desc);
    if (split == 10) {
        *addr &= ~MAKE_64BIT_MASK(0, 16);
    }
    *addr += (ssid & MAKE_64BIT_MASK(0, split)) * sizeof(CD);
    return SMMUV3_CD_FETCH;
}

SMMUv3CDChoice smmuv3_find_cd(SMMUv3State *s, STE *ste, SMMUTransCfg *cfg,
                              uint32_t ssid, bool ssv, dma_addr_t *addr,
                              SMMUEventInfo *event)
{
    int cdmax = STE_S1CDMAX(ste);

    if (cdmax == 0) {
        if (ssv) {
            goto bad_substreamid;
        }
        *addr = STE_CTXPTR(ste);
        return SMMUV3_CD_FETCH;
    }

    if (!ssv) {
        switch (STE_S1DSS(ste)) {
        case S1DSS_BYPASS:
            return SMMUV3_CD_BYPASS_S1;
        case S1DSS_SSID0:
            ssid = 0;
            break;
        case S1DSS_TERMINATE:
        default: /* reserved, behaves as 0b00 */
            event->type = SMMU_EVT_F_STREAM_DISABLED;
            return SMMUV3_CD_ERROR;
        }
    } else if (ssid >= (1u << cdmax)) {
        goto bad_substreamid;
    } else if (ssid == 0 && STE_S1DSS(ste) == S1DSS_SSID0) {
        /* CD 0 is for transactions without SubstreamID */
        event->type = SMMU_EVT_F_STREAM_DISABLED;
        return SMMUV3_CD_ERROR;
    }

    if (STE_S1FMT(ste) == S1FMT_LINEAR) {
        *addr = STE_CTXPTR(ste) + (dma_addr_t)ssid * sizeof(CD);
        return SMMUV3_CD_FETCH;
    }
    return find_cd_2lvl(s, ste, cfg, ssid, addr, event);

bad_substreamid:
    event->type = SMMU_EVT_C_BAD_SUBSTREAMID;
    return SMMUV3_CD_ERROR;
}
