/*
 * Arm SMMUv3: what it is set up for, for people
 *
 * QOM properties: "streams", the stream table entries of the functions that
 * are there, with a word on those that share one table of context
 * descriptors (their PASIDs are one name space: whoever drives one stream
 * reaches the address spaces of the other); "stalls", what is suspended.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/arm/smmuv3.h"
#include "smmuv3-ext.h"

typedef struct Stream {
    uint32_t sid;
    bool found;
    STE ste;
} Stream;

static gint by_sid(gconstpointer a, gconstpointer b)
{
    return (gint)((const Stream *)a)->sid - (gint)((const Stream *)b)->sid;
}

static GArray *find_streams(SMMUv3State *s)
{
    GArray *streams = g_array_new(false, true, sizeof(Stream));
    SMMUPciBus *sbus;
    GHashTableIter iter;

    g_hash_table_iter_init(&iter, ARM_SMMU(s)->smmu_pcibus_by_busptr);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&sbus)) {
        for (unsigned i = 0; i < SMMU_PCI_DEVFN_MAX; i++) {
            SMMUEventInfo event = { .inval_ste_allowed = true };
            Stream stream = {};

            if (!sbus->pbdev[i]) {
                continue;
            }
            stream.sid = smmu_get_sid(sbus->pbdev[i]);
            stream.found = smmu_enabled(s) &&
                           !smmu_find_ste(s, stream.sid, &stream.ste, &event) &&
                           STE_VALID(&stream.ste);
            g_array_append_val(streams, stream);
        }
    }
    g_array_sort(streams, by_sid);
    return streams;
}

static bool has_cd_table(const Stream *stream)
{
    return stream->found && !STE_CFG_ABORT(STE_CONFIG(&stream->ste)) &&
           STE_CFG_S1_ENABLED(STE_CONFIG(&stream->ste));
}

static void describe(GString *out, const Stream *stream)
{
    const STE *ste = &stream->ste;

    g_string_append_printf(out, "stream 0x%x:", stream->sid);
    if (!stream->found) {
        g_string_append(out, " no valid entry");
    } else if (STE_CFG_ABORT(STE_CONFIG(ste))) {
        g_string_append(out, " aborts");
    } else if (STE_CFG_BYPASS(STE_CONFIG(ste))) {
        g_string_append(out, " passes through");
    }
    if (has_cd_table(stream)) {
        g_string_append_printf(out, " stage 1, CD table 0x%" PRIx64
                               " for %u substream bits", STE_CTXPTR(ste),
                               STE_S1CDMAX(ste));
    }
    if (stream->found && !STE_CFG_ABORT(STE_CONFIG(ste)) &&
        STE_CFG_S2_ENABLED(STE_CONFIG(ste))) {
        g_string_append_printf(out, " stage 2, VMID %u, table 0x%" PRIx64,
                               STE_S2VMID(ste), STE_S2TTB(ste));
    }
    if (stream->found && STE_EATS(ste)) {
        g_string_append(out, ", ATS");
    }
}

static char *get_streams(Object *obj, Error **errp)
{
    SMMUv3State *s = ARM_SMMUV3(obj);
    GString *out = g_string_new(NULL);
    g_autoptr(GArray) streams = NULL;

    qemu_mutex_lock(&s->mutex);
    streams = find_streams(s);
    qemu_mutex_unlock(&s->mutex);
    for (unsigned i = 0; i < streams->len; i++) {
        Stream *a = &g_array_index(streams, Stream, i);

        describe(out, a);
        for (unsigned j = 0; has_cd_table(a) && j < streams->len; j++) {
            Stream *b = &g_array_index(streams, Stream, j);

            if (j != i && has_cd_table(b) &&
                STE_CTXPTR(&a->ste) == STE_CTXPTR(&b->ste)) {
                g_string_append_printf(out, ", SHARED with stream 0x%x",
                                       b->sid);
            }
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, false);
}

static char *get_stalls(Object *obj, Error **errp)
{
    SMMUv3State *s = ARM_SMMUV3(obj);
    GString *out = g_string_new(NULL);
    RecoverableDMAReq *req;
    SMMUv3Stall *stall;
    GHashTableIter iter;
    void *tag;

    qemu_mutex_lock(&s->mutex);
    g_hash_table_iter_init(&iter, s->feat.stalls);
    while (g_hash_table_iter_next(&iter, &tag, (void **)&stall)) {
        g_string_append_printf(out, "stream 0x%x: STAG 0x%x\n",
                               smmuv3_stall_sid(stall),
                               GPOINTER_TO_UINT(tag));
    }
    QTAILQ_FOREACH(req, &s->feat.stall_waiting, link) {
        g_string_append_printf(out, "stream 0x%x: 0x%" HWADDR_PRIx
                               " waits for room for its event\n", req->stream,
                               req->iova);
    }
    qemu_mutex_unlock(&s->mutex);
    return g_string_free(out, false);
}

void smmuv3_info_realize(SMMUv3State *s)
{
    object_property_add_str(OBJECT(s), "streams", get_streams, NULL);
    object_property_set_description(OBJECT(s), "streams",
                                    "Stream table entries of the functions");
    object_property_add_str(OBJECT(s), "stalls", get_stalls, NULL);
    object_property_set_description(OBJECT(s), "stalls",
                                    "Suspended transactions");
}
