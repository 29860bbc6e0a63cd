-- the most memory of each rank and device, and when
SELECT m.job, m.rank, m.device, m.step, m.allocated_bytes AS peak_bytes,
       round(CAST(m.time_ns - r.start_ns AS DOUBLE) / 1000000, 3) AS after_ms, m.allocations
FROM (SELECT job, rank, start, device, step, time_ns, allocated_bytes,
             count(*) OVER (PARTITION BY job, rank, start, device) AS allocations,
             row_number() OVER (PARTITION BY job, rank, start, device
                                ORDER BY allocated_bytes DESC, time_ns, address, bytes) AS place
      FROM memory) AS m
JOIN ranks r ON r.job = m.job AND r.rank = m.rank AND r.start = m.start
WHERE m.place = 1 ORDER BY m.job, m.rank, m.start, m.device
