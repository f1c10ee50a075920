-- DuckDB finds a row by an index over one column only: the primary key of
-- vectors is not enough.
CREATE INDEX vectors_by_name ON vectors (name);

-- Keys that begin with the last code point of Unicode, from before there were
-- namespaces: such a key now follows an empty namespace (see package longterm).
UPDATE ltm SET key = chr(1114111) || chr(1) || key WHERE key >= chr(1114111) AND instr(key, chr(1)) = 0;
