/*
 * mlx5 UAR pages: which doorbell, for whom
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_DOORBELL_H
#define HW_RDMA_MLX5_DOORBELL_H

#include "mlx5-core.h"

/*
 * A write of @size bytes (1..8, value as the guest's bytes in little-endian
 * order, which is how the BAR is declared) at @off of UAR page @uar.
 */
void mlx5_uar_write(Mlx5Hca *h, uint32_t uar, uint32_t off, uint64_t value,
                    unsigned size);

#endif
