#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# DuckDB and Spark answer the canned questions over traces and over the data set alike; every number is the report's. Spark
# is a cluster of this machine: a master and two workers.
set -eu
. "$(dirname "$0")/peers.inc.sh"

targets mtprof_command make_peer_trace make_cli_trace make_random_traces python_tree
environment tools/peers/packages_arrow.txt
rm -rf "$work/traces"
mkdir -p "$work/traces"
"$build/tests/make_peer_trace" "$work/traces"
"$build/tests/make_cli_trace" "$work/traces"

# ---- a cluster of this machine: a master and two workers, each a process that this script ends ----
cluster_pids=

# launch NAME CLASS [ARGUMENTS]: a process of Spark, with its log in $work/NAME.log.
launch() {
    log=$work/$1.log
    class=$2
    shift 2
    PYTHONPATH='' SPARK_LOCAL_IP=127.0.0.1 SPARK_NO_DAEMONIZE=1 SPARK_DAEMON_MEMORY=256m SPARK_WORKER_DIR="$work/workers" \
        "$spark/bin/spark-class" "$class" "$@" >"$log" 2>&1 &
    cluster_pids="$cluster_pids $!"
}

# wait_for FILE TEXT TIMES: until a log has the text that often, at most four minutes: machines may be busy.
wait_for() {
    tries=0
    while [ "$(grep -c "$2" "$1" 2>/dev/null || true)" -lt "$3" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 960 ]; then
            cat "$work"/master.log >&2
            return 1
        fi
        sleep 0.25
    done
}

start_cluster() {
    spark=$("$venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
    export SPARK_HOME="$spark" PYSPARK_PYTHON="$venv/bin/python" SPARK_LOCAL_IP=127.0.0.1
    rm -f "$work"/master.log "$work"/worker*.log
    launch master org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 0 --webui-port 0
    wait_for "$work/master.log" "Starting Spark master at spark://" 1 || return 1
    master=$(sed -n 's/.*Starting Spark master at \(spark:[^ ]*\).*/\1/p' "$work/master.log" | head -n 1)
    for number in 1 2; do
        launch "worker$number" org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 --cores 1 \
            --memory 1g "$master"
    done
    wait_for "$work/master.log" "Registering worker" 2
}

stop_cluster() {
    for pid in $cluster_pids; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    cluster_pids=
}

# ---- comparing ----
passed=0 failed=0 skipped=0
. tools/peers/compare.inc.sh
trap stop_cluster EXIT
start_cluster || fail "the Spark cluster did not start; the log of its master is above (Java 17: Debian's default-jre-headless)"
echo "a Spark cluster with two workers at $master"

export PYTHONPATH="$build/python:tests/python"
# 200 tasks a question, the default, are for more data than this.
export PYSPARK_SUBMIT_ARGS="--conf spark.sql.shuffle.partitions=4 pyspark-shell"
compare tests/peers/viewers/query_compare.py "$work" "$master" "$build/cli/mtprof" "$work/traces/train.mtt" \
    "$work/traces/rank0.mtt" "$work/traces/rank1.mtt" "$work/traces/odd.mtt" "$work/traces/empty.mtt" \
    "$work/traces/lossy.mtt"
count=8
[ -z "${PEERS_LONG:-}" ] || count=400
compare tests/peers/viewers/query_compare.py --random "$work" "$count" "$build/cli/mtprof" \
    "$build/tests/make_random_traces"
compare tests/peers/types/unittest_counts.py tests/python/dataset/test_dataset.py
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
