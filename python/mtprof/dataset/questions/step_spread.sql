-- each step over the ranks: shortest, median, longest, slowest
SELECT t.job, t.step, count(*) AS ranks,
       round(CAST(min(t.dur_ns) AS DOUBLE) / 1000000, 3) AS min_ms,
       round(CAST(median(t.dur_ns) AS DOUBLE) / 1000000, 3) AS median_ms,
       round(CAST(max(t.dur_ns) AS DOUBLE) / 1000000, 3) AS max_ms,
       min(CASE WHEN t.place = 1 THEN t.rank END) AS slowest_rank
FROM (SELECT job, step, rank, dur_ns,
             row_number() OVER (PARTITION BY job, step ORDER BY dur_ns DESC, rank, start) AS place
      FROM (SELECT DISTINCT job, rank, start, place, step, end_ns - start_ns AS dur_ns
            FROM parts WHERE step >= 0) AS s) AS t
GROUP BY t.job, t.step ORDER BY t.job, t.step
