/*
 * mlx5 management datagrams: what their files share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_MAD_H
#define HW_RDMA_MLX5_MAD_H

#include "mlx5-core.h"

/* Common head of a MAD (IBA 13.4.3). */
enum {
    MAD_BASE_VERSION = 0,
    MAD_CLASS = 1,
    MAD_CLASS_VERSION = 2,
    MAD_METHOD = 3,
    MAD_STATUS = 4,
    MAD_ATTR = 16,
    MAD_ATTR_MOD = 20,
};

enum {
    MAD_CLASS_SMP = 0x01,
    MAD_CLASS_SA = 0x03,
    MAD_CLASS_PMA = 0x04,
    MAD_CLASS_SMP_DR = 0x81,
};

enum {
    MAD_GET = 0x01,
    MAD_SET = 0x02,
    MAD_SEND = 0x03,
    MAD_TRAP = 0x05,
    MAD_TRAP_REPRESS = 0x07,
    MAD_GET_TABLE = 0x12,
    MAD_DELETE = 0x15,
    MAD_RESPONSE = 0x80,
    MAD_GET_RESP = 0x81,
};

/* Status: the invalid-field codes, and SA's own in the upper byte. */
enum {
    MAD_OK = 0x0000,
    MAD_BAD_VERSION = 0x0004,
    MAD_BAD_METHOD = 0x0008,
    MAD_BAD_METHOD_ATTR = 0x000c,
    MAD_BAD_ATTR = 0x000c,
    MAD_BAD_FIELD = 0x001c,
    MAD_SA_NO_RESOURCES = 0x0100,
    MAD_SA_REQ_INVALID = 0x0200,
    MAD_SA_NO_RECORDS = 0x0300,
    MAD_SA_TOO_MANY_RECORDS = 0x0400,
    MAD_SA_BAD_GID = 0x0500,
    MAD_SA_SHORT_COMPONENTS = 0x0600,
};

/* Attributes of @h's port, or of the switch where @h is NULL. */
void mlx5_mad_node_info(Mlx5Fabric *f, Mlx5Hca *h, uint8_t *d);
void mlx5_mad_node_desc(Mlx5Fabric *f, Mlx5Hca *h, uint8_t *d);
void mlx5_mad_port_info(Mlx5Fabric *f, Mlx5Hca *h, uint8_t *d);

/*
 * mlx5-mad-sa.c: subnet administration. @h asks, from @slid. @out starts as
 * a copy of @in. Returns the status.
 */
uint16_t mlx5_sa_process(Mlx5Hca *h, uint16_t slid, const uint8_t *in,
                         uint8_t *out);

#endif
