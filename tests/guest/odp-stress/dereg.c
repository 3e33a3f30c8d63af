/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects that go away in mid-fault: the MR, the memory, the queue pairs, the
 * process. What was posted completes, with success or an error; nothing hangs,
 * nothing else is written, and other queue pairs notice nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "op.h"

enum what { W_DEREG, W_UNMAP, W_ERROR, W_DESTROY, W_DESTROY_PEER, W_KILL,
            WHATS };
static const char *const names[] = { "dereg", "unmap", "QP to ERR",
                                     "destroy", "destroy of the peer", "kill" };

enum { PAIRS = 4, DEPTH = 4, PIECE = 12000 };

struct dereg {
    struct vdev *v;
    const struct options *opt;
    struct rng rng;
    struct ibv_cq *cq, *other_cq;
    struct ibv_qp *other[2];
    struct region *canary;      /* pinned, next to nothing */
    unsigned count[WHATS];
    unsigned long succeeded, failed;
};

/* A WRITE or READ between two areas of the region, all pages absent. */
static void post(struct ibv_qp *qp, struct region *r, unsigned from,
                 unsigned to, bool read, struct rng *rng)
{
    size_t off = rng_below(rng, AREA_BYTES - PIECE);
    uintptr_t local = (uintptr_t)r->dev + (size_t)from * AREA_BYTES + off;
    uintptr_t remote = (uintptr_t)r->dev + (size_t)to * AREA_BYTES + off;
    struct ibv_sge sge = { local, PIECE, r->mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1,
        .opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = remote, .rkey = r->mr->rkey },
    };

    if (ibv_post_send(qp, &wr, &bad)) {
        die("posting a send failed");
    }
}

static void check_other(struct dereg *t)
{
    struct ibv_sge sge = { (uintptr_t)t->canary->dev, 64,
                           t->canary->mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = (uintptr_t)t->canary->dev,
                     .rkey = t->canary->mr->rkey },
    };
    struct ibv_wc wc;

    if (ibv_post_send(t->other[0], &wr, &bad)) {
        die("posting a send failed");
    }
    if (!cq_wait(t->other_cq, &wc, t->opt->timeout)) {
        die("lost completion: a queue pair that had no part in it hangs");
    }
    if (wc.status != IBV_WC_SUCCESS) {
        die("dead QP: 0x%x, which had no part in it: %s", wc.qp_num,
            ibv_wc_status_str(wc.status));
    }
    if (pattern_check(t->canary->cpu, 77, 0, t->canary->len) >= 0) {
        die("wrong byte: memory that had no part in it changed");
    }
}

/* Wait a random moment, so that it strikes at all stages of a fault. */
static void moment(struct dereg *t)
{
    switch (rng_below(&t->rng, 3)) {
    case 0:
        break;
    case 1:
        usleep(rng_below(&t->rng, 300));
        break;
    default:
        usleep(rng_below(&t->rng, 5000));
    }
}

static void collect(struct dereg *t, unsigned n, enum what what)
{
    struct ibv_wc wc;

    for (unsigned i = 0; i < n; i++) {
        if (!cq_wait(t->cq, &wc, t->opt->timeout)) {
            die("lost completion: %s: %u of %u came", names[what], i, n);
        }
        if (wc.status == IBV_WC_SUCCESS) {
            t->succeeded++;
        } else {
            t->failed++;
        }
    }
    if (ibv_poll_cq(t->cq, 1, &wc)) {
        die("one completion too many: %s", names[what]);
    }
}

static void to_error(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE)) {
        die("QP to ERR failed");
    }
}

static void strike(struct dereg *t, enum what what, enum reg reg,
                   struct ibv_mr *implicit)
{
    struct qp_conf conf = {
        .type = IBV_QPT_RC, .send_cq = t->cq, .recv_cq = t->cq,
        .depth = DEPTH, .sge = 1, .all_signaled = true,
    };
    struct region *r = region_new(t->v, MEM_ANON, reg, false,
                                  2 * PAIRS * DEPTH, implicit);
    struct ibv_qp *qp[PAIRS][2];
    unsigned posted = 0;

    for (unsigned i = 0; i < PAIRS; i++) {
        qp_pair(t->v, &conf, qp[i]);
    }
    for (unsigned k = 0; k < DEPTH; k++) {
        for (unsigned i = 0; i < PAIRS; i++, posted++) {
            post(qp[i][0], r, 2 * posted, 2 * posted + 1,
                 rng_one_in(&t->rng, 2), &t->rng);
        }
    }
    moment(t);
    switch (what) {
    case W_DEREG:
        if (!r->mr_shared) {
            if (ibv_dereg_mr(r->mr)) {
                die_errno("ibv_dereg_mr in mid-fault");
            }
            r->mr_shared = true;
        }
        break;
    case W_UNMAP:
        munmap(r->dev, r->len);
        break;
    case W_ERROR:
        for (unsigned i = 0; i < PAIRS; i++) {
            to_error(qp[i][0]);
        }
        break;
    case W_DESTROY:
        for (unsigned i = 0; i < PAIRS; i++) {
            if (ibv_destroy_qp(qp[i][0])) {
                die_errno("ibv_destroy_qp in mid-fault");
            }
            qp[i][0] = NULL;
        }
        break;
    case W_DESTROY_PEER:
        for (unsigned i = 0; i < PAIRS; i++) {
            if (ibv_destroy_qp(qp[i][1])) {
                die_errno("ibv_destroy_qp of the peer in mid-fault");
            }
            qp[i][1] = NULL;
            /* Its retries would take a long time. */
            to_error(qp[i][0]);
        }
        break;
    default:
        break;
    }
    if (what == W_DESTROY) {
        /* Completions of a destroyed queue pair may be gone or there. */
        struct ibv_wc wc;

        while (ibv_poll_cq(t->cq, 1, &wc) > 0) {
        }
    } else {
        collect(t, posted, what);
    }
    check_other(t);
    for (unsigned i = 0; i < PAIRS; i++) {
        for (unsigned k = 0; k < 2; k++) {
            if (qp[i][k] && ibv_destroy_qp(qp[i][k])) {
                die_errno("ibv_destroy_qp");
            }
        }
    }
    region_free(r);
    t->count[what]++;
}

/* In a process of its own: faults without end, until somebody kills it. */
static void victim(const struct options *opt)
{
    struct rng rng = { opt->seed };
    struct ibv_qp *qp[PAIRS][2];
    struct ibv_wc wc;
    struct region *r;
    struct vdev v;

    vdev_open(&v, opt->device, opt->gid_index);
    for (unsigned i = 0; i < PAIRS; i++) {
        struct qp_conf conf = {
            .type = IBV_QPT_RC, .depth = DEPTH, .sge = 1,
            .all_signaled = true,
        };

        conf.send_cq = conf.recv_cq = ibv_create_cq(v.ctx, 64, NULL, NULL, 0);
        qp_pair(&v, &conf, qp[i]);
    }
    r = region_new(&v, MEM_FILE, REG_ODP, false, 2 * PAIRS, NULL);
    printf("ready\n");
    for (;;) {
        region_drop(r, 0, r->len);
        for (unsigned i = 0; i < PAIRS; i++) {
            post(qp[i][0], r, 2 * i, 2 * i + 1, rng_one_in(&rng, 2), &rng);
        }
        for (unsigned i = 0; i < PAIRS; i++) {
            if (!cq_wait(qp[i][0]->send_cq, &wc, opt->timeout) ||
                wc.status != IBV_WC_SUCCESS) {
                die("the process that is to be killed failed by itself");
            }
        }
    }
}

static void kill_one(struct dereg *t)
{
    char seed[32], line[64] = "";
    int fds[2], status;
    FILE *out;
    pid_t pid;

    if (pipe(fds)) {
        die_errno("pipe");
    }
    snprintf(seed, sizeof(seed), "%llu",
             (unsigned long long)rng_next(&t->rng));
    pid = fork();
    if (!pid) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execl("/proc/self/exe", "odp-stress", "--mode", "dereg", "--iters",
              "0", "--seed", seed, "--dev", t->v->ctx->device->name, NULL);
        _exit(127);
    }
    close(fds[1]);
    out = fdopen(fds[0], "r");
    while (fgets(line, sizeof(line), out) && strcmp(line, "ready\n")) {
    }
    usleep(rng_below(&t->rng, 30000));
    kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status)) {
        die("the process that was to be killed ended with status 0x%x",
            status);
    }
    fclose(out);
    check_other(t);
    t->count[W_KILL]++;
}

int mode_dereg(struct vdev *v, const struct options *opt)
{
    struct dereg t = { .v = v, .opt = opt, .rng = { opt->seed } };
    struct qp_conf conf = { .type = IBV_QPT_RC, .depth = 4, .sge = 1 };
    struct ibv_mr *implicit = NULL;

    if (!opt->iters) {
        victim(opt);
    }
    if (!vdev_has_odp(v)) {
        die("the device has no ODP");
    }
    t.cq = ibv_create_cq(v->ctx, 256, NULL, NULL, 0);
    t.other_cq = ibv_create_cq(v->ctx, 16, NULL, NULL, 0);
    if (!t.cq || !t.other_cq) {
        die_errno("ibv_create_cq");
    }
    conf.send_cq = conf.recv_cq = t.other_cq;
    qp_pair(v, &conf, t.other);
    t.canary = region_new(v, MEM_FILE, REG_PINNED, false, 1, NULL);
    pattern_fill(t.canary->cpu, 77, 0, t.canary->len);
    if (vdev_has_implicit(v) && !opt->no_implicit) {
        implicit = mr_implicit(v, IBV_ACCESS_LOCAL_WRITE |
                               IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ);
    }
    for (unsigned i = 0; i < opt->iters; i++) {
        enum what what = i % WHATS;

        if (what == W_KILL) {
            kill_one(&t);
        } else {
            strike(&t, what, implicit && rng_one_in(&t.rng, 2) ?
                   REG_IMPLICIT : REG_ODP, implicit);
        }
    }
    for (unsigned i = 0; i < WHATS; i++) {
        printf("%s%s %u", i ? ", " : "", names[i], t.count[i]);
    }
    printf("; %lu operations completed before it, %lu with an error\n",
           t.succeeded, t.failed);
    ibv_destroy_qp(t.other[0]);
    ibv_destroy_qp(t.other[1]);
    region_free(t.canary);
    if (implicit && ibv_dereg_mr(implicit)) {
        die_errno("ibv_dereg_mr of the implicit MR");
    }
    ibv_destroy_cq(t.cq);
    ibv_destroy_cq(t.other_cq);
    return 0;
}
