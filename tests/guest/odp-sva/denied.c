/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel that denies page requests: an absent page is a clean error for the
 * peer, a present one is reached.
 */
#include <stdio.h>

#include "sva.h"

int mode_denied(const struct options *opt)
{
    struct sva_counters before, after;
    struct sva_portal p;
    struct vdev v;
    struct link l;
    size_t page = page_size();
    uint8_t *mem = fresh(opt->iters * page), *src = fresh(page);
    struct ibv_mr *mr;
    unsigned bad = 0;
    uint32_t key;

    portal_or_die(&p, opt->portal[0]);
    vdev_open(&v, opt->device, -1);
    link_open(&l, &v, &v);
    pattern_fill(src, 1, 0, page);
    mr = mr_reg(&v, src, page, IBV_ACCESS_LOCAL_WRITE);
    key = key_or_die(&p, v.pd, SVA_ALL);
    sva_counters(&p, &before);
    for (unsigned i = 0; i < opt->iters; i++) {
        struct request r = { IBV_WR_RDMA_WRITE, src, mr->lkey, mem + i * page,
                             key, page, 0, 0 };
        enum ibv_wc_status first = link_do(&l, &r, NULL), then;

        mem[i * page] = 1;
        then = link_do(&l, &r, NULL);
        if (first != IBV_WC_REM_ACCESS_ERR || then != IBV_WC_SUCCESS ||
            pattern_check(mem + i * page, 1, 0, page) >= 0) {
            printf("absent: %s, present: %s\n", ibv_wc_status_str(first),
                   ibv_wc_status_str(then));
            bad++;
        }
    }
    sva_counters(&p, &after);
    printf("%u absent pages: page requests %u, stalls %u, denied %u, pending "
           "%u\n", opt->iters,
           (unsigned)(after.page_requests - before.page_requests),
           (unsigned)(after.stalls - before.stalls),
           (unsigned)(after.denied - before.denied), (unsigned)after.pending);
    link_close(&l);
    sva_portal_close(&p);
    return bad || after.denied - before.denied != opt->iters || after.pending;
}
