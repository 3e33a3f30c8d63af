/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A page of 1 GiB: by SVA, by on-demand paging of the device, pinned. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "sva.h"

enum { PIECE = 64 << 10, PIECES = 64 };

static const size_t GIANT = 1ul << 30;

static uint8_t *map_giant(void)
{
    /* MAP_HUGE_SHIFT: log2 of the page */
    uint8_t *mem = mmap(NULL, GIANT, PROT_READ | PROT_WRITE, MAP_PRIVATE |
                        MAP_ANONYMOUS | MAP_HUGETLB | 30 << 26, -1, 0);

    if (mem == MAP_FAILED) {
        die_errno("mmap of 1 GiB");
    }
    return mem;
}

/* Pieces written all over it, read back, and compared. */
static bool use(struct link *l, struct rng *rng, const char *how,
                uint8_t *src, uint32_t lkey, uint8_t *mem, uint32_t key)
{
    for (unsigned i = 0; i < PIECES; i++) {
        uint8_t *at = mem + (GIANT / PIECES) * i +
                      rng_below(rng, (GIANT / PIECES - PIECE) / 8) * 8;
        struct request r = { IBV_WR_RDMA_WRITE, src, lkey, at, key, PIECE, 0,
                             0 };

        pattern_fill(src, i + 1, 0, PIECE);
        if (link_do(l, &r, NULL) != IBV_WC_SUCCESS ||
            pattern_check(at, i + 1, 0, PIECE) >= 0) {
            printf("FAIL: %s: a write at %p\n", how, at);
            return false;
        }
        pattern_fill(src, 0, 0, PIECE);
        r.opcode = IBV_WR_RDMA_READ;
        if (link_do(l, &r, NULL) != IBV_WC_SUCCESS ||
            pattern_check(src, i + 1, 0, PIECE) >= 0) {
            printf("FAIL: %s: a read at %p\n", how, at);
            return false;
        }
    }
    printf("%s: %u pieces\n", how, PIECES);
    return true;
}

int mode_giant(const struct options *opt)
{
    struct rng rng = { opt->seed };
    struct sva_counters before, after;
    struct sva_portal p;
    struct ibv_mr *src_mr, *mr;
    struct vdev v;
    struct link l;
    uint8_t *src, *mem;
    uint64_t faults;
    uint32_t key;
    bool ok;

    portal_or_die(&p, opt->portal[0]);
    vdev_open(&v, opt->device, -1);
    link_open(&l, &v, &v);
    key = key_or_die(&p, v.pd, SVA_ALL);
    src = fresh(PIECE);
    src_mr = mr_reg(&v, src, PIECE, SVA_ALL);

    mem = map_giant();
    sva_counters(&p, &before);
    ok = use(&l, &rng, "SVA", src, src_mr->lkey, mem, key);
    sva_counters(&p, &after);
    faults = after.stalls + after.page_requests - before.stalls -
             before.page_requests;
    printf("faults %" PRIu64 ", of large pages %" PRIu64 "\n", faults,
           after.resolved_large - before.resolved_large);
    ok &= faults == 1 && after.resolved_large - before.resolved_large == 1;
    munmap(mem, GIANT);
    if (ok) {
        struct request r = { IBV_WR_RDMA_WRITE, src, src_mr->lkey, mem, key,
                             64, 0, 0 };

        ok = link_do(&l, &r, NULL) == IBV_WC_REM_ACCESS_ERR;
        printf("after munmap: %s\n", ok ? "refused" : "FAIL");
    }

    mem = map_giant();
    mr = mr_reg(&v, mem, GIANT, SVA_ALL | IBV_ACCESS_ON_DEMAND);
    ok = ok && use(&l, &rng, "device ODP", src, src_mr->lkey, mem, mr->rkey);
    ibv_dereg_mr(mr);
    mr = mr_reg(&v, mem, GIANT, SVA_ALL);
    ok = ok && use(&l, &rng, "pinned", src, src_mr->lkey, mem, mr->rkey);
    ibv_dereg_mr(mr);
    link_close(&l);
    sva_portal_close(&p);
    return !ok;
}
