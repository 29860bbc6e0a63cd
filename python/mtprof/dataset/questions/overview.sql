-- each rank: events, steps, what it took, what was lost
SELECT r.job, r.rank, r.source, r.events, count(s.step) AS steps,
       round(CAST(r.end_ns - r.start_ns AS DOUBLE) / 1000000, 3) AS recorded_ms,
       round(CAST(coalesce(sum(s.dur_ns), 0) AS DOUBLE) / 1000000, 3) AS steps_ms,
       max(coalesce(h.value, 0)) AS lost
FROM ranks r
LEFT JOIN (SELECT DISTINCT job, rank, start, place, step, end_ns - start_ns AS dur_ns
           FROM parts WHERE step >= 0) AS s ON s.job = r.job AND s.rank = r.rank AND s.start = r.start
LEFT JOIN health h ON h.job = r.job AND h.rank = r.rank AND h.start = r.start AND h.counter = 'lost'
GROUP BY r.job, r.rank, r.start, r.source, r.events, r.start_ns, r.end_ns
ORDER BY r.job, r.rank, r.start
