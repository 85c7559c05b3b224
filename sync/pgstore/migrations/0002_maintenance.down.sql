DROP FUNCTION prune(interval, integer);
DROP FUNCTION drop_partition(text, interval);
DROP FUNCTION make_partitions(text, integer, interval);
DROP FUNCTION partition_for(text, date);
