/*
 * mlx5 HCA: its view of guest memory
 *
 * Everything the HCA reads or writes in guest memory goes through these
 * calls, and through the PCIe requester of function 0 or of an SVA portal.
 * Payload may be suspended: then it waits (MLX5_DMA_PENDING) and its
 * operation looks up again from the start when it is resumed. Everything
 * else never waits: an access that the IOMMU would suspend is terminated.
 *
 * Addresses are DMA addresses (IOVAs behind an IOMMU), lengths are bytes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_DMA_H
#define HW_RDMA_MLX5_DMA_H

#include "hw/pci/pcie_requester.h"
#include "mlx5-core.h"
#include "mlx5-faults.h"

typedef enum Mlx5DmaResult {
    MLX5_DMA_OK,
    MLX5_DMA_ERROR,               /* the access was refused or hit nothing */
    MLX5_DMA_PENDING,             /* suspended: the wait's ready() will come */
} Mlx5DmaResult;

/* Copies between guest memory and a buffer of ours, by function 0. */
Mlx5DmaResult mlx5_dma_read(Mlx5Hca *h, uint64_t addr, void *buf, uint32_t len);
Mlx5DmaResult mlx5_dma_write(Mlx5Hca *h, uint64_t addr, const void *buf,
                             uint32_t len);
/* Likewise, by the function and PASID of @via. */
Mlx5DmaResult mlx5_dma_read_via(Mlx5Hca *h, const Mlx5DmaVia *via,
                                uint64_t addr, void *buf, uint32_t len);
Mlx5DmaResult mlx5_dma_write_via(Mlx5Hca *h, const Mlx5DmaVia *via,
                                 uint64_t addr, const void *buf, uint32_t len);

/*
 * A piece of guest memory held as a host pointer. A hold lives within one
 * slice of work: it is released before anything waits. @len comes back
 * clipped to what is contiguous.
 */
typedef struct Mlx5Hold {
    void *ptr;
    uint64_t len;
    bool is_ram;                  /* else a buffer: release() writes it */
    RecoverableDMAHold dma;
} Mlx5Hold;

Mlx5DmaResult mlx5_dma_hold(Mlx5Hca *h, uint64_t addr, uint64_t len,
                            bool is_write, Mlx5Hold *hold);
/* @done bytes from the start were accessed (and are marked dirty). */
void mlx5_dma_release(Mlx5Hca *h, Mlx5Hold *hold, uint64_t done);

/*
 * An access that can wait; embedded in an operation, zeroed at its start.
 * It stands still while it waits. What it counted stays until it is zeroed:
 * resumed accesses that do not get on are refused after a number of tries.
 */
typedef struct Mlx5DmaWait {
    /*
     * Called once after MLX5_DMA_PENDING. @ok: look up again from the start;
     * else the access was refused.
     */
    void (*ready)(struct Mlx5DmaWait *w, bool ok);

    /* Private. */
    PCIeRequest req;
    Mlx5Hca *hca;                 /* whose access waits; NULL: none does */
    Mlx5DmaVia via;
    Mlx5FaultStats *stats[MLX5_FAULT_SINKS];
    int64_t since;                /* virtual ns */
    uint64_t at[2];               /* where reading and writing waited last */
    uint8_t tries[2];             /* and how often */
    bool resumed[2];              /* not counted as resolved yet */
    QTAILQ_ENTRY(Mlx5DmaWait) link;
} Mlx5DmaWait;

/*
 * Holds payload by the function and PASID of @via. @qp: where the queue pair
 * whose work it is keeps its counters.
 */
Mlx5DmaResult mlx5_dma_hold_via(Mlx5Hca *h, const Mlx5DmaVia *via,
                                Mlx5DmaWait *w, Mlx5FaultStats **qp,
                                uint64_t addr, uint64_t len, bool is_write,
                                Mlx5Hold *hold);
/* ready() will not come. Harmless where nothing waits. */
void mlx5_dma_cancel(Mlx5DmaWait *w);

/*
 * Atomic on 8 or 4 naturally aligned bytes (CPU byte order as in memory is
 * the caller's business): runs @fn(old, opaque) -> new under a host atomic
 * compare-exchange, so that guest CPUs' atomics on the same word hold.
 */
Mlx5DmaResult mlx5_dma_atomic(Mlx5Hca *h, const Mlx5DmaVia *via,
                              Mlx5DmaWait *w, Mlx5FaultStats **qp,
                              uint64_t addr, unsigned size,
                              uint64_t (*fn)(uint64_t old, void *opaque),
                              void *opaque, uint64_t *old);

/*
 * The functions that do the DMA: 0 and portals by number. Detaching ends
 * what waits there.
 */
void mlx5_dma_init(Mlx5Hca *h, PCIeRequester *r);
void mlx5_dma_fini(Mlx5Hca *h);
void mlx5_dma_attach(Mlx5Hca *h, unsigned function, PCIeRequester *r);
void mlx5_dma_detach(Mlx5Hca *h, unsigned function);
/* A key or a function ends: what waits for it is refused. */
void mlx5_dma_end_key(Mlx5Hca *h, uint32_t key);
void mlx5_dma_end_function(Mlx5Hca *h, unsigned function);

typedef struct Mlx5DmaFunction {
    PCIeRequester *r;             /* NULL: there is no such function */
    Mlx5FaultStats stats;
} Mlx5DmaFunction;

typedef struct Mlx5DmaState {
    Mlx5DmaFunction fn[1 + MLX5_MAX_PORTALS];
    QTAILQ_HEAD(, Mlx5DmaWait) waits;
} Mlx5DmaState;

extern const VMStateDescription vmstate_mlx5_dma; /* of Mlx5Hca */

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
