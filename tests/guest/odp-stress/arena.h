/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ARENA_H
#define ARENA_H

#include <stdatomic.h>

#include "counters.h"
#include "stress.h"

/* What happens to the memory under traffic. */
enum act { ACT_DROP, ACT_REMAP, ACT_FLIP, ACT_FORK, ACT_COUNT };

struct totals {
    atomic_ulong posted;
    atomic_ulong done;
    atomic_ulong bytes;
    atomic_ulong recvs;
    atomic_ulong own_drops;     /* by an operation's owner, before it */
    atomic_ulong acts[ACT_COUNT];
};

/* Regions of all kinds that take part, and what the workers share. */
enum { MAX_KINDS = 8 };
struct arena {
    struct vdev *v;
    const struct options *opt;
    struct region *local_src[MAX_KINDS], *local_dst[MAX_KINDS];
    struct region *remote_src[MAX_KINDS], *remote_dst[MAX_KINDS];
    unsigned kinds;             /* of each of them, kind 0 is pinned */
    unsigned areas;
    struct ibv_mr *implicit_src, *implicit_dst;
    /* One word that every queue pair counts up: each value comes once. */
    struct region *counter;
    atomic_ulong counted;
    uint8_t *seen;
    struct totals totals;
    atomic_bool stop;
};

enum { MAX_COUNTED = 1 << 22 };

/* Does the next things to the memory until it is told to stop. */
void disturb(struct arena *a, const unsigned *acts, unsigned n_acts);

void arena_init(struct arena *a, struct vdev *v, const struct options *opt);
void arena_end(struct arena *a);
/* The shared word answered this value: it must be the first time. */
void arena_count(struct arena *a, uint64_t value);
/* In the end the word holds their number, and each came. */
void arena_check_count(struct arena *a);
/* Print what happened; 1 when something is missing. */
int arena_report(struct arena *a, const struct odp_counters *before,
                 double seconds);

#endif
