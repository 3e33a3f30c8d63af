/*
 * mlx5 HCA as a whole: its state, the init segment, its clock
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_HCA_H
#define HW_RDMA_MLX5_HCA_H

#include "mlx5-cmd.h"

enum {
    MLX5_CMDQ_LOG_SIZE = 5,       /* entries */
    MLX5_CMDQ_LOG_STRIDE = 6,     /* bytes of one */
    MLX5_ISEG_SIZE = 0x3000,      /* bytes of BAR0 that are the init segment */
};

enum {
    MLX5_VENDOR_ID = 0x15b3,
    MLX5_DEVICE_ID = 0x101b,      /* ConnectX-6 */
};

/* Firmware version that the init segment and registers tell. */
enum {
    MLX5_FW_MAJOR = 20,
    MLX5_FW_MINOR = 31,
    MLX5_FW_SUB = 1014,
};

#define MLX5_PSID "QODP000000001"

extern const VMStateDescription vmstate_mlx5_cmd, vmstate_mlx5_hca_state;

void mlx5_hca_init(Mlx5Hca *h);
void mlx5_hca_fini(Mlx5Hca *h);
/*
 * Function-level or bus reset: everything of the guest ends, all state is
 * as after power-up.
 */
void mlx5_hca_reset(Mlx5Hca *h);

/* A command with these MLX5_CMDF_* flags may run now. */
bool mlx5_hca_allows(Mlx5Hca *h, uint32_t flags);
/* DMA address of the command queue; 0: none. */
uint64_t mlx5_hca_cmdq(Mlx5Hca *h);

/* Init segment: @off below MLX5_ISEG_SIZE, aligned dwords, CPU order. */
uint32_t mlx5_iseg_read(Mlx5Hca *h, uint32_t off);
void mlx5_iseg_write(Mlx5Hca *h, uint32_t off, uint32_t value);

/*
 * What the driver's health poll sees; @syndrome of mlx5-health.h. Of a fatal
 * one all commands and traffic end, and nothing but the driver's reset (or the
 * function's) mends the device.
 */
void mlx5_hca_set_health(Mlx5Hca *h, uint8_t syndrome);
uint8_t mlx5_hca_health(Mlx5Hca *h);
/* It is fatal. */
bool mlx5_hca_broken(Mlx5Hca *h);

#endif
