/*
 * mlx5 multicast: which queue pairs hear which group
 *
 * A datagram to a multicast LID goes to every queue pair of the subnet that
 * is attached to its GID, one after the other: HCAs in order of their LIDs,
 * within each in order of the memberships' numbers. The sender's own are
 * among them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-cmd.h"
#include "mlx5-core.h"
#include "mlx5-fabric.h"
#include "mlx5-mcast.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "mlx5-vport.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_MCG_QP = 0x590001,
    SYND_MCG_GID,
    SYND_MCG_FULL,
    SYND_MCG_UNKNOWN,
};

static Mlx5Mcg *mcg_find(Mlx5Hca *h, const uint8_t *gid, uint32_t qpn,
                         unsigned *members)
{
    Mlx5Obj *o;

    *members = 0;
    QTAILQ_FOREACH(o, &h->mcgs.all, next) {
        Mlx5Mcg *m = (Mlx5Mcg *)o;

        if (!memcmp(m->gid, gid, sizeof(m->gid))) {
            if (m->qpn == qpn) {
                return m;
            }
            ++*members;
        }
    }
    return NULL;
}

static void mcg_free(Mlx5Hca *h, Mlx5Mcg *m)
{
    Mlx5Obj *qp = mlx5_table_get(&h->qps, m->qpn);

    if (qp) {
        ((Mlx5Qp *)qp)->nmcgs--;
    }
    mlx5_table_del(&h->mcgs, &m->obj);
    g_free(m);
}

static enum Mlx5CmdStatus cmd_attach(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *gid = MLX5_ADDR(c->in, attach_to_mcg_in, multicast_gid);
    uint32_t qpn = MLX5_GET(c->in, attach_to_mcg_in, qpn);
    Mlx5Qp *qp = (Mlx5Qp *)mlx5_res_get(c, &h->qps, qpn);
    unsigned members;
    Mlx5Mcg *m;

    if (!qp || qp->st != MLX5_ST_UD) {
        c->syndrome = SYND_MCG_QP;
        return MLX5_CMD_BAD_RES;
    }
    if (gid[0] != 0xff) {
        c->syndrome = SYND_MCG_GID;
        return MLX5_CMD_BAD_PARAM;
    }
    if (mcg_find(h, gid, qpn, &members)) {
        return MLX5_CMD_OK;
    }
    m = g_new0(Mlx5Mcg, 1);
    m->obj.uid = c->uid;
    m->qpn = qpn;
    memcpy(m->gid, gid, sizeof(m->gid));
    if (members >= MLX5_MAX_QP_MCG || !mlx5_table_add(&h->mcgs, &m->obj)) {
        g_free(m);
        c->syndrome = SYND_MCG_FULL;
        return MLX5_CMD_NO_RES;
    }
    qp->nmcgs++;
    trace_mlx5_mcg(h->name, qpn, ldq_be_p(gid), ldq_be_p(gid + 8), true);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_detach(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *gid = MLX5_ADDR(c->in, detach_from_mcg_in, multicast_gid);
    uint32_t qpn = MLX5_GET(c->in, detach_from_mcg_in, qpn);
    unsigned members;
    Mlx5Mcg *m = mcg_find(h, gid, qpn, &members);

    if (!m || !mlx5_res_get(c, &h->qps, qpn)) {
        c->syndrome = SYND_MCG_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    trace_mlx5_mcg(h->name, qpn, ldq_be_p(gid), ldq_be_p(gid + 8), false);
    mcg_free(h, m);
    return MLX5_CMD_OK;
}

void mlx5_mcast_forget(Mlx5Qp *qp)
{
    Mlx5Obj *o, *next;

    if (!qp->nmcgs) {
        return;
    }
    QTAILQ_FOREACH_SAFE(o, &qp->hca->mcgs.all, next, next) {
        if (((Mlx5Mcg *)o)->qpn == qp->obj.id) {
            mcg_free(qp->hca, (Mlx5Mcg *)o);
        }
    }
}

/* The member of @gid on @h with the lowest number from @id on. */
static Mlx5Mcg *mcg_next(Mlx5Hca *h, const uint8_t *gid, uint32_t id)
{
    Mlx5Mcg *best = NULL;
    Mlx5Obj *o;

    QTAILQ_FOREACH(o, &h->mcgs.all, next) {
        Mlx5Mcg *m = (Mlx5Mcg *)o;

        if (o->id >= id && (!best || o->id < best->obj.id) &&
            !memcmp(m->gid, gid, sizeof(m->gid))) {
            best = m;
        }
    }
    return best;
}

Mlx5Qp *mlx5_mcast_peer(Mlx5Op *op)
{
    const uint8_t *gid = op->data + 24;    /* of the GRH */
    Mlx5Hca *from = op->qp->hca;

    while (from->port.state == MLX5_IB_PORT_ACTIVE) {
        Mlx5Hca *h, *hca = NULL;
        Mlx5Mcg *m;
        Mlx5Qp *qp;

        QLIST_FOREACH(h, &from->fabric->hcas, on_fabric) {
            if (h->port.lid >= op->mc_lid && (!hca ||
                                              h->port.lid < hca->port.lid)) {
                hca = h;
            }
        }
        if (!hca) {
            break;
        }
        if (hca->port.lid != op->mc_lid) {
            op->mc_lid = hca->port.lid;
            op->mc_id = 0;
        }
        m = hca->port.state == MLX5_IB_PORT_ACTIVE
            ? mcg_next(hca, gid, op->mc_id) : NULL;
        if (!m) {
            op->mc_lid++;
            op->mc_id = 0;
            continue;
        }
        op->mc_id = m->obj.id;
        qp = mlx5_qp_find(hca, m->qpn);
        if (qp && qp->st == MLX5_ST_UD && mlx5_qp_can_receive(qp) &&
            !(qp == op->qp && MLX5_GET(qp->qpc, qpc, block_lb_mc)) &&
            qp->qkey == (op->qkey >> 31 ? op->qp->qkey : op->qkey)) {
            return qp;
        }
        op->mc_id++;
    }
    return NULL;
}

const Mlx5CmdDesc mlx5_mcast_cmds[] = {
    { 0x806, "ATTACH_TO_MCG", MLX5_BYTES(attach_to_mcg_in), 16, cmd_attach },
    { 0x807, "DETACH_FROM_MCG", MLX5_BYTES(detach_from_mcg_in), 16,
      cmd_detach },
    { }
};

void mlx5_mcast_init(Mlx5Hca *h)
{
    mlx5_table_init(h, &h->mcgs, "multicast", 1, MLX5_MAX_MCG_MEMBERS);
}

void mlx5_mcast_destroy_all(Mlx5Hca *h)
{
    Mlx5Obj *o;

    while ((o = QTAILQ_FIRST(&h->mcgs.all))) {
        mcg_free(h, (Mlx5Mcg *)o);
    }
}

void mlx5_mcast_fini(Mlx5Hca *h)
{
    mlx5_mcast_destroy_all(h);
    mlx5_table_fini(&h->mcgs);
}

static const VMStateDescription vmstate_mlx5_mcg = {
    .name = "mlx5-hca/mcg",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Mcg),
        VMSTATE_UINT32(qpn, Mlx5Mcg),
        VMSTATE_UINT8_ARRAY(gid, Mlx5Mcg, 16),
        VMSTATE_END_OF_LIST()
    },
};

static int mcgs_pre_load(void *opaque)
{
    mlx5_mcast_destroy_all(opaque);
    return 0;
}

/* After the queue pairs. */
static int mcgs_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!mlx5_table_post_load(&h->mcgs)) {
        return -EINVAL;
    }
    QTAILQ_FOREACH(o, &h->mcgs.all, next) {
        Mlx5Qp *qp = mlx5_qp_find(h, ((Mlx5Mcg *)o)->qpn);

        if (!qp) {
            return -EINVAL;
        }
        qp->nmcgs++;
    }
    return 0;
}

const VMStateDescription vmstate_mlx5_mcgs = {
    .name = "mlx5-hca/mcgs",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = mcgs_pre_load,
    .post_load = mcgs_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(mcgs, Mlx5Hca, vmstate_mlx5_mcg, Mlx5Mcg),
        VMSTATE_END_OF_LIST()
    },
};
