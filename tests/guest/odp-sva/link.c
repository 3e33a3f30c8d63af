/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <string.h>

#include "link.h"
#include "util.h"

/* No request takes so long, on a slow emulator either. */
enum { LIMIT = 120 };

static void qps_new(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        struct qp_conf conf = {
            .type = IBV_QPT_RC, .send_cq = l->cq[i], .recv_cq = l->cq[i],
            .depth = LINK_DEPTH, .sge = 1,
        };

        l->qp[i] = qp_create(l->v[i], &conf);
    }
    for (int i = 0; i < 2; i++) {
        /* Our own port and limits, the peer's address. */
        struct vdev via = *l->v[i];

        via.port.lid = l->v[!i]->port.lid;
        via.gid = l->v[!i]->gid;
        qp_connect(&via, l->qp[i], l->qp[!i]->qp_num);
    }
}

void link_open(struct link *l, struct vdev *from, struct vdev *to)
{
    l->v[0] = from;
    l->v[1] = to;
    for (int i = 0; i < 2; i++) {
        l->cq[i] = ibv_create_cq(l->v[i]->ctx, 2 * LINK_DEPTH, NULL, NULL, 0);
        if (!l->cq[i]) {
            die_errno("ibv_create_cq");
        }
    }
    qps_new(l);
}

static void qps_free(struct link *l)
{
    for (int i = 0; i < 2; i++) {
        if (ibv_destroy_qp(l->qp[i])) {
            die_errno("ibv_destroy_qp");
        }
    }
}

void link_close(struct link *l)
{
    qps_free(l);
    for (int i = 0; i < 2; i++) {
        ibv_destroy_cq(l->cq[i]);
    }
}

void link_again(struct link *l)
{
    struct ibv_wc wc;

    qps_free(l);
    for (int i = 0; i < 2; i++) {
        while (ibv_poll_cq(l->cq[i], 1, &wc) > 0) {
        }
    }
    qps_new(l);
}

void link_post(struct link *l, const struct request *r)
{
    struct ibv_sge sge = { (uintptr_t)r->local, r->len, r->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = r->opcode,
        .send_flags = IBV_SEND_SIGNALED,
    };

    switch (r->opcode) {
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        wr.wr.atomic.remote_addr = (uintptr_t)r->remote;
        wr.wr.atomic.rkey = r->rkey;
        wr.wr.atomic.compare_add = r->compare_add;
        wr.wr.atomic.swap = r->swap;
        break;
    case IBV_WR_SEND: {
        struct ibv_sge to = { (uintptr_t)r->remote, r->len, r->rkey };
        struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };

        if (ibv_post_recv(l->qp[1], &recv, &bad_recv)) {
            die("posting a receive failed");
        }
        break;
    }
    default:
        wr.wr.rdma.remote_addr = (uintptr_t)r->remote;
        wr.wr.rdma.rkey = r->rkey;
    }
    if (ibv_post_send(l->qp[0], &wr, &bad)) {
        die("posting a send failed");
    }
}

enum ibv_wc_status link_wait(struct link *l)
{
    struct ibv_wc wc;

    if (!cq_wait(l->cq[0], &wc, LIMIT)) {
        die("no completion in %d s", LIMIT);
    }
    return wc.status;
}

enum ibv_wc_status link_do(struct link *l, const struct request *r,
                           enum ibv_wc_status *recv)
{
    enum ibv_wc_status status, got = IBV_WC_SUCCESS;
    struct ibv_wc wc;

    link_post(l, r);
    status = link_wait(l);
    if (r->opcode == IBV_WR_SEND &&
        (status == IBV_WC_SUCCESS || recv)) {
        if (!cq_wait(l->cq[1], &wc, LIMIT)) {
            die("no completion of a receive in %d s", LIMIT);
        }
        got = wc.status;
    }
    if (recv) {
        *recv = got;
    }
    if (status != IBV_WC_SUCCESS || got != IBV_WC_SUCCESS) {
        link_again(l);
    }
    return status;
}
