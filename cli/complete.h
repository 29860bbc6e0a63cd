/* SPDX-License-Identifier: Apache-2.0
 *
 * What a shell may put next, from the tables that parse and explain.
 */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

/*
 * mtprof __complete WORD... CURRENT: the words behind "mtprof" up to the one being typed. Prints
 * candidates, one a line, as "word<TAB>description"; a line ":files" asks for file names as well.
 */
int cli_complete(int n_words, char **words);

#endif /* CLI_COMPLETE_H */
