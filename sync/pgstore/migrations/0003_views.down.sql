DROP VIEW dead_letter_findings, dead_letter_analysis;
DROP FUNCTION dead_letters_since(timestamptz);
DROP VIEW pipeline_status, slow_endpoints, endpoint_health, live_instances;
DROP FUNCTION endpoint_percentiles(text, interval);
DROP FUNCTION endpoint_counts(integer[], timestamptz, timestamptz);
DROP FUNCTION bucket_percentiles(smallint[], bigint[]);
DROP FUNCTION latency_bucket(integer);
