/*
 * MMU-500: the kept corpus of the random test
 *
 * Each seed is one run of CORPUS_ACCESSES random register accesses and DMA,
 * odd ones with timing=on. Picked by tests/coverage/run --pick; a change to
 * the random test's choices wants a new pick.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_ODP_MMU500_CORPUS_H
#define TESTS_QTEST_ODP_MMU500_CORPUS_H

#define CORPUS_ACCESSES 1500

static const uint32_t mmu500_corpus[] = {
    1, 2, 9, 25, 27, 30, 31, 35,
};

#endif
