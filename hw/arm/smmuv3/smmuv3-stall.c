/*
 * Arm SMMUv3: stalling faults
 *
 * A faulting transaction of a stream or substream that is configured so is
 * suspended. Its event record carries a STAG; CMD_RESUME with that StreamID
 * and STAG retries or terminates it, CMD_STALL_TERM terminates all of a
 * stream. IHI 0070, 3.12.2, 4.6 and 4.7.
 *
 * A stall whose record cannot be written yet is not lost, it waits. When it
 * gets its turn the transaction is translated again first: the record never
 * tells of a fault that an invalidation has made stale.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/arm/smmuv3.h"
#include "smmuv3-ext.h"
#include "trace.h"

/* RecoverableDMAReq.state */
enum {
    REQ_IDLE,
    REQ_WAITING,   /* in stall_waiting */
    REQ_STALLED,   /* recorded: in stalls by its tag */
    REQ_DONE,      /* in done; tag is the result */
};

/* A STAG in use */
struct SMMUv3Stall {
    uint32_t sid;
    RecoverableDMAReq *req;  /* NULL: the device gave it up */
};

static void req_access(const RecoverableDMAReq *req, SMMUv3Access *a)
{
    *a = (SMMUv3Access) {
        .sdev = req->iommu,
        .sid = req->stream,
        .addr = req->iova,
        .flag = req->access,
        .ssid = req->pasid_valid ? req->pasid : 0,
        .ssv = req->pasid_valid,
    };
}

static void req_done(SMMUv3State *s, RecoverableDMAReq *req,
                     RecoverableDMAResult how)
{
    req->state = REQ_DONE;
    req->tag = how;
    QTAILQ_INSERT_TAIL(&s->feat.done, req, link);
    s->feat.n_resumed++;
}

static bool can_record(SMMUv3State *s)
{
    return smmuv3_eventq_enabled(s) && !smmuv3_q_full(&s->eventq) &&
           g_hash_table_size(s->feat.stalls) < s->feat.stall_max;
}

/* STAGs go round, so that a late response does not meet a new stall. */
static uint16_t alloc_stag(SMMUv3State *s)
{
    while (g_hash_table_contains(s->feat.stalls,
                                 GUINT_TO_POINTER(s->feat.next_stag))) {
        s->feat.next_stag++;
    }
    return s->feat.next_stag++;
}

static void record_stall(SMMUv3State *s, const SMMUv3Access *a,
                         SMMUv3Answer *ans, RecoverableDMAReq *req)
{
    SMMUv3Stall *stall = g_new0(SMMUv3Stall, 1);
    uint16_t stag = alloc_stag(s);

    stall->sid = a->sid;
    stall->req = req;
    req->state = REQ_STALLED;
    req->tag = stag;
    g_hash_table_insert(s->feat.stalls, GUINT_TO_POINTER(stag), stall);

    /* The STAG is valid from before software can see the record */
    ans->event.u.f_walk_eabt.stall = true;
    ans->event.u.f_walk_eabt.stag = stag;
    trace_smmuv3_stall(a->sid, a->ssid, a->addr, stag);
    smmuv3_record_answer(s, a, ans);
}

void smmuv3_stall_submit(SMMUv3State *s, const SMMUv3Access *a,
                         SMMUv3Answer *ans, RecoverableDMAReq *req)
{
    req->iommu = a->sdev;
    req->stream = a->sid;
    s->feat.n_stalled++;

    if (QTAILQ_EMPTY(&s->feat.stall_waiting) && can_record(s)) {
        record_stall(s, a, ans, req);
        return;
    }
    trace_smmuv3_stall_wait(a->sid, a->ssid, a->addr);
    req->state = REQ_WAITING;
    QTAILQ_INSERT_TAIL(&s->feat.stall_waiting, req, link);
}

void smmuv3_stall_pump(SMMUv3State *s)
{
    RecoverableDMAReq *req;
    SMMUv3Access a;
    SMMUv3Answer ans;

    while ((req = QTAILQ_FIRST(&s->feat.stall_waiting)) && can_record(s)) {
        QTAILQ_REMOVE(&s->feat.stall_waiting, req, link);
        req_access(req, &a);
        smmuv3_access(s, &a, &ans);
        if (ans.status != SMMU_TRANS_ERROR) {
            /* translates, bypasses or aborts by now: the retry finds out */
            req_done(s, req, RECOVERABLE_DMA_RETRY);
        } else if (ans.event.can_stall) {
            record_stall(s, &a, &ans, req);
        } else {
            smmuv3_record_answer(s, &a, &ans);
            req_done(s, req, RECOVERABLE_DMA_ABORT);
        }
    }
}

/* Ends a recorded stall; its STAG is free from here on. */
static void end_stall(SMMUv3State *s, uint32_t stag, SMMUv3Stall *stall,
                      RecoverableDMAResult how)
{
    trace_smmuv3_stall_end(stall->sid, stag, how);
    if (stall->req) {
        req_done(s, stall->req, how);
    }
}

SMMUCmdError smmuv3_stall_resume(SMMUv3State *s, Cmd *cmd)
{
    gpointer key = GUINT_TO_POINTER(CMD_RESUME_STAG(cmd));
    SMMUv3Stall *stall;

    if (s->feat.stall_model == SMMUV3_STALL_NONE || CMD_SSEC(cmd)) {
        return SMMU_CERROR_ILL;
    }
    stall = g_hash_table_lookup(s->feat.stalls, key);
    if (!stall || stall->sid != CMD_SID(cmd)) {
        /* not an error: the stall may have been terminated meanwhile */
        trace_smmuv3_stall_unknown(CMD_SID(cmd), CMD_RESUME_STAG(cmd));
        return SMMU_CERROR_NONE;
    }
    /* TERM_MODEL is 1: Ab is ignored, a termination is always an abort */
    end_stall(s, CMD_RESUME_STAG(cmd), stall,
              CMD_RESUME_AC(cmd) ? RECOVERABLE_DMA_RETRY
                                 : RECOVERABLE_DMA_ABORT);
    g_hash_table_remove(s->feat.stalls, key);
    smmuv3_stall_pump(s);
    return SMMU_CERROR_NONE;
}

/* Terminates the stalls of @sid, or all where @all is set. */
static void terminate(SMMUv3State *s, uint32_t sid, bool all)
{
    RecoverableDMAReq *req, *next;
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, s->feat.stalls);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        SMMUv3Stall *stall = value;

        if (all || stall->sid == sid) {
            end_stall(s, GPOINTER_TO_UINT(key), stall, RECOVERABLE_DMA_ABORT);
            g_hash_table_iter_remove(&iter);
        }
    }
    QTAILQ_FOREACH_SAFE(req, &s->feat.stall_waiting, link, next) {
        if (all || req->stream == sid) {
            QTAILQ_REMOVE(&s->feat.stall_waiting, req, link);
            req_done(s, req, RECOVERABLE_DMA_ABORT);
        }
    }
}

SMMUCmdError smmuv3_stall_term(SMMUv3State *s, Cmd *cmd)
{
    if (s->feat.stall_model == SMMUV3_STALL_NONE || CMD_SSEC(cmd)) {
        return SMMU_CERROR_ILL;
    }
    terminate(s, CMD_SID(cmd), false);
    smmuv3_stall_pump(s);
    return SMMU_CERROR_NONE;
}

void smmuv3_stall_terminate_all(SMMUv3State *s)
{
    terminate(s, 0, true);
}

void smmuv3_stall_cancel(SMMUv3State *s, RecoverableDMAReq *req)
{
    SMMUv3Stall *stall;

    switch (req->state) {
    case REQ_WAITING:
        QTAILQ_REMOVE(&s->feat.stall_waiting, req, link);
        break;
    case REQ_STALLED:
        trace_smmuv3_stall_cancel(req->stream, req->tag);
        stall = g_hash_table_lookup(s->feat.stalls, GUINT_TO_POINTER(req->tag));
        if (stall && stall->req == req) {
            /* software still owes a response: the STAG stays in use */
            stall->req = NULL;
        }
        break;
    case REQ_DONE:
        QTAILQ_REMOVE(&s->feat.done, req, link);
        break;
    default:
        break;
    }
    req->state = REQ_IDLE;
}

uint32_t smmuv3_stall_sid(const SMMUv3Stall *stall)
{
    return stall->sid;
}

void smmuv3_stall_insert(SMMUv3State *s, uint16_t stag, uint32_t sid)
{
    SMMUv3Stall *stall = g_new0(SMMUv3Stall, 1);

    stall->sid = sid;
    g_hash_table_insert(s->feat.stalls, GUINT_TO_POINTER(stag), stall);
}
