/*
 * MMU-500: what a transaction costs in virtual time (timing=on)
 *
 * The structure (a lookup in the TBU, a queue of misses for each TBU, a
 * number of walks at a time for each TBU) is the part's; the numbers and
 * their sources are in docs/specs/mmu500.md. All of a transaction's times are
 * found when it arrives: transactions are served in the order of arrival, so
 * "when is a slot free" says it all.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mmu500-internal.h"

/* ns; a cycle takes 2 ns */
enum {
    COST_UTLB = 2 * 2,          /* lookup in the micro TLB */
    COST_TRIP = 4 * 2,          /* TBU to TCU, or back */
    COST_TCU = 4 * 2,           /* lookup in macro TLB and walk cache */
    COST_DESCRIPTOR = 100,      /* a descriptor from memory */
};

/* The slot that is free first at or after @at, and that time. */
static unsigned slot_find(const int64_t *slots, unsigned n, int64_t *at,
                          uint64_t *peak)
{
    unsigned i, first = 0, busy = 0;

    for (i = 0; i < n; i++) {
        busy += slots[i] > *at;
        if (slots[i] < slots[first]) {
            first = i;
        }
    }
    *at = MAX(*at, slots[first]);
    *peak = MAX(*peak, MIN(busy + 1, n));
    return first;
}

/* A miss goes through the TBU's queue to the TCU. @at: when it is there */
static unsigned queue_enter(MMU500State *s, const MMU500Txn *txn, int64_t *at)
{
    int64_t asked = txn->cost->now + COST_UTLB;
    unsigned slot;

    *at = asked;
    slot = slot_find(s->tbu[txn->tbu].queue_free, s->tbu_queue_depth, at,
                     &s->stats.queue_peak);
    if (*at > asked) {
        s->stats.queue_waits++;
        s->stats.queue_wait_ns += *at - asked;
        mmu500_pmu_event(s, txn, PMU_EVENT_QUEUE_WAIT);
    }
    *at += COST_TRIP + COST_TCU;
    return slot;
}

void mmu500_time_utlb_hit(MMU500State *s, const MMU500Txn *txn,
                          const MMU500Trans *hit)
{
    if (txn->cost) {
        /* or when the walk that brings it is done */
        txn->cost->done = MAX(txn->cost->now + COST_UTLB, hit->ready);
    }
}

void mmu500_time_mtlb_hit(MMU500State *s, const MMU500Txn *txn,
                          MMU500Trans *t)
{
    int64_t at;
    unsigned slot;

    if (txn->cost) {
        slot = queue_enter(s, txn, &at);
        t->ready = MAX(at, t->ready) + COST_TRIP;
        s->tbu[txn->tbu].queue_free[slot] = t->ready;
        txn->cost->done = t->ready;
    }
}

void mmu500_time_walk(MMU500State *s, const MMU500Txn *txn,
                      uint64_t descriptors, MMU500Trans *t)
{
    MMU500TBU *tbu = &s->tbu[txn->tbu];
    int64_t asked, at;
    unsigned queue, walk;

    if (!txn->cost) {
        return;
    }
    queue = queue_enter(s, txn, &asked);
    at = asked;
    walk = slot_find(tbu->walk_free, s->ptw_parallelism, &at,
                     &s->stats.walks_peak);
    if (at > asked) {
        s->stats.walk_waits++;
        s->stats.walk_wait_ns += at - asked;
        mmu500_pmu_event(s, txn, PMU_EVENT_WALK_WAIT);
    }
    at += descriptors * COST_DESCRIPTOR;
    tbu->walk_free[walk] = at;
    txn->cost->walk = &tbu->walk_free[walk];
    t->ready = at + COST_TRIP;
    tbu->queue_free[queue] = t->ready;
    txn->cost->done = t->ready;
}

/*
 * Nobody waits for a prefetch: it goes on in the slot of the walk that
 * started it. A read from memory brings a line of eight descriptors.
 */
void mmu500_time_prefetch(MMU500State *s, const MMU500Txn *txn,
                          uint64_t descriptors, MMU500Trans *t)
{
    uint64_t reads = descriptors - 1;

    if (!txn->cost || !txn->cost->walk) {
        return;
    }
    reads += !((t->va / (t->mask + 1)) % 8);
    *txn->cost->walk += reads * COST_DESCRIPTOR;
    t->ready = *txn->cost->walk + COST_TRIP;
}
