-- copies and sets of device memory: how many, how much, how fast
SELECT job, rank, kind, name, count(*) AS calls, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes,
       round(CAST(sum(dur_ns) AS DOUBLE) / 1000000, 3) AS ms,
       round(CAST(coalesce(sum(bytes), 0) AS DOUBLE) / nullif(sum(dur_ns), 0), 3) AS gb_per_s
FROM events WHERE kind IN ('copy', 'set')
GROUP BY job, rank, start, kind, name ORDER BY job, rank, start, sum(dur_ns) DESC, kind, name
