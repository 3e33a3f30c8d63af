/*
 * Arm SMMUv3: message signalled interrupts
 *
 * Of the event queue, the PRI queue and GERROR by the SMMU_*_IRQ_CFG
 * registers, of CMD_SYNC by the command. IHI 0070, 3.18 and 4.7.3.
 *
 * An MSI is a write to wherever the guest says, a register of a device among
 * it, so it is sent without the lock, and never to the SMMU's own registers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/arm/smmuv3.h"
#include "migration/vmstate.h"
#include "smmuv3-ext.h"
#include "trace.h"

#define MSI_ADDR_MASK MAKE_64BIT_MASK(2, 50)

/*
 * DeviceIDs are the RequesterIDs of PCI functions. Slot 0 of bus 0 is the host
 * bridge, which has one function and sends nothing: the others' IDs are free.
 */
#define DEVICE_IDS 7

typedef struct SMMUv3SyncMSI {
    uint64_t addr;
    uint32_t data;
} SMMUv3SyncMSI;

bool smmuv3_msi_realize(SMMUv3State *s, Error **errp)
{
    static uint16_t used;

    if (!s->feat.msi) {
        return true;
    }
    if (used == DEVICE_IDS) {
        error_setg(errp, "msi=on: at most %d SMMUs of a machine have it",
                   DEVICE_IDS);
        return false;
    }
    s->feat.msi_device = DEVICE_IDS - used++;
    s->feat.msi_syncs = g_array_new(false, false, sizeof(SMMUv3SyncMSI));
    return true;
}

static uint64_t configured(SMMUv3State *s, SMMUIrq irq, uint32_t *data)
{
    switch (irq) {
    case SMMU_IRQ_EVTQ:
        *data = s->eventq_irq_cfg1;
        return s->eventq_irq_cfg0 & MSI_ADDR_MASK;
    case SMMU_IRQ_PRIQ:
        *data = s->feat.priq_irq_cfg1;
        return s->feat.priq_irq_cfg0 & MSI_ADDR_MASK;
    case SMMU_IRQ_GERROR:
        *data = s->gerror_irq_cfg1;
        return s->gerror_irq_cfg0 & MSI_ADDR_MASK;
    default:
        return 0;
    }
}

bool smmuv3_msi_raise(SMMUv3State *s, SMMUIrq irq)
{
    uint32_t data;

    if (!s->feat.msi || !configured(s, irq, &data)) {
        return false;
    }
    s->feat.msi_pending |= 1u << irq;
    qemu_bh_schedule(s->feat.bh);
    return true;
}

bool smmuv3_msi_sync(SMMUv3State *s, Cmd *cmd)
{
    SMMUv3SyncMSI msi = {
        .addr = deposit64(cmd->word[2], 32, 32, cmd->word[3]) & MSI_ADDR_MASK,
        .data = cmd->word[1],
    };

    if (!s->feat.msi || !msi.addr) {
        return false;
    }
    g_array_append_val(s->feat.msi_syncs, msi);
    qemu_bh_schedule(s->feat.bh);
    return true;
}

/* Locked; drops the lock to send. */
static void send_msi(SMMUv3State *s, SMMUIrq irq, uint64_t addr, uint32_t data)
{
    static const uint32_t aborted[] = {
        [SMMU_IRQ_EVTQ] = R_GERROR_MSI_EVENTQ_ABT_ERR_MASK,
        [SMMU_IRQ_PRIQ] = R_GERROR_MSI_PRIQ_ABT_ERR_MASK,
        [SMMU_IRQ_CMD_SYNC] = R_GERROR_MSI_CMDQ_ABT_ERR_MASK,
        [SMMU_IRQ_GERROR] = R_GERROR_MSI_GERROR_ABT_ERR_MASK,
    };
    MemTxAttrs attrs = { .requester_id = s->feat.msi_device };
    MemReentrancyGuard *guard = &DEVICE(s)->mem_reentrancy_guard;
    bool engaged = guard->engaged_in_io;
    MemTxResult result;

    qemu_mutex_unlock(&s->mutex);
    guard->engaged_in_io = true;
    address_space_stl_le(&address_space_memory, addr, data, attrs, &result);
    guard->engaged_in_io = engaged;
    qemu_mutex_lock(&s->mutex);

    trace_smmuv3_msi(irq, addr, data, result);
    if (result != MEMTX_OK) {
        smmuv3_trigger_irq(s, SMMU_IRQ_GERROR, aborted[irq]);
    }
}

bool smmuv3_msi_deliver(SMMUv3State *s)
{
    SMMUv3Features *f = &s->feat;
    uint32_t pending = f->msi_pending;
    g_autoptr(GArray) syncs = NULL;

    if (!f->msi || (!pending && !f->msi_syncs->len)) {
        return false;
    }
    syncs = f->msi_syncs;
    f->msi_syncs = g_array_new(false, false, sizeof(SMMUv3SyncMSI));
    f->msi_pending = 0;
    for (guint i = 0; i < syncs->len; i++) {
        SMMUv3SyncMSI *msi = &g_array_index(syncs, SMMUv3SyncMSI, i);

        send_msi(s, SMMU_IRQ_CMD_SYNC, msi->addr, msi->data);
    }
    for (SMMUIrq irq = 0; irq <= SMMU_IRQ_GERROR; irq++) {
        uint32_t data;
        uint64_t addr = configured(s, irq, &data);

        if (pending >> irq & 1 && addr) {
            send_msi(s, irq, addr, data);
        }
    }
    return true;
}

void smmuv3_msi_reset(SMMUv3State *s)
{
    s->feat.msi_pending = 0;
    if (s->feat.msi) {
        g_array_set_size(s->feat.msi_syncs, 0);
    }
}

static bool msi_needed(void *opaque)
{
    SMMUv3State *s = opaque;

    return s->feat.msi;
}

static int msi_post_load(void *opaque, int version_id)
{
    SMMUv3State *s = opaque;

    qemu_bh_schedule(s->feat.bh);
    return 0;
}

/* What a CMD_SYNC sends is sent before the machine can stop */
const VMStateDescription vmstate_smmuv3_msi = {
    .name = "smmuv3/msi",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = msi_needed,
    .post_load = msi_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(feat.msi_pending, SMMUv3State),
        VMSTATE_END_OF_LIST()
    }
};
