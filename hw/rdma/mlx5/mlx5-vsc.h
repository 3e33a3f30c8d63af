/*
 * mlx5 vendor-specific capability: the gateway in config space
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_VSC_H
#define HW_RDMA_MLX5_VSC_H

#include "mlx5-core.h"

enum {
    MLX5_VSC_SIZE = 0x18,         /* bytes of config space */
    MLX5_VSC_SEMAPHORES = 64,
};

/* State of the gateway; zero is the state after reset. */
typedef struct Mlx5Vsc {
    uint32_t ctrl;                /* space in the low half, status on top */
    uint32_t counter;             /* a new value at each read */
    uint32_t lock;                /* who holds the gateway, 0: nobody */
    uint32_t addr, data;
    uint32_t sem[MLX5_VSC_SEMAPHORES];
} Mlx5Vsc;

/* Dwords at byte offset @off of the capability; others than ours read 0. */
uint32_t mlx5_vsc_read(Mlx5Vsc *v, uint32_t off);
void mlx5_vsc_write(Mlx5Vsc *v, uint32_t off, uint32_t value);

extern const VMStateDescription vmstate_mlx5_vsc;

#endif
