-- DuckDB finds a row by an index over one column only: the primary key of
-- documents is not enough.
CREATE INDEX IF NOT EXISTS documents_by_id ON documents (id);
