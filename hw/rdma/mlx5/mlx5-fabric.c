/*
 * mlx5: the InfiniBand subnet that the HCAs of one QEMU share
 *
 * One switch; its port 0 has LID 1 and holds the subnet manager. Every HCA
 * that joins gets the lowest free LID, so that the same command line gives
 * the same subnet on both sides of a migration.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "mlx5-fabric.h"
#include "mlx5-vport.h"
#include "trace.h"

static QLIST_HEAD(, Mlx5Fabric) fabrics = QLIST_HEAD_INITIALIZER(fabrics);

enum { FABRIC_MAX_LID = 0xbfff };

#define FABRIC_PREFIX 0xfe80000000000000ULL  /* the default subnet prefix */
/* EUI-64 with the "locally administered" bit; fabric and LID follow. */
#define FABRIC_GUID   0x5254000000000000ULL

static Mlx5Fabric *fabric_get(const char *name)
{
    Mlx5Fabric *f;
    uint64_t id;

    QLIST_FOREACH(f, &fabrics, next) {
        if (!strcmp(f->name, name)) {
            return f;
        }
    }
    f = g_new0(Mlx5Fabric, 1);
    f->name = g_strdup(name);
    f->prefix = FABRIC_PREFIX;
    id = g_str_hash(name);
    f->switch_guid = FABRIC_GUID | (id & 0xffffffff) << 16 |
                     MLX5_FABRIC_SM_LID;
    f->next_lid = MLX5_FABRIC_FIRST_LID;
    QLIST_INIT(&f->hcas);
    QLIST_INSERT_HEAD(&fabrics, f, next);
    return f;
}

unsigned mlx5_fabric_count(Mlx5Fabric *f)
{
    unsigned n = 0;
    Mlx5Hca *h;

    QLIST_FOREACH(h, &f->hcas, on_fabric) {
        n++;
    }
    return n;
}

static Mlx5Hca *fabric_find_lid(Mlx5Fabric *f, uint16_t lid)
{
    Mlx5Hca *h;

    QLIST_FOREACH(h, &f->hcas, on_fabric) {
        if (h->port.lid == lid) {
            return h;
        }
    }
    return NULL;
}

void mlx5_fabric_join(Mlx5Hca *h)
{
    Mlx5Fabric *f = fabric_get(h->conf.fabric ?: "fabric0");
    Mlx5Port *p = &h->port;
    uint16_t lid = MLX5_FABRIC_FIRST_LID;
    uint64_t guid;

    while (fabric_find_lid(f, lid) && lid < FABRIC_MAX_LID) {
        lid++;
    }
    guid = h->conf.guid ?: (f->switch_guid & ~0xffffULL) | lid;
    h->fabric = f;
    *p = (Mlx5Port) {
        .node_guid = guid,
        .sys_guid = guid,
        .port_guid = guid,
        .lid = lid,
        .sm_lid = MLX5_FABRIC_SM_LID,
        .state = MLX5_IB_PORT_ACTIVE,
        .phys_state = MLX5_IB_PHYS_LINK_UP,
        .cap_mask1 = MLX5_IB_CAPS,
    };
    strpadcpy((char *)p->node_desc, sizeof(p->node_desc), h->name, 0);
    QLIST_INSERT_HEAD(&f->hcas, h, on_fabric);
    f->next_lid = MAX(f->next_lid, lid + 1);
    trace_mlx5_fabric_join(h->name, f->name, lid, guid);
}

void mlx5_fabric_leave(Mlx5Hca *h)
{
    Mlx5Fabric *f = h->fabric;

    trace_mlx5_fabric_leave(h->name, f->name, h->port.lid);
    QLIST_REMOVE(h, on_fabric);
    h->fabric = NULL;
    if (QLIST_EMPTY(&f->hcas)) {
        QLIST_REMOVE(f, next);
        mlx5_fabric_free_groups(f);
        g_free(f->name);
        g_free(f);
    }
}

Mlx5Hca *mlx5_fabric_by_lid(Mlx5Hca *from, uint16_t lid)
{
    Mlx5Hca *h;

    if (from->port.state != MLX5_IB_PORT_ACTIVE) {
        return NULL;
    }
    /* Most traffic of a lone HCA is to itself. */
    if (lid == from->port.lid) {
        return from;
    }
    h = fabric_find_lid(from->fabric, lid);
    return h && h->port.state == MLX5_IB_PORT_ACTIVE ? h : NULL;
}

Mlx5Hca *mlx5_fabric_by_gid(Mlx5Hca *from, const uint8_t gid[16])
{
    uint64_t prefix = ldq_be_p(gid), guid = ldq_be_p(gid + 8);
    Mlx5Hca *h;

    if (from->port.state != MLX5_IB_PORT_ACTIVE ||
        prefix != from->fabric->prefix) {
        return NULL;
    }
    QLIST_FOREACH(h, &from->fabric->hcas, on_fabric) {
        if (h->port.port_guid == guid &&
            h->port.state == MLX5_IB_PORT_ACTIVE) {
            return h;
        }
    }
    return NULL;
}

Mlx5Hca *mlx5_fabric_by_guid(Mlx5Hca *from, uint64_t port_guid)
{
    Mlx5Hca *h;

    QLIST_FOREACH(h, &from->fabric->hcas, on_fabric) {
        if (h->port.port_guid == port_guid) {
            return h;
        }
    }
    return NULL;
}

/* Multicast groups: created by the first join, kept while the subnet is. */

Mlx5McastGroup *mlx5_fabric_group(Mlx5Fabric *f, const uint8_t mgid[16],
                                  bool create, uint32_t qkey)
{
    Mlx5McastGroup *g;
    uint32_t n = 0;

    QLIST_FOREACH(g, &f->groups, next) {
        if (!memcmp(g->mgid, mgid, 16)) {
            return g;
        }
        n++;
    }
    if (!create || n >= MLX5_FABRIC_MAX_GROUPS) {
        return NULL;
    }
    g = g_new0(Mlx5McastGroup, 1);
    memcpy(g->mgid, mgid, 16);
    g->mlid = MLX5_LID_MCAST + n;
    g->qkey = qkey;
    QLIST_INSERT_HEAD(&f->groups, g, next);
    return g;
}

void mlx5_fabric_free_groups(Mlx5Fabric *f)
{
    Mlx5McastGroup *g, *next;

    QLIST_FOREACH_SAFE(g, &f->groups, next, next) {
        QLIST_REMOVE(g, next);
        g_free(g);
    }
}
