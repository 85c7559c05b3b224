-- What somebody has dropped by hand is no reason to stop: going down and up again is how it comes back.
DROP VIEW IF EXISTS dead_letter_findings, dead_letter_analysis;
DROP FUNCTION IF EXISTS dead_letters_since(timestamptz);
DROP VIEW IF EXISTS pipeline_status, slow_endpoints, endpoint_health, live_instances;
DROP FUNCTION IF EXISTS endpoint_percentiles(text, interval);
DROP FUNCTION IF EXISTS endpoint_counts(integer[], timestamptz, timestamptz);
DROP FUNCTION IF EXISTS bucket_percentiles(smallint[], bigint[]);
DROP FUNCTION IF EXISTS latency_bucket(integer);
