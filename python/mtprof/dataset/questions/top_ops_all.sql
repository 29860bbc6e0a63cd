-- ops with the most self time over all ranks, from the events
SELECT name, count(*) AS calls, CAST(count(DISTINCT rank) AS BIGINT) AS ranks,
       round(CAST(sum(self_ns) AS DOUBLE) / 1000000, 3) AS self_ms,
       round(CAST(sum(dur_ns) AS DOUBLE) / 1000000, 3) AS total_ms,
       max(dur_ns) AS longest_ns
FROM ops GROUP BY name ORDER BY sum(self_ns) DESC, name LIMIT 20
