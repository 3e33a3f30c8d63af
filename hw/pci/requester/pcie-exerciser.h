/*
 * PCIe exerciser: registers and state
 *
 * Registers up to 0x48 follow the description that Arm publishes for its
 * System Architecture Compliance Suite (docs/pcie/Exerciser.md there); from
 * 0x80 on they are this project's, see docs/specs/pcie-exerciser.md.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_PCI_PCIE_EXERCISER_H
#define HW_PCI_PCIE_EXERCISER_H

#include "hw/pci/pcie_requester.h"
#include "hw/registerfields.h"

#define TYPE_PCIE_EXERCISER "pcie-exerciser"
OBJECT_DECLARE_SIMPLE_TYPE(PCIeExerciser, PCIE_EXERCISER)

#define REG_BAR_SIZE  0x10000
#define MEM_BAR_SIZE  0x100000
#define NUM_VECTORS   16
#define NUM_CHANNELS  256
#define TRACE_ENTRIES 32
#define TRACE_WORDS   5

REG32(MSI_CTL, 0x0)
    FIELD(MSI_CTL, ID, 0, 11)
    FIELD(MSI_CTL, TRIG, 31, 1)
REG32(INTX_CTL, 0x4)
REG32(DMA_CTL, 0x8)
    FIELD(DMA_CTL, TRIG, 0, 4)
    FIELD(DMA_CTL, WRITE, 4, 1)
    FIELD(DMA_CTL, NOSNOOP, 5, 1)
    FIELD(DMA_CTL, PASID, 6, 1)
    FIELD(DMA_CTL, PRIV, 7, 1)
    FIELD(DMA_CTL, INST, 8, 1)
    FIELD(DMA_CTL, USE_ATC, 9, 1)
    FIELD(DMA_CTL, AT, 10, 2)
REG32(DMA_OFFSET, 0xc)
REG32(BUS_ADDR_LO, 0x10)
REG32(BUS_ADDR_HI, 0x14)
REG32(DMA_LEN, 0x18)
REG32(DMA_STATUS, 0x1c)
    FIELD(DMA_STATUS, CODE, 0, 2)
    FIELD(DMA_STATUS, CLEAR, 2, 1)
REG32(PASID_VAL, 0x20)
REG32(ATS_CTL, 0x24)
    FIELD(ATS_CTL, TRIG, 0, 1)
    FIELD(ATS_CTL, PRIV, 1, 1)
    FIELD(ATS_CTL, NW, 2, 1)
    FIELD(ATS_CTL, PASID, 3, 1)
    FIELD(ATS_CTL, EXEC, 4, 1)
    FIELD(ATS_CTL, CLEAR, 5, 1)
    FIELD(ATS_CTL, INFLIGHT, 6, 1)
    FIELD(ATS_CTL, OK, 7, 1)
    FIELD(ATS_CTL, CACHEABLE, 8, 1)
    FIELD(ATS_CTL, INVALIDATED, 9, 1)
REG32(ATS_ADDR_LO, 0x28)
REG32(ATS_ADDR_HI, 0x2c)
REG32(ATS_SIZE_LO, 0x30)
REG32(ATS_SIZE_HI, 0x34)
REG32(ATS_PERM, 0x38)
    FIELD(ATS_PERM, X, 0, 1)
    FIELD(ATS_PERM, W, 1, 1)
    FIELD(ATS_PERM, R, 2, 1)
    FIELD(ATS_PERM, XPRIV, 3, 1)
    FIELD(ATS_PERM, WPRIV, 4, 1)
    FIELD(ATS_PERM, RPRIV, 6, 1)
REG32(RID_CTL, 0x3c)
    FIELD(RID_CTL, VALID, 31, 1)
REG32(TRACE_DATA, 0x40)
REG32(TRACE_CTL, 0x44)
REG32(VDM_CTL, 0x48)
    FIELD(VDM_CTL, TYPE, 0, 4)
    FIELD(VDM_CTL, RESPONSE, 16, 3)
    FIELD(VDM_CTL, TRIG, 31, 1)

/* Ours */
REG32(X_ID, 0x80)
#define X_ID_VALUE 0x3150444f /* "ODP1" */
REG32(X_CTL, 0x84)
    FIELD(X_CTL, PRI, 0, 1)      /* DMA asks for pages */
    FIELD(X_CTL, NOSTALL, 1, 1)  /* DMA never waits */
    FIELD(X_CTL, ATC, 2, 1)      /* DMA goes through the requester's ATC */
    FIELD(X_CTL, INV_HOLD, 4, 1) /* invalidations wait until this is cleared */
    FIELD(X_CTL, INV_FAIL, 5, 1) /* invalidations time out */
    FIELD(X_CTL, NOTIFIER, 6, 1) /* hears what its IOMMU unmaps */
REG32(X_INV_COUNT, 0x88)
REG32(X_ATS_RESULT, 0x8c)        /* negative errno of the last ATS request */
REG32(X_PPR, 0x90)
    FIELD(X_PPR, PRGI, 0, 9)
    FIELD(X_PPR, R, 16, 1)
    FIELD(X_PPR, W, 17, 1)
    FIELD(X_PPR, LAST, 18, 1)
    FIELD(X_PPR, PASID, 19, 1)
    FIELD(X_PPR, PRIV, 20, 1)
    FIELD(X_PPR, EXEC, 21, 1)
REG32(X_PPR_RESULT, 0x94)
REG32(X_PRG_COUNT, 0x98)
REG32(X_PRG_LAST, 0x9c)
    FIELD(X_PRG_LAST, PRGI, 0, 9)
    FIELD(X_PRG_LAST, CODE, 12, 2)
    FIELD(X_PRG_LAST, PASID, 14, 1)
REG32(X_N_STALL, 0xa0)
REG32(X_N_PAGE_REQ, 0xa4)
REG32(X_N_ATC_HIT, 0xa8)
REG32(X_N_ATC_MISS, 0xac)

REG32(X_N_UNMAP, 0xb0)
REG32(X_UNMAP_LO, 0xb4)
REG32(X_UNMAP_HI, 0xb8)

/* Channels of the same DMA engine; channel 0 is the one above */
#define CHANNEL_BASE 0x1000
#define CHANNEL_SIZE 0x20
REG32(CH_CTL, 0x0)
    FIELD(CH_CTL, CANCEL, 31, 1)
REG32(CH_OFFSET, 0x4)
REG32(CH_ADDR_LO, 0x8)
REG32(CH_ADDR_HI, 0xc)
REG32(CH_LEN, 0x10)
REG32(CH_STATUS, 0x14)
REG32(CH_PASID, 0x18)
REG32(CH_WAITS, 0x1c)

/* How long each channel's last transfer took, in ns of the virtual clock */
#define TIME_BASE 0x3000

enum {
    DMA_OK = 0,
    DMA_RANGE = 1,
    DMA_ERROR = 2,
};

typedef struct ExChannel {
    PCIeExerciser *e;
    PCIeRequest req;
    uint64_t addr;
    uint32_t offset, len, ctl, status, pasid;
    uint32_t waits;      /* how often the transfer was suspended */
    uint64_t done;       /* bytes */
    int64_t started;     /* virtual clock */
    uint32_t took;       /* ns */
} ExChannel;

struct PCIeExerciser {
    PCIDevice parent_obj;

    MemoryRegion regs;
    MemoryRegion mem;
    uint8_t *buf;
    PCIeRequester r;
    ExChannel ch[NUM_CHANNELS];

    uint32_t msi_ctl, intx_ctl, ats_ctl, ats_perm, rid_ctl, vdm_ctl, x_ctl;
    uint64_t ats_addr, ats_size;
    /* the one result that ATS_CTL asked for */
    uint64_t atc_in;
    uint32_t atc_pasid;
    bool atc_pasid_valid;
    int32_t ats_result, ppr_result;
    uint32_t inv_count, prg_count, prg_last;
    bool inv_blocked;

    IOMMUNotifier unmap;
    bool unmap_registered;
    uint32_t unmap_count;
    uint64_t unmap_iova;

    uint32_t trace_ctl;
    uint32_t trace[TRACE_ENTRIES][TRACE_WORDS];
    uint32_t trace_n, trace_rd;

    IOMMUPRINotifier pri, pri_pasid;
    uint32_t pri_pasid_num;
    bool pri_registered, pri_pasid_registered;

    uint8_t pasid_bits;
    bool ats, pri_cap;

    VMChangeStateEntry *vm_state;
};

/* DMA channels: pcie-exerciser-dma.c */
void exerciser_channel_start(ExChannel *c);
uint32_t exerciser_channel_read(ExChannel *c, hwaddr reg);
void exerciser_channel_write(ExChannel *c, hwaddr reg, uint32_t val);

/* Translation and page requests by hand: pcie-exerciser-ats.c */
void exerciser_ats_clear(PCIeExerciser *e);
void exerciser_ats_request(PCIeExerciser *e);
void exerciser_page_request(PCIeExerciser *e, uint32_t val);
/* PCIeRequester.invalidated */
void exerciser_invalidated(PCIeRequester *r, bool pasid_valid, uint32_t pasid,
                           hwaddr first, hwaddr last);

#endif
