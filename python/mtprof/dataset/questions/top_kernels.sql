-- the ten kernels of each rank with the most device time
SELECT job, rank, place, name, calls, total_ms, longest_ns FROM (
    SELECT job, rank, start, name, calls, round(CAST(ns AS DOUBLE) / 1000000, 3) AS total_ms, longest_ns,
           row_number() OVER (PARTITION BY job, rank, start ORDER BY ns DESC, name) AS place
    FROM (SELECT job, rank, start, name, count(*) AS calls, CAST(sum(dur_ns) AS BIGINT) AS ns,
                 max(dur_ns) AS longest_ns
          FROM kernels GROUP BY job, rank, start, name) AS t) AS ranked
WHERE place <= 10 ORDER BY job, rank, start, place
