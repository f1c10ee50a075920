-- Which database this is: the folder of its indexes has this name.
CREATE TABLE tea_identity AS SELECT lower(hex(randomblob(16))) AS id;

-- Documents of several kinds: sessions, files, the catalog.
CREATE TABLE documents (
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    body    TEXT    NOT NULL, -- a JSON object
    version INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX documents_by_seq ON documents (kind, seq);

-- Long-term memory. Times are microseconds since 1970. A value that is NULL is
-- in the blob of its hash.
CREATE TABLE ltm (
    id           INTEGER NOT NULL PRIMARY KEY,
    key          TEXT    NOT NULL UNIQUE,
    seq          INTEGER NOT NULL,
    value        TEXT, -- JSON
    metadata     TEXT, -- a JSON object
    content_hash TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    expires_at   INTEGER
);
CREATE INDEX ltm_by_seq ON ltm (seq);
CREATE INDEX ltm_by_expiry ON ltm (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ltm_by_blob ON ltm (content_hash) WHERE value IS NULL;

-- Entries that are gone and that a written text index may still hold.
CREATE TABLE ltm_gone (
    id  INTEGER NOT NULL,
    seq INTEGER NOT NULL PRIMARY KEY
);

CREATE TABLE vector_collections (
    name      TEXT    NOT NULL PRIMARY KEY,
    dimension INTEGER NOT NULL
) WITHOUT ROWID;

-- embedding: 32-bit floats, little-endian.
CREATE TABLE vectors (
    id         INTEGER NOT NULL PRIMARY KEY,
    collection TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    embedding  BLOB    NOT NULL,
    metadata   TEXT, -- a JSON object
    UNIQUE (collection, name)
);
CREATE INDEX vectors_by_seq ON vectors (collection, seq);

-- Vectors that are gone and that a written index may still hold.
CREATE TABLE vectors_gone (
    id         INTEGER NOT NULL,
    collection TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (collection, seq)
) WITHOUT ROWID;

-- The user's tables are made by package tabular: a log tea_rows_x and views,
-- one of which has the name that the user chose. So tables of later versions
-- are called tea_..., which no user's table is.
