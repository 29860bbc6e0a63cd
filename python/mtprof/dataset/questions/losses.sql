-- what was lost, cut off, damaged or left unanswered, by rank
SELECT job, rank, counter, value FROM health
WHERE value <> 0 AND (counter = 'lost' OR counter LIKE 'lost_by%'
      OR counter IN ('unmatched', 'orphans', 'truncated', 'problems', 'skipped', 'left_out', 'clock_back'))
ORDER BY job, rank, start, counter
