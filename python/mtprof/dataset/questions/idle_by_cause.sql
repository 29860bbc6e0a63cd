-- where the time of the steps went (parts of mtprof explain)
SELECT job, rank, part, round(CAST(ns AS DOUBLE) / 1000000, 3) AS ms,
       round(100 * CAST(ns AS DOUBLE) / nullif(sum(ns) OVER (PARTITION BY job, rank, start), 0), 1) AS percent
FROM (SELECT job, rank, start, part, CAST(sum(ns) AS BIGINT) AS ns
      FROM parts GROUP BY job, rank, start, part) AS t
ORDER BY job, rank, start, ns DESC, part
