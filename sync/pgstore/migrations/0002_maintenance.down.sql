DROP FUNCTION IF EXISTS prune(interval, integer);
DROP FUNCTION IF EXISTS drop_partition(text, interval);
DROP FUNCTION IF EXISTS make_partitions(text, integer, interval);
DROP FUNCTION IF EXISTS partition_for(text, date);
