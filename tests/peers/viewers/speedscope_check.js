// SPDX-License-Identifier: Apache-2.0
//
// speedscope_check.js NODE_MODULES MTPROF TRACE...
//
// Exports each trace for speedscope and checks the file:
//   1. the schema that speedscope publishes accepts it;
//   2. of an evented profile times do not go back, opens and closes nest, frames exist;
//   3. the self time of every name, added up over all profiles, is what `mtprof report` has;
//   4. the same for the device's time, where a trace has any: a profile for every queue.
"use strict";
const { execFileSync } = require("child_process");
const path = require("path");

const [modules, mtprof, ...traces] = process.argv.slice(2);
const Ajv = require(path.join(modules, "ajv"));
const schema = require(path.join(modules, "speedscope", "dist", "release", "file-format-schema.json"));
const accepts = new Ajv({ strict: false }).compile(schema);
let passed = 0;
let failed = 0;

function tell(what, problem) {
    if (problem) {
        failed++;
        console.log(`FAILED ${what}: ${problem}`);
    } else {
        passed++;
    }
}

function run(...args) {
    return JSON.parse(execFileSync(mtprof, args, { timeout: 60000, maxBuffer: 1 << 28 }).toString("utf8"));
}

// Adds the self times of a profile to sums, or says what is wrong with it.
function walk(profile, frames, sums) {
    const open = [];
    let last = profile.startValue;
    for (const event of profile.events) {
        if (event.frame >= frames.length) {
            return `frame ${event.frame} of ${frames.length}`;
        }
        if (event.at < last) {
            return `${event.at} after ${last}`;
        }
        if (open.length > 0) {
            const name = frames[open[open.length - 1]].name;
            sums.set(name, (sums.get(name) || 0) + event.at - last);
        }
        last = event.at;
        if (event.type === "O") {
            open.push(event.frame);
        } else if (open.pop() !== event.frame) {
            return `frame ${event.frame} closes at ${event.at} and is not the innermost`;
        }
    }
    if (open.length > 0) {
        return `${open.length} frames are left open`;
    }
    return last > profile.endValue ? `ends at ${profile.endValue}, has ${last}` : null;
}

// Steps have a name each in the file, and one row in the report.
function keyOf(name) {
    return name.replace(/^ProfilerStep#\d+$/, "ProfilerStep*");
}

// One file of a trace: `theirs` is the metric of the export, `ours` says which rows of the report it shows.
function compare(trace, theirs, ours, selfTime) {
    const what = `${path.basename(trace)} ${theirs}`;
    const file = run("export", "-q", "-o", "-", "--metric", theirs, "speedscope", trace);
    tell(`schema, ${what}`, accepts(file) ? null : JSON.stringify(accepts.errors.slice(0, 3)));
    const sums = new Map();
    for (const profile of file.profiles) {
        tell(`profile ${profile.name} of ${what}`, walk(profile, file.shared.frames, sums));
    }
    const found = {};
    for (const [name, ns] of sums) {
        found[keyOf(name)] = (found[keyOf(name)] || 0) + ns;
    }
    for (const row of ours) {
        tell(`self time of ${row.key}, ${what}`,
            found[row.key] === row[selfTime]
                ? null
                : `the file has ${found[row.key]} ns, mtprof ${row[selfTime]} ns`);
    }
}

for (const trace of traces) {
    const rows = run("report", "--json", trace).rows;
    compare(trace, "self_cpu_time_total", rows.filter((row) => row.device_type === "CPU" &&
        row.self_cpu_time_total_ns !== 0), "self_cpu_time_total_ns");
    const work = rows.filter((row) => ["kernel", "copy", "set"].includes(row.kind));
    if (work.length > 0) {
        compare(trace, "self_device_time_total", work, "self_device_time_total_ns");
    }
    if (path.basename(trace) === "npu.mtt") {
        tell("work on the device in npu.mtt", work.length > 0 ? null : "there is none");
    }
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
