/*
 * MMU-500: interfaces between the model's files
 *
 * A transaction goes stream (which bank) -> translate (the bank's state) ->
 * tlb -> walk; a fault comes back to fault (syndrome) and stall (queue).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_ARM_MMU500_INTERNAL_H
#define HW_ARM_MMU500_INTERNAL_H

#include "hw/arm/mmu500.h"
#include "mmu500-regs.h"

/* A function or platform master, with the memory region its DMA enters. */
struct MMU500Master {
    IOMMUMemoryRegion iommu;
    AddressSpace as;            /* PCI functions */
    MMU500State *smmu;
    PCIBus *bus;                /* NULL: platform master */
    int devfn;
    uint32_t sid;               /* platform masters; for PCI: sid at use */
    uint32_t tbu;
    bool has_notifier;
    /* last stream match, valid while gen equals the device's stream_gen */
    uint32_t gen;
    uint32_t gen_sid;
    int match;
    QLIST_ENTRY(MMU500Master) next;
};

/* One access, as it arrives at a TBU. */
typedef struct MMU500Txn {
    MMU500Master *master;
    uint64_t va;
    uint32_t sid;
    uint32_t tbu;
    int cb;                     /* once it is known, else -1 */
    bool write;
    bool priv;
    bool insn;
    bool probe;                 /* asks only: records nothing */
    bool ato;                   /* address translation operation */
    bool can_stall;
    bool paid;                  /* took its time: counted before */
    struct MMU500Cost *cost;    /* not NULL: on arrival, with timing=on */
} MMU500Txn;

/*
 * What a transaction costs in virtual time. The lookup on its arrival goes
 * through all caches and counts, but records no fault: if it is refused, it
 * will be again when it has taken its time.
 */
typedef struct MMU500Cost {
    int64_t now;
    int64_t done;
    int64_t *walk;              /* when the slot of its walk is free */
} MMU500Cost;

/* Access rights that a translation grants. */
enum {
    PROT_UR = 1 << 0, PROT_UW = 1 << 1, PROT_UX = 1 << 2,
    PROT_PR = 1 << 3, PROT_PW = 1 << 4, PROT_PX = 1 << 5,
    PROT_ALL = 0x3f,
};

/* Kinds of context fault; the values are FSR bits. */
typedef enum MMU500FaultType {
    FAULT_NONE = 0,
    FAULT_TRANSLATION = R_FSR_TF_MASK,
    FAULT_ACCESS = R_FSR_AFF_MASK,
    FAULT_PERMISSION = R_FSR_PF_MASK,
    FAULT_EXTERNAL = R_FSR_EF_MASK,
    FAULT_ADDR_SIZE = R_FSR_ASF_MASK,
    FAULT_UUT = R_FSR_UUT_MASK,
} MMU500FaultType;

typedef struct MMU500Fault {
    MMU500FaultType type;
    int cb;                     /* the bank that records it */
    int s1cb;                   /* nested: the stage 1 bank, else -1 */
    uint8_t level;
    bool stage2;
    bool s1ptw;                 /* stage 2 fault of a stage 1 table access */
    bool ptwf;                  /* on a table access of this stage */
    uint64_t ipa;               /* stage 2 */
} MMU500Fault;

/* A translation: what the TLBs hold and what a walk yields. */
typedef struct MMU500Trans {
    uint64_t va;                /* aligned to mask + 1 */
    uint64_t mask;
    uint64_t pa;
    uint16_t vmid;
    uint16_t asid;
    uint8_t prot;               /* PROT_*, both stages combined */
    uint8_t level;              /* of the leaf descriptor, for syndromes */
    bool valid;
    bool stage1;                /* tagged with an ASID unless global */
    bool global;
    bool prefetched;            /* not used yet */
    int64_t ready;              /* timing=on: when its walk is done */
} MMU500Trans;

/* Which translation regime a bank stands for. */
typedef struct MMU500Regime {
    int cb;
    int s2cb;                   /* nested: the stage 2 bank, else -1 */
    bool stage1;
    uint16_t vmid;
    uint16_t asid;
} MMU500Regime;

typedef enum MMU500Outcome {
    OUTCOME_OK,
    OUTCOME_ABORT,
    OUTCOME_RAZWI,
    OUTCOME_STALL,
} MMU500Outcome;

typedef struct MMU500Result {
    uint64_t pa;
    uint64_t mask;
    uint8_t prot;
    int stall_cb;               /* OUTCOME_STALL: the bank that holds it */
    bool recorded;              /* OUTCOME_STALL: FSR.SS is about it */
} MMU500Result;

static inline bool mmu500_cb_is_s2(const MMU500State *s, int cb)
{
    return FIELD_EX32(s->cb[cb].cbar, CBAR0, TYPE) == CBAR_TYPE_S2;
}

static inline bool mmu500_cb_va64(const MMU500State *s, int cb)
{
    return FIELD_EX32(s->cb[cb].cba2r, CBA2R0, VA64) || !s->aarch32;
}

static inline uint16_t mmu500_cb_vmid(const MMU500State *s, int cb)
{
    if (FIELD_EX32(s->cr0, CR0, VMID16EN)) {
        return FIELD_EX32(s->cb[cb].cba2r, CBA2R0, VMID16);
    }
    return FIELD_EX32(s->cb[cb].cbar, CBAR0, VMID);
}

/* mmu500-regs.c: the register space; under the BQL */
extern const MemoryRegionOps mmu500_mmio_ops;
uint32_t mmu500_idr(const MMU500State *s, int n);
void mmu500_regs_reset(MMU500State *s);

/*
 * A register as data. @ofs is the field in the struct that the page's
 * registers lie in; bits outside @wmask read as they are and ignore writes.
 * Registers with neither field nor handler are RAZ/WI. Handlers are called
 * with the whole value, under the lock; @idx is the array index.
 */
typedef struct MMU500Reg {
    const char *name;
    uint16_t addr;
    uint16_t count;             /* 0 stands for 1 */
    uint8_t size;               /* 4 or 8 */
    bool half;                  /* 8: the lower half alone is a command */
    bool stored;
    uint32_t ofs;
    uint64_t wmask;
    uint64_t (*read)(MMU500State *s, int page, int idx);
    void (*write)(MMU500State *s, int page, int idx, uint64_t val);
} MMU500Reg;

typedef struct MMU500RegPage {
    const MMU500Reg *regs;
    size_t num;
    /* index into regs + 1 for each word of the page; 0: no register */
    uint8_t map[0x1000 / 4];
} MMU500RegPage;

void mmu500_regpage_init(MMU500RegPage *page);

extern MMU500RegPage mmu500_gr0, mmu500_gr1, mmu500_cbregs, mmu500_pmregs;

/* mmu500-cb.c: context bank registers */
bool mmu500_regime(const MMU500State *s, int cb, MMU500Regime *r);

/* mmu500-stream.c */
enum { STREAM_NONE = -1, STREAM_CONFLICT = -2 };
int mmu500_stream_match(MMU500State *s, uint32_t sid);
int mmu500_stream_lookup(MMU500State *s, MMU500Txn *txn);

/*
 * mmu500-translate.c: under the lock. On OUTCOME_STALL the caller queues its
 * request in bank res->stall_cb before it drops the lock.
 */
MMU500Outcome mmu500_translate(MMU500State *s, MMU500Txn *txn,
                               MMU500Result *res);
/*
 * One bank's translation, without stream matching; false: @f is filled.
 * @s1_only: leave stage 2 out (address translation operations).
 */
bool mmu500_translate_cb(MMU500State *s, int cb, const MMU500Txn *txn,
                         MMU500Trans *t, MMU500Fault *f, bool s1_only);
/* An IPA through a stage 2 bank, by way of the IPA cache. */
bool mmu500_translate_ipa(MMU500State *s, int s2cb, uint64_t ipa,
                          MMU500Trans *t, MMU500Fault *f);
bool mmu500_prot_allows(uint8_t prot, const MMU500Txn *txn);

/*
 * mmu500-walk.c: table walks, no TLB; under the lock. walk_s1 yields the
 * output of stage 1 alone; its table accesses go through stage 2 when nested.
 * @f->cb and what follows is filled on failure.
 */
bool mmu500_walk_s1(MMU500State *s, const MMU500Regime *r, uint64_t va,
                    MMU500Trans *t, MMU500Fault *f);
bool mmu500_walk_s2(MMU500State *s, int cb, uint64_t ipa,
                    MMU500Trans *t, MMU500Fault *f);
bool mmu500_walk_short(MMU500State *s, const MMU500Regime *r, uint32_t va,
                       MMU500Trans *t, MMU500Fault *f);
/*
 * Reads one descriptor of a stage 1 (by IPA when nested) or stage 2 table.
 * False: @f is filled, but for its level.
 */
bool mmu500_read_desc(MMU500State *s, int cb, int s2cb, uint64_t addr,
                      int size, uint64_t *desc, MMU500Fault *f);
/* IDR2 and TCR address size codes */
unsigned mmu500_size_to_bits(unsigned code);
unsigned mmu500_bits_to_size(unsigned bits);

/* mmu500-tlb.c: under the lock */
typedef struct MMU500Inv {
    bool match_vmid, match_asid, match_va;
    bool stage1_only, stage2_only, leaf_only;
    uint16_t vmid;
    uint16_t asid;
    uint64_t va;
} MMU500Inv;

/* A table pointer that the walk cache holds. */
typedef struct MMU500WalkEntry {
    uint64_t va;                /* aligned to mask + 1 */
    uint64_t mask;
    uint64_t table;
    uint16_t vmid;
    uint16_t asid;
    uint8_t level;              /* of the table that is pointed to */
    uint8_t attrs;              /* accumulated APTable, XNTable, PXNTable */
    bool valid;
    bool stage1;
} MMU500WalkEntry;

void mmu500_tlb_init(MMU500State *s);
void mmu500_tlb_free(MMU500State *s);
void mmu500_tlb_flush(MMU500State *s);
MMU500Trans *mmu500_utlb_lookup(MMU500State *s, uint32_t tbu,
                                const MMU500Regime *r, uint64_t va);
MMU500Trans *mmu500_mtlb_lookup(MMU500State *s, const MMU500Regime *r,
                                uint64_t va);
void mmu500_utlb_insert(MMU500State *s, uint32_t tbu, const MMU500Trans *t);
void mmu500_mtlb_insert(MMU500State *s, const MMU500Trans *t);
MMU500Trans *mmu500_ipa_lookup(MMU500State *s, uint16_t vmid, uint64_t ipa);
void mmu500_ipa_insert(MMU500State *s, const MMU500Trans *t);
MMU500WalkEntry *mmu500_wc_lookup(MMU500State *s, const MMU500Regime *r,
                                  bool stage1, uint64_t va);
void mmu500_wc_insert(MMU500State *s, const MMU500WalkEntry *e);
void mmu500_tlb_inv(MMU500State *s, const MMU500Inv *inv);

/* mmu500-fault.c */
MMU500Outcome mmu500_context_fault(MMU500State *s, const MMU500Txn *txn,
                                   const MMU500Fault *f, MMU500Result *res);
/* A bank with an outstanding fault: what becomes of another transaction. */
MMU500Outcome mmu500_previous_fault(MMU500State *s, const MMU500Txn *txn,
                                    int cb, MMU500Result *res);
MMU500Outcome mmu500_global_fault(MMU500State *s, const MMU500Txn *txn,
                                  uint32_t gfsr_bit, bool nested);
/* Drives the interrupt lines from the registers; never under the lock. */
void mmu500_update_irqs(MMU500State *s);

/* mmu500-tbu.c: transactions that wait in a TBU; under the lock */

/* RecoverableDMAReq.tag: where it is, or what becomes of it */
enum {
    TAG_INPUT,                  /* in its TBU's input */
    TAG_TIMED,                  /* in the list of what takes its time */
    TAG_STALLED,                /* in its bank's list */
    TAG_RETRY,                  /* these are in the resume queue */
    TAG_ABORT,
    TAG_RAZWI,
};

/* RecoverableDMAReq.stream */
#define REQ_STREAM(tbu, cb) ((tbu) << 16 | (cb))
#define REQ_TBU(req)        ((req)->stream >> 16)
#define REQ_CB(req)         ((req)->stream & 0xffff)

void mmu500_tbu_init(MMU500State *s);
void mmu500_tbu_free(MMU500State *s);
void mmu500_tbu_reset(MMU500State *s);
/* On arrival. True: the transaction waits, and @req is queued. */
bool mmu500_tbu_arrive(MMU500State *s, RecoverableDMAReq *req,
                       MMU500Txn *txn);
void mmu500_tbu_enter(MMU500State *s, uint32_t tbu);
void mmu500_tbu_leave(MMU500State *s, uint32_t tbu);
/* Takes a transaction that can enter now off its TBU's input, or NULL. */
RecoverableDMAReq *mmu500_tbu_next(MMU500State *s);
/* @req, which is TAG_INPUT or TAG_TIMED, goes. */
void mmu500_tbu_remove(MMU500State *s, RecoverableDMAReq *req);
void mmu500_tbu_abort_all(MMU500State *s);

/* mmu500-timing.c: the cost of each step; nothing where txn->cost is NULL */
void mmu500_time_utlb_hit(MMU500State *s, const MMU500Txn *txn,
                          const MMU500Trans *hit);
void mmu500_time_mtlb_hit(MMU500State *s, const MMU500Txn *txn,
                          MMU500Trans *t);
/* @descriptors: how many were read; @t: made ready when they are, or NULL */
void mmu500_time_walk(MMU500State *s, const MMU500Txn *txn,
                      uint64_t descriptors, MMU500Trans *t);
void mmu500_time_prefetch(MMU500State *s, const MMU500Txn *txn,
                          uint64_t descriptors, MMU500Trans *t);

/* mmu500-stall.c */
void mmu500_stall_enqueue(MMU500State *s, RecoverableDMAReq *req,
                          const MMU500Txn *txn, const MMU500Result *res);
void mmu500_stall_resume(MMU500State *s, int cb, bool terminate);
void mmu500_stall_cancel(MMU500State *s, RecoverableDMAReq *req);
void mmu500_stall_abort_all(MMU500State *s);
/* Calls the devices whose requests were resumed; never under the lock. */
void mmu500_stall_run(MMU500State *s);

/* mmu500-pmu.c */
void mmu500_pmu_event(MMU500State *s, const MMU500Txn *txn, unsigned event);
void mmu500_pmu_reset(MMU500State *s);
bool mmu500_pmu_irq(const MMU500State *s);

/* mmu500.c: tells devices that cache translations; never under the lock */
void mmu500_notify_unmap(MMU500State *s);

/* mmu500-info.c */
void mmu500_info_class_init(ObjectClass *klass);

extern const VMStateDescription vmstate_mmu500;

#endif
