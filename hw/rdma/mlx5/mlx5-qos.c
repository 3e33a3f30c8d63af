/*
 * mlx5 quality of service: scheduling elements and the rate table
 *
 * Queue pairs are put into queue groups, the leaves of trees whose nodes
 * have a limit and a share of their parent's bandwidth. The link of the
 * model has no speed of its own, so that shares tell only below a limit: a
 * child with work pending gets its part of what the limit lets through, and
 * what idle siblings leave.
 *
 * An operation books its bytes when it begins, in every element up to the
 * root, and waits until the element that is busy the longest is through with
 * what was booked before. Reads book at the responder.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "mlx5-gobj.h"
#include "mlx5-qos.h"
#include "mlx5-res.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_SCHED_HIERARCHY = 0x5b0001,
    SYND_SCHED_TYPE,
    SYND_SCHED_PARENT,
    SYND_SCHED_DEPTH,
    SYND_SCHED_SHARE,
    SYND_SCHED_SELECT,
    SYND_SCHED_UNKNOWN,
    SYND_SCHED_FULL,
    SYND_SCHED_IN_USE,
    SYND_RATE_INDEX,
    SYND_RATE_VALUE,
    SYND_RATE_OWNER,
    SYND_RATE_IN_USE,
};

enum {
    SCHED_HIERARCHY_NIC = 3,
    TSAR_DWRR = 0,
    SELECT_BW_SHARE = 1 << 0,
    SELECT_MAX_BW = 1 << 1,
};

/* However little bandwidth there is, nobody waits longer than that. */
#define MAX_AHEAD_NS (3600ll * NANOSECONDS_PER_SECOND)

/* What was not used for so long may be made up for: timers are late. */
#define BURST_NS (4 * SCALE_MS)

/* Who has booked nothing for so long leaves its share to others. */
#define IDLE_NS (1 * SCALE_MS)

static Mlx5SchedElem *sched_find(Mlx5Hca *h, uint32_t id)
{
    return (Mlx5SchedElem *)mlx5_table_get(&h->sched_elems, id);
}

/* Makes the element that context @ctx describes; it has no number yet. */
static Mlx5Obj *sched_new(Mlx5Hca *h, Mlx5Cmd *c, uint32_t hierarchy,
                          const uint8_t *ctx, enum Mlx5CmdStatus *status)
{
    uint32_t type = MLX5_GET(ctx, scheduling_context, element_type);
    uint32_t parent = MLX5_GET(ctx, scheduling_context, parent_element_id);
    uint32_t share = MLX5_GET(ctx, scheduling_context, bw_share);
    Mlx5SchedElem *p, *e;

    *status = MLX5_CMD_BAD_PARAM;
    if (hierarchy != SCHED_HIERARCHY_NIC) {
        c->syndrome = SYND_SCHED_HIERARCHY;
        return NULL;
    }
    if ((type != MLX5_SCHED_TSAR && type != MLX5_SCHED_QUEUE_GROUP) ||
        (type == MLX5_SCHED_TSAR &&
         MLX5_GET(ctx, scheduling_context,
                  element_attributes__tsar__tsar_type) != TSAR_DWRR)) {
        c->syndrome = SYND_SCHED_TYPE;
        return NULL;
    }
    if (share > MLX5_MAX_BW_SHARE) {
        c->syndrome = SYND_SCHED_SHARE;
        return NULL;
    }
    p = (Mlx5SchedElem *)mlx5_res_get(c, &h->sched_elems, parent);
    if (parent ? !p || p->type != MLX5_SCHED_TSAR
               : type != MLX5_SCHED_TSAR) {
        c->syndrome = SYND_SCHED_PARENT;
        *status = MLX5_CMD_BAD_RES;
        return NULL;
    }
    if (p && p->depth + 1 >= MLX5_MAX_SCHED_DEPTH) {
        c->syndrome = SYND_SCHED_DEPTH;
        *status = MLX5_CMD_LIM_ERR;
        return NULL;
    }
    e = g_new0(Mlx5SchedElem, 1);
    e->type = type;
    e->parent = parent;
    e->depth = p ? p->depth + 1 : 0;
    e->bw_share = share;
    e->max_bw = MLX5_GET(ctx, scheduling_context, max_average_bw);
    mlx5_obj_ref(p ? &p->obj : NULL, 1);
    trace_mlx5_sched_elem(h->name, type, parent, share, e->max_bw);
    return &e->obj;
}

static void sched_free(Mlx5Hca *h, Mlx5Obj *o)
{
    mlx5_obj_ref(mlx5_table_get(&h->sched_elems, ((Mlx5SchedElem *)o)->parent),
                 -1);
    g_free(o);
}

static enum Mlx5CmdStatus sched_change(Mlx5Hca *h, Mlx5Cmd *c,
                                       Mlx5SchedElem *e, uint32_t hierarchy,
                                       const uint8_t *ctx, uint64_t select)
{
    uint32_t share = MLX5_GET(ctx, scheduling_context, bw_share);

    if (hierarchy != SCHED_HIERARCHY_NIC) {
        c->syndrome = SYND_SCHED_HIERARCHY;
        return MLX5_CMD_BAD_PARAM;
    }
    if (select & ~(uint64_t)(SELECT_BW_SHARE | SELECT_MAX_BW)) {
        c->syndrome = SYND_SCHED_SELECT;
        return MLX5_CMD_BAD_PARAM;
    }
    if (MLX5_GET(ctx, scheduling_context, element_type) != e->type) {
        c->syndrome = SYND_SCHED_TYPE;
        return MLX5_CMD_BAD_PARAM;
    }
    if (select & SELECT_BW_SHARE && share > MLX5_MAX_BW_SHARE) {
        c->syndrome = SYND_SCHED_SHARE;
        return MLX5_CMD_BAD_PARAM;
    }
    if (select & SELECT_BW_SHARE) {
        e->bw_share = share;
    }
    if (select & SELECT_MAX_BW) {
        e->max_bw = MLX5_GET(ctx, scheduling_context, max_average_bw);
    }
    trace_mlx5_sched_elem_modify(h->name, e->obj.id, e->bw_share, e->max_bw);
    return MLX5_CMD_OK;
}

static void sched_tell(const Mlx5SchedElem *e, uint8_t *ctx)
{
    MLX5_SET(ctx, scheduling_context, element_type, e->type);
    MLX5_SET(ctx, scheduling_context, parent_element_id, e->parent);
    MLX5_SET(ctx, scheduling_context, bw_share, e->bw_share);
    MLX5_SET(ctx, scheduling_context, max_average_bw, e->max_bw);
}

/* As a general object (rdma-core: mlx5_ifc.h, sched_elem), byte offsets. */
enum {
    ELEM_SELECT = 0x00,
    ELEM_HIERARCHY = 0x08,
    ELEM_CONTEXT = 0x20,
    ELEM_BYTES = 0x80,
};

static Mlx5Table *elem_table(Mlx5Hca *h)
{
    return &h->sched_elems;
}

static Mlx5Obj *elem_create(Mlx5Hca *h, Mlx5Cmd *c, const uint8_t *in,
                            enum Mlx5CmdStatus *status)
{
    return sched_new(h, c, in[ELEM_HIERARCHY], in + ELEM_CONTEXT, status);
}

static enum Mlx5CmdStatus elem_modify(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Obj *o,
                                      const uint8_t *in)
{
    return sched_change(h, c, (Mlx5SchedElem *)o, in[ELEM_HIERARCHY],
                        in + ELEM_CONTEXT, ldq_be_p(in + ELEM_SELECT));
}

static void elem_query(Mlx5Hca *h, Mlx5Obj *o, uint8_t *out)
{
    out[ELEM_HIERARCHY] = SCHED_HIERARCHY_NIC;
    sched_tell((Mlx5SchedElem *)o, out + ELEM_CONTEXT);
}

const Mlx5GobjType mlx5_gobj_sched_elem = {
    .type = MLX5_GOBJ_SCHED_ELEM,
    .name = "SCHEDULING_ELEMENT",
    .bytes = ELEM_BYTES,
    .table = elem_table,
    .create = elem_create,
    .modify = elem_modify,
    .query = elem_query,
    .free = sched_free,
};

/* The same elements by commands of their own. */

static enum Mlx5CmdStatus cmd_create_elem(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5Obj *o = sched_new(h, c, MLX5_GET(c->in, create_scheduling_element_in,
                                          scheduling_hierarchy),
                           MLX5_ADDR(c->in, create_scheduling_element_in,
                                     scheduling_context), &status);

    if (!o) {
        return status;
    }
    o->uid = c->uid;
    if (!mlx5_table_add(&h->sched_elems, o)) {
        sched_free(h, o);
        c->syndrome = SYND_SCHED_FULL;
        return MLX5_CMD_NO_RES;
    }
    MLX5_SET(c->out, create_scheduling_element_out, scheduling_element_id,
             o->id);
    return MLX5_CMD_OK;
}

static Mlx5Obj *elem_of_cmd(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->sched_elems,
                              MLX5_GET(c->in, query_scheduling_element_in,
                                       scheduling_element_id));

    if (!o) {
        c->syndrome = SYND_SCHED_UNKNOWN;
    }
    return o;
}

static enum Mlx5CmdStatus cmd_destroy_elem(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = elem_of_cmd(h, c);

    if (!o) {
        return MLX5_CMD_BAD_RES;
    }
    if (o->refs) {
        c->syndrome = SYND_SCHED_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    mlx5_table_del(&h->sched_elems, o);
    sched_free(h, o);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_elem(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = elem_of_cmd(h, c);

    if (!o) {
        return MLX5_CMD_BAD_RES;
    }
    sched_tell((Mlx5SchedElem *)o,
               MLX5_ADDR(c->out, query_scheduling_element_out,
                         scheduling_context));
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_modify_elem(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = elem_of_cmd(h, c);

    if (!o) {
        return MLX5_CMD_BAD_RES;
    }
    return sched_change(h, c, (Mlx5SchedElem *)o,
                        MLX5_GET(c->in, modify_scheduling_element_in,
                                 scheduling_hierarchy),
                        MLX5_ADDR(c->in, modify_scheduling_element_in,
                                  scheduling_context),
                        MLX5_GET(c->in, modify_scheduling_element_in,
                                 modify_bitmask));
}

Mlx5Obj *mlx5_qos_group(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t group)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->sched_elems, group);

    return o && ((Mlx5SchedElem *)o)->type == MLX5_SCHED_QUEUE_GROUP ? o
                                                                     : NULL;
}

/* @e's part of @kbps, of which siblings with work pending get theirs. */
static uint64_t sched_part(Mlx5Hca *h, const Mlx5SchedElem *e, uint64_t kbps,
                           int64_t now)
{
    uint64_t own = MAX(e->bw_share, 1), all = own;
    Mlx5Obj *o;

    QTAILQ_FOREACH(o, &h->sched_elems.all, next) {
        Mlx5SchedElem *s = (Mlx5SchedElem *)o;

        if (s != e && s->parent == e->parent &&
            s->busy_until > now - IDLE_NS) {
            all += MAX(s->bw_share, 1);
        }
    }
    return MAX(kbps * own / all, 1);
}

int64_t mlx5_qos_book(Mlx5Hca *h, uint32_t group, uint64_t bytes)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), start = now;
    Mlx5SchedElem *path[MLX5_MAX_SCHED_DEPTH], *e;
    uint64_t kbps = 0;            /* that the elements above allow; 0: any */
    int64_t cost = 0;
    int n = 0, i;

    for (e = sched_find(h, group); e && n < MLX5_MAX_SCHED_DEPTH;
         e = e->parent ? sched_find(h, e->parent) : NULL) {
        path[n++] = e;
    }
    for (i = n - 1; i >= 0; i--) {
        uint64_t own;

        e = path[i];
        own = MIN((uint64_t)e->max_bw * 1000, UINT32_MAX);
        if (kbps && e->parent) {
            kbps = sched_part(h, e, kbps, now);
        }
        if (own && (!kbps || own < kbps)) {
            kbps = own;
        }
        if (kbps) {
            cost = muldiv64(bytes * 8, SCALE_MS, kbps);
            start = MAX(start, e->free_at);
            e->free_at = MIN(MAX(e->free_at, now - BURST_NS) + cost,
                             now + MAX_AHEAD_NS);
        }
    }
    for (i = 0; i < n; i++) {
        path[i]->busy_until = MIN(start + cost, now + MAX_AHEAD_NS);
    }
    trace_mlx5_qos_book(h->name, group, bytes, start - now);
    return start;
}

/* The rate table. */

static enum Mlx5CmdStatus cmd_set_rate(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t index = MLX5_GET(c->in, set_pp_rate_limit_in, rate_limit_index);
    const uint8_t *ctx = MLX5_ADDR(c->in, set_pp_rate_limit_in, ctx);
    uint32_t kbps = MLX5_GET(ctx, set_pp_rate_limit_context, rate_limit);
    Mlx5Obj *o = mlx5_table_get(&h->rates, index);

    if (!index || index >= MLX5_RATE_TABLE_SIZE) {
        c->syndrome = SYND_RATE_INDEX;
        return MLX5_CMD_BAD_INDEX;
    }
    if (kbps > MLX5_RATE_MAX_KBPS ||
        MLX5_GET(ctx, set_pp_rate_limit_context, burst_upper_bound) ||
        MLX5_GET(ctx, set_pp_rate_limit_context, typical_packet_size)) {
        c->syndrome = SYND_RATE_VALUE;
        return MLX5_CMD_BAD_PARAM;
    }
    if (o && !mlx5_owns(c, o)) {
        c->syndrome = SYND_RATE_OWNER;
        return MLX5_CMD_BAD_RES;
    }
    trace_mlx5_rate(h->name, index, kbps);
    if (!kbps) {
        if (o && o->refs) {
            c->syndrome = SYND_RATE_IN_USE;
            return MLX5_CMD_BAD_RES_STATE;
        }
        if (o) {
            mlx5_table_del(&h->rates, o);
            g_free(o);
        }
        return MLX5_CMD_OK;
    }
    if (!o) {
        o = (Mlx5Obj *)g_new0(Mlx5Rate, 1);
        o->id = index;
        o->uid = c->uid;
        mlx5_table_add_at(&h->rates, o);
    }
    ((Mlx5Rate *)o)->kbps = kbps;
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_qos_cmds[] = {
    { 0x780, "SET_PP_RATE_LIMIT", MLX5_BYTES(set_pp_rate_limit_in), 16,
      cmd_set_rate },
    { 0x782, "CREATE_SCHEDULING_ELEMENT",
      MLX5_BYTES(create_scheduling_element_in),
      MLX5_BYTES(create_scheduling_element_out), cmd_create_elem },
    { 0x783, "DESTROY_SCHEDULING_ELEMENT",
      MLX5_BYTES(destroy_scheduling_element_in), 16, cmd_destroy_elem },
    { 0x784, "QUERY_SCHEDULING_ELEMENT",
      MLX5_BYTES(query_scheduling_element_in),
      MLX5_BYTES(query_scheduling_element_out), cmd_query_elem },
    { 0x785, "MODIFY_SCHEDULING_ELEMENT",
      MLX5_BYTES(modify_scheduling_element_in), 16, cmd_modify_elem },
    { }
};

void mlx5_qos_init(Mlx5Hca *h)
{
    mlx5_table_init(h, &h->sched_elems, "scheduling-element",
                    1, MLX5_MAX_SCHED_ELEMS);
    mlx5_table_init(h, &h->rates, "rate", 1, MLX5_RATE_TABLE_SIZE - 1);
}

void mlx5_qos_destroy_all(Mlx5Hca *h)
{
    mlx5_table_free_all(&h->sched_elems);
    mlx5_table_free_all(&h->rates);
}

void mlx5_qos_fini(Mlx5Hca *h)
{
    mlx5_qos_destroy_all(h);
    mlx5_table_fini(&h->sched_elems);
    mlx5_table_fini(&h->rates);
}

static const VMStateDescription vmstate_mlx5_sched_elem = {
    .name = "mlx5-hca/sched-elem",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5SchedElem),
        VMSTATE_UINT8(type, Mlx5SchedElem),
        VMSTATE_UINT8(depth, Mlx5SchedElem),
        VMSTATE_UINT32(parent, Mlx5SchedElem),
        VMSTATE_UINT32(bw_share, Mlx5SchedElem),
        VMSTATE_UINT32(max_bw, Mlx5SchedElem),
        VMSTATE_INT64(free_at, Mlx5SchedElem),
        VMSTATE_INT64(busy_until, Mlx5SchedElem),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mlx5_rate = {
    .name = "mlx5-hca/rate",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Rate),
        VMSTATE_UINT32(kbps, Mlx5Rate),
        VMSTATE_END_OF_LIST()
    },
};

static int qos_pre_load(void *opaque)
{
    mlx5_qos_destroy_all(opaque);
    return 0;
}

static int qos_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;

    return mlx5_table_post_load(&h->sched_elems) &&
           mlx5_table_post_load(&h->rates) ? 0 : -EINVAL;
}

const VMStateDescription vmstate_mlx5_qos = {
    .name = "mlx5-hca/qos",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = qos_pre_load,
    .post_load = qos_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(sched_elems, Mlx5Hca, vmstate_mlx5_sched_elem,
                           Mlx5SchedElem),
        VMSTATE_MLX5_TABLE(rates, Mlx5Hca, vmstate_mlx5_rate, Mlx5Rate),
        VMSTATE_END_OF_LIST()
    },
};
