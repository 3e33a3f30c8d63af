/*
 * mlx5: the InfiniBand subnet that the HCAs of one QEMU share
 *
 * A virtual switch with an embedded subnet manager (LID 1). HCAs of the same
 * fabric name get LIDs in order and reach each other by function calls, so a
 * transfer between them is one copy.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_FABRIC_H
#define HW_RDMA_MLX5_FABRIC_H

#include "mlx5-core.h"

enum {
    MLX5_FABRIC_SM_LID = 1,
    MLX5_FABRIC_FIRST_LID = 2,
    MLX5_LID_PERMISSIVE = 0xffff,
    MLX5_LID_MCAST = 0xc000,      /* first multicast LID */
    MLX5_FABRIC_MAX_GROUPS = 1024,
};

typedef struct Mlx5McastGroup {
    uint8_t mgid[16];
    uint16_t mlid;
    uint32_t qkey;
    QLIST_ENTRY(Mlx5McastGroup) next;
} Mlx5McastGroup;

struct Mlx5Fabric {
    char *name;
    uint64_t prefix;              /* subnet prefix of every GID */
    uint64_t switch_guid;
    uint16_t next_lid;
    QLIST_HEAD(, Mlx5Hca) hcas;
    QLIST_HEAD(, Mlx5McastGroup) groups;
    QLIST_ENTRY(Mlx5Fabric) next;
};

/* Joins h->conf.fabric, sets the port's LIDs, GUIDs and state (active). */
void mlx5_fabric_join(Mlx5Hca *h);
void mlx5_fabric_leave(Mlx5Hca *h);
/* The HCA that answers to a unicast LID, or NULL. */
Mlx5Hca *mlx5_fabric_by_lid(Mlx5Hca *from, uint16_t lid);
/* ... or whose port GUID is @guid; ... */
Mlx5Hca *mlx5_fabric_by_guid(Mlx5Hca *from, uint64_t guid);
/* ... or to a GID (16 bytes). */
Mlx5Hca *mlx5_fabric_by_gid(Mlx5Hca *from, const uint8_t gid[16]);

/* HCAs on the subnet. */
unsigned mlx5_fabric_count(Mlx5Fabric *f);
/*
 * A multicast group, NULL: there is none. With @create it is made (NULL: no
 * room), with @qkey.
 */
Mlx5McastGroup *mlx5_fabric_group(Mlx5Fabric *f, const uint8_t mgid[16],
                                  bool create, uint32_t qkey);
void mlx5_fabric_free_groups(Mlx5Fabric *f);

/*
 * mlx5-mad.c: one 256-byte MAD for the management agents of @h's port (or
 * for the embedded SM/SA when @to_sm). Returns true and fills @out when
 * there is a reply.
 */
bool mlx5_mad_process(Mlx5Hca *h, bool to_sm, uint16_t slid, uint32_t src_qp,
                      const uint8_t in[256], uint8_t out[256]);

#endif
