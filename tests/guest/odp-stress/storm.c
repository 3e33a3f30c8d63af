/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many queue pairs fault on one page at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "op.h"

enum { CELL = 64 };

struct storm {
    struct vdev *v;
    const struct options *opt;
    unsigned pairs;
    struct ibv_qp *(*qp)[2];
    struct ibv_cq *cq;
    struct region *src, *dst;       /* one page each counts */
};

static void post(struct storm *t, unsigned i, unsigned round)
{
    static const enum ibv_wr_opcode opcodes[] = {
        IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD
    };
    unsigned cell = i * CELL;
    struct ibv_sge sge = { .length = CELL - 8 };
    struct ibv_send_wr *bad, wr = {
        .wr_id = i, .sg_list = &sge, .num_sge = 1,
        .opcode = opcodes[(i + round) % ARRAY_SIZE(opcodes)],
        .send_flags = IBV_SEND_SIGNALED,
    };
    uintptr_t src = (uintptr_t)t->src->dev + cell;
    uintptr_t dst = (uintptr_t)t->dst->dev + cell;

    switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE:
        sge.addr = src;
        sge.lkey = t->src->mr->lkey;
        wr.wr.rdma.remote_addr = dst;
        wr.wr.rdma.rkey = t->dst->mr->rkey;
        break;
    case IBV_WR_RDMA_READ:
        sge.addr = dst;
        sge.lkey = t->dst->mr->lkey;
        wr.wr.rdma.remote_addr = src;
        wr.wr.rdma.rkey = t->src->mr->rkey;
        break;
    default:
        /* The first word of all counts; the answer goes to the own cell. */
        sge.addr = dst + CELL - 8;
        sge.lkey = t->dst->mr->lkey;
        sge.length = 8;
        wr.wr.atomic.remote_addr = (uintptr_t)t->dst->dev +
                                   (size_t)t->pairs * CELL;
        wr.wr.atomic.rkey = t->dst->mr->rkey;
        wr.wr.atomic.compare_add = 1;
    }
    if (ibv_post_send(t->qp[i][0], &wr, &bad)) {
        die("posting a send failed");
    }
}

static uint64_t seed_of(struct storm *t, unsigned i, unsigned round)
{
    return t->opt->seed + (uint64_t)round * 65536 + i;
}

static void check(struct storm *t, unsigned round, uint64_t *count)
{
    uint64_t low = *count, value, seen = 0;
    unsigned char answered[256] = { 0 };

    for (unsigned i = 0; i < t->pairs; i++) {
        uint8_t *cell = t->dst->cpu + i * CELL;
        long at = -1;

        if ((i + round) % 3 < 2) {
            at = pattern_check(cell, seed_of(t, i, round), 0, CELL - 8);
        } else {
            memcpy(&value, cell + CELL - 8, 8);
            if (value - low >= t->pairs || answered[value - low]++) {
                die("wrong byte: round %u, QP 0x%x: FETCH_ADD answered %llu "
                    "(twice, or out of range from %llu)", round,
                    t->qp[i][0]->qp_num, (unsigned long long)value,
                    (unsigned long long)low);
            }
            seen++;
        }
        if (at >= 0) {
            die("wrong byte: round %u, QP 0x%x, byte %ld of its cell", round,
                t->qp[i][0]->qp_num, at);
        }
    }
    memcpy(&value, t->dst->cpu + (size_t)t->pairs * CELL, 8);
    *count = low + seen;
    if (value != *count) {
        die("wrong byte: round %u: the counter is %llu, not %llu", round,
            (unsigned long long)value, (unsigned long long)*count);
    }
}

static void run_round(struct storm *t, unsigned round, uint64_t *count)
{
    struct ibv_wc wc;

    for (unsigned i = 0; i < t->pairs; i++) {
        pattern_fill(t->src->cpu + i * CELL, seed_of(t, i, round), 0,
                     CELL - 8);
        memset(t->dst->cpu + i * CELL, 0xee, CELL);
    }
    region_drop(t->src, 0, AREA_BYTES);
    region_drop(t->dst, 0, AREA_BYTES);
    for (unsigned i = 0; i < t->pairs; i++) {
        post(t, i, round);
    }
    for (unsigned i = 0; i < t->pairs; i++) {
        if (!cq_wait(t->cq, &wc, t->opt->timeout)) {
            die("lost completion: round %u, %u of %u came", round, i,
                t->pairs);
        }
        if (wc.status != IBV_WC_SUCCESS) {
            die("dead QP: round %u, QP 0x%x: %s, vendor syndrome 0x%x", round,
                wc.qp_num, ibv_wc_status_str(wc.status), wc.vendor_err);
        }
    }
    check(t, round, count);
}

int mode_storm(struct vdev *v, const struct options *opt)
{
    struct storm t = { .v = v, .opt = opt };
    struct odp_counters before, after;
    struct ibv_mr *implicit = NULL;
    enum reg reg = REG_ODP;
    uint64_t count = 0;

    t.pairs = opt->threads * opt->qps;
    if (t.pairs > 128) {
        t.pairs = 128;
    }
    if (!vdev_has_odp(v)) {
        die("the device has no ODP");
    }
    t.cq = ibv_create_cq(v->ctx, 2 * t.pairs, NULL, NULL, 0);
    if (!t.cq) {
        die_errno("ibv_create_cq");
    }
    t.qp = calloc(t.pairs, sizeof(*t.qp));
    for (unsigned i = 0; i < t.pairs; i++) {
        struct qp_conf conf = { .type = IBV_QPT_RC, .send_cq = t.cq,
                                .recv_cq = t.cq, .depth = 4, .sge = 1 };

        qp_pair(v, &conf, t.qp[i]);
    }
    if (vdev_has_implicit(v) && !opt->no_implicit) {
        implicit = mr_implicit(v, IBV_ACCESS_REMOTE_READ);
        reg = REG_IMPLICIT;
    }
    t.src = region_new(v, MEM_FILE, reg, true, 1, implicit);
    t.dst = region_new(v, MEM_FILE, REG_ODP, false, 1, NULL);
    before = odp_counters_read(v->ctx->device->name);
    for (unsigned k = 0; k < opt->iters; k++) {
        run_round(&t, k, &count);
    }
    after = odp_counters_read(v->ctx->device->name);
    printf("%u rounds of %u queue pairs on one page, %llu atomics", opt->iters,
           t.pairs, (unsigned long long)count);
    if (after.valid) {
        printf(", pages faulted %llu",
               (unsigned long long)(after.faults - before.faults));
    }
    printf("\n");
    for (unsigned i = 0; i < t.pairs; i++) {
        ibv_destroy_qp(t.qp[i][0]);
        ibv_destroy_qp(t.qp[i][1]);
    }
    free(t.qp);
    region_free(t.src);
    region_free(t.dst);
    if (implicit) {
        ibv_dereg_mr(implicit);
    }
    ibv_destroy_cq(t.cq);
    return 0;
}
