/*
 * Arm SMMUv3: state of the optional features
 *
 * SubstreamIDs, stalling faults, ATS and PRI. Each is off by default; the
 * behaviour is in hw/arm/smmuv3/.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_ARM_SMMUV3_FEATURES_H
#define HW_ARM_SMMUV3_FEATURES_H

#include "hw/recoverable-dma.h"
#include "hw/pci/pci.h"

/* SMMU_IDR0.STALL_MODEL */
typedef enum SMMUv3StallModel {
    SMMUV3_STALL_OPTIONAL = 0,
    SMMUV3_STALL_NONE = 1,
    SMMUV3_STALL_FORCED = 2,
} SMMUv3StallModel;

/* SMMU_IDR0.HTTU */
typedef enum SMMUv3Httu {
    SMMUV3_HTTU_NONE,
    SMMUV3_HTTU_ACCESS,
    SMMUV3_HTTU_DIRTY,        /* and access flag */
} SMMUv3Httu;

typedef struct SMMUv3PRINotifier SMMUv3PRINotifier;
typedef struct SMMUv3PRIAnswer SMMUv3PRIAnswer;

typedef struct SMMUv3Features {
    /* properties */
    bool ats;
    bool pri;
    uint8_t ssidsize;         /* SubstreamID bits, 0 to 20 */
    char *stall_model_name;   /* none, stall, forced */
    uint32_t atc_inv_timeout; /* ms until an invalidation has failed */
    uint16_t stall_max;       /* IDR5.STALL_MAX: stalls with a STAG at once */

    bool pmcg;                /* a performance monitor */
    bool msi;                 /* interrupts by MSI */
    bool ril;                 /* range invalidation; on unless asked for */
    char *httu_name;          /* none, a, ad */

    uint8_t httu;             /* SMMUv3Httu, from httu_name */
    uint8_t stall_model;      /* SMMUv3StallModel, from stall_model_name */

    /*
     * Stalls. A transaction waits for its event record in @stall_waiting
     * (queue full or off, no STAG free), in order. Once recorded it is in
     * @stalls by its STAG, which stays allocated when the device gives the
     * transaction up. @done holds requests whose resume() is due.
     */
    QTAILQ_HEAD(, RecoverableDMAReq) stall_waiting;
    QTAILQ_HEAD(, RecoverableDMAReq) done;
    GHashTable *stalls;       /* STAG -> SMMUv3Stall */
    uint16_t next_stag;
    uint64_t *mig_stalls;     /* migration: SID << 32 | STAG */
    uint32_t mig_n;

    /*
     * ATS. Invalidations go to the device in order, outside the lock;
     * CMD_SYNC parks the command queue while any is not answered.
     */
    QTAILQ_HEAD(, RecoverableDMAInv) inv_new;    /* to be delivered */
    QTAILQ_HEAD(, RecoverableDMAInv) inv_sent;   /* delivered, not answered */
    QTAILQ_HEAD(, RecoverableDMAInv) inv_late;   /* timed out, not answered */
    GSList *atcs;             /* SMMUDevices with an ATC */
    uint64_t last_pass;       /* see RecoverableDMAAtc.pass */
    QEMUTimer *inv_timer;     /* while inv_sent is not empty */
    bool inv_failed;          /* CERROR_ATC_INV_SYNC at the next CMD_SYNC */
    bool sync_parked;

    /* PRI */
    uint64_t priq_irq_cfg0;
    uint32_t priq_irq_cfg1;
    uint32_t priq_irq_cfg2;
    QLIST_HEAD(, SMMUv3PRINotifier) pri_notifiers;
    QTAILQ_HEAD(, SMMUv3PRIAnswer) pri_answers;  /* to be delivered */

    /* MSIs that are to be sent: a bit for each SMMUIrq, and of CMD_SYNCs */
    uint8_t msi_pending;
    GArray *msi_syncs;
    uint16_t msi_device;      /* DeviceID of the SMMU itself */

    QEMUBH *bh;               /* runs smmuv3_run_deferred() */
    bool deferred_running;

    /* counters, read-only QOM properties */
    uint64_t n_stalled, n_resumed, n_ats_req, n_atc_inv, n_page_req;
    uint64_t n_page_auto, n_event_lost;
} SMMUv3Features;

/* The performance monitor's page, in the SMMU's, and its interrupt */
#define SMMUV3_PMCG_COUNTERS 8
#define SMMUV3_PMCG_OFFSET 0x2000
#define SMMUV3_PMCG_SIZE 0x1000
#define SMMUV3_PMCG_IRQ 4

/* Does an SMMU of this machine have ATS? */
bool smmuv3_any_ats(void);
/* SMMU_IDR0.HTTU of this machine's SMMU (the lowest, if there are more) */
SMMUv3Httu smmuv3_any_httu(void);
/* Has one a performance monitor? */
bool smmuv3_any_pmcg(void);
/*
 * Describes in the host bridge's @node what the SMMU of @bus can do with
 * PCI functions: "ats-supported", and nodes with "dma-can-stall".
 */
void smmuv3_fdt_pci_host(void *fdt, const char *node, PCIBus *bus);
/*
 * The same in the DSDT: "dma-can-stall" in a _DSD of each function. @scope is
 * the host bridge's, with all functions described before.
 */
struct Aml;
void smmuv3_dsdt_pci_host(struct Aml *scope, PCIBus *bus);
/*
 * Describes the performance monitor, if it has one, of the SMMU @obj at
 * @base; @spi is its overflow interrupt.
 */
void smmuv3_fdt_pmcg(void *fdt, Object *obj, hwaddr base, int spi);
/*
 * Gives the SMMU @obj at @base a doorbell for its MSIs, if it has any:
 * @phandle is the ITS (@its) or a GICv2m frame.
 */
void smmuv3_fdt_msi(void *fdt, Object *obj, hwaddr base, uint32_t phandle,
                    bool its);
/* The same as a node of IORT: @smmu is the offset of the SMMU's node. */
void smmuv3_iort_pmcg(GArray *table, uint32_t id, uint32_t smmu, hwaddr base,
                      uint32_t gsiv);

#endif
