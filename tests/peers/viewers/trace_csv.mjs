// SPDX-License-Identifier: Apache-2.0
//
// What `mtprof export csv` writes, as objects, and the categories that its kinds have in Chrome traces and .pftrace.

// CSV with quotes: rows of fields.
export function parseCsv(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows.at(-1).push(quoted !== undefined ? quoted.replaceAll('""', '"') : plain);
    if (end === '\n') rows.push([]);
    if (end === '') break;
  }
  const [head, ...rest] = rows.filter((row) => row.length > 1);
  return (rest ?? []).map((row) => Object.fromEntries((head ?? []).map((name, i) => [name, row[i]])));
}

export const CATEGORIES = { op: 'cpu_op', scope: 'user_annotation', step: 'user_annotation', runtime: 'runtime', launch: 'runtime',
  call: 'runtime', kernel: 'kernel', copy: 'gpu_memcpy', set: 'gpu_memset', annotation: 'gpu_user_annotation' };
export const DEVICE = new Set(['kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation']);
