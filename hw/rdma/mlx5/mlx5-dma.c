/*
 * mlx5 HCA: its view of guest memory
 *
 * Plain DMA of function 0. RAM is used in place: a hold is a host pointer
 * that lives within one slice of work. Everything else (other devices' BARs)
 * goes through the memory core piece by piece.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/rcu.h"
#include "system/memory.h"
#include "system/address-spaces.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "mlx5-dma.h"
#include "mlx5-memic.h"
#include "trace.h"

/*
 * DMA that reaches a BAR of ours would start work in the middle of work: mark
 * the device busy, and the memory core refuses such an access.
 */
static bool mlx5_dma_enter(Mlx5Hca *h)
{
    bool was = h->guard && h->guard->engaged_in_io;

    if (h->guard) {
        h->guard->engaged_in_io = true;
    }
    return was;
}

static void mlx5_dma_leave(Mlx5Hca *h, bool was)
{
    if (h->guard) {
        h->guard->engaged_in_io = was;
    }
}

static Mlx5DmaResult mlx5_dma_rw(Mlx5Hca *h, uint64_t addr, void *buf,
                                 uint32_t len, bool is_write)
{
    bool was;
    MemTxResult r;

    if (!len) {
        return MLX5_DMA_OK;
    }
    if (addr & MLX5_DMA_MEMIC) {
        Mlx5Hold hold;

        if (mlx5_dma_hold(h, addr, len, is_write, &hold) != MLX5_DMA_OK) {
            return MLX5_DMA_ERROR;
        }
        memcpy(is_write ? hold.ptr : buf, is_write ? buf : hold.ptr, len);
        mlx5_dma_release(h, &hold, len);
        return MLX5_DMA_OK;
    }
    if (addr + len - 1 < addr) {
        return MLX5_DMA_ERROR;
    }
    was = mlx5_dma_enter(h);
    r = address_space_rw(h->as, addr, MEMTXATTRS_UNSPECIFIED, buf, len,
                         is_write);
    mlx5_dma_leave(h, was);
    if (r != MEMTX_OK) {
        trace_mlx5_dma_error(h->name, addr, len, is_write);
        return MLX5_DMA_ERROR;
    }
    return MLX5_DMA_OK;
}

Mlx5DmaResult mlx5_dma_read(Mlx5Hca *h, uint64_t addr, void *buf, uint32_t len)
{
    return mlx5_dma_rw(h, addr, buf, len, false);
}

Mlx5DmaResult mlx5_dma_write(Mlx5Hca *h, uint64_t addr, const void *buf,
                             uint32_t len)
{
    return mlx5_dma_rw(h, addr, (void *)buf, len, true);
}

Mlx5DmaResult mlx5_dma_hold(Mlx5Hca *h, uint64_t addr, uint64_t len,
                            bool is_write, Mlx5Hold *hold)
{
    MemoryRegion *mr;
    hwaddr xlat, l = len;

    *hold = (Mlx5Hold) { .addr = addr, .is_write = is_write };
    if (!len || addr + len - 1 < addr) {
        return MLX5_DMA_ERROR;
    }
    if (addr & MLX5_DMA_MEMIC) {
        hold->ptr = mlx5_memic_ptr(h, addr & ~MLX5_DMA_MEMIC, len);
        if (!hold->ptr) {
            return MLX5_DMA_ERROR;
        }
        hold->len = len;
        memory_region_ref(&h->memic_ram);
        return MLX5_DMA_OK;
    }

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(h->as, addr, &xlat, &l, is_write,
                                 MEMTXATTRS_UNSPECIFIED);
    if (!l) {
        return MLX5_DMA_ERROR;
    }
    hold->len = MIN(l, len);
    if (memory_access_is_direct(mr, is_write, MEMTXATTRS_UNSPECIFIED)) {
        memory_region_ref(mr);
        hold->ptr = (uint8_t *)memory_region_get_ram_ptr(mr) + xlat;
    }
    return MLX5_DMA_OK;
}

void mlx5_dma_release(Mlx5Hca *h, Mlx5Hold *hold, uint64_t done)
{
    if (hold->ptr) {
        /* Marks what was written dirty and drops the region's reference. */
        address_space_unmap(h->as, hold->ptr, hold->len,
                            hold->is_write && done, done);
        hold->ptr = NULL;
    }
}

static uint64_t mlx5_atomic_ptr(void *ptr, unsigned size,
                                uint64_t (*fn)(uint64_t old, void *opaque),
                                void *opaque)
{
    if (size == 8) {
        uint64_t was, old = qatomic_read__nocheck((uint64_t *)ptr);

        while ((was = qatomic_cmpxchg__nocheck((uint64_t *)ptr, old,
                                               fn(old, opaque))) != old) {
            old = was;
        }
        return old;
    } else {
        uint32_t was, old = qatomic_read((uint32_t *)ptr);

        while ((was = qatomic_cmpxchg((uint32_t *)ptr, old,
                                      (uint32_t)fn(old, opaque))) != old) {
            old = was;
        }
        return old;
    }
}

Mlx5DmaResult mlx5_dma_atomic(Mlx5Hca *h, uint64_t addr, unsigned size,
                              uint64_t (*fn)(uint64_t old, void *opaque),
                              void *opaque, uint64_t *old)
{
    Mlx5Hold hold;

    if ((size != 4 && size != 8) || addr & (size - 1)) {
        return MLX5_DMA_ERROR;
    }
    if (mlx5_dma_hold(h, addr, size, true, &hold) != MLX5_DMA_OK ||
        hold.len < size) {
        mlx5_dma_release(h, &hold, 0);
        return MLX5_DMA_ERROR;
    }
    if (hold.ptr) {
        *old = mlx5_atomic_ptr(hold.ptr, size, fn, opaque);
        mlx5_dma_release(h, &hold, size);
    } else if (size == 8) {
        uint64_t v;

        if (mlx5_dma_read(h, addr, &v, 8) != MLX5_DMA_OK) {
            return MLX5_DMA_ERROR;
        }
        *old = v;
        v = fn(v, opaque);
        return mlx5_dma_write(h, addr, &v, 8);
    } else {
        uint32_t v;

        if (mlx5_dma_read(h, addr, &v, 4) != MLX5_DMA_OK) {
            return MLX5_DMA_ERROR;
        }
        *old = v;
        v = fn(v, opaque);
        return mlx5_dma_write(h, addr, &v, 4);
    }
    return MLX5_DMA_OK;
}

bool mlx5_buf_init(Mlx5Buf *b, const uint8_t *pas, uint32_t pas_len,
                   uint32_t log_page_size, uint32_t page_offset, uint64_t size)
{
    uint64_t pages, offset;
    uint32_t log_page = log_page_size + 12;

    memset(b, 0, sizeof(*b));
    if (!size || size >= 1ull << 40 || log_page > 40) {
        return false;
    }
    offset = (uint64_t)page_offset << (log_page - 6);
    pages = (offset + size + (1ull << log_page) - 1) >> log_page;
    if (offset >> log_page || offset > UINT32_MAX || pages > pas_len / 8) {
        return false;
    }
    b->page = g_try_new(uint64_t, pages);
    if (!b->page) {
        return false;
    }
    for (uint64_t i = 0; i < pages; i++) {
        b->page[i] = ldq_be_p(pas + i * 8) & ~((1ull << log_page) - 1);
    }
    b->npages = pages;
    b->log_page = log_page;
    b->offset = offset;
    b->size = size;
    return true;
}

void mlx5_buf_fini(Mlx5Buf *b)
{
    g_free(b->page);
    memset(b, 0, sizeof(*b));
}

uint64_t mlx5_buf_addr(const Mlx5Buf *b, uint64_t off, uint64_t *contig)
{
    uint64_t mask = (1ull << b->log_page) - 1;
    uint64_t at = off + b->offset;

    if (off >= b->size || at >> b->log_page >= b->npages) {
        *contig = 0;
        return 0;
    }
    *contig = MIN(mask + 1 - (at & mask), b->size - off);
    return b->page[at >> b->log_page] + (at & mask);
}

static Mlx5DmaResult mlx5_buf_rw(Mlx5Hca *h, const Mlx5Buf *b, uint64_t off,
                                 void *p, uint32_t len, bool is_write)
{
    while (len) {
        uint64_t part;
        uint64_t addr = mlx5_buf_addr(b, off, &part);

        part = MIN(part, len);
        if (!part || mlx5_dma_rw(h, addr, p, part, is_write) != MLX5_DMA_OK) {
            return MLX5_DMA_ERROR;
        }
        off += part;
        p = (uint8_t *)p + part;
        len -= part;
    }
    return MLX5_DMA_OK;
}

Mlx5DmaResult mlx5_buf_read(Mlx5Hca *h, const Mlx5Buf *b, uint64_t off,
                            void *p, uint32_t len)
{
    return mlx5_buf_rw(h, b, off, p, len, false);
}

Mlx5DmaResult mlx5_buf_write(Mlx5Hca *h, const Mlx5Buf *b, uint64_t off,
                             const void *p, uint32_t len)
{
    return mlx5_buf_rw(h, b, off, (void *)p, len, true);
}

static bool mlx5_buf_post_load(void *opaque, int version_id, Error **errp)
{
    Mlx5Buf *b = opaque;

    if (b->npages &&
        (b->log_page < 12 || b->log_page > 40 ||
         b->offset >> b->log_page ||
         b->size > ((uint64_t)b->npages << b->log_page) - b->offset)) {
        error_setg(errp, "mlx5: a queue does not fit its pages");
        return false;
    }
    return true;
}

const VMStateDescription vmstate_mlx5_buf = {
    .name = "mlx5-buf",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load_errp = mlx5_buf_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(npages, Mlx5Buf),
        VMSTATE_VARRAY_UINT32_ALLOC(page, Mlx5Buf, npages, 1,
                                    vmstate_info_uint64, uint64_t),
        VMSTATE_UINT8(log_page, Mlx5Buf),
        VMSTATE_UINT32(offset, Mlx5Buf),
        VMSTATE_UINT64(size, Mlx5Buf),
        VMSTATE_END_OF_LIST()
    }
};
