/*
 * mlx5 SVA portals: what the HCA's PCI function does with theirs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_PORTAL_PCI_H
#define HW_RDMA_MLX5_PORTAL_PCI_H

#include "hw/pci/pci_device.h"
#include "mlx5-portal.h"

typedef struct Mlx5PortalConf {
    bool no_ats;                  /* keys while ATS is off */
    bool no_pasid;                /* keys without PASID */
} Mlx5PortalConf;

/*
 * Makes function @function of @pf's slot, a child of @pf. It goes with
 * object_unparent(), or with its parent.
 */
bool mlx5_portal_create(Mlx5Hca *h, PCIDevice *pf, unsigned function,
                        const Mlx5PortalConf *conf, Error **errp);

/* The child's name; to be freed. */
static inline char *mlx5_portal_child(unsigned function)
{
    return g_strdup_printf("sva-portal[%u]", function);
}

#endif
