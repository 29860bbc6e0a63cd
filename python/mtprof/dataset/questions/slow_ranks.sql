-- ops with 10 % and 1 ms more self time than the median rank
SELECT t.job, t.rank, t.name, round(CAST(t.ns AS DOUBLE) / 1000000, 3) AS self_ms,
       round(CAST(m.median_ns AS DOUBLE) / 1000000, 3) AS median_ms,
       round(100 * (CAST(t.ns AS DOUBLE) / m.median_ns - 1), 1) AS percent_more
FROM (SELECT job, rank, name, CAST(sum(self_cpu_ns) AS BIGINT) AS ns
      FROM averages WHERE kind = 'op' AND device = 0 GROUP BY job, rank, name) AS t
JOIN (SELECT job, name, median(ns) AS median_ns FROM (
          SELECT job, rank, name, CAST(sum(self_cpu_ns) AS BIGINT) AS ns
          FROM averages WHERE kind = 'op' AND device = 0 GROUP BY job, rank, name) AS a
      GROUP BY job, name HAVING count(*) > 1) AS m ON m.job = t.job AND m.name = t.name
WHERE t.ns > m.median_ns * 1.1 AND t.ns > m.median_ns + 1000000
ORDER BY t.ns - m.median_ns DESC, t.job, t.rank, t.name
