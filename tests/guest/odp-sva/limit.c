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

/* KiB of this process in memory */
static unsigned long resident(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%*u %lu", &pages) != 1) {
        die_errno("/proc/self/statm");
    }
    fclose(f);
    return pages * (page_size() >> 10);
}

/* Writes all of a buffer through a key, and reads it back. */
static void transfer(struct link *l, const char *how, uint8_t *piece,
                     uint32_t lkey, uint8_t *buffer, uint32_t key, size_t len)
{
    unsigned long before = resident(), grown;

    for (int back = 0; back < 2; back++) {
        for (size_t off = 0; off < len; off += PIECE) {
            struct request r = {
                back ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                piece, lkey, buffer + off, key, PIECE, 0, 0,
            };

            if (!back) {
                pattern_fill(piece, off + 1, 0, PIECE);
            }
            if (link_do(l, &r, NULL) != IBV_WC_SUCCESS) {
                die("%s: a request failed at %zu", how, off);
            }
            if (back && pattern_check(piece, off + 1, 0, PIECE) >= 0) {
                die("%s: wrong data at %zu", how, off);
            }
        }
    }
    grown = resident();
    grown = grown > before ? grown - before : 0;
    printf("%s: all of %zu MiB written and read back; of it resident %lu KiB, "
           "saved %lu KiB\n", how, len >> 20, grown,
           (unsigned long)(len >> 10) - grown);
}

int mode_limit(const struct options *opt)
{
    size_t len = (size_t)opt->kib << 10;
    struct sva_portal p;
    struct sva_counters c;
    struct vdev v;
    struct link l;
    uint8_t *buffer, *piece;
    struct ibv_mr *mr, *odp;

    vdev_open(&v, opt->device, -1);
    pinned(&v, len);
    portal_or_die(&p, opt->portal[0]);
    link_open(&l, &v, &v);
    piece = fresh(PIECE);
    mr = mr_reg(&v, piece, PIECE, IBV_ACCESS_LOCAL_WRITE);

    buffer = fresh(len);
    transfer(&l, "SVA", piece, mr->lkey, buffer, key_or_die(&p, v.pd, SVA_ALL),
             len);
    sva_counters(&p, &c);
    printf("SVA: %llu faults\n",
           (unsigned long long)(c.stalls + c.page_requests));
    munmap(buffer, len);

    buffer = fresh(len);
    odp = mr_reg(&v, buffer, len, IBV_ACCESS_ON_DEMAND |
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                 IBV_ACCESS_REMOTE_READ);
    transfer(&l, "device ODP", piece, mr->lkey, buffer, odp->rkey, len);
    ibv_dereg_mr(odp);
    link_close(&l);
    sva_portal_close(&p);
    return 0;
}
