-- The writes of the last day. A write adds a row with its random id in its
-- transaction: sent again after its answer was lost, it violates the primary key,
-- changes nothing, and its results are read here.
CREATE TABLE tea_writes (
	id bytea NOT NULL,
	n integer NOT NULL DEFAULT 0, -- the statement of the write
	result text,
	at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (id, n)
);
CREATE INDEX tea_writes_by_time ON tea_writes (at);
