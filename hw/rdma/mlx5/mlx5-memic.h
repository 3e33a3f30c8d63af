/*
 * mlx5 device memory (MEMIC): RAM on the HCA, seen through BAR0
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_MEMIC_H
#define HW_RDMA_MLX5_MEMIC_H

#include "mlx5-core.h"

enum {
    MLX5_MEMIC_BYTES = 256 * 1024,
    MLX5_MEMIC_LOG_MIN = 6,       /* smallest allocation, bytes, log2 */
};

/* Operations: each has a window like the memory's own in BAR0. */
enum Mlx5MemicOp {
    MLX5_MEMIC_INCREMENT,         /* a write adds what is written */
    MLX5_MEMIC_TEST_AND_SET,      /* a read gives what was there, leaves 1 */
    MLX5_MEMIC_OPS,
};

/*
 * Marks an address that mlx5_mkey_translate() found as one of device memory:
 * the rest is an offset in it. No DMA address has this bit.
 */
#define MLX5_DMA_MEMIC (1ull << 63)

/* Allocations, in units of 64 bytes; the RAM itself is h->memic_ram. */
typedef struct Mlx5MemicState {
    uint64_t bar_offset;          /* where in BAR0 it begins */
    int32_t units;
    unsigned long *used;          /* a bit for each unit that is taken */
    unsigned long *start;         /* a bit for each allocation's first unit */
    unsigned long *op[MLX5_MEMIC_OPS]; /* units that take this operation */
    uint64_t window_offset;       /* of the first one in BAR0 */
} Mlx5MemicState;

/*
 * Makes the memory and puts it into @bar at @offset (a multiple of its
 * size), the windows of the operations right before it. Called once by the
 * shell when it realizes.
 */
bool mlx5_memic_init(Mlx5Hca *h, MemoryRegion *bar, uint64_t offset,
                     Error **errp);
void mlx5_memic_fini(Mlx5Hca *h);
/* Frees every allocation and forgets what was written. */
void mlx5_memic_destroy_all(Mlx5Hca *h);

/* Bytes of device memory at BAR0 offset @addr; NULL: outside. */
void *mlx5_memic_ptr(Mlx5Hca *h, uint64_t offset, uint64_t len);

extern const VMStateDescription vmstate_mlx5_memic; /* of Mlx5Hca */

#endif
