/*
 * mlx5 general objects: four commands for objects of many types
 *
 * Which types there are is the capability general_obj_types. The command's
 * op_mod is the type; the object's bytes follow a header of 16.
 *
 * Two types are here: RESERVED_QPN, numbers that no queue pair of this HCA
 * gets (a connection manager gives them to connections that share a queue
 * pair), and AV_QP_MAPPING, which ties an address to the congestion control
 * of a queue pair: remembered and told, without effect, since nothing is
 * congested here.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-gobj.h"
#include "mlx5-qos.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_GOBJ_TYPE = 0x5a0001,
    SYND_GOBJ_RANGE,
    SYND_GOBJ_FULL,
    SYND_GOBJ_UNKNOWN,
    SYND_GOBJ_IN_USE,
    SYND_GOBJ_FIXED,
    SYND_GOBJ_FIELD,
    SYND_AV_QPN,
    SYND_AV_GID,
};

static Mlx5Table *rqpn_table(Mlx5Hca *h)
{
    return &h->rqpns;
}

static Mlx5Obj *rqpn_create(Mlx5Hca *h, Mlx5Cmd *c, const uint8_t *in,
                            enum Mlx5CmdStatus *status)
{
    Mlx5Res *r = g_new0(Mlx5Res, 1);

    return &r->obj;
}

static void rqpn_query(Mlx5Hca *h, Mlx5Obj *o, uint8_t *out)
{
}

static void gobj_plain_free(Mlx5Hca *h, Mlx5Obj *o)
{
    g_free(o);
}

static const Mlx5GobjType gobj_reserved_qpn = {
    .type = MLX5_GOBJ_RESERVED_QPN,
    .name = "RESERVED_QPN",
    .bytes = 16,
    .log_range = MLX5_LOG_RESERVED_QPNS,
    .table = rqpn_table,
    .create = rqpn_create,
    .query = rqpn_query,
    .free = gobj_plain_free,
};

/* Byte offsets in an AV_QP_MAPPING (rdma-core: mlx5_ifc.h, av_qp_mapping). */
enum {
    AV_SELECT = 0x00,
    AV_QPN = 0x0c,
    AV_SL = 0x1c,                 /* bits 3:0 */
    AV_SRC_INDEX = 0x2c,          /* bits 27:20 of the dword */
    AV_RGID = 0x30,
    AV_BYTES = 0x40,
};

static Mlx5Table *av_table(Mlx5Hca *h)
{
    return &h->av_maps;
}

static Mlx5Obj *av_create(Mlx5Hca *h, Mlx5Cmd *c, const uint8_t *in,
                          enum Mlx5CmdStatus *status)
{
    uint32_t qpn = ldl_be_p(in + AV_QPN);
    uint32_t gid_index = extract32(ldl_be_p(in + AV_SRC_INDEX), 20, 8);
    Mlx5AvMap *m;

    /* Anybody's: nothing of it is touched. */
    if (!mlx5_table_get(&h->qps, qpn)) {
        c->syndrome = SYND_AV_QPN;
        *status = MLX5_CMD_BAD_RES;
        return NULL;
    }
    if (gid_index >= MLX5_GID_TABLE_SIZE) {
        c->syndrome = SYND_AV_GID;
        *status = MLX5_CMD_BAD_INDEX;
        return NULL;
    }
    m = g_new0(Mlx5AvMap, 1);
    m->qpn = qpn;
    m->sl = in[AV_SL] & 0xf;
    m->gid_index = gid_index;
    memcpy(m->rgid, in + AV_RGID, sizeof(m->rgid));
    return &m->obj;
}

static void av_query(Mlx5Hca *h, Mlx5Obj *o, uint8_t *out)
{
    Mlx5AvMap *m = (Mlx5AvMap *)o;

    stl_be_p(out + AV_QPN, m->qpn);
    out[AV_SL] = m->sl;
    stl_be_p(out + AV_SRC_INDEX, (uint32_t)m->gid_index << 20);
    memcpy(out + AV_RGID, m->rgid, sizeof(m->rgid));
}

static const Mlx5GobjType gobj_av_qp_mapping = {
    .type = MLX5_GOBJ_AV_QP_MAPPING,
    .name = "AV_QP_MAPPING",
    .bytes = AV_BYTES,
    .table = av_table,
    .create = av_create,
    .query = av_query,
    .free = gobj_plain_free,
};

static const Mlx5GobjType *const gobj_types[] = {
    &mlx5_gobj_sched_elem, &gobj_reserved_qpn, &gobj_av_qp_mapping,
};

static const Mlx5GobjType *gobj_type(Mlx5Hca *h, Mlx5Cmd *c)
{
    for (unsigned i = 0; i < ARRAY_SIZE(gobj_types); i++) {
        if (gobj_types[i]->type == c->op_mod) {
            return gobj_types[i];
        }
    }
    mlx5_unimp(h, "general object of type 0x%x", c->op_mod);
    c->syndrome = SYND_GOBJ_TYPE;
    return NULL;
}

/* The object that the command names, or NULL. */
static Mlx5Obj *gobj_find(Mlx5Hca *h, Mlx5Cmd *c, const Mlx5GobjType *t)
{
    uint32_t id = MLX5_GET(c->in, general_obj_in_cmd_hdr, obj_id);
    Mlx5Obj *o = NULL;

    if (!(id & ((1u << t->log_range) - 1))) {
        o = mlx5_res_get(c, t->table(h), id >> t->log_range);
    }
    if (!o) {
        c->syndrome = SYND_GOBJ_UNKNOWN;
    }
    return o;
}

static enum Mlx5CmdStatus cmd_create_gobj(Mlx5Hca *h, Mlx5Cmd *c)
{
    const Mlx5GobjType *t = gobj_type(h, c);
    enum Mlx5CmdStatus status = MLX5_CMD_NO_RES;
    Mlx5Obj *o;

    if (!t) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (c->in_len < MLX5_GOBJ_HEAD + t->bytes) {
        return MLX5_CMD_BAD_INP_LEN;
    }
    if (MLX5_GET(c->in, general_obj_in_cmd_hdr,
                 op_param__create__alias_object) ||
        MLX5_GET(c->in, general_obj_in_cmd_hdr,
                 op_param__create__log_obj_range) != t->log_range) {
        c->syndrome = SYND_GOBJ_RANGE;
        return MLX5_CMD_BAD_PARAM;
    }
    o = t->create(h, c, c->in + MLX5_GOBJ_HEAD, &status);
    if (!o) {
        return status;
    }
    o->uid = c->uid;
    if (!mlx5_table_add(t->table(h), o)) {
        t->free(h, o);
        c->syndrome = SYND_GOBJ_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_gobj_create(h->name, t->name, o->id << t->log_range, c->uid);
    MLX5_SET(c->out, general_obj_out_cmd_hdr, obj_id, o->id << t->log_range);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_modify_gobj(Mlx5Hca *h, Mlx5Cmd *c)
{
    const Mlx5GobjType *t = gobj_type(h, c);
    Mlx5Obj *o;

    if (!t) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (c->in_len < MLX5_GOBJ_HEAD + t->bytes) {
        return MLX5_CMD_BAD_INP_LEN;
    }
    o = gobj_find(h, c, t);
    if (!o) {
        return MLX5_CMD_BAD_RES;
    }
    if (!t->modify) {
        c->syndrome = SYND_GOBJ_FIXED;
        return MLX5_CMD_BAD_PARAM;
    }
    return t->modify(h, c, o, c->in + MLX5_GOBJ_HEAD);
}

static enum Mlx5CmdStatus cmd_query_gobj(Mlx5Hca *h, Mlx5Cmd *c)
{
    const Mlx5GobjType *t = gobj_type(h, c);
    Mlx5Obj *o;

    if (!t) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (c->out_len < MLX5_GOBJ_HEAD + t->bytes) {
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    o = gobj_find(h, c, t);
    if (!o) {
        return MLX5_CMD_BAD_RES;
    }
    MLX5_SET(c->out, general_obj_out_cmd_hdr, obj_id, o->id << t->log_range);
    t->query(h, o, c->out + MLX5_GOBJ_HEAD);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_gobj(Mlx5Hca *h, Mlx5Cmd *c)
{
    const Mlx5GobjType *t = gobj_type(h, c);
    Mlx5Obj *o = t ? gobj_find(h, c, t) : NULL;

    if (!t) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (!o) {
        return MLX5_CMD_BAD_RES;
    }
    if (o->refs) {
        c->syndrome = SYND_GOBJ_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_gobj_destroy(h->name, t->name, o->id << t->log_range);
    mlx5_table_del(t->table(h), o);
    t->free(h, o);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_gobj_cmds[] = {
    { 0xa00, "CREATE_GENERAL_OBJECT", MLX5_GOBJ_HEAD, MLX5_GOBJ_HEAD,
      cmd_create_gobj },
    { 0xa01, "MODIFY_GENERAL_OBJECT", MLX5_GOBJ_HEAD, MLX5_GOBJ_HEAD,
      cmd_modify_gobj },
    { 0xa02, "QUERY_GENERAL_OBJECT", MLX5_GOBJ_HEAD, MLX5_GOBJ_HEAD,
      cmd_query_gobj },
    { 0xa03, "DESTROY_GENERAL_OBJECT", MLX5_GOBJ_HEAD, MLX5_GOBJ_HEAD,
      cmd_destroy_gobj },
    { }
};

void mlx5_gobj_init(Mlx5Hca *h)
{
    /* Above every number that CREATE_QP gives out. */
    mlx5_table_init(h, &h->rqpns, "reserved-qpn",
                    1u << (MLX5_LOG_MAX_QP - MLX5_LOG_RESERVED_QPNS),
                    MLX5_MAX_RESERVED_QPNS);
    mlx5_table_init(h, &h->av_maps, "av-qp-mapping", 1, MLX5_MAX_AV_MAPS);
}

void mlx5_gobj_destroy_all(Mlx5Hca *h)
{
    mlx5_table_free_all(&h->rqpns);
    mlx5_table_free_all(&h->av_maps);
}

void mlx5_gobj_fini(Mlx5Hca *h)
{
    mlx5_gobj_destroy_all(h);
    mlx5_table_fini(&h->rqpns);
    mlx5_table_fini(&h->av_maps);
}

static const VMStateDescription vmstate_mlx5_av_map = {
    .name = "mlx5-hca/av-map",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5AvMap),
        VMSTATE_UINT32(qpn, Mlx5AvMap),
        VMSTATE_UINT8(sl, Mlx5AvMap),
        VMSTATE_UINT8(gid_index, Mlx5AvMap),
        VMSTATE_UINT8_ARRAY(rgid, Mlx5AvMap, 16),
        VMSTATE_END_OF_LIST()
    },
};

static int gobjs_pre_load(void *opaque)
{
    mlx5_gobj_destroy_all(opaque);
    return 0;
}

static int gobjs_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;

    return mlx5_table_post_load(&h->rqpns) &&
           mlx5_table_post_load(&h->av_maps) ? 0 : -EINVAL;
}

const VMStateDescription vmstate_mlx5_gobjs = {
    .name = "mlx5-hca/gobjs",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = gobjs_pre_load,
    .post_load = gobjs_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(rqpns, Mlx5Hca, vmstate_mlx5_res, Mlx5Res),
        VMSTATE_MLX5_TABLE(av_maps, Mlx5Hca, vmstate_mlx5_av_map, Mlx5AvMap),
        VMSTATE_END_OF_LIST()
    },
};
