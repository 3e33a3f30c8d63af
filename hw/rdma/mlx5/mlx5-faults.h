/*
 * mlx5 HCA: counters of accesses that the IOMMU suspended or refused
 *
 * Per function, memory key and queue pair. Those of keys and queue pairs are
 * allocated when there is something to count.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_FAULTS_H
#define HW_RDMA_MLX5_FAULTS_H

#include "mlx5-core.h"

enum {
    MLX5_FAULT_HISTOGRAM = 16,    /* 1 us, 2 us, 4 us, ... and longer */
    MLX5_FAULT_SINKS = 3,         /* function, key, queue pair */
};

struct Mlx5FaultStats {
    uint64_t stalls;              /* suspended by the IOMMU */
    uint64_t page_requests;       /* sent a page request */
    uint64_t resolved;            /* waits whose access went on */
    uint64_t denied;              /* refused, whether they waited or not */
    uint64_t pending;             /* wait now */
    uint64_t latency_sum, latency_max; /* ns of virtual time */
    uint64_t resolved_small, resolved_large; /* below 2 MiB, from there on */
    uint64_t over_limit;          /* of denied: by a limit of ours */
    uint64_t latency[MLX5_FAULT_HISTOGRAM];
};

/*
 * Counts for each of @sinks that is not NULL: an access begins to wait, its
 * wait of @ns ends (denied or not), it goes on by a translation of @page
 * bytes, it is refused.
 */
void mlx5_faults_wait(Mlx5FaultStats *const *sinks, bool page_request);
void mlx5_faults_end(Mlx5FaultStats *const *sinks, int64_t ns);
void mlx5_faults_resolved(Mlx5FaultStats *const *sinks, uint64_t page);
void mlx5_faults_denied(Mlx5FaultStats *const *sinks, bool limit);
/* A wait that was given up: it took no time that means something. */
void mlx5_faults_cancelled(Mlx5FaultStats *const *sinks);

/* @s as a portal's BAR shows it: the 64-bit counter at byte @off. */
uint64_t mlx5_faults_word(const Mlx5FaultStats *s, unsigned off);

/* The property "fault-counters" of the HCA. */
void mlx5_faults_add_property(Mlx5Hca *h);
void mlx5_faults_del_property(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_faults;

#endif
