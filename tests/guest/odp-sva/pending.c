/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * N accesses through a portal, each to a page of its own that nobody brings
 * until --release FILE exists: time enough for a snapshot. Then all complete,
 * with the right bytes, each atomic once.
 *
 * Prints "holding N" when the device can do nothing but wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hold.h"
#include "sva.h"

enum { PART = 1000, WORD = 2048, LIMIT = 240, SEED = 5 };

enum kind { READ, WRITE, FADD, KINDS };

struct pending {
    unsigned n;
    size_t page;
    struct vdev v;
    struct sva_portal p;
    struct hold hold;
    struct link *l;
    uint8_t *area;              /* a page for each */
    struct ibv_mr *mr;
    uint32_t key;
};

static uint64_t word_of(const struct pending *t, unsigned i)
{
    uint64_t w;

    pattern_fill(&w, SEED, i * t->page + WORD, 8);
    return w;
}

static void post(struct pending *t, unsigned i)
{
    struct request r = {
        .local = t->area + i * t->page, .lkey = t->mr->lkey,
        .remote = t->hold.mem + i * t->page, .rkey = t->key, .len = PART,
    };

    switch (i % KINDS) {
    case READ:
        r.opcode = IBV_WR_RDMA_READ;
        break;
    case WRITE:
        r.opcode = IBV_WR_RDMA_WRITE;
        break;
    default:
        r.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        r.remote += WORD;
        r.len = 8;
        r.compare_add = 100 + i;
    }
    link_post(&t->l[i], &r);
}

static bool right(struct pending *t, unsigned i)
{
    uint8_t *held = t->hold.mem + i * t->page;
    uint8_t *area = t->area + i * t->page;
    uint64_t got;

    switch (i % KINDS) {
    case READ:
        return pattern_check(area, SEED, i * t->page, PART) < 0;
    case WRITE:
        return pattern_check(held, 1000 + i, 0, PART) < 0;
    default:
        memcpy(&got, area, 8);
        if (got != word_of(t, i)) {
            return false;
        }
        memcpy(&got, held + WORD, 8);
        return got == word_of(t, i) + 100 + i;
    }
}

static void wait_pending(struct pending *t)
{
    double limit = now() + LIMIT;
    struct sva_counters c;

    for (;;) {
        sva_counters(&t->p, &c);
        if (c.pending == t->n && t->hold.counts->waiting) {
            return;
        }
        if (now() > limit) {
            die("only %u accesses wait", (unsigned)c.pending);
        }
        usleep(10000);
    }
}

int mode_pending(const struct options *opt)
{
    struct pending t = { .n = opt->iters, .page = page_size() };
    unsigned wrong = 0;
    struct ibv_wc wc;

    hold_open(&t.hold, t.n * t.page, SEED);
    portal_or_die(&t.p, opt->portal[0]);
    vdev_open(&t.v, opt->device, -1);
    t.area = fresh(t.n * t.page);
    t.mr = mr_reg(&t.v, t.area, t.n * t.page, IBV_ACCESS_LOCAL_WRITE);
    t.key = key_or_die(&t.p, t.v.pd, SVA_ALL);
    t.l = calloc(t.n, sizeof(*t.l));
    for (unsigned i = 0; i < t.n; i++) {
        link_open(&t.l[i], &t.v, &t.v);
        pattern_fill(t.area + i * t.page, 1000 + i, 0, PART);
    }
    /*
     * From the first fault to the last answer nothing here may change the
     * address space: the kernel brings the device's pages under its lock.
     */
    for (unsigned i = 0; i < t.n; i++) {
        post(&t, i);
    }
    wait_pending(&t);
    printf("holding %u\n", t.n);
    while (opt->release && access(opt->release, F_OK)) {
        usleep(20000);
    }
    for (unsigned i = 0; i < t.n; i++) {
        if (ibv_poll_cq(t.l[i].cq[0], 1, &wc)) {
            die("access %u ended while its page was held: %s", i,
                ibv_wc_status_str(wc.status));
        }
    }
    hold_release(&t.hold);
    for (unsigned i = 0; i < t.n; i++) {
        enum ibv_wc_status got = link_wait(&t.l[i]);

        if (got != IBV_WC_SUCCESS || !right(&t, i)) {
            printf("access %u: %s\n", i, ibv_wc_status_str(got));
            wrong++;
        }
    }
    printf("released: %u completed, %u wrong\n", t.n, wrong);
    for (unsigned i = 0; i < t.n; i++) {
        link_close(&t.l[i]);
    }
    sva_portal_close(&t.p);
    hold_close(&t.hold);
    return wrong != 0;
}
