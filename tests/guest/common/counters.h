/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ODP_COUNTERS_H
#define ODP_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * ODP counters of all memory regions of a device, as the driver keeps them
 * ("rdma statistic show mr"). They go with their region: read them before it
 * is deregistered.
 */
struct odp_counters {
    bool valid;             /* the driver has such counters */
    uint64_t faults;
    uint64_t invalidations;
    uint64_t prefetches;
};

struct odp_counters odp_counters_read(const char *device);

#endif
