/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ids of a model mean: names, tracks, devices, input lists, stacks, metadata.
 *
 * A trace of ours brings strings, input lists and stacks of its own; the dictionary looks those up
 * in the reader and holds only what is not there: names in full, foreign traces.
 *
 *   DICT1  Names are distinct texts: grouping by name is grouping by number.
 *   DICT2  What was returned does not move, and lives as long as the dictionary.
 *   DICT3  Once the columns are made, only mtprof__dictionary_name() may still add (event streams),
 *          and it takes the lock.
 *
 * String ids inside input lists and scalars are the reader's; without a reader they are name + 1.
 *
 * Threads: names, tracks and devices may be looked up while others add; the other tables only once
 * they are complete. Filling in what an earlier thread track lacked is for one thread alone.
 */
#ifndef MTPROF_MODEL_DICTIONARY_H
#define MTPROF_MODEL_DICTIONARY_H

#include "base/arena.h"
#include "base/idmap.h"
#include "base/lock.h"

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__name_entry {
    mtprof_text text;
    uint32_t key; /* under which it is grouped; itself for most */
    uint32_t
        plain; /* 1: printable ASCII without quotes and backslashes, so JSON needs no escapes */
} mtprof__name_entry;

typedef struct mtprof__words {
    const uint64_t *words;
    uint32_t n;
} mtprof__words;

typedef struct mtprof__stack_node {
    uint32_t parent; /* 0: outermost */
    uint32_t frame;  /* index */
} mtprof__stack_node;

typedef struct mtprof__dictionary {
    const mtprof_reader *reader; /* NULL: a foreign trace */
    mtb_lock lock;               /* adding */
    mtb_arena arena;

    /* Published by n_names (release; look-ups acquire). Arrays that were outgrown stay in the
     * arena, because readers may still use them; so do those of tracks and devices. */
    mtprof__name_entry **name_blocks; /* of MTPROF__NAME_BLOCK entries: they never move (DICT2) */
    size_t n_blocks, block_capacity;
    uint32_t n_names;
    mtb_idmap name_map;     /* name + 1 */
    uint32_t *string_names; /* reader's strings in their order: name */

    /* The reader's lists have the indices from 1 to n_reader_inputs, in their order; ours follow.
     */
    mtprof__words *inputs;
    size_t n_inputs, inputs_capacity;
    uint32_t n_reader_inputs;
    uint32_t
        *reader_inputs;   /* reader's lists in their order: index of the first one that is equal */
    mtb_idmap inputs_map; /* index */

    mtprof__words *scalars; /* index - 1 */
    size_t n_scalars, scalars_capacity;

    /* Foreign traces only; traces of ours have them in the reader. */
    mtprof_frame *frames;
    size_t n_frames, frames_capacity;
    mtb_idmap frame_map;
    mtprof__stack_node *nodes; /* node - 1 */
    size_t n_nodes, nodes_capacity;
    mtb_idmap node_map;

    mtprof_track *tracks;
    size_t n_tracks, tracks_capacity;
    mtb_idmap track_map;
    mtprof_device *devices;
    size_t n_devices, devices_capacity;
    uint64_t devices_merged; /* times that one was taken for the last there is room for */

    /* Lists of event metadata: each is a count (in `value`) and that many items. */
    mtprof_metadatum *metadata;
    size_t n_metadata, metadata_capacity;
    mtprof_text *keys; /* of metadata, each once */
    size_t n_keys, keys_capacity;
    mtb_idmap key_map; /* index + 1 */
    mtprof_metadatum *trace_metadata;
    size_t n_trace_metadata, trace_metadata_capacity;
    mtb_idmap trace_metadata_map; /* index + 1 */
} mtprof__dictionary;

enum {
    MTPROF__NAME_BLOCK = 1024
};

/* Takes over what a reader has; reader may be NULL. Device 0 is the host, name 0 the empty name.
 * Fails with ENOMEM, and then there is nothing to free. */
int mtprof__dictionary_init(mtprof__dictionary *dictionary, const mtprof_reader *reader);
void mtprof__dictionary_fini(mtprof__dictionary *dictionary);

/* The text under which a name is grouped: that of all steps for "ProfilerStep#7", else itself. */
mtprof_text mtprof__group_text(mtprof_text text);
/* The number of a name; the text is copied. Fails with ENOMEM. Takes the lock. */
int mtprof__dictionary_name(mtprof__dictionary *dictionary, mtprof_text text, uint32_t *name);
/* The number of a name that is there; false: it is not. One thread at a time. */
bool mtprof__dictionary_find_name(const mtprof__dictionary *dictionary, mtprof_text text,
                                  uint32_t *name);
/* The name of one of the reader's strings; id 0 or unknown: the empty name. */
uint32_t mtprof__dictionary_string_name(const mtprof__dictionary *dictionary, uint32_t string);
const mtprof__name_entry *mtprof__dictionary_entry(const mtprof__dictionary *dictionary,
                                                   uint32_t name);

/* Index of an input list; equal lists have equal ones; the words are copied. Fails with ENOMEM.
 * Takes the lock. */
int mtprof__dictionary_inputs(mtprof__dictionary *dictionary, const uint64_t *words, uint32_t n,
                              uint32_t *inputs);
/* Index of one of the reader's lists, 0 where it has none of that id. */
uint32_t mtprof__dictionary_reader_inputs(const mtprof__dictionary *dictionary, uint32_t id);

/* The words of a list; false where there is none of that index. */
bool mtprof__dictionary_inputs_find(const mtprof__dictionary *dictionary, uint32_t inputs,
                                    const uint64_t **words, uint32_t *n);

/* Keeps a list of scalars. Fails with ENOMEM. Takes the lock. */
int mtprof__dictionary_scalars(mtprof__dictionary *dictionary, const uint64_t *words, uint32_t n,
                               uint32_t *scalars);

/* Foreign traces: a frame (from 0), and a stack node (from 1). The same for equal arguments. Texts
 * are copied. Fail with ENOMEM. Take the lock. */
int mtprof__dictionary_frame(mtprof__dictionary *dictionary, const mtprof_frame *frame,
                             uint32_t *index);
int mtprof__dictionary_node(mtprof__dictionary *dictionary, uint32_t parent, uint32_t frame,
                            uint32_t *node);

/* The track of a thread (by pid and tid) or queue (by device and queue); made where there is none.
 * What was not known before (names, numbers) is filled in later. Texts are borrowed:
 * they must live as long as the dictionary. Fail with ENOMEM. Take the lock. */
int mtprof__dictionary_thread_track(mtprof__dictionary *dictionary, const mtprof_track *thread,
                                    uint32_t *track);
int mtprof__dictionary_queue_track(mtprof__dictionary *dictionary, uint32_t device, uint32_t queue,
                                   uint32_t *track);
/* The device of a type and number; made where there is none, the last one past 255. Takes the
 * lock; the type is copied. */
int mtprof__dictionary_device(mtprof__dictionary *dictionary, mtprof_text type, int32_t index,
                              uint32_t *device);

/* Keeps a list of metadata of an event; keys and texts are copied. Fails with ENOMEM. Takes the
 * lock. */
int mtprof__dictionary_metadata(mtprof__dictionary *dictionary, const mtprof_metadatum *items,
                                uint32_t n, uint32_t *metadata);
/* Adds metadata of the trace; a later value of a key replaces an earlier one. Fails with ENOMEM.
 * Takes the lock. */
int mtprof__dictionary_trace_metadata(mtprof__dictionary *dictionary, const mtprof_metadatum *item);

/* A copy that lives as long as the dictionary; bytes NULL: no memory. Takes the lock. */
mtprof_text mtprof__dictionary_copy(mtprof__dictionary *dictionary, mtprof_text text);

#endif /* MTPROF_MODEL_DICTIONARY_H */
