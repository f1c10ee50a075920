-- Which database this is: the folder of its indexes has this name.
CREATE TABLE tea_identity AS SELECT CAST(uuid() AS VARCHAR) AS id;

-- Documents of several kinds: sessions, files, the catalog.
CREATE TABLE documents (
    kind    VARCHAR NOT NULL,
    id      VARCHAR NOT NULL,
    body    VARCHAR NOT NULL, -- a JSON object
    version BIGINT  NOT NULL,
    seq     BIGINT  NOT NULL,
    PRIMARY KEY (kind, id)
);

-- Long-term memory. Times are microseconds since 1970. A value that is NULL is
-- in the blob of its hash.
CREATE TABLE ltm (
    id           BIGINT  NOT NULL,
    key          VARCHAR NOT NULL PRIMARY KEY,
    seq          BIGINT  NOT NULL,
    value        VARCHAR, -- JSON
    metadata     VARCHAR, -- a JSON object
    content_hash VARCHAR NOT NULL,
    created_at   BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL,
    expires_at   BIGINT
);

-- What a search has found is read by its numbers.
CREATE INDEX ltm_by_id ON ltm (id);

-- Entries that are gone and that a written text index may still hold.
CREATE TABLE ltm_gone (
    id  BIGINT NOT NULL,
    seq BIGINT NOT NULL
);

CREATE TABLE vector_collections (
    name      VARCHAR NOT NULL PRIMARY KEY,
    dimension INTEGER NOT NULL
);

-- embedding: 32-bit floats, little-endian.
CREATE TABLE vectors (
    id         BIGINT  NOT NULL,
    collection VARCHAR NOT NULL,
    name       VARCHAR NOT NULL,
    seq        BIGINT  NOT NULL,
    text       VARCHAR NOT NULL,
    embedding  BLOB    NOT NULL,
    metadata   VARCHAR, -- a JSON object
    PRIMARY KEY (collection, name)
);

CREATE INDEX vectors_by_id ON vectors (id);

-- Vectors that are gone and that a written index may still hold.
CREATE TABLE vectors_gone (
    id         BIGINT  NOT NULL,
    collection VARCHAR NOT NULL,
    seq        BIGINT  NOT NULL
);

-- The user's tables are made by package tabular: a log tea_rows_x and views,
-- one of which has the name that the user chose. So tables of later versions
-- are called tea_..., which no user's table is.
