-- The rows of tables of data.*, whose definitions are in the catalog. A row has the
-- number of its last change; tea_tables has the last one of each table, and its
-- lock orders the changes. The key is a hash, since a long one has no place in an
-- index.
CREATE TABLE tea_tables (name text COLLATE "C" PRIMARY KEY, version bigint NOT NULL);
CREATE TABLE tea_rows (
	name text COLLATE "C" NOT NULL,
	key bytea NOT NULL,
	seq bigint NOT NULL,
	body jsonb NOT NULL,
	PRIMARY KEY (name, key)
);
-- The results of changes by their keys, for calls that are repeated.
CREATE TABLE tea_calls (
	key text COLLATE "C" PRIMARY KEY,
	hash text NOT NULL,
	result text NOT NULL,
	at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tea_calls_by_time ON tea_calls (at);
