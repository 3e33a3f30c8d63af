/*
 * PCIe exerciser endpoint
 *
 * Registers up to 0x48 follow the description that Arm publishes for its
 * System Architecture Compliance Suite (docs/pcie/Exerciser.md there); from
 * 0x80 on they are this project's, see docs/specs/pcie-exerciser.md.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie_requester.h"
#include "hw/qdev-properties.h"
#include "hw/registerfields.h"
#include "migration/vmstate.h"
#include "system/runstate.h"

#define TYPE_PCIE_EXERCISER "pcie-exerciser"
OBJECT_DECLARE_SIMPLE_TYPE(PCIeExerciser, PCIE_EXERCISER)

#define EXERCISER_VENDOR_ID 0x13b5
#define EXERCISER_DEVICE_ID 0xed01

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

static void channel_end(ExChannel *c, uint32_t code)
{
    c->status = FIELD_DP32(c->status, DMA_STATUS, CODE, code);
    c->ctl = FIELD_DP32(c->ctl, DMA_CTL, TRIG, 0);
    c->took = MIN(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) - c->started,
                  UINT32_MAX);
}

static void channel_run(ExChannel *c)
{
    PCIeExerciser *e = c->e;

    switch (pcie_requester_rw(&e->r, &c->req, c->addr, e->buf + c->offset,
                              c->len, FIELD_EX32(c->ctl, DMA_CTL, WRITE),
                              &c->done)) {
    case PCIE_REQUESTER_OK:
        channel_end(c, DMA_OK);
        break;
    case PCIE_REQUESTER_PENDING:
        c->waits++;
        break;
    case PCIE_REQUESTER_FAULT:
        channel_end(c, DMA_ERROR);
        break;
    }
}

static void channel_ready(PCIeRequest *req, bool ok)
{
    ExChannel *c = container_of(req, ExChannel, req);

    if (ok) {
        channel_run(c);
    } else {
        channel_end(c, DMA_ERROR);
    }
}

/* Replaces the address by what the last ATS request found; false: it can't. */
static bool channel_use_atc(ExChannel *c)
{
    PCIeExerciser *e = c->e;
    bool wr = FIELD_EX32(c->ctl, DMA_CTL, WRITE);

    if (!FIELD_EX32(e->ats_ctl, ATS_CTL, CACHEABLE) ||
        c->addr < e->atc_in || c->len > e->ats_size ||
        c->addr - e->atc_in > e->ats_size - c->len ||
        FIELD_EX32(c->ctl, DMA_CTL, PASID) != e->atc_pasid_valid ||
        (e->atc_pasid_valid && c->pasid != e->atc_pasid)) {
        return false;
    }
    if (wr ? !FIELD_EX32(e->ats_perm, ATS_PERM, W)
           : !FIELD_EX32(e->ats_perm, ATS_PERM, R)) {
        return false;
    }
    c->addr = e->ats_addr + (c->addr - e->atc_in);
    c->req.translated = true;
    return true;
}

static void channel_start(ExChannel *c)
{
    PCIeExerciser *e = c->e;
    uint32_t ctl = c->ctl;
    uint32_t at = FIELD_EX32(ctl, DMA_CTL, AT);

    c->done = 0;
    c->waits = 0;
    c->started = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    if (c->offset > MEM_BAR_SIZE || c->len > MEM_BAR_SIZE - c->offset) {
        channel_end(c, DMA_RANGE);
        return;
    }
    if (FIELD_EX32(e->rid_ctl, RID_CTL, VALID)) {
        qemu_log_mask(LOG_UNIMP, "%s: foreign requester IDs\n", __func__);
        channel_end(c, DMA_ERROR);
        return;
    }
    c->req.pasid = c->pasid;
    c->req.pasid_valid = FIELD_EX32(ctl, DMA_CTL, PASID);
    c->req.priv = FIELD_EX32(ctl, DMA_CTL, PRIV);
    c->req.exec = FIELD_EX32(ctl, DMA_CTL, INST);
    c->req.no_atc = !FIELD_EX32(e->x_ctl, X_CTL, ATC);
    c->req.no_pri = !FIELD_EX32(e->x_ctl, X_CTL, PRI);
    c->req.no_stall = FIELD_EX32(e->x_ctl, X_CTL, NOSTALL);
    c->req.translated = at == 2;
    c->req.ready = channel_ready;
    if (at == 3 || (at == 2 && FIELD_EX32(ctl, DMA_CTL, USE_ATC)) ||
        (!c->req.pasid_valid && (c->req.priv || c->req.exec)) ||
        (FIELD_EX32(ctl, DMA_CTL, USE_ATC) && !channel_use_atc(c))) {
        channel_end(c, DMA_ERROR);
        return;
    }
    channel_run(c);
}

static void channel_ctl_write(ExChannel *c, uint32_t val)
{
    if (FIELD_EX32(c->ctl, DMA_CTL, TRIG)) {
        if (FIELD_EX32(val, CH_CTL, CANCEL)) {
            pcie_requester_cancel(&c->e->r, &c->req);
            channel_end(c, DMA_ERROR);
        }
        return; /* busy */
    }
    c->ctl = val & 0xfff;
    if (FIELD_EX32(val, DMA_CTL, TRIG) == 1) {
        channel_start(c);
    }
}

static void ats_clear(PCIeExerciser *e)
{
    e->ats_addr = 0;
    e->ats_size = 0;
    e->ats_perm = 0;
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, OK, 0);
    e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, CACHEABLE, 0);
}

static void ats_request(PCIeExerciser *e)
{
    bool pasid_en = FIELD_EX32(e->ats_ctl, ATS_CTL, PASID);
    bool priv = FIELD_EX32(e->ats_ctl, ATS_CTL, PRIV);
    uint64_t page = e->ch[0].addr & ~0xfffull;
    IOMMUTLBEntry tlb = {};
    uint32_t errors;
    int n;

    ats_clear(e);
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

static void invalidated(PCIeRequester *r, bool pasid_valid, uint32_t pasid,
                        hwaddr first, hwaddr last)
{
    PCIeExerciser *e = container_of(r, PCIeExerciser, r);

    e->inv_count++;
    if (FIELD_EX32(e->ats_ctl, ATS_CTL, CACHEABLE) &&
        first <= e->atc_in + (e->ats_size - 1) && last >= e->atc_in &&
        (!pasid_valid || (e->atc_pasid_valid && e->atc_pasid == pasid))) {
        ats_clear(e);
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

static void page_request(PCIeExerciser *e, uint32_t v)
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

static void x_ctl_write(PCIeExerciser *e, uint32_t val)
{
    bool hold = FIELD_EX32(val, X_CTL, INV_HOLD);

    e->x_ctl = val & 0x37;
    e->r.fail_inv = FIELD_EX32(val, X_CTL, INV_FAIL);
    if (hold && !e->inv_blocked) {
        e->inv_blocked = true;
        pcie_requester_block_inv(&e->r);
    } else if (!hold && e->inv_blocked) {
        e->inv_blocked = false;
        pcie_requester_unblock_inv(&e->r);
    }
}

static void vdm_write(PCIeExerciser *e, uint32_t val)
{
    e->vdm_ctl = val & 0xf00;
    if (FIELD_EX32(val, VDM_CTL, TRIG)) {
        /* nobody processes vendor messages here: the NotProcessed codes */
        e->vdm_ctl = FIELD_DP32(e->vdm_ctl, VDM_CTL, RESPONSE,
                                FIELD_EX32(val, VDM_CTL, TYPE) == 2 ? 3 : 0);
    }
}

static void trace_add(PCIeExerciser *e, bool cfg, bool rd, uint64_t addr,
                      uint64_t data, unsigned size)
{
    uint32_t *t;

    if (!(e->trace_ctl & 1) || e->trace_n >= TRACE_ENTRIES) {
        return;
    }
    t = e->trace[e->trace_n++];
    t[0] = (1u << (16 + ctz32(size))) | (cfg ? 4 : 0) | (rd ? 2 : 0);
    t[1] = addr;
    t[2] = addr >> 32;
    t[3] = data;
    t[4] = data >> 32;
}

static uint32_t trace_read(PCIeExerciser *e)
{
    uint32_t i = e->trace_rd;

    if (i >= e->trace_n * TRACE_WORDS) {
        return UINT32_MAX;
    }
    e->trace_rd++;
    return e->trace[i / TRACE_WORDS][i % TRACE_WORDS];
}

static uint32_t channel_read(ExChannel *c, hwaddr reg)
{
    switch (reg) {
    case A_CH_CTL:
        return c->ctl;
    case A_CH_OFFSET:
        return c->offset;
    case A_CH_ADDR_LO:
        return c->addr;
    case A_CH_ADDR_HI:
        return c->addr >> 32;
    case A_CH_LEN:
        return c->len;
    case A_CH_STATUS:
        return c->status;
    case A_CH_PASID:
        return c->pasid;
    case A_CH_WAITS:
        return c->waits;
    default:
        return 0;
    }
}

static void channel_write(ExChannel *c, hwaddr reg, uint32_t val)
{
    if (reg != A_CH_CTL && reg != A_CH_STATUS &&
        FIELD_EX32(c->ctl, DMA_CTL, TRIG)) {
        return; /* a running transfer keeps its parameters */
    }
    switch (reg) {
    case A_CH_CTL:
        channel_ctl_write(c, val);
        break;
    case A_CH_OFFSET:
        c->offset = val;
        break;
    case A_CH_ADDR_LO:
        c->addr = deposit64(c->addr, 0, 32, val);
        break;
    case A_CH_ADDR_HI:
        c->addr = deposit64(c->addr, 32, 32, val);
        break;
    case A_CH_LEN:
        c->len = val;
        break;
    case A_CH_STATUS:
        if (FIELD_EX32(val, DMA_STATUS, CLEAR)) {
            c->status = 0;
        }
        break;
    case A_CH_PASID:
        c->pasid = val & 0xfffff;
        break;
    default:
        break;
    }
}

static uint64_t reg_get(PCIeExerciser *e, hwaddr addr)
{
    ExChannel *c = &e->ch[0];

    if (addr >= TIME_BASE) {
        addr -= TIME_BASE;
        return addr / 4 < NUM_CHANNELS ? e->ch[addr / 4].took : 0;
    }
    if (addr >= CHANNEL_BASE) {
        addr -= CHANNEL_BASE;
        return addr / CHANNEL_SIZE < NUM_CHANNELS ?
               channel_read(&e->ch[addr / CHANNEL_SIZE], addr % CHANNEL_SIZE)
               : 0;
    }
    switch (addr) {
    case A_MSI_CTL:
        return e->msi_ctl;
    case A_INTX_CTL:
        return e->intx_ctl;
    case A_DMA_CTL:
        return c->ctl;
    case A_DMA_OFFSET:
        return c->offset;
    case A_BUS_ADDR_LO:
        return c->addr;
    case A_BUS_ADDR_HI:
        return c->addr >> 32;
    case A_DMA_LEN:
        return c->len;
    case A_DMA_STATUS:
        return c->status;
    case A_PASID_VAL:
        return c->pasid;
    case A_ATS_CTL:
        return e->ats_ctl;
    case A_ATS_ADDR_LO:
        return e->ats_addr;
    case A_ATS_ADDR_HI:
        return e->ats_addr >> 32;
    case A_ATS_SIZE_LO:
        return e->ats_size;
    case A_ATS_SIZE_HI:
        return e->ats_size >> 32;
    case A_ATS_PERM:
        return e->ats_perm;
    case A_RID_CTL:
        return e->rid_ctl;
    case A_TRACE_DATA:
        return trace_read(e);
    case A_TRACE_CTL:
        return e->trace_ctl;
    case A_VDM_CTL:
        return e->vdm_ctl;
    case A_X_ID:
        return X_ID_VALUE;
    case A_X_CTL:
        return e->x_ctl;
    case A_X_INV_COUNT:
        return e->inv_count;
    case A_X_ATS_RESULT:
        return (uint32_t)e->ats_result;
    case A_X_PPR_RESULT:
        return (uint32_t)e->ppr_result;
    case A_X_PRG_COUNT:
        return e->prg_count;
    case A_X_PRG_LAST:
        return e->prg_last;
    case A_X_N_STALL:
        return (uint32_t)e->r.n_stall;
    case A_X_N_PAGE_REQ:
        return (uint32_t)e->r.n_page_req;
    case A_X_N_ATC_HIT:
        return (uint32_t)e->r.n_atc_hit;
    case A_X_N_ATC_MISS:
        return (uint32_t)e->r.n_atc_miss;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: no register at 0x%"HWADDR_PRIx"\n",
                      TYPE_PCIE_EXERCISER, addr);
        return 0;
    }
}

static void reg_set(PCIeExerciser *e, hwaddr addr, uint32_t val)
{
    static const struct {
        uint8_t from, to;
    } channel0[] = {
        { A_DMA_CTL, A_CH_CTL }, { A_DMA_OFFSET, A_CH_OFFSET },
        { A_BUS_ADDR_LO, A_CH_ADDR_LO }, { A_BUS_ADDR_HI, A_CH_ADDR_HI },
        { A_DMA_LEN, A_CH_LEN }, { A_DMA_STATUS, A_CH_STATUS },
        { A_PASID_VAL, A_CH_PASID },
    };

    if (addr >= CHANNEL_BASE) {
        addr -= CHANNEL_BASE;
        if (addr / CHANNEL_SIZE < NUM_CHANNELS) {
            channel_write(&e->ch[addr / CHANNEL_SIZE], addr % CHANNEL_SIZE,
                          val);
        }
        return;
    }
    for (int i = 0; i < ARRAY_SIZE(channel0); i++) {
        if (addr == channel0[i].from) {
            channel_write(&e->ch[0], channel0[i].to,
                          addr == A_DMA_CTL ? val & 0xfff : val);
            return;
        }
    }
    switch (addr) {
    case A_MSI_CTL:
        e->msi_ctl = FIELD_EX32(val, MSI_CTL, ID);
        if (FIELD_EX32(val, MSI_CTL, TRIG) && e->msi_ctl < NUM_VECTORS) {
            msix_notify(&e->parent_obj, e->msi_ctl);
        }
        break;
    case A_INTX_CTL:
        e->intx_ctl = val & 1;
        pci_set_irq(&e->parent_obj, e->intx_ctl);
        break;
    case A_ATS_CTL:
        e->ats_ctl = (e->ats_ctl & ~0x1e) | (val & 0x1e);
        if (FIELD_EX32(val, ATS_CTL, CLEAR)) {
            ats_clear(e);
            e->ats_ctl = FIELD_DP32(e->ats_ctl, ATS_CTL, INVALIDATED, 0);
        }
        if (FIELD_EX32(val, ATS_CTL, TRIG)) {
            ats_request(e);
        }
        break;
    case A_RID_CTL:
        e->rid_ctl = val & 0x8000ffff;
        break;
    case A_TRACE_CTL:
        if ((val & 1) && !(e->trace_ctl & 1)) {
            e->trace_n = 0;
            e->trace_rd = 0;
        }
        e->trace_ctl = val & 1;
        break;
    case A_VDM_CTL:
        vdm_write(e, val);
        break;
    case A_X_CTL:
        x_ctl_write(e, val);
        break;
    case A_X_PPR:
        page_request(e, val);
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: no register at 0x%"HWADDR_PRIx"\n",
                      TYPE_PCIE_EXERCISER, addr);
        break;
    }
}

static uint64_t exerciser_read(void *opaque, hwaddr addr, unsigned size)
{
    PCIeExerciser *e = opaque;
    uint64_t val = reg_get(e, addr);

    if (addr != A_TRACE_DATA) {
        trace_add(e, false, true, pci_get_bar_addr(&e->parent_obj, 0) + addr,
                  val, size);
    }
    return val;
}

static void exerciser_write(void *opaque, hwaddr addr, uint64_t val,
                            unsigned size)
{
    PCIeExerciser *e = opaque;

    reg_set(e, addr, val);
    if (addr != A_TRACE_CTL) {
        trace_add(e, false, false, pci_get_bar_addr(&e->parent_obj, 0) + addr,
                  val, size);
    }
}

static const MemoryRegionOps exerciser_ops = {
    .read = exerciser_read,
    .write = exerciser_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

static uint32_t exerciser_config_read(PCIDevice *d, uint32_t addr, int len)
{
    uint32_t val = pci_default_read_config(d, addr, len);

    trace_add(PCIE_EXERCISER(d), true, true, addr, val, len);
    return val;
}

static void exerciser_config_write(PCIDevice *d, uint32_t addr, uint32_t val,
                                   int len)
{
    PCIeExerciser *e = PCIE_EXERCISER(d);

    pci_default_write_config(d, addr, val, len);
    pcie_cap_flr_write_config(d, addr, val, len);
    pcie_requester_config_write(&e->r, addr, len);
    trace_add(e, true, false, addr, val, len);
}

static void exerciser_reset_hold(Object *obj, ResetType type)
{
    PCIeExerciser *e = PCIE_EXERCISER(obj);

    pcie_requester_reset(&e->r);
    for (int i = 0; i < NUM_CHANNELS; i++) {
        ExChannel *c = &e->ch[i];

        c->addr = c->done = 0;
        c->offset = c->len = c->ctl = c->status = c->pasid = c->waits = 0;
    }
    x_ctl_write(e, 0);
    e->msi_ctl = e->intx_ctl = e->ats_ctl = e->rid_ctl = e->vdm_ctl = 0;
    e->trace_ctl = e->trace_n = e->trace_rd = 0;
    e->inv_count = e->prg_count = e->prg_last = 0;
    e->ats_result = e->ppr_result = 0;
    ats_clear(e);
}

/* After migration, transfers that were under way are issued again. */
static void exerciser_restart(void *opaque, bool running, RunState state)
{
    PCIeExerciser *e = opaque;

    for (int i = 0; running && i < NUM_CHANNELS; i++) {
        ExChannel *c = &e->ch[i];

        if (FIELD_EX32(c->ctl, DMA_CTL, TRIG) && !c->req.state) {
            channel_start(c);
        }
    }
}

static void exerciser_realize(PCIDevice *d, Error **errp)
{
    PCIeExerciser *e = PCIE_EXERCISER(d);
    uint16_t cap = PCI_CONFIG_SPACE_SIZE;

    if (e->pasid_bits > 20) {
        error_setg(errp, "pasid-bits=%u: a PASID has at most 20 bits",
                   e->pasid_bits);
        return;
    }
    if (!pci_bus_is_express(pci_get_bus(d))) {
        error_setg(errp, "%s is a PCI Express device: put it on a PCIe bus",
                   TYPE_PCIE_EXERCISER);
        return;
    }
    pci_config_set_interrupt_pin(d->config, 1);
    if (pcie_endpoint_cap_init(d, 0x80) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return;
    }
    pcie_cap_flr_init(d);
    if (e->pasid_bits) {
        pcie_pasid_init(d, cap, e->pasid_bits, true, true);
        cap += PCI_EXT_CAP_PASID_SIZEOF;
    }
    if (e->ats) {
        pcie_ats_init(d, cap, true);
        cap += PCI_EXT_CAP_ATS_SIZEOF;
    }
    if (e->pri_cap) {
        pcie_pri_init(d, cap, 512, true);
    }

    memory_region_init_io(&e->regs, OBJECT(e), &exerciser_ops, e,
                          "pcie-exerciser-regs", REG_BAR_SIZE);
    pci_register_bar(d, 0, PCI_BASE_ADDRESS_SPACE_MEMORY, &e->regs);
    if (!memory_region_init_ram(&e->mem, OBJECT(e), "pcie-exerciser-mem",
                                MEM_BAR_SIZE, errp)) {
        return;
    }
    pci_register_bar(d, 1, PCI_BASE_ADDRESS_SPACE_MEMORY, &e->mem);
    e->buf = memory_region_get_ram_ptr(&e->mem);
    if (msix_init_exclusive_bar(d, NUM_VECTORS, 2, errp)) {
        return;
    }
    for (int i = 0; i < NUM_VECTORS; i++) {
        msix_vector_use(d, i);
    }

    for (int i = 0; i < NUM_CHANNELS; i++) {
        e->ch[i].e = e;
    }
    e->r.invalidated = invalidated;
    pcie_requester_init(&e->r, d);
    e->vm_state = qdev_add_vm_change_state_handler(DEVICE(d),
                                                   exerciser_restart, NULL, e);
}

static void exerciser_exit(PCIDevice *d)
{
    PCIeExerciser *e = PCIE_EXERCISER(d);

    qemu_del_vm_change_state_handler(e->vm_state);
    pcie_requester_exit(&e->r);
    if (e->pri_registered) {
        pci_pri_unregister_notifier(d, PCI_NO_PASID);
    }
    if (e->pri_pasid_registered) {
        pci_pri_unregister_notifier(d, e->pri_pasid_num);
    }
    msix_uninit_exclusive_bar(d);
}

static int exerciser_post_load(void *opaque, int version_id)
{
    PCIeExerciser *e = opaque;
    uint32_t x_ctl = e->x_ctl;

    e->inv_blocked = false;
    x_ctl_write(e, x_ctl);
    pcie_requester_config_write(&e->r, 0, 0);
    for (int i = 0; i < NUM_CHANNELS; i++) {
        ExChannel *c = &e->ch[i];

        if (c->offset > MEM_BAR_SIZE || c->len > MEM_BAR_SIZE - c->offset ||
            c->done > c->len) {
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateDescription vmstate_channel = {
    .name = "pcie-exerciser/channel",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(addr, ExChannel),
        VMSTATE_UINT64(done, ExChannel),
        VMSTATE_UINT32(offset, ExChannel),
        VMSTATE_UINT32(len, ExChannel),
        VMSTATE_UINT32(ctl, ExChannel),
        VMSTATE_UINT32(status, ExChannel),
        VMSTATE_UINT32(pasid, ExChannel),
        VMSTATE_UINT32(waits, ExChannel),
        VMSTATE_INT64(started, ExChannel),
        VMSTATE_UINT32(took, ExChannel),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_exerciser = {
    .name = TYPE_PCIE_EXERCISER,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = exerciser_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, PCIeExerciser),
        VMSTATE_STRUCT(r, PCIeExerciser, 1, vmstate_pcie_requester,
                       PCIeRequester),
        VMSTATE_MSIX(parent_obj, PCIeExerciser),
        VMSTATE_STRUCT_ARRAY(ch, PCIeExerciser, NUM_CHANNELS, 1,
                             vmstate_channel, ExChannel),
        VMSTATE_UINT32(msi_ctl, PCIeExerciser),
        VMSTATE_UINT32(intx_ctl, PCIeExerciser),
        VMSTATE_UINT32(ats_ctl, PCIeExerciser),
        VMSTATE_UINT32(ats_perm, PCIeExerciser),
        VMSTATE_UINT32(rid_ctl, PCIeExerciser),
        VMSTATE_UINT32(vdm_ctl, PCIeExerciser),
        VMSTATE_UINT32(x_ctl, PCIeExerciser),
        VMSTATE_UINT64(ats_addr, PCIeExerciser),
        VMSTATE_UINT64(ats_size, PCIeExerciser),
        VMSTATE_UINT64(atc_in, PCIeExerciser),
        VMSTATE_UINT32(atc_pasid, PCIeExerciser),
        VMSTATE_BOOL(atc_pasid_valid, PCIeExerciser),
        VMSTATE_UINT32(inv_count, PCIeExerciser),
        VMSTATE_UINT32(prg_count, PCIeExerciser),
        VMSTATE_UINT32(prg_last, PCIeExerciser),
        VMSTATE_END_OF_LIST()
    }
};

static const Property exerciser_properties[] = {
    DEFINE_PROP_UINT8("pasid-bits", PCIeExerciser, pasid_bits, 20),
    DEFINE_PROP_BOOL("ats", PCIeExerciser, ats, true),
    DEFINE_PROP_BOOL("pri", PCIeExerciser, pri_cap, true),
};

static void exerciser_instance_init(Object *obj)
{
    PCIeRequester *r = &PCIE_EXERCISER(obj)->r;

    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
    object_property_add_uint64_ptr(obj, "stalls", &r->n_stall,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "page-requests", &r->n_page_req,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "atc-hits", &r->n_atc_hit,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "atc-misses", &r->n_atc_miss,
                                   OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "atc-invalidations", &r->n_atc_inv,
                                   OBJ_PROP_FLAG_READ);
}

static void exerciser_class_init(ObjectClass *klass, const void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = exerciser_realize;
    pc->exit = exerciser_exit;
    pc->vendor_id = EXERCISER_VENDOR_ID;
    pc->device_id = EXERCISER_DEVICE_ID;
    pc->class_id = PCI_CLASS_OTHERS;
    pc->config_read = exerciser_config_read;
    pc->config_write = exerciser_config_write;
    rc->phases.hold = exerciser_reset_hold;
    dc->desc = "PCIe exerciser (ATS, PRI, PASID test endpoint)";
    dc->vmsd = &vmstate_exerciser;
    device_class_set_props(dc, exerciser_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo exerciser_info = {
    .name = TYPE_PCIE_EXERCISER,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(PCIeExerciser),
    .instance_init = exerciser_instance_init,
    .class_init = exerciser_class_init,
    .interfaces = (const InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { INTERFACE_PCIE_STALLABLE },
        { }
    },
};

static void exerciser_register_types(void)
{
    type_register_static(&exerciser_info);
}

type_init(exerciser_register_types)
