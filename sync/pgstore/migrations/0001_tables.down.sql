DROP TABLE maintenance, endpoint_hours, endpoint_minutes, endpoint_latency, deleted_events, webhook_queue,
    instance_endpoint_health, instances, endpoint_names, endpoints;
