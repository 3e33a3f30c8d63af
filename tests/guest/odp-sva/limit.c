/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A buffer that is larger than the memory that this process may have: pinned
 * it does not fit, through a portal all of it is transferred.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sva.h"

enum { PIECE = 64 << 10 };

/* In a child, which the kernel may kill. */
static void pinned(struct vdev *v, size_t len)
{
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid < 0) {
        die_errno("fork");
    }
    if (!pid) {
        struct vdev own;

        vdev_open(&own, v->ctx->device->name, -1);
        _exit(ibv_reg_mr(own.pd, fresh(len), len, IBV_ACCESS_LOCAL_WRITE) ?
              0 : 1);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        printf("pinned: killed by signal %d\n", WTERMSIG(status));
    } else {
        printf("pinned: %s\n", WEXITSTATUS(status) ? "refused" : "registered");
    }
}

int mode_limit(const struct options *opt)
{
    size_t len = (size_t)opt->kib << 10;
    struct sva_portal p;
    struct sva_counters c;
    struct vdev v;
    struct link l;
    uint8_t *buffer, *piece;
    struct ibv_mr *mr;
    uint32_t key;

    vdev_open(&v, opt->device, -1);
    pinned(&v, len);
    portal_or_die(&p, opt->portal[0]);
    link_open(&l, &v, &v);
    key = key_or_die(&p, v.pd, SVA_ALL);
    piece = fresh(PIECE);
    mr = mr_reg(&v, piece, PIECE, IBV_ACCESS_LOCAL_WRITE);
    buffer = fresh(len);
    for (int back = 0; back < 2; back++) {
        for (size_t off = 0; off < len; off += PIECE) {
            struct request r = {
                back ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                piece, mr->lkey, buffer + off, key, PIECE, 0, 0,
            };

            if (!back) {
                pattern_fill(piece, off + 1, 0, PIECE);
            }
            if (link_do(&l, &r, NULL) != IBV_WC_SUCCESS) {
                die("a request failed at %zu", off);
            }
            if (back && pattern_check(piece, off + 1, 0, PIECE) >= 0) {
                die("wrong data at %zu", off);
            }
        }
    }
    sva_counters(&p, &c);
    printf("SVA: all of %zu MiB written and read back, %llu faults\n",
           len >> 20, (unsigned long long)(c.stalls + c.page_requests));
    link_close(&l);
    sva_portal_close(&p);
    return 0;
}
