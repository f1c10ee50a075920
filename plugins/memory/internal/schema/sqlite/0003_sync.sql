-- Deleted records, for replicas that synchronise later.
CREATE TABLE IF NOT EXISTS tea_deleted (
    feed       TEXT    NOT NULL, -- ltm, vectors or documents
    seq        INTEGER NOT NULL,
    space      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    deleted_at INTEGER NOT NULL,
    PRIMARY KEY (feed, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tea_deleted_by_key ON tea_deleted (key);

-- The changes of all collections in the order of their numbers.
CREATE INDEX IF NOT EXISTS vectors_by_change ON vectors (seq);
CREATE INDEX IF NOT EXISTS documents_by_change ON documents (seq);

-- The numbers up to which tea_deleted is not complete.
CREATE TABLE IF NOT EXISTS tea_forgotten (
    feed TEXT    NOT NULL PRIMARY KEY,
    seq  INTEGER NOT NULL
) WITHOUT ROWID;

-- How far this memory is synchronised with another store, and the hashes of the
-- records that both had then. id is the JSON list of remote, feed, space and key;
-- pending is the hash of a record that is being written to the remote.
CREATE TABLE IF NOT EXISTS tea_sync (
    id         TEXT    NOT NULL PRIMARY KEY, -- the JSON list of remote and feed
    local_seq  INTEGER NOT NULL,
    remote_seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tea_sync_base (
    id         TEXT    NOT NULL PRIMARY KEY,
    hash       TEXT    NOT NULL,
    pending    TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
