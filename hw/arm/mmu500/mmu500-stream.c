/*
 * MMU-500: stream matching (IHI 0062 section 2.5)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mmu500-internal.h"
#include "trace.h"

/* The matching group, STREAM_NONE or STREAM_CONFLICT. */
int mmu500_stream_match(MMU500State *s, uint32_t sid)
{
    bool exid = FIELD_EX32(s->cr0, CR0, EXIDENABLE);
    int match = STREAM_NONE;
    unsigned i;

    if (!exid && sid >= 1u << MMU500_SIDB) {
        /* more bits than the TBU's StreamID input has: matches nothing */
        return STREAM_NONE;
    }

    for (i = 0; i < s->num_smrg; i++) {
        uint32_t smr = s->smr[i];
        uint32_t id, mask;

        if (exid) {
            if (!FIELD_EX32(s->s2cr[i], S2CR0, EXIDVALID)) {
                continue;
            }
            id = FIELD_EX32(smr, SMR0, EXID);
            mask = FIELD_EX32(smr, SMR0, EXMASK);
        } else {
            if (!FIELD_EX32(smr, SMR0, VALID)) {
                continue;
            }
            id = FIELD_EX32(smr, SMR0, ID);
            mask = FIELD_EX32(smr, SMR0, MASK);
        }
        if ((sid ^ id) & ~mask) {
            continue;
        }
        if (match != STREAM_NONE) {
            return STREAM_CONFLICT;
        }
        match = i;
    }
    return match;
}

/* The same, remembered in the master until the registers change. */
int mmu500_stream_lookup(MMU500State *s, MMU500Txn *txn)
{
    MMU500Master *m = txn->master;

    if (!m) {
        return mmu500_stream_match(s, txn->sid);
    }
    if (m->gen != s->stream_gen || m->gen_sid != txn->sid) {
        m->match = mmu500_stream_match(s, txn->sid);
        m->gen = s->stream_gen;
        m->gen_sid = txn->sid;
        trace_mmu500_stream_match(txn->sid, m->match);
    }
    return m->match;
}
