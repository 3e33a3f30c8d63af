/*
 * MMU-500: suspended transactions (IHI 0062 section 3.6)
 *
 * A bank that stalls keeps its transactions in the order of their arrival:
 * the recorded one (FSR.SS) at the head, and behind it those that arrived
 * while it was outstanding. A RESUME decides about the recorded one alone;
 * the others are looked up again, and the first of them that faults is the
 * next to be recorded.
 *
 * The model's own state about a suspended transaction is its place in the
 * queue; the rest belongs to the device. So nothing here migrates: devices
 * re-issue, and the bank's syndrome finds its transaction again
 * (MMU500ContextBank.stall_orphan).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "mmu500-internal.h"
#include "trace.h"

static bool req_queued(MMU500State *s, RecoverableDMAReq *req)
{
    return req->iommu == s;
}

void mmu500_stall_enqueue(MMU500State *s, RecoverableDMAReq *req,
                          const MMU500Txn *txn, const MMU500Result *res)
{
    MMU500ContextBank *bank = &s->cb[res->stall_cb];

    req->iommu = s;
    req->stream = REQ_STREAM(txn->tbu, res->stall_cb);
    req->tag = TAG_STALLED;
    if (res->recorded) {
        QTAILQ_INSERT_HEAD(&bank->stalled, req, link);
        s->stats.stalls++;
    } else {
        QTAILQ_INSERT_TAIL(&bank->stalled, req, link);
    }
    bank->num_stalled++;
    s->num_stalled++;
    mmu500_tbu_enter(s, txn->tbu);
    s->stats.stalled_peak = MAX(s->stats.stalled_peak, s->num_stalled);
    trace_mmu500_stall(res->stall_cb, txn->sid, txn->va, res->recorded,
                       bank->num_stalled);
}

static void stall_take(MMU500State *s, RecoverableDMAReq *req, uint32_t tag)
{
    MMU500ContextBank *bank = &s->cb[REQ_CB(req)];

    QTAILQ_REMOVE(&bank->stalled, req, link);
    bank->num_stalled--;
    s->num_stalled--;
    mmu500_tbu_leave(s, REQ_TBU(req));
    req->tag = tag;
    QTAILQ_INSERT_TAIL(&s->resume_queue, req, link);
    if (tag == TAG_RETRY) {
        s->stats.retries++;
    } else {
        s->stats.terminations++;
    }
}

void mmu500_stall_resume(MMU500State *s, int cb, bool terminate)
{
    MMU500ContextBank *bank = &s->cb[cb];
    RecoverableDMAReq *req;
    bool recorded = !bank->stall_orphan;

    if (!FIELD_EX32(bank->fsr, FSR, SS)) {
        return;                 /* nothing to resume */
    }
    trace_mmu500_resume(cb, terminate, bank->num_stalled);
    bank->fsr = FIELD_DP32(bank->fsr, FSR, SS, 0);
    bank->stall_orphan = false;

    while ((req = QTAILQ_FIRST(&bank->stalled))) {
        uint32_t tag = TAG_RETRY;

        if (recorded && terminate) {
            tag = FIELD_EX32(bank->sctlr, SCTLR, CFRE) ? TAG_ABORT
                                                       : TAG_RAZWI;
        }
        recorded = false;
        stall_take(s, req, tag);
    }
}

void mmu500_stall_cancel(MMU500State *s, RecoverableDMAReq *req)
{
    MMU500ContextBank *bank;

    if (!req_queued(s, req)) {
        return;
    }
    switch (req->tag) {
    case TAG_INPUT:
    case TAG_TIMED:
        mmu500_tbu_remove(s, req);
        break;
    case TAG_STALLED:
        bank = &s->cb[REQ_CB(req)];
        if (req == QTAILQ_FIRST(&bank->stalled) &&
            FIELD_EX32(bank->fsr, FSR, SS) && !bank->stall_orphan) {
            /*
             * The guest still sees FSR.SS and will resume it; what is held
             * behind stays held until then.
             */
            bank->stall_orphan = true;
        }
        QTAILQ_REMOVE(&bank->stalled, req, link);
        bank->num_stalled--;
        s->num_stalled--;
        mmu500_tbu_leave(s, REQ_TBU(req));
        break;
    default:
        QTAILQ_REMOVE(&s->resume_queue, req, link);
        break;
    }
    req->iommu = NULL;
    /* somebody may enter in its place */
    qemu_bh_schedule(s->run_bh);
}

/* Reset: what devices did not cancel ends here. */
void mmu500_stall_abort_all(MMU500State *s)
{
    RecoverableDMAReq *req;
    unsigned i;

    for (i = 0; i < s->num_cb; i++) {
        while ((req = QTAILQ_FIRST(&s->cb[i].stalled))) {
            stall_take(s, req, TAG_ABORT);
        }
        s->cb[i].stall_orphan = false;
        s->cb[i].fsr = FIELD_DP32(s->cb[i].fsr, FSR, SS, 0);
    }
    mmu500_tbu_abort_all(s);
}

void mmu500_stall_run(MMU500State *s)
{
    static const RecoverableDMAResult how[] = {
        [TAG_RETRY] = RECOVERABLE_DMA_RETRY,
        [TAG_ABORT] = RECOVERABLE_DMA_ABORT,
        [TAG_RAZWI] = RECOVERABLE_DMA_RAZWI,
    };
    RecoverableDMAReq *req;

    /*
     * A resumed device does DMA, which may write this device's registers
     * and resume more: the outer call gets to those.
     */
    if (s->resuming) {
        return;
    }
    s->resuming = true;
    for (;;) {
        qemu_mutex_lock(&s->lock);
        req = QTAILQ_FIRST(&s->resume_queue);
        if (req) {
            QTAILQ_REMOVE(&s->resume_queue, req, link);
        } else {
            req = mmu500_tbu_next(s);
        }
        if (req) {
            req->iommu = NULL;
        }
        qemu_mutex_unlock(&s->lock);
        if (!req) {
            break;
        }
        req->resume(req, how[req->tag]);
    }
    s->resuming = false;
}
