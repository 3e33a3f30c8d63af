/*
 * Arm SMMUv3: what the optional features share
 *
 * Properties, ID registers, registers, commands, reset, migration, and the
 * delivery of what is due to devices once the SMMU's lock is free.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "migration/vmstate.h"
#include "hw/arm/smmuv3.h"
#include "smmuv3-ext.h"

#define SMMU_PRIQS 19
#define SSIDSIZE_MAX 20

/* IDR5.STALL_MAX has 16 bits, and so have STAGs */
QEMU_BUILD_BUG_ON(sizeof_field(SMMUv3Features, stall_max) != 2);

bool smmuv3_features_check(SMMUv3State *s, Error **errp)
{
    SMMUv3Features *f = &s->feat;
    const char *model = f->stall_model_name ?: "none";

    if (!strcmp(model, "none")) {
        f->stall_model = SMMUV3_STALL_NONE;
    } else if (!strcmp(model, "stall")) {
        f->stall_model = SMMUV3_STALL_OPTIONAL;
    } else if (!strcmp(model, "forced")) {
        f->stall_model = SMMUV3_STALL_FORCED;
    } else {
        error_setg(errp, "stall-model=%s: it is none, stall or forced", model);
        return false;
    }
    if (!f->httu_name || !strcmp(f->httu_name, "none")) {
        f->httu = SMMUV3_HTTU_NONE;
    } else if (!strcmp(f->httu_name, "a")) {
        f->httu = SMMUV3_HTTU_ACCESS;
    } else if (!strcmp(f->httu_name, "ad")) {
        f->httu = SMMUV3_HTTU_DIRTY;
    } else {
        error_setg(errp, "httu=%s: it is none, a (access flag) or ad (access "
                   "flag and dirty state)", f->httu_name);
        return false;
    }
    if (f->stall_max == 0) {
        error_setg(errp, "stall-max=0: at least one transaction can stall");
        return false;
    }
    if (f->ssidsize > SSIDSIZE_MAX) {
        error_setg(errp, "ssidsize=%u: a SubstreamID has at most %d bits",
                   f->ssidsize, SSIDSIZE_MAX);
        return false;
    }
    if (f->pri && !f->ats) {
        error_setg(errp, "pri=on needs ats=on");
        return false;
    }
    if (!smmuv3_msi_realize(s, errp)) {
        return false;
    }
    if (f->ats) {
        PCIIOMMUOps *ops = g_new0(PCIIOMMUOps, 1);

        ops->get_address_space = smmu_find_add_as;
        ops->ats_request_translation = smmuv3_ats_request;
        if (f->pri) {
            ops->pri_request_page = smmuv3_pri_request;
            ops->pri_register_notifier = smmuv3_pri_register;
            ops->pri_unregister_notifier = smmuv3_pri_unregister;
        }
        ARM_SMMU(s)->iommu_ops = ops;
    }
    return true;
}

static void deferred_bh(void *opaque)
{
    smmuv3_run_deferred(opaque);
}

void smmuv3_features_realize(SMMUv3State *s)
{
    SMMUv3Features *f = &s->feat;

    QTAILQ_INIT(&f->stall_waiting);
    QTAILQ_INIT(&f->done);
    QTAILQ_INIT(&f->inv_new);
    QTAILQ_INIT(&f->inv_sent);
    QTAILQ_INIT(&f->inv_late);
    QLIST_INIT(&f->pri_notifiers);
    QTAILQ_INIT(&f->pri_answers);
    f->stalls = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    f->bh = qemu_bh_new(deferred_bh, s);
    f->inv_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, smmuv3_ats_timeout, s);
    smmuv3_info_realize(s);
}

void smmuv3_features_init_idregs(SMMUv3State *s)
{
    SMMUv3Features *f = &s->feat;

    s->idr[0] = FIELD_DP32(s->idr[0], IDR0, STALL_MODEL, f->stall_model);
    s->idr[0] = FIELD_DP32(s->idr[0], IDR0, HTTU, f->httu);
    s->idr[0] = FIELD_DP32(s->idr[0], IDR0, ATS, f->ats);
    s->idr[0] = FIELD_DP32(s->idr[0], IDR0, PRI, f->pri);
    s->idr[0] = FIELD_DP32(s->idr[0], IDR0, MSI, f->msi);
    s->idr[0] = FIELD_DP32(s->idr[0], IDR0, CD2L, f->ssidsize > 0);
    s->idr[1] = FIELD_DP32(s->idr[1], IDR1, SSIDSIZE, f->ssidsize);
    s->idr[1] = FIELD_DP32(s->idr[1], IDR1, PRIQS, f->pri ? SMMU_PRIQS : 0);
    if (f->stall_model != SMMUV3_STALL_NONE) {
        s->idr[5] = FIELD_DP32(s->idr[5], IDR5, STALL_MAX, f->stall_max);
    }

    s->priq.base = f->pri ? SMMU_PRIQS : 0;
    s->priq.log2size = s->priq.base;
    s->priq.prod = 0;
    s->priq.cons = 0;
    s->priq.entry_size = 16;
}

void smmuv3_features_reset(SMMUv3State *s)
{
    smmuv3_stall_terminate_all(s);
    s->feat.next_stag = 0;
    smmuv3_ats_reset(s);
    smmuv3_pri_reset(s);
    smmuv3_msi_reset(s);
    smmuv3_pmcg_reset(s);
}

static void set_priq_base(SMMUv3State *s, uint64_t base)
{
    s->priq.base = base;
    s->priq.log2size = MIN(extract64(base, 0, 5), SMMU_PRIQS);
}

bool smmuv3_features_write(SMMUv3State *s, hwaddr offset, unsigned size,
                           uint64_t data)
{
    SMMUv3Features *f = &s->feat;

    if (!f->pri) {
        return false;
    }
    if (size == 8) {
        switch (offset) {
        case A_PRIQ_BASE:
            set_priq_base(s, data);
            return true;
        case A_PRIQ_IRQ_CFG0:
            f->priq_irq_cfg0 = data;
            return true;
        default:
            return false;
        }
    }
    switch (offset) {
    case A_PRIQ_BASE:
        set_priq_base(s, deposit64(s->priq.base, 0, 32, data));
        return true;
    case A_PRIQ_BASE + 4:
        set_priq_base(s, deposit64(s->priq.base, 32, 32, data));
        return true;
    case A_PRIQ_PROD:
        s->priq.prod = data;
        return true;
    case A_PRIQ_CONS:
        s->priq.cons = data;
        return true;
    case A_PRIQ_IRQ_CFG0:
        f->priq_irq_cfg0 = deposit64(f->priq_irq_cfg0, 0, 32, data);
        return true;
    case A_PRIQ_IRQ_CFG0 + 4:
        f->priq_irq_cfg0 = deposit64(f->priq_irq_cfg0, 32, 32, data);
        return true;
    case A_PRIQ_IRQ_CFG1:
        f->priq_irq_cfg1 = data;
        return true;
    case A_PRIQ_IRQ_CFG2:
        f->priq_irq_cfg2 = data;
        return true;
    default:
        return false;
    }
}

bool smmuv3_features_read(SMMUv3State *s, hwaddr offset, unsigned size,
                          uint64_t *data)
{
    SMMUv3Features *f = &s->feat;

    if (!f->pri) {
        return false;
    }
    switch (offset) {
    case A_PRIQ_BASE:
        *data = size == 8 ? s->priq.base : extract64(s->priq.base, 0, 32);
        return true;
    case A_PRIQ_BASE + 4:
        *data = extract64(s->priq.base, 32, 32);
        return true;
    case A_PRIQ_PROD:
        *data = s->priq.prod;
        return true;
    case A_PRIQ_CONS:
        *data = s->priq.cons;
        return true;
    case A_PRIQ_IRQ_CFG0:
        *data = size == 8 ? f->priq_irq_cfg0
                          : extract64(f->priq_irq_cfg0, 0, 32);
        return true;
    case A_PRIQ_IRQ_CFG0 + 4:
        *data = extract64(f->priq_irq_cfg0, 32, 32);
        return true;
    case A_PRIQ_IRQ_CFG1:
        *data = f->priq_irq_cfg1;
        return true;
    case A_PRIQ_IRQ_CFG2:
        *data = f->priq_irq_cfg2;
        return true;
    default:
        return false;
    }
}

void smmuv3_features_cr0(SMMUv3State *s, uint32_t old)
{
    bool was_on = FIELD_EX32(old, CR0, SMMU_ENABLE);

    smmuv3_ats_check_again(s);
    if (was_on && !smmu_enabled(s)) {
        /* 6.3.9.1: disabling the SMMU ends what is stalled */
        smmuv3_stall_terminate_all(s);
    }
    smmuv3_stall_pump(s);
}

SMMUCmdError smmuv3_features_cmd(SMMUv3State *s, Cmd *cmd)
{
    switch (CMD_TYPE(cmd)) {
    case SMMU_CMD_ATC_INV:
        return smmuv3_atc_inv(s, cmd);
    case SMMU_CMD_PRI_RESP:
        return smmuv3_pri_resp(s, cmd);
    case SMMU_CMD_RESUME:
        return smmuv3_stall_resume(s, cmd);
    case SMMU_CMD_STALL_TERM:
        return smmuv3_stall_term(s, cmd);
    default:
        return SMMU_CERROR_ILL;
    }
}

void smmuv3_run_deferred(SMMUv3State *s)
{
    SMMUv3Features *f = &s->feat;
    bool msis_sent = false;

    if (f->deferred_running) {
        return;
    }
    f->deferred_running = true;
    qemu_mutex_lock(&s->mutex);
    for (;;) {
        RecoverableDMAReq *req;

        if (smmuv3_ats_deliver(s) || smmuv3_pri_deliver(s)) {
            continue;
        }
        req = QTAILQ_FIRST(&f->done);
        if (req) {
            RecoverableDMAResult how = req->tag;

            QTAILQ_REMOVE(&f->done, req, link);
            req->state = 0;
            qemu_mutex_unlock(&s->mutex);
            req->resume(req, how);
            qemu_mutex_lock(&s->mutex);
            continue;
        }
        if (f->sync_parked && QTAILQ_EMPTY(&f->inv_new) &&
            QTAILQ_EMPTY(&f->inv_sent)) {
            f->sync_parked = false;
            smmuv3_cmdq_kick(s);
            continue;
        }
        /*
         * Once: where MSIs make devices cause MSIs, what follows waits for
         * the main loop's next turn.
         */
        if (!msis_sent && smmuv3_msi_deliver(s)) {
            msis_sent = true;
            continue;
        }
        break;
    }
    qemu_mutex_unlock(&s->mutex);
    f->deferred_running = false;
}

/*
 * Migration. Devices issue their operations again on the destination, so
 * requests do not migrate; the STAGs that software still owes a response for
 * do. The destination's ATCs are empty: no invalidation is outstanding.
 */
static int stall_pre_save(void *opaque)
{
    SMMUv3State *s = opaque;
    SMMUv3Features *f = &s->feat;
    GHashTableIter iter;
    gpointer key, value;
    uint32_t n = 0;

    g_free(f->mig_stalls);
    f->mig_n = g_hash_table_size(f->stalls);
    f->mig_stalls = g_new0(uint64_t, f->mig_n);
    g_hash_table_iter_init(&iter, f->stalls);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        f->mig_stalls[n++] = (uint64_t)smmuv3_stall_sid(value) << 32 |
                             GPOINTER_TO_UINT(key);
    }
    return 0;
}

static int stall_post_save(void *opaque)
{
    SMMUv3State *s = opaque;

    g_free(s->feat.mig_stalls);
    s->feat.mig_stalls = NULL;
    s->feat.mig_n = 0;
    return 0;
}

static int stall_post_load(void *opaque, int version_id)
{
    SMMUv3State *s = opaque;
    SMMUv3Features *f = &s->feat;

    if (f->mig_n > 0x10000) {
        return -EINVAL;
    }
    g_hash_table_remove_all(f->stalls);
    for (uint32_t n = 0; n < f->mig_n; n++) {
        smmuv3_stall_insert(s, extract64(f->mig_stalls[n], 0, 16),
                            extract64(f->mig_stalls[n], 32, 32));
    }
    return stall_post_save(opaque);
}

static bool stall_needed(void *opaque)
{
    SMMUv3State *s = opaque;

    return s->feat.stall_model != SMMUV3_STALL_NONE;
}

const VMStateDescription vmstate_smmuv3_stall = {
    .name = "smmuv3/stall",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = stall_needed,
    .pre_save = stall_pre_save,
    .post_save = stall_post_save,
    .post_load = stall_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT16(feat.next_stag, SMMUv3State),
        VMSTATE_UINT32(feat.mig_n, SMMUv3State),
        VMSTATE_VARRAY_UINT32_ALLOC(feat.mig_stalls, SMMUv3State, feat.mig_n,
                                    0, vmstate_info_uint64, uint64_t),
        VMSTATE_END_OF_LIST()
    }
};

static int ats_post_load(void *opaque, int version_id)
{
    SMMUv3State *s = opaque;

    if (s->feat.sync_parked) {
        qemu_bh_schedule(s->feat.bh);
    }
    return 0;
}

static bool ats_needed(void *opaque)
{
    SMMUv3State *s = opaque;

    return s->feat.ats;
}

const VMStateDescription vmstate_smmuv3_ats = {
    .name = "smmuv3/ats",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = ats_needed,
    .post_load = ats_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(feat.inv_failed, SMMUv3State),
        VMSTATE_BOOL(feat.sync_parked, SMMUv3State),
        VMSTATE_END_OF_LIST()
    }
};

static bool pri_needed(void *opaque)
{
    SMMUv3State *s = opaque;

    return s->feat.pri;
}

const VMStateDescription vmstate_smmuv3_pri = {
    .name = "smmuv3/pri",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = pri_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(priq, SMMUv3State, 0, vmstate_smmuv3_queue, SMMUQueue),
        VMSTATE_UINT64(feat.priq_irq_cfg0, SMMUv3State),
        VMSTATE_UINT32(feat.priq_irq_cfg1, SMMUv3State),
        VMSTATE_UINT32(feat.priq_irq_cfg2, SMMUv3State),
        VMSTATE_END_OF_LIST()
    }
};
