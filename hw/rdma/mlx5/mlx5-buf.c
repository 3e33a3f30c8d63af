/*
 * mlx5 HCA: queues in guest memory, by their lists of pages
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "mlx5-dma.h"

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
        if (!part || (is_write ? mlx5_dma_write(h, addr, p, part)
                               : mlx5_dma_read(h, addr, p, part)) !=
                     MLX5_DMA_OK) {
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
