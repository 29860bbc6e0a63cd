-- collectives by rank and layer: how many and how long
SELECT job, rank, layer, name, count(*) AS calls,
       round(CAST(sum(dur_ns) AS DOUBLE) / 1000000, 3) AS ms,
       min(dur_ns) AS shortest_ns, max(dur_ns) AS longest_ns
FROM collectives GROUP BY job, rank, start, layer, name
ORDER BY job, rank, start, layer, sum(dur_ns) DESC, name
