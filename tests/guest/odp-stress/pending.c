/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * N operations on N queue pairs fault and stay faulted, each on a page of its
 * own that nobody brings until --release FILE exists: time enough for a
 * snapshot. Then all complete, with the right bytes, each atomic once.
 *
 * Prints "holding N" when the device can do nothing but wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hold.h"
#include "op.h"

enum { PART = 1000, WORD = 2048, MARK = 3000 };

struct pending {
    struct vdev *v;
    const struct options *opt;
    unsigned n;
    struct hold hold;
    size_t page;
    struct ibv_qp *(*qp)[2];
    struct ibv_cq *cq;
    struct region *pinned;          /* an area for each */
    struct ibv_mr *mr;              /* of the held pages */
};

enum kind { P_WRITE, P_READ, P_FADD, P_CSWAP, P_SOURCE, P_KINDS };

/* What FETCH_ADD and CMP_SWAP find: it comes out of the generator. */
static uint64_t word_of(struct pending *t, unsigned i)
{
    uint64_t w;

    pattern_fill(&w, t->opt->seed, i * t->page + WORD, 8);
    return w;
}

static uint64_t new_word(struct pending *t, unsigned i)
{
    return i % P_KINDS == P_FADD ? word_of(t, i) + 1000 + i : 5000 + i;
}

static void post(struct pending *t, unsigned i)
{
    uint8_t *page = t->hold.mem + i * t->page;
    uint8_t *area = t->pinned->dev + (size_t)i * AREA_BYTES;
    struct ibv_sge sge = { (uintptr_t)area, PART, t->pinned->mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .wr_id = i, .sg_list = &sge, .num_sge = 1,
        .send_flags = IBV_SEND_SIGNALED,
    };

    wr.wr.rdma.remote_addr = (uintptr_t)page;
    wr.wr.rdma.rkey = t->mr->rkey;
    switch (i % P_KINDS) {
    case P_WRITE:                   /* to the held page */
        wr.opcode = IBV_WR_RDMA_WRITE;
        break;
    case P_READ:                    /* of it */
        wr.opcode = IBV_WR_RDMA_READ;
        break;
    case P_SOURCE:                  /* the requester's own memory is held */
        wr.opcode = IBV_WR_RDMA_WRITE;
        sge.addr = (uintptr_t)page;
        sge.lkey = t->mr->lkey;
        wr.wr.rdma.remote_addr = (uintptr_t)area;
        wr.wr.rdma.rkey = t->pinned->mr->rkey;
        break;
    default:
        sge.length = 8;
        wr.opcode = i % P_KINDS == P_FADD ? IBV_WR_ATOMIC_FETCH_AND_ADD :
                    IBV_WR_ATOMIC_CMP_AND_SWP;
        wr.wr.atomic.remote_addr = (uintptr_t)page + WORD;
        wr.wr.atomic.rkey = t->mr->rkey;
        wr.wr.atomic.compare_add = i % P_KINDS == P_FADD ? 1000 + i :
                                   word_of(t, i);
        wr.wr.atomic.swap = new_word(t, i);
    }
    if (ibv_post_send(t->qp[i][0], &wr, &bad)) {
        die("posting a send failed");
    }
}

static unsigned check(struct pending *t, unsigned i)
{
    uint8_t *page = t->hold.mem + i * t->page;
    uint8_t *area = t->pinned->cpu + (size_t)i * AREA_BYTES;
    uint64_t seed = t->opt->seed, value;
    long at;

    switch (i % P_KINDS) {
    case P_WRITE:
        at = pattern_check(page, i, 0, PART);
        break;
    case P_READ:
    case P_SOURCE:
        at = pattern_check(area, seed, i * t->page, PART);
        break;
    default:
        memcpy(&value, area, 8);
        if (value != word_of(t, i)) {
            printf("FAIL: atomic %u answered 0x%llx, not 0x%llx\n", i,
                   (unsigned long long)value,
                   (unsigned long long)word_of(t, i));
            return 1;
        }
        memcpy(&value, page + WORD, 8);
        if (value != new_word(t, i)) {
            printf("FAIL: atomic %u left 0x%llx, not 0x%llx: executed twice "
                   "or not at all\n", i, (unsigned long long)value,
                   (unsigned long long)new_word(t, i));
            return 1;
        }
        at = pattern_check(page, seed, i * t->page, WORD);
    }
    if (at < 0) {
        /* Nothing else in the page changed. */
        at = pattern_check(page + MARK, seed, i * t->page + MARK,
                           t->page - MARK);
    }
    if (at >= 0) {
        printf("FAIL: wrong byte at %ld of operation %u\n", at, i);
        return 1;
    }
    return 0;
}

/* Until nothing new has happened for a while: all that can fault has. */
static void settle(struct pending *t)
{
    uint32_t last = 0;
    double since = now(), limit = now() + t->opt->timeout;

    while (now() - since < 1.0) {
        uint32_t waiting = t->hold.counts->waiting;

        if (waiting != last) {
            last = waiting;
            since = now();
        }
        if (!waiting) {
            since = now();
            if (now() > limit) {
                die("no fault reached the memory");
            }
        }
        usleep(10000);
    }
}

int mode_pending(struct vdev *v, const struct options *opt)
{
    struct pending t = { .v = v, .opt = opt, .n = opt->pending };
    unsigned char *came;
    unsigned bad = 0;
    struct ibv_wc wc;

    if (!vdev_has_odp(v)) {
        die("the device has no ODP");
    }
    t.page = sysconf(_SC_PAGESIZE);
    (opt->uffd ? hold_open_uffd : hold_open)(&t.hold, t.n * t.page,
                                             opt->seed);
    came = calloc(1, t.n);
    t.cq = ibv_create_cq(v->ctx, 2 * t.n, NULL, NULL, 0);
    t.qp = calloc(t.n, sizeof(*t.qp));
    t.pinned = region_new(v, MEM_FILE, REG_PINNED, false, t.n, NULL);
    t.mr = mr_reg(v, t.hold.mem, t.hold.len, IBV_ACCESS_ON_DEMAND |
                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    for (unsigned i = 0; i < t.n; i++) {
        struct qp_conf conf = { .type = IBV_QPT_RC, .send_cq = t.cq,
                                .recv_cq = t.cq, .depth = 4, .sge = 1 };

        qp_pair(v, &conf, t.qp[i]);
        pattern_fill(t.pinned->cpu + (size_t)i * AREA_BYTES, i, 0, PART);
    }
    for (unsigned i = 0; i < t.n; i++) {
        post(&t, i);
    }
    settle(&t);
    if (ibv_poll_cq(t.cq, 1, &wc)) {
        die("operation %u completed on a page that nobody has brought: %s",
            (unsigned)wc.wr_id, ibv_wc_status_str(wc.status));
    }
    printf("holding %u (%u pages asked for)\n", t.n,
           t.hold.counts->waiting);
    while (opt->flag_file && access(opt->flag_file, F_OK)) {
        usleep(20000);
    }
    if (ibv_poll_cq(t.cq, 1, &wc)) {
        die("operation %u completed while its page was held: %s",
            (unsigned)wc.wr_id, ibv_wc_status_str(wc.status));
    }
    hold_release(&t.hold);
    for (unsigned i = 0; i < t.n; i++) {
        if (!cq_wait(t.cq, &wc, opt->timeout)) {
            die("lost completion: %u of %u came", i, t.n);
        }
        if (wc.status != IBV_WC_SUCCESS || wc.wr_id >= t.n ||
            came[wc.wr_id]++) {
            die("dead QP: operation %u on QP 0x%x: %s (or it came twice)",
                (unsigned)wc.wr_id, wc.qp_num, ibv_wc_status_str(wc.status));
        }
    }
    for (unsigned i = 0; i < t.n; i++) {
        bad += check(&t, i);
    }
    if (ibv_poll_cq(t.cq, 1, &wc)) {
        die("one completion too many");
    }
    printf("released: %u operations completed, %u wrong\n", t.n, bad);
    for (unsigned i = 0; i < t.n; i++) {
        ibv_destroy_qp(t.qp[i][0]);
        ibv_destroy_qp(t.qp[i][1]);
    }
    ibv_dereg_mr(t.mr);
    region_free(t.pinned);
    ibv_destroy_cq(t.cq);
    hold_close(&t.hold);
    free(t.qp);
    free(came);
    return bad != 0;
}
