/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STRESS_H
#define STRESS_H

#include <stdatomic.h>

#include "region.h"
#include "util.h"

/* The command line. */
struct options {
    const char *device;
    const char *mode;
    const char *flag_file;      /* --release: see pending.c */
    int gid_index;
    unsigned iters;
    unsigned threads;
    unsigned qps;               /* pairs per thread */
    unsigned depth;
    unsigned sge;
    unsigned pending;
    unsigned min_faulted;       /* per cent of operations */
    double timeout;             /* seconds without any progress */
    uint64_t seed;
    bool events;
    bool rc_only;
    bool no_odp;
    bool no_implicit;
    bool verbose;
};

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

/* Modes: return 0 when all was right. */
int mode_traffic(struct vdev *v, const struct options *opt);
int mode_perm(struct vdev *v, const struct options *opt);
int mode_dereg(struct vdev *v, const struct options *opt);
int mode_storm(struct vdev *v, const struct options *opt);
int mode_pending(struct vdev *v, const struct options *opt);

#endif
