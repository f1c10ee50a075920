-- Deleted records, for replicas that synchronise later.
CREATE TABLE IF NOT EXISTS tea_deleted (
    feed       VARCHAR NOT NULL, -- ltm, vectors or documents
    seq        BIGINT  NOT NULL,
    space      VARCHAR NOT NULL,
    key        VARCHAR NOT NULL,
    deleted_at BIGINT  NOT NULL
);
CREATE INDEX IF NOT EXISTS tea_deleted_by_key ON tea_deleted (key);

-- The numbers up to which tea_deleted is not complete.
CREATE TABLE IF NOT EXISTS tea_forgotten (
    feed VARCHAR NOT NULL PRIMARY KEY,
    seq  BIGINT  NOT NULL
);

-- How far this memory is synchronised with another store, and the hashes of the
-- records that both had then. id is the JSON list of remote, feed, space and key;
-- pending is the hash of a record that is being written to the remote.
CREATE TABLE IF NOT EXISTS tea_sync (
    id         VARCHAR NOT NULL PRIMARY KEY, -- the JSON list of remote and feed
    local_seq  BIGINT  NOT NULL,
    remote_seq BIGINT  NOT NULL
);
CREATE TABLE IF NOT EXISTS tea_sync_base (
    id         VARCHAR NOT NULL PRIMARY KEY,
    hash       VARCHAR NOT NULL,
    pending    VARCHAR NOT NULL,
    expires_at BIGINT  NOT NULL
);
