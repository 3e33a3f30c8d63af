/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STRESS_H
#define STRESS_H

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
    bool uffd;
};

/* Modes: return 0 when all was right. */
int mode_traffic(struct vdev *v, const struct options *opt);
int mode_perm(struct vdev *v, const struct options *opt);
int mode_dereg(struct vdev *v, const struct options *opt);
int mode_storm(struct vdev *v, const struct options *opt);
int mode_pending(struct vdev *v, const struct options *opt);

#endif
