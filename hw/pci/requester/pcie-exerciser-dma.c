/*
 * PCIe exerciser: DMA channels
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "pcie-exerciser.h"

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

void exerciser_channel_start(ExChannel *c)
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
        exerciser_channel_start(c);
    }
}

uint32_t exerciser_channel_read(ExChannel *c, hwaddr reg)
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

void exerciser_channel_write(ExChannel *c, hwaddr reg, uint32_t val)
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
