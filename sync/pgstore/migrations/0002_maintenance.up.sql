-- Partitions and retention. The functions run with their owner's rights, so that an instance whose role may only read
-- and write rows can look after the tables all the same; see docs/sync.md for the grants.

-- partition_for makes the partition of one UTC day. Rows of that day that were waiting in the default partition move
-- with it. The table is made alone and then attached, which holds up neither readers nor writers of its parent.
CREATE FUNCTION partition_for(parent text, day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    child  text := parent || '_p' || to_char(day, 'YYYYMMDD');
    key    text := CASE parent WHEN 'webhook_queue' THEN 'created_at' WHEN 'endpoint_latency' THEN 'measured_at'
                               WHEN 'endpoint_minutes' THEN 'minute' END;
    fill   integer := CASE parent WHEN 'webhook_queue' THEN 90 WHEN 'endpoint_minutes' THEN 70 ELSE 100 END;
    since  timestamptz := day::timestamp AT TIME ZONE 'UTC';
    until  timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION 'no such table: %', parent;
    END IF;
    IF to_regclass(quote_ident(child)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (fillfactor = %s)', child, parent, fill);
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
        parent || '_default', key, since, key, until, child);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, since, until);
    RETURN true;
END $$;

-- make_partitions makes the partitions from yesterday until ahead days from now, and those of late rows.
CREATE FUNCTION make_partitions(parent text, ahead integer, retention interval) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
    made  integer := 0;
    d     date;
    key   text := CASE parent WHEN 'webhook_queue' THEN 'created_at' WHEN 'endpoint_latency' THEN 'measured_at' ELSE 'minute' END;
BEGIN
    FOR d IN SELECT today + n FROM generate_series(-1, ahead) n LOOP
        made := made + partition_for(parent, d)::integer;
    END LOOP;
    FOR d IN EXECUTE format('SELECT DISTINCT (%I AT TIME ZONE ''UTC'')::date FROM %I WHERE %I >= %L AND %I < %L LIMIT 10',
        key, parent || '_default', key, greatest(now() - retention, now() - interval '400 days'), key, now() + interval '2 days') LOOP
        made := made + partition_for(parent, d)::integer;
    END LOOP;
    RETURN made;
END $$;

-- drop_partition drops the oldest partition that is wholly past its retention, and says which; null when there is none.
-- Events that are not finished, or finished lately, outlive their partition: they move to the default one.
CREATE FUNCTION drop_partition(parent text, retention interval) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    day   date;
    child text;
BEGIN
    IF parent NOT IN ('webhook_queue', 'endpoint_latency', 'endpoint_minutes') THEN
        RAISE EXCEPTION 'no such table: %', parent;
    END IF;
    SELECT c.relname, to_date(right(c.relname, 8), 'YYYYMMDD') INTO child, day
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = to_regclass(quote_ident(parent)) AND c.relname ~ ('^' || parent || '_p[0-9]{8}$')
     ORDER BY c.relname LIMIT 1;
    IF child IS NULL OR (day + 1)::timestamp AT TIME ZONE 'UTC' > now() - retention THEN
        RETURN NULL;
    END IF;
    EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, child);
    IF parent = 'webhook_queue' THEN
        EXECUTE format('INSERT INTO webhook_queue SELECT * FROM %I WHERE status <> ''delivered'' AND (status <> ''dead_letter'' OR updated_at > %L)',
            child, now() - retention);
    ELSIF parent = 'endpoint_latency' THEN
        UPDATE maintenance SET raw_from = greatest(raw_from, (day + 1)::timestamp AT TIME ZONE 'UTC');
    END IF;
    EXECUTE format('DROP TABLE %I', child);
    RETURN child;
END $$;

-- prune removes old rows from what is not partitioned by day, at most batch rows of each table, and says how many.
CREATE FUNCTION prune(retention interval, batch integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    cutoff timestamptz := now() - retention;
    total  bigint := 0;
    n      bigint;
BEGIN
    DELETE FROM webhook_queue_default WHERE ctid = ANY (ARRAY(
        SELECT q.ctid FROM webhook_queue_default q LEFT JOIN instances i USING (instance_id)
         WHERE q.created_at < cutoff AND q.updated_at < cutoff
           AND (q.status IN ('delivered', 'dead_letter') OR coalesce(i.heartbeat_at < cutoff, true)) LIMIT batch));
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    DELETE FROM endpoint_latency_default WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM endpoint_latency_default WHERE measured_at < cutoff LIMIT batch));
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    IF n > 0 THEN
        UPDATE maintenance SET raw_from = greatest(raw_from, cutoff);
    END IF;
    DELETE FROM endpoint_minutes_default WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM endpoint_minutes_default WHERE minute < cutoff LIMIT batch));
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    -- Hours are small: they tell of twelve times as long.
    DELETE FROM endpoint_hours WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM endpoint_hours WHERE hour < now() - 12 * retention LIMIT batch));
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    DELETE FROM deleted_events WHERE ctid = ANY (ARRAY(SELECT ctid FROM deleted_events WHERE deleted_at < cutoff LIMIT batch));
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    DELETE FROM instance_endpoint_health WHERE updated_at < cutoff AND NOT EXISTS (
        SELECT FROM instances i WHERE i.instance_id = instance_endpoint_health.instance_id AND i.heartbeat_at >= cutoff);
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    DELETE FROM instances WHERE heartbeat_at < cutoff;
    GET DIAGNOSTICS n = ROW_COUNT; total := total + n;
    RETURN total;
END $$;

REVOKE ALL ON FUNCTION partition_for(text, date), make_partitions(text, integer, interval),
    drop_partition(text, interval), prune(interval, integer) FROM PUBLIC;

SELECT make_partitions(parent, 3, interval '1 day') FROM unnest(ARRAY['webhook_queue', 'endpoint_latency', 'endpoint_minutes']) parent;
