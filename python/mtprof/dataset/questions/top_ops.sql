-- the ten ops of each rank with the most self time on the host
SELECT job, rank, place, name, calls, self_ms, total_ms, percent FROM (
    SELECT job, rank, start, name, calls,
           round(CAST(self_cpu_ns AS DOUBLE) / 1000000, 3) AS self_ms,
           round(CAST(cpu_ns AS DOUBLE) / 1000000, 3) AS total_ms,
           round(100 * CAST(self_cpu_ns AS DOUBLE)
                 / nullif(sum(self_cpu_ns) OVER (PARTITION BY job, rank, start), 0), 1) AS percent,
           row_number() OVER (PARTITION BY job, rank, start ORDER BY self_cpu_ns DESC, name) AS place
    FROM averages WHERE kind = 'op' AND device = 0) AS ranked
WHERE place <= 10 ORDER BY job, rank, start, place
