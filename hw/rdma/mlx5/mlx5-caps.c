/*
 * mlx5 capabilities: QUERY_HCA_CAP and SET_HCA_CAP
 *
 * What the device can do is the table in mlx5-caps-table.c: a maximum for
 * each field, a current value after power-up, and whether the driver may set
 * it. Fields without a row read as zero. (Linux: main.c, handle_hca_cap*)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "system/kvm.h"
#include "mlx5-caps.h"
#include "mlx5-caps-table.h"
#include "mlx5-memic.h"
#include "trace.h"

enum { CAP_BYTES = 512 };         /* of one type's structure, used part */

/* Syndromes of this file. */
enum {
    SYND_CAP_FUNCTION = 0x540001,
    SYND_CAP_MODE,
    SYND_CAP_NOT_SETTABLE,
    SYND_CAP_ABOVE_MAX,
};

/* op_mod: type << 1 | mode. */
enum { CAP_MODE_MAX = 0, CAP_MODE_CUR = 1 };

static const uint16_t cap_types[] = {
    MLX5_CAP_GENERAL, MLX5_CAP_ODP, MLX5_CAP_ATOMIC, MLX5_CAP_FLOW,
    MLX5_CAP_QOS, MLX5_CAP_DEV_MEM, MLX5_CAP_GENERAL_2,
};
enum { CAP_TYPES = ARRAY_SIZE(cap_types) };

struct Mlx5CapState {
    uint8_t max[CAP_TYPES][CAP_BYTES];
    uint8_t cur[CAP_TYPES][CAP_BYTES];
};

static int cap_index(unsigned type)
{
    int i;

    for (i = 0; i < CAP_TYPES; i++) {
        if (cap_types[i] == type) {
            return i;
        }
    }
    return -1;
}

/* A row belongs to this device, as its properties are. */
static bool cap_applies(Mlx5Hca *h, const Mlx5CapRow *r)
{
    const char *odp = h->conf.odp ?: "memory";

    switch (r->when) {
    case MLX5_CAP_ODP_ANY:
        return strcmp(odp, "off");
    case MLX5_CAP_ODP_MEMORY:
        return !strcmp(odp, "memory");
    case MLX5_CAP_ODP_TRANSPORT:
        return !strcmp(odp, "transport");
    case MLX5_CAP_ATS:
        return h->conf.ats;
    case MLX5_CAP_NOT_KVM:
        return !kvm_enabled();
    default:
        return true;
    }
}

static void cap_put(uint8_t *caps, const Mlx5CapRow *r, uint32_t value)
{
    assert(r->off / 8 + 4 <= CAP_BYTES);
    mlx5_field_set(caps, r->off, r->width, value);
}

/* Follows from the page size that the driver sets. */
static void cap_uars_per_page(uint8_t *general)
{
    MLX5_SET(general, cmd_hca_cap, num_of_uars_per_page,
             1u << MLX5_GET(general, cmd_hca_cap, log_uar_page_sz));
}

/* A function is one port of its card, of those that its slot holds. */
static void cap_function(Mlx5Hca *h, uint8_t *general)
{
    MLX5_SET(general, cmd_hca_cap, vhca_id, h->function + 1);
    MLX5_SET(general, cmd_hca_cap, native_port_num, h->function + 1);
}

void mlx5_caps_reset(Mlx5Hca *h)
{
    struct Mlx5CapState *s = h->caps;
    const Mlx5CapRow *r;

    memset(s, 0, sizeof(*s));
    for (r = mlx5_cap_rows; r->width; r++) {
        if (cap_applies(h, r)) {
            int i = cap_index(r->type);

            cap_put(s->max[i], r, r->max);
            cap_put(s->cur[i], r, r->set == MLX5_CAP_SET_FROM_0 ? 0 : r->max);
        }
    }
    if (h->memic) {
        int i = cap_index(MLX5_CAP_DEV_MEM);

        MLX5_SET64(s->max[i], device_mem_cap, memic_bar_start_addr,
                   h->memic->bar_offset);
        memcpy(s->cur[i], s->max[i], CAP_BYTES);
    }
    cap_function(h, s->max[cap_index(MLX5_CAP_GENERAL)]);
    cap_function(h, s->cur[cap_index(MLX5_CAP_GENERAL)]);
    cap_uars_per_page(s->max[cap_index(MLX5_CAP_GENERAL)]);
    cap_uars_per_page(s->cur[cap_index(MLX5_CAP_GENERAL)]);
}

unsigned mlx5_caps_uar_shift(Mlx5Hca *h)
{
    uint8_t *cur = h->caps->cur[cap_index(MLX5_CAP_GENERAL)];

    return MLX5_GET(cur, cmd_hca_cap, log_uar_page_sz);
}

unsigned mlx5_caps_log_max_qp(Mlx5Hca *h)
{
    uint8_t *cur = h->caps->cur[cap_index(MLX5_CAP_GENERAL)];

    return MLX5_GET(cur, cmd_hca_cap, log_max_qp);
}

bool mlx5_caps_mem_page_fault(Mlx5Hca *h)
{
    uint8_t *cur = h->caps->cur[cap_index(MLX5_CAP_ODP)];

    return MLX5_GET(cur, odp_cap, mem_page_fault);
}

bool mlx5_caps_atomic_host_endian(Mlx5Hca *h)
{
    uint8_t *cur = h->caps->cur[cap_index(MLX5_CAP_ATOMIC)];

    return MLX5_GET(cur, atomic_caps, atomic_req_8B_endianness_mode);
}

static enum Mlx5CmdStatus cmd_query_hca_cap(Mlx5Hca *h, Mlx5Cmd *c)
{
    unsigned type = c->op_mod >> 1;
    int i = cap_index(type);
    uint8_t *out = MLX5_ADDR(c->out, query_hca_cap_out, capability);
    uint32_t room = c->out_len - MLX5_AT(query_hca_cap_out, capability);

    if (MLX5_GET(c->in, query_hca_cap_in, other_function) ||
        MLX5_GET(c->in, query_hca_cap_in, function_id)) {
        c->syndrome = SYND_CAP_FUNCTION;
        return MLX5_CMD_BAD_PARAM;
    }
    if (i < 0) {
        /* A type of which the device has nothing: all zeroes. */
        mlx5_unimp(h, "capabilities of type 0x%x", type);
        return MLX5_CMD_OK;
    }
    memcpy(out, c->op_mod & CAP_MODE_CUR ? h->caps->cur[i] : h->caps->max[i],
           MIN(room, CAP_BYTES));
    return MLX5_CMD_OK;
}

static bool cap_in_range(const Mlx5CapRow *r, uint32_t v)
{
    return r->set == MLX5_CAP_SET_BITS ? !(v & ~r->max) : v <= r->max;
}

static enum Mlx5CmdStatus cmd_set_hca_cap(Mlx5Hca *h, Mlx5Cmd *c)
{
    unsigned type = c->op_mod >> 1;
    int i = cap_index(type);
    const uint8_t *in = MLX5_ADDR(c->in, set_hca_cap_in, capability);
    uint32_t have = c->in_len - MLX5_AT(set_hca_cap_in, capability);
    uint8_t cur[CAP_BYTES];
    const Mlx5CapRow *r;

    if (MLX5_GET(c->in, set_hca_cap_in, other_function) ||
        MLX5_GET(c->in, set_hca_cap_in, function_id)) {
        c->syndrome = SYND_CAP_FUNCTION;
        return MLX5_CMD_BAD_PARAM;
    }
    if (i < 0 || c->op_mod & 1) {
        c->syndrome = SYND_CAP_NOT_SETTABLE;
        return MLX5_CMD_BAD_PARAM;
    }
    /* Fields that the driver may not set are not looked at. */
    memcpy(cur, h->caps->cur[i], CAP_BYTES);
    for (r = mlx5_cap_rows; r->width; r++) {
        uint32_t v;

        if (r->type != type || r->set == MLX5_CAP_FIXED ||
            r->off / 32 * 4 + 4 > have || !cap_applies(h, r)) {
            continue;
        }
        v = mlx5_field_get(in, r->off, r->width);
        if (!cap_in_range(r, v)) {
            mlx5_guest_error(h, "SET_HCA_CAP: %s = 0x%x, at most 0x%x",
                             r->name, v, r->max);
            c->syndrome = SYND_CAP_ABOVE_MAX;
            return MLX5_CMD_BAD_PARAM;
        }
        if (v != mlx5_field_get(cur, r->off, r->width)) {
            trace_mlx5_cap_set(h->name, r->name, v);
            cap_put(cur, r, v);
        }
    }
    memcpy(h->caps->cur[i], cur, CAP_BYTES);
    if (type == MLX5_CAP_GENERAL) {
        cap_uars_per_page(h->caps->cur[i]);
    }
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_caps_cmds[] = {
    { 0x100, "QUERY_HCA_CAP", 16, MLX5_AT(query_hca_cap_out, capability),
      cmd_query_hca_cap, MLX5_CMDF_ANY_STATE },
    { 0x109, "SET_HCA_CAP", MLX5_AT(set_hca_cap_in, capability), 8,
      cmd_set_hca_cap, MLX5_CMDF_ANY_STATE | MLX5_CMDF_NOT_INIT },
    { }
};

void mlx5_caps_init(Mlx5Hca *h)
{
    h->caps = g_new0(struct Mlx5CapState, 1);
    mlx5_caps_reset(h);
}

void mlx5_caps_fini(Mlx5Hca *h)
{
    g_free(h->caps);
    h->caps = NULL;
}

static const VMStateDescription vmstate_cap_state = {
    .name = "mlx5-hca/caps/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8_2DARRAY(cur, struct Mlx5CapState, CAP_TYPES, CAP_BYTES),
        VMSTATE_END_OF_LIST()
    },
};

/* What the source had set must be possible here: same properties. */
static int caps_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;
    const Mlx5CapRow *r;

    for (r = mlx5_cap_rows; r->width; r++) {
        int i = cap_index(r->type);

        if (!cap_in_range(r, mlx5_field_get(h->caps->cur[i], r->off,
                                            r->width)) ||
            mlx5_field_get(h->caps->cur[i], r->off, r->width) >
            mlx5_field_get(h->caps->max[i], r->off, r->width)) {
            error_report("%s: capability %s differs from the source's: use "
                         "the same properties on both sides", h->name,
                         r->name);
            return -EINVAL;
        }
    }
    return 0;
}

const VMStateDescription vmstate_mlx5_caps = {
    .name = "mlx5-hca/caps",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = caps_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(caps, Mlx5Hca, vmstate_cap_state,
                               struct Mlx5CapState),
        VMSTATE_END_OF_LIST()
    },
};
