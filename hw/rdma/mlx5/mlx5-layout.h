/*
 * Where the fields of mlx5 commands, contexts and capabilities are
 *
 * All of these structures are big endian and laid out in bits from their
 * first byte's most significant bit. A field of at most 32 bits lies in one
 * aligned dword. Names are those of the Linux driver's interface description
 * (include/linux/mlx5/mlx5_ifc.h), which scripts/mlx5-layout.py reads to
 * write and to check the table below; only what our sources use is listed.
 * A field of a structure within a structure is named outer__inner. The width
 * of an array without a size is given as 0.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_LAYOUT_H
#define HW_RDMA_MLX5_LAYOUT_H

#include "qemu/bswap.h"

/* BEGIN TABLE (scripts/mlx5-layout.py --write) */
#define MLX5_FIELDS(X) \
    /* end */

#define MLX5_STRUCTS(S) \
    /* end */
/* END TABLE */

#define MLX5_LAYOUT_FIELD_(s, f, off, width) \
    MLX5_OFF_##s##_##f = (off), MLX5_WIDTH_##s##_##f = (width),
#define MLX5_LAYOUT_SIZE_(s, bytes) MLX5_BYTES_##s = (bytes),
enum { MLX5_FIELDS(MLX5_LAYOUT_FIELD_) MLX5_STRUCTS(MLX5_LAYOUT_SIZE_) };

/* Bytes that a structure takes. */
#define MLX5_BYTES(s) MLX5_BYTES_##s

/* Address of a field that is a structure or an array of bytes. */
#define MLX5_ADDR(p, s, f) \
    ((void *)((uintptr_t)(p) + MLX5_OFF_##s##_##f / 8))

/* Byte offset of a field that starts at a byte. */
#define MLX5_AT(s, f) (MLX5_OFF_##s##_##f / 8)

/* A field of at most 32 bits. */
#define MLX5_GET(p, s, f) \
    mlx5_field_get((p), MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f)
#define MLX5_SET(p, s, f, v) \
    mlx5_field_set((p), MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f, (v))

/* A field of 64 bits, which need not be aligned to more than 4 bytes. */
#define MLX5_GET64(p, s, f) \
    (QEMU_BUILD_BUG_ON_ZERO(MLX5_WIDTH_##s##_##f != 64) + \
     ldq_be_p((const uint8_t *)(p) + MLX5_OFF_##s##_##f / 8))
#define MLX5_SET64(p, s, f, v) do { \
        QEMU_BUILD_BUG_ON(MLX5_WIDTH_##s##_##f != 64); \
        stq_be_p((uint8_t *)(p) + MLX5_OFF_##s##_##f / 8, (v)); \
    } while (0)

static inline uint32_t mlx5_field_get(const void *p, uint32_t off,
                                      uint32_t width)
{
    uint32_t dword = ldl_be_p((const uint8_t *)p + off / 32 * 4);

    return width == 32 ? dword
                       : (dword >> (32 - off % 32 - width)) &
                         ((1u << width) - 1);
}

static inline void mlx5_field_set(void *p, uint32_t off, uint32_t width,
                                  uint32_t v)
{
    uint8_t *at = (uint8_t *)p + off / 32 * 4;
    uint32_t shift = 32 - off % 32 - width;
    uint32_t mask = (width == 32 ? 0xffffffff : (1u << width) - 1) << shift;

    stl_be_p(at, (ldl_be_p(at) & ~mask) | ((v << shift) & mask));
}

#endif
