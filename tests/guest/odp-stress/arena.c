/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

static void arena_add(struct arena *a, enum mem mem, enum reg reg)
{
    unsigned k = a->kinds++;

    a->local_src[k] = region_new(a->v, mem, reg, true, a->areas,
                                 a->implicit_src);
    a->local_dst[k] = region_new(a->v, mem, reg, false, a->areas,
                                 a->implicit_dst);
    a->remote_src[k] = region_new(a->v, mem, reg, true, a->areas,
                                  a->implicit_src);
    a->remote_dst[k] = region_new(a->v, mem, reg, false, a->areas,
                                  a->implicit_dst);
}

void arena_init(struct arena *a, struct vdev *v,
                const struct options *opt)
{
    bool odp = vdev_has_odp(v) && !opt->no_odp;
    bool implicit = odp && vdev_has_implicit(v) && !opt->no_implicit;

    memset(a, 0, sizeof(*a));
    a->v = v;
    a->opt = opt;
    a->areas = 2 * opt->threads * opt->qps * opt->depth;
    a->seen = calloc(1, MAX_COUNTED);
    if (implicit) {
        a->implicit_src = mr_implicit(v, IBV_ACCESS_REMOTE_READ);
        a->implicit_dst = mr_implicit(v, IBV_ACCESS_LOCAL_WRITE |
                                      IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ |
                                      IBV_ACCESS_REMOTE_ATOMIC);
    }
    arena_add(a, MEM_FILE, REG_PINNED);
    if (odp) {
        arena_add(a, MEM_FILE, REG_ODP);
        arena_add(a, MEM_ANON, REG_ODP);
    }
    if (implicit) {
        arena_add(a, MEM_FILE, REG_IMPLICIT);
        arena_add(a, MEM_ANON, REG_IMPLICIT);
    }
    odp &= !!(vdev_odp_caps(v, IBV_QPT_RC) & IBV_ODP_SUPPORT_ATOMIC);
    a->counter = region_new(v, MEM_FILE, odp ? REG_ODP : REG_PINNED, false, 1,
                            NULL);
}

void arena_end(struct arena *a)
{
    for (unsigned k = 0; k < a->kinds; k++) {
        region_free(a->local_src[k]);
        region_free(a->local_dst[k]);
        region_free(a->remote_src[k]);
        region_free(a->remote_dst[k]);
    }
    region_free(a->counter);
    if (a->implicit_src && (ibv_dereg_mr(a->implicit_src) ||
                            ibv_dereg_mr(a->implicit_dst))) {
        die_errno("ibv_dereg_mr of implicit MRs");
    }
    free(a->seen);
}

void arena_count(struct arena *a, uint64_t value)
{
    if (value >= MAX_COUNTED) {
        die("wrong byte: the shared counter answered %llu",
            (unsigned long long)value);
    }
    if (__atomic_exchange_n(&a->seen[value], 1, __ATOMIC_RELAXED)) {
        die("the shared counter answered %llu twice",
            (unsigned long long)value);
    }
    atomic_fetch_add(&a->counted, 1);
}

void arena_check_count(struct arena *a)
{
    unsigned long n = atomic_load(&a->counted);
    uint64_t value;

    memcpy(&value, a->counter->cpu, 8);
    if (value != n) {
        die("wrong byte: the shared counter is %llu after %lu FETCH_ADDs",
            (unsigned long long)value, n);
    }
    for (unsigned long i = 0; i < n; i++) {
        if (!a->seen[i]) {
            die("the shared counter never answered %lu", i);
        }
    }
}

int arena_report(struct arena *a, const struct odp_counters *before,
                 double seconds)
{
    struct odp_counters c = odp_counters_read(a->v->ctx->device->name);
    struct totals *t = &a->totals;
    unsigned long done = atomic_load(&t->done);
    double share = 0;

    printf("operations %lu, completed %lu, receives %lu, bytes checked %lu, "
           "%.1f s\n", atomic_load(&t->posted), done, atomic_load(&t->recvs),
           atomic_load(&t->bytes), seconds);
    printf("atomics on one shared word %lu\n", atomic_load(&a->counted));
    printf("drops %lu (and %lu before operations), remaps %lu, protection "
           "changes %lu, forks %lu\n", atomic_load(&t->acts[ACT_DROP]),
           atomic_load(&t->own_drops), atomic_load(&t->acts[ACT_REMAP]),
           atomic_load(&t->acts[ACT_FLIP]), atomic_load(&t->acts[ACT_FORK]));
    if (c.valid) {
        uint64_t faults = c.faults - before->faults;

        share = done ? 100.0 * faults / done : 0;
        printf("pages faulted %llu (%.1f%% of operations), invalidated "
               "%llu\n", (unsigned long long)faults, share,
               (unsigned long long)(c.invalidations - before->invalidations));
    } else {
        printf("pages faulted: the driver has no counter\n");
    }
    if (atomic_load(&t->posted) != done) {
        printf("FAIL: %lu operations did not complete\n",
               atomic_load(&t->posted) - done);
        return 1;
    }
    if (c.valid && share < a->opt->min_faulted) {
        printf("FAIL: less than %u%% of the operations faulted\n",
               a->opt->min_faulted);
        return 1;
    }
    return 0;
}
