/*
 * Arm SMMUv3: PCIe Address Translation Service
 *
 * Translation requests, translated transactions and CMD_ATC_INV with the
 * CMD_SYNC that waits for it. IHI 0070, 3.9, 4.5 and 13.6.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "hw/arm/smmuv3.h"
#include "hw/pci/pci_bus.h"
#include "smmuv3-ext.h"
#include "trace.h"

/* STE.EATS */
enum {
    EATS_NONE = 0,
    EATS_FULL = 1,
    EATS_SPLIT = 2,  /* ATS returns an IPA, stage 2 applies on use */
};

/* CMD_ATC_INV.Size that covers every address */
#define ATC_INV_SIZE_ALL 52

typedef struct SMMUv3Inv {
    RecoverableDMAInv inv;
    SMMUv3State *s;
    SMMUDevice *sdev;
    int64_t deadline;    /* virtual time */
    bool late;           /* timed out: in inv_late, nobody waits for it */
} SMMUv3Inv;

bool smmuv3_ste_ats_legal(SMMUv3State *s, STE *ste)
{
    bool s1 = STE_CFG_S1_ENABLED(STE_CONFIG(ste));
    bool s2 = STE_CFG_S2_ENABLED(STE_CONFIG(ste));

    if (!s->feat.ats) {
        return true; /* EATS is ignored */
    }
    switch (STE_EATS(ste)) {
    case EATS_FULL:
        if (s2 && STE_S2S(ste)) {
            qemu_log_mask(LOG_GUEST_ERROR, "SMMUv3 EATS with S2S\n");
            return false;
        }
        return true;
    case EATS_SPLIT:
        /* IDR0.NS1ATS is 0: split stage ATS is there with both stages */
        if (!(s1 && s2) || STE_S2S(ste)) {
            qemu_log_mask(LOG_GUEST_ERROR,
                          "SMMUv3 split stage EATS without both stages\n");
            return false;
        }
        return true;
    default:
        return true; /* 3 is reserved and behaves as 0 */
    }
}

/*
 * What EATS means now: a split stage needs the check of what comes back. A
 * bypass STE (Config=4) has none.
 */
static int effective_eats(SMMUv3State *s, const SMMUTransCfg *cfg)
{
    if (cfg->eats == EATS_SPLIT && !FIELD_EX32(s->cr[0], CR0, ATSCHK)) {
        return EATS_NONE;
    }
    return cfg->eats <= EATS_SPLIT ? cfg->eats : EATS_NONE;
}

/*
 * Nothing to do with translated transactions of this function but let them
 * through: it may do so by itself until configuration changes. Where events
 * are counted each one comes here.
 */
static void pass_on(SMMUv3State *s, SMMUDevice *sdev)
{
    if (sdev->atc && !sdev->atc->pass && !s->smmu_state.pmcg) {
        sdev->atc->pass = ++s->feat.last_pass;
    }
}

void smmuv3_ats_check_again(SMMUv3State *s)
{
    for (GSList *l = s->feat.atcs; l; l = l->next) {
        ((SMMUDevice *)l->data)->atc->pass = 0;
    }
}

/* A translated transaction: 3.9.1.3 */
static void translated_access(SMMUv3State *s, const SMMUv3Access *a,
                              SMMUv3Answer *ans)
{
    SMMUTLBEntry *tlbe;
    SMMUTransCfg *cfg;
    int asid;
    SMMUStage stage;

    ans->status = SMMU_TRANS_BYPASS;
    if (!smmu_enabled(s)) {
        goto forbidden;
    }
    if (!FIELD_EX32(s->cr[0], CR0, ATSCHK)) {
        pass_on(s, a->sdev);
        return;
    }
    cfg = smmuv3_get_config(s, a, &ans->event);
    if (!cfg) {
        ans->status = SMMU_TRANS_ERROR;
        return;
    }
    if (cfg->aborted) {
        ans->status = SMMU_TRANS_ABORT;
        return;
    }
    switch (effective_eats(s, cfg)) {
    case EATS_FULL:
        pass_on(s, a->sdev);
        return;
    case EATS_SPLIT:
        /* the address is an IPA: stage 2 only */
        asid = cfg->asid;
        stage = cfg->stage;
        cfg->asid = -1;
        cfg->stage = SMMU_STAGE_2;
        ans->stage = SMMU_STAGE_2;
        ans->status = smmuv3_do_translate(s, a->addr, cfg, &ans->event,
                                          a->flag, &tlbe, SMMU_CLASS_IN);
        if (ans->status == SMMU_TRANS_SUCCESS) {
            ans->entry.perm = smmu_tlbe_perm(tlbe, a->flag) & IOMMU_RW;
            ans->entry.translated_addr = CACHED_ENTRY_TO_ADDR(tlbe, a->addr);
            ans->entry.addr_mask = tlbe->entry.addr_mask;
        }
        cfg->asid = asid;
        cfg->stage = stage;
        ans->event.can_stall = false;
        return;
    default:
        goto forbidden;
    }

forbidden:
    ans->status = SMMU_TRANS_ERROR;
    ans->event.type = SMMU_EVT_F_TRANS_FORBIDDEN;
}

/* A configuration error of a translation request is recorded on demand */
static void request_error(SMMUv3State *s, SMMUv3Answer *ans)
{
    bool record = FIELD_EX32(s->cr[2], CR2, REC_CFG_ATS);

    if (ans->event.type == SMMU_EVT_C_BAD_STREAMID) {
        record &= FIELD_EX32(s->cr[2], CR2, RECINVSID);
    }
    if (!record) {
        ans->event.type = SMMU_EVT_NONE;
    }
    ans->ats_ur = false;
    ans->status = SMMU_TRANS_ERROR;
}

static bool is_translation_fault(SMMUEventType type)
{
    /* SMMU_EVT_NONE: one that software does not want recorded */
    return type == SMMU_EVT_NONE || type == SMMU_EVT_F_TRANSLATION ||
           type == SMMU_EVT_F_ADDR_SIZE || type == SMMU_EVT_F_ACCESS ||
           type == SMMU_EVT_F_PERMISSION;
}

/*
 * Translates for a request that needs @flag; false: @ans says why not. A
 * split stage ends at the IPA.
 */
static bool request_walk(SMMUv3State *s, const SMMUv3Access *a,
                         SMMUTransCfg *cfg, bool split, IOMMUAccessFlags flag,
                         SMMUv3Answer *ans)
{
    SMMUTLBEntry *tlbe, ipa = {};
    SMMUPTWEventInfo info = {};
    int ret;

    if (split) {
        smmu_count(&s->smmu_state, SMMU_EVENT_TLB_MISS);
        cfg->s1_only = true;
        ret = smmu_ptw(ARM_SMMU(s), cfg, a->addr, flag, &ipa, &info);
        cfg->s1_only = false;
        tlbe = &ipa;
        if (ret) {
            ans->event.type = info.type == SMMU_PTW_ERR_WALK_EABT ?
                              SMMU_EVT_F_WALK_EABT : SMMU_EVT_NONE;
            return false;
        }
    } else if (smmuv3_do_translate(s, a->addr, cfg, &ans->event, flag, &tlbe,
                                   SMMU_CLASS_IN) != SMMU_TRANS_SUCCESS) {
        return false;
    }
    ans->perm = smmu_tlbe_perm(tlbe, a->flag);
    ans->entry.translated_addr = CACHED_ENTRY_TO_ADDR(tlbe, a->addr);
    ans->entry.addr_mask = tlbe->entry.addr_mask;
    return true;
}

/* A translation request: 3.9.1.2. Success with no permissions: R=W=0. */
static void translation_request(SMMUv3State *s, const SMMUv3Access *a,
                                SMMUv3Answer *ans)
{
    SMMUTransCfg *cfg;
    bool split;
    int eats;

    ans->ats_ur = true;
    if (!smmu_enabled(s)) {
        goto bad_treq;
    }
    cfg = smmuv3_get_config(s, a, &ans->event);
    if (!cfg) {
        if (is_translation_fault(ans->event.type)) {
            goto no_access; /* stage 2 has no CD or table */
        }
        request_error(s, ans);
        return;
    }
    if (cfg->aborted) {
        ans->status = SMMU_TRANS_ABORT;
        return;
    }
    eats = effective_eats(s, cfg);
    if (eats == EATS_NONE) {
        goto bad_treq;
    }
    if (cfg->bypassed) {
        /* S1DSS: stage 1 is off for requests without PASID */
        ans->status = SMMU_TRANS_SUCCESS;
        ans->perm = IOMMU_RW | IOMMU_EXEC;
        return;
    }

    split = eats == EATS_SPLIT;
    if (split && cfg->stage != SMMU_NESTED) {
        /* stage 1 bypassed by S1DSS: the IPA is the address */
        ans->status = SMMU_TRANS_SUCCESS;
        ans->perm = IOMMU_RW | IOMMU_EXEC;
        return;
    }
    if (request_walk(s, a, cfg, split, a->flag, ans)) {
        ans->status = SMMU_TRANS_SUCCESS;
        if (a->may_write && !(ans->perm & IOMMU_WO) &&
            (cfg->hd || cfg->s2cfg.hd)) {
            /*
             * A clean page becomes dirty now: the function will not ask
             * again before it writes (3.13.6). Otherwise it stays read-only.
             */
            request_walk(s, a, cfg, split, a->flag | IOMMU_WO, ans);
            ans->event.type = SMMU_EVT_NONE;
        }
    } else if (is_translation_fault(ans->event.type)) {
        goto no_access;
    } else {
        request_error(s, ans);
    }
    return;

no_access:
    ans->event.type = SMMU_EVT_NONE;
    ans->status = SMMU_TRANS_SUCCESS;
    ans->perm = IOMMU_NONE;
    return;

bad_treq:
    ans->event.type = SMMU_EVT_F_BAD_ATS_TREQ;
    ans->status = SMMU_TRANS_ERROR;
}

void smmuv3_ats_access(SMMUv3State *s, const SMMUv3Access *a,
                       SMMUv3Answer *ans)
{
    ans->perm = IOMMU_NONE;
    ans->ats_ur = false;
    if (a->type == SMMUV3_TRANSLATED) {
        smmu_count(&s->smmu_state, SMMU_EVENT_TRANSLATED);
        translated_access(s, a, ans);
    } else {
        smmu_count(&s->smmu_state, SMMU_EVENT_ATS_REQUEST);
        translation_request(s, a, ans);
    }
}

/*
 * PCIIOMMUOps.ats_request_translation: -EOPNOTSUPP is Unsupported Request,
 * -EIO Completer Abort.
 */
ssize_t smmuv3_ats_request(PCIBus *bus, void *opaque, int devfn,
                           uint32_t pasid, bool priv_req, bool exec_req,
                           hwaddr addr, size_t length, bool no_write,
                           IOMMUTLBEntry *result, size_t result_length,
                           uint32_t *err_count)
{
    AddressSpace *as = smmu_find_add_as(bus, opaque, devfn);
    SMMUDevice *sdev = container_of(as, SMMUDevice, as);
    SMMUv3State *s = sdev->smmu;
    hwaddr last = addr + length - 1;
    size_t n = 0;

    *err_count = 0;
    if (!length || last < addr) {
        return -EINVAL;
    }

    qemu_mutex_lock(&s->mutex);
    for (;;) {
        SMMUv3Access a = {
            .sdev = sdev,
            .sid = smmu_get_sid(sdev),
            .addr = addr & ~(hwaddr)0xfff,
            /* no access: permissions come back, none is demanded */
            .flag = priv_req ? IOMMU_PRIV : IOMMU_NONE,
            .type = SMMUV3_ATS_REQUEST,
            .ssid = pasid == PCI_NO_PASID ? 0 : pasid,
            .ssv = pasid != PCI_NO_PASID,
            .may_write = !no_write,
        };
        IOMMUTLBEntry *e = &result[n];
        SMMUv3Answer ans;

        if (n == result_length) {
            qemu_mutex_unlock(&s->mutex);
            return -ENOMEM;
        }
        s->feat.n_ats_req++;
        smmuv3_access(s, &a, &ans);
        if (ans.status != SMMU_TRANS_SUCCESS) {
            trace_smmuv3_ats_refused(a.sid, pasid, a.addr, ans.ats_ur);
            smmuv3_record_answer(s, &a, &ans);
            qemu_mutex_unlock(&s->mutex);
            return ans.ats_ur ? -EOPNOTSUPP : -EIO;
        }
        *e = ans.entry;
        /* execute is granted with read, and when it was asked for */
        e->perm = ans.perm & (no_write ? IOMMU_RO : IOMMU_RW);
        if (exec_req && (ans.perm & IOMMU_EXEC) && (e->perm & IOMMU_RO)) {
            e->perm |= IOMMU_EXEC;
        }
        if (priv_req) {
            e->perm |= IOMMU_PRIV;
        }
        if (!(e->perm & IOMMU_RW)) {
            e->perm = IOMMU_NONE;
            e->addr_mask = 0xfff; /* STU of 0 */
            (*err_count)++;
        }
        e->iova = a.addr & ~e->addr_mask;
        e->translated_addr = ans.entry.translated_addr & ~e->addr_mask;
        trace_smmuv3_ats_request(a.sid, pasid, a.addr, e->translated_addr,
                                 e->perm);
        n++;
        if (last - e->iova <= e->addr_mask) {
            break;
        }
        addr = e->iova + e->addr_mask + 1;
    }
    qemu_mutex_unlock(&s->mutex);
    return n;
}

static void inv_done(RecoverableDMAInv *inv, bool ok)
{
    SMMUv3Inv *i = container_of(inv, SMMUv3Inv, inv);
    SMMUv3State *s = i->s;
    bool kick;

    qemu_mutex_lock(&s->mutex);
    trace_smmuv3_atc_inv_done(ok);
    if (i->late) {
        QTAILQ_REMOVE(&s->feat.inv_late, inv, link);
    } else {
        QTAILQ_REMOVE(&s->feat.inv_sent, inv, link);
        s->feat.inv_failed |= !ok;
    }
    kick = s->feat.sync_parked && QTAILQ_EMPTY(&s->feat.inv_new) &&
           QTAILQ_EMPTY(&s->feat.inv_sent);
    qemu_mutex_unlock(&s->mutex);
    g_free(i);

    if (kick && !s->feat.deferred_running) {
        /* not from within the device's code */
        qemu_bh_schedule(s->feat.bh);
    }
}

/* Gives up the invalidations that were not completed in time (3.9.1.1). */
void smmuv3_ats_timeout(void *opaque)
{
    SMMUv3State *s = opaque;
    SMMUv3Features *f = &s->feat;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    RecoverableDMAInv *inv;

    qemu_mutex_lock(&s->mutex);
    while ((inv = QTAILQ_FIRST(&f->inv_sent))) {
        SMMUv3Inv *i = container_of(inv, SMMUv3Inv, inv);

        if (i->deadline > now) {
            timer_mod(f->inv_timer, i->deadline);
            break;
        }
        trace_smmuv3_atc_inv_timeout(smmu_get_sid(i->sdev));
        QTAILQ_REMOVE(&f->inv_sent, inv, link);
        QTAILQ_INSERT_TAIL(&f->inv_late, inv, link);
        i->late = true;
        f->inv_failed = true;
    }
    qemu_mutex_unlock(&s->mutex);
    smmuv3_run_deferred(s);
}

SMMUCmdError smmuv3_atc_inv(SMMUv3State *s, Cmd *cmd)
{
    SMMUDevice *sdev;
    SMMUv3Inv *i;
    int size = CMD_ATC_SIZE(cmd);

    if (!s->feat.ats || CMD_SSEC(cmd)) {
        return SMMU_CERROR_ILL;
    }
    if (!smmu_enabled(s)) {
        return SMMU_CERROR_NONE; /* ignored */
    }
    sdev = smmu_find_sdev(ARM_SMMU(s), CMD_SID(cmd));
    s->feat.n_atc_inv++;
    if (!sdev || !sdev->atc) {
        return SMMU_CERROR_NONE; /* nobody, or UR: complete */
    }

    i = g_new0(SMMUv3Inv, 1);
    i->s = s;
    i->sdev = sdev;
    i->inv.done = inv_done;
    i->inv.pasid_valid = CMD_SSV(cmd);
    i->inv.pasid = CMD_SSV(cmd) ? CMD_SSID(cmd) : 0;
    i->inv.global = CMD_SSV(cmd) && CMD_G(cmd);
    if (size >= ATC_INV_SIZE_ALL) {
        i->inv.last = UINT64_MAX;
    } else {
        i->inv.iova = CMD_ADDR(cmd) & ~MAKE_64BIT_MASK(0, 12 + size);
        i->inv.last = i->inv.iova | MAKE_64BIT_MASK(0, 12 + size);
    }
    trace_smmuv3_atc_inv(CMD_SID(cmd), i->inv.pasid_valid, i->inv.pasid,
                         i->inv.global, i->inv.iova, i->inv.last);
    QTAILQ_INSERT_TAIL(&s->feat.inv_new, &i->inv, link);
    return SMMU_CERROR_NONE;
}

bool smmuv3_ats_sync(SMMUv3State *s, SMMUCmdError *error)
{
    /* configuration that was invalidated is out of use from here on */
    smmuv3_ats_check_again(s);
    if (!QTAILQ_EMPTY(&s->feat.inv_new) || !QTAILQ_EMPTY(&s->feat.inv_sent)) {
        if (!s->feat.sync_parked) {
            trace_smmuv3_sync_parked();
        }
        s->feat.sync_parked = true;
        return true;
    }
    s->feat.sync_parked = false;
    if (s->feat.inv_failed) {
        /* once: the command queue stops here and software repeats the SYNC */
        s->feat.inv_failed = false;
        *error = SMMU_CERROR_ATC_INV_SYNC;
    }
    return false;
}

/* Delivers the oldest new invalidation. Locked; drops the lock to do so. */
bool smmuv3_ats_deliver(SMMUv3State *s)
{
    RecoverableDMAInv *inv = QTAILQ_FIRST(&s->feat.inv_new);
    RecoverableDMAAtc *atc;

    if (!inv) {
        return false;
    }
    atc = container_of(inv, SMMUv3Inv, inv)->sdev->atc;
    QTAILQ_REMOVE(&s->feat.inv_new, inv, link);
    QTAILQ_INSERT_TAIL(&s->feat.inv_sent, inv, link);
    container_of(inv, SMMUv3Inv, inv)->deadline =
        qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
        s->feat.atc_inv_timeout * (int64_t)SCALE_MS;
    if (!timer_pending(s->feat.inv_timer)) {
        timer_mod(s->feat.inv_timer,
                  container_of(inv, SMMUv3Inv, inv)->deadline);
    }
    qemu_mutex_unlock(&s->mutex);
    atc->invalidate(atc, inv);
    qemu_mutex_lock(&s->mutex);
    return true;
}

/* Nobody waits for an invalidation any more; what was sent is late. */
void smmuv3_ats_reset(SMMUv3State *s)
{
    SMMUv3Features *f = &s->feat;
    RecoverableDMAInv *inv;

    while ((inv = QTAILQ_FIRST(&f->inv_new))) {
        QTAILQ_REMOVE(&f->inv_new, inv, link);
        g_free(container_of(inv, SMMUv3Inv, inv));
    }
    while ((inv = QTAILQ_FIRST(&f->inv_sent))) {
        QTAILQ_REMOVE(&f->inv_sent, inv, link);
        QTAILQ_INSERT_TAIL(&f->inv_late, inv, link);
        container_of(inv, SMMUv3Inv, inv)->late = true;
    }
    timer_del(f->inv_timer);
    f->inv_failed = false;
    f->sync_parked = false;
    smmuv3_ats_check_again(s);
}

void smmuv3_ats_set_atc(SMMUv3State *s, SMMUDevice *sdev,
                        RecoverableDMAAtc *atc)
{
    RecoverableDMAInv *inv, *next;

    s->feat.atcs = g_slist_remove(s->feat.atcs, sdev);
    sdev->atc = atc;
    if (atc) {
        atc->pass = 0;
        s->feat.atcs = g_slist_prepend(s->feat.atcs, sdev);
        return;
    }
    /* The cache is gone, and with it what was to be invalidated. */
    QTAILQ_FOREACH_SAFE(inv, &s->feat.inv_new, link, next) {
        if (container_of(inv, SMMUv3Inv, inv)->sdev == sdev) {
            QTAILQ_REMOVE(&s->feat.inv_new, inv, link);
            g_free(container_of(inv, SMMUv3Inv, inv));
        }
    }
    QTAILQ_FOREACH_SAFE(inv, &s->feat.inv_sent, link, next) {
        if (container_of(inv, SMMUv3Inv, inv)->sdev == sdev) {
            QTAILQ_REMOVE(&s->feat.inv_sent, inv, link);
            g_free(container_of(inv, SMMUv3Inv, inv));
        }
    }
    QTAILQ_FOREACH_SAFE(inv, &s->feat.inv_late, link, next) {
        if (container_of(inv, SMMUv3Inv, inv)->sdev == sdev) {
            QTAILQ_REMOVE(&s->feat.inv_late, inv, link);
            g_free(container_of(inv, SMMUv3Inv, inv));
        }
    }
    if (s->feat.sync_parked) {
        qemu_bh_schedule(s->feat.bh);
    }
}
