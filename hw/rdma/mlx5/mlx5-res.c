/*
 * mlx5 plain resources: PDs, UARs, XRC and transport domains, Q counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-res.h"
#include "mlx5-caps.h"
#include "mlx5-mkey.h"
#include "mlx5-portal.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_RES_FULL = 0x520001,
    SYND_RES_UNKNOWN,
    SYND_RES_IN_USE,
};

static enum Mlx5CmdStatus res_alloc(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Table *t,
                                    const char *kind, uint32_t *id)
{
    Mlx5Res *r = g_new0(Mlx5Res, 1);

    r->obj.uid = c->uid;
    if (!mlx5_table_add(t, &r->obj)) {
        g_free(r);
        c->syndrome = SYND_RES_FULL;
        return MLX5_CMD_NO_RES;
    }
    *id = r->obj.id;
    trace_mlx5_res_alloc(h->name, kind, *id, c->uid);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus res_dealloc(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Table *t,
                                      const char *kind, uint32_t id)
{
    Mlx5Obj *o = mlx5_res_get(c, t, id);

    if (!o) {
        c->syndrome = SYND_RES_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (o->refs) {
        c->syndrome = SYND_RES_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_res_dealloc(h->name, kind, id);
    mlx5_table_del(t, o);
    g_free(o);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_alloc_pd(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t id = 0;
    enum Mlx5CmdStatus st = res_alloc(h, c, &h->pds, "pd", &id);

    MLX5_SET(c->out, alloc_pd_out, pd, id);
    return st;
}

static enum Mlx5CmdStatus cmd_dealloc_pd(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t pd = MLX5_GET(c->in, dealloc_pd_in, pd);
    enum Mlx5CmdStatus st = res_dealloc(h, c, &h->pds, "pd", pd);

    if (st == MLX5_CMD_OK) {
        mlx5_portal_pd_gone(h, pd);
    }
    return st;
}

static enum Mlx5CmdStatus cmd_alloc_xrcd(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t id = 0;
    enum Mlx5CmdStatus st = res_alloc(h, c, &h->xrcds, "xrcd", &id);

    MLX5_SET(c->out, alloc_xrcd_out, xrcd, id);
    return st;
}

static enum Mlx5CmdStatus cmd_dealloc_xrcd(Mlx5Hca *h, Mlx5Cmd *c)
{
    return res_dealloc(h, c, &h->xrcds, "xrcd",
                       MLX5_GET(c->in, dealloc_xrcd_in, xrcd));
}

static enum Mlx5CmdStatus cmd_alloc_td(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t id = 0;
    enum Mlx5CmdStatus st = res_alloc(h, c, &h->tds, "td", &id);

    MLX5_SET(c->out, alloc_transport_domain_out, transport_domain, id);
    return st;
}

static enum Mlx5CmdStatus cmd_dealloc_td(Mlx5Hca *h, Mlx5Cmd *c)
{
    return res_dealloc(h, c, &h->tds, "td",
                       MLX5_GET(c->in, dealloc_transport_domain_in,
                                transport_domain));
}

/*
 * A UAR is one system page of the guest: with pages larger than 4 KiB the
 * number names the first of the 4 KiB UARs in it. The table counts system
 * pages.
 */
static enum Mlx5CmdStatus cmd_alloc_uar(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t id = 0;
    unsigned shift = mlx5_caps_uar_shift(h);
    uint32_t first = DIV_ROUND_UP(h->uar_first, 1u << shift);
    uint32_t limit = h->uar_limit >> shift;
    enum Mlx5CmdStatus st;

    if (!h->uars.count) {
        /* The page size may have changed since the last driver. */
        mlx5_table_fini(&h->uars);
        mlx5_table_init(h, &h->uars, "uar",
                        first, limit > first ? limit - first : 0);
    }
    st = res_alloc(h, c, &h->uars, "uar", &id);
    MLX5_SET(c->out, alloc_uar_out, uar, id << shift);
    return st;
}

static enum Mlx5CmdStatus cmd_dealloc_uar(Mlx5Hca *h, Mlx5Cmd *c)
{
    unsigned shift = mlx5_caps_uar_shift(h);
    uint32_t id = MLX5_GET(c->in, dealloc_uar_in, uar);

    if (id & ((1u << shift) - 1)) {
        c->syndrome = SYND_RES_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    return res_dealloc(h, c, &h->uars, "uar", id >> shift);
}

bool mlx5_uar_exists(Mlx5Hca *h, uint32_t uar)
{
    return mlx5_table_get(&h->uars, uar >> mlx5_caps_uar_shift(h));
}

bool mlx5_uar_owned(Mlx5Hca *h, const Mlx5Cmd *c, uint32_t uar)
{
    return mlx5_res_get(c, &h->uars, uar >> mlx5_caps_uar_shift(h));
}

void mlx5_uar_ref(Mlx5Hca *h, uint32_t uar, int n)
{
    mlx5_obj_ref(mlx5_table_get(&h->uars, uar >> mlx5_caps_uar_shift(h)), n);
}

/* Where QUERY_Q_COUNTER reports each count. */
static const uint16_t q_count_at[MLX5_QC_MAX] = {
    [MLX5_QC_RX_WRITE_REQUESTS] =
        MLX5_AT(query_q_counter_out, rx_write_requests),
    [MLX5_QC_RX_READ_REQUESTS] =
        MLX5_AT(query_q_counter_out, rx_read_requests),
    [MLX5_QC_RX_ATOMIC_REQUESTS] =
        MLX5_AT(query_q_counter_out, rx_atomic_requests),
    [MLX5_QC_OUT_OF_BUFFER] =
        MLX5_AT(query_q_counter_out, out_of_buffer),
    [MLX5_QC_OUT_OF_SEQUENCE] =
        MLX5_AT(query_q_counter_out, out_of_sequence),
    [MLX5_QC_DUPLICATE_REQUEST] =
        MLX5_AT(query_q_counter_out, duplicate_request),
    [MLX5_QC_RNR_NAK_RETRY_ERR] =
        MLX5_AT(query_q_counter_out, rnr_nak_retry_err),
    [MLX5_QC_PACKET_SEQ_ERR] =
        MLX5_AT(query_q_counter_out, packet_seq_err),
    [MLX5_QC_IMPLIED_NAK_SEQ_ERR] =
        MLX5_AT(query_q_counter_out, implied_nak_seq_err),
    [MLX5_QC_LOCAL_ACK_TIMEOUT_ERR] =
        MLX5_AT(query_q_counter_out, local_ack_timeout_err),
    [MLX5_QC_REQ_RNR_RETRIES_EXCEEDED] =
        MLX5_AT(query_q_counter_out, req_rnr_retries_exceeded),
    [MLX5_QC_RESP_LOCAL_LENGTH_ERROR] =
        MLX5_AT(query_q_counter_out, resp_local_length_error),
    [MLX5_QC_RESP_CQE_ERROR] =
        MLX5_AT(query_q_counter_out, resp_cqe_error),
    [MLX5_QC_REQ_CQE_ERROR] =
        MLX5_AT(query_q_counter_out, req_cqe_error),
    [MLX5_QC_REQ_REMOTE_INVALID_REQUEST] =
        MLX5_AT(query_q_counter_out, req_remote_invalid_request),
    [MLX5_QC_RESP_REMOTE_ACCESS_ERRORS] =
        MLX5_AT(query_q_counter_out, resp_remote_access_errors),
    [MLX5_QC_REQ_REMOTE_ACCESS_ERRORS] =
        MLX5_AT(query_q_counter_out, req_remote_access_errors),
    [MLX5_QC_REQ_TRANSPORT_RETRIES_EXCEEDED] =
        MLX5_AT(query_q_counter_out, req_transport_retries_exceeded),
    [MLX5_QC_RESP_CQE_FLUSH_ERROR] =
        MLX5_AT(query_q_counter_out, resp_cqe_flush_error),
    [MLX5_QC_REQ_CQE_FLUSH_ERROR] =
        MLX5_AT(query_q_counter_out, req_cqe_flush_error),
};

void mlx5_q_count(Mlx5Hca *h, uint32_t set, enum Mlx5QCount what)
{
    Mlx5QCounter *q = (Mlx5QCounter *)mlx5_table_get(&h->q_counters, set);

    if (q) {
        q->n[what]++;
    }
}

static enum Mlx5CmdStatus cmd_alloc_q_counter(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5QCounter *q = g_new0(Mlx5QCounter, 1);

    q->obj.uid = c->uid;
    if (!mlx5_table_add(&h->q_counters, &q->obj)) {
        g_free(q);
        c->syndrome = SYND_RES_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_res_alloc(h->name, "q_counter", q->obj.id, c->uid);
    MLX5_SET(c->out, alloc_q_counter_out, counter_set_id, q->obj.id);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_dealloc_q_counter(Mlx5Hca *h, Mlx5Cmd *c)
{
    return res_dealloc(h, c, &h->q_counters, "q_counter",
                       MLX5_GET(c->in, dealloc_q_counter_in, counter_set_id));
}

static void q_counter_report(Mlx5Cmd *c, Mlx5QCounter *q, bool clear)
{
    int i;

    for (i = 0; i < MLX5_QC_MAX; i++) {
        uint8_t *at = c->out + q_count_at[i];

        stl_be_p(at, ldl_be_p(at) + q->n[i]);
        if (clear) {
            q->n[i] = 0;
        }
    }
}

static enum Mlx5CmdStatus cmd_query_q_counter(Mlx5Hca *h, Mlx5Cmd *c)
{
    bool clear = MLX5_GET(c->in, query_q_counter_in, clear);
    uint32_t set = MLX5_GET(c->in, query_q_counter_in, counter_set_id);
    Mlx5Obj *o;

    if (MLX5_GET(c->in, query_q_counter_in, other_vport)) {
        return MLX5_CMD_BAD_PARAM;
    }
    o = mlx5_res_get(c, &h->q_counters, set);
    if (!o) {
        c->syndrome = SYND_RES_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    q_counter_report(c, (Mlx5QCounter *)o, clear);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_special_contexts(Mlx5Hca *h, Mlx5Cmd *c)
{
    MLX5_SET(c->out, query_special_contexts_out, dump_fill_mkey,
             mlx5_mkey_dump_fill(h));
    MLX5_SET(c->out, query_special_contexts_out, resd_lkey,
             mlx5_mkey_resd_lkey(h));
    /* The structure grew; older drivers ask for less. */
    if (c->out_len >= MLX5_BYTES(query_special_contexts_out)) {
        MLX5_SET(c->out, query_special_contexts_out, null_mkey,
                 mlx5_mkey_null(h));
        MLX5_SET(c->out, query_special_contexts_out,
                 terminate_scatter_list_mkey, MLX5_TERMINATE_KEY);
    }
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_res_cmds[] = {
    { 0x203, "QUERY_SPECIAL_CONTEXTS", 16, 16, cmd_query_special_contexts },
    { 0x771, "ALLOC_Q_COUNTER", 16, 16, cmd_alloc_q_counter },
    { 0x772, "DEALLOC_Q_COUNTER", 16, 16, cmd_dealloc_q_counter },
    { 0x773, "QUERY_Q_COUNTER", 32, MLX5_BYTES(query_q_counter_out),
      cmd_query_q_counter },
    { 0x800, "ALLOC_PD", 16, 16, cmd_alloc_pd },
    { 0x801, "DEALLOC_PD", 16, 16, cmd_dealloc_pd },
    { 0x802, "ALLOC_UAR", 16, 16, cmd_alloc_uar },
    { 0x803, "DEALLOC_UAR", 16, 16, cmd_dealloc_uar },
    { 0x80e, "ALLOC_XRCD", 16, 16, cmd_alloc_xrcd },
    { 0x80f, "DEALLOC_XRCD", 16, 16, cmd_dealloc_xrcd },
    { 0x816, "ALLOC_TRANSPORT_DOMAIN", 16, 16, cmd_alloc_td },
    { 0x817, "DEALLOC_TRANSPORT_DOMAIN", 16, 16, cmd_dealloc_td },
    { }
};

void mlx5_res_init(Mlx5Hca *h)
{
    /* Number 0 is given out too on silicon; here it stays "none". */
    mlx5_table_init(h, &h->pds, "pd", 1, (1u << MLX5_LOG_MAX_PD) - 1);
    mlx5_table_init(h, &h->uars, "uar",
                    h->uar_first, h->uar_limit - h->uar_first);
    mlx5_table_init(h, &h->xrcds, "xrcd", 1, (1u << MLX5_LOG_MAX_XRCD) - 1);
    mlx5_table_init(h, &h->tds, "transport-domain",
                    1, (1u << MLX5_LOG_MAX_TD) - 1);
    mlx5_table_init(h, &h->q_counters, "q-counter", 1, MLX5_MAX_Q_COUNTERS - 1);
}

void mlx5_res_destroy_all(Mlx5Hca *h)
{
    mlx5_table_free_all(&h->q_counters);
    mlx5_table_free_all(&h->tds);
    mlx5_table_free_all(&h->xrcds);
    mlx5_table_free_all(&h->uars);
    mlx5_table_free_all(&h->pds);
}

void mlx5_res_fini(Mlx5Hca *h)
{
    mlx5_res_destroy_all(h);
    mlx5_table_fini(&h->q_counters);
    mlx5_table_fini(&h->tds);
    mlx5_table_fini(&h->xrcds);
    mlx5_table_fini(&h->uars);
    mlx5_table_fini(&h->pds);
}

const VMStateDescription vmstate_mlx5_res = {
    .name = "mlx5-hca/res",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Res),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mlx5_q_counter = {
    .name = "mlx5-hca/q-counter",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5QCounter),
        VMSTATE_UINT32_ARRAY(n, Mlx5QCounter, MLX5_QC_MAX),
        VMSTATE_END_OF_LIST()
    },
};

static int resources_pre_load(void *opaque)
{
    mlx5_res_destroy_all(opaque);
    return 0;
}

static int resources_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;

    if (h->uars.limit > h->uar_limit || h->uars.first > h->uars.limit) {
        return -EINVAL;
    }
    return mlx5_table_post_load(&h->pds) && mlx5_table_post_load(&h->uars) &&
           mlx5_table_post_load(&h->xrcds) && mlx5_table_post_load(&h->tds) &&
           mlx5_table_post_load(&h->q_counters) ? 0 : -EINVAL;
}

const VMStateDescription vmstate_mlx5_resources = {
    .name = "mlx5-hca/resources",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = resources_pre_load,
    .post_load = resources_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_TABLE(pds, Mlx5Hca, vmstate_mlx5_res, Mlx5Res),
        VMSTATE_UINT32(uars.first, Mlx5Hca),
        VMSTATE_UINT32(uars.limit, Mlx5Hca),
        VMSTATE_MLX5_TABLE(uars, Mlx5Hca, vmstate_mlx5_res, Mlx5Res),
        VMSTATE_MLX5_TABLE(xrcds, Mlx5Hca, vmstate_mlx5_res, Mlx5Res),
        VMSTATE_MLX5_TABLE(tds, Mlx5Hca, vmstate_mlx5_res, Mlx5Res),
        VMSTATE_MLX5_TABLE(q_counters, Mlx5Hca, vmstate_mlx5_q_counter,
                           Mlx5QCounter),
        VMSTATE_END_OF_LIST()
    },
};
