/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that the device may not use as asked: every case ends with the right
 * completion status, no byte changed, and no effect on another queue pair.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "op.h"

enum how { RW, READ_ONLY, NO_ACCESS, UNMAPPED };
static const char *const how_name[] = { "read-write", "read-only",
                                        "PROT_NONE", "unmapped" };

/* What is asked of which side, and how it must end. */
static const struct perm_case {
    const char *name;
    enum ibv_wr_opcode opcode;
    enum how local, remote;
    enum ibv_wc_status status;      /* at the requester */
    enum ibv_wc_status recv;        /* of the receive, for a SEND */
    bool source;                    /* the MR under test allows reading only */
} cases[] = {
    { "WRITE", IBV_WR_RDMA_WRITE, RW, RW, IBV_WC_SUCCESS, 0, false },
    { "WRITE", IBV_WR_RDMA_WRITE, RW, READ_ONLY, IBV_WC_REM_ACCESS_ERR, 0,
      false },
    { "WRITE", IBV_WR_RDMA_WRITE, RW, NO_ACCESS, IBV_WC_REM_ACCESS_ERR, 0,
      false },
    { "WRITE", IBV_WR_RDMA_WRITE, RW, UNMAPPED, IBV_WC_REM_ACCESS_ERR, 0,
      false },
    { "WRITE", IBV_WR_RDMA_WRITE, READ_ONLY, RW, IBV_WC_SUCCESS, 0, true },
    { "WRITE", IBV_WR_RDMA_WRITE, NO_ACCESS, RW, IBV_WC_LOC_PROT_ERR, 0,
      false },
    { "WRITE", IBV_WR_RDMA_WRITE, UNMAPPED, RW, IBV_WC_LOC_PROT_ERR, 0,
      false },
    { "READ", IBV_WR_RDMA_READ, RW, READ_ONLY, IBV_WC_SUCCESS, 0, true },
    { "READ", IBV_WR_RDMA_READ, RW, UNMAPPED, IBV_WC_REM_ACCESS_ERR, 0,
      false },
    { "READ", IBV_WR_RDMA_READ, RW, NO_ACCESS, IBV_WC_REM_ACCESS_ERR, 0,
      false },
    { "READ", IBV_WR_RDMA_READ, READ_ONLY, RW, IBV_WC_LOC_PROT_ERR, 0,
      false },
    { "READ", IBV_WR_RDMA_READ, UNMAPPED, RW, IBV_WC_LOC_PROT_ERR, 0, false },
    { "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, RW, RW, IBV_WC_SUCCESS, 0,
      false },
    { "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, RW, READ_ONLY,
      IBV_WC_REM_ACCESS_ERR, 0, false },
    { "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, RW, UNMAPPED,
      IBV_WC_REM_ACCESS_ERR, 0, false },
    { "SEND", IBV_WR_SEND, RW, RW, IBV_WC_SUCCESS, IBV_WC_SUCCESS, false },
    { "SEND", IBV_WR_SEND, UNMAPPED, RW, IBV_WC_LOC_PROT_ERR,
      IBV_WC_WR_FLUSH_ERR, false },
    { "SEND", IBV_WR_SEND, RW, READ_ONLY, IBV_WC_REM_OP_ERR,
      IBV_WC_LOC_PROT_ERR, false },
    { "SEND", IBV_WR_SEND, RW, UNMAPPED, IBV_WC_REM_OP_ERR,
      IBV_WC_LOC_PROT_ERR, false },
};

struct perm {
    struct vdev *v;
    const struct options *opt;
    struct ibv_cq *cq, *recv_cq;
    struct ibv_qp *other[2];            /* must not notice anything */
    struct ibv_mr *implicit[2];         /* writable, read only */
    struct region *pinned;
    unsigned bad;
};

static void set_access(struct region *r, enum how how)
{
    int err = 0;

    switch (how) {
    case RW:
        break;
    case READ_ONLY:
        err = mprotect(r->dev, r->len, PROT_READ);
        break;
    case NO_ACCESS:
        err = mprotect(r->dev, r->len, PROT_NONE);
        break;
    case UNMAPPED:
        err = munmap(r->dev, r->len);
        break;
    }
    if (err) {
        die_errno("%s", how_name[how]);
    }
}

static void post(struct perm *t, struct ibv_qp *qp, enum ibv_wr_opcode opcode,
                 struct region *local, struct region *remote, unsigned len)
{
    struct ibv_sge sge = { (uintptr_t)local->dev + 100, len, local->mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
    };

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)remote->dev;
        wr.wr.atomic.rkey = remote->mr->rkey;
        wr.wr.atomic.compare_add = 1;
        sge.length = 8;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)remote->dev + 100;
        wr.wr.rdma.rkey = remote->mr->rkey;
    }
    if (ibv_post_send(qp, &wr, &bad)) {
        die("posting a send failed");
    }
}

/* The other queue pair moves bytes in pinned memory, as ever. */
static void check_other(struct perm *t)
{
    struct ibv_wc wc;

    post(t, t->other[0], IBV_WR_RDMA_WRITE, t->pinned, t->pinned, 64);
    if (!cq_wait(t->cq, &wc, t->opt->timeout)) {
        die("lost completion: a queue pair that had no part in it hangs");
    }
    if (wc.status != IBV_WC_SUCCESS || wc.qp_num != t->other[0]->qp_num) {
        die("QP 0x%x, which had no part in it: %s", wc.qp_num,
            ibv_wc_status_str(wc.status));
    }
}

static void expect(struct perm *t, const char *what, struct ibv_cq *cq,
                   struct ibv_qp *qp, enum ibv_wc_status status)
{
    struct ibv_wc wc;

    if (!cq_wait(cq, &wc, t->opt->timeout)) {
        die("lost completion: %s", what);
    }
    if (wc.status != status || wc.qp_num != qp->qp_num) {
        printf("FAIL: %s: QP 0x%x (ours 0x%x) completed with \"%s\", expected "
               "\"%s\"\n", what, wc.qp_num, qp->qp_num,
               ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
        t->bad++;
    }
}

static void post_recv(struct ibv_qp *qp, struct region *r, unsigned len)
{
    struct ibv_sge sge = { (uintptr_t)r->dev + 100, len, r->mr->lkey };
    struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

    if (ibv_post_recv(qp, &wr, &bad)) {
        die("posting a receive failed");
    }
}

static void check_memory(struct perm *t, const struct perm_case *c,
                         const char *what, struct region *local,
                         struct region *remote, unsigned len)
{
    bool to_local = c->opcode == IBV_WR_RDMA_READ;
    struct region *to = to_local ? local : remote;
    uint64_t seed = to_local ? 1 : 2, other = to_local ? 2 : 1;
    long at;

    if (c->status != IBV_WC_SUCCESS) {
        at = pattern_check(to->cpu, seed, 0, to->len);
    } else if (c->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        return;                         /* mode mix looks at the values */
    } else {
        at = pattern_check(to->cpu + 100, other, 100, len);
    }
    if (at >= 0) {
        printf("FAIL: %s: wrong byte at %ld of the target\n", what, at);
        t->bad++;
    }
}

static void run_case(struct perm *t, const struct perm_case *c, enum reg reg)
{
    bool send = c->opcode == IBV_WR_SEND;
    bool local_test = c->local != RW;
    struct ibv_mr *implicit = t->implicit[c->source];
    struct region *local, *remote;
    unsigned len = 5000;
    struct ibv_qp *qp[2];
    struct qp_conf conf = {
        .type = IBV_QPT_RC, .send_cq = t->cq, .recv_cq = t->recv_cq,
        .depth = 4, .sge = 1, .all_signaled = true,
    };
    struct ibv_wc wc;
    char what[128];

    snprintf(what, sizeof(what), "%s, %s MR, local %s, remote %s", c->name,
             reg == REG_ODP ? "explicit" : "implicit", how_name[c->local],
             how_name[c->remote]);
    local = region_new(t->v, MEM_FILE, local_test ? reg : REG_PINNED,
                       local_test && c->source, 1, implicit);
    remote = region_new(t->v, MEM_FILE, local_test ? REG_PINNED : reg,
                        !local_test && c->source, 1, implicit);
    pattern_fill(local->cpu, 1, 0, local->len);
    pattern_fill(remote->cpu, 2, 0, remote->len);
    qp_pair(t->v, &conf, qp);
    set_access(local, c->local);
    set_access(remote, c->remote);
    if (send) {
        post_recv(qp[1], remote, len);
    }
    post(t, qp[0], c->opcode, local, remote, len);
    expect(t, what, t->cq, qp[0], c->status);
    if (send && c->recv == IBV_WC_WR_FLUSH_ERR) {
        /* The requester broke, its peer waits on: flush it. */
        struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

        if (ibv_modify_qp(qp[1], &attr, IBV_QP_STATE)) {
            die("QP to ERR failed");
        }
    }
    if (send) {
        expect(t, what, t->recv_cq, qp[1], c->recv);
    }
    if ((qp_state(qp[0]) == IBV_QPS_RTS) != (c->status == IBV_WC_SUCCESS)) {
        printf("FAIL: %s: the requester's QP is in state %d\n", what,
               qp_state(qp[0]));
        t->bad++;
    }
    check_other(t);
    if (ibv_poll_cq(t->cq, 1, &wc) || ibv_poll_cq(t->recv_cq, 1, &wc)) {
        printf("FAIL: %s: one completion too many\n", what);
        t->bad++;
    }
    check_memory(t, c, what, local, remote, len);
    ibv_destroy_qp(qp[0]);
    ibv_destroy_qp(qp[1]);

    /* With the memory back, the same keys work for new queue pairs. */
    region_remap(local, 0, local->len);
    region_remap(remote, 0, remote->len);
    if (!c->source) {
        snprintf(what, sizeof(what), "WRITE after %s of a %s", c->name,
                 how_name[local_test ? c->local : c->remote]);
        qp_pair(t->v, &conf, qp);
        post(t, qp[0], IBV_WR_RDMA_WRITE, local, remote, len);
        expect(t, what, t->cq, qp[0], IBV_WC_SUCCESS);
        ibv_destroy_qp(qp[0]);
        ibv_destroy_qp(qp[1]);
    }
    region_free(local);
    region_free(remote);
}

static struct ibv_cq *cq_new(struct vdev *v)
{
    struct ibv_cq *cq = ibv_create_cq(v->ctx, 64, NULL, NULL, 0);

    if (!cq) {
        die_errno("ibv_create_cq");
    }
    return cq;
}

int mode_perm(struct vdev *v, const struct options *opt)
{
    struct perm t = { .v = v, .opt = opt };
    struct qp_conf conf = { .type = IBV_QPT_RC, .depth = 4, .sge = 1 };
    bool implicit = vdev_has_implicit(v) && !opt->no_implicit;
    unsigned rounds = opt->iters < 1000 ? opt->iters : 1;

    if (!vdev_has_odp(v)) {
        die("the device has no ODP");
    }
    t.cq = cq_new(v);
    t.recv_cq = cq_new(v);
    conf.send_cq = conf.recv_cq = t.cq;
    qp_pair(v, &conf, t.other);
    t.pinned = region_new(v, MEM_FILE, REG_PINNED, false, 1, NULL);
    if (implicit) {
        t.implicit[0] = mr_implicit(v, IBV_ACCESS_LOCAL_WRITE |
                                    IBV_ACCESS_REMOTE_WRITE |
                                    IBV_ACCESS_REMOTE_READ |
                                    IBV_ACCESS_REMOTE_ATOMIC);
        t.implicit[1] = mr_implicit(v, IBV_ACCESS_REMOTE_READ);
    }
    for (unsigned k = 0; k < rounds; k++) {
        for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
            run_case(&t, &cases[i], REG_ODP);
            if (implicit) {
                run_case(&t, &cases[i], REG_IMPLICIT);
            }
        }
    }
    printf("%u cases, %u wrong\n",
           rounds * (unsigned)ARRAY_SIZE(cases) * (implicit ? 2 : 1), t.bad);
    ibv_destroy_qp(t.other[0]);
    ibv_destroy_qp(t.other[1]);
    region_free(t.pinned);
    if (implicit) {
        ibv_dereg_mr(t.implicit[0]);
        ibv_dereg_mr(t.implicit[1]);
    }
    ibv_destroy_cq(t.cq);
    ibv_destroy_cq(t.recv_cq);
    return t.bad != 0;
}
