/*
 * mlx5 HCA: its view of guest memory
 *
 * Everything the HCA reads or writes in guest memory goes through these
 * calls: first plain DMA of function 0, later a PCIe requester that can
 * suspend (then MLX5_DMA_PENDING appears). Addresses are DMA addresses
 * (IOVAs behind an IOMMU), lengths are bytes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_DMA_H
#define HW_RDMA_MLX5_DMA_H

#include "mlx5-core.h"

typedef enum Mlx5DmaResult {
    MLX5_DMA_OK,
    MLX5_DMA_ERROR,               /* the access was refused or hit nothing */
    MLX5_DMA_PENDING,             /* suspended; not returned today */
} Mlx5DmaResult;

/* Copies between guest memory and a buffer of ours. */
Mlx5DmaResult mlx5_dma_read(Mlx5Hca *h, uint64_t addr, void *buf, uint32_t len);
Mlx5DmaResult mlx5_dma_write(Mlx5Hca *h, uint64_t addr, const void *buf,
                             uint32_t len);

/*
 * A piece of guest memory held as a host pointer. A hold lives within one
 * slice of work: it is released before anything waits. @len comes back
 * clipped to what is contiguous. ptr is NULL where the target is not RAM;
 * the caller then copies through mlx5_dma_read()/_write().
 */
typedef struct Mlx5Hold {
    void *ptr;
    uint64_t addr, len;
    bool is_write;
} Mlx5Hold;

Mlx5DmaResult mlx5_dma_hold(Mlx5Hca *h, uint64_t addr, uint64_t len,
                            bool is_write, Mlx5Hold *hold);
/* @done bytes from the start were accessed (and are marked dirty). */
void mlx5_dma_release(Mlx5Hca *h, Mlx5Hold *hold, uint64_t done);

/*
 * Atomic on 8 or 4 naturally aligned bytes (CPU byte order as in memory is
 * the caller's business): runs @fn(old, opaque) -> new under a host atomic
 * compare-exchange, so that guest CPUs' atomics on the same word hold.
 */
Mlx5DmaResult mlx5_dma_atomic(Mlx5Hca *h, uint64_t addr, unsigned size,
                              uint64_t (*fn)(uint64_t old, void *opaque),
                              void *opaque, uint64_t *old);

/*
 * A queue's memory as the driver hands it over: a list of pages.
 * Offsets are bytes from the queue's first byte (page_offset applied).
 */
typedef struct Mlx5Buf {
    uint64_t *page;               /* DMA address of each page */
    uint32_t npages;
    uint8_t log_page;             /* log2 of the page size in bytes, 12.. */
    uint32_t offset;              /* of the first byte in page 0 */
    uint64_t size;                /* bytes that the queue uses */
} Mlx5Buf;

extern const VMStateDescription vmstate_mlx5_buf;

/*
 * Takes the page list @pas (@pas_len bytes, big endian; low bits of an entry
 * are ignored). @log_page_size is the context's field (log2 - 12),
 * @page_offset in units of page_size/64. false: the list is too short.
 */
bool mlx5_buf_init(Mlx5Buf *b, const uint8_t *pas, uint32_t pas_len,
                   uint32_t log_page_size, uint32_t page_offset, uint64_t size);
void mlx5_buf_fini(Mlx5Buf *b);
/*
 * DMA address of byte @off; *@contig: bytes from there to the page's or the
 * queue's end, 0 when @off is outside.
 */
uint64_t mlx5_buf_addr(const Mlx5Buf *b, uint64_t off, uint64_t *contig);
Mlx5DmaResult mlx5_buf_read(Mlx5Hca *h, const Mlx5Buf *b, uint64_t off,
                            void *p, uint32_t len);
Mlx5DmaResult mlx5_buf_write(Mlx5Hca *h, const Mlx5Buf *b, uint64_t off,
                             const void *p, uint32_t len);

#endif
