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
    bool writable;                /* the process may write all of it */
} Mlx5Umem;

/*
 * A buffer of @size bytes at @offset of UMEM @id, as a queue's memory. The
 * page list is a copy; @r holds the UMEM, whose pages the kernel frees when it
 * is destroyed. false: no such UMEM of the command's user context, it is too
 * small, or the device is to write (@write) what the process may only read.
 */
bool mlx5_umem_buf(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t id, uint64_t offset,
                   uint64_t size, bool write, Mlx5Buf *b, Mlx5UmemRefs *r);
/*
 * DMA address of the 8 bytes of a doorbell record at *@addr of UMEM @id, which
 * the process may write; @r holds the UMEM.
 */
bool mlx5_umem_dbr(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t id, uint64_t *addr,
                   Mlx5UmemRefs *r);
/* The object of @r is gone. */
void mlx5_umem_put(Mlx5Hca *h, Mlx5UmemRefs *r);

/*
 * Where commands and contexts name their UMEMs, in bits from their start. The
 * kernel leaves these fields to user space, so its header does not have them
 * (rdma-core: tests/mlx5_prm_structs.py).
 */
#define MLX5_UMEM_CQ_OFFSET   0x280   /* CREATE_CQ, MODIFY_CQ; 64 bits */
#define MLX5_UMEM_CQ_ID       0x2c0   /* ... 32 bits */
#define MLX5_UMEM_CQC_DBR_ID  0x20    /* CQ context; 32 bits */
#define MLX5_UMEM_QPC_DBR_ID  0x720   /* QP context; 32 bits */
#define MLX5_UMEM_MKEY_ID     0x320   /* CREATE_MKEY; 32 bits */
#define MLX5_UMEM_MKEY_OFFSET 0x340   /* ... 64 bits */

static inline uint32_t mlx5_umem_get32(const void *p, uint32_t bits)
{
    return ldl_be_p((const uint8_t *)p + bits / 8);
}

static inline uint64_t mlx5_umem_get64(const void *p, uint32_t bits)
{
    return ldq_be_p((const uint8_t *)p + bits / 8);
}

void mlx5_devx_init(Mlx5Hca *h);
void mlx5_devx_fini(Mlx5Hca *h);
void mlx5_devx_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_devx;  /* of Mlx5Hca */

#endif
