/*
 * mlx5 port: what it is and what state it has
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_VPORT_H
#define HW_RDMA_MLX5_VPORT_H

#include "mlx5-core.h"

/* InfiniBand port states and physical states (IBA 14.2.5.6, PortInfo). */
enum {
    MLX5_IB_PORT_DOWN = 1,
    MLX5_IB_PORT_INIT = 2,
    MLX5_IB_PORT_ARMED = 3,
    MLX5_IB_PORT_ACTIVE = 4,

    MLX5_IB_PHYS_POLLING = 2,
    MLX5_IB_PHYS_DISABLED = 3,
    MLX5_IB_PHYS_LINK_UP = 5,
};

/* The link: 4X HDR, MTU 4096, VL0 to VL3. */
enum {
    MLX5_IB_WIDTHS = 1 << 0 | 1 << 1,   /* PortInfo: 1X, 4X */
    MLX5_IB_WIDTH = 1 << 1,
    MLX5_PTYS_WIDTHS = 1 << 0 | 1 << 2, /* register PTYS: 1X, 4X */
    MLX5_PTYS_WIDTH = 1 << 2,
    MLX5_IB_SPEEDS = 0x7f,              /* SDR .. HDR */
    MLX5_IB_SPEED = 1 << 6,             /* HDR */
    MLX5_IB_MTU_BYTES = 4096,
    MLX5_IB_MTU = 5,                    /* the code for 4096 */
    MLX5_IB_RATE = 16,                  /* path rate code: 200 Gb/s */
    MLX5_IB_VL_CAP = 4,                 /* PVLC: VL0..VL3 */
    MLX5_IB_VL_CAP_CODE = 3,            /* PortInfo: VL0..VL3 */
    MLX5_IB_SUBNET_TIMEOUT = 18,
    MLX5_DEFAULT_PKEY = 0xffff,         /* the only entry, full member */
};

/* PortInfo CapabilityMask bits. */
enum {
    MLX5_IB_CAP_SM = 1 << 1,
    MLX5_IB_CAP_SL_MAP = 1 << 6,
    MLX5_IB_CAP_SYS_GUID = 1 << 11,
    MLX5_IB_CAP_EXT_SPEEDS = 1 << 14,
    MLX5_IB_CAP_CM = 1 << 16,
    MLX5_IB_CAP_SNMP = 1 << 17,
    MLX5_IB_CAP_DEV_MGMT = 1 << 19,
    MLX5_IB_CAP_VENDOR_CLASS = 1 << 21,
    MLX5_IB_CAP_CLIENT_REG = 1 << 25,

    MLX5_IB_CAPS = MLX5_IB_CAP_SL_MAP | MLX5_IB_CAP_SYS_GUID |
                   MLX5_IB_CAP_EXT_SPEEDS | MLX5_IB_CAP_CM |
                   MLX5_IB_CAP_CLIENT_REG,
    /* Those that the driver may change. */
    MLX5_IB_CAPS_SETTABLE = MLX5_IB_CAP_SM | MLX5_IB_CAP_CM |
                            MLX5_IB_CAP_SNMP | MLX5_IB_CAP_DEV_MGMT |
                            MLX5_IB_CAP_VENDOR_CLASS,
};

/* GID 0: subnet prefix and port GUID. */
void mlx5_port_gid(Mlx5Hca *h, uint8_t gid[16]);
/* Moves the port between down and active; tells the driver. */
void mlx5_port_set_state(Mlx5Hca *h, uint8_t state);

extern const VMStateDescription vmstate_mlx5_port;  /* of Mlx5Hca */

#endif
