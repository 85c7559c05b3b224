-- The sequences belong to their tables, and are named for the time between the two.
DROP TABLE IF EXISTS maintenance, endpoint_hours, endpoint_minutes, endpoint_latency, deleted_events, webhook_queue,
    instance_endpoint_health, instances, endpoint_names, endpoints;
DROP SEQUENCE IF EXISTS webhook_queue_id_seq, endpoint_latency_id_seq;
