/*
 * mlx5 health: what the firmware says of itself, and how a user makes it say so
 *
 * The syndromes are those of the init segment's health buffer (mlx5 driver:
 * MLX5_INITIAL_SEG_HEALTH_SYNDROME_* of include/linux/mlx5/device.h, health.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_HEALTH_H
#define HW_RDMA_MLX5_HEALTH_H

#include "mlx5-core.h"

enum {
    MLX5_HEALTH_OK = 0x0,
    MLX5_HEALTH_FW_INTERNAL = 0x1,
    MLX5_HEALTH_DEAD_IRISC = 0x7,
    MLX5_HEALTH_HW_FATAL = 0x8,
    MLX5_HEALTH_FW_CRC = 0x9,
    MLX5_HEALTH_ICM_FETCH_PCI = 0xa,
    MLX5_HEALTH_ICM_PAGE = 0xb,
    MLX5_HEALTH_ASYNC_EQ_OVERRUN = 0xc,
    MLX5_HEALTH_EQ_IN = 0xd,
    MLX5_HEALTH_EQ_INV = 0xe,
    MLX5_HEALTH_FFSER = 0xf,
    MLX5_HEALTH_HIGH_TEMP = 0x10,     /* not fatal */
    MLX5_HEALTH_ICM_POISONED = 0x12,
    MLX5_HEALTH_TRUST_LOCKDOWN = 0x13,
};

bool mlx5_health_is_fatal(uint8_t syndrome);

/* The device's property `health-syndrome`. */
void mlx5_health_init(Mlx5Hca *h);
void mlx5_health_fini(Mlx5Hca *h);

#endif
