/*
 * mlx5 SVA portals: registers of the function, keys of its address space
 *
 * See docs/specs/mlx5-sva-portal.md.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_PORTAL_H
#define HW_RDMA_MLX5_PORTAL_H

#include "mlx5-core.h"

#define TYPE_MLX5_PORTAL "mlx5-sva-portal"

enum {
    MLX5_PORTAL_DEVICE_ID = 0x7f5a,
    MLX5_PORTAL_LOG_KEYS = 12,    /* that one portal holds at most */
    MLX5_PORTAL_RESTING = 4096,   /* ended keys whose index is not reused */
};

/* RESULT register */
typedef enum Mlx5PortalResult {
    MLX5_PORTAL_OK,
    MLX5_PORTAL_BAD_COMMAND,
    MLX5_PORTAL_NO_PASID,
    MLX5_PORTAL_BAD_PASID,
    MLX5_PORTAL_LATCHED,
    MLX5_PORTAL_PASID_OFF,
    MLX5_PORTAL_ATS_OFF,
    MLX5_PORTAL_NO_MASTER,
    MLX5_PORTAL_HCA_DOWN,
    MLX5_PORTAL_UNBOUND,
    MLX5_PORTAL_BAD_PD,
    MLX5_PORTAL_BAD_ACCESS,
    MLX5_PORTAL_BAD_RANGE,
    MLX5_PORTAL_NO_RESOURCES,
    MLX5_PORTAL_BAD_KEY,
} Mlx5PortalResult;

/* KEY_ACCESS register: the values of enum ibv_access_flags */
enum {
    MLX5_PORTAL_LOCAL_WRITE   = 1 << 0,
    MLX5_PORTAL_REMOTE_WRITE  = 1 << 1,
    MLX5_PORTAL_REMOTE_READ   = 1 << 2,
    MLX5_PORTAL_REMOTE_ATOMIC = 1 << 3,
    MLX5_PORTAL_NO_PASID_KEY  = 1u << 31,
};

/* What a portal key is made of, and tells when it is asked. */
typedef struct Mlx5PortalKey {
    uint32_t pd;
    uint32_t access;              /* KEY_ACCESS */
    uint64_t start, length;       /* length 0: everything */
    uint32_t key;                 /* lkey and rkey, once it is made */
} Mlx5PortalKey;

/*
 * mlx5-portal-key.c. @function: the portal's number. The caller has checked
 * what the function's state allows.
 */
Mlx5PortalResult mlx5_portal_key_make(Mlx5Hca *h, unsigned function,
                                      uint32_t pasid, Mlx5PortalKey *k);
Mlx5PortalResult mlx5_portal_key_destroy(Mlx5Hca *h, unsigned function,
                                         uint32_t key);
Mlx5PortalResult mlx5_portal_key_query(Mlx5Hca *h, unsigned function,
                                       Mlx5PortalKey *k,
                                       Mlx5FaultStats *stats);
/* All keys of a portal (or those with a PASID), or of a PD, end. */
void mlx5_portal_end_keys(Mlx5Hca *h, unsigned function, bool pasid_only);
void mlx5_portal_pd_gone(Mlx5Hca *h, uint32_t pd);
uint32_t mlx5_portal_nkeys(Mlx5Hca *h, unsigned function);
/* This key of a portal ends: what uses it fails, its index rests. */
void mlx5_portal_key_end(Mlx5Hca *h, Mlx5Mkey *mk);

void mlx5_portal_keys_init(Mlx5Hca *h);
void mlx5_portal_keys_fini(Mlx5Hca *h);
/* All keys are gone; which variants come next is remembered. */
void mlx5_portal_keys_reset(Mlx5Hca *h);
/* After load: counts and resting keys from the table of keys. */
bool mlx5_portal_keys_post_load(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_mkey_portal; /* of Mlx5Mkey */

#endif
