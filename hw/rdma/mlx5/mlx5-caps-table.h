/*
 * mlx5 capability table: its rows
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_CAPS_TABLE_H
#define HW_RDMA_MLX5_CAPS_TABLE_H

#include <stdint.h>

/* When a row applies. */
enum Mlx5CapWhen {
    MLX5_CAP_ALWAYS,
    MLX5_CAP_ODP_ANY,             /* odp=memory or odp=transport */
    MLX5_CAP_ODP_MEMORY,
    MLX5_CAP_ODP_TRANSPORT,
    MLX5_CAP_ATS,                 /* ats=on */
    MLX5_CAP_NOT_KVM,
};

/* What SET_HCA_CAP does with the field. */
enum Mlx5CapSet {
    MLX5_CAP_FIXED,               /* ignores it; current is the maximum */
    MLX5_CAP_SETTABLE,            /* from the maximum down */
    MLX5_CAP_SET_FROM_0,          /* from 0 up to the maximum */
    MLX5_CAP_SET_BITS,            /* any subset of the maximum's bits */
};

typedef struct Mlx5CapRow {
    const char *name;
    uint16_t type;                /* Mlx5CapType */
    uint16_t off;                 /* bits */
    uint8_t width;                /* bits; 0 ends the table */
    uint8_t when;                 /* Mlx5CapWhen */
    uint8_t set;                  /* Mlx5CapSet */
    uint32_t max;
} Mlx5CapRow;

extern const Mlx5CapRow mlx5_cap_rows[];

#endif
