/*
 * mlx5 multicast: which queue pairs hear which group
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_MCAST_H
#define HW_RDMA_MLX5_MCAST_H

#include "mlx5-core.h"

/* One queue pair's membership of one group. */
typedef struct Mlx5Mcg {
    Mlx5Obj obj;
    uint32_t qpn;
    uint8_t gid[16];
} Mlx5Mcg;

/*
 * The queue pair that @op, a datagram to a multicast LID with its GRH in
 * op->data, goes to next: the first from (mc_lid, mc_id) on, where these then
 * stand. NULL: all have it.
 */
Mlx5Qp *mlx5_mcast_peer(Mlx5Op *op);
/* @qp goes: it leaves its groups. */
void mlx5_mcast_forget(Mlx5Qp *qp);

void mlx5_mcast_init(Mlx5Hca *h);
void mlx5_mcast_fini(Mlx5Hca *h);
void mlx5_mcast_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_mcgs;  /* of Mlx5Hca */

#endif
