/*
 * mlx5 quality of service: scheduling elements and the rate table
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_QOS_H
#define HW_RDMA_MLX5_QOS_H

#include "mlx5-cmd.h"

enum {
    MLX5_MAX_SCHED_ELEMS    = 1024,
    MLX5_MAX_SCHED_DEPTH    = 8,  /* elements from a queue group to its root */
    MLX5_MAX_BW_SHARE       = 100,
    MLX5_RATE_TABLE_SIZE    = 128, /* rate 0 is "unlimited" */
    MLX5_RATE_MIN_KBPS      = 1,
    MLX5_RATE_MAX_KBPS      = 200 * 1000 * 1000,
};

/* element_type. */
enum {
    MLX5_SCHED_TSAR        = 0,
    MLX5_SCHED_QUEUE_GROUP = 4,
    MLX5_SCHED_TYPES       = 0x11, /* a bit for each */
};

/* A node (TSAR) or leaf (queue group) of a scheduling tree. */
typedef struct Mlx5SchedElem {
    Mlx5Obj obj;                  /* refs: children, queues */
    uint8_t type;
    uint8_t depth;                /* elements above it */
    uint32_t parent;              /* 0: it is a root */
    uint32_t bw_share;
    uint32_t max_bw;              /* Mbit/s, 0: no limit */
    int64_t free_at;              /* virtual ns when its bytes are through, */
    int64_t busy_until;           /* ... and those of its last request */
} Mlx5SchedElem;

/* An entry of the rate table that the driver has set. */
typedef struct Mlx5Rate {
    Mlx5Obj obj;                  /* id: index; refs: send queues */
    uint32_t kbps;
} Mlx5Rate;

/*
 * Books @bytes in queue group @group. Returns when they may begin to move,
 * in virtual ns; no later than now: at once.
 */
int64_t mlx5_qos_book(Mlx5Hca *h, uint32_t group, uint64_t bytes);

/* Queue group @group of the command's user context, or NULL. */
Mlx5Obj *mlx5_qos_group(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t group);

void mlx5_qos_init(Mlx5Hca *h);
void mlx5_qos_fini(Mlx5Hca *h);
void mlx5_qos_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_qos;    /* of Mlx5Hca */

#endif
