/*
 * mlx5 user contexts (DEVX) and the memory that they register for objects
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_DEVX_H
#define HW_RDMA_MLX5_DEVX_H

#include "mlx5-cmd.h"
#include "mlx5-dma.h"

/* A list of pages that the kernel pinned for a user context. */
typedef struct Mlx5Umem {
    Mlx5Obj obj;                  /* id: UMEM number; refs: buffers in it */
    Mlx5Buf buf;
} Mlx5Umem;

/*
 * A buffer of @size bytes at @offset of UMEM @id, as a queue's memory. The
 * page list is a copy: the UMEM may go. false: no such UMEM of the command's
 * user context, or it is too small.
 */
bool mlx5_umem_buf(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t id, uint64_t offset,
                   uint64_t size, Mlx5Buf *b);
/* DMA address of @len bytes at @offset, which must not cross a page. */
bool mlx5_umem_addr(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t id,
                    uint64_t offset, uint32_t len, uint64_t *addr);

void mlx5_devx_init(Mlx5Hca *h);
void mlx5_devx_fini(Mlx5Hca *h);
void mlx5_devx_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_devx;  /* of Mlx5Hca */

#endif
