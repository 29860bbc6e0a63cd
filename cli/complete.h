/* SPDX-License-Identifier: Apache-2.0
 *
 * Shell completion, from the tables that the parser and the help use.
 */
#ifndef CLI_COMPLETE_H
#define CLI_COMPLETE_H

/*
 * mtprof __complete WORD... CURRENT: the words after "mtprof" up to the one being typed. Prints
 * candidates, one a line, as "word<TAB>description"; a line ":files" asks for file names as well.
 */
int cli_complete(int n_words, char **words);

#endif /* CLI_COMPLETE_H */
