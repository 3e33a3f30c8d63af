/*
 * Arm CoreLink MMU-500: an SMMUv2 (Arm IHI 0062) with TBUs and a TCU
 *
 * One device serves PCI functions (PCIIOMMUOps on a root bus, StreamID =
 * Requester ID) and platform masters (an IOMMU memory region for each
 * StreamID, mmu500_master_region()). Behaviour, limits and the table of
 * advertised ID bits: docs/specs/mmu500.md.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_ARM_MMU500_H
#define HW_ARM_MMU500_H

#include "hw/recoverable-dma.h"
#include "hw/sysbus.h"
#include "hw/pci/pci.h"
#include "qemu/queue.h"
#include "qemu/thread.h"
#include "qom/object.h"

#define TYPE_ARM_MMU500 "arm-mmu500"
OBJECT_DECLARE_SIMPLE_TYPE(MMU500State, ARM_MMU500)

#define TYPE_MMU500_MEMORY_REGION "arm-mmu500-iommu-memory-region"

#define MMU500_MAX_CB    128
#define MMU500_MAX_SMRG  128
#define MMU500_MAX_TBU   32
#define MMU500_PMU_COUNTERS 4   /* counters in each TBU's group */

/* Where a StreamID's fields lie for platform masters: TBU, master, AXI id. */
#define MMU500_STREAMID(tbu, master, id) \
    (((tbu) << 10) | ((master) << 6) | (id))
#define MMU500_STREAMID_TBU(sid) (((sid) >> 10) & 0x1f)

/* The registers of one translation context bank and its attributes. */
typedef struct MMU500ContextBank {
    /* global address space 1 */
    uint32_t cbar;
    uint32_t cba2r;
    uint32_t cbfrsynra;
    /* translation context address space */
    uint32_t sctlr;
    uint32_t actlr;
    uint32_t tcr2;
    uint32_t tcr;
    uint32_t contextidr;
    uint32_t mair[2];
    uint32_t fsr;
    uint32_t fsynr0;
    uint32_t fsynr1;
    uint64_t ttbr[2];
    uint64_t par;
    uint64_t far;
    uint64_t ipafar;
    /* upper word of a 64-bit command register that is written in halves */
    uint32_t cmd_hi;
    /*
     * FSR.SS is set, and the transaction that it is about is not in the
     * queue: it belongs to a device that re-issues it after migration. The
     * first transaction that matches the syndrome takes its place.
     */
    bool stall_orphan;
    /* suspended requests: the recorded one first, those held behind it */
    QTAILQ_HEAD(, RecoverableDMAReq) stalled;
    uint32_t num_stalled;
} MMU500ContextBank;

/* One TBU's performance counter group (IHI 0062 chapter 6). */
typedef struct MMU500PMUGroup {
    uint32_t counter[MMU500_PMU_COUNTERS];
    uint32_t evtyper[MMU500_PMU_COUNTERS];
    uint32_t cgcr;
    uint32_t cgsmr;
} MMU500PMUGroup;

/* Counts since reset, for the host (QOM property "stats"). */
typedef struct MMU500Stats {
    uint64_t transactions;
    uint64_t bypassed;
    uint64_t utlb_hits;
    uint64_t utlb_misses;
    uint64_t mtlb_hits;
    uint64_t mtlb_misses;
    uint64_t walks;
    uint64_t descriptors;       /* descriptor fetches of all walks */
    uint64_t walk_cache_hits;
    uint64_t ipa_cache_hits;
    uint64_t ipa_cache_misses;
    uint64_t prefetches;        /* translations loaded ahead */
    uint64_t prefetch_hits;     /* first use of a prefetched translation */
    uint64_t tlb_invalidations;
    uint64_t context_faults;
    uint64_t global_faults;
    uint64_t stalls;            /* transactions recorded with FSR.SS */
    uint64_t held;              /* held behind a recorded one */
    uint64_t retries;
    uint64_t terminations;
    uint64_t stalled_peak;      /* most suspended at one time */
    /* transactions that a TBU has accepted and that are not done */
    uint64_t outstanding_peak;  /* of one TBU */
    uint64_t outstanding_waits; /* transactions that a full TBU held off */
    /* with timing=on */
    uint64_t timed;             /* transactions that took their time */
    uint64_t latency_ns;        /* of all of them, waits included */
    uint64_t queue_peak;        /* misses of one TBU at one time */
    uint64_t queue_waits;       /* misses that found the queue full */
    uint64_t queue_wait_ns;
    uint64_t walks_peak;        /* walks for one TBU at one time */
    uint64_t walk_waits;        /* walks that had to wait for another's end */
    uint64_t walk_wait_ns;
} MMU500Stats;

#define MMU500_MAX_SLOTS 64

/* A TBU's transactions that wait. */
typedef struct MMU500TBU {
    uint32_t outstanding;       /* suspended: stalled, or taking their time */
    /* not accepted: as many are outstanding as there may be */
    QTAILQ_HEAD(, RecoverableDMAReq) input;
    /* timing=on: when each slot is free again (ns of the virtual clock) */
    int64_t queue_free[MMU500_MAX_SLOTS];
    int64_t walk_free[MMU500_MAX_SLOTS];
} MMU500TBU;

typedef struct MMU500TLB MMU500TLB;
typedef struct MMU500Master MMU500Master;

struct MMU500State {
    SysBusDevice parent_obj;

    MemoryRegion iomem;
    /* where a terminated transaction of a bank with SCTLR.CFRE = 0 goes */
    MemoryRegion razwi;
    AddressSpace razwi_as;
    qemu_irq irq_global;
    qemu_irq irq_pmu;
    qemu_irq irq_context[MMU500_MAX_CB];
    QEMUBH *irq_bh;             /* raises interrupts for other threads */

    /*
     * Guards everything below: translate() also runs in I/O threads. Never
     * held while an interrupt is raised or a device is called.
     */
    QemuMutex lock;

    /* global address space 0 */
    uint32_t cr0;
    uint32_t cr2;
    uint32_t acr;
    uint64_t gfar;
    uint32_t gfsr;
    uint32_t gfsynr0;
    uint32_t gfsynr1;
    uint32_t gfsynr2;
    uint64_t gpar;
    uint32_t smr[MMU500_MAX_SMRG];
    uint32_t s2cr[MMU500_MAX_SMRG];
    uint32_t gcmd_hi;           /* as MMU500ContextBank.cmd_hi */

    MMU500ContextBank cb[MMU500_MAX_CB];

    /* performance monitors */
    MMU500PMUGroup pmu[MMU500_MAX_TBU];
    uint32_t pmcr;
    uint32_t pmcnten[MMU500_MAX_TBU * MMU500_PMU_COUNTERS / 32];
    uint32_t pminten[MMU500_MAX_TBU * MMU500_PMU_COUNTERS / 32];
    uint32_t pmovs[MMU500_MAX_TBU * MMU500_PMU_COUNTERS / 32];

    /* Not guest visible; rebuilt after reset and migration. */
    uint32_t stream_gen;        /* advances when stream matching may change */
    bool unmap_pending;         /* IOMMU notifiers are to be told */
    MMU500TLB *tlb;
    MMU500Stats stats;
    uint32_t num_stalled;       /* over all banks */
    bool resuming;              /* resume callbacks run: do not nest */
    MMU500TBU tbu[MMU500_MAX_TBU];
    /* timing=on: what takes its time, the first to be done first */
    QTAILQ_HEAD(, RecoverableDMAReq) timed;
    QEMUTimer *timer;
    QEMUBH *run_bh;             /* looks after the TBUs' inputs */
    QTAILQ_HEAD(, RecoverableDMAReq) resume_queue;

    /* masters: PCI functions by bus and devfn, platform masters by name */
    GHashTable *pci_masters;
    QLIST_HEAD(, MMU500Master) masters;

    /* properties */
    PCIBus *pci_bus;            /* root bus to serve, or NULL */
    uint32_t num_cb;
    uint32_t num_s2cb;
    uint32_t num_smrg;
    uint32_t num_tbu;
    uint32_t num_context_irqs;  /* bank n drives line n % num_context_irqs */
    uint32_t page_size;         /* of the register pages: 4096 or 65536 */
    uint32_t ias;
    uint32_t oas;
    uint32_t pci_tbu;           /* the TBU that PCI functions are behind */
    bool stage1;
    bool stage2;
    bool nested;
    bool aarch32;
    bool granule_16k;
    bool exids;
    bool vmid16;
    bool atos;
    bool coherent_walk;
    uint32_t utlb_entries;
    uint32_t mtlb_entries;
    uint32_t wc_entries;
    uint32_t ipa_entries;
    uint64_t prefetch_size;
    uint32_t tbu_outstanding;
    uint32_t tbu_queue_depth;
    uint32_t ptw_parallelism;   /* for each TBU */
    bool timing;
};

/**
 * mmu500_master_region: the memory region that a platform master's DMA goes
 * through. Call after realize, once for each StreamID. @name is for
 * monitor output. The region translates to the system address space.
 */
MemoryRegion *mmu500_master_region(MMU500State *s, uint32_t sid,
                                   const char *name);

/* Size of the register space, in bytes, from the properties. */
uint64_t mmu500_mmio_size(MMU500State *s);

#endif
