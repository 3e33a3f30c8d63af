/*
 * Arm SMMUv3: between the model's core (../smmuv3.c) and the optional
 * features in this directory
 *
 * "Locked" means that SMMUv3State.mutex is held. Section numbers are those
 * of Arm IHI 0070 (SMMUv3).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_ARM_SMMUV3_EXT_H
#define HW_ARM_SMMUV3_EXT_H

#include "hw/arm/smmuv3.h"
#include "../smmuv3-internal.h"

/* How a transaction reaches the SMMU */
typedef enum SMMUv3AccessType {
    SMMUV3_UNTRANSLATED,
    SMMUV3_TRANSLATED,     /* address came from ATS */
    SMMUV3_ATS_REQUEST,    /* ATS translation request */
} SMMUv3AccessType;

/* One transaction */
typedef struct SMMUv3Access {
    SMMUDevice *sdev;
    uint32_t sid;
    hwaddr addr;
    IOMMUAccessFlags flag; /* RO, WO, EXEC, PRIV */
    SMMUv3AccessType type;
    uint32_t ssid;
    bool ssv;
    bool may_write;        /* translation request: not NW */
} SMMUv3Access;

/*
 * What became of it. entry is a copy. event.type is SMMU_EVT_NONE where
 * nothing is to be recorded; event.can_stall says that the transaction may
 * be suspended instead of terminated.
 */
typedef struct SMMUv3Answer {
    SMMUTranslationStatus status;
    IOMMUTLBEntry entry;
    SMMUStage stage;
    IOMMUAccessFlags perm; /* all that is granted to the access's privilege */
    SMMUEventInfo event;
    bool ats_ur;           /* translation request: UR, else CA on an error */
} SMMUv3Answer;

/* Core: offered by ../smmuv3.c. All locked. */
void smmuv3_access(SMMUv3State *s, const SMMUv3Access *a, SMMUv3Answer *ans);
/* Records ans->event; false where no record was written. */
bool smmuv3_record_answer(SMMUv3State *s, const SMMUv3Access *a,
                          SMMUv3Answer *ans);
void smmuv3_trace_answer(const SMMUv3Access *a, const SMMUv3Answer *ans);
void smmuv3_cmdq_kick(SMMUv3State *s);
SMMUTranslationStatus smmuv3_do_translate(SMMUv3State *s, hwaddr addr,
                                          SMMUTransCfg *cfg,
                                          SMMUEventInfo *event,
                                          IOMMUAccessFlags flag,
                                          SMMUTLBEntry **out_entry,
                                          SMMUTranslationClass class);
void smmuv3_trigger_irq(SMMUv3State *s, SMMUIrq irq, uint32_t gerror_mask);
int smmu_find_ste(SMMUv3State *s, uint32_t sid, STE *ste, SMMUEventInfo *event);
SMMUTransCfg *smmuv3_get_config(SMMUv3State *s, const SMMUv3Access *a,
                                SMMUEventInfo *event);
/* Translates an IPA of a CD or an L1CD; fills event. */
int smmuv3_cd_ipa_to_pa(SMMUv3State *s, SMMUTransCfg *cfg, dma_addr_t *addr,
                        SMMUEventInfo *event);

/* Features: id registers, properties, life cycle */
bool smmuv3_features_check(SMMUv3State *s, Error **errp);
void smmuv3_features_realize(SMMUv3State *s);
/* QOM properties that show streams and stalls */
void smmuv3_info_realize(SMMUv3State *s);
void smmuv3_features_init_idregs(SMMUv3State *s);
void smmuv3_features_reset(SMMUv3State *s);
bool smmuv3_features_on(SMMUv3State *s);
extern const VMStateDescription vmstate_smmuv3_pri;
extern const VMStateDescription vmstate_smmuv3_stall;
extern const VMStateDescription vmstate_smmuv3_ats;
extern const VMStateDescription vmstate_smmuv3_pmcg;
extern const VMStateDescription vmstate_smmuv3_msi;

/*
 * Registers: true where the feature owns the offset. CR0: what a change of
 * enables does to transactions and requests under way. Locked.
 */
bool smmuv3_features_read(SMMUv3State *s, hwaddr offset, unsigned size,
                          uint64_t *data);
bool smmuv3_features_write(SMMUv3State *s, hwaddr offset, unsigned size,
                           uint64_t data);
void smmuv3_features_cr0(SMMUv3State *s, uint32_t old);

/*
 * Commands ATC_INV, PRI_RESP, RESUME, STALL_TERM. Locked. What they cause in
 * devices happens in smmuv3_run_deferred().
 */
SMMUCmdError smmuv3_features_cmd(SMMUv3State *s, Cmd *cmd);
/* CMD_SYNC: true where the queue has to wait for invalidations. Locked. */
bool smmuv3_ats_sync(SMMUv3State *s, SMMUCmdError *error);

/*
 * Delivers what is due to devices: invalidations, page responses, ends of
 * stalls, and goes on with a parked command queue. Not locked, under the
 * BQL. A call from within is a no-op: the outer one goes on.
 */
void smmuv3_run_deferred(SMMUv3State *s);

/* Substreams: legality of stage 1 fields of @ste, then which CD to use. */
bool smmuv3_ste_s1_legal(SMMUv3State *s, STE *ste);
bool smmuv3_ste_ats_legal(SMMUv3State *s, STE *ste);

/* HTTU: may an STE or a CD ask for these updates? */
bool smmuv3_httu_legal(SMMUv3State *s, bool ha, bool hd);

typedef enum SMMUv3CDChoice {
    SMMUV3_CD_FETCH,       /* fetch the CD at *addr */
    SMMUV3_CD_BYPASS_S1,   /* S1DSS: no stage 1 for this transaction */
    SMMUV3_CD_ERROR,       /* event is filled */
} SMMUv3CDChoice;
SMMUv3CDChoice smmuv3_find_cd(SMMUv3State *s, STE *ste, SMMUTransCfg *cfg,
                              uint32_t ssid, bool ssv, dma_addr_t *addr,
                              SMMUEventInfo *event);

/* Stalls */
void smmuv3_stall_submit(SMMUv3State *s, const SMMUv3Access *a,
                         SMMUv3Answer *ans, RecoverableDMAReq *req);
/* Records waiting stalls as far as the queue takes them. Locked. */
void smmuv3_stall_pump(SMMUv3State *s);
void smmuv3_stall_terminate_all(SMMUv3State *s);
SMMUCmdError smmuv3_stall_resume(SMMUv3State *s, Cmd *cmd);
SMMUCmdError smmuv3_stall_term(SMMUv3State *s, Cmd *cmd);
void smmuv3_stall_cancel(SMMUv3State *s, RecoverableDMAReq *req);
/* For migration */
typedef struct SMMUv3Stall SMMUv3Stall;
uint32_t smmuv3_stall_sid(const SMMUv3Stall *stall);
void smmuv3_stall_insert(SMMUv3State *s, uint16_t stag, uint32_t sid);

/* ATS */
/* smmuv3_access() for translation requests and translated transactions */
void smmuv3_ats_access(SMMUv3State *s, const SMMUv3Access *a,
                       SMMUv3Answer *ans);
SMMUCmdError smmuv3_atc_inv(SMMUv3State *s, Cmd *cmd);
void smmuv3_ats_set_atc(SMMUv3State *s, SMMUDevice *sdev,
                        RecoverableDMAAtc *atc);
ssize_t smmuv3_ats_request(PCIBus *bus, void *opaque, int devfn,
                           uint32_t pasid, bool priv_req, bool exec_req,
                           hwaddr addr, size_t length, bool no_write,
                           IOMMUTLBEntry *result, size_t result_length,
                           uint32_t *err_count);

/* Delivers the oldest new invalidation, unlocked for that; false: none. */
bool smmuv3_ats_deliver(SMMUv3State *s);
/* From here on translated accesses are checked again. Locked. */
void smmuv3_ats_check_again(SMMUv3State *s);
/* Timer callback: invalidations that a device does not complete. */
void smmuv3_ats_timeout(void *opaque);
void smmuv3_ats_reset(SMMUv3State *s);

/* PRI */
/* Delivers the oldest response; false: none. Locked, unlocks to do so. */
bool smmuv3_pri_deliver(SMMUv3State *s);
SMMUCmdError smmuv3_pri_resp(SMMUv3State *s, Cmd *cmd);
int smmuv3_pri_request(PCIBus *bus, void *opaque, int devfn, uint32_t pasid,
                       bool priv_req, bool exec_req, hwaddr addr, bool lpig,
                       uint16_t prgi, bool is_read, bool is_write);
void smmuv3_pri_register(PCIBus *bus, void *opaque, int devfn, uint32_t pasid,
                         IOMMUPRINotifier *notifier);
void smmuv3_pri_unregister(PCIBus *bus, void *opaque, int devfn,
                           uint32_t pasid);
void smmuv3_pri_reset(SMMUv3State *s);

/* Performance monitor: nothing where the property is off */
void smmuv3_pmcg_realize(SMMUv3State *s);
void smmuv3_pmcg_reset(SMMUv3State *s);

/*
 * MSIs. raise() and sync(): the interrupt goes as an MSI, and will be sent;
 * false: it is for the wire. deliver() sends what is due; false: nothing.
 * Locked; deliver() unlocks to send.
 */
bool smmuv3_msi_realize(SMMUv3State *s, Error **errp);
bool smmuv3_msi_raise(SMMUv3State *s, SMMUIrq irq);
bool smmuv3_msi_sync(SMMUv3State *s, Cmd *cmd);
bool smmuv3_msi_deliver(SMMUv3State *s);
void smmuv3_msi_reset(SMMUv3State *s);

/* The recoverable-dma interface of the SMMU's memory regions */
void smmuv3_recoverable_class_init(RecoverableDMAClass *rc);

#endif
