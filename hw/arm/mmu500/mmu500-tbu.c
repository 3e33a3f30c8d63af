/*
 * MMU-500: transactions that wait in a TBU
 *
 * A TBU accepts as many transactions as may be outstanding; a transaction is
 * outstanding while it is stalled or, with timing=on, takes its time. Others
 * stay at the input. Only requests of devices that can wait come here. As
 * for stalled ones, nothing of it migrates: devices issue again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "mmu500-internal.h"
#include "trace.h"

/* RecoverableDMAReq.state of a request that took its time, .due: for what */
#define STATE_PAID 1

static void tbu_timer_arm(MMU500State *s)
{
    RecoverableDMAReq *req = QTAILQ_FIRST(&s->timed);

    if (req) {
        timer_mod_ns(s->timer, req->due);
    } else {
        timer_del(s->timer);
    }
}

static void tbu_timer(void *opaque)
{
    MMU500State *s = opaque;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    RecoverableDMAReq *req;

    WITH_QEMU_LOCK_GUARD(&s->lock) {
        while ((req = QTAILQ_FIRST(&s->timed)) && req->due <= now) {
            QTAILQ_REMOVE(&s->timed, req, link);
            mmu500_tbu_leave(s, REQ_TBU(req));
            req->tag = TAG_RETRY;
            req->state = STATE_PAID;
            req->due = req->iova;
            QTAILQ_INSERT_TAIL(&s->resume_queue, req, link);
        }
        tbu_timer_arm(s);
    }
    mmu500_stall_run(s);
}

static void tbu_run_bh(void *opaque)
{
    mmu500_stall_run(opaque);
}

void mmu500_tbu_init(MMU500State *s)
{
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, tbu_timer, s);
    s->run_bh = qemu_bh_new_guarded(tbu_run_bh, s,
                                    &DEVICE(s)->mem_reentrancy_guard);
}

void mmu500_tbu_free(MMU500State *s)
{
    timer_free(s->timer);
    if (s->run_bh) {
        qemu_bh_delete(s->run_bh);
    }
}

/* What time left behind. Requests are not touched. */
void mmu500_tbu_reset(MMU500State *s)
{
    unsigned i;

    for (i = 0; i < MMU500_MAX_TBU; i++) {
        memset(s->tbu[i].queue_free, 0, sizeof(s->tbu[i].queue_free));
        memset(s->tbu[i].walk_free, 0, sizeof(s->tbu[i].walk_free));
    }
}

void mmu500_tbu_enter(MMU500State *s, uint32_t tbu)
{
    uint32_t n = ++s->tbu[tbu].outstanding;

    s->stats.outstanding_peak = MAX(s->stats.outstanding_peak, n);
}

void mmu500_tbu_leave(MMU500State *s, uint32_t tbu)
{
    s->tbu[tbu].outstanding--;
}

static void tbu_take_time(MMU500State *s, RecoverableDMAReq *req,
                          const MMU500Txn *txn, int64_t now, int64_t due)
{
    RecoverableDMAReq *before;

    s->stats.timed++;
    s->stats.latency_ns += due - now;
    req->iommu = s;
    req->tag = TAG_TIMED;
    req->stream = REQ_STREAM(txn->tbu, 0);
    req->due = due;
    QTAILQ_FOREACH_REVERSE(before, &s->timed, link) {
        if (before->due <= due) {
            break;
        }
    }
    if (before) {
        QTAILQ_INSERT_AFTER(&s->timed, before, req, link);
    } else {
        QTAILQ_INSERT_HEAD(&s->timed, req, link);
        tbu_timer_arm(s);
    }
    mmu500_tbu_enter(s, txn->tbu);
    trace_mmu500_timed(txn->sid, txn->va, due - now);
}

bool mmu500_tbu_arrive(MMU500State *s, RecoverableDMAReq *req, MMU500Txn *txn)
{
    bool paid = req->state == STATE_PAID && req->due == req->iova;
    MMU500TBU *tbu = &s->tbu[txn->tbu];

    req->state = 0;
    if (paid) {
        txn->paid = true;
        return false;
    }
    if (tbu->outstanding >= s->tbu_outstanding) {
        s->stats.outstanding_waits++;
        mmu500_pmu_event(s, txn, PMU_EVENT_INPUT_WAIT);
        req->iommu = s;
        req->tag = TAG_INPUT;
        req->stream = REQ_STREAM(txn->tbu, 0);
        QTAILQ_INSERT_TAIL(&tbu->input, req, link);
        trace_mmu500_input_wait(txn->sid, txn->va, tbu->outstanding);
        return true;
    }
    if (s->timing) {
        int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        MMU500Cost cost = { .now = now, .done = now };
        MMU500Txn dry = *txn;
        MMU500Result res;

        dry.cost = &cost;
        mmu500_translate(s, &dry, &res);
        if (cost.done > now) {
            tbu_take_time(s, req, txn, now, cost.done);
            return true;
        }
        /* What passes by costs nothing, but has been counted. */
        txn->paid = true;
    }
    return false;
}

RecoverableDMAReq *mmu500_tbu_next(MMU500State *s)
{
    unsigned i;

    for (i = 0; i < s->num_tbu; i++) {
        RecoverableDMAReq *req = QTAILQ_FIRST(&s->tbu[i].input);

        if (req && s->tbu[i].outstanding < s->tbu_outstanding) {
            QTAILQ_REMOVE(&s->tbu[i].input, req, link);
            req->tag = TAG_RETRY;
            return req;
        }
    }
    return NULL;
}

void mmu500_tbu_remove(MMU500State *s, RecoverableDMAReq *req)
{
    if (req->tag == TAG_INPUT) {
        QTAILQ_REMOVE(&s->tbu[REQ_TBU(req)].input, req, link);
    } else {
        QTAILQ_REMOVE(&s->timed, req, link);
        mmu500_tbu_leave(s, REQ_TBU(req));
        tbu_timer_arm(s);
    }
}

void mmu500_tbu_abort_all(MMU500State *s)
{
    RecoverableDMAReq *req;
    unsigned i;

    while ((req = QTAILQ_FIRST(&s->timed))) {
        mmu500_tbu_remove(s, req);
        req->tag = TAG_ABORT;
        QTAILQ_INSERT_TAIL(&s->resume_queue, req, link);
    }
    for (i = 0; i < s->num_tbu; i++) {
        while ((req = QTAILQ_FIRST(&s->tbu[i].input))) {
            mmu500_tbu_remove(s, req);
            req->tag = TAG_ABORT;
            QTAILQ_INSERT_TAIL(&s->resume_queue, req, link);
        }
    }
}
